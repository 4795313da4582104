//! The hyperbolic tangent.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `tanh(x)`.
///
/// ```
/// use kiln_nn::activation::Tanh;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = Tanh::new().forward(input).into_scalar();
/// assert!((output - 0.761_594_2).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct Tanh;

impl Tanh {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::tanh(input)
    }
}
