//! A configuration with a type parameter.

use kiln::config::Config;

/// Generic.
#[derive(Config, Debug)]
pub enum Generic<T> { //~ a configuration can't have type parameters: it is stored by its concrete fields
    /// One.
    One(T),
}
