//! Pulls like pairs together and pushes unlike ones apart, by their distance.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

use super::Reduction;

/// Configuration of a [`HingeEmbeddingLoss`].
#[derive(Config, Debug)]
pub struct HingeEmbeddingLossConfig {
    /// The distance that unlike pairs should have. Default: 1.
    #[config(default = 1.0)]
    pub margin: f64,
}

/// `x` for target 1, `max(margin - x, 0)` for target -1, where `x` is a distance.
///
/// ```
/// use kiln_nn::loss::{HingeEmbeddingLossConfig, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = HingeEmbeddingLossConfig::new().init();
/// let x = Tensor::<1>::from_floats([0.5, 0.25], &device);
/// let y = Tensor::<1>::from_floats([1.0, -1.0], &device);
/// let value: f32 = loss.forward(x, y, Reduction::Mean).into_scalar();
/// assert!((value - 0.625).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct HingeEmbeddingLoss {
    /// The distance that unlike pairs should have.
    pub margin: f64,
}

impl HingeEmbeddingLossConfig {
    /// The loss.
    pub fn init(&self) -> HingeEmbeddingLoss {
        HingeEmbeddingLoss { margin: self.margin }
    }
}

impl HingeEmbeddingLoss {
    /// The reduced loss, `[1]`, of distances for targets (1 or -1) of the same shape.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>, target: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(input, target))
    }

    /// The loss of each element.
    #[track_caller]
    pub fn forward_no_reduction<const D: usize>(&self, input: Tensor<D>, target: Tensor<D>) -> Tensor<D> {
        let unlike = target.lower_elem(0.0);
        let apart = (input.clone().neg() + self.margin).clamp_min(0.0);
        input.mask_where(unlike, apart)
    }
}

inline_display!(HingeEmbeddingLoss, loss, content => content
    .add("margin", &loss.margin));
