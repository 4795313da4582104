//! The softsign function.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `x / (1 + |x|)`.
///
/// ```
/// use kiln_nn::activation::Softsign;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = Softsign::new().forward(input).into_scalar();
/// assert!((output - 0.5).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct Softsign;

impl Softsign {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::softsign(input)
    }
}
