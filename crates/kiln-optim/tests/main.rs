//! Tests of optimizers and schedulers through their public interface.

mod algorithms;
mod averages;
mod clipping;
mod groups;
mod launches;
mod problem;
mod records;
mod schedulers;
mod schedules;
mod together;

#[path = "../../../scripts/golden/golden.rs"]
mod golden;
