//! Tests of the CUDA runtime: rendered kernels on an emulated GPU everywhere, on a real one where there is one.
mod emulator;
mod indexing;
mod oracle;
mod pools;
mod scans;
mod snapshots;
