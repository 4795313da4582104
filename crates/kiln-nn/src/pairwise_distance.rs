//! The distance between vectors.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

/// Configuration of [`PairwiseDistance`].
#[derive(Config, Debug)]
pub struct PairwiseDistanceConfig {
    /// The power of the norm; infinite for the largest difference. Default: 2.
    #[config(default = 2.0)]
    pub p: f64,
    /// Added to each difference, so that the gradient is finite at equal vectors. Default: 1e-6.
    #[config(default = 1e-6)]
    pub eps: f64,
}

/// `‖x₁ - x₂ + eps‖ₚ` for each pair of rows.
///
/// ```
/// use kiln_nn::PairwiseDistanceConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let distance = PairwiseDistanceConfig::new().init();
/// let x1 = Tensor::<2>::from_floats([[3.0, 4.0]], &device);
/// let x2 = Tensor::<2>::zeros([1, 2], &device);
/// assert!((distance.forward(x1, x2).into_scalar::<f32>() - 5.0).abs() < 1e-4);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct PairwiseDistance {
    /// The power of the norm.
    pub p: f64,
    /// Added to each difference.
    pub eps: f64,
}

impl PairwiseDistanceConfig {
    /// The distance.
    ///
    /// # Panics
    ///
    /// When the power is not positive.
    #[track_caller]
    pub fn init(&self) -> PairwiseDistance {
        assert!(self.p > 0.0, "pairwise distance: the power must be positive, got {}", self.p);
        PairwiseDistance { p: self.p, eps: self.eps }
    }
}

impl PairwiseDistance {
    /// The distances of the rows of `x1` and `x2`, both `[batch, features]`: `[batch]`.
    #[track_caller]
    pub fn forward(&self, x1: Tensor<2>, x2: Tensor<2>) -> Tensor<1> {
        distance(x1, x2, self.p, self.eps)
    }
}

pub(crate) fn distance(x1: Tensor<2>, x2: Tensor<2>, p: f64, eps: f64) -> Tensor<1> {
    let difference = x1 - x2 + eps;
    let distances = if p == 1.0 {
        difference.abs().sum_dim(1)
    } else if p == 2.0 {
        difference.square().sum_dim(1).sqrt()
    } else if p.is_infinite() {
        difference.abs().max_dim(1)
    } else {
        difference.abs().powf_scalar(p).sum_dim(1).powf_scalar(1.0 / p)
    };
    distances.squeeze_dim(1)
}

inline_display!(PairwiseDistance, layer, content => content
    .add("p", &layer.p)
    .add("eps", &layer.eps));
