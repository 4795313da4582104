//! Reductions and running reductions. Reduced axes stay, with size 1.
use kiln_ir::{DType, Elementwise, Op, ReduceOp, ScanOp, dims};

use super::{RawTensor, apply, constant};
use crate::trace::Operand;

impl RawTensor {
    /// The bit mask of a list of axes.
    #[track_caller]
    fn axes(&self, op: ReduceOp, axes: &[usize]) -> u32 {
        axes.iter().fold(0, |mask, a| {
            self.check_axis(op.name(), *a);
            mask | 1 << *a
        })
    }

    /// The bit mask of all axes.
    pub(crate) fn all_axes(&self) -> u32 {
        (1u32 << self.rank()) - 1
    }

    /// Reduces the axes of a bit mask.
    #[track_caller]
    pub(crate) fn reduce(&self, op: ReduceOp, axes: u32) -> RawTensor {
        if axes == 0 && !op.is_arg() {
            return self.clone();
        }
        apply(Op::Reduce { op, axes }, &[Operand::Tensor(self)])
    }

    /// Sum over axes; 0 over nothing.
    #[track_caller]
    pub fn sum(&self, axes: &[usize]) -> RawTensor {
        self.reduce(ReduceOp::Sum, self.axes(ReduceOp::Sum, axes))
    }

    /// Product over axes; 1 over nothing.
    #[track_caller]
    pub fn prod(&self, axes: &[usize]) -> RawTensor {
        self.reduce(ReduceOp::Prod, self.axes(ReduceOp::Prod, axes))
    }

    /// Maximum over axes, NaN if any is NaN. The gradient goes to the first maximum.
    #[track_caller]
    pub fn max(&self, axes: &[usize]) -> RawTensor {
        self.reduce(ReduceOp::Max, self.axes(ReduceOp::Max, axes))
    }

    /// Minimum over axes, NaN if any is NaN. The gradient goes to the first minimum.
    #[track_caller]
    pub fn min(&self, axes: &[usize]) -> RawTensor {
        self.reduce(ReduceOp::Min, self.axes(ReduceOp::Min, axes))
    }

    /// Index (`I64`) of the first NaN, else of the first maximum along an axis.
    #[track_caller]
    pub fn argmax(&self, axis: usize) -> RawTensor {
        self.reduce(ReduceOp::ArgMax, self.axes(ReduceOp::ArgMax, &[axis]))
    }

    /// Index (`I64`) of the first NaN, else of the first minimum along an axis.
    #[track_caller]
    pub fn argmin(&self, axis: usize) -> RawTensor {
        self.reduce(ReduceOp::ArgMin, self.axes(ReduceOp::ArgMin, &[axis]))
    }

    /// Whether any element over axes is true; false over nothing.
    #[track_caller]
    pub fn any(&self, axes: &[usize]) -> RawTensor {
        self.truth().reduce(ReduceOp::Any, self.axes(ReduceOp::Any, axes))
    }

    /// Whether all elements over axes are true; true over nothing.
    #[track_caller]
    pub fn all(&self, axes: &[usize]) -> RawTensor {
        self.truth().reduce(ReduceOp::All, self.axes(ReduceOp::All, axes))
    }

    /// This tensor as bools: whether each element is not 0.
    #[track_caller]
    fn truth(&self) -> RawTensor {
        if self.dtype() == DType::Bool { self.clone() } else { self.with_constant(Elementwise::Ne, 0.0) }
    }

    /// Number of elements that the axes of a mask hold together.
    pub(crate) fn count(&self, axes: u32) -> usize {
        (0..self.rank()).filter(|a| axes >> a & 1 == 1).map(|a| self.dims()[a]).product()
    }

    /// Mean over axes; NaN over nothing for floats. Half floats are summed and divided in f32 and rounded once.
    #[track_caller]
    pub fn mean(&self, axes: &[usize]) -> RawTensor {
        let mask = self.axes(ReduceOp::Sum, axes);
        let n = self.count(mask) as f64;
        let dtype = self.dtype();
        match dtype {
            // The sum alone may lie outside the half format's range.
            DType::F16 | DType::BF16 => self.cast(DType::F32).reduce(ReduceOp::Sum, mask).with_constant(Elementwise::Div, n).cast(dtype),
            _ => self.reduce(ReduceOp::Sum, mask).with_constant(Elementwise::Div, n),
        }
    }

    /// Sum of all elements, of shape `[1; rank]`.
    #[track_caller]
    pub fn sum_all(&self) -> RawTensor {
        self.reduce(ReduceOp::Sum, self.all_axes())
    }

    #[track_caller]
    fn scan(&self, op: ScanOp, axis: usize) -> RawTensor {
        self.check_axis(op.name(), axis);
        apply(Op::Scan { op, axis }, &[Operand::Tensor(self)])
    }

    /// Running sum along an axis.
    #[track_caller]
    pub fn cumsum(&self, axis: usize) -> RawTensor {
        self.scan(ScanOp::Sum, axis)
    }

    /// Running product along an axis.
    #[track_caller]
    pub fn cumprod(&self, axis: usize) -> RawTensor {
        self.scan(ScanOp::Prod, axis)
    }

    /// Running maximum along an axis, NaN from the first NaN on.
    #[track_caller]
    pub fn cummax(&self, axis: usize) -> RawTensor {
        self.scan(ScanOp::Max, axis)
    }

    /// Running minimum along an axis, NaN from the first NaN on.
    #[track_caller]
    pub fn cummin(&self, axis: usize) -> RawTensor {
        self.scan(ScanOp::Min, axis)
    }

    /// Running sum from the end.
    #[track_caller]
    pub(crate) fn cumsum_back(&self, axis: usize) -> RawTensor {
        self.flip(&[axis]).cumsum(axis).flip(&[axis])
    }

    /// Row-major position within the axes of a mask, broadcast to this tensor's sizes (`I64`).
    pub(crate) fn position(&self, axes: u32) -> RawTensor {
        let device = self.device().without_autodiff();
        let mut stride = 1usize;
        let mut total: Option<RawTensor> = None;
        for axis in (0..self.rank()).rev().filter(|a| axes >> a & 1 == 1) {
            let part = RawTensor::iota(&device, self.dims(), Self::INDEX, axis);
            let part = if stride == 1 { part } else { part.with_constant(Elementwise::Mul, stride as f64) };
            total = Some(match total {
                Some(t) => t.add(&part),
                None => part,
            });
            stride *= self.dims()[axis];
        }
        total.unwrap_or_else(|| RawTensor::zeros(&device, self.dims(), Self::INDEX))
    }

    /// Undoes a broadcast: sums to `dims`, whose axes are aligned at the last one.
    #[track_caller]
    pub(crate) fn sum_to(&self, dims: &[usize]) -> RawTensor {
        if self.dims() == dims {
            return self.clone();
        }
        let lead = self.rank() - dims.len();
        let mut axes = (1u32 << lead) - 1;
        for (a, d) in dims.iter().enumerate() {
            if *d == 1 && self.dims()[a + lead] != 1 {
                axes |= 1 << (a + lead);
            }
        }
        self.reduce(ReduceOp::Sum, axes).reshape(dims)
    }

    /// Mean of all elements, of shape `[1; rank]`.
    #[track_caller]
    pub fn mean_all(&self) -> RawTensor {
        let axes: smallvec::SmallVec<[usize; 8]> = (0..self.rank()).collect();
        self.mean(&axes)
    }

    /// Variance over axes in two passes, with denominator `n - correction`; and the mean.
    #[track_caller]
    pub fn var_mean(&self, axes: &[usize], correction: usize) -> (RawTensor, RawTensor) {
        let dtype = self.dtype();
        let half = matches!(dtype, DType::F16 | DType::BF16);
        let x = if half { self.cast(DType::F32) } else { self.clone() };
        let n = dims::numel(x.dims()) / dims::numel(&super::keep_dims(x.dims(), self.axes(ReduceOp::Sum, axes))).max(1);
        let mean = x.mean(axes);
        let squares = x.sub(&mean).square().sum(axes);
        let var = apply(Op::Elementwise(Elementwise::Div), &[Operand::Tensor(&squares), constant(squares.dtype(), n as f64 - correction as f64)]);
        if half { (var.cast(dtype), mean.cast(dtype)) } else { (var, mean) }
    }

    /// Variance over axes with denominator `n - correction`.
    #[track_caller]
    pub fn var(&self, axes: &[usize], correction: usize) -> RawTensor {
        self.var_mean(axes, correction).0
    }
}
