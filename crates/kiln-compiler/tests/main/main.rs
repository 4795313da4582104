//! Tests of the compiler: no device needed.
mod fuzzing;
mod schedules;
