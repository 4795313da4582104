//! The layer that does nothing.

use kiln_module::module::Module;
use kiln_tensor::Tensor;

/// Returns its input: a placeholder where a layer is expected.
///
/// ```
/// use kiln_nn::Identity;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::ones([3], &Device::default());
/// assert_eq!(Identity::new().forward(input).dims(), [3]);
/// ```
#[derive(Module, Debug, Default)]
pub struct Identity;

impl Identity {
    /// An identity.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// Returns `input`.
    pub fn forward<const R: usize>(&self, input: Tensor<R>) -> Tensor<R> {
        input
    }
}
