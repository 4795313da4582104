//! Reads the list: sections by module, items with their members and implementations.

use super::canon::{self, Generics, Owner};

/// One thing that a user's program may rely on.
#[derive(Debug)]
pub struct Entry {
    /// The section: `burn::tensor`.
    pub module: String,
    /// The item that it belongs to.
    pub item: String,
    /// The line as listed, with its item.
    pub text: String,
    /// What must hold.
    pub expect: Expect,
}

/// What an entry demands.
#[derive(Debug)]
pub enum Expect {
    /// The name can be reached.
    Exists,
    /// The item has this header.
    Header(String),
    /// The item has this member.
    Member {
        /// Its name.
        name: String,
        /// Its canonical form.
        canonical: String,
    },
    /// The trait is implemented.
    Implements(String),
}

/// Reads every section up to the items that no build of the list's source contained.
pub fn read(text: &str) -> Vec<Entry> {
    let mut reader = Reader::default();
    for line in text.lines() {
        if line.starts_with("## FEATURE-GATED") {
            break;
        }
        reader.line(line);
    }
    reader.entries
}

#[derive(Default)]
struct Reader {
    module: String,
    item: String,
    owner: Owner,
    /// Other names of types, from lines `type Name = Type`.
    aliases: Vec<(String, String)>,
    entries: Vec<Entry>,
}

impl Reader {
    fn push(&mut self, item: &str, text: String, expect: Expect) {
        self.entries.push(Entry { module: self.module.clone(), item: item.into(), text, expect });
    }

    fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start().len();
        if let Some(section) = line.strip_prefix("## ") {
            self.module = section.split_whitespace().next().unwrap_or_default().into();
        } else if trimmed.is_empty() || trimmed == "}" || trimmed.starts_with("//") || (indent == 0 && line.starts_with('#')) {
            // Nothing to demand.
        } else if indent == 0 {
            self.top(trimmed);
        } else if let Some(derived) = trimmed.strip_prefix("#derive(") {
            self.derived(derived.trim_end_matches(')'));
        } else if trimmed.starts_with("impl") {
            self.implementation(trimmed);
        } else {
            self.member(trimmed);
        }
    }

    /// A line at the margin: an item, a re-export, or a comma-separated list of names.
    fn top(&mut self, line: &str) {
        const KINDS: [&str; 10] = ["struct", "enum", "trait", "fn", "async", "unsafe", "type", "const", "use", "macro"];
        let first = line.split([' ', '<']).next().unwrap_or_default();
        if line.starts_with("mod ") {
            let name = line.split_whitespace().nth(1).unwrap_or_default().to_string();
            self.push(&name, line.into(), Expect::Exists);
        } else if !KINDS.contains(&first) {
            for name in line.split(", ") {
                self.push(name, format!("re-export {name}"), Expect::Exists);
            }
        } else if first == "use" || first == "macro" || line.contains("  = ") {
            let name = line.split_whitespace().nth(1).unwrap_or_default();
            let name = name.split("::").last().unwrap_or_default().trim_end_matches('!').to_string();
            self.push(&name, line.into(), Expect::Exists);
        } else {
            self.item = item_name(line);
            let all = canon::tokens(line);
            if let ["type", name, "=", target] = all.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                self.aliases.push((name.into(), target.into()));
            }
            let generics = all.get(2).filter(|token| *token == "<").map(|_| Generics::read(canon::bracketed(&all[2..]).0).names);
            self.owner = Owner::of_trait(&generics.unwrap_or_default());
            let item = self.item.clone();
            self.push(&item, line.into(), Expect::Header(canon::header(line)));
        }
    }

    fn derived(&mut self, traits: &str) {
        let all = canon::tokens(traits);
        let item = self.item.clone();
        for name in canon::split(&all, ",") {
            let name = canon::join(name);
            // A derive of the crate derive_more that takes any right-hand side names it so.
            let canonical = canon::implementation(&["__derive_more_Rhs".into()], &name, &item);
            self.push(&item, format!("{item}: {name}"), Expect::Implements(canonical));
        }
    }

    /// `impl<..> A + B{..} for T`, or the head of a block of inherent members.
    fn implementation(&mut self, line: &str) {
        let all = canon::tokens(line.trim_end_matches('{'));
        let mut rest = &all[1..];
        let mut generics = Vec::new();
        if rest.first().is_some_and(|token| token == "<") {
            let (inside, after) = canon::bracketed(rest);
            generics = Generics::read(inside).names;
            rest = after;
        }
        let end = rest.iter().position(|token| token == "where").unwrap_or(rest.len());
        let rest = &rest[..end];
        match canon::split(rest, "for").as_slice() {
            [traits, target] => {
                let (item, mut target) = (self.item.clone(), canon::join(target));
                if let Some((_, named)) = self.aliases.iter().find(|(name, _)| *name == target) {
                    target.clone_from(named);
                }
                for written in canon::split(traits, "+") {
                    let brace = written.iter().position(|token| token == "{").unwrap_or(written.len());
                    let name = canon::join(&written[..brace]);
                    let canonical = canon::implementation(&generics, &name, &target);
                    self.push(&item, format!("impl {name} for {target}"), Expect::Implements(canonical));
                }
            }
            _ => self.owner = Owner::new(&generics, &canon::join(rest)),
        }
    }

    fn member(&mut self, line: &str) {
        let line = line.replace("/*required*/", "").replace("[deprecated]", "");
        let item = self.item.clone();
        let text = format!("{item}: {}", line.trim());
        if let Some(name) = function_name(&line) {
            let canonical = canon::function(&line, &self.owner);
            self.push(&item, text, Expect::Member { name, canonical });
        } else if let Some(rest) = line.trim().strip_prefix("const ").or(line.trim().strip_prefix("type ")) {
            let name = rest.split([':', ' ', '=', ';', '<']).next().unwrap_or_default().to_string();
            self.push(&item, text, Expect::Member { canonical: name.clone(), name });
        }
    }
}

/// The name of the function that a line declares.
fn function_name(line: &str) -> Option<String> {
    let all = canon::tokens(line);
    let at = all.iter().position(|token| token == "fn")?;
    (at <= 3).then(|| all.get(at + 1).cloned()).flatten()
}

fn item_name(line: &str) -> String {
    function_name(line).unwrap_or_else(|| canon::tokens(line).get(1).cloned().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Expect, read};

    const LIST: &str = "\
# a comment
## burn::tensor
struct Shape { .. }
  #derive(Clone, Debug)
  impl Shape {
      fn new(dims: Vec<usize>) -> Self
  }
  impl Display + From<u8>{X = Y} for Shape
trait Kind: Basic {
      const NAME: &str
      fn kind() -> u8  /*required*/
  }
macro s! macro_rules! s {
type Size = Shape
  impl From<i8> for Size

## burn::tensor::ops   (only re-exports of items listed above)
Shape, Kind

## FEATURE-GATED ITEMS
struct Hidden
";

    #[test]
    fn every_demand_of_the_list_is_one_entry() {
        let entries = read(LIST);
        let count = |wanted: fn(&Expect) -> bool| entries.iter().filter(|entry| wanted(&entry.expect)).count();
        assert_eq!(count(|e| matches!(e, Expect::Header(_))), 3);
        assert_eq!(count(|e| matches!(e, Expect::Implements(_))), 5);
        assert!(entries.iter().any(|e| matches!(&e.expect, Expect::Implements(text) if text == "From<i8> for Shape")));
        assert_eq!(count(|e| matches!(e, Expect::Member { .. })), 3);
        assert_eq!(count(|e| matches!(e, Expect::Exists)), 3);
        assert!(entries.iter().all(|entry| entry.item != "Hidden"));
    }
}
