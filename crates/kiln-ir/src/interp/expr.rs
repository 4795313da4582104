//! Expressions of the interpreter: every value at one point, and the loops of a fused kernel.
use alloc::string::String;
use alloc::vec::Vec;

use super::elementwise::{Reduction, apply};
use super::memory::Elements;
use super::value::{Scalar, cast};
use super::{random, structural::flat};
use crate::dims::for_each_index;
use crate::expr::{Inst, Level};
use crate::kernel::Fused;
use crate::{Bound, DType, Dims, Expr, Lane, Load};

/// Where an expression is evaluated.
pub struct Point<'a> {
    /// Coordinates, one per dimension of the iteration space.
    pub at: &'a [usize],
    /// Words of the run-time scalars.
    pub args: &'a [u64],
    /// The accumulated result, in an epilogue.
    pub acc: Option<Scalar>,
}

/// Whether a point is inside every bound.
fn inside(bounds: &[Bound], point: &Point<'_>) -> bool {
    bounds.iter().all(|b| (0..b.extent as isize).contains(&b.index.at(point.at, point.args)))
}

/// Evaluates every value of an expression without reductions at one point. `load` reads an element of a buffer.
///
/// # Errors
/// What `load` reports, or an expression that is not one of its place (a reduction, an accumulator outside an epilogue).
pub fn run_expr(expr: &Expr, point: &Point<'_>, load: &mut dyn FnMut(&Load, isize) -> Result<Scalar, String>) -> Result<Vec<Scalar>, String> {
    let mut values = Vec::with_capacity(expr.values.len());
    for k in 0..expr.values.len() {
        let v = value(expr, k, &values, point, load)?;
        values.push(v);
    }
    Ok(values)
}

/// A value as kernels hold it: half types in f32, and f32 in f32.
fn in_lane(dtype: DType, v: Scalar) -> Scalar {
    match v {
        Scalar::Float(f) if dtype.lane() == Lane::F32 => Scalar::Float(f as f32 as f64),
        Scalar::Float(_) | Scalar::Int(_) => v,
    }
}

/// Value `k` of an expression from the earlier ones.
fn value(
    expr: &Expr,
    k: usize,
    earlier: &[Scalar],
    point: &Point<'_>,
    load: &mut dyn FnMut(&Load, isize) -> Result<Scalar, String>,
) -> Result<Scalar, String> {
    let v = &expr.values[k];
    Ok(match &v.inst {
        Inst::Load(n) => {
            let l = &expr.loads[*n as usize];
            if inside(&l.bounds, point) { load(l, l.index.at(point.at, point.args))? } else { Scalar::zero(v.dtype) }
        }
        Inst::Arg(n) => Scalar::from_word(v.dtype, *point.args.get(*n as usize).ok_or("expression: no such run-time scalar")?),
        Inst::Const(word) => Scalar::from_word(v.dtype, *word),
        Inst::Index(affine) => cast(Scalar::Int(affine.at(point.at, point.args) as i128), v.dtype),
        Inst::Random(kind, affine, seed) => random(*kind, v.dtype, earlier[seed.index()].int() as u64, affine.at(point.at, point.args) as u64),
        Inst::Inside(bounds) => Scalar::Int(inside(bounds, point) as i128),
        Inst::Op(op, xs) => {
            let x: Vec<Scalar> = xs.iter().map(|x| earlier[x.index()]).collect();
            let dtype = xs.last().map_or(v.dtype, |x| expr.value(*x).dtype);
            in_lane(v.dtype, apply(*op, dtype, &x))
        }
        Inst::Cast(x) => cast(earlier[x.index()], v.dtype),
        Inst::Reduce(..) => return Err("expression: a reduction outside a fused kernel".into()),
        Inst::Acc => in_lane(v.dtype, point.acc.ok_or("expression: an accumulator outside an epilogue")?),
    })
}

/// Runs a fused kernel point by point, in row-major order of the kept dimensions.
pub(super) fn fused(kernel: &Fused, memory: &mut dyn Elements, args: &[u64]) -> Result<(), String> {
    let expr = &kernel.expr;
    let phases = expr.phases();
    let last = phases.iter().copied().max().unwrap_or(0);
    let (kept, reduced) = kernel.dims.split_at(kernel.kept);
    let mut error = Ok(());
    for_each_index(kept, |k| {
        if error.is_ok() {
            error = row(expr, &phases, last, k, reduced, memory, args);
        }
    });
    error
}

/// One kept point of a fused kernel.
fn row(expr: &Expr, phases: &[u32], last: u32, kept: &[usize], reduced: &[usize], memory: &mut dyn Elements, args: &[u64]) -> Result<(), String> {
    let mut finished: Vec<Option<Scalar>> = alloc::vec![None; expr.values.len()];
    // The values known before phase `p`'s reductions are finished; others hold a zero that nobody uses.
    let evaluate = |at: &[usize], phase: u32, finished: &[Option<Scalar>], memory: &dyn Elements| -> Result<Vec<Scalar>, String> {
        let point = Point { at, args, acc: None };
        let mut values = Vec::with_capacity(expr.values.len());
        for (k, v) in expr.values.iter().enumerate() {
            let known = match finished[k] {
                Some(v) => v,
                None if phases[k] > phase => Scalar::zero(v.dtype),
                None => value(expr, k, &values, &point, &mut |l, i| memory.load(l.buf, i))?,
            };
            values.push(known);
        }
        Ok(values)
    };
    let coords = |r: &[usize]| -> Dims { kept.iter().chain(r).copied().collect() };
    for phase in 0..last {
        let mut running: Vec<(usize, usize, Reduction)> = Vec::new();
        for (k, v) in expr.values.iter().enumerate() {
            if let Inst::Reduce(op, x) = v.inst
                && phases[k] == phase + 1
            {
                running.push((k, x.index(), Reduction::new(op, expr.value(x).dtype)));
            }
        }
        let mut error = Ok(());
        for_each_index(reduced, |r| {
            if error.is_err() {
                return;
            }
            match evaluate(&coords(r), phase, &finished, memory) {
                Ok(values) => running.iter_mut().for_each(|(_, x, reduction)| reduction.push(values[*x])),
                Err(e) => error = Err(e),
            }
        });
        error?;
        for (k, _, reduction) in running {
            finished[k] = Some(in_lane(expr.values[k].dtype, reduction.finish()));
        }
    }
    if expr.stores.iter().any(|s| expr.value(s.value).level == Level::Full) {
        let mut error = Ok(());
        for_each_index(reduced, |r| {
            if error.is_err() {
                return;
            }
            let at = coords(r);
            error = evaluate(&at, last, &finished, memory).and_then(|values| store(expr, &at, &values, true, memory, args));
        });
        error?;
    }
    // A value that varies over kept dimensions only can be stored even if the reduced ones are empty.
    let at = coords(&alloc::vec![0; reduced.len()]);
    let point = Point { at: &at, args, acc: None };
    let mut values: Vec<Scalar> = Vec::with_capacity(expr.values.len());
    for (k, v) in expr.values.iter().enumerate() {
        let known = match finished[k] {
            Some(v) => v,
            None if v.level == Level::Full => Scalar::zero(v.dtype),
            None => value(expr, k, &values, &point, &mut |l, i| memory.load(l.buf, i))?,
        };
        values.push(known);
    }
    store(expr, &at, &values, false, memory, args)
}

/// Writes the stores of one kind: those of values that vary over reduced dimensions, or the others.
fn store(expr: &Expr, at: &[usize], values: &[Scalar], full: bool, memory: &mut dyn Elements, args: &[u64]) -> Result<(), String> {
    for s in expr.stores.iter().filter(|s| (expr.value(s.value).level == Level::Full) == full) {
        memory.store(s.buf, s.index.at(at, args), values[s.value.index()])?;
    }
    Ok(())
}

/// Runs an epilogue over a dense accumulator of `dims`: every point reads before the first writes nothing but its own elements.
pub(super) fn epilogue(
    expr: &Expr,
    dims: &[usize],
    acc: &mut dyn FnMut(usize) -> Scalar,
    memory: &mut dyn Elements,
    args: &[u64],
) -> Result<(), String> {
    let mut error = Ok(());
    for_each_index(dims, |at| {
        if error.is_err() {
            return;
        }
        let point = Point { at, args, acc: Some(acc(flat(dims, at))) };
        error = run_expr(expr, &point, &mut |l, i| memory.load(l.buf, i)).and_then(|values| {
            store(expr, at, &values, true, memory, args)?;
            store(expr, at, &values, false, memory, args)
        });
    });
    error
}

/// The last value of a prologue at one point.
pub(super) fn prologue(expr: &Expr, at: &[usize], memory: &dyn Elements, args: &[u64], dtype: DType) -> Result<Scalar, String> {
    let values = run_expr(expr, &Point { at, args, acc: None }, &mut |l, i| memory.load(l.buf, i))?;
    Ok(values.last().copied().unwrap_or(Scalar::zero(dtype)))
}
