//! Where clauses that the generated impls add for type parameters.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Generics, Ident, Type, parse_quote};

use crate::field::{FieldKind, mentions};

/// The generics of the derived type with the bounds its fields need.
pub struct Bounds {
    /// For `Module` and `Clone`: parameters inside modules are modules, all others are plain values.
    pub module: Generics,
    /// For the display traits: the same, and parameters inside modules can be displayed.
    pub display: Generics,
}

/// Computes the bounds from the fields (kind and type) of all variants.
pub fn of(generics: &Generics, fields: &[(FieldKind, &Type)], root: &TokenStream) -> Bounds {
    let mut module = generics.clone();
    let mut display = generics.clone();
    let parameters: Vec<Ident> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    for parameter in parameters {
        let inside_module = fields.iter().any(|(kind, ty)| *kind == FieldKind::Module && mentions(ty, &parameter));
        let declared = crate::field::bounds_of(&parameter, generics).unwrap_or_default();
        let value: syn::WherePredicate = parse_quote!(#parameter: ::core::clone::Clone + ::core::fmt::Debug + ::core::marker::Send);
        if inside_module && may_be_module(&declared) {
            module.make_where_clause().predicates.push(parse_quote!(#parameter: #root::module::Module));
            display.make_where_clause().predicates.push(parse_quote!(#parameter: #root::module::Module + #root::module::ModuleDisplay));
        } else {
            module.make_where_clause().predicates.push(value.clone());
            display.make_where_clause().predicates.push(value);
        }
    }
    Bounds { module, display }
}

/// A parameter may be a module unless all its bounds are known not to imply it.
fn may_be_module(bounds: &[syn::TypeParamBound]) -> bool {
    bounds.is_empty() || !bounds.iter().all(crate::field::is_plain_bound)
}

/// The three parts of an impl header: `impl<..>`, `Type<..>` and `where ..`.
pub fn header<'a>(name: &Ident, original: &'a Generics, bounded: &'a Generics) -> (syn::ImplGenerics<'a>, TokenStream, TokenStream) {
    let (impl_generics, _, where_clause) = bounded.split_for_impl();
    let (_, type_generics, _) = original.split_for_impl();
    (impl_generics, quote!(#name #type_generics), quote!(#where_clause))
}
