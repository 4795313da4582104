//! Derive macros of Kiln: `Module`, `Config` and `RecordState`.
//!
//! Start reading at `module` or `config`. Generated code names Kiln's items through the crate the *user's* manifest
//! depends on (see `root`), so it works under any crate name.

mod bounds;
mod config;
mod display;
mod field;
mod manifest;
mod module;
mod record_state;
mod root;
mod serde_impl;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `Module`, `Clone`, `Display` and the module display traits.
///
/// Works on structs (named, tuple, unit), on enums with at most one payload per variant, and with generics.
/// `#[module(skip)]` on a field leaves it out of the module tree (its type then needs `Clone + Debug + Send`);
/// `#[module(custom_display)]` on the type lets you implement `ModuleDisplay` yourself.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(module::derive(&input))
}

/// Implements `Config`, a constructor, `with_*` builders, `Clone`, `Display`, `Serialize` and `Deserialize`.
///
/// `new` takes the fields without a default, in declaration order. `#[config(default = EXPRESSION)]` gives a field its
/// default (the expression may use the required fields by name); an `Option` field without one starts as `None`.
#[proc_macro_derive(Config, attributes(config))]
pub fn derive_config(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(config::derive(&input))
}

/// Implements `RecordState` for an optimizer or scheduler state: a struct of tensors, scalars, options of those and
/// other states.
#[proc_macro_derive(RecordState)]
pub fn derive_record_state(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(record_state::derive(&input))
}

fn expand(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(|error| error.to_compile_error()).into()
}
