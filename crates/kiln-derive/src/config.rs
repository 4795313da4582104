//! `#[derive(Config)]`: constructor, builders, `Clone`, `Display` and serialisation of a configuration.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Fields, Ident, LitStr, Type};

use crate::{root, serde_impl};

/// A field of a configuration struct.
pub struct Field<'a> {
    /// The field's name.
    pub ident: &'a Ident,
    /// Its type.
    pub ty: &'a Type,
    /// The expression it starts with; a field without one is an argument of `new`.
    pub default: Option<TokenStream>,
    doc: Vec<&'a Attribute>,
    optional: bool,
}

/// Expands the derive.
pub fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let root = root::modules()?;
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let (inherent, clone, serde) = match &input.data {
        Data::Struct(data) => {
            let fields = fields_of(&data.fields)?;
            let inherent = inherent_impl(input, &fields);
            let copies = fields.iter().map(|field| {
                let ident = field.ident;
                quote!(#ident: ::core::clone::Clone::clone(&self.#ident))
            });
            (inherent, quote!(Self { #(#copies,)* }), serde_impl::for_struct(input, &fields, &root))
        }
        Data::Enum(data) => (quote!(), clone_enum(data), serde_impl::for_enum(input, data, &root)?),
        _ => {
            return Err(syn::Error::new(input.ident.span(), "only structs and enums can be configurations"));
        }
    };
    Ok(quote! {
        #inherent
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #impl_generics ::core::clone::Clone for #name #type_generics #where_clause {
            fn clone(&self) -> Self {
                #clone
            }
        }
        #[automatically_derived]
        impl #impl_generics ::core::fmt::Display for #name #type_generics #where_clause {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                formatter.write_str(#root::config::config_to_json(self).as_str())
            }
        }
        #[automatically_derived]
        impl #impl_generics #root::config::Config for #name #type_generics #where_clause {}
        #serde
    })
}

fn fields_of(fields: &Fields) -> syn::Result<Vec<Field<'_>>> {
    if let Fields::Unnamed(unnamed) = fields {
        return Err(syn::Error::new(unnamed.span(), "a configuration names its fields: use a struct with named fields"));
    }
    let mut found = Vec::new();
    for field in fields {
        let Some(ident) = &field.ident else { continue };
        let explicit = default_of(&field.attrs)?;
        let optional = explicit.is_none() && is_option(&field.ty);
        let default = match explicit {
            Some(default) => Some(default),
            None if optional => Some(quote!(::core::option::Option::None)),
            None => None,
        };
        found.push(Field { ident, ty: &field.ty, default, doc: docs_of(&field.attrs), optional });
    }
    Ok(found)
}

fn docs_of(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).collect()
}

fn is_option(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Option"))
}

/// The expression of `#[config(default = ..)]`: either code, or a string that holds code.
fn default_of(attributes: &[Attribute]) -> syn::Result<Option<TokenStream>> {
    let mut default = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("config")) {
        let parsed = attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
            let key: Ident = input.parse()?;
            if key != "default" {
                return Err(syn::Error::new(key.span(), "unknown option: only `default = EXPRESSION` is known"));
            }
            input.parse::<syn::Token![=]>()?;
            if input.is_empty() {
                return Err(input.error("`default = ` needs an expression"));
            }
            input.parse::<TokenStream>()
        })?;
        let value = match syn::parse2::<LitStr>(parsed.clone()) {
            Ok(text) => {
                // Parsed so, mistakes in the expression are reported at the text.
                text.parse::<TokenStream>().map_err(|error| syn::Error::new(text.span(), format!("the default is no expression: {error}")))?
            }
            Err(_) => parsed,
        };
        default = Some(value);
    }
    Ok(default)
}

fn inherent_impl(input: &DeriveInput, fields: &[Field<'_>]) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let arguments = fields.iter().filter(|field| field.default.is_none()).map(|field| {
        let (ident, ty) = (field.ident, field.ty);
        quote!(#ident: #ty)
    });
    let values = fields.iter().map(|field| {
        let ident = field.ident;
        match &field.default {
            Some(default) => quote!(#ident: #default),
            None => quote!(#ident),
        }
    });
    // Builders of defaulted fields come first, then those of optional ones.
    let builders =
        fields.iter().filter(|field| field.default.is_some() && !field.optional).chain(fields.iter().filter(|field| field.optional)).map(|field| {
            let (ident, ty, doc) = (field.ident, field.ty, &field.doc);
            let plain = ident.to_string();
            let method = format_ident!("with_{}", plain.trim_start_matches("r#"));
            let doc = if doc.is_empty() {
                let text = format!("Sets `{plain}`.");
                quote!(#[doc = #text])
            } else {
                quote!(#(#doc)*)
            };
            quote! {
                #doc
                #[must_use]
                pub fn #method(mut self, #ident: #ty) -> Self {
                    self.#ident = #ident;
                    self
                }
            }
        });
    let doc = format!("Creates a new [`{name}`] with the required settings; all others start at their defaults.");
    quote! {
        #[automatically_derived]
        #[allow(clippy::too_many_arguments, clippy::new_without_default)]
        impl #impl_generics #name #type_generics #where_clause {
            #[doc = #doc]
            #[must_use]
            pub fn new(#(#arguments),*) -> Self {
                Self { #(#values,)* }
            }
            #(#builders)*
        }
    }
}

fn clone_enum(data: &syn::DataEnum) -> TokenStream {
    let arms = data.variants.iter().map(|variant| {
        let ident = &variant.ident;
        match &variant.fields {
            Fields::Unit => quote!(Self::#ident => Self::#ident,),
            Fields::Unnamed(fields) => {
                let names: Vec<Ident> = (0..fields.unnamed.len()).map(|index| format_ident!("value_{index}")).collect();
                quote!(Self::#ident(#(#names),*) => Self::#ident(#(::core::clone::Clone::clone(#names)),*),)
            }
            Fields::Named(fields) => {
                let names: Vec<&Ident> = fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
                quote! {
                    Self::#ident { #(#names),* } =>
                        Self::#ident { #(#names: ::core::clone::Clone::clone(#names)),* },
                }
            }
        }
    });
    quote!(match self { #(#arms)* })
}
