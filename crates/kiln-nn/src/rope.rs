//! Rotary encodings of positions.

use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Device, Tensor, TensorData};

/// Configuration of [`RotaryEncoding`].
#[derive(Config, Debug)]
pub struct RotaryEncodingConfig {
    /// The number of positions in the table.
    pub max_sequence_length: usize,
    /// The size of the vectors (of one head); even.
    pub d_model: usize,
    /// The base of the wavelengths. Default: 10,000.
    #[config(default = 10000.0)]
    pub theta: f32,
}

/// Rotates neighbouring pairs of elements by an angle that grows with the position.
///
/// Su et al. 2021, [arXiv:2104.09864](https://arxiv.org/abs/2104.09864). Element `2i` and `2i + 1` at position `p` are
/// rotated by `p / theta^(2i / d_model)`.
///
/// ```
/// use kiln_nn::RotaryEncodingConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let rope = RotaryEncodingConfig::new(16, 4).init(&device);
/// let queries = Tensor::<4>::ones([1, 2, 8, 4], &device);
/// assert_eq!(rope.forward(queries).dims(), [1, 2, 8, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct RotaryEncoding {
    /// Cosine and sine for each element, `[max_sequence_length, d_model, 2]`.
    pub freq_complex: Tensor<3>,
    /// The rotation a position, for each pair of elements: `[d_model / 2]`.
    pub theta: Tensor<1>,
    start_offset: usize,
}

impl RotaryEncodingConfig {
    /// The layer, with its table on `device`.
    ///
    /// # Panics
    ///
    /// When `d_model` is odd or theta not positive.
    #[track_caller]
    pub fn init(&self, device: &Device) -> RotaryEncoding {
        self.init_with_frequency_scaling(|frequencies| frequencies, device)
    }

    /// The same with the rotations a position `[d_model / 2]` changed by `scaling`, as for longer contexts.
    ///
    /// # Panics
    ///
    /// When `d_model` is odd or theta not positive.
    #[track_caller]
    pub fn init_with_frequency_scaling(&self, scaling: impl Fn(Tensor<1>) -> Tensor<1>, device: &Device) -> RotaryEncoding {
        assert!(self.d_model.is_multiple_of(2), "rotary encoding: d_model must be even, got {}", self.d_model);
        assert!(self.theta > 0.0, "rotary encoding: theta must be positive, got {}", self.theta);
        let step = libm::log(f64::from(self.theta)) / self.d_model as f64;
        let frequencies: Vec<f32> = (0..self.d_model).step_by(2).map(|element| libm::exp(-step * element as f64) as f32).collect();
        let data = TensorData::new(frequencies, [self.d_model / 2]);
        let theta = scaling(Tensor::from_data(data, device));
        RotaryEncoding { freq_complex: table(&theta, 0, self.max_sequence_length), theta, start_offset: 0 }
    }
}

/// Cosine and sine of positions `start..start + length`. The angles are worked out in double precision: at a long
/// position their f32 product would be off by more than a thousandth.
fn table(theta: &Tensor<1>, start: usize, length: usize) -> Tensor<3> {
    let frequencies: Vec<f64> = theta.to_data().iter::<f64>().collect();
    let mut values = Vec::with_capacity(length * frequencies.len() * 4);
    for position in start..start + length {
        for frequency in &frequencies {
            let angle = position as f64 * frequency;
            let (sin, cos) = (libm::sin(angle) as f32, libm::cos(angle) as f32);
            values.extend([cos, sin, cos, sin]);
        }
    }
    let shape = [length, frequencies.len() * 2, 2];
    Tensor::from_data(TensorData::new(values, shape), &theta.device())
}

impl RotaryEncoding {
    /// Rotates `[.., length, d_model]`, beginning at the table's first position.
    ///
    /// # Panics
    ///
    /// When the sequence is longer than the table, or the vectors have another size.
    #[track_caller]
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.apply(x, 0)
    }

    /// Rotates `[.., length, d_model]`, beginning `start` positions after the table's first.
    ///
    /// # Panics
    ///
    /// When positions are beyond the table, the vectors have another size, or the rank is below two.
    #[track_caller]
    pub fn apply<const D: usize>(&self, x: Tensor<D>, start: usize) -> Tensor<D> {
        assert!(D >= 2, "rotary encoding: needs rank 2 or more, got {D}");
        let shape = x.dims();
        let (length, d_model) = (shape[D - 2], shape[D - 1]);
        let [longest, size, _] = self.freq_complex.dims();
        assert!(d_model == size, "rotary encoding: the vectors have size {d_model}, the table {size}");
        assert!(start + length <= longest, "rotary encoding: positions {start}..{} are beyond the table's {longest}", start + length);
        let rows = self.freq_complex.clone().narrow(0, start, length).cast(x.dtype());
        let cos = rows.clone().narrow(2, 0, 1).reshape([1, length, d_model]);
        let sin = rows.narrow(2, 1, 1).reshape([1, length, d_model]);
        let batch = shape[..D - 2].iter().product::<usize>();
        // The pair (a, b) becomes (a cos - b sin, b cos + a sin): swap each pair, negate its first.
        let pairs = x.clone().reshape([batch, length, d_model / 2, 2]);
        let first = pairs.clone().narrow(3, 0, 1);
        let second = pairs.narrow(3, 1, 1);
        let swapped = Tensor::cat(alloc::vec![second.neg(), first], 3);
        let x = x.reshape([batch, length, d_model]);
        let swapped = swapped.reshape([batch, length, d_model]);
        (x * cos + swapped * sin).reshape(shape)
    }

    /// Makes the table begin at position `start`, for decoding beyond its length.
    pub fn shift(&mut self, start: usize) {
        if start != self.start_offset {
            let [length, _, _] = self.freq_complex.dims();
            self.freq_complex = table(&self.theta, start, length);
            self.start_offset = start;
        }
    }

    /// Makes the table begin at position zero again.
    pub fn reset(&mut self) {
        self.shift(0);
    }
}

inline_display!(RotaryEncoding, layer, content => {
    let [max_sequence_length, d_model, _] = layer.freq_complex.dims();
    content
        .add("d_model", &d_model)
        .add("max_sequence_length", &max_sequence_length)
});
