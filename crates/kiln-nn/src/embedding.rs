//! A table of vectors looked up by index.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::{Device, Int, Tensor, module};

/// Configuration of an [`Embedding`].
#[derive(Config, Debug)]
pub struct EmbeddingConfig {
    /// The number of vectors.
    pub n_embedding: usize,
    /// The size of each.
    pub d_model: usize,
    /// How the vectors start. Default: standard normal.
    #[config(default = Initializer::Normal { mean: 0.0, std: 1.0 })]
    pub initializer: Initializer,
}

/// Looks up a vector for each index.
///
/// ```
/// use kiln_nn::EmbeddingConfig;
/// use kiln_tensor::{Device, Int, Tensor};
///
/// let device = Device::default();
/// let embedding = EmbeddingConfig::new(10, 4).init(&device);
/// let tokens = Tensor::<2, Int>::from_ints([[1, 2, 3]], &device);
/// assert_eq!(embedding.forward(tokens).dims(), [1, 3, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Embedding {
    /// The vectors, `[n_embedding, d_model]`.
    pub weight: Param<Tensor<2>>,
}

impl EmbeddingConfig {
    /// An embedding with its table on `device`.
    pub fn init(&self, device: &Device) -> Embedding {
        let shape = [self.n_embedding, self.d_model];
        let (fan_in, fan_out) = (Some(self.n_embedding), Some(self.d_model));
        Embedding { weight: self.initializer.init_with(shape, fan_in, fan_out, device) }
    }
}

impl Embedding {
    /// Maps indices `[batch, length]` to vectors `[batch, length, d_model]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<2, Int>) -> Tensor<3> {
        module::embedding(self.weight.val(), input)
    }
}

inline_display!(Embedding, layer, content => {
    let [n_embedding, d_model] = layer.weight.lazy_shape().dims();
    content.add("n_embedding", &n_embedding).add("d_model", &d_model)
});
