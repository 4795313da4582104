//! Tests of the compiler: no device needed.
mod fuzzing;
mod layout;
mod schedules;
