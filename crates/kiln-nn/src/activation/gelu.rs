//! The Gaussian error linear unit.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `x · Φ(x)` with the normal distribution function Φ, or its approximation by a hyperbolic tangent.
///
/// Hendrycks and Gimpel 2016, [arXiv:1606.08415](https://arxiv.org/abs/1606.08415).
///
/// ```
/// use kiln_nn::activation::Gelu;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = Gelu::new().forward(input).into_scalar();
/// assert!((output - 0.841_344_7).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
#[module(custom_display)]
pub struct Gelu {
    /// Whether the approximation is used.
    pub approximate: bool,
}

impl Gelu {
    /// The exact function.
    #[must_use]
    pub fn new() -> Self {
        Self { approximate: false }
    }

    /// The approximation `x / 2 · (1 + tanh(√(2 / π) · (x + 0.044715 x³)))`.
    #[must_use]
    pub fn new_approximate() -> Self {
        Self { approximate: true }
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        if self.approximate { activation::gelu_approximate(input) } else { activation::gelu(input) }
    }
}

inline_display!(Gelu, layer, content => content.add("approximate", &layer.approximate));
