//! Attention and its gradient.
use kiln_ir::op::AttentionAttrs;
use kiln_ir::{DType, Graph, Op};
use smallvec::smallvec;

use kiln_cuda::steps::Chip;

use crate::oracle::{Draw, check_on};

/// One geometry: batch, query heads, key heads, queries, keys, widths, and the shapes of mask and bias.
struct Case {
    sizes: [usize; 7],
    causal: bool,
    softcap: f64,
    mask: Option<&'static [usize]>,
    bias: Option<&'static [usize]>,
}

const PLAIN: Case = Case { sizes: [2, 2, 2, 20, 24, 8, 8], causal: false, softcap: 0.0, mask: None, bias: None };

fn check_case(draw: &mut Draw, dtype: DType, case: &Case, swapped: bool) {
    check_case_on(&Chip::of(80), draw, dtype, case, swapped);
}

fn check_case_on(chip: &Chip, draw: &mut Draw, dtype: DType, case: &Case, swapped: bool) {
    let [b, h, g, t, s, d, e] = case.sizes;
    let attrs = AttentionAttrs {
        scale: (1.0 / (d.max(1) as f64).sqrt()).to_bits(),
        softcap: case.softcap.to_bits(),
        causal: case.causal,
        has_mask: case.mask.is_some(),
        has_bias: case.bias.is_some(),
    };
    let mut graph = Graph::new();
    let mut inputs = Vec::new();
    let mut operand = |graph: &mut Graph, dims: [usize; 4], dtype, range| {
        if swapped {
            // Stored as [batch, length, heads, width], as a projection leaves it.
            let stored = [dims[0], dims[2], dims[1], dims[3]];
            let x = graph.input(&stored, dtype);
            inputs.push(draw.tensor(dtype, &stored, range));
            return graph.add(Op::Permute(smallvec![0, 2, 1, 3]), &[x]).unwrap();
        }
        inputs.push(draw.tensor(dtype, &dims, range));
        graph.input(&dims, dtype)
    };
    let q = operand(&mut graph, [b, h, t, d], dtype, (-2.0, 2.0));
    let k = operand(&mut graph, [b, g, s, d], dtype, (-2.0, 2.0));
    let v = operand(&mut graph, [b, g, s, e], dtype, (-2.0, 2.0));
    let dout = operand(&mut graph, [b, h, t, e], dtype, (-1.0, 1.0));
    let mut extra = Vec::new();
    for (dims, dtype) in [(case.mask, DType::Bool), (case.bias, dtype)] {
        if let Some(dims) = dims {
            extra.push(graph.input(dims, dtype));
            inputs.push(draw.tensor(dtype, dims, (-1.0, 1.0)));
        }
    }
    let all: Vec<_> = [q, k, v].into_iter().chain(extra.iter().copied()).collect();
    let out = graph.add(Op::Attention(attrs), &all).unwrap();
    let lse = graph.get(out, 1).unwrap();
    let all: Vec<_> = [q, k, v, out, lse, dout].into_iter().chain(extra).collect();
    let dq = graph.add(Op::AttentionGrad(attrs), &all).unwrap();
    let (dk, dv) = (graph.get(dq, 1).unwrap(), graph.get(dq, 2).unwrap());
    graph.outputs = vec![out, lse];
    check_on(chip, &graph, &inputs, &[], 4.0);
    graph.outputs = vec![out, dq, dk, dv];
    // Half outputs enter the gradient rounded.
    check_on(chip, &graph, &inputs, &[], 20.0);
}

#[test]
fn attention_matches_in_every_float_dtype_and_layout() {
    let mut draw = Draw(31);
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for swapped in [false, true] {
            check_case(&mut draw, dtype, &PLAIN, swapped);
            check_case(&mut draw, dtype, &Case { causal: true, ..PLAIN }, swapped);
        }
    }
}

#[test]
fn attention_takes_every_option() {
    let mut draw = Draw(32);
    let cases = [
        Case { sizes: [1, 4, 2, 33, 40, 16, 24], causal: true, softcap: 2.0, ..PLAIN },
        Case { mask: Some(&[20, 24]), bias: Some(&[2, 1, 1, 24]), ..PLAIN },
        Case { mask: Some(&[2, 2, 20, 24]), softcap: 1.5, bias: Some(&[20, 1]), ..PLAIN },
        Case { mask: Some(&[2, 1, 1, 24]), causal: true, ..PLAIN },
        Case { sizes: [1, 2, 1, 30, 12, 5, 3], causal: true, ..PLAIN },
    ];
    for case in &cases {
        check_case(&mut draw, DType::F32, case, false);
        check_case(&mut draw, DType::F64, case, true);
    }
}

#[test]
fn attention_spans_tiles_and_parts() {
    let mut draw = Draw(33);
    check_case(&mut draw, DType::F32, &Case { sizes: [1, 2, 1, 150, 300, 32, 40], causal: true, ..PLAIN }, true);
    check_case(&mut draw, DType::F32, &Case { sizes: [1, 1, 1, 40, 600, 16, 16], ..PLAIN }, false);
}

#[test]
fn attention_of_few_queries_streams_the_keys() {
    let mut draw = Draw(34);
    for sizes in [[2, 3, 3, 1, 50, 64, 64], [1, 4, 2, 1, 2100, 20, 36], [1, 2, 1, 3, 70, 33, 7], [1, 1, 1, 1, 1, 1, 1]] {
        for causal in [false, true] {
            check_case(&mut draw, DType::F32, &Case { sizes, causal, ..PLAIN }, false);
            check_case(&mut draw, DType::BF16, &Case { sizes, causal, ..PLAIN }, true);
        }
    }
}

#[test]
fn attention_without_elements_is_zero() {
    let mut draw = Draw(35);
    for sizes in [[1, 1, 1, 0, 4, 8, 8], [0, 2, 2, 3, 4, 8, 8], [1, 1, 1, 3, 0, 8, 8], [1, 1, 1, 20, 0, 8, 8], [1, 1, 1, 12, 4, 0, 8]] {
        check_case(&mut draw, DType::F32, &Case { sizes, ..PLAIN }, false);
    }
}

#[test]
fn a_fully_masked_row_gives_zero_and_nan_is_kept() {
    use kiln_ir::interp::{Scalar, Tensor};
    let attrs = AttentionAttrs { scale: 1.0f64.to_bits(), softcap: 0, causal: false, has_mask: true, has_bias: false };
    for rows in [1, 12] {
        let mut g = Graph::new();
        let x: Vec<_> = [[1, 1, rows, 4], [1, 1, 9, 4], [1, 1, 9, 4]].iter().map(|d| g.input(d, DType::F32)).collect();
        let mask = g.input(&[rows, 9], DType::Bool);
        let y = g.add(Op::Attention(attrs), &[x[0], x[1], x[2], mask]).unwrap();
        let lse = g.get(y, 1).unwrap();
        g.outputs = vec![y, lse];
        let mut draw = Draw(36);
        let mut inputs: Vec<Tensor> = [[1, 1, rows, 4], [1, 1, 9, 4], [1, 1, 9, 4]].iter().map(|d| draw.tensor(DType::F32, d, (-1.0, 1.0))).collect();
        let mut hidden = Tensor::zeros(DType::Bool, &[rows, 9]);
        (0..9).for_each(|s| hidden.set(s, Scalar::Int(1)));
        if rows > 1 {
            inputs[0].set(4 * 5, Scalar::Float(f64::NAN));
        }
        inputs.push(hidden);
        check_on(&Chip::of(80), &g, &inputs, &[], 1.0);
    }
}

#[test]
fn attention_of_half_floats_runs_on_tensor_cores() {
    let mut draw = Draw(37);
    let base = Case { sizes: [1, 2, 1, 40, 70, 32, 32], ..PLAIN };
    let cases = [
        Case { causal: true, ..base },
        Case { sizes: [2, 1, 1, 17, 200, 64, 48], causal: true, softcap: 2.0, ..base },
        Case { sizes: [1, 4, 2, 150, 130, 16, 128], mask: Some(&[150, 130]), ..base },
        Case { sizes: [1, 2, 2, 33, 90, 128, 32], bias: Some(&[2, 33, 1]), causal: true, ..base },
        Case { sizes: [1, 1, 1, 70, 40, 64, 64], causal: true, ..base },
        Case { sizes: [1, 2, 1, 40, 70, 256, 160], causal: true, ..base },
    ];
    for (n, case) in cases.iter().enumerate() {
        check_case(&mut draw, if n % 2 == 0 { DType::BF16 } else { DType::F16 }, case, n % 3 == 1);
    }
}

#[test]
fn attention_of_half_floats_runs_on_warpgroups() {
    let mut draw = Draw(38);
    let base = Case { sizes: [1, 2, 1, 70, 300, 128, 128], ..PLAIN };
    let cases = [
        Case { causal: true, ..base },
        Case { sizes: [1, 1, 1, 150, 520, 64, 64], ..base },
        Case { sizes: [1, 2, 2, 140, 100, 64, 64], causal: true, softcap: 2.0, bias: Some(&[2, 140, 1]), ..base },
        Case { sizes: [2, 1, 1, 17, 129, 128, 128], mask: Some(&[17, 129]), ..base },
    ];
    for (n, case) in cases.iter().enumerate() {
        // Few multiprocessors, so that blocks take several items.
        check_case_on(&Chip { multiprocessors: 3, ..Chip::of(90) }, &mut draw, if n % 2 == 0 { DType::BF16 } else { DType::F16 }, case, n % 2 == 1);
    }
}

#[test]
fn heads_are_written_side_by_side_without_a_copy() {
    use kiln_cuda::lowered::{Lowered, Work};
    let mut draw = Draw(39);
    let (b, h, t, d, n) = (2, 2, 40, 64, 24);
    let attrs = AttentionAttrs { scale: 0.125f64.to_bits(), softcap: 0, causal: true, has_mask: false, has_bias: false };
    let dtype = DType::F32;
    let mut g = Graph::new();
    let mut inputs = Vec::new();
    // Queries, keys and values next to each other, as one product leaves them.
    let qkv = g.input(&[b, t, 3 * h * d], dtype);
    inputs.push(draw.tensor(dtype, &[b, t, 3 * h * d], (-1.0, 1.0)));
    let part = |g: &mut Graph, n: usize| {
        let axes = smallvec![kiln_ir::op::SliceAxis { axis: 2, step: 1 }];
        let start = g.constant(DType::I64, (n * h * d) as u64);
        let x = g.add_as(Op::Slice(axes), &[qkv, start], &[b, t, h * d], dtype).unwrap();
        let x = g.add_as(Op::Reshape, &[x], &[b, t, h, d], dtype).unwrap();
        g.add(Op::Permute(smallvec![0, 2, 1, 3]), &[x]).unwrap()
    };
    let [q, k, v] = [0, 1, 2].map(|n| part(&mut g, n));
    let out = g.add(Op::Attention(attrs), &[q, k, v]).unwrap();
    let lse = g.get(out, 1).unwrap();
    let flat = |g: &mut Graph, x| {
        let x = g.add(Op::Permute(smallvec![0, 2, 1, 3]), &[x]).unwrap();
        g.add_as(Op::Reshape, &[x], &[b * t, h * d], dtype).unwrap()
    };
    let w = g.input(&[h * d, n], dtype);
    inputs.push(draw.tensor(dtype, &[h * d, n], (-1.0, 1.0)));
    let y = flat(&mut g, out);
    let y = g.add(Op::Dot, &[y, w]).unwrap();
    // The gradient reads what the product read, and its results lie next to each other again.
    let dout = g.input(&[b, h, t, d], dtype);
    inputs.push(draw.tensor(dtype, &[b, h, t, d], (-1.0, 1.0)));
    let dq = g.add(Op::AttentionGrad(attrs), &[q, k, v, out, lse, dout]).unwrap();
    let (dk, dv) = (g.get(dq, 1).unwrap(), g.get(dq, 2).unwrap());
    let parts = [dq, dk, dv].map(|x| flat(&mut g, x));
    let all = g.add(Op::Concat { axis: 1 }, &parts).unwrap();
    let w = g.input(&[3 * h * d, n], dtype);
    inputs.push(draw.tensor(dtype, &[3 * h * d, n], (-1.0, 1.0)));
    let z = g.add(Op::Dot, &[all, w]).unwrap();
    g.outputs = vec![y, z];
    let lowered = Lowered::new(&crate::oracle::program(&g, true), &Chip::of(80), false, None).unwrap();
    let copies =
        lowered.works().filter(|w| matches!(w, Work::Launch { source, .. } if ["elementwise", "tile", "together"].contains(&&source.entry[..])));
    assert_eq!(copies.count(), 0);
    check_on(&Chip::of(80), &g, &inputs, &[], 20.0);
}
