//! Tensors from nothing: constants, scalars, counters.
use kiln_ir::{DType, Elementwise, Op};

use super::{RawTensor, arg, constant, emit_on};
use crate::trace::Operand;
use crate::{Device, Scalar};

impl RawTensor {
    /// Every element a run-time scalar: its value never makes a new program.
    #[track_caller]
    pub fn full(device: &Device, dims: &[usize], dtype: DType, value: Scalar) -> RawTensor {
        emit_on(device, Op::Expand, &[arg(dtype, value)], dims, dtype)
    }

    /// Every element a structural constant, such as 0 or 1, that the compiler may simplify with.
    #[track_caller]
    pub fn constant(device: &Device, dims: &[usize], dtype: DType, value: f64) -> RawTensor {
        emit_on(device, Op::Expand, &[constant(dtype, value)], dims, dtype)
    }

    /// Zeros (false).
    #[track_caller]
    pub fn zeros(device: &Device, dims: &[usize], dtype: DType) -> RawTensor {
        Self::constant(device, dims, dtype, 0.0)
    }

    /// Ones (true).
    #[track_caller]
    pub fn ones(device: &Device, dims: &[usize], dtype: DType) -> RawTensor {
        Self::constant(device, dims, dtype, 1.0)
    }

    /// `0, 1, 2, ...` along `axis`, constant along the others. Number dtypes.
    #[track_caller]
    pub fn iota(device: &Device, dims: &[usize], dtype: DType, axis: usize) -> RawTensor {
        if axis >= dims.len() || dtype == DType::Bool {
            panic!("iota: axis {axis} of {dtype}{dims:?}");
        }
        emit_on(device, Op::Iota { axis }, &[], dims, dtype)
    }

    /// `start, start + step, ...`: `n` integers.
    #[track_caller]
    pub fn arange(device: &Device, start: i64, step: i64, n: usize, dtype: DType) -> RawTensor {
        let mut x = Self::iota(device, &[n], dtype, 0);
        if step != 1 {
            x = x.with_constant(Elementwise::Mul, step as f64);
        }
        if start != 0 { x.add_scalar(Scalar::Int(start)) } else { x }
    }

    /// The identity matrix.
    #[track_caller]
    pub fn eye(device: &Device, n: usize, dtype: DType) -> RawTensor {
        Self::diagonal(device, [n, n], 0, Elementwise::Eq).cast(dtype)
    }

    /// Over the last two axes of `dims`, whether `column - row` compares to `offset` by `op`.
    #[track_caller]
    pub(crate) fn diagonal(device: &Device, dims: [usize; 2], offset: i64, op: Elementwise) -> RawTensor {
        let row = Self::iota(device, &dims, DType::I64, 0);
        let column = Self::iota(device, &dims, DType::I64, 1);
        column.sub(&row).with_scalar(op, Scalar::Int(offset))
    }

    /// Over `dims`, whether `column - row` of the last two axes is less than `offset`: what `triu` masks.
    #[track_caller]
    pub fn below_diagonal(device: &Device, dims: &[usize], offset: i64) -> RawTensor {
        Self::matrix_mask(device, dims, offset, Elementwise::Lt)
    }

    /// Over `dims`, whether `column - row` of the last two axes is greater than `offset`: what `tril` masks.
    #[track_caller]
    pub fn above_diagonal(device: &Device, dims: &[usize], offset: i64) -> RawTensor {
        Self::matrix_mask(device, dims, offset, Elementwise::Gt)
    }

    /// Over `dims`, whether `column - row` of the last two axes differs from `offset`.
    #[track_caller]
    pub fn off_diagonal(device: &Device, dims: &[usize], offset: i64) -> RawTensor {
        Self::matrix_mask(device, dims, offset, Elementwise::Ne)
    }

    #[track_caller]
    fn matrix_mask(device: &Device, dims: &[usize], offset: i64, op: Elementwise) -> RawTensor {
        let r = dims.len();
        if r < 2 {
            panic!("triangle: needs at least two axes: {dims:?}");
        }
        Self::diagonal(device, [dims[r - 2], dims[r - 1]], offset, op).expand(dims)
    }

    /// A scalar tensor of shape `[]` from an operand: how a run-time scalar is read where an op needs a tensor.
    pub(crate) fn of_operand(device: &Device, operand: Operand<'_>, dtype: DType) -> RawTensor {
        emit_on(device, Op::Expand, &[operand], &[], dtype)
    }
}
