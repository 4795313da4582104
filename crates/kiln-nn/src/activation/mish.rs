//! The mish function.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `x · tanh(ln(1 + eˣ))`. Misra 2019, [arXiv:1908.08681](https://arxiv.org/abs/1908.08681).
///
/// ```
/// use kiln_nn::activation::Mish;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = Mish::new().forward(input).into_scalar();
/// assert!((output - 0.865_098_4).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct Mish;

impl Mish {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::mish(input)
    }
}
