//! What users rely on end to end: training, memory, records and messages, through the facade alone.

mod derive_errors;
mod gpt;
mod memory;
mod panics;
mod pytorch;
mod records;
mod training;

#[path = "../../../examples/char_gpt/model.rs"]
mod model;
#[path = "../../../examples/char_gpt/text.rs"]
mod text;
