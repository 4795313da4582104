//! Seeded inputs: normal floats and labels.

use kiln::tensor::{Device, Int, Tensor, TensorData};

/// A counter hashed by the finalizer of splitmix64.
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1).
    fn unit(&mut self) -> f32 {
        ((self.next() >> 40) as f32 + 0.5) / (1u32 << 24) as f32
    }
}

/// Standard normal values.
pub fn floats<const D: usize>(device: &Device, shape: [usize; D], seed: u64) -> Tensor<D> {
    let mut stream = Stream(seed);
    let values: Vec<f32> =
        (0..shape.iter().product::<usize>()).map(|_| (-2.0 * stream.unit().ln()).sqrt() * (std::f32::consts::TAU * stream.unit()).cos()).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Integers below `bound`.
pub fn labels<const D: usize>(device: &Device, shape: [usize; D], bound: u64, seed: u64) -> Tensor<D, Int> {
    let mut stream = Stream(seed);
    let values: Vec<i64> = (0..shape.iter().product::<usize>()).map(|_| (stream.next() % bound) as i64).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}
