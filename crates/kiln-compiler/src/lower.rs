//! Lowering of expressions: values are pulled from the roots of a kernel through views down to loads, each at affine coordinates of the kernel's space.
use alloc::vec::Vec;

use hashbrown::HashMap;
use kiln_ir::dims::numel;
use kiln_ir::{Affine, Bound, BufId, DType, Elementwise, Expr, Graph, Inst, Load, NodeId, Op, Store, ValueId};
use kiln_ir::{expr::Level, kernel::Fused};
use smallvec::SmallVec;

use crate::index::{Coord, Need, Space};
use crate::schedule::Schedule;

/// What the lowering of any kernel needs to know.
pub struct Context<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The kernels to be.
    pub schedule: &'a Schedule,
    /// Buffer of each stored canonical node.
    pub bufs: &'a [Option<BufId>],
}

/// Follows views (not padding) from a place in a node to the place in the node below them.
pub fn resolve_view(graph: &Graph, node: NodeId, at: &Coord, space: &Space) -> Result<(NodeId, Coord), Need> {
    let (mut n, mut c) = (node, at.clone());
    while graph.node(n).op.is_view() {
        c = through_view(graph, n, &c, space)?;
        n = graph.node(n).inputs[0];
    }
    Ok((n, c))
}

/// The place in the operand of a view.
pub fn through_view(graph: &Graph, n: NodeId, c: &Coord, space: &Space) -> Result<Coord, Need> {
    let node = graph.node(n);
    let inner = &graph.node(node.inputs[0]).dims;
    match &node.op {
        Op::Reshape => Ok(c.through_reshape(&node.dims, inner, space)),
        Op::Permute(perm) => c.through_permute(&node.dims, perm, space),
        Op::Expand => c.through_expand(&node.dims, inner, space),
        Op::Slice(axes) => {
            let starts: SmallVec<[Affine; 4]> = starts(graph, &node.inputs[1..], space.dims.len())?;
            c.through_slice(&node.dims, axes, &starts, space)
        }
        Op::Window(windows) => c.through_window(&node.dims, windows, space),
        other => unreachable!("{} is not a view", other.name()),
    }
}

/// Slice starts as affine values.
pub fn starts(graph: &Graph, nodes: &[NodeId], rank: usize) -> Result<SmallVec<[Affine; 4]>, Need> {
    nodes
        .iter()
        .map(|s| {
            let mut a = Affine::zero(rank);
            match graph.node(*s).op {
                Op::Const(w) => a.base = w as i64 as isize,
                Op::Arg(n) => a.dynamic.push((n, 1)),
                _ => return Err(Need::NotAffine),
            }
            Ok(a)
        })
        .collect()
}

/// A node whose coordinates are not affine here must be in memory, to be read by element number; splits are passed on.
fn or_store(need: Need, n: NodeId) -> Need {
    match need {
        Need::NotAffine => Need::Materialise(n),
        Need::Split { .. } | Need::Materialise(_) => need,
    }
}

/// Builds one expression.
pub struct Emit<'a> {
    cx: &'a Context<'a>,
    /// The group whose members are computed here.
    group: Option<u32>,
    /// The contraction whose result is at hand, in an epilogue.
    acc: Option<NodeId>,
    /// The iteration space.
    pub space: Space,
    full: Affine,
    kept: Affine,
    /// The expression so far.
    pub expr: Expr,
    memo: HashMap<(NodeId, Affine, Vec<Bound>), ValueId>,
    loads: HashMap<Load, ValueId>,
}

impl<'a> Emit<'a> {
    /// An empty expression over a space.
    pub fn new(cx: &'a Context<'a>, space: Space, group: Option<u32>, acc: Option<NodeId>) -> Self {
        let (full, kept) = (space.identity(true), space.identity(false));
        Emit { cx, group, acc, space, full, kept, expr: Expr::default(), memo: HashMap::new(), loads: HashMap::new() }
    }

    fn rank(&self) -> usize {
        self.space.dims.len()
    }

    /// The identity place of a node of the group: over all points, or over the kept ones.
    pub fn identity(&self, n: NodeId) -> Coord {
        let points: usize = self.space.dims.iter().map(|d| d.size).product();
        let full = numel(&self.cx.graph.node(n).dims) == points;
        Coord::flat(if full { self.full.clone() } else { self.kept.clone() })
    }

    fn level_of(&self, a: &Affine) -> Level {
        let mut level = Level::Uniform;
        for (c, d) in a.coeffs.iter().zip(&self.space.dims) {
            if *c != 0 && d.size != 1 {
                level = level.max(if d.reduced { Level::Full } else { Level::Kept });
            }
        }
        level
    }

    fn level_of_bounds(&self, bounds: &[Bound]) -> Level {
        bounds.iter().map(|b| self.level_of(&b.index)).max().unwrap_or(Level::Uniform)
    }

    fn level(&self, v: ValueId) -> Level {
        self.expr.value(v).level
    }

    /// The value of node `n` at a place.
    pub fn value(&mut self, n: NodeId, at: &Coord) -> Result<ValueId, Need> {
        let graph = self.cx.graph;
        let node = graph.node(n);
        if self.cx.schedule.uniform[n.index()] {
            return self.uniform(n);
        }
        if node.op.is_view() {
            // Only a view that cannot be indexed is read from its own buffer: its group may come after this one.
            let below = match through_view(graph, n, at, &self.space) {
                Ok(below) => below,
                Err(Need::NotAffine) => {
                    let Some(buf) = self.cx.bufs[n.index()] else { return Err(Need::Materialise(n)) };
                    return Ok(self.load(buf, at.flatten(&node.dims, self.rank()), at.bounds.clone(), node.dtype));
                }
                Err(need) => return Err(need),
            };
            return self.value(node.inputs[0], &below);
        }
        let flat = at.flatten(&node.dims, self.rank());
        let key = (n, flat, at.bounds.clone());
        if let Some(v) = self.memo.get(&key) {
            return Ok(*v);
        }
        let v = self.compute(n, at, &key.1)?;
        self.memo.insert(key, v);
        Ok(v)
    }

    fn compute(&mut self, n: NodeId, at: &Coord, flat: &Affine) -> Result<ValueId, Need> {
        let node = self.cx.graph.node(n);
        if self.acc == Some(n) {
            let whole = *flat == self.full && at.bounds.is_empty();
            return if whole { Ok(self.expr.push(Inst::Acc, node.dtype, Level::Kept)) } else { Err(Need::NotAffine) };
        }
        let here = self.group.is_some() && self.cx.schedule.group_of[n.index()] == self.group;
        if !here && let Some(buf) = self.cx.bufs[n.index()] {
            return Ok(self.load(buf, flat.clone(), at.bounds.clone(), node.dtype));
        }
        match &node.op {
            Op::Elementwise(e) => {
                let mut args = SmallVec::<[ValueId; 3]>::new();
                for &i in &node.inputs {
                    args.push(self.value(i, at)?);
                }
                Ok(self.op(*e, args, node.dtype))
            }
            Op::Cast => {
                let x = self.value(node.inputs[0], at)?;
                let level = self.level(x);
                Ok(self.expr.push(Inst::Cast(x), node.dtype, level))
            }
            Op::Pad(pads) => {
                let inner = &self.cx.graph.node(node.inputs[0]).dims;
                let (below, bounds) = at.through_pad(&node.dims, inner, pads, &self.space).map_err(|e| or_store(e, n))?;
                let x = self.value(node.inputs[0], &below)?;
                // A load gives 0 out of bounds by itself.
                let zero = matches!(self.cx.graph.node(node.inputs[1]).op, Op::Const(0));
                let bounds = self.needed(bounds);
                if bounds.is_empty() || (zero && matches!(self.expr.value(x).inst, Inst::Load(_))) {
                    return Ok(x);
                }
                let fill = self.value(node.inputs[1], at)?;
                let level = self.level_of_bounds(&bounds);
                let inside = self.expr.push(Inst::Inside(bounds), DType::Bool, level);
                Ok(self.op(Elementwise::Where, SmallVec::from_slice(&[inside, x, fill]), node.dtype))
            }
            Op::Reduce { op, .. } if here => {
                if *flat != self.kept || !at.bounds.is_empty() {
                    return Err(Need::Materialise(n));
                }
                let x = self.value(node.inputs[0], &Coord::flat(self.full.clone()))?;
                Ok(self.expr.push(Inst::Reduce(*op, x), node.dtype, Level::Kept))
            }
            Op::Iota { axis } => {
                let axes = at.axes(&node.dims, &self.space).map_err(|e| or_store(e, n))?;
                let index = axes[*axis].clone();
                let level = self.level_of(&index);
                Ok(self.expr.push(Inst::Index(index), node.dtype, level))
            }
            Op::Random(kind) => {
                let seed = self.value(node.inputs[0], at)?;
                let level = self.level_of(flat);
                Ok(self.expr.push(Inst::Random(*kind, flat.clone(), seed), node.dtype, level))
            }
            _ => Err(Need::Materialise(n)),
        }
    }

    fn op(&mut self, e: Elementwise, args: SmallVec<[ValueId; 3]>, dtype: DType) -> ValueId {
        let level = args.iter().map(|a| self.level(*a)).max().unwrap_or(Level::Uniform);
        self.expr.push(Inst::Op(e, args), dtype, level)
    }

    fn uniform(&mut self, n: NodeId) -> Result<ValueId, Need> {
        let key = (n, Affine::default(), Vec::new());
        if let Some(v) = self.memo.get(&key) {
            return Ok(*v);
        }
        let node = self.cx.graph.node(n);
        let v = match &node.op {
            Op::Arg(k) => self.expr.push(Inst::Arg(*k), node.dtype, Level::Uniform),
            Op::Const(w) => self.expr.push(Inst::Const(*w), node.dtype, Level::Uniform),
            Op::Elementwise(e) => {
                let args = node.inputs.iter().map(|i| self.uniform(*i)).collect::<Result<_, _>>()?;
                self.expr.push(Inst::Op(*e, args), node.dtype, Level::Uniform)
            }
            Op::Cast => {
                let x = self.uniform(node.inputs[0])?;
                self.expr.push(Inst::Cast(x), node.dtype, Level::Uniform)
            }
            other => unreachable!("{} is not uniform", other.name()),
        };
        self.memo.insert(key, v);
        Ok(v)
    }

    /// The bounds that some point of the space breaks.
    fn needed(&self, mut bounds: Vec<Bound>) -> Vec<Bound> {
        bounds.retain(|b| {
            if !b.index.dynamic.is_empty() {
                return true;
            }
            let (mut lo, mut hi) = (b.index.base, b.index.base);
            for (c, d) in b.index.coeffs.iter().zip(&self.space.dims) {
                let reach = c * (d.size as isize - 1).max(0);
                if reach < 0 { lo += reach } else { hi += reach }
            }
            lo < 0 || hi >= b.extent as isize
        });
        bounds.dedup();
        bounds
    }

    fn load(&mut self, buf: BufId, index: Affine, bounds: Vec<Bound>, dtype: DType) -> ValueId {
        let bounds = self.needed(bounds);
        let load = Load { buf, index, bounds };
        if let Some(v) = self.loads.get(&load) {
            return *v;
        }
        let level = self.level_of(&load.index).max(self.level_of_bounds(&load.bounds));
        self.expr.loads.push(load.clone());
        let v = self.expr.push(Inst::Load(self.expr.loads.len() as u32 - 1), dtype, level);
        self.loads.insert(load, v);
        v
    }

    /// Stores a value. A value that varies less than the place it is stored at is spread by a cast to its own dtype of the place's level.
    pub fn store(&mut self, buf: BufId, index: Affine, value: ValueId) {
        let level = self.level_of(&index);
        let value = if self.level(value) < level {
            let dtype = self.expr.value(value).dtype;
            self.expr.push(Inst::Cast(value), dtype, level)
        } else {
            value
        };
        self.expr.stores.push(Store { buf, index, value });
    }

    /// Drops values that no store (and not `result`) needs.
    pub fn prune(&mut self, result: Option<ValueId>) {
        let expr = &mut self.expr;
        let mut used = alloc::vec![false; expr.values.len()];
        for s in &expr.stores {
            used[s.value.index()] = true;
        }
        if let Some(r) = result {
            used[r.index()] = true;
        }
        for k in (0..expr.values.len()).rev() {
            if used[k] {
                let inst = expr.values[k].inst.clone();
                inst.operands(|x| used[x.index()] = true);
            }
        }
        let mut load_used = alloc::vec![u32::MAX; expr.loads.len()];
        let mut map = alloc::vec![ValueId(u32::MAX); expr.values.len()];
        let mut loads = Vec::new();
        let mut values = Vec::with_capacity(expr.values.len());
        for (k, mut v) in core::mem::take(&mut expr.values).into_iter().enumerate() {
            if !used[k] {
                continue;
            }
            v.inst.map_operands(|x| map[x.index()]);
            if let Inst::Load(l) = &mut v.inst {
                if load_used[*l as usize] == u32::MAX {
                    load_used[*l as usize] = loads.len() as u32;
                    loads.push(expr.loads[*l as usize].clone());
                }
                *l = load_used[*l as usize];
            }
            map[k] = ValueId(values.len() as u32);
            values.push(v);
        }
        expr.values = values;
        expr.loads = loads;
        for s in &mut expr.stores {
            s.value = map[s.value.index()];
        }
    }

    /// The finished kernel: kept dimensions first, dimensions of size 1 dropped, neighbours merged where every access allows it.
    pub fn finish(mut self) -> Fused {
        self.prune(None);
        let mut order: Vec<usize> = (0..self.rank()).filter(|d| !self.space.dims[*d].reduced && self.space.dims[*d].size != 1).collect();
        let kept = order.len();
        order.extend((0..self.rank()).filter(|d| self.space.dims[*d].reduced && self.space.dims[*d].size != 1));
        let mut fused = Fused { dims: order.iter().map(|d| self.space.dims[*d].size).collect(), kept, expr: self.expr };
        for_each_affine(&mut fused.expr, |a| a.coeffs = order.iter().map(|d| a.coeffs[*d]).collect());
        merge_dims(&mut fused);
        fused
    }
}

/// Calls `f` with every affine function of an expression.
pub fn for_each_affine(expr: &mut Expr, mut f: impl FnMut(&mut Affine)) {
    for l in &mut expr.loads {
        f(&mut l.index);
        l.bounds.iter_mut().for_each(|b| f(&mut b.index));
    }
    for s in &mut expr.stores {
        f(&mut s.index);
    }
    for v in &mut expr.values {
        match &mut v.inst {
            Inst::Index(a) | Inst::Random(_, a, _) => f(a),
            Inst::Inside(bounds) => bounds.iter_mut().for_each(|b| f(&mut b.index)),
            Inst::Load(_) | Inst::Arg(_) | Inst::Const(_) | Inst::Op(..) | Inst::Cast(_) | Inst::Reduce(..) | Inst::Acc => {}
        }
    }
}

fn merge_dims(fused: &mut Fused) {
    let mut d = 0;
    while d + 1 < fused.dims.len() {
        let same_kind = (d + 1 < fused.kept) || d >= fused.kept;
        let inner = fused.dims[d + 1] as isize;
        let mut fits = same_kind;
        for_each_affine(&mut fused.expr, |a| fits &= a.coeffs[d] == a.coeffs[d + 1] * inner);
        if fits {
            fused.dims[d] *= fused.dims[d + 1];
            fused.dims.remove(d + 1);
            for_each_affine(&mut fused.expr, |a| {
                a.coeffs.remove(d);
            });
            if d < fused.kept {
                fused.kept -= 1;
            }
        } else {
            d += 1;
        }
    }
}

/// Emits something over a space, splitting dimensions as it asks.
pub fn with_splits<T>(mut space: Space, mut f: impl FnMut(Space) -> Result<T, Need>) -> Result<T, Need> {
    loop {
        match f(space.clone()) {
            Err(Need::Split { dim, inner }) => space.split(dim, inner),
            other => return other,
        }
    }
}

/// Whether a node is a broadcast of the constant 0.
pub fn is_zero(graph: &Graph, mut n: NodeId) -> bool {
    while matches!(graph.node(n).op, Op::Expand | Op::Reshape) {
        n = graph.node(n).inputs[0];
    }
    matches!(graph.node(n).op, Op::Const(0))
}

/// Unit coordinates: axis `a` of an operand of these sizes follows dimension `dims[a]` of the space (nothing, where the operand has size 1).
pub fn unit_axes(operand: &[usize], follows: &[usize], rank: usize) -> Coord {
    let axes = operand
        .iter()
        .zip(follows)
        .map(|(&size, &d)| {
            let mut a = Affine::zero(rank);
            if size != 1 {
                a.coeffs[d] = 1;
            }
            a
        })
        .collect();
    Coord { at: crate::index::At::Axes(axes), bounds: Vec::new() }
}

/// A strided read of an operand over a space: its buffer and element index.
pub fn strided(cx: &Context<'_>, operand: NodeId, at: &Coord, space: &Space) -> Result<(BufId, Affine), Need> {
    // The first node down the views that is in memory.
    let rank = space.dims.len();
    let (mut n, mut c) = (operand, at.clone());
    loop {
        if let Some(buf) = cx.bufs[n.index()] {
            return Ok((buf, c.flatten(&cx.graph.node(n).dims, rank)));
        }
        if !cx.graph.node(n).op.is_view() {
            return Err(Need::Materialise(n));
        }
        c = through_view(cx.graph, n, &c, space).map_err(|_| Need::Materialise(n))?;
        n = cx.graph.node(n).inputs[0];
    }
}
