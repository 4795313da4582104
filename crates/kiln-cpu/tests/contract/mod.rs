//! The contraction engine against plain loops in `f64`.

mod conv;
mod fixture;
mod matmul;
