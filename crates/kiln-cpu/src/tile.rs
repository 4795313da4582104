//! The executor of fused kernels: expressions run as vector loops over tiles that stay in the first-level cache.
pub mod elementwise;
