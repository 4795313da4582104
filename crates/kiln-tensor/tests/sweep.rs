//! Untyped operations on axes as long as vectors and blocks, over layouts and dtypes: the CPU's compiled programs against the interpreter, with special values among the
//! elements. What depends on no length is in `operations.rs`.

use kiln_ir::{DType, ScatterOp};
use kiln_tensor::raw::{RawTensor, SliceRange};
use kiln_tensor::{Device, Scalar};

use crate::cpu;

/// How a matrix comes to be a view, from another one whose elements are spread over more memory.
pub const LAYOUTS: [&str; 8] = ["dense", "transposed", "offset", "prefix", "stepped", "flipped", "broadcast rows", "broadcast columns"];

/// Sizes that are no multiple of a vector, and around a power of two.
const SIZES: [[usize; 2]; 4] = [[1, 67], [67, 1], [3, 513], [511, 2]];

const DTYPES: [DType; 8] = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8, DType::Bool];

/// Numbers with ties, both signs and, of floats, NaN and infinities now and then.
fn elements(n: usize, dtype: DType, special: bool) -> Vec<f64> {
    let number = |i: usize| match (i * 7 + 3) % 23 {
        5 if special && dtype.is_float() => f64::NAN,
        9 if special && dtype.is_float() => f64::INFINITY,
        11 if special && dtype.is_float() => f64::NEG_INFINITY,
        13 if dtype.is_float() => -0.0,
        k if dtype == DType::Bool => (k % 3 == 0) as u8 as f64,
        k if dtype == DType::U8 => (k % 6) as f64,
        k => (k % 9) as f64 * 0.5 - if dtype.is_float() { 2.0 } else { 1.0 },
    };
    (0..n).map(number).collect()
}

fn made(device: &Device, dims: &[usize], dtype: DType, special: bool) -> RawTensor {
    let n = dims.iter().product();
    RawTensor::from_slice(device, dims, DType::F64, &elements(n, dtype, special)).cast(dtype)
}

fn view(device: &Device, layout: &str, size: [usize; 2], dtype: DType, special: bool) -> RawTensor {
    view_of(|dims| made(device, dims, dtype, special), layout, size)
}

/// A view of what `made` makes.
pub fn view_of(made: impl Fn(&[usize]) -> RawTensor, layout: &str, [m, n]: [usize; 2]) -> RawTensor {
    let part = |x: RawTensor, row: usize, column: usize| x.narrow(0, row, m).narrow(1, column, n);
    match layout {
        "dense" => made(&[m, n]),
        "transposed" => made(&[n, m]).transpose(),
        "offset" => part(made(&[m + 2, n + 3]), 2, 3),
        "prefix" => part(made(&[m + 1, n + 1]), 0, 0),
        "stepped" => made(&[m, 2 * n + 1]).slice(&[SliceRange { axis: 1, start: 1, len: n, step: 2 }]),
        "flipped" => made(&[m, n]).flip(&[0, 1]),
        "broadcast rows" => made(&[1, n]).expand(&[m, n]),
        _ => made(&[m, 1]).expand(&[m, n]),
    }
}

/// What an operation takes: every type, numbers, or floats.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    All,
    Numbers,
    Floats,
}

type Case = (&'static str, Takes, fn(&RawTensor) -> RawTensor);

fn index(x: &RawTensor, n: usize, below: usize) -> RawTensor {
    let index: Vec<i64> = (0..n).map(|i| (i * 5 + 2) as i64 % below as i64).collect();
    RawTensor::from_slice(&x.device(), &[n], DType::I64, &index)
}

/// An index matrix as tall as `x`, of `n` columns.
fn columns(x: &RawTensor, n: usize) -> RawTensor {
    let (rows, below) = (x.dims()[0], x.dims()[1]);
    index(x, rows * n, below).reshape(&[rows, n])
}

const OPERATIONS: &[Case] = &[
    ("copy", Takes::All, |x| x.reshape(&[x.numel()])),
    ("add the transpose", Takes::Numbers, |x| x.add(&x.transpose().reshape(x.dims()))),
    ("a chain", Takes::Floats, |x| x.mul_scalar(0.5).tanh().add(x).abs()),
    ("sum of rows", Takes::Numbers, |x| x.sum(&[1])),
    ("sum of columns", Takes::Numbers, |x| x.sum(&[0])),
    ("sum", Takes::Numbers, |x| x.sum(&[0, 1])),
    ("prod", Takes::Numbers, |x| x.clamp(Some(Scalar::Int(0)), Some(Scalar::Int(1))).prod(&[1])),
    ("mean", Takes::Floats, |x| x.mean(&[0])),
    ("max", Takes::Numbers, |x| x.max(&[1])),
    ("min of columns", Takes::Numbers, |x| x.min(&[0])),
    ("argmax", Takes::Numbers, |x| x.argmax(1)),
    ("argmin of columns", Takes::Numbers, |x| x.argmin(0)),
    ("cumsum", Takes::Numbers, |x| x.cumsum(1)),
    ("cumsum down", Takes::Numbers, |x| x.cumsum(0)),
    ("cummax", Takes::Numbers, |x| x.cummax(1)),
    ("sort", Takes::Numbers, |x| x.sort(1, false).0),
    ("order", Takes::Numbers, |x| x.sort(0, true).1),
    ("topk", Takes::Numbers, |x| x.topk(1, x.dims()[1].min(3), true).0),
    ("softmax", Takes::Floats, |x| x.softmax(1)),
    ("layer norm", Takes::Floats, |x| x.normalize(&[1], 1e-3).output),
    ("matmul", Takes::Floats, |x| x.matmul(&x.transpose())),
    ("pad", Takes::All, |x| x.pad_constant(&[(1, 2), (0, 3)], Scalar::Int(1))),
    ("reflect", Takes::All, |x| if x.dims()[1] > 2 { x.pad_reflect(&[(0, 0), (2, 1)]) } else { x.clone() }),
    ("edge", Takes::All, |x| x.pad_edge(&[(1, 0), (2, 1)])),
    ("cat", Takes::All, |x| RawTensor::cat(&[x.clone(), x.flip(&[0]), x.clone()], 0)),
    ("windows", Takes::All, |x| if x.dims()[1] > 1 { x.unfold(1, 2, 1) } else { x.clone() }),
    ("select", Takes::All, |x| x.select(0, &index(x, 4, x.dims()[0]))),
    ("gather", Takes::All, |x| x.gather(1, &columns(x, 2))),
    ("scatter", Takes::Numbers, |x| x.scatter(1, &columns(x, 3), &RawTensor::ones(&x.device(), &[x.dims()[0], 3], x.dtype()), ScatterOp::Add)),
    ("write over an expanded row", Takes::All, |x| {
        let row = x.narrow(0, 0, 1).expand(x.dims());
        row.slice_assign(&[SliceRange::new(0, 0, 1)], &x.narrow(0, x.dims()[0] - 1, 1))
    }),
];

pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 1e-5,
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        _ => 0.0,
    }
}

pub fn agree(got: f64, expected: f64, tolerance: f64) -> bool {
    got == expected || (got.is_nan() && expected.is_nan()) || (got - expected).abs() <= tolerance * expected.abs().max(1.0)
}

#[test]
fn every_layout_size_and_dtype_agrees_with_the_interpreter() {
    let (device, oracle) = (cpu(), Device::reference());
    let mut wrong = Vec::new();
    for dtype in DTYPES {
        for (name, takes, f) in OPERATIONS {
            if *takes == Takes::Floats && !dtype.is_float() || *takes == Takes::Numbers && dtype == DType::Bool {
                continue;
            }
            for layout in LAYOUTS {
                for size in SIZES {
                    // NaN spreads over sums and products of whole axes; without it their numbers are compared.
                    for special in [true, false] {
                        let run = |device: &Device| f(&view(device, layout, size, dtype, special));
                        let (got, expected) = (run(&device), run(&oracle));
                        assert_eq!((got.dims(), got.dtype()), (expected.dims(), expected.dtype()));
                        let (got, expected) = (got.to_f64s().unwrap(), expected.to_f64s().unwrap());
                        if let Some(i) = (0..got.len()).find(|i| !agree(got[*i], expected[*i], tolerance(dtype))) {
                            wrong.push(format!("{name} of {dtype} {size:?}, {layout}: element {i}: {} for {}", got[i], expected[i]));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}
