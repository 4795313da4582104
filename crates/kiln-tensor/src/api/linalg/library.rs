//! Factorisations by the crate `faer`, for matrices large enough to be worth a conversion.

use alloc::vec::Vec;

use faer::{Mat, MatRef};

use super::dense::Matrix;

/// From this size on the blocked methods of the library are faster.
const LARGE: usize = 32;

fn is_large(a: &Matrix) -> bool {
    a.rows.min(a.columns) >= LARGE
}

fn given(a: &Matrix) -> MatRef<'_, f64> {
    MatRef::from_row_major_slice(&a.values, a.rows, a.columns)
}

fn taken(a: MatRef<'_, f64>) -> Matrix {
    let mut out = Matrix::zeros(a.nrows(), a.ncols());
    for (i, row) in out.values.chunks_exact_mut(a.ncols().max(1)).enumerate() {
        for (j, value) in row.iter_mut().enumerate() {
            *value = a[(i, j)];
        }
    }
    out
}

fn is_finite(a: &Matrix) -> bool {
    a.values.iter().all(|value| value.is_finite())
}

/// As [`super::dense::lu`]; `None` for small matrices and for those whose elimination meets a column of zeros.
pub(super) fn lu(a: &Matrix) -> Option<[Matrix; 3]> {
    if !is_large(a) || a.rows != a.columns {
        return None;
    }
    let n = a.rows;
    let factors = given(a).partial_piv_lu();
    let (l, u) = (taken(factors.L()), taken(factors.U()));
    let mut p = Matrix::zeros(n, n);
    for (row, source) in factors.P().arrays().0.iter().enumerate() {
        *p.at(*source, row) = 1.0;
    }
    (is_finite(&l) && is_finite(&u)).then_some([p, l, u])
}

/// As [`super::dense::qr`], with thin factors if `thin`; `None` for small matrices.
pub(super) fn qr(a: &Matrix, thin: bool) -> Option<(Matrix, Matrix)> {
    if !is_large(a) {
        return None;
    }
    let factors = given(a).qr();
    let q: Mat<f64> = if thin { factors.compute_thin_Q() } else { factors.compute_Q() };
    let mut r = Matrix::zeros(q.ncols(), a.columns);
    let upper = factors.thin_R();
    for i in 0..upper.nrows() {
        for j in i..a.columns {
            *r.at(i, j) = upper[(i, j)];
        }
    }
    Some((taken(q.as_ref()), r))
}

/// As [`super::dense::svd`]; `None` for small matrices and for those the method doesn't converge on, such as ones with NaN.
pub(super) fn svd(a: &Matrix) -> Option<(Matrix, Vec<f64>, Matrix)> {
    if !is_large(a) {
        return None;
    }
    let factors = given(a).thin_svd().ok()?;
    let values = factors.S().column_vector().iter().copied().collect();
    Some((taken(factors.U()), values, taken(factors.V())))
}
