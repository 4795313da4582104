//! Kiln's records and weight files.
