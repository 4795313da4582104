//! Configurations that can't be.

use kiln::config::Config;

/// Without names.
#[derive(Config, Debug)]
pub struct Tuple(usize); //~ a configuration names its fields: use a struct with named fields

/// An option that is not known.
#[derive(Config, Debug)]
pub struct Option_ {
    #[config(defalt = 1)] //~ unknown option: only `default = EXPRESSION` is known
    size: usize,
}

/// No value.
#[derive(Config, Debug)]
pub struct Empty {
    #[config(default = )] //~ `default = ` needs an expression
    size: usize,
}

/// A text that is no expression.
#[derive(Config, Debug)]
pub struct Text {
    #[config(default = "(")] //~ the default is no expression
    size: usize,
}

/// A default of another type.
#[derive(Config, Debug)]
pub struct Mismatch {
    #[config(default = "\"text\".to_string()")] //~ mismatched types //~ expected `usize`, found `String`
    size: usize,
}

/// An enum without variants.
#[derive(Config, Debug)]
pub enum Never {} //~ a configuration enum needs at least one variant

/// A union.
#[derive(Config)]
pub union Either { //~ only structs and enums can be configurations
    a: usize,
    b: f64,
}
