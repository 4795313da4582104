//! The display traits of a derived module.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{DeriveInput, Ident, Type};

use crate::bounds;
use crate::field::{self, FieldKind};
use crate::module::Body;

/// Expands `ModuleDisplayDefault`, `Display` and, unless the user writes it, `ModuleDisplay`.
pub fn expand(name: &Ident, input: &DeriveInput, bounds: &bounds::Bounds, body: &Body<'_>, custom: bool, root: &TokenStream) -> TokenStream {
    let (impl_generics, this, where_clause) = bounds::header(name, &input.generics, &bounds.display);
    let title = name.to_string();
    let content = match body {
        Body::Struct(fields) => {
            let adds = fields.iter().map(|field| {
                let member = &field.member;
                let span = field::span_of(field.ty);
                add(field.kind, field.ty, &field.name, &quote_spanned!(span=> &self.#member))
            });
            quote!(content.set_top_level_type(#title)#(#adds)*)
        }
        Body::Enum(variants) => {
            let arms = variants.iter().map(|variant| {
                let ident = variant.ident;
                let label = ident.to_string();
                match variant.payload {
                    Some((ty, kind)) => {
                        let add = add(kind, ty, &label, &quote!(value));
                        quote!(Self::#ident(value) => content.set_top_level_type(#title)#add,)
                    }
                    None => {
                        let label = format!("{title}::{label}");
                        quote!(Self::#ident => content.set_top_level_type(#label),)
                    }
                }
            });
            quote!(match self { #(#arms)* })
        }
    };
    let module_display = if custom {
        quote!()
    } else {
        quote! {
            #[automatically_derived]
            impl #impl_generics #root::module::ModuleDisplay for #this #where_clause {}
        }
    };
    quote! {
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #impl_generics #root::module::ModuleDisplayDefault for #this #where_clause {
            fn content(
                &self,
                content: #root::module::Content,
            ) -> ::core::option::Option<#root::module::Content> {
                ::core::option::Option::Some(#content)
            }
            fn num_params(&self) -> usize {
                #root::module::Module::num_params(self)
            }
        }
        #module_display
        #[automatically_derived]
        impl #impl_generics ::core::fmt::Display for #this #where_clause {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                let text = #root::module::ModuleDisplay::format(self, ::core::default::Default::default());
                formatter.write_str(text.as_str())
            }
        }
    }
}

/// The call that adds a field, spanned at its type so that what the type lacks is reported there.
fn add(kind: FieldKind, ty: &Type, label: &str, value: &TokenStream) -> TokenStream {
    let span = field::span_of(ty);
    match kind {
        FieldKind::Module | FieldKind::Scalar => quote_spanned!(span=> .add(#label, #value)),
        FieldKind::Container | FieldKind::Skip => quote_spanned!(span=> .add_debug_attribute(#label, #value)),
    }
}
