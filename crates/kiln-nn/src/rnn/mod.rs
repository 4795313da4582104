//! Recurrent layers.

pub mod basic;
mod gate;
pub mod gru;
pub mod lstm;
mod sequence;

pub use basic::{BiRnn, BiRnnConfig, Rnn, RnnConfig, RnnState};
pub use gate::GateController;
pub use gru::{BiGru, BiGruConfig, Gru, GruConfig};
pub use lstm::{BiLstm, BiLstmConfig, Lstm, LstmConfig, LstmState, OptionalInitialLstmState};
