//! Random graphs: small programs over many ops, layouts and sizes, the same for a seed everywhere. For tests of compilers and runtimes against the oracle.
use alloc::vec::Vec;

use kiln_ir::dims::numel;
use kiln_ir::interp::Tensor;
use kiln_ir::op::{AttentionAttrs, ConvAttrs, OpInputs, PoolAttrs, SliceAxis, WindowAxis, word_from_f64, word_from_int};
use kiln_ir::table::Accepts;
use kiln_ir::{Class, DType, Dims, Elementwise, Graph, NodeId, Op, RandomKind, ReduceOp, ScanOp, ScatterOp};
use smallvec::SmallVec;

/// A graph with data to run it on.
pub struct Case {
    /// The graph.
    pub graph: Graph,
    /// One dense tensor an input.
    pub inputs: Vec<Tensor>,
    /// One word a run-time scalar.
    pub args: Vec<u64>,
}

/// A small generator of random numbers (splitmix64).
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// Uniform in a range.
    pub fn range(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * ((self.bits() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// True one time in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

struct Maker {
    rng: Rng,
    smooth: bool,
    case: Case,
    float: DType,
}

/// A graph of about `ops` ops for a seed.
pub fn random_case(seed: u64, ops: usize) -> Case {
    make(seed, ops, false)
}

/// The same without jumps: no float decides a comparison, an index or a conversion to an integer, so that results of other roundings stay close.
pub fn random_smooth_case(seed: u64, ops: usize) -> Case {
    make(seed, ops, true)
}

fn make(seed: u64, ops: usize, smooth: bool) -> Case {
    let mut rng = Rng::new(seed);
    let float = [DType::F64, DType::F32, DType::F64][rng.below(3)];
    let mut m = Maker { rng, smooth, case: Case { graph: Graph::new(), inputs: Vec::new(), args: Vec::new() }, float };
    for _ in 0..1 + m.rng.below(3) {
        m.add_input();
    }
    for _ in 0..ops {
        m.add_op();
    }
    m.choose_outputs();
    m.case
}

impl Maker {
    fn dims(&self, n: NodeId) -> Dims {
        self.case.graph.node(n).dims.clone()
    }

    fn dtype(&self, n: NodeId) -> DType {
        self.case.graph.node(n).dtype
    }

    fn size(&mut self) -> usize {
        if self.rng.one_in(60) { 0 } else { [1, 2, 3, 4, 5, 6, 2, 4][self.rng.below(8)] }
    }

    fn add_input(&mut self) -> NodeId {
        let rank = 1 + self.rng.below(4);
        let dims: Vec<usize> = (0..rank).map(|_| self.size()).collect();
        self.input_of(&dims)
    }

    fn input_of(&mut self, dims: &[usize]) -> NodeId {
        let dtype = match self.rng.below(8) {
            0 => DType::I64,
            1 => DType::I32,
            _ => self.float,
        };
        let n = numel(dims);
        let values: Vec<f64> = (0..n).map(|_| if dtype.is_int() { self.rng.below(9) as f64 - 4.0 } else { self.rng.range(-2.0, 2.0) }).collect();
        self.case.inputs.push(Tensor::from_f64(dtype, dims, &values));
        let id = self.case.graph.input(dims, dtype);
        *self.case.graph.donated.last_mut().expect("an input was added") = self.rng.one_in(2);
        id
    }

    /// A node to use: mostly a recent one.
    fn pick(&mut self) -> NodeId {
        let n = self.case.graph.nodes.len();
        loop {
            let k = if self.rng.one_in(3) { self.rng.below(n) } else { n - 1 - self.rng.below(n.min(6)) };
            let node = &self.case.graph.nodes[k];
            if node.op.class() != Class::Leaf || matches!(node.op, Op::Input(_) | Op::Iota { .. } | Op::Random(_)) {
                return NodeId(k as u32);
            }
        }
    }

    fn scalar(&mut self, dtype: DType) -> NodeId {
        let v = self.rng.range(0.5, 2.0);
        let word = if dtype.is_float() { word_from_f64(dtype, v) } else { word_from_int(dtype, 1 + v as i128) };
        if self.rng.one_in(2) {
            self.case.args.push(word);
            self.case.graph.arg(dtype)
        } else {
            self.case.graph.constant(dtype, word)
        }
    }

    /// A node with the shape and dtype of `like`, made by a view of another one if need be.
    fn partner(&mut self, like: NodeId) -> NodeId {
        let (dims, dtype) = (self.dims(like), self.dtype(like));
        for _ in 0..4 {
            let mut p = self.pick();
            let from = self.dims(p);
            if from != dims {
                if from.len() <= dims.len() && kiln_ir::dims::broadcast(&from, &dims).as_deref() == Some(&dims[..]) {
                    p = self.push(Op::Expand, &[p], &dims);
                } else if numel(&from) == numel(&dims) {
                    p = self.push(Op::Reshape, &[p], &dims);
                } else {
                    continue;
                }
            }
            return self.cast(p, dtype);
        }
        like
    }

    fn cast(&mut self, x: NodeId, dtype: DType) -> NodeId {
        if self.dtype(x) == dtype {
            return x;
        }
        let dims = self.dims(x);
        let mut x = x;
        if self.smooth && self.dtype(x).is_float() && !dtype.is_float() {
            x = match dims.len() {
                0 => self.case.graph.constant(DType::I64, 1),
                rank => self.case.graph.add_as(Op::Iota { axis: self.rng.below(rank) }, &[], &dims, DType::I64).expect("an axis of the shape"),
            };
            if dtype == DType::I64 {
                return x;
            }
        }
        self.case.graph.add_as(Op::Cast, &[x], &dims, dtype).expect("a cast fits")
    }

    fn push(&mut self, op: Op, inputs: &[NodeId], dims: &[usize]) -> NodeId {
        let dtype = self.dtype(inputs[0]);
        self.case.graph.add_as(op, inputs, dims, dtype).expect("the generator makes fitting ops")
    }

    fn add_op(&mut self) {
        let x = self.pick();
        let dims = self.dims(x);
        let rank = dims.len();
        match self.rng.below(30) {
            0..8 => self.elementwise(x),
            8 | 9 => self.reduce(x),
            10 if rank > 0 => {
                let mut perm: SmallVec<[u8; 8]> = (0..rank as u8).collect();
                for i in (1..rank).rev() {
                    perm.swap(i, self.rng.below(i + 1));
                }
                let _ = self.case.graph.add(Op::Permute(perm), &[x]);
            }
            11 => {
                let mut out = dims.clone();
                if rank >= 2 && self.rng.one_in(2) {
                    let a = self.rng.below(rank - 1);
                    out[a] *= out[a + 1];
                    out.remove(a + 1);
                } else if let Some(a) = (0..rank).find(|&a| dims[a] > 0 && dims[a].is_multiple_of(2)) {
                    out[a] /= 2;
                    out.insert(a + 1, 2);
                } else {
                    let at = self.rng.below(rank + 1);
                    out.insert(at, 1);
                }
                if out.len() <= 6 {
                    self.push(Op::Reshape, &[x], &out);
                }
            }
            12 if rank < 5 => {
                let mut out = dims.clone();
                let extra = 1 + self.rng.below(3);
                out.insert(0, extra);
                for d in &mut out {
                    if *d == 1 {
                        *d = 1 + self.rng.below(3);
                    }
                }
                if numel(&out) < 4000 {
                    self.push(Op::Expand, &[x], &out);
                }
            }
            13 | 14 if rank > 0 => self.slice(x),
            15 if rank > 0 => {
                let pads = (0..rank).map(|_| (self.rng.below(3), self.rng.below(2))).collect();
                let dtype = self.dtype(x);
                let fill = if self.rng.one_in(2) { self.case.graph.constant(dtype, 0) } else { self.scalar(dtype) };
                if dtype != DType::Bool && numel(&dims) < 2000 {
                    let _ = self.case.graph.add(Op::Pad(pads), &[x, fill]);
                }
            }
            16 if rank > 0 => {
                let axis = self.rng.below(rank);
                let y = self.partner(x);
                let mut parts = OpInputs::from_slice(&[x, y]);
                if self.rng.one_in(3) {
                    parts.push(x);
                }
                if numel(&dims) < 2000 {
                    let _ = self.case.graph.add(Op::Concat { axis }, &parts);
                }
            }
            17 if rank > 0 => self.update(x),
            18 | 19 if rank > 0 => self.dot(x),
            20 if rank > 0 && self.dtype(x) != DType::Bool => {
                let axis = self.rng.below(rank);
                let op = [ScanOp::Sum, ScanOp::Max, ScanOp::Min][self.rng.below(3)];
                let _ = self.case.graph.add(Op::Scan { op, axis }, &[x]);
            }
            21 if rank > 0 => self.index(x),
            22 if rank > 0 && self.dtype(x) != DType::Bool => self.softmax(x),
            23 if rank > 0 && rank < 4 => {
                let axis = self.rng.below(rank);
                let (size, stride, dilation) = (1 + self.rng.below(2), 1 + self.rng.below(2), 1 + self.rng.below(2));
                let w = WindowAxis { axis: axis as u8, size, stride, dilation };
                let _ = self.case.graph.add(Op::Window(SmallVec::from_slice(&[w])), &[x]);
            }
            24 if rank > 0 => {
                let axis = self.rng.below(rank);
                let descending = self.rng.one_in(2);
                let s = self.case.graph.add(Op::Sort { axis, descending }, &[x]);
                if let Ok(s) = s
                    && !self.smooth
                {
                    let _ = self.case.graph.get(s, 1);
                }
            }
            26 if rank > 0 => self.conv(),
            27 if rank > 0 => self.pool(),
            28 if rank > 0 => self.attention(),
            25 => {
                self.case.args.push(self.rng.bits());
                let seed = self.case.graph.arg(DType::U64);
                let kind = [RandomKind::Uniform, RandomKind::Normal][self.rng.below(2)];
                let _ = self.case.graph.add_as(Op::Random(kind), &[seed], &dims, self.float);
                if rank > 0 {
                    let axis = self.rng.below(rank);
                    let _ = self.case.graph.add_as(Op::Iota { axis }, &[], &dims, DType::I64);
                }
            }
            _ => self.elementwise(x),
        }
    }

    fn elementwise(&mut self, x: NodeId) {
        use Elementwise::*;
        // Ops whose values stay in a range that rounding doesn't blow up.
        const TAME: &[Elementwise] =
            &[Neg, Abs, Tanh, Sin, Cos, Erf, Add, Sub, Mul, Max, Min, Lt, Ge, Eq, Where, And, Or, Not, Sign, Atan, Sqrt, Exp];
        let mut op = TAME[self.rng.below(TAME.len())];
        if self.smooth && matches!(op, Lt | Ge | Eq | Sign | Max | Min | Sqrt) {
            op = Add;
        }
        let dims = self.dims(x);
        let accepts = op.row().accepts;
        let dtype = match accepts {
            Accepts::Float => self.float,
            Accepts::IntBool | Accepts::Int => [DType::Bool, DType::I64][self.rng.below(2)],
            Accepts::Number if self.dtype(x) == DType::Bool => self.float,
            Accepts::Number | Accepts::All => self.dtype(x),
        };
        let mut x = self.cast(x, dtype);
        if matches!(op, Exp | Sqrt) {
            let t = self.case.graph.add(Op::Elementwise(if op == Exp { Tanh } else { Abs }), &[x]);
            x = t.expect("a float op on floats");
        }
        let mut inputs = OpInputs::new();
        if op == Where {
            let c = self.partner(x);
            inputs.push(self.cast(c, DType::Bool));
        }
        inputs.push(x);
        if op.arity() >= 2 {
            let y = if self.rng.one_in(4) && dtype != DType::Bool && !dims.is_empty() { self.scalar(dtype) } else { self.partner(x) };
            inputs.push(self.cast(y, dtype));
        }
        let _ = self.case.graph.add(Op::Elementwise(op), &inputs);
    }

    fn reduce(&mut self, x: NodeId) {
        let dims = self.dims(x);
        if dims.is_empty() {
            return;
        }
        let mut axes = 1u32 << self.rng.below(dims.len());
        if self.rng.one_in(3) {
            axes |= 1 << self.rng.below(dims.len());
        }
        let op = if self.dtype(x) == DType::Bool {
            [ReduceOp::Any, ReduceOp::All][self.rng.below(2)]
        } else {
            let ops = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Sum, ReduceOp::ArgMax];
            ops[self.rng.below(if self.smooth { 4 } else { 5 })]
        };
        if let Ok(r) = self.case.graph.add(Op::Reduce { op, axes }, &[x])
            && self.rng.one_in(2)
        {
            // Broadcast back and combine, as normalisations do.
            let r = self.cast(r, self.dtype(x));
            let r = self.push(Op::Expand, &[r], &dims);
            if self.dtype(x) != DType::Bool {
                let _ = self.case.graph.add(Op::Elementwise(Elementwise::Sub), &[x, r]);
            }
        }
    }

    /// A random slice of a tensor of these sizes: attributes, start operands, result sizes.
    fn slice_of(&mut self, dims: &[usize]) -> (SmallVec<[SliceAxis; 4]>, Vec<NodeId>, Dims) {
        let mut axes = SmallVec::new();
        let mut starts = Vec::new();
        let mut out = Dims::from_slice(dims);
        for (a, &d) in dims.iter().enumerate() {
            if d == 0 || self.rng.one_in(3) {
                continue;
            }
            let step = [1i32, 1, 2, -1][self.rng.below(4)];
            let most = (d - 1) / step.unsigned_abs() as usize + 1;
            let len = 1 + self.rng.below(most);
            let reach = (len - 1) * step.unsigned_abs() as usize;
            let low = self.rng.below(d - reach);
            let start = if step < 0 { low + reach } else { low };
            axes.push(SliceAxis { axis: a as u8, step });
            out[a] = len;
            starts.push(if self.rng.one_in(3) {
                self.case.args.push(start as u64);
                self.case.graph.arg(DType::I64)
            } else {
                self.case.graph.constant(DType::I64, start as u64)
            });
        }
        (axes, starts, out)
    }

    fn slice(&mut self, x: NodeId) {
        let dims = self.dims(x);
        let (axes, starts, out) = self.slice_of(&dims);
        let inputs: Vec<NodeId> = core::iter::once(x).chain(starts).collect();
        self.push(Op::Slice(axes), &inputs, &out);
    }

    fn update(&mut self, x: NodeId) {
        let dims = self.dims(x);
        let (axes, starts, part) = self.slice_of(&dims);
        let value = if self.rng.one_in(2) {
            let mut inputs = OpInputs::from_slice(&[x]);
            inputs.extend(axes.iter().map(|a| {
                let at = if a.step < 0 { (part[a.axis as usize] - 1) * a.step.unsigned_abs() as usize } else { 0 };
                self.case.graph.constant(DType::I64, at as u64)
            }));
            let s = self.push(Op::Slice(axes.clone()), &inputs, &part);
            if self.dtype(x) == DType::Bool { s } else { self.case.graph.add(Op::Elementwise(Elementwise::Neg), &[s]).expect("numbers negate") }
        } else {
            let p = self.input_of(&part);
            self.cast(p, self.dtype(x))
        };
        let inputs: Vec<NodeId> = [x, value].into_iter().chain(starts).collect();
        let _ = self.case.graph.add(Op::Update(axes), &inputs);
    }

    fn dot(&mut self, x: NodeId) {
        let mut x = self.cast(x, self.float);
        let mut dims = self.dims(x);
        if dims.len() == 1 {
            dims.insert(0, 1);
            x = self.push(Op::Reshape, &[x], &dims);
        }
        let r = dims.len();
        if r > 4 || numel(&dims) > 1500 {
            return;
        }
        let mut perm: SmallVec<[u8; 8]> = (0..r as u8).collect();
        perm.swap(r - 1, r - 2);
        let t = self.case.graph.add(Op::Permute(perm), &[x]).expect("a transpose");
        // x times its transpose, or times something that fits.
        let y = if self.rng.one_in(2) {
            t
        } else {
            let n = self.size();
            let mut d = dims.clone();
            d[r - 2] = dims[r - 1];
            d[r - 1] = n;
            for b in &mut d[..r - 2] {
                if self.rng.one_in(3) {
                    *b = 1;
                }
            }
            let y = self.input_of(&d);
            self.cast(y, self.float)
        };
        if let Ok(d) = self.case.graph.add(Op::Dot, &[x, y]) {
            let s = self.case.graph.constant(self.float, word_from_f64(self.float, 0.25));
            let d = self.case.graph.add(Op::Elementwise(Elementwise::Mul), &[d, s]).expect("scaled");
            let _ = self.case.graph.add(Op::Elementwise(Elementwise::Tanh), &[d]);
        }
    }

    fn index(&mut self, x: NodeId) {
        let dims = self.dims(x);
        let axis = self.rng.below(dims.len());
        if dims[axis] == 0 {
            return;
        }
        let mut d = dims.clone();
        d[axis] = 1 + self.rng.below(4);
        let broadcast = self.rng.one_in(2);
        let own: Vec<usize> = d.iter().enumerate().map(|(a, &n)| if broadcast && a != axis { 1 } else { n }).collect();
        let values: Vec<i128> = (0..numel(&own)).map(|_| self.rng.below(dims[axis]) as i128).collect();
        self.case.inputs.push(Tensor::from_ints(DType::I64, &own, &values));
        let mut idx = self.case.graph.input(&own, DType::I64);
        if own[..] != d[..] {
            idx = self.push(Op::Expand, &[idx], &d);
        }
        if self.rng.one_in(2) {
            let _ = self.case.graph.add(Op::Gather { axis }, &[x, idx]);
        } else if self.dtype(x) != DType::Bool {
            let v = self.input_of(&d);
            let v = self.cast(v, self.dtype(x));
            let op = [ScatterOp::Add, ScatterOp::Assign, ScatterOp::Max][self.rng.below(3)];
            let _ = self.case.graph.add(Op::Scatter { axis, op }, &[x, idx, v]);
        }
    }

    fn softmax(&mut self, x: NodeId) {
        let x = self.cast(x, self.float);
        let dims = self.dims(x);
        let axes = 1u32 << self.rng.below(dims.len());
        let ew = |g: &mut Graph, e, i: &[NodeId]| g.add(Op::Elementwise(e), i).expect("floats of one shape");
        let g = &mut self.case.graph;
        let Ok(max) = g.add(Op::Reduce { op: ReduceOp::Max, axes }, &[x]) else { return };
        let max = g.add_as(Op::Expand, &[max], &dims, self.float).expect("broadcast back");
        let s = ew(g, Elementwise::Sub, &[x, max]);
        let e = ew(g, Elementwise::Exp, &[s]);
        let sum = g.add(Op::Reduce { op: ReduceOp::Sum, axes }, &[e]).expect("sums exist");
        let sum = g.add_as(Op::Expand, &[sum], &dims, self.float).expect("broadcast back");
        ew(g, Elementwise::Div, &[e, sum]);
    }

    /// An input of small numbers, or a recent node of this shape if there is one.
    fn operand(&mut self, dims: &[usize]) -> NodeId {
        let like = self.case.graph.nodes.iter().rposition(|n| n.dims[..] == *dims && n.dtype == self.float && !n.op.is_view());
        match like {
            Some(k) if self.rng.one_in(2) => NodeId(k as u32),
            _ => {
                let x = self.input_of(dims);
                self.cast(x, self.float)
            }
        }
    }

    fn conv(&mut self) {
        let spatial = 1 + self.rng.below(2);
        let groups = 1 + self.rng.below(2);
        let (n, c, o) = (1 + self.rng.below(2), groups * (1 + self.rng.below(2)), groups * (1 + self.rng.below(2)));
        let (mut x, mut w) = (alloc::vec![n, c], alloc::vec![o, c / groups]);
        let mut attrs = ConvAttrs { stride: SmallVec::new(), dilation: SmallVec::new(), padding: SmallVec::new(), groups, channels_last: false };
        for _ in 0..spatial {
            x.push(4 + self.rng.below(3));
            w.push(1 + self.rng.below(3));
            attrs.stride.push(1 + self.rng.below(2));
            attrs.dilation.push(1 + self.rng.below(2));
            attrs.padding.push((self.rng.below(3), self.rng.below(2)));
        }
        let (x, w) = (self.operand(&x), self.operand(&w));
        let Ok(y) = self.case.graph.add(Op::Conv(attrs.clone()), &[x, w]) else { return };
        // The epilogue, and one of the gradients.
        let y = self.case.graph.add(Op::Elementwise(Elementwise::Tanh), &[y]).expect("floats");
        let (xd, wd) = (self.dims(x), self.dims(w));
        if self.rng.one_in(2) {
            let _ = self.case.graph.add_as(Op::ConvInputGrad(attrs), &[y, w], &xd, self.float);
        } else {
            let _ = self.case.graph.add_as(Op::ConvWeightGrad(attrs), &[x, y], &wd, self.float);
        }
    }

    fn pool(&mut self) {
        let spatial = 1 + self.rng.below(2);
        let mut x = alloc::vec![1 + self.rng.below(2), 1 + self.rng.below(3)];
        let mut p = PoolAttrs {
            kernel: SmallVec::new(),
            stride: SmallVec::new(),
            dilation: SmallVec::new(),
            padding: SmallVec::new(),
            count_include_pad: self.rng.one_in(2),
            ceil_mode: self.rng.one_in(2),
            channels_last: false,
        };
        for _ in 0..spatial {
            x.push(4 + self.rng.below(4));
            p.kernel.push(2 + self.rng.below(2));
            p.stride.push(1 + self.rng.below(3));
            p.dilation.push(1);
            p.padding.push((self.rng.below(2), self.rng.below(2)));
        }
        let x = self.operand(&x);
        let dims = self.dims(x);
        if self.rng.one_in(2) {
            let Ok(y) = self.case.graph.add(Op::MaxPool(p.clone()), &[x]) else { return };
            let indices = self.case.graph.get(y, 1).expect("max pools give indices");
            let y = self.case.graph.add(Op::Elementwise(Elementwise::Neg), &[y]).expect("floats");
            let _ = self.case.graph.add_as(Op::MaxPoolGrad(p), &[y, indices], &dims, self.float);
        } else {
            let Ok(y) = self.case.graph.add(Op::AvgPool(p.clone()), &[x]) else { return };
            let _ = self.case.graph.add_as(Op::AvgPoolGrad(p), &[y], &dims, self.float);
        }
    }

    fn attention(&mut self) {
        let (b, g, t, d) = (1 + self.rng.below(2), 1 + self.rng.below(2), 1 + self.rng.below(4), 1 + self.rng.below(4));
        let (h, s, e) = (g * (1 + self.rng.below(2)), t + self.rng.below(3), 1 + self.rng.below(4));
        // Heads are views of a projection, as in models.
        let q = self.operand(&[b, t, h * d]);
        let q = self.push(Op::Reshape, &[q], &[b, t, h, d]);
        let q = self.case.graph.add(Op::Permute([0, 2, 1, 3][..].into()), &[q]).expect("four axes");
        let (k, v) = (self.operand(&[b, g, s, d]), self.operand(&[b, g, s, e]));
        let attrs = AttentionAttrs {
            scale: self.rng.range(0.3, 0.9).to_bits(),
            softcap: if self.rng.one_in(3) { 3f64.to_bits() } else { 0 },
            causal: self.rng.one_in(2),
            has_mask: self.rng.one_in(3),
            has_bias: self.rng.one_in(3),
        };
        let mut extra = Vec::new();
        if attrs.has_mask {
            let m = self.input_of(&[t, s]);
            extra.push(self.cast(m, DType::Bool));
        }
        if attrs.has_bias {
            extra.push(self.operand(&[h, t, s]));
        }
        let inputs: Vec<NodeId> = [q, k, v].into_iter().chain(extra.iter().copied()).collect();
        let Ok(y) = self.case.graph.add(Op::Attention(attrs), &inputs) else { return };
        let lse = self.case.graph.get(y, 1).expect("attention gives the log of sums");
        let dy = self.case.graph.add(Op::Elementwise(Elementwise::Neg), &[y]).expect("floats");
        let inputs: Vec<NodeId> = [q, k, v, y, lse, dy].into_iter().chain(extra).collect();
        if let Ok(dq) = self.case.graph.add(Op::AttentionGrad(attrs), &inputs) {
            for i in 1..3 {
                let _ = self.case.graph.get(dq, i);
            }
        }
    }

    fn choose_outputs(&mut self) {
        let n = self.case.graph.nodes.len();
        let last = NodeId(n as u32 - 1);
        let mut outputs = alloc::vec![last];
        for _ in 0..self.rng.below(4) {
            outputs.push(self.pick());
        }
        outputs.dedup();
        self.case.graph.outputs = outputs;
        // Every run-time scalar and input that was made is part of the case, used or not.
        debug_assert_eq!(self.case.args.len(), self.case.graph.args);
        debug_assert_eq!(self.case.inputs.len(), self.case.graph.inputs);
    }
}
