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
    /// Panics at the caller when a window holds nothing but padding.
    #[track_caller]
    fn check_windows(&self, op: &str, x: &RawTensor) {
        let attrs = self.attrs(op, x);
        for (axis, &size) in x.dims()[2..].iter().enumerate() {
            let (kernel, dilation) = (self.kernel[axis], self.dilation[axis]);
            let (before, after) = self.padding[axis];
            // Windows no wider than the padding, or with holes as wide as the input, are the only ones that may miss it.
            let span = dilation.saturating_mul(kernel.saturating_sub(1));
            if size == 0 || (span >= before.max(after) && dilation <= size) {
                continue;
            }
            let count = if kernel == 0 || self.stride[axis] == 0 { None } else { kiln_ir::infer::pool_size(size, &attrs, axis) };
            for window in 0..count.unwrap_or(0) {
                let start = window * self.stride[axis];
                let inside = |tap: usize| (before..before + size).contains(&(start + tap * dilation));
                if !(0..kernel).any(inside) {
                    panic!(
                        "{op}: window {window} on spatial axis {axis} holds nothing but padding: kernel {:?}, stride {:?}, dilation {:?}, padding {:?}, \
                         input {:?}",
                        self.kernel,
                        self.stride,
                        self.dilation,
                        self.padding,
                        x.dims()
                    );
                }
            }
        }
    }

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
            channels_last: false,
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
    ///
    /// Panics at the caller when a window holds nothing but padding: like an empty axis it has no maximum.
    #[track_caller]
    pub fn max_pool_with_indices(&self, o: &PoolOptions<'_>) -> (RawTensor, RawTensor) {
        o.check_windows("max_pool", self);
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
