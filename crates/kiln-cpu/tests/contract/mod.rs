//! The contraction engine against plain loops in `f64`.

mod fixture;
mod matmul;
