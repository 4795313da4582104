//! The loop nest of a fused kernel as its renderings see it: dimensions put in a useful order, and how each access walks the vector dimension.
use kiln_ir::expr::Level;
use kiln_ir::kernel::Fused;
use kiln_ir::{Affine, DType, Dims, Expr, IDims, Inst, Program};

/// A fused kernel whose dimensions may have been put in another order.
#[derive(Clone, Debug)]
pub struct Nest {
    /// Sizes, kept ones first.
    pub dims: Dims,
    /// Number of kept dimensions.
    pub kept: usize,
    /// What is computed.
    pub expr: Expr,
    /// The row-major position of a reduced point in the kernel's own order: what `argmax` counts.
    pub position: Affine,
}

/// How an access moves along the vector dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Neighbouring, aligned elements: one wide access.
    Vector,
    /// The same element.
    Same,
    /// Anything else: element by element.
    Single,
}

impl Nest {
    /// The nest of a kernel in its own order.
    pub fn new(f: &Fused) -> Self {
        let mut position = Affine::zero(f.dims.len());
        let mut step = 1;
        for d in (f.kept..f.dims.len()).rev() {
            position.coeffs[d] = step;
            step *= f.dims[d] as isize;
        }
        let nest = Nest { dims: f.dims.clone(), kept: f.kept, expr: f.expr.clone(), position };
        if nest.kept == nest.dims.len() && nest.reduces() { nest.with_unit() } else { nest }
    }

    /// The same nest with one more dimension, of size 1, at the end.
    pub fn with_unit(mut self) -> Self {
        self.dims.push(1);
        let rank = self.dims.len();
        self.expr.for_each_affine(|a| a.coeffs.resize(rank, 0));
        self.position.coeffs.resize(rank, 0);
        self
    }

    /// The same nest with neighbouring dimensions merged where every access walks them as one; only for nests without reduced dimensions.
    pub fn merged(mut self) -> Self {
        let mut d = 0;
        while d + 1 < self.dims.len() {
            let inner = self.dims[d + 1] as isize;
            let (unit, mut together) = (self.dims[d] == 1 || inner == 1, true);
            self.expr.for_each_affine(|a| together &= a.coeffs[d] == a.coeffs[d + 1] * inner);
            if !unit && !together {
                d += 1;
                continue;
            }
            let gone = if unit && inner == 1 { d + 1 } else { d };
            self.expr.for_each_affine(|a| {
                a.coeffs.remove(gone);
            });
            self.position.coeffs.remove(gone);
            let size = self.dims[d] * self.dims[d + 1];
            self.dims.remove(d + 1);
            self.dims[d] = size;
            self.kept -= 1;
        }
        self
    }

    /// The same nest with dimension `order[d]` in place `d`.
    fn ordered(mut self, order: &[usize]) -> Self {
        let put = |a: &mut Affine| a.coeffs = order.iter().map(|d| a.coeffs[*d]).collect::<IDims>();
        self.expr.for_each_affine(put);
        let put = |a: &mut Affine| a.coeffs = order.iter().map(|d| a.coeffs[*d]).collect::<IDims>();
        put(&mut self.position);
        self.dims = order.iter().map(|d| self.dims[*d]).collect();
        self
    }

    /// Puts a dimension last of its kind (kept or reduced).
    pub fn with_last(self, dim: usize) -> Self {
        let (kept, len) = (self.kept, self.dims.len());
        let end = if dim < kept { kept } else { len };
        let start = if dim < kept { 0 } else { kept };
        let mut order: Vec<usize> = (0..len).collect();
        order.remove(dim);
        order.insert(end - 1, dim);
        debug_assert!(start <= dim);
        self.ordered(&order)
    }

    /// Number of kept points.
    pub fn kept_points(&self) -> usize {
        self.dims[..self.kept].iter().product()
    }

    /// Number of reduced points of each kept point.
    pub fn reduced_points(&self) -> usize {
        self.dims[self.kept..].iter().product()
    }

    /// Whether anything is reduced.
    pub fn reduces(&self) -> bool {
        self.expr.values.iter().any(|v| matches!(v.inst, Inst::Reduce(..)))
    }

    /// Bytes of the elements that all points of the widest accesses touch along a dimension with step 1, by dimension: how much is gained by walking it with
    /// neighbouring threads. Only accesses at the full level count.
    pub fn weight(&self, program: &Program, dim: usize) -> usize {
        let full = |level: Level| level == Level::Full || self.kept == self.dims.len();
        let loads = self.expr.values.iter().filter(|v| full(v.level)).filter_map(|v| match &v.inst {
            Inst::Load(n) => Some((&self.expr.loads[*n as usize].index, self.expr.loads[*n as usize].buf)),
            _ => None,
        });
        let stores = self.expr.stores.iter().filter(|s| full(self.expr.value(s.value).level)).map(|s| (&s.index, s.buf));
        loads.chain(stores).filter(|(a, _)| a.coeffs[dim] == 1).map(|(a, buf)| program.buf(buf).dtype.size() * self.extent(a)).sum()
    }

    /// Number of points over which an access varies.
    fn extent(&self, a: &Affine) -> usize {
        a.coeffs.iter().zip(&self.dims).map(|(c, n)| if *c == 0 { 1 } else { *n }).product()
    }

    /// How load `n` moves along `dim` for vectors of `v`.
    pub fn load_access(&self, n: u32, dim: usize, v: usize) -> Access {
        let l = &self.expr.loads[n as usize];
        if l.bounds.is_empty() {
            return self.access(&l.index, dim, v);
        }
        let same = l.index.coeffs[dim] == 0 && l.bounds.iter().all(|b| b.index.coeffs[dim] == 0);
        if same { Access::Same } else { Access::Single }
    }

    /// How an index moves along `dim` for vectors of `v`.
    pub fn access(&self, a: &Affine, dim: usize, v: usize) -> Access {
        let v = v as isize;
        let aligned = a.base % v == 0
            && a.dynamic.iter().all(|(_, m)| m % v == 0)
            && (0..self.dims.len()).all(|d| d == dim || self.dims[d] == 1 || a.coeffs[d] % v == 0);
        match a.coeffs[dim] {
            1 if aligned => Access::Vector,
            0 => Access::Same,
            _ => Access::Single,
        }
    }

    /// The longest useful vector along `dim`: 16 bytes of the narrowest neighbouring access, at most `most` elements, dividing the dimension.
    pub fn vector(&self, program: &Program, dim: usize, most: usize) -> usize {
        let loads = self.expr.loads.iter().map(|l| (&l.index, l.buf));
        let stores = self.expr.stores.iter().map(|s| (&s.index, s.buf));
        let narrow = loads.chain(stores).filter(|(a, _)| a.coeffs[dim] == 1).map(|(_, b)| program.buf(b).dtype.size()).min();
        let mut v = narrow.map_or(1, |size| (16 / size).min(most)).max(1);
        let pays = |v: usize| {
            (0..self.expr.loads.len()).any(|n| self.load_access(n as u32, dim, v) == Access::Vector)
                || self.expr.stores.iter().any(|s| self.access(&s.index, dim, v) == Access::Vector)
        };
        while v > 1 && (!self.dims[dim].is_multiple_of(v) || !pays(v)) {
            v /= 2;
        }
        v
    }

    /// Bytes of the accumulator of each reduction.
    pub fn accumulator(&self, k: usize) -> usize {
        let Inst::Reduce(op, x) = self.expr.values[k].inst else { return 0 };
        let size = match self.expr.value(x).dtype {
            DType::F16 | DType::BF16 => 4,
            other => other.size(),
        };
        if op.is_arg() { 16 } else { size }
    }
}

/// Visits the affine functions of an expression.
trait Affines {
    /// Calls `f` with each.
    fn for_each_affine(&mut self, f: impl FnMut(&mut Affine));
}

impl Affines for Expr {
    fn for_each_affine(&mut self, mut f: impl FnMut(&mut Affine)) {
        for l in &mut self.loads {
            f(&mut l.index);
            l.bounds.iter_mut().for_each(|b| f(&mut b.index));
        }
        for v in &mut self.values {
            match &mut v.inst {
                Inst::Index(a) | Inst::Random(_, a, _) => f(a),
                Inst::Inside(bounds) => bounds.iter_mut().for_each(|b| f(&mut b.index)),
                Inst::Load(_) | Inst::Arg(_) | Inst::Const(_) | Inst::Op(..) | Inst::Cast(_) | Inst::Reduce(..) | Inst::Acc => {}
            }
        }
        self.stores.iter_mut().for_each(|s| f(&mut s.index));
    }
}
