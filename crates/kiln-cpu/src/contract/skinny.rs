//! Kernels for a left operand of a few rows: the right operand is streamed once, from where it lies.

use super::engine::{Contraction, each};
use super::lane::{Element, Lane, first_bits};
use super::micro::Scalar;
use super::parallel::ParallelFor;
use super::scratch::Scratch;
use super::sink::{Epilogue, Finished, Sink};

/// One piece of a skinny contraction: `y[i][j] (+)= sum_p x[i][p] w[..]`; strides in elements.
pub(crate) struct Job<E> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub x: *const E,
    pub x_row: isize,
    pub x_k: isize,
    pub w: *const E,
    /// Stride of `w` along the axis it is not adjacent in: `p` for `axpy`, `j` for `dot`.
    pub w_row: isize,
    pub y: *mut E,
    pub y_row: isize,
}

/// Steps of the contraction that one pass over the outputs takes in.
const STEPS: usize = 8;
/// Outputs a row that stay in the first-level cache between passes.
const STRIP: usize = 1024;

/// `w` is adjacent along `j`: adds multiples of its rows to the outputs, several rows a pass.
///
/// # Safety
/// `job` describes readable and writable memory (`x[i][p]` at `i * x_row + p * x_k`), and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn axpy<V: Lane>(job: &Job<V::E>) {
    // SAFETY: as the caller's.
    unsafe {
        for j in (0..job.n).step_by(STRIP) {
            let n = (job.n - j).min(STRIP);
            let (y, w) = (job.y.add(j), job.w.add(j));
            if job.k == 0 {
                for i in 0..job.m {
                    for c in 0..n {
                        y.offset(i as isize * job.y_row).add(c).write(V::E::ZERO);
                    }
                }
            }
            let mut p = 0;
            while p < job.k {
                let steps = (job.k - p).min(STEPS);
                let w = w.offset(p as isize * job.w_row);
                let x = job.x.offset(p as isize * job.x_k);
                if steps == STEPS {
                    for i in 0..job.m {
                        let x = x.offset(i as isize * job.x_row);
                        let y = y.offset(i as isize * job.y_row);
                        pass::<V, STEPS>(job, x, w, y, n, p == 0);
                    }
                } else {
                    for s in 0..steps {
                        let w = w.offset(s as isize * job.w_row);
                        for i in 0..job.m {
                            let x = x.offset(i as isize * job.x_row + s as isize * job.x_k);
                            let y = y.offset(i as isize * job.y_row);
                            pass::<V, 1>(job, x, w, y, n, p + s == 0);
                        }
                    }
                }
                p += steps;
            }
        }
    }
}

/// Adds `S` rows of `w` to one row of `n` outputs.
#[inline(always)]
unsafe fn pass<V: Lane, const S: usize>(job: &Job<V::E>, x: *const V::E, w: *const V::E, y: *mut V::E, n: usize, first: bool) {
    // SAFETY: as the caller's of `axpy`.
    unsafe {
        let mut xs = [V::zero(); S];
        for s in 0..S {
            xs[s] = V::splat(*x.offset(s as isize * job.x_k));
        }
        let mut c = 0;
        while c + V::N <= n {
            let mut acc = if first { V::zero() } else { V::load(y.add(c)) };
            for s in 0..S {
                let row = w.offset(s as isize * job.w_row).add(c);
                acc = xs[s].fma(V::load(row), acc);
            }
            acc.store(y.add(c));
            c += V::N;
        }
        if c < n {
            let mask = V::mask(first_bits(n - c));
            let mut acc = if first { V::zero() } else { V::load_mask(y.add(c), mask) };
            for s in 0..S {
                let row = w.offset(s as isize * job.w_row).add(c);
                acc = xs[s].fma(V::load_mask(row, mask), acc);
            }
            acc.store_mask(y.add(c), mask);
        }
    }
}

/// `w` is adjacent along `p`: dot products of its rows with the rows of `x`, which must be adjacent along `p` too.
///
/// # Safety
/// As for [`axpy`], with `x_k == 1`.
#[inline(always)]
pub(crate) unsafe fn dot<V: Lane>(job: &Job<V::E>) {
    // SAFETY: as the caller's.
    unsafe {
        let mut j = 0;
        while j < job.n {
            let cols = (job.n - j).min(4);
            let mut i = 0;
            while i < job.m {
                let rows = (job.m - i).min(4);
                match (rows, cols) {
                    (4, 4) => dots::<V, 4, 4, 1>(job, i, j),
                    (1, 4) => dots::<V, 1, 4, 2>(job, i, j),
                    (_, 4) => {
                        for r in 0..rows {
                            dots::<V, 1, 4, 2>(job, i + r, j);
                        }
                    }
                    _ => {
                        for r in 0..rows {
                            for c in 0..cols {
                                dots::<V, 1, 1, 2>(job, i + r, j + c);
                            }
                        }
                    }
                }
                i += rows;
            }
            j += cols;
        }
    }
}

/// `R` by `C` dot products; every product is summed in the same order whatever `R` and `C` are.
#[inline(always)]
unsafe fn dots<V: Lane, const R: usize, const C: usize, const U: usize>(job: &Job<V::E>, i: usize, j: usize) {
    // SAFETY: as the caller's of `dot`.
    unsafe {
        let x = job.x.offset(i as isize * job.x_row);
        let w = job.w.offset(j as isize * job.w_row);
        let mut acc = [[V::zero(); C]; R];
        let mut p = 0;
        while p + V::N * U <= job.k {
            for u in 0..U {
                let p = p + u * V::N;
                let mut ws = [V::zero(); C];
                for c in 0..C {
                    ws[c] = V::load(w.offset(c as isize * job.w_row).add(p));
                }
                for r in 0..R {
                    let xs = V::load(x.offset(r as isize * job.x_row).add(p));
                    for c in 0..C {
                        acc[r][c] = xs.fma(ws[c], acc[r][c]);
                    }
                }
            }
            p += V::N * U;
        }
        while p < job.k {
            let mask = V::mask(first_bits((job.k - p).min(V::N)));
            for r in 0..R {
                let xs = V::load_mask(x.offset(r as isize * job.x_row).add(p), mask);
                for c in 0..C {
                    let ws = V::load_mask(w.offset(c as isize * job.w_row).add(p), mask);
                    acc[r][c] = xs.fma(ws, acc[r][c]);
                }
            }
            p += V::N;
        }
        for r in 0..R {
            for c in 0..C {
                let to = job.y.offset((i + r) as isize * job.y_row).add(j + c);
                to.write(acc[r][c].sum());
            }
        }
    }
}

/// Most rows that are taken for skinny: if the right operand lies by rows, by rows far apart, and by columns. Tiles read rows
/// where they lie at full speed unless each is on a page of its own.
const ROWS: [usize; 3] = [1, 24, 16];
/// Bytes between rows that are far apart.
const FAR: usize = 8 << 10;

/// Runs a contraction whose left operand has few rows, if both operands lie in memory in a fitting way.
///
/// # Safety
/// As for `contract`.
pub(crate) unsafe fn run<E: Scalar>(job: &Contraction<'_, E>, pool: &dyn ParallelFor) -> bool {
    if job.m > ROWS[1] {
        return false;
    }
    let (Some(a), Some(b)) = (job.a.view(0, 0), job.b.view(0, 0)) else {
        return false;
    };
    if job.a.period().min(job.b.period()) < job.k {
        return false;
    }
    let by_rows = b.outer == 1;
    if !by_rows && b.inner != 1 {
        return false;
    }
    let bytes = job.n * job.k * size_of::<E>();
    let far = b.inner.unsigned_abs() * size_of::<E>() >= FAR;
    let most = if !by_rows { ROWS[2] } else { ROWS[far as usize] };
    if job.m > most {
        return false;
    }
    let kernels = E::kernels();
    // The rows of `x` are copied where the dot kernel could not read them.
    let copied = !by_rows && a.inner != 1;
    let share = job.n.div_ceil(2 * pool.threads()).next_multiple_of(64).max(64);
    let chunk = if pool.threads() == 1 || bytes * job.batch < 128 << 10 { job.n } else { share };
    let chunk = chunk.min(4096);
    let chunks = job.n.div_ceil(chunk);
    let stride = chunk.next_multiple_of(16);
    each(pool, job.batch * chunks, job.m * job.k * chunk, &|i| {
        let (batch, col) = (i / chunks, i % chunks * chunk);
        let cols = chunk.min(job.n - col);
        let (Some(a), Some(b)) = (job.a.view(batch, 0), job.b.view(batch, 0)) else {
            return;
        };
        let x_len = if copied { job.m * job.k } else { 0 };
        let held = Scratch::take((x_len + job.m * stride) * size_of::<E>());
        let (xs, sums): (*mut E, *mut E) = (held.ptr(), held.ptr::<E>().wrapping_add(x_len));
        let (mut x, mut x_row, mut x_k) = (a.ptr, a.outer, a.inner);
        if copied {
            for r in 0..job.m {
                for p in 0..job.k {
                    let from = a.ptr.wrapping_offset(r as isize * a.outer + p as isize * a.inner);
                    // SAFETY: inside the operand, and inside the scratch.
                    unsafe { xs.add(r * job.k + p).write(from.read()) };
                }
            }
            (x, x_row, x_k) = (xs, job.k as isize, 1);
        }
        let (y, y_row, direct) = match &job.sink {
            Sink::Store(store) if store.direct() && store.keep == E::ZERO => (store.at(batch, 0, col), store.row, true),
            _ => (sums, stride as isize, false),
        };
        let piece = Job {
            m: job.m,
            n: cols,
            k: job.k,
            x,
            x_row,
            x_k,
            w: b.ptr.wrapping_offset(col as isize * b.outer),
            w_row: if by_rows { b.inner } else { b.outer },
            y,
            y_row,
        };
        let part = Finished { batch, row: 0, rows: job.m, col, cols, data: sums, row_stride: stride };
        // SAFETY: the piece lies inside the operands and the result; the kernels were chosen for this machine.
        unsafe {
            if by_rows {
                (kernels.axpy)(&piece);
            } else {
                (kernels.dot)(&piece);
            }
            match &job.sink {
                _ if direct => {}
                Sink::Store(store) => store.finish(&part),
                Sink::Epilogue(epilogue) => epilogue.finish(&part),
            }
        }
    });
    true
}
