//! Tests of the kernels that are neither fused expressions nor contractions.
mod attention;
mod indexing;
mod pools;
mod scans;
