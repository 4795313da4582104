//! What users rely on end to end: training, memory, records and messages, through the facade alone.

// The zoo is written for Burn.
extern crate kiln as burn;

mod burn_layers;
mod defaults;
mod derive_errors;
mod features;
mod gpt;
mod memory;
mod panics;
mod pytorch;
mod quantized;
mod records;
mod training;
mod zoo;

#[path = "../../../examples/char_gpt/model.rs"]
mod model;
#[path = "../../../examples/char_gpt/text.rs"]
mod text;
