//! Tests of layers and losses through their public interface.

mod activations;
mod attention;
mod caches;
mod composites;
mod faults;
mod graded;
mod init;
mod inventory;
mod layers;
mod linear;
mod losses;
mod norms;
mod recurrent;
mod snapshots;
mod transducer;
mod windows;

#[path = "../../../scripts/golden/golden.rs"]
mod golden;
