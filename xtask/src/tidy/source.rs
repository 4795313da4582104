//! Rules on one source file: its first line, its length, its name, and nothing left unfinished.

use super::Finding;

/// Lines a file may have unless its first line says that it is a table.
const LONGEST: usize = 800;

/// File and directory names that say nothing about what lives there.
const EMPTY_NAMES: [&str; 5] = ["utils", "helpers", "common", "misc", "base"];

/// Checks the file at `path` (relative to the root).
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let first = text.lines().next().unwrap_or_default();
    if !first.starts_with("//! ") {
        findings.push(Finding::new(path, 1, "the first line is not a `//!` sentence on what lives here"));
    }
    let lines = text.lines().count();
    if lines > LONGEST && !first.starts_with("//! Table:") {
        let message = format!("{lines} lines; {LONGEST} is the bound (a table says `//! Table:` in its first line)");
        findings.push(Finding::new(path, 0, message));
    }
    for part in path.trim_end_matches(".rs").split('/') {
        if EMPTY_NAMES.contains(&part) || EMPTY_NAMES.iter().any(|name| *part == name[..name.len() - 1]) {
            findings.push(Finding::new(path, 0, format!("{part:?} names no subject; name the file for what it holds")));
        }
    }
    for (i, line) in text.lines().enumerate() {
        if let Some(word) = unfinished().into_iter().find(|word| line.contains(word.as_str())) {
            findings.push(Finding::new(path, i + 1, format!("`{word}` leaves work undone")));
        }
    }
    findings
}

/// What marks unfinished or switched-off code; put together here so that this file does not contain the words.
fn unfinished() -> [String; 5] {
    let open = "!(";
    [format!("todo{open}"), format!("unimplemented{open}"), ["#[", "ignore"].concat(), ["FIX", "ME"].concat(), ["XX", "X"].concat()]
}

#[cfg(test)]
mod tests {
    use super::check;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(path, text).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_documented_short_file_passes() {
        assert!(messages("crates/a/src/shape.rs", "//! Shapes.\npub struct Shape;\n").is_empty());
    }

    #[test]
    fn a_file_without_module_docs_is_found() {
        assert_eq!(messages("crates/a/src/shape.rs", "pub struct Shape;\n").len(), 1);
    }

    #[test]
    fn only_tables_may_be_long() {
        let rest = "x\n".repeat(800);
        assert_eq!(messages("a.rs", &format!("//! Ops.\n{rest}")).len(), 1);
        assert!(messages("a.rs", &format!("//! Table: ops.\n{rest}")).is_empty());
    }

    #[test]
    fn empty_names_are_found_in_files_and_directories() {
        assert_eq!(messages("crates/a/src/utils.rs", "//! A.\n").len(), 1);
        assert_eq!(messages("crates/a/src/helper/x.rs", "//! A.\n").len(), 1);
        assert!(messages("crates/a/src/database.rs", "//! A.\n").is_empty());
    }

    #[test]
    fn unfinished_code_is_found_with_its_line() {
        let text = format!("//! A.\nfn f() {{ {}() }}\n", "todo!");
        let found = check("a.rs", &text);
        assert_eq!((found.len(), found[0].line), (1, 2));
    }
}
