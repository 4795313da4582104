//! Tests of modules and records through their public interface.

mod burnpack;
mod burnpack_files;
mod burnpack_hostile;
mod config;
mod derive;
mod legacy;
mod params;
mod records;
