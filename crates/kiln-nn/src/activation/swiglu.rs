//! A linear layer gated by another through swish.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module};
use kiln_tensor::{Device, Tensor, activation};

use crate::initializer::default_initializer;
use crate::{Linear, LinearConfig, LinearLayout};

/// Configuration of [`SwiGlu`].
#[derive(Config, Debug)]
pub struct SwiGluConfig {
    /// The size of the input features.
    pub d_input: usize,
    /// The size of the output features.
    pub d_output: usize,
    /// Whether the linear layers have a bias. Default: false.
    #[config(default = false)]
    pub bias: bool,
    /// How the linear layers start. Default: uniform in `±1 / √d_input`.
    #[config(default = default_initializer())]
    pub initializer: Initializer,
    /// How the weights are recorded. Default: by row.
    #[config(default = LinearLayout::Row)]
    pub layout: LinearLayout,
}

/// `swish(x · W) · (x · V)`, elementwise.
///
/// Shazeer 2020, [arXiv:2002.05202](https://arxiv.org/abs/2002.05202).
///
/// ```
/// use kiln_nn::activation::SwiGluConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let swiglu = SwiGluConfig::new(3, 5).init(&device);
/// assert_eq!(swiglu.forward(Tensor::<2>::ones([4, 3], &device)).dims(), [4, 5]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SwiGlu {
    /// The layer `W`, inside swish.
    pub linear_inner: Linear,
    /// The layer `V`, outside.
    pub linear_outer: Linear,
}

impl SwiGluConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> SwiGlu {
        let linear = || {
            LinearConfig::new(self.d_input, self.d_output)
                .with_bias(self.bias)
                .with_initializer(self.initializer.clone())
                .with_layout(self.layout)
                .init(device)
        };
        SwiGlu { linear_inner: linear(), linear_outer: linear() }
    }
}

impl SwiGlu {
    /// Maps `[.., d_input]` to `[.., d_output]`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let gate = activation::silu(self.linear_inner.forward(input.clone()));
        gate * self.linear_outer.forward(input)
    }
}

inline_display!(SwiGlu, layer, content => {
    let [d_input, d_output] = layer.linear_inner.weight.lazy_shape().dims();
    content
        .add("d_input", &d_input)
        .add("d_output", &d_output)
        .add("bias", &layer.linear_inner.bias.is_some())
});
