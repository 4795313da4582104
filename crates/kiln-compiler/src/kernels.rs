//! From groups to kernels: each group's roots become stores, each structural op its kernel family.
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::dims::channels_first;
use kiln_ir::kernel::*;
use kiln_ir::op::{PoolAttrs, WindowAxis};
use kiln_ir::{Affine, BufId, BufSpec, DType, Expr, IDims, Kernel, Node, NodeId, Op, Place};
use smallvec::{SmallVec, smallvec};

use crate::groups::{Group, Kind};
use crate::index::{Need, Space};
use crate::lower::{Context, Emit, is_zero, resolve_view, starts, strided, unit_axes, with_splits};
use crate::relation::canonical;
use crate::schedule::{Lessons, is_pointwise};

/// The kernels of one group, in the order they must run.
pub struct Unit {
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// First node of the group: the order of recording.
    pub first: NodeId,
}

/// Buffers and kernels of a schedule.
pub struct Lowered {
    /// Every buffer; places are not decided yet, except for inputs.
    pub bufs: Vec<BufSpec>,
    /// Buffer of each stored node.
    pub buf_of: Vec<Option<BufId>>,
    /// Kernels by group.
    pub units: Vec<Unit>,
}

/// Lowers every group. What cannot be expressed comes back as lessons for the next schedule.
pub fn lower(graph: &kiln_ir::Graph, schedule: &crate::schedule::Schedule, lessons: &mut Lessons) -> Option<Lowered> {
    let mut bufs = Vec::new();
    let mut buf_of = vec![None; graph.nodes.len()];
    for (k, node) in graph.nodes.iter().enumerate() {
        let input = match node.op {
            Op::Input(i) => Some(i),
            _ => None,
        };
        if schedule.stored[k] || input.is_some() {
            buf_of[k] = Some(BufId(bufs.len() as u32));
            bufs.push(BufSpec { dtype: node.dtype, len: kiln_ir::dims::numel(&node.dims), place: input.map_or(Place::Unused, Place::Input) });
        }
    }
    let cx = Context { graph, schedule, bufs: &buf_of };
    let mut units = Vec::new();
    let mut learned = false;
    for (id, group) in schedule.groups.alive() {
        let roots: SmallVec<[NodeId; 4]> = group.members.iter().copied().filter(|m| buf_of[m.index()].is_some()).collect();
        let mut builder = Builder { cx: &cx, bufs: &mut bufs, id, group, roots };
        match builder.build() {
            Ok(kernels) if kernels.is_empty() => {}
            Ok(kernels) => units.push(Unit { kernels, first: group.members[0] }),
            Err(need) => {
                learned = true;
                match (need, group.kind) {
                    (Need::Materialise(n), _) if !schedule.stored[canonical(graph, n).index()] => {
                        lessons.store.insert(canonical(graph, n));
                    }
                    // An epilogue's operands could not be indexed: keep its members out of contractions.
                    (_, Kind::Contract(_)) => {
                        lessons.no_epilogue.extend(group.members[1..].iter().copied());
                    }
                    // A value is needed in two orders at once: compute the members one by one.
                    (_, Kind::Fused) if !lessons.alone.contains(&group.members[0]) => {
                        lessons.alone.extend(group.members.iter().copied());
                    }
                    (need, _) => panic!("the compiler cannot lower {:?}: {need:?}\n{}", group.members, graph.print()),
                }
            }
        }
    }
    (!learned).then_some(Lowered { bufs, buf_of, units })
}

struct Builder<'a, 'b> {
    cx: &'a Context<'a>,
    bufs: &'b mut Vec<BufSpec>,
    id: u32,
    group: &'a Group,
    roots: SmallVec<[NodeId; 4]>,
}

impl Builder<'_, '_> {
    fn node(&self, n: NodeId) -> &Node {
        self.cx.graph.node(n)
    }

    fn build(&mut self) -> Result<Vec<Kernel>, Need> {
        match self.group.kind {
            Kind::Fused if self.roots.is_empty() => Ok(Vec::new()),
            Kind::Fused => self.fused(),
            Kind::Contract(n) => self.contraction(n).map(|k| vec![k]),
            Kind::Opaque(n) => self.opaque(n),
        }
    }

    /// The buffer of a stored node, or a fresh one for a result that is computed but not wanted.
    fn result(&mut self, n: NodeId) -> BufId {
        match self.cx.bufs[n.index()] {
            Some(b) => b,
            None => {
                let node = self.cx.graph.node(n);
                self.bufs.push(BufSpec { dtype: node.dtype, len: kiln_ir::dims::numel(&node.dims), place: Place::Unused });
                BufId(self.bufs.len() as u32 - 1)
            }
        }
    }

    /// The buffer of result `i` of a node, if anybody wants it.
    fn other_result(&self, n: NodeId, i: u32) -> Option<BufId> {
        let nodes = &self.cx.graph.nodes;
        (0..nodes.len()).find(|&k| nodes[k].op == Op::Get(i) && nodes[k].inputs[0] == n).and_then(|k| self.cx.bufs[k])
    }

    fn dense(&self, operand: NodeId) -> Result<BufId, Need> {
        let own = canonical(self.cx.graph, operand);
        self.cx.bufs[own.index()].ok_or(Need::Materialise(own))
    }

    fn fused(&mut self) -> Result<Vec<Kernel>, Need> {
        let space = match self.group.reduction {
            Some(r) => {
                let Op::Reduce { axes, .. } = self.node(r).op else { unreachable!("a group's reduction is a reduction") };
                Space::reducing(&self.node(self.node(r).inputs[0]).dims, axes)
            }
            None => Space::kept(&self.node(self.roots[0]).dims),
        };
        let kernel = with_splits(space, |space| {
            let mut emit = Emit::new(self.cx, space, Some(self.id), None);
            // Members in order, so that long chains don't recurse.
            for &m in &self.group.members {
                if is_pointwise(&self.node(m).op) || matches!(self.node(m).op, Op::Reduce { .. }) {
                    let at = emit.identity(m);
                    emit.value(m, &at)?;
                }
            }
            for &r in &self.roots {
                let at = emit.identity(r);
                let v = emit.value(r, &at)?;
                let crate::index::At::Flat(index) = at.at else { unreachable!("identities are flat") };
                emit.store(self.cx.bufs[r.index()].expect("roots are stored"), index, v);
            }
            Ok(Kernel::Fused(emit.finish()))
        })?;
        Ok(vec![kernel])
    }

    /// An epilogue over the dense result of sizes `dims`.
    fn epilogue(&mut self, n: NodeId, dims: &[usize]) -> Result<Expr, Need> {
        let mut emit = Emit::new(self.cx, Space::kept(dims), Some(self.id), Some(n));
        for &m in &self.group.members {
            let at = emit.identity(m);
            emit.value(m, &at)?;
        }
        for &r in &self.roots {
            let at = emit.identity(r);
            let v = emit.value(r, &at)?;
            let crate::index::At::Flat(index) = at.at else { unreachable!("identities are flat") };
            emit.store(self.cx.bufs[r.index()].expect("roots are stored"), index, v);
        }
        emit.prune(None);
        Ok(emit.expr)
    }

    fn contraction(&mut self, n: NodeId) -> Result<Kernel, Need> {
        let node = self.node(n).clone();
        let epilogue = self.epilogue(n, &node.dims)?;
        let dtype = self.node(node.inputs[0]).dtype;
        let conv = |mode, attrs: &kiln_ir::op::ConvAttrs, x: &[usize], w: &[usize], y: &[usize]| -> Result<Kernel, Need> {
            let [x, w, y] = [x, w, y].map(|dims| if attrs.channels_last { channels_first(dims) } else { dims.into() });
            Ok(Kernel::Conv(Box::new(ConvKernel {
                mode,
                attrs: attrs.clone(),
                x,
                w,
                y,
                a: self.dense(node.inputs[0])?,
                b: self.dense(node.inputs[1])?,
                dtype,
                epilogue: epilogue.clone(),
            })))
        };
        let (a, b) = (&self.node(node.inputs[0]).dims, &self.node(node.inputs[1]).dims);
        match &node.op {
            Op::Conv(attrs) => conv(ConvMode::Forward, attrs, a, b, &node.dims),
            Op::ConvInputGrad(attrs) => conv(ConvMode::InputGrad, attrs, &node.dims, b, a),
            Op::ConvWeightGrad(attrs) => conv(ConvMode::WeightGrad, attrs, a, &node.dims, b),
            Op::Dot => {
                let r = node.dims.len();
                let (m, k, cols) = (a[r - 2], a[r - 1], b[r - 1]);
                let batch = node.dims[..r - 2].into();
                Ok(Kernel::Dot(Box::new(DotKernel {
                    lhs: self.dot_operand(node.inputs[0], &node.dims[..r - 2], [m, k])?,
                    rhs: self.dot_operand(node.inputs[1], &node.dims[..r - 2], [k, cols])?,
                    batch,
                    m,
                    n: cols,
                    k,
                    dtype,
                    epilogue,
                })))
            }
            other => unreachable!("{} is not a contraction", other.name()),
        }
    }

    fn dot_operand(&self, operand: NodeId, batch: &[usize], sizes: [usize; 2]) -> Result<DotOperand, Need> {
        let dims: Vec<usize> = batch.iter().copied().chain(sizes).collect();
        let space = Space::kept(&dims);
        let all: Vec<usize> = (0..dims.len()).collect();
        let at = unit_axes(&self.node(operand).dims, &all, dims.len());
        match strided(self.cx, operand, &at, &space) {
            Ok((buf, index)) => Ok(DotOperand { buf, index, prologue: None }),
            Err(need) => {
                let Ok((base, place)) = resolve_view(self.cx.graph, operand, &at, &space) else { return Err(need) };
                if !self.node(base).op.is_elementwise() {
                    return Err(need);
                }
                let mut emit = Emit::new(self.cx, space, None, None);
                let value = match emit.value(base, &place) {
                    Ok(v) => v,
                    Err(Need::Materialise(n)) => return Err(Need::Materialise(n)),
                    Err(_) => return Err(Need::Materialise(base)),
                };
                emit.prune(Some(value));
                Ok(DotOperand { buf: BufId(u32::MAX), index: Affine::zero(dims.len()), prologue: Some(emit.expr) })
            }
        }
    }

    fn opaque(&mut self, n: NodeId) -> Result<Vec<Kernel>, Need> {
        let node = self.node(n).clone();
        match &node.op {
            Op::Concat { axis } => self.concat(n, &node, *axis),
            Op::Update(axes) => self.update(n, &node, axes),
            Op::Scan { op, axis } => {
                let x = self.dense(node.inputs[0])?;
                Ok(vec![Kernel::Scan(ScanKernel { op: *op, dtype: node.dtype, dims: around(&node.dims, *axis), x, out: self.result(n) })])
            }
            Op::Sort { axis, descending } => Ok(vec![Kernel::Sort(SortKernel {
                descending: *descending,
                dtype: node.dtype,
                dims: around(&node.dims, *axis),
                x: self.dense(node.inputs[0])?,
                values: self.cx.bufs[n.index()],
                indices: self.other_result(n, 1),
            })]),
            Op::MaxPool(p) => self.pool(PoolKind::Max, p, n, &node),
            Op::AvgPool(p) => self.pool(PoolKind::Avg, p, n, &node),
            Op::MaxPoolGrad(p) => self.pool(PoolKind::MaxGrad, p, n, &node),
            Op::AvgPoolGrad(p) => self.pool(PoolKind::AvgGrad, p, n, &node),
            Op::Fold(axes) => self.pool(PoolKind::Fold, &fold_attrs(axes), n, &node).map(|mut k| {
                if let Some(Kernel::Pool(p)) = k.first_mut() {
                    p.axes = axes.iter().map(|w| w.axis).collect();
                }
                k
            }),
            Op::Gather { axis } => self.gather(n, &node, *axis),
            Op::Scatter { axis, op } => {
                let base = if is_zero(self.cx.graph, node.inputs[0]) { None } else { Some(self.dense(node.inputs[0])?) };
                let dims = self.node(node.inputs[1]).dims.clone();
                let (index, index_index) = self.whole(node.inputs[1])?;
                let (values, values_index) = self.whole(node.inputs[2])?;
                Ok(vec![Kernel::Scatter(ScatterKernel {
                    dims,
                    out_dims: node.dims.clone(),
                    axis: *axis,
                    op: *op,
                    dtype: node.dtype,
                    base,
                    index,
                    index_index,
                    values,
                    values_index,
                    out: self.result(n),
                })])
            }
            Op::Attention(_) | Op::AttentionGrad(_) => self.attention(n, &node),
            Op::Host(h) => {
                let mut inputs = SmallVec::new();
                for &i in &node.inputs {
                    inputs.push((self.dense(i)?, self.node(i).dims.clone()));
                }
                let mut outputs: SmallVec<[BufId; 3]> = smallvec![self.result(n)];
                let types: Vec<(&[usize], DType)> = node.inputs.iter().map(|i| (&self.node(*i).dims[..], self.node(*i).dtype)).collect();
                let count = kiln_ir::infer::result_count(&node.op, &types) as u32;
                for i in 1..count {
                    let buf = match self.other_result(n, i) {
                        Some(b) => b,
                        None => {
                            let (dims, dtype) = self.cx.graph.result_type(n, i).map_err(|_| Need::NotAffine)?;
                            self.bufs.push(BufSpec { dtype, len: kiln_ir::dims::numel(&dims), place: Place::Unused });
                            BufId(self.bufs.len() as u32 - 1)
                        }
                    };
                    outputs.push(buf);
                }
                Ok(vec![Kernel::Host(HostKernel { op: h.clone(), inputs, outputs })])
            }
            other => unreachable!("{} has no kernel of its own", other.name()),
        }
    }

    /// A strided read of a whole operand over its own axes.
    fn whole(&self, operand: NodeId) -> Result<(BufId, Affine), Need> {
        let dims = &self.node(operand).dims;
        let space = Space::kept(dims);
        let all: Vec<usize> = (0..dims.len()).collect();
        let at = unit_axes(dims, &all, dims.len());
        strided(self.cx, operand, &at, &space)
    }

    fn concat(&mut self, n: NodeId, node: &Node, axis: usize) -> Result<Vec<Kernel>, Need> {
        let out = self.result(n);
        let strides = kiln_ir::dims::row_major(&node.dims);
        let mut offset = 0;
        let mut kernels = Vec::new();
        for &part in &node.inputs {
            let dims = self.node(part).dims.clone();
            if dims.contains(&0) {
                continue;
            }
            kernels.push(self.region(out, part, &dims, |i| (i, 1), &strides, offset * strides[axis])?);
            offset += dims[axis] as isize;
        }
        Ok(kernels)
    }

    /// A kernel that writes `value` into a strided region of a buffer: axis `a` of the value steps by `step(a)` elements of axis `a` of the buffer.
    fn region(
        &self,
        out: BufId,
        value: NodeId,
        dims: &[usize],
        step: impl Fn(usize) -> (usize, isize),
        strides: &IDims,
        base: isize,
    ) -> Result<Kernel, Need> {
        let mut whole = Affine::zero(dims.len());
        whole.base = base;
        for a in 0..dims.len() {
            let (axis, by) = step(a);
            whole.coeffs[a] = strides[axis] * by;
        }
        self.region_at(out, value, dims, whole)
    }

    fn region_at(&self, out: BufId, value: NodeId, dims: &[usize], whole: Affine) -> Result<Kernel, Need> {
        with_splits(Space::kept(dims), |space| {
            let at = crate::index::Coord::flat(space.identity(true));
            // Where axis `a` of the value is in the (possibly split) space.
            let axes = at.axes(dims, &space)?;
            let mut index = Affine::zero(space.dims.len());
            index.base = whole.base;
            index.dynamic = whole.dynamic.clone();
            for (a, c) in axes.iter().enumerate() {
                crate::index::add_scaled(&mut index, c, whole.coeffs[a]);
            }
            let mut emit = Emit::new(self.cx, space, None, None);
            let v = emit.value(value, &at)?;
            emit.store(out, index, v);
            Ok(Kernel::Fused(emit.finish()))
        })
    }

    fn update(&mut self, n: NodeId, node: &Node, axes: &[kiln_ir::op::SliceAxis]) -> Result<Vec<Kernel>, Need> {
        let out = self.result(n);
        let base = self.dense(node.inputs[0])?;
        let value = node.inputs[1];
        let dims = self.node(value).dims.clone();
        let strides = kiln_ir::dims::row_major(&node.dims);
        let mut whole = Affine::zero(dims.len());
        whole.coeffs = strides.clone();
        for (s, start) in axes.iter().zip(starts(self.cx.graph, &node.inputs[2..], dims.len())?) {
            let a = s.axis as usize;
            whole.coeffs[a] = strides[a] * s.step as isize;
            crate::index::add_scaled(&mut whole, &start, strides[a]);
        }
        let mut kernels = vec![Kernel::Copy { from: base, to: out }];
        if !dims.contains(&0) {
            kernels.push(self.region_at(out, value, &dims, whole)?);
        }
        Ok(kernels)
    }

    fn pool(&mut self, kind: PoolKind, attrs: &PoolAttrs, n: NodeId, node: &Node) -> Result<Vec<Kernel>, Need> {
        let other = self.node(node.inputs[0]).dims.clone();
        let forward = matches!(kind, PoolKind::Max | PoolKind::Avg);
        let (x, y) = if forward { (other, node.dims.clone()) } else { (node.dims.clone(), other) };
        let (x, y) = if attrs.channels_last { (channels_first(&x), channels_first(&y)) } else { (x, y) };
        let indices = match kind {
            PoolKind::Max => self.other_result(n, 1),
            PoolKind::MaxGrad => Some(self.dense(node.inputs[1])?),
            PoolKind::Avg | PoolKind::AvgGrad | PoolKind::Fold => None,
        };
        let input = self.dense(node.inputs[0])?;
        let output = self.result(n);
        Ok(vec![Kernel::Pool(PoolKernel { kind, attrs: attrs.clone(), axes: SmallVec::new(), x, y, dtype: node.dtype, input, indices, output })])
    }

    fn gather(&mut self, n: NodeId, node: &Node, axis: usize) -> Result<Vec<Kernel>, Need> {
        let rank = node.dims.len();
        let x = node.inputs[0];
        let extent = self.node(x).dims[axis];
        // One more dimension walks along the indexed axis, to learn its step.
        let mut dims: Vec<usize> = node.dims.to_vec();
        dims.push(extent);
        let follows: Vec<usize> = (0..rank).map(|a| if a == axis { rank } else { a }).collect();
        let at = unit_axes(&self.node(x).dims, &follows, rank + 1);
        let (x, mut x_index) = strided(self.cx, x, &at, &Space::kept(&dims))?;
        let x_step = x_index.coeffs.pop().unwrap_or(0);
        let (index, index_index) = self.whole(node.inputs[1])?;
        let out = self.result(n);
        Ok(vec![Kernel::Gather(GatherKernel { dims: node.dims.clone(), axis, extent, x, x_index, x_step, index, index_index, out })])
    }

    fn attention(&mut self, n: NodeId, node: &Node) -> Result<Vec<Kernel>, Need> {
        let (attrs, grad) = match &node.op {
            Op::Attention(a) => (*a, false),
            Op::AttentionGrad(a) => (*a, true),
            other => unreachable!("{} is not attention", other.name()),
        };
        let dims = |k: usize| &self.cx.graph.node(node.inputs[k]).dims;
        let (q, k, v) = (dims(0), dims(1), dims(2));
        let tensors = if grad { 6 } else { 3 };
        let mut operands = SmallVec::new();
        for &i in &node.inputs[..tensors] {
            let (buf, index) = self.whole(i)?;
            operands.push(AttentionOperand { buf, index });
        }
        let scores = [q[0], q[1], q[2], k[2]];
        let mut extra = node.inputs[tensors..].iter();
        let mut broadcast = |wanted: bool| -> Result<Option<AttentionOperand>, Need> {
            let Some(&i) = (if wanted { extra.next() } else { None }) else { return Ok(None) };
            let own = &self.cx.graph.node(i).dims;
            let follows: Vec<usize> = (4 - own.len()..4).collect();
            let at = unit_axes(own, &follows, 4);
            let (buf, index) = strided(self.cx, i, &at, &Space::kept(&scores))?;
            Ok(Some(AttentionOperand { buf, index }))
        };
        let mask = broadcast(attrs.has_mask)?;
        let bias = broadcast(attrs.has_bias)?;
        let kernel = |results| {
            Box::new(AttentionKernel {
                attrs,
                heads: [q[0], q[1], k[1]],
                length: [q[2], k[2]],
                width: [q[3], v[3]],
                dtype: node.dtype,
                operands,
                mask,
                bias,
                results,
            })
        };
        let dense = |buf: BufId, dims: &[usize]| AttentionOperand { buf, index: Space::kept(dims).identity(true) };
        if grad {
            let (k, v) = (k.clone(), v.clone());
            let results = smallvec![
                self.cx.bufs[n.index()].map(|b| dense(b, &node.dims)),
                self.other_result(n, 1).map(|b| dense(b, &k)),
                self.other_result(n, 2).map(|b| dense(b, &v)),
            ];
            return Ok(vec![Kernel::AttentionGrad(kernel(results))]);
        }
        let lse = self.other_result(n, 1).map(|b| dense(b, &node.dims[..3]));
        let results = smallvec![self.cx.bufs[n.index()].map(|b| dense(b, &node.dims)), lse];
        Ok(vec![Kernel::Attention(kernel(results))])
    }
}

/// Sizes before, along and after an axis.
fn around(dims: &[usize], axis: usize) -> [usize; 3] {
    [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()]
}

/// Windows in the form of pool attributes.
fn fold_attrs(axes: &[WindowAxis]) -> PoolAttrs {
    PoolAttrs {
        kernel: axes.iter().map(|w| w.size).collect(),
        stride: axes.iter().map(|w| w.stride).collect(),
        dilation: axes.iter().map(|w| w.dilation).collect(),
        padding: axes.iter().map(|_| (0, 0)).collect(),
        count_include_pad: true,
        ceil_mode: false,
        channels_last: false,
    }
}
