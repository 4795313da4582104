//! The scaled exponential linear unit.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `1.0507 · x` for positive `x`, else `1.7581 · (eˣ - 1)`. Klambauer et al. 2017, [arXiv:1706.02515](https://arxiv.org/abs/1706.02515).
///
/// ```
/// use kiln_nn::activation::Selu;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = Selu::new().forward(input).into_scalar();
/// assert!((output - 1.050_701).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct Selu;

impl Selu {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::selu(input)
    }
}
