//! On a machine with a GPU.
