//! Factorisations of matrices and determinants, with gradients. They are computed on the host in `f64`; larger ones by the crate `faer` where that feature is on.

use alloc::vec::Vec;

use kiln_ir::Dims;
use kiln_ir::Elementwise::Eq;

use super::host::Function;
use super::product::batch_shaped;
use crate::api::Tensor;
use crate::autodiff::{self, Keep};
use crate::raw::RawTensor;

/// The packed results of a function, with the gradient of the input from the results and their gradients.
#[track_caller]
fn factored<const N: usize>(
    x: &RawTensor,
    function: Function,
    sweeps: usize,
    gradient: fn([&RawTensor; N], [&RawTensor; N]) -> RawTensor,
) -> [RawTensor; N] {
    let rank = x.rank();
    assert!(rank >= 2, "{}: needs at least two axes: shape {:?}", function.name(), x.dims());
    let (m, n) = (x.dims()[rank - 2], x.dims()[rank - 1]);
    let packed = function.apply(&x.untracked(), sweeps);
    let packed = autodiff::custom(&[x], packed, Keep::Output, move |call| {
        let (results, gradients) = (function.unpack(call.output(), m, n), function.unpack(call.dy, m, n));
        let part = |parts: &[RawTensor], i: usize| parts[i].clone();
        let results: [RawTensor; N] = core::array::from_fn(|i| part(&results, i));
        let gradients: [RawTensor; N] = core::array::from_fn(|i| part(&gradients, i));
        [Some(gradient(results.each_ref(), gradients.each_ref()))].into()
    });
    let mut parts = function.unpack(&packed, m, n).into_iter();
    core::array::from_fn(|_| parts.next().expect("one part for each result"))
}

/// `A⁻¹`, with the gradient `-A⁻ᵀ dy A⁻ᵀ`.
fn inverse(x: &RawTensor) -> RawTensor {
    let n = x.dims()[x.rank() - 1];
    let y = Function::Inverse.unpack(&Function::Inverse.apply(&x.untracked(), 0), n, n).remove(0);
    autodiff::custom(&[x], y, Keep::Output, |call| {
        let y = call.output().transpose();
        [Some(y.matmul(call.dy).matmul(&y).neg())].into()
    })
}

/// The LU factorisation of matrices `[.., m, n]` with row pivoting, `A = P L U`: a permutation `[.., m, m]`, a lower triangular factor
/// `[.., m, k]` with ones on its diagonal, an upper triangular one `[.., k, n]`; `k = min(m, n)`. Gradients flow for square matrices.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::lu};
/// let a = Tensor::<2>::from_data([[0.0, 2.0], [4.0, 6.0]], &Device::default());
/// let (p, l, u) = lu::<2, 1>(a.clone());
/// assert_eq!(u.clone().try_to_vec_as::<f32>().unwrap(), [4.0, 6.0, 0.0, 2.0]);
/// assert!(p.matmul(l).matmul(u).all_close(a, None, None));
/// ```
///
/// # Panics
/// When the rank is below 2; in a backward pass, when the matrices are not square.
#[track_caller]
pub fn lu<const D: usize, const D1: usize>(tensor: Tensor<D>) -> (Tensor<D>, Tensor<D>, Tensor<D>) {
    let [p, l, u] = factored(&tensor.raw, Function::Lu, 0, lu_gradient);
    (Tensor::from_raw(p), Tensor::from_raw(l), Tensor::from_raw(u))
}

/// `dA = P L⁻ᵀ (tril(Lᵀ dL, -1) + triu(dU Uᵀ)) U⁻ᵀ`.
#[track_caller]
fn lu_gradient([p, l, u]: [&RawTensor; 3], [_, dl, du]: [&RawTensor; 3]) -> RawTensor {
    let (m, n) = (l.dims()[l.rank() - 2], u.dims()[u.rank() - 1]);
    assert!(m == n, "lu: the gradient needs square matrices, not {m} by {n}: factors {:?}, {:?}", l.dims(), u.dims());
    let inner = l.transpose().matmul(dl).tril(-1).add(&du.matmul(&u.transpose()).triu(0));
    p.matmul(&inverse(l).transpose().matmul(&inner)).matmul(&inverse(u).transpose())
}

/// The QR factorisation of matrices `[.., m, n]`, `A = Q R`, with orthogonal columns in `Q` and an upper triangular `R`. Reduced, they are
/// `[.., m, k]` and `[.., k, n]` with `k = min(m, n)`; else `[.., m, m]` and `[.., m, n]`. Gradients flow when `Q` has no more columns than `A`
/// and `m >= n`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::qr};
/// let a = Tensor::<2>::from_data([[3.0, 1.0], [4.0, 2.0]], &Device::default());
/// let (q, r) = qr(a.clone(), true);
/// assert!(q.matmul(r).all_close(a, Some(1e-4), Some(1e-5)));
/// ```
///
/// # Panics
/// When the rank is below 2; in a backward pass, when there is no gradient.
#[track_caller]
pub fn qr<const D: usize>(tensor: Tensor<D>, reduced: bool) -> (Tensor<D>, Tensor<D>) {
    let function = if reduced { Function::ReducedQr } else { Function::FullQr };
    let [q, r] = factored(&tensor.raw, function, 0, qr_gradient);
    (Tensor::from_raw(q), Tensor::from_raw(r))
}

/// `dA = (dQ + Q copyltu(M)) R⁻ᵀ` with `M = R dRᵀ - dQᵀ Q`, where copyltu mirrors the lower triangle
/// (S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions", 2010).
#[track_caller]
fn qr_gradient([q, r]: [&RawTensor; 2], [dq, dr]: [&RawTensor; 2]) -> RawTensor {
    let (k, n) = (r.dims()[r.rank() - 2], r.dims()[r.rank() - 1]);
    assert!(k == n, "qr: there is a gradient only for reduced factors of matrices that are not wider than high: R is {k} by {n}");
    let m = r.matmul(&dr.transpose()).sub(&dq.transpose().matmul(q));
    let strict = m.tril(-1);
    let mirrored = m.tril(0).add(&strict.transpose());
    dq.add(&q.matmul(&mirrored)).matmul(&inverse(r).transpose())
}

/// The singular value decomposition of matrices `[.., m, n]`, `A = U diag(S) Vᵀ`: `U` `[.., m, k]`, `S` `[.., k]` in descending order, `Vᵀ`
/// `[.., k, n]`; `k = min(m, n)`. At most `sweeps` sweeps of rotations are made; around ten reach full precision. Gradients need distinct
/// singular values.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::svd};
/// let a = Tensor::<2>::from_data([[3.0, 0.0], [0.0, -4.0]], &Device::default());
/// let (u, s, vt): (_, Tensor<1>, _) = svd(a.clone(), 16);
/// assert_eq!(s.clone().try_to_vec_as::<f32>().unwrap(), [4.0, 3.0]);
/// assert!((u * s.unsqueeze()).matmul(vt).all_close(a, None, None));
/// ```
///
/// # Panics
/// When the rank is below 2 or `D1` is not `D - 1`.
#[track_caller]
pub fn svd<const D: usize, const D1: usize>(tensor: Tensor<D>, sweeps: usize) -> (Tensor<D>, Tensor<D1>, Tensor<D>) {
    assert!(D1 + 1 == D, "svd: the singular values of rank {D} are not of rank {D1}: shape {:?}", tensor.raw.dims());
    let (u, s, vt) = singular_values(&tensor.raw, sweeps);
    (Tensor::from_raw(u), Tensor::from_raw(s), Tensor::from_raw(vt))
}

/// `U`, the singular values, `Vᵀ`.
#[track_caller]
pub(super) fn singular_values(x: &RawTensor, sweeps: usize) -> (RawTensor, RawTensor, RawTensor) {
    let [u, s, vt] = factored(x, Function::Svd, sweeps, svd_gradient);
    let axis = s.rank() - 2;
    (u, s.squeeze(axis), vt)
}

/// With `F_ij = 1 / (s_j² - s_i²)` off the diagonal (J. Townsend, "Differentiating the singular value decomposition", 2016).
fn svd_gradient([u, s, vt]: [&RawTensor; 3], [du, ds, dvt]: [&RawTensor; 3]) -> RawTensor {
    let (v, dv) = (vt.transpose(), dvt.transpose());
    let (row, column) = (s.clone(), s.transpose());
    let gap = row.square().sub(&column.square());
    let same = RawTensor::off_diagonal(&gap.device().without_autodiff(), gap.dims(), 0).not();
    let f = gap.fill_constant(&same, 1.0).recip().fill_constant(&same, 0.0);
    let skew = |x: &RawTensor, dx: &RawTensor| {
        let inner = x.transpose().matmul(dx);
        f.mul(&inner.sub(&inner.transpose()))
    };
    // diag(ds), and what turning U and V contributes.
    let middle = same.choose_or_zero(ds).add(&skew(u, du).mul(&row)).add(&skew(&v, &dv).mul(&column));
    let mut da = u.matmul(&middle).matmul(vt);
    // What leaves the spaces that U and V span, if there is anything outside of them.
    let reciprocal = s.recip().fill_constant(&s.with_constant(Eq, 0.0), 0.0);
    let (m, n, k) = (u.dims()[u.rank() - 2], v.dims()[v.rank() - 2], s.dims()[s.rank() - 1]);
    if m > k {
        let outside = du.sub(&u.matmul(&u.transpose().matmul(du)));
        da = da.add(&outside.mul(&reciprocal).matmul(vt));
    }
    if n > k {
        let outside = dvt.sub(&dvt.matmul(&v).matmul(vt));
        da = da.add(&u.matmul(&reciprocal.transpose().mul(&outside)));
    }
    da
}

/// The determinants of square matrices `[.., n, n]`, in the shape of the other axes; of a single matrix, `[1]`. Gradients flow for singular
/// matrices too.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::det};
/// let a = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &Device::default());
/// assert_eq!(det::<2, 1, 1>(a).into_scalar::<f32>(), -2.0);
/// ```
///
/// # Panics
/// When the matrices are not square, or `D2` is not `D - 2` (1 for a matrix).
#[track_caller]
pub fn det<const D: usize, const D1: usize, const D2: usize>(tensor: Tensor<D>) -> Tensor<D2> {
    let dims = tensor.raw.dims();
    assert!(D >= 2, "det: needs at least two axes: shape {dims:?}");
    assert!(dims[D - 2] == dims[D - 1], "det: the matrices are not square: shape {dims:?}");
    let batch = dims[..D - 2].to_vec();
    Tensor::from_raw(batch_shaped::<D2>(&determinant(&tensor.raw), &batch))
}

#[track_caller]
fn determinant(x: &RawTensor) -> RawTensor {
    let value = Function::Det.apply(&x.untracked(), 0);
    autodiff::custom(&[x], value, Keep::Inputs, |call| {
        let x = call.input(0);
        let n = x.dims()[x.rank() - 1];
        let cofactors = match x.is_tracked() {
            true => differentiable_cofactors(x),
            false => Function::Adjugate.unpack(&Function::Adjugate.apply(x, 0), n, n).remove(0).transpose(),
        };
        [Some(cofactors.mul(&call.dy.unsqueeze(call.dy.rank())))].into()
    })
}

/// Up to this size cofactors that are to be differentiated are determinants of minors, so that singular matrices have derivatives of higher order too.
const MINORS: usize = 32;

/// The cofactors of matrices `[.., n, n]`, from operations that have gradients.
fn differentiable_cofactors(x: &RawTensor) -> RawTensor {
    let (rank, n) = (x.rank(), x.dims()[x.rank() - 1]);
    if n > MINORS {
        return inverse(x).transpose().mul(&determinant(x).unsqueeze(rank - 1));
    }
    // Rows and columns but one: row k of the index holds every number but k.
    let rest: Vec<i64> = (0..n as i64).flat_map(|k| (0..n as i64).filter(move |i| *i != k)).collect();
    let rest = RawTensor::from_slice(&x.device().without_autodiff(), &[rest.len()], RawTensor::INDEX, &rest);
    let mut dims = Dims::from_slice(&x.dims()[..rank - 2]);
    dims.extend([n, n.saturating_sub(1), n, n.saturating_sub(1)]);
    let minors = x.select(rank - 2, &rest).select(rank - 1, &rest).reshape(&dims).swap_dims(rank - 1, rank);
    let signs = |axis: usize| RawTensor::iota(&x.device().without_autodiff(), &[n, n], RawTensor::INDEX, axis);
    let odd = signs(0).add(&signs(1)).rem_scalar(2i64).with_constant(Eq, 1.0);
    let values = determinant(&minors).squeeze(rank);
    values.mask_where(&odd, &values.neg())
}
