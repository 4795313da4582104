//! Tests of layers and losses through their public interface.

mod attention;
mod caches;
mod graded;
mod init;
mod layers;
mod linear;
mod losses;
mod norms;
mod recurrent;
mod snapshots;
mod transducer;

#[path = "../../../scripts/golden/golden.rs"]
mod golden;
