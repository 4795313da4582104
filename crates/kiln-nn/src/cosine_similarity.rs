//! The cosine of the angle between vectors.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

/// Configuration of [`CosineSimilarity`].
#[derive(Config, Debug)]
pub struct CosineSimilarityConfig {
    /// The axis the vectors lie along; negative counts from the end. Default: 1.
    #[config(default = 1)]
    pub dim: isize,
    /// The least norm a vector is taken to have. Default: 1e-8.
    #[config(default = 1e-8)]
    pub eps: f64,
}

/// `x₁ · x₂ / (max(‖x₁‖, eps) · max(‖x₂‖, eps))` along an axis.
///
/// ```
/// use kiln_nn::CosineSimilarityConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let similarity = CosineSimilarityConfig::new().init();
/// let x1 = Tensor::<2>::from_floats([[3.0, 4.0]], &device);
/// let x2 = Tensor::<2>::from_floats([[6.0, 8.0]], &device);
/// assert!((similarity.forward(x1, x2).into_scalar::<f32>() - 1.0).abs() < 1e-6);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct CosineSimilarity {
    /// The axis the vectors lie along.
    pub dim: isize,
    /// The least norm a vector is taken to have.
    pub eps: f64,
}

impl CosineSimilarityConfig {
    /// The similarity.
    pub fn init(&self) -> CosineSimilarity {
        CosineSimilarity { dim: self.dim, eps: self.eps }
    }
}

impl CosineSimilarity {
    /// The similarities of the vectors of `x1` and `x2`, which have the same shape.
    #[track_caller]
    pub fn forward(&self, x1: Tensor<2>, x2: Tensor<2>) -> Tensor<1> {
        cosine_similarity(x1, x2, self.dim, self.eps)
    }
}

/// The similarity with `eps` applied to each norm. Clamping the squares keeps the gradient finite at zero vectors.
pub(crate) fn cosine_similarity(x1: Tensor<2>, x2: Tensor<2>, dim: isize, eps: f64) -> Tensor<1> {
    let norm = |x: Tensor<2>| x.square().sum_dim(dim).clamp_min(eps * eps).sqrt();
    let dot = (x1.clone() * x2.clone()).sum_dim(dim);
    (dot / (norm(x1) * norm(x2))).squeeze_dim(dim)
}

inline_display!(CosineSimilarity, layer, content => content
    .add("dim", &layer.dim)
    .add("eps", &layer.eps));
