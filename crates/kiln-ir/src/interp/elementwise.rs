//! Elementwise ops and reductions of scalars, shared by the graph interpreter and the program interpreter.
use super::value::{Scalar, Tensor, cast};
use crate::{DType, Elementwise, ReduceOp, ScanOp, ScatterOp};

/// One table row on scalars. `dtype` is that of the operands (of the selected ones for `where`); the result is not rounded.
pub fn apply(op: Elementwise, dtype: DType, x: &[Scalar]) -> Scalar {
    let row = op.row();
    let at = |k: usize| x.get(k).copied().unwrap_or(Scalar::Int(0));
    if row.arity == 3 {
        return if at(0).int() != 0 { at(1) } else { at(2) };
    }
    if dtype.is_float() {
        let v = (row.float)(at(0).float(), at(1).float(), at(2).float());
        return if op.is_comparison() { Scalar::Int((v != 0.0) as i128) } else { Scalar::Float(v) };
    }
    let v = (row.int)(at(0).int(), at(1).int(), at(2).int());
    // A bool is one bit: its complement is that bit's.
    Scalar::Int(if op.is_comparison() || dtype == DType::Bool { v & 1 } else { dtype.wrap(v) })
}

/// `x op y` of a running or scattered reduction.
fn combine(op: Elementwise, dtype: DType, x: Scalar, y: Scalar) -> Scalar {
    apply(op, dtype, &[x, y])
}

/// One step of a scan.
pub fn scan_step(op: ScanOp, dtype: DType, acc: Scalar, x: Scalar) -> Scalar {
    let op = match op {
        ScanOp::Sum => Elementwise::Add,
        ScanOp::Prod => Elementwise::Mul,
        ScanOp::Max => Elementwise::Max,
        ScanOp::Min => Elementwise::Min,
    };
    combine(op, dtype, acc, x)
}

/// How a scattered value meets the old one.
pub fn scatter_step(op: ScatterOp, dtype: DType, old: Scalar, v: Scalar) -> Scalar {
    let bool_op = |number: Elementwise, truth: Elementwise| if dtype == DType::Bool { truth } else { number };
    match op {
        ScatterOp::Assign => v,
        ScatterOp::Add => combine(bool_op(Elementwise::Add, Elementwise::Or), dtype, old, v),
        ScatterOp::Mul => combine(bool_op(Elementwise::Mul, Elementwise::And), dtype, old, v),
        ScatterOp::Max => combine(bool_op(Elementwise::Max, Elementwise::Or), dtype, old, v),
        ScatterOp::Min => combine(bool_op(Elementwise::Min, Elementwise::And), dtype, old, v),
    }
}

/// A reduction in progress.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    op: ReduceOp,
    dtype: DType,
    acc: Scalar,
    seen: usize,
    best: usize,
}

impl Reduction {
    /// Starts a reduction of elements of `dtype`.
    pub fn new(op: ReduceOp, dtype: DType) -> Self {
        let acc = match op {
            ReduceOp::Prod | ReduceOp::All => cast(Scalar::Int(1), dtype),
            ReduceOp::Sum | ReduceOp::Any | ReduceOp::Max | ReduceOp::Min | ReduceOp::ArgMax | ReduceOp::ArgMin => Scalar::zero(dtype),
        };
        Reduction { op, dtype, acc, seen: 0, best: 0 }
    }

    /// Takes the next element in row-major order of the reduced axes.
    pub fn push(&mut self, x: Scalar) {
        let first = self.seen == 0;
        self.acc = match self.op {
            ReduceOp::Sum => combine(Elementwise::Add, self.dtype, self.acc, x),
            ReduceOp::Prod => combine(Elementwise::Mul, self.dtype, self.acc, x),
            ReduceOp::Any => combine(Elementwise::Or, self.dtype, self.acc, x),
            ReduceOp::All => combine(Elementwise::And, self.dtype, self.acc, x),
            ReduceOp::Max if !first => combine(Elementwise::Max, self.dtype, self.acc, x),
            ReduceOp::Min if !first => combine(Elementwise::Min, self.dtype, self.acc, x),
            ReduceOp::Max | ReduceOp::Min => x,
            ReduceOp::ArgMax | ReduceOp::ArgMin => {
                if first || better(x, self.acc, self.op == ReduceOp::ArgMax) {
                    self.best = self.seen;
                    x
                } else {
                    self.acc
                }
            }
        };
        self.seen += 1;
    }

    /// The result: for `argmax` and `argmin` the position.
    pub fn finish(&self) -> Scalar {
        if self.op.is_arg() { Scalar::Int(self.best as i128) } else { self.acc }
    }
}

/// Whether `x` beats an earlier `best`: NaN beats every number.
pub fn better(x: Scalar, best: Scalar, largest: bool) -> bool {
    match (x, best) {
        (Scalar::Float(x), Scalar::Float(best)) => (x.is_nan() && !best.is_nan()) || if largest { x > best } else { x < best },
        _ => {
            if largest {
                x.int() > best.int()
            } else {
                x.int() < best.int()
            }
        }
    }
}

/// An elementwise op on tensors: operands of shape `[]` are broadcast.
pub fn elementwise(op: Elementwise, x: &[&Tensor], dims: &[usize], dtype: DType) -> Tensor {
    let operand_dtype = x[x.len() - 1].dtype;
    let mut out = Tensor::zeros(dtype, dims);
    for i in 0..out.len() {
        let mut v = [Scalar::Int(0); 3];
        for (v, x) in v.iter_mut().zip(x) {
            *v = x.get(if x.dims.is_empty() { 0 } else { i });
        }
        out.set(i, apply(op, operand_dtype, &v[..x.len()]));
    }
    out
}
