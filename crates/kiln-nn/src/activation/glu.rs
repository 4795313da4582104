//! The gated linear unit.

use kiln_module::module::Module;
use kiln_tensor::{AsIndex, Tensor, activation};

/// `a · σ(b)` for the two halves `a` and `b` of the input along an axis.
///
/// Dauphin et al. 2016, [arXiv:1612.08083](https://arxiv.org/abs/1612.08083).
///
/// ```
/// use kiln_nn::activation::GLU;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<2>::ones([3, 8], &Device::default());
/// assert_eq!(GLU::new(-1).forward(input).dims(), [3, 4]);
/// ```
#[derive(Module, Debug, Default)]
#[module(custom_display)]
pub struct GLU {
    dim: isize,
}

impl GLU {
    /// Halves the axis `dim`; negative counts from the end.
    #[must_use]
    pub fn new(dim: impl AsIndex) -> Self {
        Self { dim: dim.as_index() }
    }

    /// Gates one half of `input` by the other.
    ///
    /// # Panics
    ///
    /// When the size along the axis is odd.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::glu(input, self.dim)
    }
}

inline_display!(GLU, layer, content => content.add("dim", &layer.dim));
