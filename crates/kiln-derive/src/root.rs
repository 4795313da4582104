//! The path of the crate that generated code refers to, as the user's manifest names it.

use std::path::PathBuf;

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use crate::manifest::name_of;

/// Finds the first of `packages` among the dependencies of the crate being compiled.
///
/// A package that compiles itself (its library, tests, examples and doctests alike) is named by its own library name:
/// Kiln's crates declare `extern crate self as …`, so the absolute path holds in all of those.
fn path_of(packages: &[&str]) -> syn::Result<TokenStream> {
    let dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    if let Some(name) = packages.iter().find_map(|package| name_of(&dir, package)) {
        let ident = Ident::new(&name, Span::call_site());
        return Ok(quote!(::#ident));
    }
    Err(syn::Error::new(Span::call_site(), format!("this derive needs `{}` among the dependencies in Cargo.toml (under any name)", packages[0])))
}

/// The crate with `module`, `config` and `serde`.
pub fn modules() -> syn::Result<TokenStream> {
    path_of(&["kiln", "kiln-module"])
}

/// The path with `RecordState` and what its derive uses.
pub fn optim() -> syn::Result<TokenStream> {
    match path_of(&["kiln"]) {
        Ok(root) => Ok(quote!(#root::optim)),
        Err(_) => path_of(&["kiln-optim"]),
    }
}
