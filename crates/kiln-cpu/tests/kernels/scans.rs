//! Running reductions, copies and host functions.
use kiln_ir::op::{HostOp, HostTensor};
use kiln_ir::{DType, Dims, Graph, Op, ScanOp};
use smallvec::smallvec;

use crate::oracle::{Draw, check, check_fails, check_within};

#[test]
fn scans_match_in_every_dtype_and_along_every_axis() {
    let mut draw = Draw(11);
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Bool) {
        for op in [ScanOp::Sum, ScanOp::Prod, ScanOp::Max, ScanOp::Min] {
            for dims in [&[13][..], &[9, 6], &[3, 4, 70], &[2, 0], &[1, 1], &[17, 5]] {
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
fn long_lines_are_scanned_in_chunks() {
    let mut draw = Draw(12);
    let n = 140_000;
    for (op, range) in [(ScanOp::Sum, (-1.0, 1.0)), (ScanOp::Max, (-1.0, 1.0))] {
        let mut g = Graph::new();
        let x = g.input(&[n], DType::F32);
        let y = g.add(Op::Scan { op, axis: 0 }, &[x]).unwrap();
        g.outputs = vec![y];
        check_within(&g, &[draw.tensor(DType::F32, &[n], range)], &[], 50.0);
    }
}

fn same_shape(_: &[u64], x: &[(&[usize], DType)]) -> Result<Vec<(Dims, DType)>, String> {
    Ok(vec![(x[0].0.into(), x[0].1), (smallvec![], DType::U8)])
}

fn reverse(attrs: &[u64], x: &[HostTensor<'_>], out: &mut [&mut [u8]]) -> Result<(), String> {
    if attrs[0] == 0 {
        return Err("nothing to reverse".into());
    }
    let size = x[0].dtype.size();
    for (to, from) in out[0].chunks_exact_mut(size).zip(x[0].bytes.rchunks_exact(size)) {
        to.copy_from_slice(from);
    }
    out[1][0] = x[0].dims.len() as u8;
    Ok(())
}

#[test]
fn host_functions_get_dense_operands_and_their_errors_are_named() {
    let mut draw = Draw(13);
    let host = |flag| Op::Host(HostOp { name: "reverse", attrs: smallvec![flag], infer: same_shape, run: reverse });
    let graph = |flag| {
        let mut g = Graph::new();
        let x = g.input(&[3, 4], DType::F32);
        let t = g.add(Op::Permute(smallvec![1, 0]), &[x]).unwrap();
        let y = g.add(host(flag), &[t]).unwrap();
        let r = g.get(y, 1).unwrap();
        g.outputs = vec![y, r];
        g
    };
    let x = draw.tensor(DType::F32, &[3, 4], (-1.0, 1.0));
    check(&graph(1), std::slice::from_ref(&x), &[]);
    check_fails(&graph(0), &[x], &[], "reverse: nothing to reverse");
}
