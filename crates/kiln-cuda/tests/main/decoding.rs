//! What one token of a decoder runs: products of a vector and a matrix with what surrounds them, sums by clusters of blocks, small kernels that share a launch, attention of
//! one query.
use kiln_cuda::lowered::{Lowered, Work};
use kiln_cuda::steps::Chip;
use kiln_ir::op::{AttentionAttrs, OpInputs};
use kiln_ir::{DType, Dims, Elementwise, Graph, NodeId, Op, ReduceOp};

use crate::oracle::{Draw, check_on, program};

fn chip() -> Chip {
    Chip::of(90)
}

fn op(g: &mut Graph, op: Elementwise, x: &[NodeId]) -> NodeId {
    let (dims, dtype) = (g.node(x[0]).dims.clone(), g.node(x[0]).dtype);
    g.push(Op::Elementwise(op), OpInputs::from_slice(x), dims, dtype)
}

fn dot(g: &mut Graph, x: NodeId, w: NodeId) -> NodeId {
    let dims = [g.node(x).dims[0], g.node(w).dims[1]];
    let dtype = g.node(x).dtype;
    g.push(Op::Dot, OpInputs::from_slice(&[x, w]), Dims::from_slice(&dims), dtype)
}

/// `x / |x|` in f32, rounded, times a scale.
fn norm(g: &mut Graph, x: NodeId, scale: NodeId) -> NodeId {
    let (dims, dtype) = (g.node(x).dims.clone(), g.node(x).dtype);
    let x = g.push(Op::Cast, OpInputs::from_slice(&[x]), dims.clone(), DType::F32);
    let square = op(g, Elementwise::Mul, &[x, x]);
    let sum = g.push(Op::Reduce { op: ReduceOp::Sum, axes: 2 }, OpInputs::from_slice(&[square]), Dims::from_slice(&[1, 1]), DType::F32);
    let size = op(g, Elementwise::Sqrt, &[sum]);
    let size = g.push(Op::Expand, OpInputs::from_slice(&[size]), dims.clone(), DType::F32);
    let y = op(g, Elementwise::Div, &[x, size]);
    let y = g.push(Op::Cast, OpInputs::from_slice(&[y]), dims, dtype);
    op(g, Elementwise::Mul, &[y, scale])
}

/// Entries of the launches that a graph becomes.
fn entries(g: &Graph) -> Vec<String> {
    let lowered = Lowered::new(&program(g, true), &chip(), false, None).unwrap();
    let entry = |w: &Work| match w {
        Work::Launch { source, .. } => source.entry.clone(),
        other => format!("{other:?}"),
    };
    lowered.works().map(entry).collect()
}

#[test]
fn a_feed_forward_part_is_two_launches() {
    let mut draw = Draw(31);
    for (k, inner, dtype) in [(512, 320, DType::BF16), (2048, 64, DType::F16), (200, 136, DType::F32)] {
        let mut g = Graph::new();
        let (x, scale) = (g.input(&[1, k], dtype), g.input(&[1, k], dtype));
        let (up, down) = (g.input(&[k, inner], dtype), g.input(&[inner, k], dtype));
        let y = norm(&mut g, x, scale);
        let h = dot(&mut g, y, up);
        let gate = op(&mut g, Elementwise::Erf, &[h]);
        let h = op(&mut g, Elementwise::Mul, &[gate, h]);
        let z = dot(&mut g, h, down);
        let z = op(&mut g, Elementwise::Add, &[z, x]);
        g.outputs.push(z);
        // The second product's activation is the epilogue of the first.
        assert_eq!(entries(&g), ["matvec", "matvec"], "{dtype}");
        let inputs = [
            draw.tensor(dtype, &[1, k], (-1.0, 1.0)),
            draw.tensor(dtype, &[1, k], (0.5, 1.5)),
            draw.tensor(dtype, &[k, inner], (-1.0, 1.0)),
            draw.tensor(dtype, &[inner, k], (-0.3, 0.3)),
        ];
        check_on(&chip(), &g, &inputs, &[], 4.0);
    }
}

#[test]
fn a_gate_is_computed_where_it_is_multiplied() {
    let mut draw = Draw(32);
    for (k, n, dtype) in [(1024, 128, DType::BF16), (360, 72, DType::F32)] {
        let mut g = Graph::new();
        let (x, w) = (g.input(&[1, 256], dtype), g.input(&[256, 2 * k], dtype));
        let h = dot(&mut g, x, w);
        let half = |g: &mut Graph, start: u64| {
            let axes = [kiln_ir::op::SliceAxis { axis: 1, step: 1 }];
            let start = g.constant(DType::I64, start);
            g.add_as(Op::Slice(axes.into_iter().collect()), &[h, start], &[1, k], dtype).unwrap()
        };
        let (gate, up) = (half(&mut g, 0), half(&mut g, k as u64));
        let gate = op(&mut g, Elementwise::Tanh, &[gate]);
        let y = op(&mut g, Elementwise::Mul, &[gate, up]);
        let down = g.input(&[k, n], dtype);
        let z = dot(&mut g, y, down);
        g.outputs.push(z);
        assert_eq!(entries(&g), ["matvec", "matvec"], "{dtype}");
        let inputs =
            [draw.tensor(dtype, &[1, 256], (-1.0, 1.0)), draw.tensor(dtype, &[256, 2 * k], (-0.2, 0.2)), draw.tensor(dtype, &[k, n], (-0.3, 0.3))];
        check_on(&chip(), &g, &inputs, &[], 4.0);
    }
}

#[test]
fn few_long_sums_are_shared_out_to_clusters() {
    let mut draw = Draw(33);
    for (dims, axis, dtype) in
        [([1, 50_000], 1, DType::F32), ([3, 20_000], 1, DType::BF16), ([1100, 1200], 0, DType::F32), ([2000, 4096], 0, DType::BF16)]
    {
        let mut g = Graph::new();
        let x = g.input(&dims, dtype);
        let mut kept = dims;
        kept[axis] = 1;
        for reduce in [ReduceOp::ArgMax, ReduceOp::Max] {
            let result = if reduce.is_arg() { DType::I64 } else { dtype };
            let y = g.push(Op::Reduce { op: reduce, axes: 1 << axis }, OpInputs::from_slice(&[x]), Dims::from_slice(&kept), result);
            g.outputs.push(y);
        }
        let inputs = [draw.tensor(dtype, &dims, (-1.0, 1.0))];
        check_on(&chip(), &g, &inputs, &[], 1.0);
    }
}

#[test]
fn small_kernels_share_a_launch() {
    let mut draw = Draw(34);
    let mut g = Graph::new();
    let dims = [8, 64];
    let (x, y) = (g.input(&dims, DType::F32), g.input(&dims, DType::F32));
    // Two halves of a result, each from its own kernel, and a sum of what they became.
    let a = op(&mut g, Elementwise::Sin, &[x]);
    let b = op(&mut g, Elementwise::Cos, &[y]);
    let both = g.add(Op::Concat { axis: 1 }, &[a, b]).unwrap();
    let sum = g.push(Op::Reduce { op: ReduceOp::Sum, axes: 2 }, OpInputs::from_slice(&[both]), Dims::from_slice(&[8, 1]), DType::F32);
    g.outputs = vec![both, sum];
    assert_eq!(entries(&g), ["together"]);
    let inputs = [draw.tensor(DType::F32, &dims, (-1.0, 1.0)), draw.tensor(DType::F32, &dims, (-1.0, 1.0))];
    check_on(&chip(), &g, &inputs, &[], 1.0);
}

#[test]
fn attention_of_one_query_is_one_launch() {
    let mut draw = Draw(35);
    for (dtype, keys, mask) in [(DType::BF16, 700, true), (DType::F32, 300, false), (DType::F16, 5000, false)] {
        let attrs = AttentionAttrs { scale: 0.125f64.to_bits(), softcap: 0, causal: false, has_mask: mask, has_bias: false };
        let mut g = Graph::new();
        let dims = [[1, 8, 1, 64], [1, 2, keys, 64], [1, 2, keys, 64]];
        let mut operands: Vec<_> = dims.iter().map(|d| g.input(d, dtype)).collect();
        let mut inputs: Vec<_> = dims.iter().map(|d| draw.tensor(dtype, d, (-1.0, 1.0))).collect();
        if mask {
            operands.push(g.input(&[1, 1, 1, keys], DType::Bool));
            inputs.push(draw.tensor(DType::Bool, &[1, 1, 1, keys], (-1.0, 1.0)));
        }
        let y = g.add(Op::Attention(attrs), &operands).unwrap();
        g.outputs.push(y);
        assert_eq!(entries(&g).len(), if keys > 1024 { 2 } else { 1 });
        check_on(&chip(), &g, &inputs, &[], 4.0);
    }
}
