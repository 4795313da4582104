//! The gradient rules: one arm per op, built from ordinary tensor ops.
//!
//! Adding an op to the language asks for two arms here: in [`needs`], what its rule keeps of the forward pass, and in [`gradients`], the rule.
#![deny(clippy::wildcard_enum_match_arm)]
mod contract;
mod elementwise;
mod index;
mod reduce;
mod structure;

pub(super) use elementwise::gradients as row_gradients;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::{DType, Elementwise, Op, ReduceOp, ScanOp, ScatterOp};

use super::Entry;
use super::tape::{Saved, Step};
use crate::device::Context;
use crate::raw::{RawTensor, apply};
use crate::trace::{Operand, ScalarWord};

/// Whether gradients flow through an op at all.
pub(crate) fn is_differentiable(op: &Op) -> bool {
    match op {
        Op::Input(_) | Op::Arg(_) | Op::Const(_) | Op::Iota { .. } | Op::Random(_) | Op::Get(_) | Op::Host(_) => false,
        Op::Elementwise(_)
        | Op::Cast
        | Op::Reshape
        | Op::Permute(_)
        | Op::Expand
        | Op::Slice(_)
        | Op::Window(_)
        | Op::Pad(_)
        | Op::Concat { .. }
        | Op::Update(_)
        | Op::Reduce { .. }
        | Op::Scan { .. }
        | Op::Dot
        | Op::Conv(_)
        | Op::ConvInputGrad(_)
        | Op::ConvWeightGrad(_)
        | Op::MaxPool(_)
        | Op::AvgPool(_)
        | Op::MaxPoolGrad(_)
        | Op::AvgPoolGrad(_)
        | Op::Fold(_)
        | Op::Gather { .. }
        | Op::Scatter { .. }
        | Op::Sort { .. }
        | Op::Attention(_)
        | Op::AttentionGrad(_) => true,
    }
}

/// What a rule keeps of the forward pass.
#[derive(Clone, Copy, Default)]
pub(super) struct Needs {
    /// Bit `i`: the elements of operand `i`.
    pub operands: u32,
    /// The result.
    pub output: bool,
    /// The second result.
    pub extra: bool,
}

impl Needs {
    const NOTHING: Needs = Needs { operands: 0, output: false, extra: false };
    const OUTPUT: Needs = Needs { operands: 0, output: true, extra: false };
    const EXTRA: Needs = Needs { operands: 0, output: false, extra: true };

    const fn operands(mask: u32) -> Needs {
        Needs { operands: mask, output: false, extra: false }
    }

    /// Each of two operands if the other is tracked.
    const fn other(tracked: u32) -> Needs {
        Needs::operands((tracked & 1) << 1 | (tracked >> 1 & 1))
    }

    const fn and_output(self, output: bool) -> Needs {
        Needs { output, ..self }
    }
}

/// What the rule of an op keeps, when the operands of the mask `tracked` want gradients.
pub(super) fn needs(op: &Op, tracked: u32) -> Needs {
    match op {
        Op::Elementwise(e) => elementwise::needs(*e, tracked),
        Op::Input(_)
        | Op::Arg(_)
        | Op::Const(_)
        | Op::Iota { .. }
        | Op::Random(_)
        | Op::Get(_)
        | Op::Host(_)
        | Op::Cast
        | Op::Reshape
        | Op::Permute(_)
        | Op::Expand
        | Op::Slice(_)
        | Op::Window(_)
        | Op::Pad(_)
        | Op::Concat { .. }
        | Op::Update(_)
        | Op::AvgPool(_)
        | Op::AvgPoolGrad(_)
        | Op::Fold(_) => Needs::NOTHING,
        Op::Reduce { op, .. } => match op {
            ReduceOp::Sum | ReduceOp::ArgMax | ReduceOp::ArgMin | ReduceOp::Any | ReduceOp::All => Needs::NOTHING,
            ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min => Needs::operands(1),
        },
        Op::Scan { op, .. } => match op {
            ScanOp::Sum => Needs::NOTHING,
            ScanOp::Prod => Needs::operands(1),
            ScanOp::Max | ScanOp::Min => Needs::operands(1).and_output(true),
        },
        Op::Dot | Op::Conv(_) | Op::ConvInputGrad(_) | Op::ConvWeightGrad(_) => Needs::other(tracked),
        Op::MaxPool(_) | Op::Sort { .. } => Needs::EXTRA,
        Op::MaxPoolGrad(_) | Op::Gather { .. } => Needs::operands(2),
        Op::Scatter { op, .. } => match op {
            ScatterOp::Add | ScatterOp::Assign => Needs::operands(2),
            ScatterOp::Mul => Needs::operands(7),
            ScatterOp::Max | ScatterOp::Min => Needs::operands(7).and_output(true),
        },
        Op::Attention(_) => Needs { operands: u32::MAX, output: true, extra: true },
        Op::AttentionGrad(_) => Needs::operands(u32::MAX),
    }
}

/// What a rule works with.
pub(super) struct Backward<'a> {
    pub step: &'a Step,
    /// Gradient of the result.
    pub dy: &'a RawTensor,
    /// The step's own entry, when gradients are to be tracked.
    pub tracked: Option<&'a Arc<Entry>>,
}

/// A saved operand: a tensor or a scalar.
pub(super) enum Value {
    Tensor(RawTensor),
    Scalar(ScalarWord),
}

impl Value {
    fn operand(&self) -> Operand<'_> {
        match self {
            Value::Tensor(t) => Operand::Tensor(t),
            Value::Scalar(s) => Operand::Scalar(*s),
        }
    }
}

impl Backward<'_> {
    fn context(&self) -> Context {
        if self.tracked.is_some() { self.step.context } else { self.step.context.without_autodiff() }
    }

    /// Whether operand `i` wants a gradient.
    pub fn wants(&self, i: usize) -> bool {
        self.step.parents[i].is_some()
    }

    /// The elements of operand `i`, a tensor that the rule keeps.
    pub fn value(&self, i: usize) -> RawTensor {
        match &self.step.saved[i] {
            Saved::Value(slot) => {
                let tape = self.tracked.and(self.step.parents[i].clone());
                RawTensor { slot: slot.clone(), context: self.context(), tape }
            }
            Saved::Same | Saved::Type(_) | Saved::Scalar(_) => unreachable!("operand {i} is not among what its rule keeps"),
        }
    }

    /// Operand `i`, a tensor that the rule keeps or a scalar.
    pub fn operand(&self, i: usize) -> Value {
        match &self.step.saved[i] {
            Saved::Scalar(s) => Value::Scalar(*s),
            Saved::Value(_) | Saved::Same | Saved::Type(_) => Value::Tensor(self.value(i)),
        }
    }

    /// A scalar operand.
    pub fn scalar(&self, i: usize) -> Operand<'static> {
        match &self.step.saved[i] {
            Saved::Scalar(s) => Operand::Scalar(*s),
            Saved::Value(_) | Saved::Same | Saved::Type(_) => unreachable!("operand {i} is a tensor"),
        }
    }

    /// Sizes of operand `i`.
    pub fn dims(&self, i: usize) -> &[usize] {
        match &self.step.saved[i] {
            Saved::Same => self.dy.dims(),
            Saved::Type(t) => &t.0,
            Saved::Value(slot) => &slot.dims,
            Saved::Scalar(_) => &[],
        }
    }

    /// Dtype of operand `i`.
    pub fn dtype(&self, i: usize) -> DType {
        match &self.step.saved[i] {
            Saved::Same => self.dy.dtype(),
            Saved::Type(t) => t.1,
            Saved::Value(slot) => slot.dtype,
            Saved::Scalar(ScalarWord::Const(dtype, _) | ScalarWord::Arg(dtype, _)) => *dtype,
            Saved::Scalar(ScalarWord::Start(_)) => DType::I64,
        }
    }

    /// The result, which the rule keeps.
    pub fn output(&self) -> RawTensor {
        let slot = self.step.output.clone().expect("the rule keeps its output");
        RawTensor { slot, context: self.context(), tape: self.tracked.cloned() }
    }

    /// The second result, which the rule keeps.
    pub fn extra(&self) -> RawTensor {
        let slot = self.step.extra.clone().expect("the rule keeps its second result");
        RawTensor { slot, context: self.context(), tape: None }
    }

    /// Zeros of the type of operand `i`.
    pub fn zeros(&self, i: usize) -> RawTensor {
        RawTensor::zeros(&self.dy.device().without_autodiff(), self.dims(i), self.dtype(i))
    }
}

/// Applies a row of the table to saved operands.
fn row(op: Elementwise, operands: &[Operand<'_>]) -> RawTensor {
    apply(Op::Elementwise(op), operands)
}

/// The gradients of an op's operands, in their order.
pub(super) fn gradients(op: &Op, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let one = |dx: RawTensor| vec![Some(dx)];
    match op {
        Op::Elementwise(e) => elementwise::gradients(*e, b),
        Op::Cast => one(b.dy.cast(b.dtype(0))),
        Op::Reshape => one(b.dy.reshape(b.dims(0))),
        Op::Permute(perm) => one(structure::permute(perm, b)),
        // The one place where broadcasting is undone.
        Op::Expand => one(b.dy.sum_to(b.dims(0))),
        Op::Slice(axes) => one(structure::slice(axes, b)),
        Op::Window(axes) => one(b.dy.fold(axes, b.dims(0))),
        Op::Fold(axes) => one(b.dy.windows(axes)),
        Op::Pad(pads) => one(structure::pad(pads, b)),
        Op::Concat { axis } => structure::concat(*axis, b),
        Op::Update(axes) => structure::update(axes, b),
        Op::Reduce { op, axes } => one(reduce::reduce(*op, *axes, b)),
        Op::Scan { op, axis } => one(reduce::scan(*op, *axis, b)),
        Op::Dot => contract::dot(b),
        Op::Conv(attrs) => contract::conv(attrs, b),
        Op::ConvInputGrad(attrs) => contract::conv_input_grad(attrs, b),
        Op::ConvWeightGrad(attrs) => contract::conv_weight_grad(attrs, b),
        Op::MaxPool(attrs) => one(contract::max_pool(attrs, b)),
        Op::MaxPoolGrad(_) => vec![Some(contract::max_pool_grad(b)), None],
        Op::AvgPool(attrs) => one(contract::avg_pool(attrs, b)),
        Op::AvgPoolGrad(attrs) => one(contract::avg_pool_grad(attrs, b)),
        Op::Gather { axis } => vec![Some(index::gather(*axis, b)), None],
        Op::Scatter { axis, op } => index::scatter(*axis, *op, b),
        Op::Sort { axis, .. } => one(index::sort(*axis, b)),
        Op::Attention(attrs) => contract::attention(attrs, b),
        Op::Input(_) | Op::Arg(_) | Op::Const(_) | Op::Iota { .. } | Op::Random(_) | Op::Get(_) | Op::Host(_) | Op::AttentionGrad(_) => {
            unreachable!("{} is never on the tape", op.name())
        }
    }
}
