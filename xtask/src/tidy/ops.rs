//! No `_ =>` where ops get their meaning: such files must deny clippy's wildcard lint, so that a new op is a compile error there.
//!
//! Elsewhere a pass may look for the few ops that it knows and leave the rest as they are.

use super::Finding;

/// Where each enum must be matched exhaustively: the files that give ops their types, values and gradients, and the passes that choose by class.
const RULES: [(&str, &[&str]); 3] = [
    ("crates/kiln-ir/src/", &["Op", "Elementwise", "Class"]),
    ("crates/kiln-compiler/src/", &["Class"]),
    ("crates/kiln-tensor/src/autodiff/rules", &["Op", "Elementwise", "Class"]),
];

/// Stands at the top of the file or before the function.
const DENY: &str = "[deny(clippy::wildcard_enum_match_arm)]";

/// Checks the file at `path` (relative to the root).
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let Some((_, enums)) = RULES.iter().find(|(root, _)| path.starts_with(root)) else { return Vec::new() };
    let arm = text.lines().position(|line| is_arm(line, enums));
    match arm {
        Some(line) if !text.contains(DENY) => {
            vec![Finding::new(path, line + 1, format!("matches on ops without `#{DENY}` before the function or `#!{DENY}` at the top of the file"))]
        }
        _ => Vec::new(),
    }
}

/// Whether a line begins a match arm (or a further alternative of one) on one of the enums.
fn is_arm(line: &str, enums: &[&str]) -> bool {
    let line = line.trim_start().trim_start_matches("| ");
    let named = enums.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with("::")));
    named && line.contains("=>")
}

#[cfg(test)]
mod tests {
    use super::{DENY, check};

    #[test]
    fn a_match_on_ops_needs_the_lint() {
        let text = "//! A.\nmatch op {\n    Op::Dot(d) => 1,\n}\n";
        assert_eq!(check("crates/kiln-ir/src/infer.rs", text).len(), 1);
        assert!(check("crates/kiln-ir/src/infer.rs", &format!("//! A.\n#!{DENY}\n{text}")).is_empty());
        assert!(check("crates/kiln-nn/src/linear.rs", text).is_empty());
        assert!(check("crates/kiln-compiler/src/simplify.rs", text).is_empty());
    }

    #[test]
    fn naming_an_op_outside_a_match_needs_nothing() {
        assert!(check("crates/kiln-ir/src/a.rs", "//! A.\nlet op = Op::Dot(d);\n").is_empty());
    }
}
