//! Tests of layers and losses through their public interface.

mod activations;
mod attention;
mod caches;
mod composites;
mod faults;
mod graded;
mod init;
mod inventory;
mod layer_options;
mod layers;
mod linear;
mod loss_options;
mod losses;
mod norms;
mod options;
mod paths;
mod recurrent;
mod recurrent_options;
mod snapshots;
mod transducer;
mod window_options;
mod windows;

#[path = "../../../scripts/golden/golden.rs"]
mod golden;
