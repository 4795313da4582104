//! Pools over the trailing axes.
use kiln_ir::Op;
use kiln_ir::op::PoolAttrs;

use super::{RawTensor, apply, apply_as, apply_results};
use crate::trace::Operand;

/// Options of a pool, one entry per spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions<'a> {
    /// Window sizes.
    pub kernel: &'a [usize],
    /// Distance between windows.
    pub stride: &'a [usize],
    /// Distance between window elements.
    pub dilation: &'a [usize],
    /// Padding before and after.
    pub padding: &'a [(usize, usize)],
    /// Whether padding counts in a mean's denominator.
    pub count_include_pad: bool,
    /// Whether the output size rounds up.
    pub ceil_mode: bool,
}

impl PoolOptions<'_> {
    #[track_caller]
    fn attrs(&self, op: &str, x: &RawTensor) -> PoolAttrs {
        let n = x.rank().saturating_sub(2);
        if n == 0 || [self.kernel.len(), self.stride.len(), self.dilation.len(), self.padding.len()] != [n; 4] {
            panic!("{op}: options for {} spatial axes, input {:?}", self.kernel.len(), x.dims());
        }
        PoolAttrs {
            kernel: self.kernel.into(),
            stride: self.stride.into(),
            dilation: self.dilation.into(),
            padding: self.padding.into(),
            count_include_pad: self.count_include_pad,
            ceil_mode: self.ceil_mode,
        }
    }
}

impl RawTensor {
    /// Maximum over windows of `x [n, c, spatial...]`.
    #[track_caller]
    pub fn max_pool(&self, o: &PoolOptions<'_>) -> RawTensor {
        self.max_pool_with_indices(o).0
    }

    /// Maximum over windows, and its flat index in the input plane (`I64`).
    #[track_caller]
    pub fn max_pool_with_indices(&self, o: &PoolOptions<'_>) -> (RawTensor, RawTensor) {
        let [values, indices] = apply_results(Op::MaxPool(o.attrs("max_pool", self)), &[Operand::Tensor(self)]);
        (values, indices)
    }

    /// Mean over windows of `x [n, c, spatial...]`.
    #[track_caller]
    pub fn avg_pool(&self, o: &PoolOptions<'_>) -> RawTensor {
        apply(Op::AvgPool(o.attrs("avg_pool", self)), &[Operand::Tensor(self)])
    }

    /// Input gradient of [`RawTensor::max_pool`] of an input of sizes `dims`: `self` is the output's gradient.
    #[track_caller]
    pub fn max_pool_backward(&self, indices: &RawTensor, dims: &[usize], o: &PoolOptions<'_>) -> RawTensor {
        let attrs = o.attrs("max_pool_backward", self);
        apply_as(Op::MaxPoolGrad(attrs), &[Operand::Tensor(self), Operand::Tensor(indices)], dims, self.dtype())
    }

    /// Input gradient of [`RawTensor::avg_pool`] of an input of sizes `dims`: `self` is the output's gradient.
    #[track_caller]
    pub fn avg_pool_backward(&self, dims: &[usize], o: &PoolOptions<'_>) -> RawTensor {
        let attrs = o.attrs("avg_pool_backward", self);
        apply_as(Op::AvgPoolGrad(attrs), &[Operand::Tensor(self)], dims, self.dtype())
    }
}
