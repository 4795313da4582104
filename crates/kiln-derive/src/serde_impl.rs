//! `Serialize` and `Deserialize` of a configuration, through the serde that Kiln re-exports.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{DataEnum, DeriveInput, Fields, Ident, LitStr};

use crate::config::Field;

fn plain_name(ident: &Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}

fn serde_path(root: &TokenStream) -> LitStr {
    let path = format!("{root}::serde").replace(' ', "");
    LitStr::new(&path, proc_macro2::Span::call_site())
}

/// A struct is written as a map of all fields. Reading takes the default for a field that the data lacks, so that
/// configurations saved before a field existed still load.
pub fn for_struct(input: &DeriveInput, fields: &[Field<'_>], root: &TokenStream) -> TokenStream {
    let name = &input.ident;
    let title = plain_name(name);
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let count = fields.len();
    let writes = fields.iter().map(|field| {
        let ident = field.ident;
        let key = plain_name(ident);
        quote!(#root::serde::ser::SerializeStruct::serialize_field(&mut map, #key, &self.#ident)?;)
    });
    let serde = serde_path(root);
    let present = LitStr::new(&format!("{root}::config::present").replace(' ', ""), proc_macro2::Span::call_site());
    let slots = fields.iter().map(|field| {
        let (ident, ty) = (field.ident, field.ty);
        match field.default {
            Some(_) => quote! {
                #[serde(default, deserialize_with = #present)]
                #ident: ::core::option::Option<#ty>
            },
            None => quote!(#ident: #ty),
        }
    });
    let takes = fields.iter().filter(|field| field.default.is_none()).map(|field| {
        let ident = field.ident;
        quote!(let #ident = stored.#ident;)
    });
    let values = fields.iter().map(|field| {
        let ident = field.ident;
        match &field.default {
            Some(default) => quote! {
                #ident: match stored.#ident {
                    ::core::option::Option::Some(value) => value,
                    ::core::option::Option::None => #default,
                }
            },
            None => quote!(#ident),
        }
    });
    let read = if input.generics.params.is_empty() {
        let impl_de = quote!(<'de>);
        quote! {
            #[automatically_derived]
            #[allow(clippy::all)]
            impl #impl_de #root::serde::Deserialize<'de> for #name {
                fn deserialize<KilnDeserializer>(
                    deserializer: KilnDeserializer,
                ) -> ::core::result::Result<Self, KilnDeserializer::Error>
                where
                    KilnDeserializer: #root::serde::Deserializer<'de>,
                {
                    #[derive(#root::serde::Deserialize)]
                    #[serde(crate = #serde, rename = #title)]
                    struct Stored {
                        #(#slots,)*
                    }
                    let stored = <Stored as #root::serde::Deserialize<'de>>::deserialize(deserializer)?;
                    #(#takes)*
                    ::core::result::Result::Ok(Self { #(#values,)* })
                }
            }
        }
    } else {
        let message = "a configuration can't have type parameters: it is stored by its concrete fields";
        let error = syn::Error::new(input.generics.span(), message).to_compile_error();
        return error;
    };
    quote! {
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #impl_generics #root::serde::Serialize for #name #type_generics #where_clause {
            fn serialize<KilnSerializer>(
                &self,
                serializer: KilnSerializer,
            ) -> ::core::result::Result<KilnSerializer::Ok, KilnSerializer::Error>
            where
                KilnSerializer: #root::serde::Serializer,
            {
                let mut map =
                    #root::serde::Serializer::serialize_struct(serializer, #title, #count)?;
                #(#writes)*
                #root::serde::ser::SerializeStruct::end(map)
            }
        }
        #read
    }
}

/// An enum is externally tagged: `"Unit"`, `{"Tuple": [..]}`, `{"Newtype": ..}` or `{"Struct": {..}}`.
pub fn for_enum(input: &DeriveInput, data: &DataEnum, root: &TokenStream) -> syn::Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new(input.generics.span(), "a configuration can't have type parameters: it is stored by its concrete fields"));
    }
    let name = &input.ident;
    let title = plain_name(name);
    let serde = serde_path(root);
    let mut writes = Vec::new();
    let mut mirrors = Vec::new();
    let mut reads = Vec::new();
    for (index, variant) in data.variants.iter().enumerate() {
        let index = index as u32;
        let ident = &variant.ident;
        let label = plain_name(ident);
        match &variant.fields {
            Fields::Unit => {
                writes.push(quote! {
                    Self::#ident => #root::serde::Serializer::serialize_unit_variant(serializer, #title, #index, #label),
                });
                mirrors.push(quote!(#ident));
                reads.push(quote!(Stored::#ident => Self::#ident,));
            }
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                let ty = &fields.unnamed[0].ty;
                writes.push(quote! {
                    Self::#ident(value) => #root::serde::Serializer::serialize_newtype_variant(
                        serializer, #title, #index, #label, value,
                    ),
                });
                mirrors.push(quote!(#ident(#ty)));
                reads.push(quote!(Stored::#ident(value) => Self::#ident(value),));
            }
            Fields::Unnamed(fields) => {
                let count = fields.unnamed.len();
                let types = fields.unnamed.iter().map(|field| &field.ty);
                let names: Vec<Ident> = (0..count).map(|index| format_ident!("value_{index}")).collect();
                writes.push(quote! {
                    Self::#ident(#(#names),*) => {
                        let mut tuple = #root::serde::Serializer::serialize_tuple_variant(
                            serializer, #title, #index, #label, #count,
                        )?;
                        #(#root::serde::ser::SerializeTupleVariant::serialize_field(&mut tuple, #names)?;)*
                        #root::serde::ser::SerializeTupleVariant::end(tuple)
                    }
                });
                mirrors.push(quote!(#ident(#(#types),*)));
                reads.push(quote!(Stored::#ident(#(#names),*) => Self::#ident(#(#names),*),));
            }
            Fields::Named(fields) => {
                let count = fields.named.len();
                let names: Vec<&Ident> = fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
                let keys = names.iter().map(|name| plain_name(name));
                let types = fields.named.iter().map(|field| &field.ty);
                writes.push(quote! {
                    Self::#ident { #(#names),* } => {
                        let mut map = #root::serde::Serializer::serialize_struct_variant(
                            serializer, #title, #index, #label, #count,
                        )?;
                        #(#root::serde::ser::SerializeStructVariant::serialize_field(&mut map, #keys, #names)?;)*
                        #root::serde::ser::SerializeStructVariant::end(map)
                    }
                });
                mirrors.push(quote!(#ident { #(#names: #types),* }));
                reads.push(quote!(Stored::#ident { #(#names),* } => Self::#ident { #(#names),* },));
            }
        }
    }
    if data.variants.is_empty() {
        return Err(syn::Error::new(input.ident.span(), "a configuration enum needs at least one variant"));
    }
    Ok(quote! {
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #root::serde::Serialize for #name {
            fn serialize<KilnSerializer>(
                &self,
                serializer: KilnSerializer,
            ) -> ::core::result::Result<KilnSerializer::Ok, KilnSerializer::Error>
            where
                KilnSerializer: #root::serde::Serializer,
            {
                match self { #(#writes)* }
            }
        }
        #[automatically_derived]
        #[allow(clippy::all)]
        impl<'de> #root::serde::Deserialize<'de> for #name {
            fn deserialize<KilnDeserializer>(
                deserializer: KilnDeserializer,
            ) -> ::core::result::Result<Self, KilnDeserializer::Error>
            where
                KilnDeserializer: #root::serde::Deserializer<'de>,
            {
                #[derive(#root::serde::Deserialize)]
                #[serde(crate = #serde, rename = #title)]
                enum Stored {
                    #(#mirrors,)*
                }
                let stored = <Stored as #root::serde::Deserialize<'de>>::deserialize(deserializer)?;
                ::core::result::Result::Ok(match stored { #(#reads)* })
            }
        }
    })
}
