//! Kiln's datasets, batchers and data loaders.
