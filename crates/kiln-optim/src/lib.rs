//! Kiln's optimizers, learning-rate schedulers and gradient clipping.
//!
//! A configuration's `init()` gives a [`ModuleOptimizer`], which steps all parameters of a module; the algorithm for one
//! tensor is an [`Optimizer`]. Gradients reach it as [`GradientsParams`].
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
extern crate self as kiln_optim;

mod adafactor;
mod adagrad;
mod adam;
mod adamw;
mod adan;
pub mod decay;
mod dynamic;
mod ema;
mod global_norm;
pub mod grad_clipping;
mod gradients;
mod lamb;
mod lbfgs;
mod line_search;
mod lion;
pub mod lr_scheduler;
pub mod mixed_precision;
pub mod module_optimizer;
mod moments;
pub mod momentum;
mod muon;
mod number;
mod optimizer;
pub mod record;
mod rmsprop;
mod sgd;
mod state;
mod values;

pub use adafactor::{Adafactor, AdafactorConfig, AdafactorState};
pub use adagrad::{AdaGrad, AdaGradConfig, AdaGradState, LrDecayState};
pub use adam::{Adam, AdamConfig, AdamState};
pub use adamw::{AdamW, AdamWConfig, AdamWState};
pub use adan::{Adan, AdanConfig, AdanState, AdaptiveNesterovMomentumState};
pub use dynamic::{DynOptimizer, DynState};
pub use ema::{Ema, EmaConfig};
pub use gradients::{GradientsAccumulator, GradientsParams, MultiGradientsParams};
pub use kiln_derive::RecordState;
pub use lamb::{Lamb, LambConfig, LambState};
pub use lbfgs::{LBFGS, LBFGSConfig, LBFGSState};
pub use line_search::LineSearchFn;
pub use lion::{Lion, LionConfig, LionState};
pub use module_optimizer::{GradAdaptor, ModuleOptimizer};
pub use moments::AdaptiveMomentumState;
pub use muon::{AdjustLrFn, Muon, MuonConfig, MuonState};
pub use optimizer::{MatrixStep, Optimizer, Together};
pub use record::OptimizerRecord;
pub use rmsprop::{CenteredState, RmsProp, RmsPropConfig, RmsPropMomentum, RmsPropMomentumState, RmsPropState, SquareAvgState};
pub use sgd::{Sgd, SgdConfig, SgdState};
pub use state::{RecordState, StateField, StateSink, StateSource, join_index, join_path};

/// The device type that the `RecordState` derive names.
#[doc(hidden)]
pub use kiln_tensor::Device as StateDevice;

/// The step size of an optimizer.
pub type LearningRate = f64;
