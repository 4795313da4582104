//! The affine layer.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::{Device, Tensor, module};

use crate::initializer::default_initializer;

/// Configuration of a [`Linear`] layer.
#[derive(Config, Debug)]
pub struct LinearConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the output features.
    pub d_output: usize,
    /// Whether a bias is added. Default: true.
    #[config(default = true)]
    pub bias: bool,
    /// How weight and bias start. Default: uniform in `±1 / √d_input`.
    #[config(default = default_initializer())]
    pub initializer: Initializer,
    /// How the weight is recorded. Default: by row.
    #[config(default = LinearLayout::Row)]
    pub layout: LinearLayout,
}

/// How a record holds the weight of a [`Linear`] layer. In memory it is always `[d_input, d_output]`.
#[derive(Config, Debug, Copy)]
pub enum LinearLayout {
    /// As `[d_input, d_output]`.
    Row,
    /// As `[d_output, d_input]`.
    Col,
}

/// `y = x · W + b`, applied to the last axis.
///
/// ```
/// use kiln_nn::LinearConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let linear = LinearConfig::new(3, 2).init(&device);
/// let output = linear.forward(Tensor::<2>::ones([4, 3], &device));
/// assert_eq!(output.dims(), [4, 2]);
/// assert_eq!(linear.to_string(), "Linear {d_input: 3, d_output: 2, bias: true, params: 8}");
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Linear {
    /// The weight, `[d_input, d_output]`.
    pub weight: Param<Tensor<2>>,
    /// The bias, `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
}

impl LinearConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> Linear {
        let (fan_in, fan_out) = (Some(self.d_input), Some(self.d_output));
        let shape = [self.d_input, self.d_output];
        let weight = self.initializer.init_with(shape, fan_in, fan_out, device);
        let weight = match self.layout {
            LinearLayout::Row => weight,
            LinearLayout::Col => weight.save_mapper(Tensor::transpose).load_mapper(Tensor::transpose),
        };
        let bias = self.bias.then(|| self.initializer.init_with([self.d_output], fan_in, fan_out, device));
        Linear { weight, bias }
    }
}

impl Linear {
    /// Maps `[.., d_input]` to `[.., d_output]`.
    ///
    /// # Panics
    ///
    /// When the last axis of `input` is not `d_input`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let bias = self.bias.as_ref().map(Param::val);
        module::linear(input, self.weight.val(), bias)
    }
}

inline_display!(Linear, layer, content => {
    let [d_input, d_output] = layer.weight.lazy_shape().dims();
    content
        .add("d_input", &d_input)
        .add("d_output", &d_output)
        .add("bias", &layer.bias.is_some())
});
