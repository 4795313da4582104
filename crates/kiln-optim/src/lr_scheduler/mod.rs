//! Learning rates that change with the steps.

pub mod composed;
mod config;
pub mod constant;
pub mod cosine;
pub mod exponential;
#[cfg(feature = "std")]
mod legacy;
pub mod linear;
pub mod module_lr_scheduler;
pub mod noam;
pub mod one_cycle;
pub mod plateau;
pub mod polynomial;
mod record;
mod scheduler;
pub mod sequential;
pub mod step;
pub mod warm_restarts;

pub use config::LrSchedulerConfig;
pub use record::LrSchedulerRecord;
pub use scheduler::{DynLrScheduler, LrScheduler, LrSchedulerClone};
