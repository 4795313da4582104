//! Table: the elementwise ops. The enum, names, dtype rules, reference meanings and spellings all come from the rows below.
//!
//! Adding a row is adding an op: the compiler then asks for its gradient (`kiln-tensor/src/autodiff`) and its vector loop (`kiln-cpu`), and the table-driven
//! tests pick it up.
use crate::DType;

/// Which dtypes an op accepts (all its operands have one dtype, except the condition of `where`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Floats only.
    Float,
    /// Floats and integers.
    Number,
    /// Integers only.
    Int,
    /// Integers and bool.
    IntBool,
    /// Every dtype.
    All,
}

impl Accepts {
    /// Whether `dtype` is accepted.
    pub const fn contains(self, dtype: DType) -> bool {
        match self {
            Accepts::Float => dtype.is_float(),
            Accepts::Number => !matches!(dtype, DType::Bool),
            Accepts::Int => dtype.is_int(),
            Accepts::IntBool => !dtype.is_float(),
            Accepts::All => true,
        }
    }
}

/// The dtype of an op's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// The operands' dtype.
    Same,
    /// `Bool`.
    Bool,
}

/// One row of the table.
pub struct Row {
    /// Lower-case name, the same in the enum, methods, kernels and tests.
    pub name: &'static str,
    /// Number of operands (1 to 3).
    pub arity: usize,
    /// Accepted dtypes.
    pub accepts: Accepts,
    /// Result dtype.
    pub gives: Gives,
    /// Reference meaning on floats, in `f64`. Comparisons give 0 or 1.
    pub float: fn(f64, f64, f64) -> f64,
    /// Reference meaning on integers and bools; the result is wrapped to the dtype's width.
    pub int: fn(i128, i128, i128) -> i128,
    /// Range in which tests draw the operands and finite differences hold.
    pub domain: (f64, f64),
    /// Spelling in C-like dialects; `{0}` `{1}` `{2}` are the operands (f32 form).
    pub c: &'static str,
    /// Spelling in WGSL (f32 form).
    pub wgsl: &'static str,
    /// One-line meaning.
    pub meaning: &'static str,
}

macro_rules! elementwise {
    ($( $op:ident $name:literal $arity:literal $accepts:ident $gives:ident $domain:expr, $c:literal, $wgsl:literal, $meaning:literal,
        $float:expr, $int:expr; )*) => {
        /// An elementwise op. Operands have equal shapes (or shape `[]`, read as a broadcast scalar) and dtypes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Elementwise { $( #[doc = $meaning] $op, )* }

        impl Elementwise {
            /// Every elementwise op, in table order.
            pub const ALL: &'static [Elementwise] = &[ $( Elementwise::$op, )* ];
        }

        /// The rows, in the order of [`Elementwise::ALL`].
        pub static TABLE: &[Row] = &[ $( Row {
            name: $name, arity: $arity, accepts: Accepts::$accepts, gives: Gives::$gives, domain: $domain, c: $c, wgsl: $wgsl,
            meaning: $meaning, float: $float, int: $int,
        }, )* ];
    };
}

fn b(x: bool) -> f64 {
    x as u8 as f64
}

fn i(x: bool) -> i128 {
    x as i128
}

/// Meaning of a float-only op on integers: never called (the dtype rule forbids it).
fn no_int(a: i128, _: i128, _: i128) -> i128 {
    a
}

/// Meaning of an integer-only op on floats: never called (the dtype rule forbids it).
fn no_float(a: f64, _: f64, _: f64) -> f64 {
    a
}

fn max_nan(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { libm::fmax(x, y) }
}

fn min_nan(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { libm::fmin(x, y) }
}

/// Floor remainder: the result has the divisor's sign.
fn rem_floor(x: f64, y: f64) -> f64 {
    let r = libm::fmod(x, y);
    if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
}

fn sign(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

fn shift_left(a: i128, s: i128) -> i128 {
    if (0..64).contains(&s) { a << s } else { 0 }
}

fn shift_right(a: i128, s: i128) -> i128 {
    if (0..64).contains(&s) {
        a >> s
    } else if a < 0 {
        -1
    } else {
        0
    }
}

elementwise! {
    Neg "neg" 1 Number Same (-3.0, 3.0), "(-{0})", "(-{0})", "Negation.", |x, _, _| -x, |x, _, _| -x;
    Abs "abs" 1 Number Same (-3.0, 3.0), "fabsf({0})", "abs({0})", "Absolute value; `abs(MIN) = MIN` for integers.", |x, _, _| x.abs(), |x, _, _| x.abs();
    Sign "sign" 1 Number Same (-3.0, 3.0), "kiln_sign({0})", "sign({0})", "-1, 0 or 1; NaN stays NaN.", |x, _, _| sign(x), |x, _, _| x.signum();
    Recip "recip" 1 Float Same (0.2, 3.0), "(1.0f / {0})", "(1.0 / {0})", "Reciprocal `1 / x`.", |x, _, _| 1.0 / x, no_int;
    Sqrt "sqrt" 1 Float Same (0.1, 4.0), "sqrtf({0})", "sqrt({0})", "Square root; NaN below zero.", |x, _, _| libm::sqrt(x), no_int;
    Exp "exp" 1 Float Same (-3.0, 3.0), "expf({0})", "exp({0})", "Natural exponential.", |x, _, _| libm::exp(x), no_int;
    Log "log" 1 Float Same (0.1, 5.0), "logf({0})", "log({0})", "Natural logarithm.", |x, _, _| libm::log(x), no_int;
    Log1p "log1p" 1 Float Same (-0.9, 5.0), "log1pf({0})", "kiln_log1p({0})", "`ln(1 + x)`, accurate near zero.", |x, _, _| libm::log1p(x), no_int;
    Sin "sin" 1 Float Same (-4.0, 4.0), "sinf({0})", "sin({0})", "Sine, radians.", |x, _, _| libm::sin(x), no_int;
    Cos "cos" 1 Float Same (-4.0, 4.0), "cosf({0})", "cos({0})", "Cosine, radians.", |x, _, _| libm::cos(x), no_int;
    Tan "tan" 1 Float Same (-1.4, 1.4), "tanf({0})", "tan({0})", "Tangent, radians.", |x, _, _| libm::tan(x), no_int;
    Asin "asin" 1 Float Same (-0.9, 0.9), "asinf({0})", "asin({0})", "Inverse sine.", |x, _, _| libm::asin(x), no_int;
    Acos "acos" 1 Float Same (-0.9, 0.9), "acosf({0})", "acos({0})", "Inverse cosine.", |x, _, _| libm::acos(x), no_int;
    Atan "atan" 1 Float Same (-3.0, 3.0), "atanf({0})", "atan({0})", "Inverse tangent.", |x, _, _| libm::atan(x), no_int;
    Sinh "sinh" 1 Float Same (-3.0, 3.0), "sinhf({0})", "sinh({0})", "Hyperbolic sine.", |x, _, _| libm::sinh(x), no_int;
    Cosh "cosh" 1 Float Same (-3.0, 3.0), "coshf({0})", "cosh({0})", "Hyperbolic cosine.", |x, _, _| libm::cosh(x), no_int;
    Tanh "tanh" 1 Float Same (-3.0, 3.0), "tanhf({0})", "tanh({0})", "Hyperbolic tangent.", |x, _, _| libm::tanh(x), no_int;
    Asinh "asinh" 1 Float Same (-3.0, 3.0), "asinhf({0})", "asinh({0})", "Inverse hyperbolic sine.", |x, _, _| libm::asinh(x), no_int;
    Acosh "acosh" 1 Float Same (1.1, 4.0), "acoshf({0})", "acosh({0})", "Inverse hyperbolic cosine.", |x, _, _| libm::acosh(x), no_int;
    Atanh "atanh" 1 Float Same (-0.9, 0.9), "atanhf({0})", "atanh({0})", "Inverse hyperbolic tangent.", |x, _, _| libm::atanh(x), no_int;
    Erf "erf" 1 Float Same (-3.0, 3.0), "erff({0})", "kiln_erf({0})", "Error function.", |x, _, _| libm::erf(x), no_int;
    Floor "floor" 1 Float Same (-3.0, 3.0), "floorf({0})", "floor({0})", "Largest integer not above x.", |x, _, _| libm::floor(x), no_int;
    Ceil "ceil" 1 Float Same (-3.0, 3.0), "ceilf({0})", "ceil({0})", "Smallest integer not below x.", |x, _, _| libm::ceil(x), no_int;
    Round "round" 1 Float Same (-3.0, 3.0), "rintf({0})", "round({0})", "Nearest integer, ties to even.", |x, _, _| libm::rint(x), no_int;
    Trunc "trunc" 1 Float Same (-3.0, 3.0), "truncf({0})", "trunc({0})", "Integer part, towards zero.", |x, _, _| libm::trunc(x), no_int;
    Not "not" 1 IntBool Same (0.0, 8.0), "(~{0})", "(~{0})", "Bitwise complement; logical not on bool.", no_float, |x, _, _| !x;
    Add "add" 2 Number Same (-3.0, 3.0), "({0} + {1})", "({0} + {1})", "Sum; integers wrap.", |x, y, _| x + y, |x, y, _| x + y;
    Sub "sub" 2 Number Same (-3.0, 3.0), "({0} - {1})", "({0} - {1})", "Difference; integers wrap.", |x, y, _| x - y, |x, y, _| x - y;
    Mul "mul" 2 Number Same (-3.0, 3.0), "({0} * {1})", "({0} * {1})", "Product; integers wrap.", |x, y, _| x * y, |x, y, _| x.wrapping_mul(y);
    Div "div" 2 Number Same (0.2, 3.0), "({0} / {1})", "({0} / {1})", "Quotient; integers truncate towards zero and give 0 for a zero divisor.",
        |x, y, _| x / y, |x, y, _| if y == 0 { 0 } else { x / y };
    Rem "rem" 2 Number Same (0.2, 3.0), "kiln_rem({0}, {1})", "kiln_rem({0}, {1})", "Floor remainder (sign of the divisor); integers give 0 for a zero divisor.",
        |x, y, _| rem_floor(x, y), |x, y, _| if y == 0 { 0 } else { let r = x % y; if r != 0 && (r < 0) != (y < 0) { r + y } else { r } };
    Fmod "fmod" 2 Float Same (0.2, 3.0), "fmodf({0}, {1})", "kiln_fmod({0}, {1})", "Truncated remainder (sign of the dividend).", |x, y, _| libm::fmod(x, y), no_int;
    Pow "pow" 2 Float Same (0.2, 3.0), "powf({0}, {1})", "kiln_pow({0}, {1})", "Power `x^y`, IEEE `pow`.", |x, y, _| libm::pow(x, y), no_int;
    Atan2 "atan2" 2 Float Same (0.2, 3.0), "atan2f({0}, {1})", "atan2({0}, {1})", "Angle of the point `(x = {1}, y = {0})`.", |x, y, _| libm::atan2(x, y), no_int;
    Max "max" 2 Number Same (-3.0, 3.0), "kiln_max({0}, {1})", "kiln_max({0}, {1})", "Larger operand; NaN if either is NaN.", |x, y, _| max_nan(x, y), |x, y, _| x.max(y);
    Min "min" 2 Number Same (-3.0, 3.0), "kiln_min({0}, {1})", "kiln_min({0}, {1})", "Smaller operand; NaN if either is NaN.", |x, y, _| min_nan(x, y), |x, y, _| x.min(y);
    And "and" 2 IntBool Same (0.0, 8.0), "({0} & {1})", "({0} & {1})", "Bitwise and; logical and on bool.", no_float, |x, y, _| x & y;
    Or "or" 2 IntBool Same (0.0, 8.0), "({0} | {1})", "({0} | {1})", "Bitwise or; logical or on bool.", no_float, |x, y, _| x | y;
    Xor "xor" 2 IntBool Same (0.0, 8.0), "({0} ^ {1})", "({0} ^ {1})", "Bitwise exclusive or.", no_float, |x, y, _| x ^ y;
    Shl "shl" 2 Int Same (0.0, 5.0), "kiln_shl({0}, {1})", "kiln_shl({0}, {1})", "Left shift; 0 when the amount is not in 0..64.", no_float, |x, y, _| shift_left(x, y);
    Shr "shr" 2 Int Same (0.0, 5.0), "kiln_shr({0}, {1})", "kiln_shr({0}, {1})", "Right shift, arithmetic on signed types; the sign (0 or -1) when the amount is not in 0..64.", no_float, |x, y, _| shift_right(x, y);
    Eq "eq" 2 All Bool (-3.0, 3.0), "({0} == {1})", "({0} == {1})", "Equal; false if either is NaN.", |x, y, _| b(x == y), |x, y, _| i(x == y);
    Ne "ne" 2 All Bool (-3.0, 3.0), "({0} != {1})", "({0} != {1})", "Not equal; true if either is NaN.", |x, y, _| b(x != y), |x, y, _| i(x != y);
    Lt "lt" 2 Number Bool (-3.0, 3.0), "({0} < {1})", "({0} < {1})", "Less than.", |x, y, _| b(x < y), |x, y, _| i(x < y);
    Le "le" 2 Number Bool (-3.0, 3.0), "({0} <= {1})", "({0} <= {1})", "Less or equal.", |x, y, _| b(x <= y), |x, y, _| i(x <= y);
    Gt "gt" 2 Number Bool (-3.0, 3.0), "({0} > {1})", "({0} > {1})", "Greater than.", |x, y, _| b(x > y), |x, y, _| i(x > y);
    Ge "ge" 2 Number Bool (-3.0, 3.0), "({0} >= {1})", "({0} >= {1})", "Greater or equal.", |x, y, _| b(x >= y), |x, y, _| i(x >= y);
    Where "where" 3 All Same (-3.0, 3.0), "({0} ? {1} : {2})", "select({2}, {1}, {0})", "`{1}` where the bool `{0}` holds, else `{2}`: a selection, never a blend.",
        |c, x, y| if c != 0.0 { x } else { y }, |c, x, y| if c != 0 { x } else { y };
}

impl Elementwise {
    /// This op's row.
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Lower-case name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Number of operands.
    pub fn arity(self) -> usize {
        self.row().arity
    }

    /// Whether the result is `Bool` whatever the operands are.
    pub fn is_comparison(self) -> bool {
        self.row().gives == Gives::Bool
    }

    /// Whether swapping the two operands never changes the result.
    pub fn is_commutative(self) -> bool {
        matches!(
            self,
            Elementwise::Add
                | Elementwise::Mul
                | Elementwise::Max
                | Elementwise::Min
                | Elementwise::And
                | Elementwise::Or
                | Elementwise::Xor
                | Elementwise::Eq
                | Elementwise::Ne
        )
    }

    /// Rough cost of one element relative to an addition, for the scheduler's decision between recomputing and storing a value.
    pub fn cost(self) -> u32 {
        use Elementwise::*;
        match self {
            Neg | Abs | Sign | Floor | Ceil | Round | Trunc | Not | Add | Sub | Mul | Max | Min | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le
            | Gt | Ge | Where => 1,
            Recip | Sqrt | Div => 4,
            Rem | Fmod => 10,
            Exp | Log | Log1p | Sin | Cos | Tanh | Erf | Atan | Sinh | Cosh => 12,
            Tan | Asin | Acos | Asinh | Acosh | Atanh | Pow | Atan2 => 24,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_enum_and_have_unique_names() {
        assert_eq!(TABLE.len(), Elementwise::ALL.len());
        for (k, &op) in Elementwise::ALL.iter().enumerate() {
            assert_eq!(op as usize, k);
            assert_eq!(format!("{op:?}").to_lowercase(), op.name());
            for other in &Elementwise::ALL[..k] {
                assert_ne!(op.name(), other.name());
            }
        }
    }

    #[test]
    fn spellings_use_every_operand() {
        for &op in Elementwise::ALL {
            for k in 0..op.arity() {
                let hole = format!("{{{k}}}");
                assert!(op.row().c.contains(&hole), "{} c", op.name());
                assert!(op.row().wgsl.contains(&hole), "{} wgsl", op.name());
            }
        }
    }
}
