//! Tests of the CUDA runtime: rendered kernels on an emulated GPU everywhere, compiled by NVRTC where it is, on a real GPU where there is one.
mod attention;
mod compiles;
mod conv;
mod decoding;
mod dnn;
mod emulator;
mod families;
mod fused;
mod gpu;
mod indexing;
mod nvrtc;
mod oracle;
mod pools;
mod products;
mod scans;
mod snapshots;
