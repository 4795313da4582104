//! Bounds on gradients.

use kiln_module::config::Config;
use kiln_tensor::{DType, FloatDType, Tensor};

use crate::number::exact;

/// Configuration of [`GradientClipping`].
#[derive(Config, Debug)]
pub enum GradientClippingConfig {
    /// Each element within `±value`.
    Value(f32),
    /// The norm of each parameter's gradient at most this.
    Norm(f32),
}

impl GradientClippingConfig {
    /// The clipping.
    pub fn init(&self) -> GradientClipping {
        match self {
            Self::Value(value) => GradientClipping::Value(*value),
            Self::Norm(norm) => GradientClipping::Norm(*norm),
        }
    }
}

/// Keeps the gradient of each parameter within bounds. For a bound on all gradients together see
/// [`ModuleOptimizer::with_global_norm_clipping`](crate::ModuleOptimizer::with_global_norm_clipping).
#[derive(Clone, Debug, PartialEq)]
pub enum GradientClipping {
    /// Each element within `±value`.
    Value(f32),
    /// The norm of each parameter's gradient at most this.
    Norm(f32),
}

/// Added to a norm that is divided by.
const SMALL: f64 = 1e-6;

impl GradientClipping {
    /// The clipped gradient.
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
            Self::Norm(limit) => {
                let factor = factor(squares(grad.clone()).sqrt(), *limit);
                scaled(grad, factor)
            }
        }
    }
}

/// The sum of the squares of a gradient, in single precision for half floats: their squares overflow early.
pub(crate) fn squares<const D: usize>(grad: Tensor<D>) -> Tensor<1> {
    let grad = match grad.dtype() {
        DType::F16 | DType::BF16 => grad.cast(FloatDType::F32),
        _ => grad,
    };
    grad.square().sum()
}

/// What gradients of the given norm are multiplied by to have at most the norm `limit`.
pub(crate) fn factor(norm: Tensor<1>, limit: f32) -> Tensor<1> {
    ((norm + SMALL).recip() * exact(limit)).clamp_max(1.0)
}

/// A gradient times a factor that may be of another element type and on another device.
pub(crate) fn scaled<const D: usize>(grad: Tensor<D>, factor: Tensor<1>) -> Tensor<D> {
    let factor = factor.to_device(&grad.device()).cast(grad.dtype());
    grad * factor.unsqueeze()
}
