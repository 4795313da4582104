//! Pulls like vectors together and pushes unlike ones apart, by their angle.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Int, Tensor};

use super::Reduction;
use crate::cosine_similarity::cosine_similarity;

/// Configuration of a [`CosineEmbeddingLoss`].
#[derive(Config, Debug)]
pub struct CosineEmbeddingLossConfig {
    /// The similarity that unlike vectors may have. Default: 0.
    #[config(default = 0.0)]
    pub margin: f32,
    /// How the losses become one number. Default: their mean.
    #[config(default = Reduction::Mean)]
    pub reduction: Reduction,
}

/// `1 - cos(x₁, x₂)` for target 1, `max(cos(x₁, x₂) - margin, 0)` for target -1.
///
/// ```
/// use kiln_nn::loss::CosineEmbeddingLossConfig;
/// use kiln_tensor::{Device, Int, Tensor};
///
/// let device = Device::default();
/// let loss = CosineEmbeddingLossConfig::new().init();
/// let x = Tensor::<2>::from_floats([[1.0, 0.0]], &device);
/// let y = Tensor::<2>::from_floats([[0.0, 1.0]], &device);
/// let target = Tensor::<1, Int>::from_ints([1], &device);
/// assert_eq!(loss.forward(x, y, target).into_scalar::<f32>(), 1.0);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct CosineEmbeddingLoss {
    /// The similarity that unlike vectors may have.
    pub margin: f32,
    /// How the losses become one number.
    #[module(skip)]
    pub reduction: Reduction,
}

impl CosineEmbeddingLossConfig {
    /// The loss.
    pub fn init(&self) -> CosineEmbeddingLoss {
        CosineEmbeddingLoss { margin: self.margin, reduction: self.reduction.clone() }
    }
}

impl Default for CosineEmbeddingLoss {
    fn default() -> Self {
        Self::new()
    }
}

impl CosineEmbeddingLoss {
    /// The loss with its default settings.
    #[must_use]
    pub fn new() -> Self {
        CosineEmbeddingLossConfig::new().init()
    }

    /// The reduced loss `[1]` of vectors `[batch, size]` with targets `[batch]`, each 1 or -1.
    #[track_caller]
    pub fn forward(&self, input1: Tensor<2>, input2: Tensor<2>, target: Tensor<1, Int>) -> Tensor<1> {
        self.reduction.apply(self.forward_no_reduction(input1, input2, target))
    }

    /// The loss of each pair, `[batch]`.
    #[track_caller]
    pub fn forward_no_reduction(&self, input1: Tensor<2>, input2: Tensor<2>, target: Tensor<1, Int>) -> Tensor<1> {
        let similarity = cosine_similarity(input1, input2, 1, 1e-8);
        let alike = target.greater_elem(0);
        let apart = (similarity.clone() - f64::from(self.margin)).clamp_min(0.0);
        apart.mask_where(alike, 1.0 - similarity)
    }
}

inline_display!(CosineEmbeddingLoss, loss, content => content
    .add("margin", &loss.margin)
    .add_debug_attribute("reduction", &loss.reduction));
