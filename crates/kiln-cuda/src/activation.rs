//! Gelu and its gradient inside products: cuBLASLt computes both behind a product and keeps what the gradient needs.
//!
//! A product that stores `gelu(x)` and `gelu'(x)` of its result `x`, where every reader of the second multiplies it with another product's result, stores `gelu(x)` and `x` instead,
//! and the other products compute `gelu'(x)` where they multiply with it. Expressions are recognised by what they compute.
use std::collections::HashMap;

use kiln_ir::interp::{Point, Scalar, run_expr};
use kiln_ir::kernel::DotKernel;
use kiln_ir::{Affine, BufId, DType, Elementwise, Expr, Inst, Kernel, Load, Place, Program};

use crate::product::{self, Activation};

/// Elements from which it pays.
const WORTH: usize = 1 << 16;

/// `x` times the logistic-like curve of gelu's approximation, and its slope.
fn gelu(x: f64) -> (f64, f64) {
    let (c, k) = (0.797_884_560_802_865_4, 0.044_715);
    let t = (c * (x + k * x * x * x)).tanh();
    (0.5 * x * (1.0 + t), 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * c * (1.0 + 3.0 * k * x * x))
}

/// The values that an epilogue stores where the product is `acc` and every load gives `loaded`.
fn stored(e: &Expr, rank: usize, acc: f64, loaded: f64) -> Option<Vec<f64>> {
    let at = vec![0; rank];
    let point = Point { at: &at, args: &[], acc: Some(Scalar::Float(acc)) };
    let values = run_expr(e, &point, &mut |_, _| Ok(Scalar::Float(loaded))).ok()?;
    Some(e.stores.iter().map(|s| values[s.value.index()].float()).collect())
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 0.01 * (1.0 + b.abs())
}

/// Points at which expressions are compared.
fn samples() -> impl Iterator<Item = (f64, f64)> {
    (-12..=12).flat_map(|n| [0.0, 0.75].map(|b| (n as f64 * 0.5, b)))
}

fn is_dense(index: &Affine, dims: &[usize]) -> bool {
    let steps = kiln_ir::dims::row_major(dims);
    index.base == 0 && index.dynamic.is_empty() && dims.iter().zip(&index.coeffs).zip(&steps).all(|((n, c), s)| *n == 1 || c == s)
}

/// A large product of half floats of one matrix that the library can do, and the sizes of its result.
fn fits(d: &DotKernel) -> Option<Vec<usize>> {
    let dims: Vec<usize> = d.batch.iter().copied().chain([d.m, d.n]).collect();
    let single = d.batch.iter().all(|n| *n == 1);
    let half = matches!(d.dtype, DType::F16 | DType::BF16);
    (half && single && d.m * d.n >= WORTH && d.n.is_multiple_of(8) && product::is_plain(d)).then_some(dims)
}

/// Which of the two buffers of an epilogue gets gelu and which its slope, if that is what it computes.
fn as_gelu(d: &DotKernel, program: &Program) -> Option<(BufId, BufId)> {
    let dims = fits(d)?;
    let e = &d.epilogue;
    let [a, b] = &e.stores[..] else { return None };
    let uses = |op: Elementwise| e.values.iter().any(|v| matches!(v.inst, Inst::Op(o, _) if o == op));
    let plain = [a, b].iter().all(|s| is_dense(&s.index, &dims) && program.buf(s.buf).dtype == d.dtype);
    // At most a bias along the columns.
    let bias = |l: &Load| {
        l.bounds.is_empty() && l.index.dynamic.is_empty() && l.index.coeffs.iter().enumerate().all(|(k, c)| *c == (k + 1 == dims.len()) as isize)
    };
    if !plain || !uses(Elementwise::Tanh) || uses(Elementwise::Erf) || e.loads.len() > 1 || !e.loads.iter().all(bias) {
        return None;
    }
    let has_bias = !e.loads.is_empty();
    let matches = |first: usize| {
        samples().all(|(acc, b)| {
            let (y, slope) = gelu(acc + if has_bias { b } else { 0.0 });
            stored(e, dims.len(), acc, b).is_some_and(|s| is_close(s[first], y) && is_close(s[1 - first], slope))
        })
    };
    match (matches(0), matches(1)) {
        (true, false) => Some((a.buf, b.buf)),
        (false, true) => Some((b.buf, a.buf)),
        _ => None,
    }
}

/// Whether a product's result is multiplied with a buffer and stored.
fn multiplies(d: &DotKernel, slope: BufId, program: &Program) -> bool {
    let Some(dims) = fits(d) else { return false };
    let e = &d.epilogue;
    let ([store], [load]) = (&e.stores[..], &e.loads[..]) else { return false };
    load.buf == slope
        && load.bounds.is_empty()
        && is_dense(&load.index, &dims)
        && is_dense(&store.index, &dims)
        && program.buf(store.buf).dtype == d.dtype
        && d.lhs.buf != slope
        && d.rhs.buf != slope
        && samples().all(|(acc, b)| stored(e, dims.len(), acc, b).is_some_and(|s| is_close(s[0], acc * b)))
}

/// The products of a program that compute gelu or its gradient, by number.
pub fn find(program: &Program) -> HashMap<usize, Activation> {
    let kernels: Vec<&Kernel> = program.kernels().collect();
    let mut found = HashMap::new();
    for (n, kernel) in kernels.iter().enumerate() {
        let Kernel::Dot(d) = kernel else { continue };
        let Some((result, aside)) = as_gelu(d, program) else { continue };
        if !matches!(program.buf(aside).place, Place::Arena(_)) {
            continue;
        }
        let touches = |m: usize| {
            let mut any = false;
            kernels[m].accesses(|b| any |= b == aside, |_| ());
            kernels[m].accesses(|_| (), |b| any |= b == aside);
            any
        };
        let users: Vec<usize> = (0..kernels.len()).filter(|m| *m != n && touches(*m)).collect();
        let all = users.iter().all(|m| *m > n && matches!(kernels[*m], Kernel::Dot(d) if multiplies(d, aside, program)));
        if !users.is_empty() && all {
            found.insert(n, Activation::Gelu { result, aside });
            found.extend(users.into_iter().map(|m| (m, Activation::GeluGrad { aside })));
        }
    }
    found
}
