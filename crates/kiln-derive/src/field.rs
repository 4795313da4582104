//! How a field of a module is treated, decided by the syntax of its type alone.

use proc_macro2::Span;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, Generics, Ident, Type, TypeParamBound, WherePredicate};

/// What a module does with one of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A sub-module, a parameter or a tensor: visited, mapped, moved between devices.
    Module,
    /// A primitive value, shown in the display.
    Scalar,
    /// A container of primitive values, shown by its `Debug` form.
    Container,
    /// Marked `#[module(skip)]`: cloned and otherwise left alone.
    Skip,
}

/// Decides the kind of a field, or says at the field what is wrong.
pub fn kind_of(ty: &Type, attributes: &[Attribute], generics: &Generics) -> syn::Result<FieldKind> {
    if skip_marked(attributes)? {
        if last_ident(ty).is_some_and(|ident| ident == "Param") {
            return Err(syn::Error::new(
                ty.span(),
                "a `Param` can't be skipped: it would be neither trained nor saved; remove `#[module(skip)]`, \
                 or store a plain value instead of a parameter",
            ));
        }
        return Ok(FieldKind::Skip);
    }
    if let Type::Reference(reference) = ty
        && !is_constant(&reference.elem, generics)
    {
        return Err(syn::Error::new(ty.span(), "a module owns its fields: hold the value itself, or mark the field `#[module(skip)]`"));
    }
    if is_primitive(ty) {
        return Ok(FieldKind::Scalar);
    }
    if is_constant(ty, generics) {
        return Ok(FieldKind::Container);
    }
    Ok(FieldKind::Module)
}

/// True if the attributes hold `#[module(skip)]`; anything else in `#[module(..)]` on a field is an error.
fn skip_marked(attributes: &[Attribute]) -> syn::Result<bool> {
    let mut skip = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") {
                skip = true;
                Ok(())
            } else {
                Err(meta.error("unknown option for a field of a module: only `skip` is known"))
            }
        })?;
    }
    Ok(skip)
}

/// True if the attributes of a type hold `#[module(custom_display)]`.
pub fn custom_display_marked(attributes: &[Attribute]) -> syn::Result<bool> {
    let mut custom = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("custom_display") {
                custom = true;
                Ok(())
            } else {
                Err(meta.error("unknown option for a module: only `custom_display` is known"))
            }
        })?;
    }
    Ok(custom)
}

fn last_ident(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Paren(inner) => last_ident(&inner.elem),
        Type::Group(inner) => last_ident(&inner.elem),
        _ => None,
    }
}

fn is_primitive(ty: &Type) -> bool {
    const PRIMITIVES: [&str; 17] =
        ["bool", "char", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64", "String"];
    last_ident(ty).is_some_and(|ident| PRIMITIVES.iter().any(|name| ident == name))
}

/// True for primitives, `str`, and containers, tuples, arrays and references made only of those.
fn is_constant(ty: &Type, generics: &Generics) -> bool {
    const CONTAINERS: [&str; 13] =
        ["Option", "Vec", "VecDeque", "Box", "Rc", "Arc", "Cow", "Range", "HashMap", "BTreeMap", "HashSet", "BTreeSet", "Result"];
    match ty {
        Type::Paren(inner) => is_constant(&inner.elem, generics),
        Type::Group(inner) => is_constant(&inner.elem, generics),
        Type::Array(array) => is_constant(&array.elem, generics),
        Type::Slice(slice) => is_constant(&slice.elem, generics),
        Type::Reference(reference) => is_constant(&reference.elem, generics),
        Type::Tuple(tuple) => tuple.elems.iter().all(|ty| is_constant(ty, generics)),
        Type::Path(path) => {
            let Some(segment) = path.path.segments.last() else {
                return false;
            };
            if is_primitive(ty) || segment.ident == "str" || segment.ident == "PhantomData" {
                return true;
            }
            if path.path.segments.len() == 1
                && let Some(bounds) = bounds_of(&segment.ident, generics)
            {
                return !bounds.is_empty() && bounds.iter().all(is_plain_bound);
            }
            let inner: Vec<&Type> = match &segment.arguments {
                syn::PathArguments::AngleBracketed(arguments) => arguments
                    .args
                    .iter()
                    .filter_map(|argument| match argument {
                        syn::GenericArgument::Type(ty) => Some(ty),
                        _ => None,
                    })
                    .collect(),
                _ => return false,
            };
            CONTAINERS.iter().any(|name| segment.ident == name) && !inner.is_empty() && inner.into_iter().all(|ty| is_constant(ty, generics))
        }
        _ => false,
    }
}

/// The bounds declared on the type parameter `ident`, inline and in the where clause; `None` if it is no type parameter.
pub fn bounds_of(ident: &Ident, generics: &Generics) -> Option<Vec<TypeParamBound>> {
    let parameter = generics.type_params().find(|parameter| parameter.ident == *ident)?;
    let mut bounds: Vec<TypeParamBound> = parameter.bounds.iter().cloned().collect();
    if let Some(clause) = &generics.where_clause {
        for predicate in &clause.predicates {
            if let WherePredicate::Type(predicate) = predicate
                && last_ident(&predicate.bounded_ty) == Some(ident)
            {
                bounds.extend(predicate.bounds.iter().cloned());
            }
        }
    }
    Some(bounds)
}

/// True for bounds of the standard library, which say that a parameter is a value and no module.
///
/// A bound that isn't known here may imply `Module`, so a parameter with such a bound, or with none, is a module.
pub fn is_plain_bound(bound: &TypeParamBound) -> bool {
    const PLAIN: [&str; 20] = [
        "Clone",
        "Copy",
        "Debug",
        "Display",
        "Default",
        "Send",
        "Sync",
        "Sized",
        "Unpin",
        "Eq",
        "PartialEq",
        "Ord",
        "PartialOrd",
        "Hash",
        "Fn",
        "FnMut",
        "FnOnce",
        "Serialize",
        "Deserialize",
        "DeserializeOwned",
    ];
    match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().is_some_and(|segment| PLAIN.iter().any(|name| segment.ident == name)),
        TypeParamBound::Lifetime(_) => true,
        _ => false,
    }
}

/// True if the tokens of `ty` name `ident` anywhere.
pub fn mentions(ty: &Type, ident: &Ident) -> bool {
    fn search(tokens: proc_macro2::TokenStream, ident: &Ident) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(found) => found == *ident,
            proc_macro2::TokenTree::Group(group) => search(group.stream(), ident),
            _ => false,
        })
    }
    search(ty.to_token_stream(), ident)
}

/// The span at which a complaint about `ty` is shown.
pub fn span_of(ty: &Type) -> Span {
    ty.span().resolved_at(Span::call_site())
}
