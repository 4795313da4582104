//! Autodiff: a tape beside the handles, and one gradient rule per op.
//!
//! A tensor that a gradient may flow through holds an [`Entry`] of the tape: the op that made it, its parents, and the operands that the op's rule needs.
//! [`RawTensor::backward`] walks the entries from the newest to the oldest and applies the rules, which are ordinary tensor ops. Nothing is global: entries that
//! nobody can reach are freed, whether a backward pass has consumed them or not.
mod gradients;
mod rules;
mod state;
mod tape;
mod walk;

pub use gradients::Gradients;
pub(crate) use rules::is_differentiable;
pub(crate) use tape::{Entry, Keep, custom, track};
