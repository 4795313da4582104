//! Documents that are derived from source: `docs/ops.md` from the op table of `kiln-ir`.

use crate::{Outcome, workspace};
use std::path::Path;

/// The table of ops and the document made from it.
const TABLE: &str = "crates/kiln-ir/src/table.rs";
/// The document.
pub const OPS: &str = "docs/ops.md";

/// Writes every generated document.
pub fn run() -> Outcome {
    let root = workspace::root();
    let text = ops(&root)?;
    std::fs::write(root.join(OPS), text).map_err(|error| format!("{OPS} cannot be written: {error}"))
}

/// What `docs/ops.md` should hold.
pub fn ops(root: &Path) -> Result<String, String> {
    let table = std::fs::read_to_string(root.join(TABLE)).map_err(|error| format!("{TABLE}: {error}"))?;
    let rows: Vec<Row> = table.lines().filter_map(Row::read).collect();
    if rows.is_empty() {
        return Err(format!("{TABLE} has no row that can be read"));
    }
    let mut text = String::from(
        "# Elementwise operations\n\n\
         Made by `cargo xtask docs` from the op table in `crates/kiln-ir/src/table.rs`; do not edit. Everything else that users call elementwise is composed of these.\n\n\
         | op | operands | dtypes | result | meaning |\n|---|---|---|---|---|\n",
    );
    for Row { name, arity, accepts, gives, meaning } in rows {
        let dtypes = match accepts {
            "Float" => "float",
            "Number" => "float, int",
            "Int" => "int",
            "IntBool" => "int, bool",
            "All" => "all",
            other => return Err(format!("{TABLE}: {name} accepts {other}, which docs do not know")),
        };
        let result = if gives == "Bool" { "bool" } else { "same" };
        let meaning = meaning.replace('|', "\\|");
        text += &format!("| `{name}` | {arity} | {dtypes} | {result} | {meaning} |\n");
    }
    Ok(text)
}

/// What a document says of a row.
struct Row<'a> {
    name: &'a str,
    arity: &'a str,
    accepts: &'a str,
    gives: &'a str,
    meaning: &'a str,
}

impl<'a> Row<'a> {
    /// Reads `Add "add" 2 Number Same (..), "c", "wgsl", "meaning", ..`; other lines give nothing.
    fn read(line: &'a str) -> Option<Self> {
        let line = line.trim_start();
        if !line.starts_with(|c: char| c.is_ascii_uppercase()) {
            return None;
        }
        let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
        let [name, _, _, meaning, ..] = quoted[..] else { return None };
        let mut words = line.split('"').nth(2)?.split_whitespace();
        Some(Self { name, arity: words.next()?, accepts: words.next()?, gives: words.next()?, meaning })
    }
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn a_row_is_read_and_other_lines_are_not() {
        let line = r#"    Lt "lt" 2 Number Bool (-3.0, 3.0), "({0} < {1})", "({0} < {1})", "Less than.", |x, y, _| b(x < y);"#;
        let row = Row::read(line).expect("this is a row");
        assert_eq!([row.name, row.arity, row.accepts, row.gives, row.meaning], ["lt", "2", "Number", "Bool", "Less than."]);
        assert!(Row::read("    fn f() {}").is_none());
        assert!(Row::read("impl Row {").is_none());
    }
}
