//! Pieces of CUDA C++: types, constants, affine indices and the values of an expression.
use kiln_ir::op::word_value;
use kiln_ir::{Affine, Bound, DType, Elementwise, Expr, Inst, Lane, RandomKind, ReduceOp, ValueId};

use super::signature::Signature;

/// What every kernel may use.
pub const PRELUDE: &str = concat!(include_str!("cuda/cluster.cu"), include_str!("cuda/prelude.cu"));

/// The type of an element in memory.
pub fn memory_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 => "float",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::I64 => "i64",
        DType::I32 => "i32",
        DType::I16 => "i16",
        DType::I8 => "i8",
        DType::U64 => "u64",
        DType::U32 => "u32",
        DType::U16 => "u16",
        DType::U8 => "u8",
        DType::Bool => "bool",
    }
}

/// The type of a value in a register: half types compute as `float`.
pub fn register_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 | DType::BF16 => "float",
        _ => memory_type(dtype),
    }
}

/// The name of the struct that reduces values of a dtype.
pub fn reducer(op: ReduceOp, dtype: DType) -> String {
    format!("r_{}<{}>", op.name(), register_type(dtype))
}

/// Rounds a float register to a half dtype; other dtypes pass.
pub(super) fn rounded(dtype: DType, x: String) -> String {
    match dtype {
        DType::F16 => format!("round_f16({x})"),
        DType::BF16 => format!("round_bf16({x})"),
        _ => x,
    }
}

/// A constant of a dtype.
pub fn constant(dtype: DType, word: u64) -> String {
    let (float, int) = word_value(dtype, word);
    match dtype.lane() {
        Lane::F64 => format!("__longlong_as_double(0x{:016x}LL)", float.to_bits()),
        Lane::F32 => {
            let v = kiln_ir::interp::value::round(dtype, float) as f32;
            format!("__int_as_float(0x{:08x})", v.to_bits())
        }
        Lane::Bool => (int != 0).to_string(),
        Lane::Int if dtype == DType::U64 => format!("{int}ULL"),
        Lane::Int if int == i64::MIN as i128 => "(i64)0x8000000000000000ULL".into(),
        Lane::Int => format!("({})({int}LL)", memory_type(dtype)),
    }
}

/// The run-time scalar `n` as a register of a dtype.
fn argument(sig: &mut Signature<'_>, dtype: DType, n: u32) -> String {
    let words = sig.args();
    let word = format!("{words}[{n}]");
    match dtype.lane() {
        Lane::F64 => format!("__longlong_as_double((i64){word})"),
        Lane::F32 => rounded(dtype, format!("(float)__longlong_as_double((i64){word})")),
        Lane::Bool => format!("({word} != 0)"),
        Lane::Int => format!("({}){word}", memory_type(dtype)),
    }
}

/// An affine function of coordinates given as text. Coordinates named `0` are left out.
pub fn affine(sig: &mut Signature<'_>, a: &Affine, coords: &[String]) -> String {
    let wide = sig.wide || !a.dynamic.is_empty();
    let mut terms: Vec<String> = Vec::new();
    for (c, i) in a.coeffs.iter().zip(coords) {
        match *c {
            0 => {}
            _ if i == "0" => {}
            1 => terms.push(i.clone()),
            -1 => terms.push(format!("-{i}")),
            c => terms.push(format!("{c}{}*{i}", if wide { "LL" } else { "" })),
        }
    }
    for (n, m) in &a.dynamic {
        let words = sig.args();
        terms.push(format!("{m}LL*(i64){words}[{n}]"));
    }
    if a.base != 0 || terms.is_empty() {
        terms.push(format!("{}{}", a.base, if wide { "LL" } else { "" }));
    }
    format!("({})", terms.join(" + "))
}

/// Whether all bounds hold, as text.
pub fn inside(sig: &mut Signature<'_>, bounds: &[Bound], coords: &[String]) -> String {
    if bounds.is_empty() {
        return "true".into();
    }
    let tests: Vec<String> = (bounds.iter())
        .map(|b| {
            let at = affine(sig, &b.index, coords);
            format!("({at} >= 0 && {at} < {})", b.extent)
        })
        .collect();
    format!("({})", tests.join(" && "))
}

/// Ops of half types with a shorter form in the prelude, as exact as a half type can tell.
const SHORT: [&str; 7] = ["exp", "log", "erf", "tanh", "recip", "div", "sqrt"];

/// An elementwise op on registers of `dtype` (that of the last operand).
pub fn elementwise(op: Elementwise, dtype: DType, x: &[String]) -> String {
    let row = op.row();
    if matches!(dtype, DType::BF16 | DType::F16) && SHORT.contains(&row.name) {
        return format!("h_{}({})", row.name, x.join(", "));
    }
    if dtype.is_float() || row.arity == 3 {
        let mut text = row.c.to_string();
        for (k, x) in x.iter().enumerate() {
            text = text.replace(&format!("{{{k}}}"), x);
        }
        return text;
    }
    format!("i_{}({})", row.name, x.join(", "))
}

/// The right-hand side of value `k`. `operand` names earlier values, `load` gives the register of a load; a reduction has no right-hand side.
pub fn value(
    sig: &mut Signature<'_>,
    expr: &Expr,
    k: usize,
    coords: &[String],
    operand: &dyn Fn(ValueId) -> String,
    load: &mut dyn FnMut(&mut Signature<'_>, u32) -> String,
    acc: &str,
) -> String {
    let v = &expr.values[k];
    match &v.inst {
        Inst::Load(n) => load(sig, *n),
        Inst::Arg(n) => argument(sig, v.dtype, *n),
        Inst::Const(word) => constant(v.dtype, *word),
        Inst::Index(a) => {
            let at = affine(sig, a, coords);
            rounded(v.dtype, format!("cast<{}>((i64){at})", register_type(v.dtype)))
        }
        Inst::Random(kind, a, seed) => {
            let at = affine(sig, a, coords);
            let name = match kind {
                RandomKind::Uniform => "uniform",
                RandomKind::Normal => "normal",
                RandomKind::Bits => "bits",
            };
            format!("{name}<{}>({}, (u64){at})", register_type(v.dtype), operand(*seed))
        }
        Inst::Inside(bounds) => inside(sig, bounds, coords),
        Inst::Op(op, xs) => {
            let names: Vec<String> = xs.iter().map(|x| operand(*x)).collect();
            let dtype = xs.last().map_or(v.dtype, |x| expr.value(*x).dtype);
            elementwise(*op, dtype, &names)
        }
        Inst::Cast(x) => {
            let (from, to) = (expr.value(*x).dtype, v.dtype);
            let same = register_type(from) == register_type(to);
            let x = operand(*x);
            rounded(to, if same { x } else { format!("cast<{}>({x})", register_type(to)) })
        }
        Inst::Acc => acc.to_string(),
        Inst::Reduce(..) => unreachable!("a reduction is computed by its kernel's loops"),
    }
}

/// One element read at its point: guarded by the load's bounds.
pub fn scalar_load(sig: &mut Signature<'_>, expr: &Expr, n: u32, coords: &[String]) -> String {
    let l = &expr.loads[n as usize];
    let (name, at) = (sig.read(l.buf), affine(sig, &l.index, coords));
    if l.bounds.is_empty() {
        return format!("up({name}[{at}])");
    }
    let guard = inside(sig, &l.bounds, coords);
    let zero = format!("({})0", register_type(sig.dtype(l.buf)));
    format!("({guard} ? up({name}[{at}]) : {zero})")
}

/// The value that a store takes: what a cast to the buffer's half type is made of, since the store rounds to it anyway.
pub fn stored(sig: &Signature<'_>, expr: &Expr, st: &kiln_ir::Store) -> ValueId {
    let v = expr.value(st.value);
    match v.inst {
        Inst::Cast(x) if matches!(v.dtype, DType::F16 | DType::BF16) && v.dtype == sig.dtype(st.buf) => {
            let from = expr.value(x);
            if from.dtype.lane() == Lane::F32 && from.level == v.level { x } else { st.value }
        }
        _ => st.value,
    }
}

/// Every value and store of an expression without reductions at one point, as statements: what an epilogue is. `acc` is the register of the accumulated result.
pub fn point(sig: &mut Signature<'_>, expr: &Expr, coords: &[String], acc: &str) -> String {
    let mut s = values(sig, expr, coords, acc);
    for st in &expr.stores {
        let (name, at) = (sig.write(st.buf), affine(sig, &st.index, coords));
        s += &format!("{name}[{at}] = down<{}>(v{});\n", memory_type(sig.dtype(st.buf)), stored(sig, expr, st).0);
    }
    s
}

/// Every value of an expression without reductions at one point, as statements that define `v0`, `v1`, ...
pub fn values(sig: &mut Signature<'_>, expr: &Expr, coords: &[String], acc: &str) -> String {
    let mut s = String::new();
    for (k, v) in expr.values.iter().enumerate() {
        let text = value(sig, expr, k, coords, &|x| format!("v{}", x.0), &mut |sig, n| scalar_load(sig, expr, n, coords), acc);
        s += &format!("const {} v{k} = {text};\n", register_type(v.dtype));
    }
    s
}

/// Statements that split a flat number into the coordinates of row-major `dims`: defines `PREFIX0`, `PREFIX1`, ... and returns their names. Axes of size 1 are `0`.
pub fn unflatten(sig: &Signature<'_>, flat: &str, dims: &[usize], prefix: &str) -> (String, Vec<String>) {
    let (mut s, mut names) = (String::new(), vec![String::from("0"); dims.len()]);
    let ty = if sig.wide { "i64" } else { "int" };
    let unsigned = if sig.wide { "u64" } else { "u32" };
    let live: Vec<usize> = (0..dims.len()).filter(|d| dims[*d] != 1).collect();
    let mut rest = flat.to_string();
    for (n, d) in live.iter().enumerate().rev() {
        let name = format!("{prefix}{d}");
        if n == 0 {
            s += &format!("const {ty} {name} = {rest};\n");
        } else {
            let next = format!("{prefix}q{d}");
            s += &format!("const {ty} {next} = (({unsigned}){rest}) / {}u; const {ty} {name} = {rest} - {next} * {};\n", dims[*d], dims[*d]);
            rest = next;
        }
        names[*d] = name;
    }
    (s, names)
}

/// Whether an expression needs 64-bit indices: a buffer or the iteration space is too large for `int`.
pub fn is_wide(program: &kiln_ir::Program, expr: &Expr, points: usize) -> bool {
    const LIMIT: usize = 1 << 30;
    points >= LIMIT || expr.loads.iter().map(|l| l.buf).chain(expr.stores.iter().map(|s| s.buf)).any(|b| program.buf(b).len >= LIMIT)
}
