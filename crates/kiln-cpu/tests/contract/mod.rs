//! The contraction engine against plain loops in `f64`.

mod amx;
mod conv;
mod fixture;
mod matmul;
