//! `#[derive(RecordState)]`: a state struct flattened into named tensors and scalars, and rebuilt from them.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Type};

use crate::root;

/// Expands the derive: each field is a leaf or a nested state under its own name.
pub fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new(input.ident.span(), "a recorded state is a struct with named fields"));
    };
    if let Fields::Unnamed(fields) = &data.fields {
        return Err(syn::Error::new(fields.span(), "a recorded state names its fields: the names are the keys in the record"));
    }
    let root = root::optim()?;
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let mut writes = Vec::new();
    let mut reads = Vec::new();
    for field in &data.fields {
        let Some(ident) = &field.ident else { continue };
        // An `Option` is absent from the record when it is `None`, so it is read and written through its content.
        let content = option_content(&field.ty);
        let ty = content.unwrap_or(&field.ty);
        let key = ident.to_string();
        let key = key.trim_start_matches("r#");
        let span = crate::field::span_of(ty);
        let leaf = quote_spanned!(span=> <#ty as #root::StateField>);
        if content.is_some() {
            writes.push(quote! {
                if let ::core::option::Option::Some(value) = &self.#ident {
                    #leaf::field_flatten(value, prefix, #key, out);
                }
            });
            reads.push(quote!(#ident: #leaf::field_unflatten(prefix, #key, src, device)));
        } else {
            writes.push(quote!(#leaf::field_flatten(&self.#ident, prefix, #key, out);));
            reads.push(quote!(#ident: #leaf::field_unflatten(prefix, #key, src, device)?));
        }
    }
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_variables)]
        impl #impl_generics #root::RecordState for #name #type_generics #where_clause {
            fn state_flatten(&self, prefix: &str, out: &mut #root::StateSink) {
                #(#writes)*
            }
            fn state_unflatten(
                prefix: &str,
                src: &mut #root::StateSource,
                device: &#root::StateDevice,
            ) -> ::core::option::Option<Self> {
                ::core::option::Option::Some(Self { #(#reads,)* })
            }
        }
    })
}

/// The `T` of `Option<T>`.
fn option_content(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        syn::GenericArgument::Type(content) if last.ident == "Option" => Some(content),
        _ => None,
    }
}
