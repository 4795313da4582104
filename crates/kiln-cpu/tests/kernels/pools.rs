//! Pools and folds.
use kiln_ir::op::{PoolAttrs, WindowAxis};
use kiln_ir::{DType, Graph, Op};
use smallvec::SmallVec;

use crate::oracle::{Draw, check_within};

/// Every pool of one geometry, forward and backward.
fn check_pools(draw: &mut Draw, dtype: DType, dims: &[usize], attrs: &PoolAttrs) {
    let mut g = Graph::new();
    let x = g.input(dims, dtype);
    let Ok(max) = g.add(Op::MaxPool(attrs.clone()), &[x]) else { return };
    let indices = g.get(max, 1).unwrap();
    let mean = g.add(Op::AvgPool(attrs.clone()), &[x]).unwrap();
    let out = g.node(max).dims.clone();
    let dy = g.input(&out, dtype);
    let dmax = g.add_as(Op::MaxPoolGrad(attrs.clone()), &[dy, indices], dims, dtype).unwrap();
    let dmean = g.add_as(Op::AvgPoolGrad(attrs.clone()), &[dy], dims, dtype).unwrap();
    g.outputs = vec![max, indices, mean, dmax, dmean];
    let inputs = [draw.tensor(dtype, dims, (-9.0, 9.0)), draw.tensor(dtype, &out, (-9.0, 9.0))];
    check_within(&g, &inputs, &[], 10.0);
    // Without indices another loop runs.
    g.outputs = vec![max];
    check_within(&g, &inputs, &[], 10.0);
}

#[test]
fn pools_match_for_every_geometry() {
    let mut draw = Draw(21);
    let shapes: [&[usize]; 5] = [&[2, 3, 17], &[2, 3, 9, 11], &[1, 2, 5, 6, 7], &[3, 1, 4, 4], &[0, 2, 4, 4]];
    for round in 0..120 {
        let dims = shapes[round % shapes.len()];
        let n = dims.len() - 2;
        let mut pick = |from: usize, count: usize| -> SmallVec<[usize; 3]> { (0..n).map(|_| from + draw.below(count)).collect() };
        let (kernel, stride, dilation) = (pick(1, 3), pick(1, 3), pick(1, 2));
        let padding = (0..n).map(|s| (draw.below(kernel[s]), draw.below(kernel[s]))).collect();
        let attrs = PoolAttrs {
            kernel,
            stride,
            dilation,
            padding,
            count_include_pad: draw.below(2) == 0,
            ceil_mode: draw.below(2) == 0,
            channels_last: false,
        };
        let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32][round % 7 % 5];
        check_pools(&mut draw, dtype, dims, &attrs);
    }
}

#[test]
fn pools_pass_nan_on() {
    let attrs = PoolAttrs {
        kernel: SmallVec::from_slice(&[2, 2]),
        stride: SmallVec::from_slice(&[2, 2]),
        dilation: SmallVec::from_slice(&[1, 1]),
        padding: SmallVec::from_slice(&[(0, 0), (0, 0)]),
        count_include_pad: true,
        ceil_mode: false,
        channels_last: false,
    };
    let mut g = Graph::new();
    let x = g.input(&[1, 1, 4, 4], DType::F32);
    let y = g.add(Op::MaxPool(attrs), &[x]).unwrap();
    let i = g.get(y, 1).unwrap();
    g.outputs = vec![y, i];
    let mut t = Draw(22).tensor(DType::F32, &[1, 1, 4, 4], (-1.0, 1.0));
    for (k, v) in [(4, f64::NAN), (5, f64::NAN), (2, f64::NEG_INFINITY), (3, f64::NEG_INFINITY), (6, f64::NEG_INFINITY), (7, f64::NEG_INFINITY)] {
        t.set(k, kiln_ir::interp::Scalar::Float(v));
    }
    check_within(&g, &[t], &[], 1.0);
}

#[test]
fn fold_adds_windows_back() {
    let mut draw = Draw(23);
    let window = |axis, size, stride, dilation| WindowAxis { axis, size, stride, dilation };
    let cases: [(&[usize], &[WindowAxis]); 4] = [
        (&[2, 3, 8, 9], &[window(2, 3, 1, 1), window(3, 2, 2, 2)]),
        (&[10], &[window(0, 4, 3, 2)]),
        (&[4, 7, 3], &[window(1, 2, 2, 3)]),
        (&[2, 2, 5, 5, 5], &[window(2, 2, 1, 1), window(3, 3, 2, 1), window(4, 1, 1, 1)]),
    ];
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::F64, DType::I64] {
        for (dims, axes) in cases {
            let mut g = Graph::new();
            let x = g.input(dims, dtype);
            let w = g.add(Op::Window(axes.into()), &[x]).unwrap();
            let shape = g.node(w).dims.clone();
            let dy = g.input(&shape, dtype);
            let y = g.add_as(Op::Fold(axes.into()), &[dy], dims, dtype).unwrap();
            g.outputs = vec![w, y];
            let inputs = [draw.tensor(dtype, dims, (-5.0, 5.0)), draw.tensor(dtype, &shape, (-5.0, 5.0))];
            check_within(&g, &inputs, &[], 10.0);
        }
    }
}
