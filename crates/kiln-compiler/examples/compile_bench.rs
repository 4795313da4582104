//! How long the compiler takes for a training step of a stack of blocks like a transformer's: `cargo run --release -p kiln-compiler --example compile_bench [LAYERS]`.
use std::time::Instant;

use kiln_compiler::null::Null;
use kiln_compiler::{kernels, plan, print::print, schedule, simplify};
use kiln_ir::op::word_from_f64;
use kiln_ir::{DType, Elementwise, Graph, Limits, NodeId, Op, ReduceOp};

struct Build(Graph);

impl Build {
    fn ew(&mut self, e: Elementwise, inputs: &[NodeId]) -> NodeId {
        let dims = inputs.iter().map(|i| self.0.node(*i).dims.clone()).max_by_key(|d| (d.len(), d.iter().product::<usize>())).expect("operands");
        let inputs: Vec<NodeId> = inputs.iter().map(|&i| if self.0.node(i).dims.is_empty() { i } else { self.expand(i, &dims) }).collect();
        self.0.add(Op::Elementwise(e), &inputs).expect("fits")
    }

    fn expand(&mut self, x: NodeId, dims: &[usize]) -> NodeId {
        if self.0.node(x).dims[..] == *dims { x } else { self.0.add_as(Op::Expand, &[x], dims, DType::F32).expect("fits") }
    }

    fn sum(&mut self, x: NodeId, axis: usize) -> NodeId {
        self.0.add(Op::Reduce { op: ReduceOp::Sum, axes: 1 << axis }, &[x]).expect("fits")
    }

    fn t(&mut self, x: NodeId) -> NodeId {
        self.0.add(Op::Permute([1, 0][..].into()), &[x]).expect("fits")
    }

    fn dot(&mut self, x: NodeId, y: NodeId) -> NodeId {
        self.0.add(Op::Dot, &[x, y]).expect("fits")
    }

    fn number(&mut self, v: f64) -> NodeId {
        self.0.constant(DType::F32, word_from_f64(DType::F32, v))
    }
}

/// Forward, backward and AdamW of `layers` blocks: norm, linear, activation, linear, residual.
fn step(layers: usize) -> Graph {
    use Elementwise::*;
    let (n, d, h) = (2048, 384, 1536);
    let mut b = Build(Graph::new());
    let x0 = b.0.input(&[n, d], DType::F32);
    let (lr, wd) = (b.0.arg(DType::F32), b.0.arg(DType::F32));
    let mut x = x0;
    let mut saved = Vec::new();
    for _ in 0..layers {
        let (w1, w2) = (b.0.input(&[d, h], DType::F32), b.0.input(&[h, d], DType::F32));
        let gamma = b.0.input(&[d], DType::F32);
        let inv = b.number(1.0 / d as f64);
        let s = b.sum(x, 1);
        let mean = b.ew(Mul, &[s, inv]);
        let c = b.ew(Sub, &[x, mean]);
        let sq = b.ew(Mul, &[c, c]);
        let v = b.sum(sq, 1);
        let v = b.ew(Mul, &[v, inv]);
        let eps = b.number(1e-5);
        let v = b.ew(Add, &[v, eps]);
        let sd = b.ew(Sqrt, &[v]);
        let rstd = b.ew(Recip, &[sd]);
        let xhat = b.ew(Mul, &[c, rstd]);
        let y = b.ew(Mul, &[xhat, gamma]);
        let up = b.dot(y, w1);
        let k = b.number(0.5f64.sqrt());
        let z = b.ew(Mul, &[up, k]);
        let e = b.ew(Erf, &[z]);
        let one = b.number(1.0);
        let half = b.number(0.5);
        let cdf = b.ew(Add, &[e, one]);
        let cdf = b.ew(Mul, &[cdf, half]);
        let act = b.ew(Mul, &[up, cdf]);
        let down = b.dot(act, w2);
        saved.push((x, y, xhat, rstd, gamma, up, cdf, act, w1, w2));
        x = b.ew(Add, &[x, down]);
    }
    let mut dx = b.ew(Sub, &[x, x0]);
    let mut outputs = Vec::new();
    for (_, y, xhat, rstd, gamma, up, cdf, act, w1, w2) in saved.into_iter().rev() {
        let t = b.t(w2);
        let dact = b.dot(dx, t);
        let at = b.t(act);
        let dw2 = b.dot(at, dx);
        let sq = b.ew(Mul, &[up, up]);
        let m = b.number(-0.5);
        let q = b.ew(Mul, &[sq, m]);
        let p = b.ew(Exp, &[q]);
        let c = b.number(0.398);
        let pdf = b.ew(Mul, &[p, c]);
        let g = b.ew(Mul, &[up, pdf]);
        let g = b.ew(Add, &[g, cdf]);
        let dup = b.ew(Mul, &[dact, g]);
        let t = b.t(w1);
        let dy = b.dot(dup, t);
        let yt = b.t(y);
        let dw1 = b.dot(yt, dup);
        let dg = b.ew(Mul, &[dy, xhat]);
        let dgamma = b.sum(dg, 0);
        let dxhat = b.ew(Mul, &[dy, gamma]);
        let inv = b.number(1.0 / 384.0);
        let s1 = b.sum(dxhat, 1);
        let s1 = b.ew(Mul, &[s1, inv]);
        let pr = b.ew(Mul, &[dxhat, xhat]);
        let s2 = b.sum(pr, 1);
        let s2 = b.ew(Mul, &[s2, inv]);
        let u = b.ew(Mul, &[xhat, s2]);
        let r = b.ew(Sub, &[dxhat, s1]);
        let r = b.ew(Sub, &[r, u]);
        let r = b.ew(Mul, &[r, rstd]);
        dx = b.ew(Add, &[dx, r]);
        let dgamma = b.0.add_as(Op::Reshape, &[dgamma], &[384], DType::F32).expect("fits");
        for (w, dw) in [(w1, dw1), (w2, dw2), (gamma, dgamma)] {
            let dims = b.0.node(w).dims.clone();
            let (m, v) = (b.0.input(&dims, DType::F32), b.0.input(&dims, DType::F32));
            let (b1, b2, c1, c2) = (b.number(0.9), b.number(0.999), b.number(0.1), b.number(0.001));
            let m0 = b.ew(Mul, &[m, b1]);
            let m1 = b.ew(Mul, &[dw, c1]);
            let m = b.ew(Add, &[m0, m1]);
            let v0 = b.ew(Mul, &[v, b2]);
            let sq = b.ew(Mul, &[dw, dw]);
            let v1 = b.ew(Mul, &[sq, c2]);
            let v = b.ew(Add, &[v0, v1]);
            let (bc1, bc2) = (b.0.arg(DType::F32), b.0.arg(DType::F32));
            let mh = b.ew(Div, &[m, bc1]);
            let vh = b.ew(Div, &[v, bc2]);
            let sd = b.ew(Sqrt, &[vh]);
            let eps = b.number(1e-5);
            let den = b.ew(Add, &[sd, eps]);
            let up = b.ew(Div, &[mh, den]);
            let decay = b.ew(Mul, &[w, wd]);
            let up = b.ew(Add, &[up, decay]);
            let up = b.ew(Mul, &[up, lr]);
            let w = b.ew(Sub, &[w, up]);
            outputs.extend([w, m, v]);
        }
    }
    b.0.outputs = outputs;
    b.0.donated = vec![true; b.0.inputs];
    b.0.donated[0] = false;
    b.0
}

fn main() {
    let layers = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(6);
    let graph = step(layers);
    let limits: Limits = Null::cpu_limits();
    let mut best = [f64::MAX; 4];
    for _ in 0..20 {
        let t = Instant::now();
        let g = simplify::simplify(&graph);
        let a = t.elapsed();
        let mut lessons = schedule::Lessons::default();
        let s = schedule::schedule(&g, &limits, &kiln_compiler::Options::default(), &lessons);
        let b = t.elapsed();
        let l = kernels::lower(&g, &s, &mut lessons).expect("needs no second attempt");
        let c = t.elapsed();
        let p = plan::plan(&g, l);
        let d = t.elapsed();
        for (k, v) in [a, b - a, c - b, d - c].into_iter().enumerate() {
            best[k] = best[k].min(v.as_secs_f64() * 1e3);
        }
        std::hint::black_box(p);
    }
    println!("{} nodes: simplify {:.2} schedule {:.2} lower {:.2} plan {:.2} ms", graph.nodes.len(), best[0], best[1], best[2], best[3]);
    if std::env::args().nth(2).is_some() {
        println!("{}", print(&kiln_compiler::compile(&graph, &limits)));
    }
}
