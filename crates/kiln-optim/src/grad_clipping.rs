//! Bounds on gradients.

use kiln_module::config::Config;
use kiln_tensor::Tensor;

use crate::number::exact;

/// Configuration of [`GradientClipping`].
#[derive(Config, Debug)]
pub enum GradientClippingConfig {
    /// Each element within `±value`.
    Value(f32),
    /// The norm of each parameter's gradient at most this.
    Norm(f32),
    /// The norm of all gradients together at most this, as PyTorch's `clip_grad_norm_`.
    GlobalNorm(f32),
}

impl GradientClippingConfig {
    /// The clipping.
    pub fn init(&self) -> GradientClipping {
        match self {
            Self::Value(value) => GradientClipping::Value(*value),
            Self::Norm(norm) => GradientClipping::Norm(*norm),
            Self::GlobalNorm(norm) => GradientClipping::GlobalNorm(*norm),
        }
    }
}

/// Keeps gradients within bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum GradientClipping {
    /// Each element within `±value`.
    Value(f32),
    /// The norm of each parameter's gradient at most this.
    Norm(f32),
    /// The norm of all gradients together at most this.
    GlobalNorm(f32),
}

/// Added to a norm that is divided by.
const SMALL: f64 = 1e-6;

impl GradientClipping {
    /// The clipped gradient. A gradient on its own has no neighbours, so the global norm is its own.
    ///
    /// ```
    /// use kiln_optim::grad_clipping::GradientClippingConfig;
    /// use kiln_tensor::{Device, Tensor};
    ///
    /// let clipping = GradientClippingConfig::Norm(1.0).init();
    /// let gradient = Tensor::<1>::from_floats([3.0, 4.0], &Device::default());
    /// let norm: f32 = clipping.clip_gradient(gradient).square().sum().sqrt().into_scalar();
    /// assert!((norm - 1.0).abs() < 1e-5);
    /// ```
    pub fn clip_gradient<const D: usize>(&self, grad: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Value(value) => grad.clamp(-exact(*value), exact(*value)),
            Self::Norm(limit) | Self::GlobalNorm(limit) => {
                let factor = factor(grad.clone().square().sum(), *limit);
                grad * factor.unsqueeze()
            }
        }
    }
}

/// What gradients whose squares sum to `squares` are multiplied by to have at most the norm `limit`.
pub(crate) fn factor(squares: Tensor<1>, limit: f32) -> Tensor<1> {
    ((squares.sqrt() + SMALL).recip() * exact(limit)).clamp_max(1.0)
}
