//! What runs behind the products of cuBLASLt: recognised everywhere, run where there is a GPU.
use kiln_cuda::lowered::{Lowered, Work};
use kiln_cuda::product::Activation;
use kiln_cuda::steps::Chip;
use kiln_ir::interp::{self, Tensor};
use kiln_ir::op::{OpInputs, word_from_f64};
use kiln_ir::{DType, Dims, Elementwise, Graph, NodeId, Op};

use crate::oracle::{Draw, program};

const M: usize = 256;
const K: usize = 64;
const N: usize = 264;

fn op(g: &mut Graph, op: Elementwise, x: &[NodeId]) -> NodeId {
    let (dims, dtype) = (g.node(x[0]).dims.clone(), g.node(x[0]).dtype);
    g.push(Op::Elementwise(op), OpInputs::from_slice(x), dims, dtype)
}

/// Gelu's approximation by tanh with its slope, written out: half of `x` times `1 + tanh(c (x + k x^3))`.
fn gelu(g: &mut Graph, x: NodeId) -> (NodeId, NodeId) {
    let dtype = DType::BF16;
    let dims = g.node(x).dims.clone();
    let number = |g: &mut Graph, v: f64| {
        let c = g.constant(dtype, word_from_f64(dtype, v));
        g.push(Op::Expand, OpInputs::from_slice(&[c]), dims.clone(), DType::BF16)
    };
    let [half, one, three, c, k] = [0.5, 1.0, 3.0, 0.797_884_560_8, 0.044_715].map(|v| number(g, v));
    let square = op(g, Elementwise::Mul, &[x, x]);
    let kx = op(g, Elementwise::Mul, &[square, k]);
    let inner = op(g, Elementwise::Add, &[kx, one]);
    let inner = op(g, Elementwise::Mul, &[inner, x]);
    let inner = op(g, Elementwise::Mul, &[inner, c]);
    let t = op(g, Elementwise::Tanh, &[inner]);
    let up = op(g, Elementwise::Add, &[t, one]);
    let half_x = op(g, Elementwise::Mul, &[x, half]);
    let y = op(g, Elementwise::Mul, &[half_x, up]);
    let tt = op(g, Elementwise::Mul, &[t, t]);
    let rest = op(g, Elementwise::Sub, &[one, tt]);
    let grown = op(g, Elementwise::Mul, &[kx, three]);
    let grown = op(g, Elementwise::Add, &[grown, one]);
    let grown = op(g, Elementwise::Mul, &[grown, c]);
    let second = op(g, Elementwise::Mul, &[half_x, rest]);
    let second = op(g, Elementwise::Mul, &[second, grown]);
    let first = op(g, Elementwise::Mul, &[up, half]);
    (y, op(g, Elementwise::Add, &[first, second]))
}

#[test]
fn gelu_and_its_gradient_run_behind_the_products() {
    let dtype = DType::BF16;
    let mut g = Graph::new();
    let mut draw = Draw(41);
    let mut inputs: Vec<Tensor> = Vec::new();
    let mut input = |g: &mut Graph, dims: &[usize], size: f64| {
        inputs.push(draw.tensor(dtype, dims, (-size, size)));
        g.input(dims, dtype)
    };
    let (x, w, bias) = (input(&mut g, &[M, K], 1.0), input(&mut g, &[K, N], 0.5), input(&mut g, &[1, N], 1.0));
    let h = g.add(Op::Dot, &[x, w]).unwrap();
    let bias = g.push(Op::Expand, OpInputs::from_slice(&[bias]), Dims::from_slice(&[M, N]), dtype);
    let h = op(&mut g, Elementwise::Add, &[h, bias]);
    let (y, slope) = gelu(&mut g, h);
    let (dy, v) = (input(&mut g, &[M, K], 1.0), input(&mut g, &[K, N], 0.5));
    let dh = g.add(Op::Dot, &[dy, v]).unwrap();
    let dh = op(&mut g, Elementwise::Mul, &[dh, slope]);
    // The slope is an intermediate: a further product uses what is made of it.
    let back = input(&mut g, &[N, K], 0.2);
    let z = g.add(Op::Dot, &[dh, back]).unwrap();
    g.outputs = vec![y, z];
    let program = program(&g, true);
    let lowered = Lowered::new(&program, &Chip::of(90), true, None).unwrap();
    let follows: Vec<Option<Activation>> = lowered.works().filter_map(|w| if let Work::Product(p) = w { Some(p.activation) } else { None }).collect();
    assert!(matches!(follows[0], Some(Activation::Gelu { .. })), "{follows:?}\n{}", kiln_compiler::print::print(&program));
    assert!(matches!(follows[1], Some(Activation::GeluGrad { .. })), "{follows:?}");
    let Some(gpu) = crate::gpu::device() else { return };
    let want = interp::run_with(&g, &inputs, &[], interp::Options { round_every_op: false }).unwrap();
    let got = crate::gpu::run(gpu, &program, &inputs, &[], 3).unwrap();
    for (got, want) in got.iter().zip(&want) {
        let got = Tensor::from_bytes(dtype, &want.dims, got);
        let (mut off, mut all) = (0.0, 0.0);
        for i in 0..want.len() {
            off += (got.get(i).float() - want.get(i).float()).powi(2);
            all += want.get(i).float().powi(2);
        }
        let error: f64 = (off / all).sqrt();
        assert!(error <= 1e-2, "relative error {error}");
    }
}
