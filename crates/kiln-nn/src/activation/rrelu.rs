//! The rectified linear unit with a random slope below zero.

use kiln_module::config::Config;
use kiln_module::module::{Flag, Module, Param};
use kiln_tensor::{Distribution, Tensor, activation};

/// Configuration of [`RRelu`].
#[derive(Config, Debug)]
pub struct RReluConfig {
    /// The least slope. Default: 1/8.
    #[config(default = 0.125)]
    pub lower: f64,
    /// The greatest slope. Default: 1/3.
    #[config(default = 1.0 / 3.0)]
    pub upper: f64,
}

/// `x` for positive `x`, else `a · x`: while training, `a` is drawn for each element, uniformly between the bounds;
/// otherwise it is their mean.
///
/// Xu et al. 2015, [arXiv:1505.00853](https://arxiv.org/abs/1505.00853).
///
/// ```
/// use kiln_nn::activation::RReluConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let rrelu = RReluConfig::new().with_lower(0.1).with_upper(0.3).init();
/// let input = Tensor::<1>::from_floats([-1.0], &Device::default());
/// let output: f32 = rrelu.forward(input).into_scalar();
/// assert!((output + 0.2).abs() < 1e-6);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct RRelu {
    /// The least slope.
    pub lower: f64,
    /// The greatest slope.
    pub upper: f64,
    /// On while training.
    pub training: Param<Flag>,
}

impl RReluConfig {
    /// The activation.
    ///
    /// # Panics
    ///
    /// When the lower bound is above the upper.
    #[track_caller]
    pub fn init(&self) -> RRelu {
        assert!(self.lower <= self.upper, "rrelu: the lower bound {} is above the upper {}", self.lower, self.upper);
        RRelu { lower: self.lower, upper: self.upper, training: Param::from_bool(true) }
    }
}

impl RRelu {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let trains = self.training.is_enabled() && input.is_autodiff();
        if !trains || self.lower == self.upper {
            return activation::leaky_relu(input, f64::midpoint(self.lower, self.upper));
        }
        let slopes = input.random_like(Distribution::Uniform(self.lower, self.upper));
        let below = input.clone().lower_elem(0.0);
        input.clone().mask_where(below, input * slopes)
    }
}

inline_display!(RRelu, layer, content => content
    .add("lower", &layer.lower)
    .add("upper", &layer.upper));
