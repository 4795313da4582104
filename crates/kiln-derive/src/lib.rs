//! Derive macros of Kiln.
