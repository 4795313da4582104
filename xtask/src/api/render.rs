//! Renders types and signatures of rustdoc JSON as Rust source, with every path cut to its last segment.

use serde_json::Value;

/// The elements of a JSON array; nothing for anything else.
pub fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

fn joined<'a>(values: impl Iterator<Item = &'a Value>, separator: &str, render: impl Fn(&Value) -> String) -> String {
    values.map(render).collect::<Vec<_>>().join(separator)
}

/// A type.
pub fn kind(value: &Value) -> String {
    if value == "infer" {
        return "_".into();
    }
    let Some((variant, inner)) = value.as_object().and_then(|object| object.iter().next()) else {
        return String::new();
    };
    match variant.as_str() {
        "resolved_path" => format!("{}{}", last(text(&inner["path"])), arguments(&inner["args"])),
        "generic" | "primitive" => text(inner).into(),
        "tuple" => format!("({})", joined(elements(inner), ", ", kind)),
        "slice" => format!("[{}]", kind(inner)),
        "array" => format!("[{}; {}]", kind(&inner["type"]), text(&inner["len"])),
        "impl_trait" => format!("impl {}", bounds(inner)),
        "dyn_trait" => format!("dyn {}", joined(elements(&inner["traits"]), " + ", |poly| path(&poly["trait"]))),
        "raw_pointer" => {
            let qualifier = if inner["is_mutable"] == true { "mut" } else { "const" };
            format!("*{qualifier} {}", kind(&inner["type"]))
        }
        "borrowed_ref" => {
            let qualifier = if inner["is_mutable"] == true { "mut " } else { "" };
            format!("&{qualifier}{}", kind(&inner["type"]))
        }
        "qualified_path" => {
            let name = format!("{}{}", text(&inner["name"]), arguments(&inner["args"]));
            let owner = kind(&inner["self_type"]);
            match inner["trait"].as_object() {
                Some(_) if !text(&inner["trait"]["path"]).is_empty() => {
                    format!("<{owner} as {}>::{name}", path(&inner["trait"]))
                }
                _ => format!("{owner}::{name}"),
            }
        }
        "function_pointer" => {
            let signature = &inner["sig"];
            let inputs = joined(elements(&signature["inputs"]), ", ", |input| kind(&input[1]));
            format!("fn({inputs}){}", result(&signature["output"]))
        }
        _ => String::new(),
    }
}

/// A trait or type path with its arguments.
pub fn path(value: &Value) -> String {
    format!("{}{}", last(text(&value["path"])), arguments(&value["args"]))
}

fn result(output: &Value) -> String {
    if output.is_null() { String::new() } else { format!(" -> {}", kind(output)) }
}

fn arguments(args: &Value) -> String {
    if let Some(inner) = args.get("angle_bracketed") {
        let mut parts: Vec<String> = elements(&inner["args"]).filter_map(argument).collect();
        parts.extend(elements(&inner["constraints"]).map(|constraint| {
            let name = text(&constraint["name"]);
            match constraint["binding"].get("equality") {
                Some(term) => format!("{name} = {}", term.get("type").map_or_else(|| text(&term["constant"]["expr"]).into(), kind)),
                None => format!("{name}: {}", bounds(&constraint["binding"]["constraint"])),
            }
        }));
        return if parts.is_empty() { String::new() } else { format!("<{}>", parts.join(", ")) };
    }
    match args.get("parenthesized") {
        Some(inner) => format!("({}){}", joined(elements(&inner["inputs"]), ", ", kind), result(&inner["output"])),
        None => String::new(),
    }
}

fn argument(value: &Value) -> Option<String> {
    if let Some(inner) = value.get("type") {
        return Some(kind(inner));
    }
    value.get("const").map(|inner| text(&inner["expr"]).trim_matches(|c| c == '{' || c == '}').trim().into())
}

fn bounds(value: &Value) -> String {
    let written: Vec<String> = elements(value).filter_map(bound).collect();
    written.join(" + ")
}

fn bound(value: &Value) -> Option<String> {
    let inner = value.get("trait_bound")?;
    let modifier = if inner["modifier"] == "maybe" { "?" } else { "" };
    Some(format!("{modifier}{}", path(&inner["trait"])))
}

/// `<..>` of a generic item, without lifetimes and without the parameters that stand for `impl Trait` arguments.
pub fn parameters(generics: &Value) -> String {
    let written: Vec<String> = elements(&generics["params"]).filter_map(parameter).collect();
    if written.is_empty() { String::new() } else { format!("<{}>", written.join(", ")) }
}

fn parameter(value: &Value) -> Option<String> {
    let (name, form) = (text(&value["name"]), &value["kind"]);
    if let Some(inner) = form.get("const") {
        return Some(format!("const {name}: {}", kind(&inner["type"])));
    }
    let inner = form.get("type").filter(|inner| inner["is_synthetic"] != true)?;
    let limits = bounds(&inner["bounds"]);
    let limits = if limits.is_empty() { limits } else { format!(": {limits}") };
    let default = if inner["default"].is_null() { String::new() } else { format!(" = {}", kind(&inner["default"])) };
    Some(format!("{name}{limits}{default}"))
}

/// The names of type and constant parameters.
pub fn parameter_names(generics: &Value) -> Vec<String> {
    elements(&generics["params"])
        .filter(|param| param["kind"].get("lifetime").is_none())
        .filter(|param| param["kind"]["type"]["is_synthetic"] != true)
        .map(|param| text(&param["name"]).to_string())
        .collect()
}

/// ` where ..`, without predicates on lifetimes.
pub fn predicates(generics: &Value) -> String {
    let written: Vec<String> = elements(&generics["where_predicates"])
        .filter_map(|predicate| predicate.get("bound_predicate"))
        .map(|inner| format!("{}: {}", kind(&inner["type"]), bounds(&inner["bounds"])))
        .collect();
    if written.is_empty() { String::new() } else { format!(" where {}", written.join(", ")) }
}

/// A function as it would be written, without its body.
pub fn function(name: &str, inner: &Value) -> String {
    let header = &inner["header"];
    let mut qualifiers = String::new();
    for (flag, word) in [("is_const", "const "), ("is_async", "async "), ("is_unsafe", "unsafe ")] {
        if header[flag] == true {
            qualifiers += word;
        }
    }
    let inputs = joined(elements(&inner["sig"]["inputs"]), ", ", |input| {
        let written = kind(&input[1]);
        match (text(&input[0]), written.as_str()) {
            ("self", "Self") => "self".into(),
            ("self", "&Self") => "&self".into(),
            ("self", "&mut Self") => "&mut self".into(),
            (name, _) => format!("{}: {written}", if name.is_empty() { "_" } else { name }),
        }
    });
    let generics = &inner["generics"];
    format!("{qualifiers}fn {name}{}({inputs}){}{}", parameters(generics), result(&inner["sig"]["output"]), predicates(generics))
}
