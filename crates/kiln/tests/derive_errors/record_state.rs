//! States that can't be recorded.

use kiln::optim::RecordState;

/// An enum.
#[derive(RecordState, Clone)]
pub enum Kinds { //~ a recorded state is a struct with named fields
    /// One.
    One,
}

/// Without names.
#[derive(RecordState, Clone)]
pub struct Tuple(usize); //~ a recorded state names its fields: the names are the keys in the record

/// A field that is no tensor, number or state.
#[derive(RecordState, Clone)]
pub struct Text {
    name: String, //~ can't be part of a recorded state
}
