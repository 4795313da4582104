//! Elementwise ops: the rows of the table, with broadcasting and scalars.
use kiln_ir::{DType, Dims, Elementwise, Op, dims, table::Gives};

use super::{RawTensor, apply, arg, constant, emit, refuse};
use crate::Scalar;
use crate::autodiff::{self, Keep};
use crate::trace::Operand;

/// The result's dtype of a two-operand row, if it takes operands of these dtypes.
#[inline]
fn pair_dtype(op: Elementwise, lhs: DType, rhs: DType) -> Option<DType> {
    let row = op.row();
    let fits = row.arity == 2 && lhs == rhs && row.accepts.contains(lhs);
    fits.then_some(if row.gives == Gives::Bool { DType::Bool } else { lhs })
}

/// The operand with `dims` as sizes, expanded if it has others.
#[track_caller]
fn broadcast_to(op: &str, x: &RawTensor, dims: &[usize]) -> RawTensor {
    if x.dims() == dims { x.clone() } else { x.expand_for(op, dims) }
}

/// The common sizes of operands. Panics at the caller when there are none.
#[track_caller]
fn common_dims(op: Elementwise, xs: &[&RawTensor]) -> Dims {
    let mut out = Dims::from_slice(xs[0].dims());
    for x in &xs[1..] {
        match dims::broadcast(&out, x.dims()) {
            Some(d) => out = d,
            None => {
                let operands = xs.iter().map(|x| alloc::format!("{:?}", x.dims())).collect::<alloc::vec::Vec<_>>().join(", ");
                panic!("{}: shapes don't broadcast: {operands}", op.name())
            }
        }
    }
    out
}

impl RawTensor {
    /// Applies a one-operand row of the table.
    #[track_caller]
    pub fn unary(&self, op: Elementwise) -> RawTensor {
        apply(Op::Elementwise(op), &[Operand::Tensor(self)])
    }

    /// Applies a two-operand row of the table; the operands are broadcast against each other and must have one dtype.
    #[track_caller]
    pub fn binary(&self, op: Elementwise, rhs: &RawTensor) -> RawTensor {
        let dtype = self.dtype();
        let Some(gives) = pair_dtype(op, dtype, rhs.dtype()) else {
            if self.is_quantized() != rhs.is_quantized() {
                let (lhs, rhs) = (self.computed_with(rhs), rhs.computed_with(self));
                if lhs.dtype() == rhs.dtype() {
                    return lhs.binary(op, &rhs);
                }
            }
            return apply(Op::Elementwise(op), &[Operand::Tensor(self), Operand::Tensor(rhs)]);
        };
        if self.dims() == rhs.dims() {
            return emit(Op::Elementwise(op), &[Operand::Tensor(self), Operand::Tensor(rhs)], self.slot.dims.clone(), gives, false);
        }
        let dims = common_dims(op, &[self, rhs]);
        if self.dims() == &dims[..] {
            let rhs = rhs.expanded(&dims);
            return emit(Op::Elementwise(op), &[Operand::Tensor(self), Operand::Tensor(&rhs)], dims, gives, false);
        }
        let lhs = self.expanded(&dims);
        if rhs.dims() == &dims[..] {
            return emit(Op::Elementwise(op), &[Operand::Tensor(&lhs), Operand::Tensor(rhs)], dims, gives, false);
        }
        let rhs = rhs.expanded(&dims);
        emit(Op::Elementwise(op), &[Operand::Tensor(&lhs), Operand::Tensor(&rhs)], dims, gives, false)
    }

    /// Expanded to sizes that it is known to broadcast to.
    #[track_caller]
    fn expanded(&self, dims: &Dims) -> RawTensor {
        emit(Op::Expand, &[Operand::Tensor(self)], dims.clone(), self.dtype(), true)
    }

    /// A two-operand row of this tensor and a scalar of its dtype, in the order of `operands`.
    #[track_caller]
    fn pair(&self, op: Elementwise, operands: [Operand<'_>; 2]) -> RawTensor {
        match pair_dtype(op, self.dtype(), self.dtype()) {
            Some(gives) => emit(Op::Elementwise(op), &operands, self.slot.dims.clone(), gives, false),
            None => apply(Op::Elementwise(op), &operands),
        }
    }

    /// Applies a two-operand row with a run-time scalar on the right: its value never makes a new program.
    #[track_caller]
    pub fn with_scalar(&self, op: Elementwise, rhs: Scalar) -> RawTensor {
        self.pair(op, [Operand::Tensor(self), arg(self.dtype(), rhs)])
    }

    /// Applies a two-operand row with a run-time scalar on the left.
    #[track_caller]
    pub fn scalar_with(&self, op: Elementwise, lhs: Scalar) -> RawTensor {
        self.pair(op, [arg(self.dtype(), lhs), Operand::Tensor(self)])
    }

    /// Applies a two-operand row with a structural constant on the right: part of the program, for the compiler to simplify with.
    #[track_caller]
    pub(crate) fn with_constant(&self, op: Elementwise, rhs: f64) -> RawTensor {
        self.pair(op, [Operand::Tensor(self), constant(self.dtype(), rhs)])
    }

    /// Applies a two-operand row with a structural constant on the left.
    #[track_caller]
    pub(crate) fn constant_with(&self, op: Elementwise, lhs: f64) -> RawTensor {
        self.pair(op, [constant(self.dtype(), lhs), Operand::Tensor(self)])
    }

    /// `value` where the bool `mask` holds, else this tensor: a selection, so NaN of the other side doesn't leak. All are broadcast.
    #[track_caller]
    pub fn mask_where(&self, mask: &RawTensor, value: &RawTensor) -> RawTensor {
        let dims = common_dims(Elementwise::Where, &[mask, value, self]);
        let b = |x: &RawTensor| broadcast_to("where", x, &dims);
        let (mask, value, x) = (b(mask), b(value), b(self));
        apply(Op::Elementwise(Elementwise::Where), &[Operand::Tensor(&mask), Operand::Tensor(&value), Operand::Tensor(&x)])
    }

    /// The scalar where the bool `mask` holds, else this tensor.
    #[track_caller]
    pub fn mask_fill(&self, mask: &RawTensor, value: Scalar) -> RawTensor {
        self.fill(mask, arg(self.dtype(), value))
    }

    /// A structural constant where the bool `mask` holds, else this tensor.
    #[track_caller]
    pub(crate) fn fill_constant(&self, mask: &RawTensor, value: f64) -> RawTensor {
        self.fill(mask, constant(self.dtype(), value))
    }

    #[track_caller]
    fn fill(&self, mask: &RawTensor, value: Operand<'_>) -> RawTensor {
        let dims = common_dims(Elementwise::Where, &[mask, self]);
        let (mask, x) = (broadcast_to("where", mask, &dims), broadcast_to("where", self, &dims));
        apply(Op::Elementwise(Elementwise::Where), &[Operand::Tensor(&mask), value, Operand::Tensor(&x)])
    }

    /// This bool tensor as a choice: `x` where it holds, else 0.
    #[track_caller]
    pub(crate) fn choose_or_zero(&self, x: &RawTensor) -> RawTensor {
        let dims = common_dims(Elementwise::Where, &[self, x]);
        let (mask, x) = (broadcast_to("where", self, &dims), broadcast_to("where", x, &dims));
        apply(Op::Elementwise(Elementwise::Where), &[Operand::Tensor(&mask), Operand::Tensor(&x), constant(x.dtype(), 0.0)])
    }

    /// Converts the elements. Float to int truncates and saturates, NaN becomes 0; to bool is `x != 0`.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> RawTensor {
        if dtype == self.dtype() {
            return self.plain();
        }
        if !self.slot.cell.device.runtime.supports_dtype(dtype) {
            refuse(kiln_ir::infer::InferError(alloc::format!("cast: the device {:?} has no {dtype}", self.device())));
        }
        emit(Op::Cast, &[Operand::Tensor(self)], self.slot.dims.clone(), dtype, true)
    }

    /// Limits to `[min, max]`; NaN stays NaN. The slope is 0 outside of the range and at its ends, as PyTorch has it.
    #[track_caller]
    pub fn clamp(&self, min: Option<Scalar>, max: Option<Scalar>) -> RawTensor {
        let mut y = self.untracked();
        if let Some(min) = min {
            y = y.with_scalar(Elementwise::Max, min);
        }
        if let Some(max) = max {
            y = y.with_scalar(Elementwise::Min, max);
        }
        autodiff::custom(&[self], y, Keep::Output, move |call| {
            let mut dx = call.dy.clone();
            for (op, bound) in [(Elementwise::Le, min), (Elementwise::Ge, max)] {
                if let Some(bound) = bound {
                    dx = dx.fill_constant(&call.output().with_scalar(op, bound), 0.0);
                }
            }
            [Some(dx)].into()
        })
    }

    /// `x * x`.
    #[track_caller]
    pub fn square(&self) -> RawTensor {
        self.mul(self)
    }

    /// Whether each element is NaN. Integers never are.
    #[track_caller]
    pub fn is_nan(&self) -> RawTensor {
        self.ne(self)
    }

    /// Whether each element is infinite.
    #[track_caller]
    pub fn is_inf(&self) -> RawTensor {
        self.abs().with_constant(Elementwise::Eq, f64::INFINITY)
    }
}

/// One method per row that Rust code spells by name.
macro_rules! named {
    (unary [$($u:ident $uop:ident $udoc:literal;)*] binary [$($b:ident $bop:ident $bdoc:literal;)*] scalar [$($s:ident $sop:ident $sdoc:literal;)*]) => {
        impl RawTensor {
            $( #[doc = $udoc] #[track_caller] pub fn $u(&self) -> RawTensor { self.unary(Elementwise::$uop) } )*
            $( #[doc = $bdoc] #[track_caller] pub fn $b(&self, rhs: &RawTensor) -> RawTensor { self.binary(Elementwise::$bop, rhs) } )*
            $( #[doc = $sdoc] #[track_caller] pub fn $s(&self, rhs: impl Into<Scalar>) -> RawTensor { self.with_scalar(Elementwise::$sop, rhs.into()) } )*
        }
    };
}

named! {
    unary [
    neg Neg "`-x`; integers wrap.";
    abs Abs "Absolute value; `abs(MIN) = MIN` for integers.";
    sign Sign "-1, 0 or 1; NaN stays NaN.";
    recip Recip "`1 / x`.";
    sqrt Sqrt "Square root; NaN below zero.";
    exp Exp "Natural exponential.";
    log Log "Natural logarithm.";
    log1p Log1p "`ln(1 + x)`, accurate near zero.";
    sin Sin "Sine, radians.";
    cos Cos "Cosine, radians.";
    tan Tan "Tangent, radians.";
    asin Asin "Inverse sine.";
    acos Acos "Inverse cosine.";
    atan Atan "Inverse tangent.";
    sinh Sinh "Hyperbolic sine.";
    cosh Cosh "Hyperbolic cosine.";
    tanh Tanh "Hyperbolic tangent.";
    asinh Asinh "Inverse hyperbolic sine.";
    acosh Acosh "Inverse hyperbolic cosine.";
    atanh Atanh "Inverse hyperbolic tangent.";
    erf Erf "Error function.";
    floor Floor "Largest integer not above x.";
    ceil Ceil "Smallest integer not below x.";
    round Round "Nearest integer, ties to even.";
    trunc Trunc "Integer part, towards zero.";
    not Not "Bitwise complement; logical not on bool.";
    ]
    binary [
    add Add "Sum, broadcast; integers wrap.";
    sub Sub "Difference, broadcast; integers wrap.";
    mul Mul "Product, broadcast; integers wrap.";
    div Div "Quotient, broadcast; integers truncate towards zero.";
    rem Rem "Floor remainder (sign of the divisor), broadcast.";
    fmod Fmod "Truncated remainder (sign of the dividend), broadcast.";
    pow Pow "Power of floats, broadcast.";
    atan2 Atan2 "Angle of the point `(x = rhs, y = self)`, broadcast.";
    max_pair Max "Larger operand, NaN if either is, broadcast.";
    min_pair Min "Smaller operand, NaN if either is, broadcast.";
    and And "Bitwise and, logical on bool, broadcast.";
    or Or "Bitwise or, logical on bool, broadcast.";
    xor Xor "Bitwise exclusive or, broadcast.";
    shl Shl "Left shift, broadcast.";
    shr Shr "Right shift, broadcast.";
    eq Eq "Whether equal, broadcast.";
    ne Ne "Whether different, broadcast.";
    lt Lt "Whether less, broadcast.";
    le Le "Whether less or equal, broadcast.";
    gt Gt "Whether greater, broadcast.";
    ge Ge "Whether greater or equal, broadcast.";
    ]
    scalar [
    add_scalar Add "Sum with a run-time scalar.";
    sub_scalar Sub "Difference with a run-time scalar.";
    mul_scalar Mul "Product with a run-time scalar.";
    div_scalar Div "Quotient by a run-time scalar.";
    rem_scalar Rem "Floor remainder by a run-time scalar.";
    fmod_scalar Fmod "Truncated remainder by a run-time scalar.";
    max_scalar Max "At least a run-time scalar.";
    min_scalar Min "At most a run-time scalar.";
    and_scalar And "Bitwise and with a run-time scalar.";
    or_scalar Or "Bitwise or with a run-time scalar.";
    xor_scalar Xor "Bitwise exclusive or with a run-time scalar.";
    shl_scalar Shl "Left shift by a run-time scalar.";
    shr_scalar Shr "Right shift by a run-time scalar.";
    eq_scalar Eq "Whether equal to a run-time scalar.";
    ne_scalar Ne "Whether different from a run-time scalar.";
    lt_scalar Lt "Whether less than a run-time scalar.";
    le_scalar Le "Whether at most a run-time scalar.";
    gt_scalar Gt "Whether greater than a run-time scalar.";
    ge_scalar Ge "Whether at least a run-time scalar.";
    ]
}
