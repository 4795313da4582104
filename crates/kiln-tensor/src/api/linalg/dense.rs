//! Factorisations of one dense matrix in `f64`, row-major.

use alloc::vec;
use alloc::vec::Vec;

/// A row-major matrix.
#[derive(Clone)]
pub(super) struct Matrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f64>,
}

impl Matrix {
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, values: vec![0.0; rows * columns] }
    }

    pub fn identity(n: usize) -> Self {
        let mut m = Self::zeros(n, n);
        for i in 0..n {
            *m.at(i, i) = 1.0;
        }
        m
    }

    pub fn get(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    pub fn at(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.values[row * self.columns + column]
    }

    pub fn transposed(&self) -> Self {
        let mut t = Self::zeros(self.columns, self.rows);
        for i in 0..self.rows {
            for j in 0..self.columns {
                *t.at(j, i) = self.get(i, j);
            }
        }
        t
    }

    fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            for j in 0..self.columns {
                self.values.swap(a * self.columns + j, b * self.columns + j);
            }
        }
    }
}

/// Gaussian elimination with row pivoting: both factors in one matrix, and which row of the input each of its rows was.
pub(super) fn eliminate(mut a: Matrix) -> (Matrix, Vec<usize>) {
    let mut order: Vec<usize> = (0..a.rows).collect();
    for k in 0..a.rows.min(a.columns) {
        let mut pivot = k;
        for i in k + 1..a.rows {
            if a.get(i, k).abs() > a.get(pivot, k).abs() {
                pivot = i;
            }
        }
        a.swap_rows(k, pivot);
        order.swap(k, pivot);
        let top = a.get(k, k);
        if top == 0.0 {
            continue;
        }
        for i in k + 1..a.rows {
            let factor = a.get(i, k) / top;
            *a.at(i, k) = factor;
            if factor != 0.0 {
                for j in k + 1..a.columns {
                    *a.at(i, j) -= factor * a.get(k, j);
                }
            }
        }
    }
    (a, order)
}

/// `A = P L U`: a permutation `m × m`, a lower factor `m × k` with ones on the diagonal, an upper factor `k × n`; `k = min(m, n)`.
pub(super) fn lu(a: Matrix) -> [Matrix; 3] {
    let (m, n) = (a.rows, a.columns);
    let k = m.min(n);
    let (factors, order) = eliminate(a);
    let (mut p, mut l, mut u) = (Matrix::zeros(m, m), Matrix::zeros(m, k), Matrix::zeros(k, n));
    for (row, source) in order.iter().enumerate() {
        *p.at(*source, row) = 1.0;
    }
    for i in 0..m {
        for j in 0..n {
            if j < i && j < k {
                *l.at(i, j) = factors.get(i, j);
            } else if i < k && j >= i {
                *u.at(i, j) = factors.get(i, j);
            }
        }
        if i < k {
            *l.at(i, i) = 1.0;
        }
    }
    [p, l, u]
}

/// The inverse of a square matrix by elimination; not finite where the matrix is singular.
pub(super) fn inverse(a: Matrix) -> Matrix {
    let n = a.rows;
    let (factors, order) = eliminate(a);
    let mut x = Matrix::zeros(n, n);
    for (row, source) in order.iter().enumerate() {
        *x.at(row, *source) = 1.0;
    }
    for i in 0..n {
        for k in 0..i {
            let factor = factors.get(i, k);
            for j in 0..n {
                *x.at(i, j) -= factor * x.get(k, j);
            }
        }
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            let factor = factors.get(i, k);
            for j in 0..n {
                *x.at(i, j) -= factor * x.get(k, j);
            }
        }
        let top = factors.get(i, i);
        for j in 0..n {
            *x.at(i, j) /= top;
        }
    }
    x
}

/// The determinant, by elimination.
pub(super) fn det(a: Matrix) -> f64 {
    let n = a.rows;
    let (factors, mut order) = eliminate(a);
    let mut product: f64 = (0..n).map(|i| factors.get(i, i)).product();
    // The sign of the permutation: every transposition that sorts it flips it.
    for i in 0..n {
        while order[i] != i {
            let target = order[i];
            order.swap(i, target);
            product = -product;
        }
    }
    product
}

/// `A = Q R` by Householder reflections: `Q` is `m × m`, `R` is `m × n`.
pub(super) fn qr(a: Matrix) -> (Matrix, Matrix) {
    let (m, n) = (a.rows, a.columns);
    let (mut r, mut q) = (a, Matrix::identity(m));
    for k in 0..n.min(m.saturating_sub(1)) {
        let below: f64 = (k + 1..m).map(|i| r.get(i, k) * r.get(i, k)).sum();
        if below == 0.0 {
            continue;
        }
        let head = r.get(k, k);
        let length = libm::sqrt(head * head + below);
        let top = if head > 0.0 { -length } else { length };
        // The reflection I - t v vᵀ with v = (head - top, rest), scaled to start with 1.
        let mut v = vec![0.0; m - k];
        v[0] = 1.0;
        for i in k + 1..m {
            v[i - k] = r.get(i, k) / (head - top);
        }
        let t = (top - head) / top;
        for j in k..n {
            let dot: f64 = (0..m - k).map(|i| v[i] * r.get(k + i, j)).sum();
            for (i, v) in v.iter().enumerate() {
                *r.at(k + i, j) -= t * dot * v;
            }
        }
        for i in k + 1..m {
            *r.at(i, k) = 0.0;
        }
        for row in 0..m {
            let dot: f64 = (0..m - k).map(|i| q.get(row, k + i) * v[i]).sum();
            for (i, v) in v.iter().enumerate() {
                *q.at(row, k + i) -= t * dot * v;
            }
        }
    }
    (q, r)
}

/// `A = U diag(S) Vᵀ` with `k = min(m, n)` columns in `U` and `V`, largest values first, by one-sided Jacobi rotations
/// (J. Demmel, K. Veselić, "Jacobi's method is more accurate than QR", 1992). Stops when all columns are orthogonal, or after `sweeps`.
pub(super) fn svd(a: &Matrix, sweeps: usize) -> (Matrix, Vec<f64>, Matrix) {
    if a.rows < a.columns {
        let (u, s, v) = svd(&a.transposed(), sweeps);
        return (v, s, u);
    }
    let (m, n) = (a.rows, a.columns);
    // Columns are contiguous in the transposes.
    let (mut work, mut v) = (a.transposed(), Matrix::identity(n));
    for _ in 0..sweeps {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                rotated |= orthogonalize(&mut work, &mut v, p, q);
            }
        }
        if !rotated {
            break;
        }
    }
    let mut lengths: Vec<(f64, usize)> = (0..n).map(|j| (norm(&work.values[j * m..][..m]), j)).collect();
    lengths.sort_by(|a, b| b.0.total_cmp(&a.0));
    let largest = lengths.first().map_or(0.0, |(length, _)| *length);
    let (mut ut, mut vt) = (Matrix::zeros(n, m), Matrix::zeros(n, n));
    for (k, (length, j)) in lengths.iter().enumerate() {
        vt.values[k * n..][..n].copy_from_slice(&v.values[j * n..][..n]);
        if *length > largest * f64::EPSILON * m as f64 {
            for i in 0..m {
                *ut.at(k, i) = work.get(*j, i) / length;
            }
        } else {
            complete(&mut ut, k);
        }
    }
    (ut.transposed(), lengths.iter().map(|(length, _)| *length).collect(), vt.transposed())
}

fn norm(x: &[f64]) -> f64 {
    libm::sqrt(x.iter().map(|x| x * x).sum())
}

/// Rotates rows `p` and `q` of `work` until they are orthogonal, and those of `v` with them; whether anything changed.
fn orthogonalize(work: &mut Matrix, v: &mut Matrix, p: usize, q: usize) -> bool {
    let m = work.columns;
    let (mut pp, mut qq, mut pq) = (0.0, 0.0, 0.0);
    for i in 0..m {
        let (x, y) = (work.get(p, i), work.get(q, i));
        pp += x * x;
        qq += y * y;
        pq += x * y;
    }
    if pq == 0.0 || pq.abs() <= f64::EPSILON * libm::sqrt(pp * qq) {
        return false;
    }
    let zeta = (qq - pp) / (2.0 * pq);
    let t = libm::copysign(1.0, zeta) / (zeta.abs() + libm::sqrt(1.0 + zeta * zeta));
    let c = 1.0 / libm::sqrt(1.0 + t * t);
    let s = c * t;
    for matrix in [work, v] {
        for i in 0..matrix.columns {
            let (x, y) = (matrix.get(p, i), matrix.get(q, i));
            *matrix.at(p, i) = c * x - s * y;
            *matrix.at(q, i) = s * x + c * y;
        }
    }
    true
}

/// Fills row `k` with a unit vector orthogonal to the rows before it.
fn complete(rows: &mut Matrix, k: usize) {
    let m = rows.columns;
    for axis in 0..m {
        let mut candidate = vec![0.0; m];
        candidate[axis] = 1.0;
        // Twice, because once loses orthogonality to rounding.
        for _ in 0..2 {
            for row in 0..k {
                let dot: f64 = (0..m).map(|i| rows.get(row, i) * candidate[i]).sum();
                for (i, x) in candidate.iter_mut().enumerate() {
                    *x -= dot * rows.get(row, i);
                }
            }
        }
        let length = norm(&candidate);
        // One of the m axes keeps at least this part, because fewer than m rows are taken.
        if length * length * m as f64 >= 0.5 {
            for (i, x) in candidate.iter().enumerate() {
                *rows.at(k, i) = x / length;
            }
            return;
        }
    }
}

/// The transpose of the matrix of cofactors, also of a singular matrix: from `A = U S Vᵀ`, it is `det(U V) V adj(S) Uᵀ`.
pub(super) fn adjugate(a: &Matrix) -> Matrix {
    let n = a.rows;
    let (u, s, v) = svd(a, 64);
    let sign = if det(u.clone()) * det(v.clone()) < 0.0 { -1.0 } else { 1.0 };
    let mut out = Matrix::zeros(n, n);
    for k in 0..n {
        let others: f64 = (0..n).filter(|i| *i != k).map(|i| s[i]).product();
        for i in 0..n {
            for j in 0..n {
                *out.at(i, j) += sign * others * v.get(i, k) * u.get(j, k);
            }
        }
    }
    out
}
