//! The logistic function.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `1 / (1 + e⁻ˣ)`.
///
/// ```
/// use kiln_nn::activation::Sigmoid;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([0.0], &Device::default());
/// let output: f32 = Sigmoid::new().forward(input).into_scalar();
/// assert!((output - 0.5).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct Sigmoid;

impl Sigmoid {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::sigmoid(input)
    }
}
