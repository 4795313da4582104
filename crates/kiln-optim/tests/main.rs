//! Tests of optimizers and schedulers through their public interface.

mod algorithms;
mod clipping;
mod groups;
mod problem;
mod records;
mod schedulers;

#[path = "../../../scripts/golden/golden.rs"]
mod golden;
