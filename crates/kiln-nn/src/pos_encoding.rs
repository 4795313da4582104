//! Sinusoidal encodings of positions.

use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Device, Tensor, TensorData};

/// Configuration of [`PositionalEncoding`].
#[derive(Config, Debug)]
pub struct PositionalEncodingConfig {
    /// The longest sequence. Default: 5,000.
    #[config(default = 5_000)]
    pub max_sequence_size: usize,
    /// The size of the vectors; even.
    pub d_model: usize,
    /// The longest wavelength, in units of 2π. Default: 10,000.
    #[config(default = 10_000)]
    pub max_timescale: usize,
}

/// Adds to each position a vector of sines and cosines of different wavelengths.
///
/// Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762).
///
/// ```
/// use kiln_nn::PositionalEncodingConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let encoding = PositionalEncodingConfig::new(4).init(&device);
/// assert_eq!(encoding.forward(Tensor::zeros([1, 3, 4], &device)).dims(), [1, 3, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct PositionalEncoding {
    /// The encodings, `[1, max_sequence_size, d_model]`.
    pub sinusoids: Tensor<3>,
    /// The longest sequence.
    pub max_sequence_size: usize,
    /// The longest wavelength, in units of 2π.
    pub max_timescale: usize,
}

impl PositionalEncodingConfig {
    /// The layer, with its table on `device`.
    ///
    /// # Panics
    ///
    /// When `d_model` is odd.
    #[track_caller]
    pub fn init(&self, device: &Device) -> PositionalEncoding {
        let table = generate_sinusoids(self.max_sequence_size, self.d_model, self.max_timescale, device);
        PositionalEncoding { sinusoids: table.unsqueeze_dim(0), max_sequence_size: self.max_sequence_size, max_timescale: self.max_timescale }
    }
}

impl PositionalEncoding {
    /// Adds the encodings to `[batch, length, d_model]`.
    ///
    /// # Panics
    ///
    /// When the sequence is longer than the table, or the vectors have another size.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<3> {
        let [_, length, d_model] = input.dims();
        let [_, longest, size] = self.sinusoids.dims();
        assert!(length <= longest, "positional encoding: the sequence has length {length}, the table {longest}");
        assert!(d_model == size, "positional encoding: the vectors have size {d_model}, the table {size}");
        let sinusoids = self.sinusoids.clone().narrow(1, 0, length).cast(input.dtype());
        input + sinusoids
    }
}

inline_display!(PositionalEncoding, layer, content => {
    let [_, _, d_model] = layer.sinusoids.dims();
    content
        .add("d_model", &d_model)
        .add("max_sequence_size", &layer.max_sequence_size)
        .add("max_timescale", &layer.max_timescale)
});

/// The encodings of positions `0..length` as `[length, d_model]`: column `2i` is `sin(p / timescale^(2i / d_model))`,
/// column `2i + 1` the cosine.
///
/// # Panics
///
/// When `d_model` is odd.
#[track_caller]
pub fn generate_sinusoids(length: usize, d_model: usize, max_timescale: usize, device: &Device) -> Tensor<2> {
    assert!(d_model.is_multiple_of(2), "positional encoding: d_model must be even, got {d_model}");
    let step = libm::log(max_timescale as f64) / d_model as f64;
    let rates: Vec<f64> = (0..d_model).step_by(2).map(|column| libm::exp(-step * column as f64)).collect();
    let mut values = Vec::with_capacity(length * d_model);
    for position in 0..length {
        for rate in &rates {
            let angle = position as f64 * rate;
            values.push(libm::sin(angle) as f32);
            values.push(libm::cos(angle) as f32);
        }
    }
    Tensor::from_data(TensorData::new(values, [length, d_model]), device)
}
