//! Dots as matrix products of cuBLASLt: which operands it can read as they lie, what it can store itself, and what runs around it.
use kiln_ir::expr::Level;
use kiln_ir::kernel::{DotKernel, DotOperand, Fused};
use kiln_ir::{Affine, BufId, DType, Dims, Elementwise, Expr, Inst, Load, MatmulPrecision, Store, Value, ValueId};

use crate::lowered::{Scratch, Work};
use crate::render;
use crate::steps::Chip;
use kiln_ir::RuntimeError;

/// A column-major matrix in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Matrix {
    /// The buffer.
    pub buf: BufId,
    /// First element.
    pub offset: isize,
    /// Whether the product reads its transpose.
    pub transposed: bool,
    /// Elements between columns as stored.
    pub leading: usize,
    /// Elements between matrices of the batch.
    pub stride: isize,
}

/// What the library computes behind a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Gelu, in its approximation by tanh; what it is computed of is kept.
    Gelu {
        /// Where gelu goes.
        result: BufId,
        /// Where its argument goes.
        aside: BufId,
    },
    /// The product times gelu's slope.
    GeluGrad {
        /// Where gelu's argument is.
        aside: BufId,
    },
}

impl Activation {
    /// The buffer beside the result.
    pub fn aside(self) -> BufId {
        match self {
            Activation::Gelu { aside, .. } | Activation::GeluGrad { aside } => aside,
        }
    }
}

/// `result = first * second (+ added) (+ bias)`, column-major.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    /// Rows, columns and summed size.
    pub size: [usize; 3],
    /// Matrices of the batch.
    pub batch: usize,
    /// Left factor.
    pub first: Matrix,
    /// Right factor.
    pub second: Matrix,
    /// Result.
    pub result: Matrix,
    /// Dtype of the factors.
    pub dtype: DType,
    /// How factors of 32-bit floats are multiplied.
    pub precision: MatmulPrecision,
    /// Dtype of the result.
    pub out: DType,
    /// A matrix of the result's layout that is added.
    pub added: Option<BufId>,
    /// A vector along the result's rows that is added, and its first element.
    pub bias: Option<(BufId, isize)>,
    /// What follows.
    pub activation: Option<Activation>,
    /// Elements to add to the three first elements, once a repetition: outer batch dimensions that don't fit into one stride.
    pub repeats: Vec<[isize; 3]>,
}

impl Product {
    /// The same product whatever buffers it works on: what an algorithm is chosen for.
    pub fn shape(&self) -> Product {
        let unplaced = |m: &Matrix| Matrix { buf: BufId(0), offset: 0, ..*m };
        Product {
            first: unplaced(&self.first),
            second: unplaced(&self.second),
            result: unplaced(&self.result),
            added: self.added.map(|_| BufId(0)),
            bias: self.bias.map(|_| (BufId(0), 0)),
            activation: self.activation.map(|a| match a {
                Activation::Gelu { .. } => Activation::Gelu { result: BufId(0), aside: BufId(0) },
                Activation::GeluGrad { .. } => Activation::GeluGrad { aside: BufId(0) },
            }),
            repeats: Vec::new(),
            ..*self
        }
    }
}

/// Results of half floats with at least so many elements are kept in their own dtype between the product and an epilogue that runs after it.
const LARGE: usize = 1 << 21;
/// Multiplications up to which a product is computed as a sum for each point.
const TINY: usize = 1 << 18;
/// Most repetitions of a product; beyond, operands are copied.
const MOST_REPEATS: usize = 16;

/// Strides of an operand or result: one a batch dimension, then the two of the matrix.
struct Strides<'a> {
    batch: &'a [isize],
    row: isize,
    column: isize,
    base: isize,
}

impl<'a> Strides<'a> {
    fn of(a: &'a Affine, rank: usize) -> Option<Self> {
        a.dynamic.is_empty().then(|| Strides { batch: &a.coeffs[..rank], row: a.coeffs[rank], column: a.coeffs[rank + 1], base: a.base })
    }
}

/// A `rows x columns` view with these strides as a column-major matrix: whether transposed, and its leading dimension.
fn column_major(rows: usize, columns: usize, row: isize, column: isize) -> Option<(bool, usize)> {
    let fits = |unit: isize, step: isize, long: usize, count: usize| {
        if (unit != 1 && long != 1) || (count != 1 && step < long.max(1) as isize) {
            return None;
        }
        Some(if count == 1 { step.max(long as isize).max(1) as usize } else { step as usize })
    };
    fits(row, column, rows, columns).map(|ld| (false, ld)).or_else(|| fits(column, row, columns, rows).map(|ld| (true, ld)))
}

/// What an epilogue is to cuBLASLt.
struct Direct<'a> {
    store: &'a Store,
    out: DType,
    added: Option<BufId>,
    bias: Option<&'a Load>,
}

/// The epilogue as the library computes it, or `None`: one store of the accumulator, perhaps with a bias along `n` and a matrix of the result's own layout added.
fn direct<'a>(k: &'a DotKernel, out_of: &dyn Fn(BufId) -> DType) -> Option<Direct<'a>> {
    let e = &k.epilogue;
    let [store] = &e.stores[..] else { return None };
    let out = out_of(store.buf);
    let fits = match k.dtype {
        DType::F64 => out == DType::F64,
        DType::F32 => out == DType::F32,
        DType::F16 | DType::BF16 => out == k.dtype || out == DType::F32,
        _ => false,
    };
    if !fits {
        return None;
    }
    let mut found = Direct { store, out, added: None, bias: None };
    let mut at = store.value;
    let rank = k.batch.len();
    loop {
        let v = e.value(at);
        match &v.inst {
            Inst::Acc => return Some(found),
            // Rounding before something is added is another result; a widening cast changes nothing.
            Inst::Cast(x) if v.dtype == DType::F32 && e.value(*x).dtype.is_float() => at = *x,
            Inst::Cast(x) if at == store.value && v.dtype == out && e.value(*x).dtype.is_float() => at = *x,
            Inst::Op(Elementwise::Add, xs) => {
                let load = |x: ValueId| load_under(e, x);
                let (next, l) = match (load(xs[0]), load(xs[1])) {
                    (None, Some(l)) => (xs[0], l),
                    (Some(l), None) => (xs[1], l),
                    _ => return None,
                };
                let along_n = l.index.coeffs.iter().enumerate().all(|(d, c)| *c == (d == rank + 1) as isize);
                let is_bias = along_n && found.bias.is_none() && k.n > 1;
                // A bias of another dtype is cast first: it is short.
                if !l.bounds.is_empty() || !l.index.dynamic.is_empty() || (out_of(l.buf) != out && !(is_bias && out_of(l.buf) == DType::F32)) {
                    return None;
                }
                if is_bias {
                    found.bias = Some(l);
                } else if l.index == store.index && found.added.is_none() {
                    found.added = Some(l.buf);
                } else {
                    return None;
                }
                at = next;
            }
            _ => return None,
        }
    }
}

/// The load that a value is, perhaps widened to f32.
fn load_under(e: &Expr, x: ValueId) -> Option<&Load> {
    match &e.value(x).inst {
        Inst::Load(n) => Some(&e.loads[*n as usize]),
        Inst::Cast(y) if e.value(x).dtype == DType::F32 && e.value(*y).dtype.is_float() => load_under(e, *y),
        // A rounded weight: what it is rounded for rounds it again.
        Inst::Cast(y) if e.value(x).dtype != DType::F64 && e.value(x).dtype.is_float() && e.value(*y).dtype == DType::F32 => match e.value(*y).inst {
            Inst::Load(n) => Some(&e.loads[n as usize]),
            _ => None,
        },
        _ => None,
    }
}

/// A vector in another dtype, in scratch memory.
fn cast_vector(l: &Load, n: usize, dtype: DType, scratch: &mut Scratch<'_>, chip: &Chip, works: &mut Vec<Work>) -> BufId {
    let from = scratch.program().buf(l.buf).dtype;
    let buf = scratch.buffer(dtype, n);
    let index = |base| Affine { base, coeffs: [1].into_iter().collect(), dynamic: Default::default() };
    let mut expr = Expr { loads: vec![Load { buf: l.buf, index: index(l.index.base), bounds: Vec::new() }], ..Expr::default() };
    let x = expr.push(Inst::Load(0), from, Level::Kept);
    let value = expr.push(Inst::Cast(x), dtype, Level::Kept);
    expr.stores.push(Store { buf, index: index(0), value });
    let nest = render::nest::Nest::new(&Fused { dims: [n].into_iter().collect(), kept: 1, expr });
    works.extend(scratch.works(&render::fused::render_nest(nest, scratch.program(), chip)));
    buf
}

/// A dense row-major index over `dims`.
fn dense(dims: &[usize]) -> Affine {
    Affine { base: 0, coeffs: kiln_ir::dims::row_major(dims), dynamic: Default::default() }
}

/// Whether the library reads both operands as they lie, and makes a dense result whose rows are the columns of ours.
pub fn is_plain(k: &DotKernel) -> bool {
    let dims: Dims = k.batch.iter().copied().chain([k.m, k.n]).collect();
    let product = arrange(k, readable(&k.lhs, k, true).as_ref(), readable(&k.rhs, k, false).as_ref(), &dense(&dims));
    product.is_some_and(|p| p.size[0] == k.n && p.batch == 1 && p.repeats.len() == 1 && k.m > 1 && k.n > 1)
}

/// A product with its activation; it [`is_plain`].
fn with_activation(k: &DotKernel, activation: Activation, scratch: &mut Scratch<'_>, chip: &Chip) -> Result<Vec<Work>, RuntimeError> {
    let dims: Dims = k.batch.iter().copied().chain([k.m, k.n]).collect();
    let mut works = Vec::new();
    let Some(mut product) = arrange(k, readable(&k.lhs, k, true).as_ref(), readable(&k.rhs, k, false).as_ref(), &dense(&dims)) else {
        return Err(RuntimeError::Unsupported("a product that cannot have an activation".into()));
    };
    (product.out, product.activation) = (k.dtype, Some(activation));
    product.result.buf = match activation {
        Activation::Gelu { result, .. } => result,
        Activation::GeluGrad { .. } => k.epilogue.stores[0].buf,
    };
    if let (Activation::Gelu { .. }, Some(l)) = (activation, k.epilogue.loads.first()) {
        product.bias = Some(match scratch.program().buf(l.buf).dtype == k.dtype {
            true => (l.buf, l.index.base),
            false => (cast_vector(l, k.n, k.dtype, scratch, chip, &mut works), 0),
        });
    }
    works.push(Work::Product(Box::new(product)));
    Ok(works)
}

/// The works of a dot. `blas`: whether cuBLASLt is there.
pub fn lower(k: &DotKernel, activation: Option<Activation>, scratch: &mut Scratch<'_>, chip: &Chip, blas: bool) -> Result<Vec<Work>, RuntimeError> {
    if let Some(activation) = activation.filter(|_| blas) {
        return with_activation(k, activation, scratch, chip);
    }
    let batch: usize = k.batch.iter().product();
    let small = k.m * k.n <= 64 * 64 && k.k <= 128 && batch <= 64;
    // One launch with its epilogue beats any tile where there is next to nothing to do, or where a matrix is read once.
    let tiny = (1..=TINY).contains(&(batch * k.m * k.n * k.k));
    let plain = k.dtype.is_float() && k.lhs.prologue.is_none() && k.rhs.prologue.is_none();
    if plain && (tiny || ((k.m == 1 || k.n == 1) && k.k >= 64)) {
        return Ok(scratch.works(&render::fused::render_nest(as_sums(k), scratch.program(), chip)));
    }
    if !blas || !k.dtype.is_float() || small || batch * k.m * k.n * k.k == 0 {
        return Ok(scratch.works(&render::dot::render(k, scratch.program())));
    }
    let mut works = Vec::new();
    let space = |a: usize, b: usize| -> Dims { k.batch.iter().copied().chain([a, b]).collect() };
    let out_of = |b: BufId| scratch.program().buf(b).dtype;
    let mut direct = direct(k, &out_of);
    // An operand that the library cannot read is copied into a dense matrix first.
    let mut lhs = readable(&k.lhs, k, true);
    let mut rhs = readable(&k.rhs, k, false);
    let dims = space(k.m, k.n);
    let plain = dense(&dims);
    let mut result = direct.as_ref().map_or(plain.clone(), |d| d.store.index.clone());
    if arrange(k, lhs.as_ref(), rhs.as_ref(), &result).is_none() {
        if column_major(k.n, k.m, result.coeffs[k.batch.len() + 1], result.coeffs[k.batch.len()]).is_none_or(|(t, _)| t)
            && column_major(k.m, k.n, result.coeffs[k.batch.len()], result.coeffs[k.batch.len() + 1]).is_none_or(|(t, _)| t)
        {
            (direct, result) = (None, plain.clone());
        }
        for (side, o, dims) in [(&mut lhs, &k.lhs, space(k.m, k.k)), (&mut rhs, &k.rhs, space(k.k, k.n))] {
            if side.is_none() {
                *side = Some(copy(o, k, &dims, scratch, chip, &mut works)?);
            }
        }
        if arrange(k, lhs.as_ref(), rhs.as_ref(), &result).is_none() && direct.is_some() {
            (direct, result) = (None, plain.clone());
        }
        if arrange(k, lhs.as_ref(), rhs.as_ref(), &result).is_none() {
            for (side, o, dims) in [(&mut lhs, &k.lhs, space(k.m, k.k)), (&mut rhs, &k.rhs, space(k.k, k.n))] {
                *side = Some(copy(o, k, &dims, scratch, chip, &mut works)?);
            }
        }
    }
    let Some(mut product) = arrange(k, lhs.as_ref(), rhs.as_ref(), &result) else {
        return Ok(scratch.works(&render::dot::render(k, scratch.program())));
    };
    product.precision = chip.precision_of(k.dtype);
    match &direct {
        Some(d) => {
            // A bias lies along the library's rows only when those are our columns.
            let turned = product.size[0] != k.n || d.store.index.coeffs[k.batch.len() + 1] != 1;
            if turned && d.bias.is_some() {
                return with_epilogue(k, &plain, lhs.as_ref(), rhs.as_ref(), scratch, chip, works);
            }
            product.result.buf = d.store.buf;
            product.out = d.out;
            product.added = d.added;
            product.bias = d.bias.map(|l| match scratch.program().buf(l.buf).dtype == d.out {
                true => (l.buf, l.index.base),
                false => (cast_vector(l, k.n, d.out, scratch, chip, &mut works), 0),
            });
            works.push(Work::Product(Box::new(product)));
            Ok(works)
        }
        None => with_epilogue(k, &plain, lhs.as_ref(), rhs.as_ref(), scratch, chip, works),
    }
}

/// A product as sums of products with the epilogue behind them. A matrix times a vector runs at the memory's speed so.
fn as_sums(k: &DotKernel) -> render::nest::Nest {
    let rank = k.batch.len();
    let sum = if k.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    // Dimensions: batch, m, n, then the summed one.
    let spread = |a: &Affine, left: bool| {
        let mut a = a.clone();
        let (first, second) = (a.coeffs[rank], a.coeffs[rank + 1]);
        a.coeffs.truncate(rank);
        a.coeffs.extend(if left { [first, 0, second] } else { [0, second, first] });
        a
    };
    let mut expr = Expr {
        loads: vec![
            Load { buf: k.lhs.buf, index: spread(&k.lhs.index, true), bounds: Vec::new() },
            Load { buf: k.rhs.buf, index: spread(&k.rhs.index, false), bounds: Vec::new() },
        ],
        ..Expr::default()
    };
    let sides = [0, 1].map(|n| {
        let x = expr.push(Inst::Load(n), k.dtype, Level::Full);
        expr.push(Inst::Cast(x), sum, Level::Full)
    });
    let product = expr.push(Inst::Op(Elementwise::Mul, sides.into_iter().collect()), sum, Level::Full);
    let total = expr.push(Inst::Reduce(kiln_ir::ReduceOp::Sum, product), sum, Level::Kept);
    let (loads, values) = (expr.loads.len() as u32, expr.values.len() as u32);
    let mut epilogue = k.epilogue.clone();
    let widen = |a: &mut Affine| a.coeffs.push(0);
    epilogue.loads.iter_mut().for_each(|l| {
        widen(&mut l.index);
        l.bounds.iter_mut().for_each(|b| widen(&mut b.index));
    });
    epilogue.stores.iter_mut().for_each(|s| {
        widen(&mut s.index);
        s.value.0 += values;
    });
    for v in &mut epilogue.values {
        if v.level == Level::Full {
            v.level = Level::Kept;
        }
        v.inst.map_operands(|x| ValueId(x.0 + values));
        match &mut v.inst {
            Inst::Load(n) => *n += loads,
            Inst::Acc => (v.inst, v.dtype) = (Inst::Cast(total), sum),
            Inst::Index(a) | Inst::Random(_, a, _) => widen(a),
            Inst::Inside(bounds) => bounds.iter_mut().for_each(|b| widen(&mut b.index)),
            Inst::Arg(_) | Inst::Const(_) | Inst::Op(..) | Inst::Cast(_) | Inst::Reduce(..) => {}
        }
    }
    expr.loads.extend(epilogue.loads);
    expr.values.extend(epilogue.values);
    expr.stores = epilogue.stores;
    let dims: Dims = k.batch.iter().copied().chain([k.m, k.n, k.k]).collect();
    let kept = dims.len() - 1;
    render::nest::Nest::new(&Fused { dims, kept, expr })
}

/// The product into scratch memory, then the epilogue as a kernel of its own.
#[allow(clippy::too_many_arguments)]
fn with_epilogue(
    k: &DotKernel,
    plain: &Affine,
    lhs: Option<&(BufId, Affine)>,
    rhs: Option<&(BufId, Affine)>,
    scratch: &mut Scratch<'_>,
    chip: &Chip,
    mut works: Vec<Work>,
) -> Result<Vec<Work>, RuntimeError> {
    let Some(mut product) = arrange(k, lhs, rhs, plain) else {
        return Ok(scratch.works(&render::dot::render(k, scratch.program())));
    };
    let dims: Dims = k.batch.iter().copied().chain([k.m, k.n]).collect();
    let points: usize = dims.iter().product();
    // A large result of half floats crosses memory as such: twice the traffic would cost more than the product's own rounding does.
    let out = if k.dtype == DType::F64 || points >= LARGE { k.dtype } else { DType::F32 };
    let buf = scratch.buffer(out, points);
    (product.precision, product.out) = (chip.precision_of(k.dtype), out);
    product.result.buf = buf;
    works.push(Work::Product(Box::new(product)));
    let mut expr = k.epilogue.clone();
    expr.loads.push(Load { buf, index: plain.clone(), bounds: Vec::new() });
    let load = Inst::Load(expr.loads.len() as u32 - 1);
    expr.values.iter_mut().filter(|v| matches!(v.inst, Inst::Acc)).for_each(|v| v.inst = load.clone());
    let kept = dims.len();
    let nest = render::nest::Nest::new(&Fused { dims, kept, expr }).merged();
    let steps = render::fused::render_nest(nest, scratch.program(), chip);
    works.extend(scratch.works(&steps));
    Ok(works)
}

/// An operand that is a plain view with strides the library can read.
fn readable(o: &DotOperand, k: &DotKernel, left: bool) -> Option<(BufId, Affine)> {
    if o.prologue.is_some() || !o.index.dynamic.is_empty() {
        return None;
    }
    let rank = k.batch.len();
    let (rows, columns) = if left { (k.m, k.k) } else { (k.k, k.n) };
    column_major(rows, columns, o.index.coeffs[rank], o.index.coeffs[rank + 1])?;
    Some((o.buf, o.index.clone()))
}

/// A dense copy of an operand, computed if it has a prologue. Batch dimensions over which it does not vary are left out.
fn copy(
    o: &DotOperand,
    k: &DotKernel,
    dims: &[usize],
    scratch: &mut Scratch<'_>,
    chip: &Chip,
    works: &mut Vec<Work>,
) -> Result<(BufId, Affine), RuntimeError> {
    let varies = |d: usize| match &o.prologue {
        None => o.index.coeffs[d] != 0,
        Some(e) => {
            e.loads.iter().any(|l| l.index.coeffs[d] != 0 || l.bounds.iter().any(|b| b.index.coeffs[d] != 0))
                || e.values.iter().any(|v| matches!(v.inst, Inst::Index(_) | Inst::Random(..) | Inst::Inside(_)))
        }
    };
    let small: Dims = dims.iter().enumerate().map(|(d, n)| if d < k.batch.len() && !varies(d) { 1 } else { *n }).collect();
    let mut index = dense(&small);
    for (d, n) in small.iter().enumerate() {
        if *n == 1 && dims[d] != 1 {
            index.coeffs[d] = 0;
        }
    }
    let buf = scratch.buffer(k.dtype, small.iter().product());
    let mut expr = match &o.prologue {
        Some(e) => e.clone(),
        None => Expr {
            loads: vec![Load { buf: o.buf, index: o.index.clone(), bounds: Vec::new() }],
            values: vec![Value { inst: Inst::Load(0), dtype: k.dtype, level: Level::Kept }],
            stores: Vec::new(),
        },
    };
    let value = ValueId(expr.values.len() as u32 - 1);
    expr.stores = vec![Store { buf, index: index.clone(), value }];
    let kept = small.len();
    let nest = render::nest::Nest::new(&Fused { dims: small, kept, expr }).merged();
    let steps = render::fused::render_nest(nest, scratch.program(), chip);
    works.extend(scratch.works(&steps));
    Ok((buf, index))
}

/// The product for operands and a result with these strides, if the library can do it.
fn arrange(k: &DotKernel, lhs: Option<&(BufId, Affine)>, rhs: Option<&(BufId, Affine)>, result: &Affine) -> Option<Product> {
    let ((lhs_buf, lhs), (rhs_buf, rhs)) = (lhs?, rhs?);
    let rank = k.batch.len();
    let (a, b, c) = (Strides::of(lhs, rank)?, Strides::of(rhs, rank)?, Strides::of(result, rank)?);
    // The library's result is column-major: ours if rows are neighbours, its transpose if columns are.
    let as_is = column_major(k.m, k.n, c.row, c.column).filter(|(t, _)| !t);
    let turned = column_major(k.n, k.m, c.column, c.row).filter(|(t, _)| !t);
    let (size, first, second, leading, swapped) = match (turned, as_is) {
        (Some((_, ld)), _) => {
            let first = column_major(k.n, k.k, b.column, b.row)?;
            let second = column_major(k.k, k.m, a.column, a.row)?;
            ([k.n, k.m, k.k], first, second, ld, true)
        }
        (None, Some((_, ld))) => {
            let first = column_major(k.m, k.k, a.row, a.column)?;
            let second = column_major(k.k, k.n, b.row, b.column)?;
            ([k.m, k.n, k.k], first, second, ld, false)
        }
        (None, None) => return None,
    };
    // Batch dimensions: the innermost that walk as one become the stride, the others are repeated.
    let live: Vec<usize> = (0..rank).filter(|d| k.batch[*d] != 1).collect();
    let strides = [a.batch, b.batch, c.batch];
    let (mut batch, mut step, mut taken) = (1usize, [0isize; 3], 0);
    for d in live.iter().rev() {
        let here = [0, 1, 2].map(|o| strides[o][*d]);
        if taken == 0 {
            (batch, step) = (k.batch[*d], here);
        } else if [0, 1, 2].iter().all(|o| here[*o] == step[*o] * batch as isize) {
            batch *= k.batch[*d];
        } else {
            break;
        }
        taken += 1;
    }
    let outer = &live[..live.len() - taken];
    if outer.iter().map(|d| k.batch[*d]).product::<usize>() > MOST_REPEATS {
        return None;
    }
    let mut repeats = vec![[0isize; 3]];
    for d in outer {
        let all = std::mem::take(&mut repeats);
        for i in 0..k.batch[*d] as isize {
            repeats.extend(all.iter().map(|r| [0, 1, 2].map(|o| r[o] + i * strides[o][*d])));
        }
    }
    let left = |(t, ld): (bool, usize)| Matrix { buf: *lhs_buf, offset: a.base, transposed: t, leading: ld, stride: step[0] };
    let right = |(t, ld): (bool, usize)| Matrix { buf: *rhs_buf, offset: b.base, transposed: t, leading: ld, stride: step[1] };
    let (first, second) = if swapped { (right(first), left(second)) } else { (left(first), right(second)) };
    if swapped {
        repeats.iter_mut().for_each(|r| r.swap(0, 1));
    }
    let result = Matrix { buf: BufId(0), offset: c.base, transposed: false, leading, stride: step[2] };
    Some(Product {
        size,
        batch,
        first,
        second,
        result,
        dtype: k.dtype,
        precision: MatmulPrecision::Highest,
        out: k.dtype,
        added: None,
        bias: None,
        activation: None,
        repeats,
    })
}
