//! Tests of the compiler: no device needed.
mod schedules;
