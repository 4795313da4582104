//! Tests of modules and records through their public interface.

mod burnpack;
mod burnpack_files;
mod burnpack_hostile;
mod legacy;
