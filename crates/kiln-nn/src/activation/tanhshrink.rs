//! What the hyperbolic tangent takes away.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `x - tanh(x)`.
///
/// ```
/// use kiln_nn::activation::Tanhshrink;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = Tanhshrink::new().forward(input).into_scalar();
/// assert!((output - 0.238_405_8).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct Tanhshrink;

impl Tanhshrink {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::tanhshrink(input)
    }
}
