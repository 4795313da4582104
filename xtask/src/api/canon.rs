//! One canonical form for signatures, whatever their author called arguments and type parameters.

use std::collections::BTreeSet;

/// Splits Rust source into tokens; `->`, `=>`, `::`, `..` and lifetimes are one token each. Lifetimes are dropped, and what they leave behind is mended.
pub fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens: Vec<String> = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        if c.is_whitespace() {
            i += 1;
        } else if c.is_alphanumeric() || c == '_' {
            let start = i;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            tokens.push(chars[start..i].iter().collect());
        } else if c == '\'' {
            i += 1;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            tokens.push("'".into());
        } else {
            let pair: String = chars[i..chars.len().min(i + 2)].iter().collect();
            let token = if matches!(pair.as_str(), "->" | "=>" | "::" | "..") { pair } else { c.to_string() };
            i += token.len();
            tokens.push(token);
        }
    }
    plain_names(without_lifetimes(tokens))
}

/// Drops the modules before a name (`burn_pack::Tensor`), as rendered documentation does, and gives aliases of one type one name.
fn plain_names(tokens: Vec<String>) -> Vec<String> {
    let module = |token: &String| token.chars().next().is_some_and(|c| c.is_lowercase()) && token != "dyn";
    let mut kept: Vec<String> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if module(&token) && tokens.peek().is_some_and(|next| next == "::") {
            tokens.next();
            continue;
        }
        kept.push(match token.as_str() {
            "PackTensor" => "Tensor".into(),
            "PackError" => "Error".into(),
            _ => token,
        });
    }
    kept
}

fn without_lifetimes(tokens: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    let mut skip_separator = false;
    let mut i = 0;
    while i < tokens.len() {
        let token = tokens[i].as_str();
        if token == "'" {
            // `+ 'a` goes with its plus; `'a,` and `'a +` with what follows; `'a: 'b` with its bound.
            if kept.last().is_some_and(|last| last == "+") {
                kept.pop();
            } else {
                while tokens.get(i + 1).is_some_and(|next| next == ":" || next == "'") {
                    i += 1;
                }
                skip_separator = true;
            }
        } else if skip_separator && (token == "," || token == "+") {
            skip_separator = false;
        } else {
            skip_separator = false;
            kept.push(token.into());
        }
        i += 1;
    }
    // Brackets that held only lifetimes.
    let mut mended: Vec<String> = Vec::new();
    for token in kept {
        if token == ">" && mended.last().is_some_and(|last| last == "<") {
            mended.pop();
            if mended.last().is_some_and(|last| last == "for") {
                mended.pop();
            }
        } else {
            if matches!(token.as_str(), ">" | ")" | "}") && mended.last().is_some_and(|last| last == ",") {
                mended.pop();
            }
            mended.push(token);
        }
    }
    mended
}

/// The parts between separators that lie outside all brackets.
pub fn split<'a>(tokens: &'a [String], separator: &str) -> Vec<&'a [String]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (i, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "<" | "(" | "[" | "{" => depth += 1,
            ">" | ")" | "]" | "}" => depth -= 1,
            _ if depth == 0 && token == separator => {
                parts.push(&tokens[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if start < tokens.len() {
        parts.push(&tokens[start..]);
    }
    parts
}

/// The bracketed tokens that begin at `tokens[0]`, without the brackets, and what comes after them.
pub fn bracketed(tokens: &[String]) -> (&[String], &[String]) {
    let mut depth = 0i32;
    for (i, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "<" | "(" | "[" | "{" => depth += 1,
            ">" | ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (&tokens[1..i], &tokens[i + 1..]);
        }
    }
    (&tokens[1..], &[])
}

/// Joins tokens without spaces, except where two words meet, and leaves out default type arguments.
pub fn join(tokens: &[String]) -> String {
    let mut text = String::new();
    for token in tokens {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '#' || c == '$';
        if text.chars().last().is_some_and(word) && token.chars().next().is_some_and(word) {
            text.push(' ');
        }
        text.push_str(token);
    }
    text.replace(",Float>", ">").replace(",DatasetError>", ">")
}

/// Type parameters and their bounds.
#[derive(Clone, Debug, Default)]
pub struct Generics {
    /// Names in order, each with `const` types and defaults as written: `D: usize`, `K = Float`.
    pub names: Vec<String>,
    kinds: Vec<String>,
    bounds: BTreeSet<String>,
}

impl Generics {
    /// Reads what stands between `<` and `>`.
    pub fn read(tokens: &[String]) -> Self {
        let mut generics = Self::default();
        for part in split(tokens, ",") {
            let is_const = part[0] == "const";
            let name = part[usize::from(is_const)].clone();
            let (head, default) = match split(part, "=").as_slice() {
                [head, default] => (*head, Some(join(default))),
                _ => (part, None),
            };
            let after = split(head, ":");
            if is_const {
                generics.kinds.push(format!("const:{}", after.get(1).map_or(String::new(), |kind| join(kind))));
            } else {
                generics.kinds.push(default.map_or("type".into(), |default| format!("type={default}")));
                if let Some(bounds) = after.get(1) {
                    generics.bound(std::slice::from_ref(&name), bounds);
                }
            }
            generics.names.push(name);
        }
        generics
    }

    /// Adds the predicates that follow `where`.
    pub fn predicates(&mut self, tokens: &[String]) {
        for part in split(tokens, ",") {
            if let [subject, bounds] = split(part, ":")[..] {
                self.bound(subject, bounds);
            }
        }
    }

    fn bound(&mut self, subject: &[String], bounds: &[String]) {
        for bound in split(bounds, "+") {
            self.bounds.insert(format!("{}:{}", join(subject), join(bound)));
        }
    }
}

/// Replaces whole tokens.
pub fn rename(tokens: &[String], map: &[(String, Vec<String>)]) -> Vec<String> {
    let mut renamed = Vec::new();
    for token in tokens {
        match map.iter().find(|(name, _)| name == token) {
            Some((_, with)) => renamed.extend(with.iter().cloned()),
            None => renamed.push(token.clone()),
        }
    }
    renamed
}

/// What an `impl` block or a trait gives its members: the type that `Self` means and the names of its parameters.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    map: Vec<(String, Vec<String>)>,
    shown: String,
}

impl Owner {
    /// The owner of the members of `impl<generics> self_type`.
    pub fn new(generics: &[String], self_type: &str) -> Self {
        let written = tokens(self_type);
        let mut order: Vec<&String> = written.iter().filter(|token| generics.contains(token)).collect();
        order.extend(generics);
        let mut map: Vec<(String, Vec<String>)> = Vec::new();
        for name in order {
            if !map.iter().any(|(known, _)| known == name) {
                map.push((name.clone(), vec![format!("${}", map.len())]));
            }
        }
        let renamed = rename(&written, &map);
        let shown = join(&renamed);
        map.push(("Self".into(), renamed));
        Self { map, shown }
    }

    /// The owner of a trait's members: there `Self` stays.
    pub fn of_trait(generics: &[String]) -> Self {
        let mut owner = Self::new(generics, "");
        owner.map.retain(|(name, _)| name != "Self");
        owner
    }
}

/// The canonical form of a function: qualifiers, name, kinds of parameters, types of arguments, result, bounds.
pub fn function(text: &str, owner: &Owner) -> String {
    let all = tokens(text);
    let at = all.iter().position(|token| token == "fn").unwrap_or(0);
    let Some(name) = all.get(at + 1).cloned() else { return text.into() };
    let mut rest = &all[at + 2..];
    let mut generic_tokens: &[String] = &[];
    if rest.first().is_some_and(|token| token == "<") {
        (generic_tokens, rest) = bracketed(rest);
    }
    let names = Generics::read(generic_tokens).names;
    let mut map: Vec<(String, Vec<String>)> = names.iter().enumerate().map(|(i, name)| (name.clone(), vec![format!("#{i}")])).collect();
    map.extend(owner.map.iter().cloned());
    let mut generics = Generics::read(&rename(generic_tokens, &map));
    let rest = rename(rest, &map);
    if rest.is_empty() {
        return text.into();
    }
    let (arguments, rest) = bracketed(&rest);
    let arguments: Vec<String> = split(arguments, ",").into_iter().map(argument).collect();
    let (result, predicates) = match rest.iter().position(|token| token == "where") {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &rest[rest.len()..]),
    };
    generics.predicates(predicates);
    let qualifiers = join(&all[..at]);
    let bounds: Vec<String> = generics.bounds.into_iter().collect();
    let prefix = if owner.shown.is_empty() { String::new() } else { format!("{}::", owner.shown) };
    let mut text = format!("{qualifiers} {prefix}{name}");
    if !generics.kinds.is_empty() {
        text += &format!("<{}>", generics.kinds.join(","));
    }
    text += &format!("({}){}", arguments.join(", "), join(result));
    if !bounds.is_empty() {
        text += &format!(" where {}", bounds.join(", "));
    }
    text.trim().into()
}

/// The type of an argument; a receiver stays as it is.
fn argument(tokens: &[String]) -> String {
    match split(tokens, ":")[..] {
        [_, kind] if tokens[0] != "self" => join(kind),
        _ => join(tokens),
    }
}

/// The canonical form of `Trait for Type`: the trait with its arguments, and the head of the type.
pub fn implementation(generics: &[String], trait_text: &str, for_type: &str) -> String {
    let map: Vec<_> = generics.iter().map(|name| (name.clone(), vec!["_".to_string()])).collect();
    let trait_tokens = rename(&tokens(trait_text), &map);
    let head = head(&tokens(for_type));
    format!("{} for {head}", join(&trait_tokens))
}

/// The name of a type without its arguments: `Tensor` of `Tensor<D, K>`, `&Tensor` of `&Tensor<D>`.
fn head(tokens: &[String]) -> String {
    let end = tokens.iter().position(|token| token == "<").unwrap_or(tokens.len());
    join(&tokens[..end])
}

/// The canonical form of a struct, enum, trait, function, constant or alias header.
pub fn header(text: &str) -> String {
    let text = text.replace("[deprecated]", "");
    let all = tokens(&text);
    let Some(kind) = all.first().map(String::as_str) else { return String::new() };
    match kind {
        "struct" | "enum" | "union" => data(&all),
        "trait" => {
            let generics = all.get(2).filter(|token| *token == "<").map(|_| Generics::read(bracketed(&all[2..]).0));
            format!("trait {}<{}>", all[1], generics.map_or(String::new(), |g| g.kinds.join(",")))
        }
        "const" | "static" if !all.contains(&"fn".to_string()) => join(split(&all, "=")[0]),
        "type" => join(&all),
        _ => function(&text, &Owner::default()),
    }
}

/// A struct or an enum: kinds of parameters, then public fields or variants; `..` stands for private fields.
fn data(all: &[String]) -> String {
    let mut rest = &all[2..];
    let mut kinds = Vec::new();
    let mut map = Vec::new();
    if rest.first().is_some_and(|token| token == "<") {
        let (inside, after) = bracketed(rest);
        let generics = Generics::read(inside);
        kinds = generics.kinds;
        map = generics.names.into_iter().enumerate().map(|(i, name)| (name, vec![format!("${i}")])).collect();
        rest = after;
    }
    let body = rest.iter().position(|token| token == "{" || token == "(");
    let mut parts: Vec<String> = Vec::new();
    if let Some(at) = body {
        let tuple = rest[at] == "(";
        let renamed = rename(&rest[at..], &map);
        let (inside, _) = bracketed(&renamed);
        parts = split(inside, ",").into_iter().map(join).collect();
        if tuple {
            parts = parts.into_iter().enumerate().map(|(i, part)| format!("{i}:{part}")).collect();
        } else if all[0] == "struct" {
            parts.sort();
        }
    }
    format!("{} {}<{}>{{{}}}", all[0], all[1], kinds.join(","), parts.join("; "))
}

/// Whether our header serves where `listed` does: equal, or equal but for private fields that users cannot see where the list has private fields too.
pub fn header_fits(listed: &str, ours: &str) -> bool {
    let visible = |text: &str| text.replace("..; ", "").replace("; ..", "").replace("..", "");
    let private = |text: &str| text.contains("..") || text.contains("0:_}");
    listed == ours || (private(listed) && visible(listed).replace("{0:_}", "{}") == visible(ours).replace("{0:_}", "{}"))
}

#[cfg(test)]
mod tests {
    use super::{Owner, function, header, header_fits, implementation};

    fn same(a: &str, b: &str) {
        let owner = Owner::new(&["D".into(), "K".into()], "Tensor<D, K>");
        assert_eq!(function(a, &owner), function(b, &owner));
    }

    #[test]
    fn names_of_arguments_and_parameters_do_not_matter() {
        same("fn sort<I: AsIndex>(self, dim: I) -> Self", "fn sort<X>(self, axis: X) -> Tensor<D, K> where X: AsIndex");
    }

    #[test]
    fn lifetimes_do_not_matter() {
        same("fn iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a str> + 'a>", "fn iter(&self) -> Box<dyn Iterator<Item=&str> + '_>");
        same("fn f<'a, I>(x: Foo<'a, I>)", "fn f<I>(x: Foo<I>)");
    }

    #[test]
    fn modules_before_a_name_do_not_matter() {
        same("fn a(x: burn_pack::Tensor) -> Result<(), error::Error>", "fn a(x: PackTensor) -> Result<(), Error>");
        same("fn a(x: Self::State)", "fn a(x: Self::State)");
    }

    #[test]
    fn bounds_and_results_matter() {
        let owner = Owner::default();
        assert_ne!(function("fn a<T: Clone>(x: T)", &owner), function("fn a<T>(x: T)", &owner));
        assert_ne!(function("fn a(x: u8) -> u8", &owner), function("fn a(x: u8) -> u16", &owner));
        assert_ne!(function("fn a(&self)", &owner), function("fn a(self)", &owner));
    }

    #[test]
    fn the_default_kind_of_a_tensor_may_be_left_out() {
        same("fn a(x: Tensor<D, Float>)", "fn a(x: Tensor<D>)");
    }

    #[test]
    fn private_fields_are_not_compared() {
        let listed = header("struct LayerNorm { pub gamma: Param<Tensor<1>>, .. }");
        assert!(header_fits(&listed, &header("struct LayerNorm { pub gamma: Param<Tensor<1>>, .. }")));
        assert!(!header_fits(&listed, &header("struct LayerNorm { pub beta: Param<Tensor<1>>, .. }")));
        assert!(!header_fits(&header("struct A { pub b: u8 }"), &header("struct A { pub b: u8, .. }")));
    }

    #[test]
    fn implementations_are_known_by_trait_and_type() {
        let ours = implementation(&["E".into(), "D".into()], "Add<E>", "Tensor<D, Float>");
        assert_eq!(ours, implementation(&["T".into()], "Add<T>", "Tensor<2>"));
    }
}
