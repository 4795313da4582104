//! The negative log likelihood of a normal distribution.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

use super::Reduction;

/// Configuration of a [`GaussianNLLLoss`].
#[derive(Config, Debug)]
pub struct GaussianNLLLossConfig {
    /// The least variance. Default: 1e-6.
    #[config(default = 1e-6)]
    pub eps: f64,
    /// Whether the constant term is added. Default: false.
    #[config(default = false)]
    pub full: bool,
}

/// `(ln var + (x - y)² / var) / 2` for a predicted mean `x` and variance.
///
/// ```
/// use kiln_nn::loss::{GaussianNLLLossConfig, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = GaussianNLLLossConfig::new().init();
/// let mean = Tensor::<1>::from_floats([1.0], &device);
/// let target = Tensor::<1>::from_floats([3.0], &device);
/// let var = Tensor::<1>::from_floats([1.0], &device);
/// let value: f32 = loss.forward(mean, target, var, Reduction::Mean).into_scalar();
/// assert_eq!(value, 2.0);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct GaussianNLLLoss {
    /// The least variance.
    pub eps: f64,
    /// Whether the constant term is added.
    pub full: bool,
}

impl GaussianNLLLossConfig {
    /// The loss.
    pub fn init(&self) -> GaussianNLLLoss {
        GaussianNLLLoss { eps: self.eps, full: self.full }
    }
}

impl GaussianNLLLoss {
    /// The reduced loss, `[1]`, of means and variances for targets of the same shape.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>, target: Tensor<D>, var: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(input, target, var))
    }

    /// The loss of each element.
    #[track_caller]
    pub fn forward_no_reduction<const D: usize>(&self, input: Tensor<D>, target: Tensor<D>, var: Tensor<D>) -> Tensor<D> {
        let var = var.clamp_min(self.eps);
        let losses = (var.clone().log() + (input - target).square() / var) * 0.5;
        if self.full { losses + 0.5 * libm::log(2.0 * core::f64::consts::PI) } else { losses }
    }
}

inline_display!(GaussianNLLLoss, loss, content => content
    .add("eps", &loss.eps)
    .add("full", &loss.full));
