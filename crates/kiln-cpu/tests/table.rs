//! Tests driven by tables: every op in every dtype over every layout, fused and not, against the interpreter.
mod contractions;
mod elementwise;
mod layouts;
mod reductions;
