//! The part of TOML that a configuration file needs: tables, dotted keys, strings, whole numbers, truth values and comments.

use std::string::String;
use std::vec::Vec;

/// A value and where it stands.
pub(super) struct Entry {
    pub path: Vec<String>,
    pub line: usize,
    value: Value,
}

enum Value {
    Text(String),
    Number(i64),
    Truth(bool),
}

impl Entry {
    fn expected<T>(&self, what: &str) -> Result<T, String> {
        let found = match &self.value {
            Value::Text(text) => format!("\"{text}\""),
            Value::Number(number) => number.to_string(),
            Value::Truth(truth) => truth.to_string(),
        };
        Err(format!("`{}` must be {what}, not {found}", self.path.join(".")))
    }

    /// A number of things.
    pub fn count(&self) -> Result<usize, String> {
        match self.value {
            Value::Number(number) if number >= 0 => Ok(number as usize),
            _ => self.expected("a whole number from 0 on"),
        }
    }

    /// Yes or no.
    pub fn truth(&self) -> Result<bool, String> {
        match self.value {
            Value::Truth(truth) => Ok(truth),
            _ => self.expected("true or false"),
        }
    }

    /// Any text.
    pub fn text(&self) -> Result<&str, String> {
        match &self.value {
            Value::Text(text) => Ok(text),
            _ => self.expected("a text in quotes"),
        }
    }

    /// One of several words.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, String> {
        let known = words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        match &self.value {
            Value::Text(text) => match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
                Some((_, value)) => Ok(*value),
                None => self.expected(&format!("one of {known}")),
            },
            _ => self.expected(&format!("one of {known}")),
        }
    }
}

/// The values of a file, in order.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, String> {
    let mut table: Vec<String> = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let line = without_comment(line).trim();
        if line.is_empty() {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let name = header.strip_suffix(']').filter(|name| !name.starts_with('[')).ok_or_else(|| format!("line {number}: expected `[table]`"))?;
            table = keys(name).ok_or_else(|| format!("line {number}: `{name}` is no table's name"))?;
            continue;
        }
        let (key, value) = line.split_once('=').ok_or_else(|| format!("line {number}: expected `key = value`"))?;
        let names = keys(key).ok_or_else(|| format!("line {number}: `{}` is no key", key.trim()))?;
        let path = table.iter().cloned().chain(names).collect::<Vec<_>>();
        if entries.iter().any(|entry| entry.path == path) {
            return Err(format!("line {number}: `{}` is given twice", path.join(".")));
        }
        let value = value.trim();
        let value = parsed(value).ok_or_else(|| format!("line {number}: `{value}` is neither a text in quotes, a whole number, true nor false"))?;
        entries.push(Entry { path, line: number, value });
    }
    Ok(entries)
}

/// The line up to a `#` that stands outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    line
}

/// The names of a dotted key.
fn keys(text: &str) -> Option<Vec<String>> {
    let name = |name: &str| {
        let name = name.trim().trim_matches('"');
        let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        fits.then(|| String::from(name))
    };
    text.split('.').map(name).collect()
}

fn parsed(text: &str) -> Option<Value> {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            let inner = inner.strip_suffix(quote)?;
            // A path of Windows in single quotes is taken as it is; in double quotes only escaped quotes and backslashes are known.
            let inner = if quote == '"' { inner.replace("\\\\", "\\").replace("\\\"", "\"") } else { inner.into() };
            return Some(Value::Text(inner));
        }
    }
    match text {
        "true" => Some(Value::Truth(true)),
        "false" => Some(Value::Truth(false)),
        _ => text.replace('_', "").parse().ok().map(Value::Number),
    }
}
