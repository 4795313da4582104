//! The rectified linear unit.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `max(x, 0)`.
///
/// ```
/// use kiln_nn::activation::Relu;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([-2.0], &Device::default());
/// let output: f32 = Relu::new().forward(input).into_scalar();
/// assert!((output - 0.0).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct Relu;

impl Relu {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::relu(input)
    }
}
