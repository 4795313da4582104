//! The vector loops of the elementwise ops: one function per op and kind of element, compiled for each operand form and instruction set.
use kiln_ir::{DType, Elementwise};

use super::float_functions::*;
use super::function::{Function, Map};
use super::plain_functions::*;
use crate::math::Real;
use crate::simd::{Level, LoopFn, compiled};

/// How elements of a dtype are held and computed with in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `f32`: F32, F16, BF16.
    F32,
    /// `f64`.
    F64,
    /// `i64`: every integer dtype but U64; values are in the dtype's range.
    I64,
    /// `u64`: U64.
    U64,
    /// One byte, 0 or 1.
    Bool,
}

impl Kind {
    /// The kind of a dtype.
    pub fn of(dtype: DType) -> Kind {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Kind::F32,
            DType::F64 => Kind::F64,
            DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U32 | DType::U16 | DType::U8 => Kind::I64,
            DType::U64 => Kind::U64,
            DType::Bool => Kind::Bool,
        }
    }

    /// Bytes of one element in a tile.
    pub fn size(self) -> usize {
        match self {
            Kind::F32 => 4,
            Kind::F64 | Kind::I64 | Kind::U64 => 8,
            Kind::Bool => 1,
        }
    }
}

/// A one-operand function; library calls are the same at every level.
fn unary<F: Function>(level: Level) -> LoopFn {
    compiled::<Map<F, 1, 0>>(if F::SCALAR { Level::Base } else { level })
}

/// A two-operand function on vectors.
fn binary<F: Function>(level: Level) -> LoopFn {
    compiled::<Map<F, 2, 0>>(if F::SCALAR { Level::Base } else { level })
}

/// A two-operand function, of which one operand may be a scalar.
fn mixed<F: Function>(level: Level, scalars: usize) -> LoopFn {
    match scalars {
        1 => compiled::<Map<F, 2, 1>>(level),
        2 => compiled::<Map<F, 2, 2>>(level),
        _ => binary::<F>(level),
    }
}

/// Which operands of an op may be given as one element: bit `k` for operand `k`. A loop for any subset of these bits exists, except that not all operands of
/// a binary op can be scalars at once.
pub fn scalar_operands(op: Elementwise, kind: Kind) -> usize {
    use Elementwise::*;
    let common = matches!(op, Add | Sub | Mul | Div | Max | Min | Lt | Le | Gt | Ge);
    match op {
        Where if kind == Kind::F32 => 6,
        _ if common && kind == Kind::F32 => 3,
        _ => 0,
    }
}

/// The loop of an op on operands of `kind` (for `where`, the kind of the selected values), with the operands in the mask `scalars` given as one element.
/// `None` when the op is not defined on the kind.
pub fn select(op: Elementwise, kind: Kind, scalars: usize, level: Level) -> Option<LoopFn> {
    // Only f32 is worth code for the widest vectors.
    let narrow = level.min(Level::Avx2);
    match kind {
        Kind::F32 => f32_loop(op, scalars, level),
        Kind::F64 => float::<f64>(op, narrow),
        Kind::I64 => integer::<i64>(op, narrow),
        Kind::U64 => unsigned(op, narrow),
        Kind::Bool => truth(op, narrow),
    }
}

/// Loops for f32 with scalar operands; the others are those of any float.
fn f32_loop(op: Elementwise, scalars: usize, level: Level) -> Option<LoopFn> {
    use Elementwise::*;
    Some(match op {
        Add => mixed::<AddF<f32>>(level, scalars),
        Sub => mixed::<SubF<f32>>(level, scalars),
        Mul => mixed::<MulF<f32>>(level, scalars),
        Div if scalars == 2 => compiled::<DivideByOne>(level),
        Div => mixed::<DivF<f32>>(level, scalars),
        Max => mixed::<MaxF<f32>>(level, scalars),
        Min => mixed::<MinF<f32>>(level, scalars),
        Lt => mixed::<LtP<f32>>(level, scalars),
        Le => mixed::<LeP<f32>>(level, scalars),
        Gt => mixed::<GtP<f32>>(level, scalars),
        Ge => mixed::<GeP<f32>>(level, scalars),
        Where => match scalars {
            2 => compiled::<Map<WhereP<u32>, 3, 2>>(level),
            4 => compiled::<Map<WhereP<u32>, 3, 4>>(level),
            6 => compiled::<Map<WhereP<u32>, 3, 6>>(level),
            _ => compiled::<Map<WhereP<u32>, 3, 0>>(level),
        },
        Neg | Abs | Sign | Recip | Sqrt | Exp | Log | Log1p | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Tanh
        | Erf | Floor | Ceil | Round | Trunc | Rem | Fmod | Pow | Atan2 | Eq | Ne | Not | And | Or | Xor | Shl | Shr => {
            return float::<f32>(op, level);
        }
    })
}

fn float<R: Real + Default>(op: Elementwise, level: Level) -> Option<LoopFn> {
    use Elementwise::*;
    Some(match op {
        Neg => unary::<NegF<R>>(level),
        Abs => unary::<AbsF<R>>(level),
        Sign => unary::<SignF<R>>(level),
        Recip => unary::<RecipF<R>>(level),
        Sqrt => unary::<SqrtF<R>>(level),
        Exp => unary::<ExpF<R>>(level),
        Log => unary::<LogF<R>>(level),
        Log1p => unary::<Log1pF<R>>(level),
        Sin => unary::<SinF<R>>(level),
        Cos => unary::<CosF<R>>(level),
        Tan => unary::<TanF<R>>(level),
        Asin => unary::<AsinF<R>>(level),
        Acos => unary::<AcosF<R>>(level),
        Atan => unary::<AtanF<R>>(level),
        Sinh => unary::<SinhF<R>>(level),
        Cosh => unary::<CoshF<R>>(level),
        Asinh => unary::<AsinhF<R>>(level),
        Acosh => unary::<AcoshF<R>>(level),
        Atanh => unary::<AtanhF<R>>(level),
        Tanh => unary::<TanhF<R>>(level),
        Erf => unary::<ErfF<R>>(level),
        Floor => unary::<FloorF<R>>(level),
        Ceil => unary::<CeilF<R>>(level),
        Round => unary::<RoundF<R>>(level),
        Trunc => unary::<TruncF<R>>(level),
        Add => binary::<AddF<R>>(level),
        Sub => binary::<SubF<R>>(level),
        Mul => binary::<MulF<R>>(level),
        Div => binary::<DivF<R>>(level),
        Rem => binary::<RemF<R>>(level),
        Fmod => binary::<FmodF<R>>(level),
        Pow => binary::<PowF<R>>(level),
        Atan2 => binary::<Atan2F<R>>(level),
        Max => binary::<MaxF<R>>(level),
        Min => binary::<MinF<R>>(level),
        Eq => binary::<EqP<R>>(level),
        Ne => binary::<NeP<R>>(level),
        Lt => binary::<LtP<R>>(level),
        Le => binary::<LeP<R>>(level),
        Gt => binary::<GtP<R>>(level),
        Ge => binary::<GeP<R>>(level),
        Where => compiled::<Map<WhereP<u64>, 3, 0>>(level),
        Not | And | Or | Xor | Shl | Shr => return None,
    })
}

fn integer<T>(op: Elementwise, level: Level) -> Option<LoopFn>
where
    T: Integer + core::ops::BitAnd<Output = T> + core::ops::BitOr<Output = T> + core::ops::BitXor<Output = T> + 'static,
{
    use Elementwise::*;
    Some(match op {
        Neg => unary::<NegI<T>>(level),
        Abs => unary::<AbsI<T>>(level),
        Sign => unary::<SignI<T>>(level),
        Not => unary::<NotI<T>>(level),
        Add => binary::<AddI<T>>(level),
        Sub => binary::<SubI<T>>(level),
        Mul => binary::<MulI<T>>(level),
        Div => binary::<DivI<T>>(level),
        Rem => binary::<RemI<T>>(level),
        Max => binary::<MaxI<T>>(level),
        Min => binary::<MinI<T>>(level),
        And => binary::<AndP<T>>(level),
        Or => binary::<OrP<T>>(level),
        Xor => binary::<XorP<T>>(level),
        Shl => binary::<ShlI<T>>(level),
        Shr => binary::<ShrI<T>>(level),
        Eq => binary::<EqP<T>>(level),
        Ne => binary::<NeP<T>>(level),
        Lt => binary::<LtP<T>>(level),
        Le => binary::<LeP<T>>(level),
        Gt => binary::<GtP<T>>(level),
        Ge => binary::<GeP<T>>(level),
        Where => compiled::<Map<WhereP<u64>, 3, 0>>(level),
        Recip | Sqrt | Exp | Log | Log1p | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Tanh | Erf | Floor | Ceil
        | Round | Trunc | Fmod | Pow | Atan2 => return None,
    })
}

/// Ops whose meaning on the bits of an unsigned word differs from that on a signed one; the others are shared.
fn unsigned(op: Elementwise, level: Level) -> Option<LoopFn> {
    use Elementwise::*;
    Some(match op {
        Abs => unary::<AbsI<u64>>(level),
        Sign => unary::<SignI<u64>>(level),
        Div => binary::<DivI<u64>>(level),
        Rem => binary::<RemI<u64>>(level),
        Max => binary::<MaxI<u64>>(level),
        Min => binary::<MinI<u64>>(level),
        Shl => binary::<ShlI<u64>>(level),
        Shr => binary::<ShrI<u64>>(level),
        Lt => binary::<LtP<u64>>(level),
        Le => binary::<LeP<u64>>(level),
        Gt => binary::<GtP<u64>>(level),
        Ge => binary::<GeP<u64>>(level),
        Neg | Not | Add | Sub | Mul | And | Or | Xor | Eq | Ne | Where | Recip | Sqrt | Exp | Log | Log1p | Sin | Cos | Tan | Asin | Acos | Atan
        | Sinh | Cosh | Asinh | Acosh | Atanh | Tanh | Erf | Floor | Ceil | Round | Trunc | Fmod | Pow | Atan2 => return integer::<i64>(op, level),
    })
}

fn truth(op: Elementwise, level: Level) -> Option<LoopFn> {
    use Elementwise::*;
    Some(match op {
        Not => unary::<NotB<u8>>(level),
        And => binary::<AndP<u8>>(level),
        Or => binary::<OrP<u8>>(level),
        Xor => binary::<XorP<u8>>(level),
        Eq => binary::<EqP<u8>>(level),
        Ne => binary::<NeP<u8>>(level),
        Where => compiled::<Map<WhereP<u8>, 3, 0>>(level),
        Neg | Abs | Sign | Recip | Sqrt | Exp | Log | Log1p | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Tanh
        | Erf | Floor | Ceil | Round | Trunc | Add | Sub | Mul | Div | Rem | Fmod | Pow | Atan2 | Max | Min | Shl | Shr | Lt | Le | Gt | Ge => {
            return None;
        }
    })
}
