//! Running reductions.
use kiln_ir::{DType, Graph, Op, ScanOp};

use crate::oracle::{Draw, check_within};

#[test]
fn scans_match_in_every_dtype_and_along_every_axis() {
    let mut draw = Draw(11);
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Bool) {
        for op in [ScanOp::Sum, ScanOp::Prod, ScanOp::Max, ScanOp::Min] {
            for dims in [&[13][..], &[9, 6], &[3, 4, 70], &[2, 0], &[1, 1], &[17, 5]] {
                if draw.leaves_out() {
                    continue;
                }
                let axis = draw.below(dims.len());
                let mut g = Graph::new();
                let x = g.input(dims, dtype);
                let y = g.add(Op::Scan { op, axis }, &[x]).unwrap();
                g.outputs = vec![y];
                let range = if dtype.is_float() { (0.8, 1.2) } else { (-3.0, 4.0) };
                let mut t = draw.tensor(dtype, dims, range);
                if dtype.is_float() && t.len() > 4 && draw.below(2) == 0 {
                    t.set(3, kiln_ir::interp::Scalar::Float(f64::NAN));
                }
                check_within(&g, &[t], &[], 4.0);
            }
        }
    }
}

#[test]
fn long_scans_are_cut_into_chunks() {
    let mut draw = Draw(12);
    for (dtype, dims, axis) in [
        (DType::F32, &[20_000][..], 0),
        (DType::BF16, &[2, 9_001], 1),
        (DType::I16, &[3_001, 3], 0),
        (DType::F64, &[2, 500, 2], 1),
        (DType::U8, &[12_289], 0),
    ] {
        for op in [ScanOp::Sum, ScanOp::Max] {
            let mut g = Graph::new();
            let x = g.input(dims, dtype);
            let y = g.add(Op::Scan { op, axis }, &[x]).unwrap();
            g.outputs = vec![y];
            let t = draw.tensor(dtype, dims, (-1.0, 1.5));
            check_within(&g, &[t], &[], 100.0);
        }
    }
}
