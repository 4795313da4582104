//! Factorisations as operations that the host computes, for every matrix of a batch. Several results are packed one after the other.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::op::{HostOp, HostShapes, HostTensor};
use kiln_ir::{DType, Dims, Op};

use super::dense::{self, Matrix};
use crate::api::host_float::{read, write};
use crate::raw::{RawTensor, apply};
use crate::trace::Operand;

/// What is computed of each matrix. The number is the operation's first attribute.
#[derive(Clone, Copy)]
pub(super) enum Function {
    /// `P`, `L`, `U`.
    Lu = 0,
    /// `Q` of size `m × k`, `R` of size `k × n`, with `k = min(m, n)`.
    ReducedQr = 1,
    /// `Q` of size `m × m`, `R` of size `m × n`.
    FullQr = 2,
    /// `U`, `S`, `Vᵀ`; the second attribute bounds the sweeps.
    Svd = 3,
    /// The determinant.
    Det = 4,
    /// The transposed cofactors.
    Adjugate = 5,
    /// The inverse.
    Inverse = 6,
}

const FUNCTIONS: [Function; 7] =
    [Function::Lu, Function::ReducedQr, Function::FullQr, Function::Svd, Function::Det, Function::Adjugate, Function::Inverse];

impl Function {
    pub fn name(self) -> &'static str {
        match self {
            Self::Lu => "lu",
            Self::ReducedQr | Self::FullQr => "qr",
            Self::Svd => "svd",
            Self::Det => "det",
            Self::Adjugate => "adjugate",
            Self::Inverse => "inverse",
        }
    }

    /// The sizes of the results for an `m × n` matrix.
    pub fn parts(self, m: usize, n: usize) -> Vec<[usize; 2]> {
        let k = m.min(n);
        match self {
            Self::Lu => vec![[m, m], [m, k], [k, n]],
            Self::ReducedQr => vec![[m, k], [k, n]],
            Self::FullQr => vec![[m, m], [m, n]],
            Self::Svd => vec![[m, k], [1, k], [k, n]],
            Self::Det => vec![[1, 1]],
            Self::Adjugate | Self::Inverse => vec![[n, n]],
        }
    }

    fn square(self) -> bool {
        match self {
            Self::Lu | Self::ReducedQr | Self::FullQr | Self::Svd => false,
            Self::Det | Self::Adjugate | Self::Inverse => true,
        }
    }

    /// The packed results `[.., total]` for matrices `[.., m, n]`.
    #[track_caller]
    pub fn apply(self, x: &RawTensor, sweeps: usize) -> RawTensor {
        let op = HostOp { name: "linalg", attrs: [self as u64, sweeps as u64].into_iter().collect(), infer, run };
        apply(Op::Host(op), &[Operand::Tensor(x)])
    }

    /// The results, taken out of the packed ones.
    pub fn unpack(self, packed: &RawTensor, m: usize, n: usize) -> Vec<RawTensor> {
        let axis = packed.rank() - 1;
        let mut start = 0;
        let mut results = Vec::new();
        for [rows, columns] in self.parts(m, n) {
            let mut dims = packed.dims()[..axis].to_vec();
            dims.extend([rows, columns]);
            results.push(packed.narrow(axis, start, rows * columns).reshape(&dims));
            start += rows * columns;
        }
        results
    }

    /// What the library computes, and how it does.
    #[cfg(feature = "faer")]
    fn by_library(self, a: &Matrix) -> Option<Vec<Matrix>> {
        Some(match self {
            Self::Lu => super::library::lu(a)?.into(),
            Self::ReducedQr | Self::FullQr => {
                let (q, r) = super::library::qr(a, matches!(self, Self::ReducedQr))?;
                vec![q, r]
            }
            Self::Svd => {
                let (u, s, v) = super::library::svd(a)?;
                vec![u, Matrix { rows: 1, columns: s.len(), values: s }, v.transposed()]
            }
            Self::Det | Self::Adjugate | Self::Inverse => return None,
        })
    }

    fn compute(self, a: Matrix, sweeps: usize) -> Vec<Matrix> {
        let (m, n) = (a.rows, a.columns);
        #[cfg(feature = "faer")]
        if let Some(parts) = self.by_library(&a) {
            return parts;
        }
        match self {
            Self::Lu => dense::lu(a).into(),
            Self::FullQr => {
                let (q, r) = dense::qr(a);
                vec![q, r]
            }
            Self::ReducedQr => {
                let (q, mut r) = dense::qr(a);
                let k = m.min(n);
                let mut thin = Matrix::zeros(m, k);
                for i in 0..m {
                    for j in 0..k {
                        *thin.at(i, j) = q.get(i, j);
                    }
                }
                r.values.truncate(k * n);
                r.rows = k;
                vec![thin, r]
            }
            Self::Svd => {
                let (u, s, v) = dense::svd(&a, sweeps);
                vec![u, Matrix { rows: 1, columns: s.len(), values: s }, v.transposed()]
            }
            Self::Det => vec![Matrix { rows: 1, columns: 1, values: vec![dense::det(a)] }],
            Self::Adjugate => vec![dense::adjugate(&a)],
            Self::Inverse => vec![dense::inverse(a)],
        }
    }
}

fn function(attrs: &[u64]) -> Result<(Function, usize), String> {
    match attrs {
        [function, sweeps] if (*function as usize) < FUNCTIONS.len() => Ok((FUNCTIONS[*function as usize], *sweeps as usize)),
        _ => Err(format!("linalg: no such function: {attrs:?}")),
    }
}

fn infer(attrs: &[u64], operands: &[(&[usize], DType)]) -> Result<HostShapes, String> {
    let (function, _) = function(attrs)?;
    let name = function.name();
    let &[(dims, dtype)] = operands else {
        return Err(format!("{name}: needs one operand"));
    };
    let &[.., m, n] = dims else {
        return Err(format!("{name}: needs at least two axes: {dims:?}"));
    };
    if !dtype.is_float() {
        return Err(format!("{name}: needs floats: {dtype}{dims:?}"));
    }
    if function.square() && m != n {
        return Err(format!("{name}: the matrices are not square: {dims:?}"));
    }
    let total = function.parts(m, n).iter().map(|[rows, columns]| rows * columns).sum();
    let mut packed = Dims::from_slice(&dims[..dims.len() - 2]);
    packed.push(total);
    Ok(vec![(packed, dtype)])
}

fn run(attrs: &[u64], operands: &[HostTensor<'_>], results: &mut [&mut [u8]]) -> Result<(), String> {
    let (function, sweeps) = function(attrs)?;
    let (x, out) = (&operands[0], &mut *results[0]);
    let (m, n) = (x.dims[x.dims.len() - 2], x.dims[x.dims.len() - 1]);
    let size = x.dtype.size();
    let batch: usize = x.dims[..x.dims.len() - 2].iter().product();
    let total: usize = function.parts(m, n).iter().map(|[rows, columns]| rows * columns).sum();
    for i in 0..batch {
        let values = (0..m * n).map(|j| read(x.dtype, &x.bytes[(i * m * n + j) * size..][..size])).collect();
        let mut at = i * total;
        for part in function.compute(Matrix { rows: m, columns: n, values }, sweeps) {
            for value in part.values {
                write(x.dtype, &mut out[at * size..][..size], value);
                at += 1;
            }
        }
    }
    Ok(())
}
