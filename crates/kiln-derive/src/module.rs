//! `#[derive(Module)]`: the module tree operations, applied field by field.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Ident, Member, Type};

use crate::field::{self, FieldKind};
use crate::{bounds, display, root};

/// A field of a struct module.
pub struct Field<'a> {
    /// How the field is named in the struct.
    pub member: Member,
    /// Its name in paths and in the display.
    pub name: String,
    /// Its type.
    pub ty: &'a Type,
    /// What the module does with it.
    pub kind: FieldKind,
}

/// A variant of an enum module.
pub struct Variant<'a> {
    /// The variant's name.
    pub ident: &'a Ident,
    /// The payload: its type and what the module does with it; `None` for a unit variant.
    pub payload: Option<(&'a Type, FieldKind)>,
}

/// The content of the derived type.
pub enum Body<'a> {
    /// A struct, named, tuple or unit.
    Struct(Vec<Field<'a>>),
    /// An enum.
    Enum(Vec<Variant<'a>>),
}

/// Expands the derive.
pub fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let root = root::modules()?;
    let custom_display = field::custom_display_marked(&input.attrs)?;
    let body = body_of(input)?;
    let fields: Vec<(FieldKind, &Type)> = match &body {
        Body::Struct(fields) => fields.iter().map(|field| (field.kind, field.ty)).collect(),
        Body::Enum(variants) => variants.iter().filter_map(|variant| variant.payload.map(|(ty, kind)| (kind, ty))).collect(),
    };
    let bounds = bounds::of(&input.generics, &fields, &root);
    let name = &input.ident;
    let module = module_impl(name, input, &bounds, &body, &root);
    let clone = clone_impl(name, input, &bounds, &body);
    let display = display::expand(name, input, &bounds, &body, custom_display, &root);
    Ok(quote! {
        #module
        #clone
        #display
    })
}

fn body_of(input: &DeriveInput) -> syn::Result<Body<'_>> {
    match &input.data {
        Data::Struct(data) => {
            let mut fields = Vec::new();
            let mut errors: Option<syn::Error> = None;
            for (index, found) in data.fields.iter().enumerate() {
                let (member, name) = match &found.ident {
                    Some(ident) => (Member::Named(ident.clone()), ident.to_string().trim_start_matches("r#").to_owned()),
                    None => (Member::Unnamed(index.into()), index.to_string()),
                };
                match field::kind_of(&found.ty, &found.attrs, &input.generics) {
                    Ok(kind) => fields.push(Field { member, name, ty: &found.ty, kind }),
                    Err(error) => match &mut errors {
                        Some(all) => all.combine(error),
                        None => errors = Some(error),
                    },
                }
            }
            match errors {
                Some(errors) => Err(errors),
                None => Ok(Body::Struct(fields)),
            }
        }
        Data::Enum(data) => {
            if data.variants.is_empty() {
                return Err(syn::Error::new(input.ident.span(), "an enum module needs at least one variant"));
            }
            let mut variants = Vec::new();
            for variant in &data.variants {
                let payload = match &variant.fields {
                    Fields::Unit => None,
                    Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                        let found = &fields.unnamed[0];
                        let kind = field::kind_of(&found.ty, &found.attrs, &input.generics)?;
                        Some((&found.ty, kind))
                    }
                    _ => {
                        return Err(syn::Error::new(
                            variant.ident.span(),
                            format!(
                                "a variant of an enum module holds one module: write `{0}({0}Module)` and put the \
                                 fields into a struct that derives `Module`",
                                variant.ident
                            ),
                        ));
                    }
                };
                variants.push(Variant { ident: &variant.ident, payload });
            }
            Ok(Body::Enum(variants))
        }
        Data::Union(data) => Err(syn::Error::new(data.union_token.span(), "a union can't be a module: use an enum with one payload per variant")),
    }
}

/// The container type that visitors see: `Struct:Name` or `Enum:Name`.
fn container_of(name: &Ident, body: &Body<'_>) -> String {
    match body {
        Body::Struct(_) => format!("Struct:{name}"),
        Body::Enum(_) => format!("Enum:{name}"),
    }
}

fn module_impl(name: &Ident, input: &DeriveInput, bounds: &bounds::Bounds, body: &Body<'_>, root: &TokenStream) -> TokenStream {
    let (impl_generics, this, where_clause) = bounds::header(name, &input.generics, &bounds.module);
    let container = container_of(name, body);
    let on_device = quote!(device);
    let none = quote!();
    let fork = rebuild(body, |value, ty, _| call(root, ty, "fork", &value, &on_device));
    let to_device = rebuild(body, |value, ty, _| call(root, ty, "to_device", &value, &on_device));
    let train = rebuild(body, |value, ty, _| call(root, ty, "train", &value, &none));
    let materialize = rebuild(body, |value, ty, _| call(root, ty, "materialize", &value, &none));
    let map = rebuild(body, |value, ty, path| {
        let mapped = call(root, ty, "map", &value, &quote!(mapper));
        quote! {{
            #root::module::ModuleMapper::enter_module(mapper, #path, #container);
            let mapped = #mapped;
            #root::module::ModuleMapper::exit_module(mapper, #path, #container);
            mapped
        }}
    });
    let valid = rebuild_ref(body, |value, ty, _| call(root, ty, "valid", &value, &none));
    let visit = walk(body, |value, ty, path| {
        let visit = call(root, ty, "visit", &value, &quote!(visitor));
        quote! {
            #root::module::ModuleVisitor::enter_module(visitor, #path, #container);
            #visit;
            #root::module::ModuleVisitor::exit_module(visitor, #path, #container);
        }
    });
    let collect = walk(body, |value, ty, _| {
        let collect = call(root, ty, "collect_devices", &value, &quote!(devices));
        quote!(let devices = #collect;)
    });
    let collect = match body {
        Body::Struct(_) => quote!(#collect devices),
        Body::Enum(variants) => {
            let arms = variants.iter().map(|variant| {
                let ident = variant.ident;
                match variant.payload {
                    Some((ty, FieldKind::Module)) => {
                        let collect = call(root, ty, "collect_devices", &quote!(value), &quote!(devices));
                        quote!(Self::#ident(value) => #collect,)
                    }
                    Some(_) => quote!(Self::#ident(_) => devices,),
                    None => quote!(Self::#ident => devices,),
                }
            });
            quote!(match self { #(#arms)* })
        }
    };
    quote! {
        #[automatically_derived]
        #[allow(unused_variables, clippy::all)]
        impl #impl_generics #root::module::Module for #this #where_clause {
            fn collect_devices(&self, devices: #root::module::Devices) -> #root::module::Devices {
                #collect
            }
            fn fork(self, device: &#root::tensor::Device) -> Self {
                #fork
            }
            fn to_device(self, device: &#root::tensor::Device) -> Self {
                #to_device
            }
            fn train(self) -> Self {
                #train
            }
            fn valid(&self) -> Self {
                #valid
            }
            fn materialize(self) -> Self {
                #materialize
            }
            fn visit<KilnVisitor: #root::module::ModuleVisitor>(&self, visitor: &mut KilnVisitor) {
                #visit
            }
            fn map<KilnMapper: #root::module::ModuleMapper>(self, mapper: &mut KilnMapper) -> Self {
                #map
            }
        }
    }
}

/// `<Type as Module>::method(value, argument)`, spanned at the type so that a missing impl is reported at the field.
fn call(root: &TokenStream, ty: &Type, method: &str, value: &TokenStream, argument: &TokenStream) -> TokenStream {
    let span = field::span_of(ty);
    let method = Ident::new(method, span);
    let function = quote_spanned!(span=> <#ty as #root::module::Module>::#method);
    quote!(#function(#value, #argument))
}

/// Builds `Self` from an owned `self`, with `each` applied to the module fields.
fn rebuild(body: &Body<'_>, each: impl Fn(TokenStream, &Type, &str) -> TokenStream) -> TokenStream {
    match body {
        Body::Struct(fields) => {
            let values = fields.iter().map(|field| {
                let member = &field.member;
                match field.kind {
                    FieldKind::Module => {
                        let value = each(quote!(self.#member), field.ty, &field.name);
                        quote!(#member: #value)
                    }
                    _ => quote!(#member: self.#member),
                }
            });
            quote!(Self { #(#values,)* })
        }
        Body::Enum(variants) => rebuild_enum(variants, each, &quote!()),
    }
}

/// Builds a new `Self` from a borrowed `self`: `each` for module fields, a clone for all others.
fn rebuild_ref(body: &Body<'_>, each: impl Fn(TokenStream, &Type, &str) -> TokenStream) -> TokenStream {
    match body {
        Body::Struct(fields) => {
            let values = fields.iter().map(|field| {
                let member = &field.member;
                match field.kind {
                    FieldKind::Module => {
                        let value = each(quote!(&self.#member), field.ty, &field.name);
                        quote!(#member: #value)
                    }
                    _ => {
                        let span = field::span_of(field.ty);
                        let clone = quote_spanned!(span=> ::core::clone::Clone::clone(&self.#member));
                        quote!(#member: #clone)
                    }
                }
            });
            quote!(Self { #(#values,)* })
        }
        Body::Enum(variants) => {
            let clone = quote!(::core::clone::Clone::clone);
            rebuild_enum(variants, each, &clone)
        }
    }
}

fn rebuild_enum(variants: &[Variant<'_>], each: impl Fn(TokenStream, &Type, &str) -> TokenStream, plain: &TokenStream) -> TokenStream {
    let arms = variants.iter().map(|variant| {
        let ident = variant.ident;
        match variant.payload {
            Some((ty, FieldKind::Module)) => {
                let value = each(quote!(value), ty, &ident.to_string());
                quote!(Self::#ident(value) => Self::#ident(#value),)
            }
            Some(_) => quote!(Self::#ident(value) => Self::#ident(#plain(value)),),
            None => quote!(Self::#ident => Self::#ident,),
        }
    });
    quote!(match self { #(#arms)* })
}

/// Runs `each` for the module fields of a borrowed `self`.
fn walk(body: &Body<'_>, each: impl Fn(TokenStream, &Type, &str) -> TokenStream) -> TokenStream {
    match body {
        Body::Struct(fields) => {
            let statements = fields.iter().filter(|field| field.kind == FieldKind::Module).map(|field| {
                let member = &field.member;
                each(quote!(&self.#member), field.ty, &field.name)
            });
            quote!(#(#statements)*)
        }
        Body::Enum(variants) => {
            let arms = variants.iter().map(|variant| {
                let ident = variant.ident;
                match variant.payload {
                    Some((ty, FieldKind::Module)) => {
                        let statement = each(quote!(value), ty, &ident.to_string());
                        quote!(Self::#ident(value) => { #statement })
                    }
                    Some(_) => quote!(Self::#ident(_) => {}),
                    None => quote!(Self::#ident => {}),
                }
            });
            quote!(match self { #(#arms)* })
        }
    }
}

fn clone_impl(name: &Ident, input: &DeriveInput, bounds: &bounds::Bounds, body: &Body<'_>) -> TokenStream {
    let (impl_generics, this, where_clause) = bounds::header(name, &input.generics, &bounds.module);
    let clone = quote!(::core::clone::Clone::clone);
    let value = rebuild_ref(body, |value, _, _| quote!(#clone(#value)));
    quote! {
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #impl_generics ::core::clone::Clone for #this #where_clause {
            fn clone(&self) -> Self {
                #value
            }
        }
    }
}
