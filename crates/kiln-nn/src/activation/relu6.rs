//! The rectified linear unit with an upper bound.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `min(max(x, 0), 6)`.
///
/// ```
/// use kiln_nn::activation::Relu6;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([8.0], &Device::default());
/// let output: f32 = Relu6::new().forward(input).into_scalar();
/// assert!((output - 6.0).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct Relu6;

impl Relu6 {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::relu6(input)
    }
}
