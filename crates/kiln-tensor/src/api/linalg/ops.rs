//! `LinalgOps`: the factorisations that code over a backend may call.

use super::factor::singular_values;
#[cfg(feature = "cpu")]
use crate::backend::Flex;
use crate::backend::{Autodiff, Backend, CheckpointStrategy, Dispatch, FloatTensor, Primitive};

/// Linear algebra on the primitives of a backend.
///
/// ```
/// use kiln_tensor::backend::{Backend, Dispatch};
/// use kiln_tensor::linalg::LinalgOps;
/// use kiln_tensor::{Device, Tensor};
///
/// let a = Tensor::<2>::from_data([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]], &Device::default());
/// let (u, s, vt) = Dispatch::svd(a.clone().try_into_primitive::<Dispatch>().unwrap(), 16, false);
/// let (u, s, vt) = (Tensor::<2>::from_primitive::<Dispatch>(u), Tensor::<1>::from_primitive::<Dispatch>(s), Tensor::from_primitive::<Dispatch>(vt));
/// assert_eq!(s.clone().try_to_vec_as::<f32>().unwrap(), [4.0, 3.0]);
/// assert!((u * s.unsqueeze()).matmul(vt).all_close(a, None, None));
/// ```
pub trait LinalgOps: Backend {
    /// The singular value decomposition of matrices `[.., m, n]`, reduced: `U` `[.., m, k]`, the singular values `[.., k]` in descending order, `Vᵀ` `[.., k, n]`, with
    /// `k = min(m, n)`. At most `sweeps` sweeps of rotations are made. Gradients flow where the primitive is tracked and the singular values are distinct.
    ///
    /// `swap` says that the matrices are wider than high and that working on their transposes pays. The decomposition finds that out by itself, so the results, always those of
    /// `tensor` as it is, don't depend on it.
    ///
    /// # Panics
    /// When the rank is below 2.
    #[track_caller]
    fn svd(tensor: FloatTensor<Self>, sweeps: usize, swap: bool) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let _ = swap;
        let (u, s, vt) = singular_values(&tensor.into_raw(), sweeps);
        (FloatTensor::<Self>::from_raw(u), FloatTensor::<Self>::from_raw(s), FloatTensor::<Self>::from_raw(vt))
    }
}

impl LinalgOps for Dispatch {}
#[cfg(feature = "cpu")]
impl LinalgOps for Flex {}
impl<B: LinalgOps, C: CheckpointStrategy> LinalgOps for Autodiff<B, C> {}
