//! A piecewise approximation of swish.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// `x · min(max(x + 3, 0), 6) / 6`. Howard et al. 2019, [arXiv:1905.02244](https://arxiv.org/abs/1905.02244).
///
/// ```
/// use kiln_nn::activation::HardSwish;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = HardSwish::new().forward(input).into_scalar();
/// assert!((output - 0.666_666_7).abs() < 1e-5);
/// ```
#[derive(Module, Debug, Default)]
pub struct HardSwish;

impl HardSwish {
    /// The activation.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::hard_swish(input)
    }
}
