//! No `_ =>` over ops: files that match on an op enum must deny clippy's wildcard lint, so a new op is a compile error.

use super::Finding;

/// Where the rule holds. The trees below these roots are where ops are interpreted, scheduled or differentiated.
const ROOTS: [&str; 3] = ["crates/kiln-ir/src/", "crates/kiln-compiler/src/", "crates/kiln-tensor/src/"];

/// The enums whose variants are operations.
const ENUMS: [&str; 3] = ["Op", "Elementwise", "OpClass"];

const DENY: &str = "#![deny(clippy::wildcard_enum_match_arm)]";

/// Checks the file at `path` (relative to the root).
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    if !ROOTS.iter().any(|root| path.starts_with(root)) {
        return Vec::new();
    }
    let arm = text.lines().position(is_op_arm);
    match arm {
        Some(line) if !text.contains(DENY) => {
            vec![Finding::new(path, line + 1, format!("matches on ops without `{DENY}` at the top of the file"))]
        }
        _ => Vec::new(),
    }
}

/// Whether a line begins a match arm (or a further alternative of one) on an op.
fn is_op_arm(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("| ");
    let named = ENUMS.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with("::")));
    named && line.contains("=>")
}

#[cfg(test)]
mod tests {
    use super::{DENY, check};

    #[test]
    fn a_match_on_ops_needs_the_lint() {
        let text = "//! A.\nmatch op {\n    Op::Dot(d) => 1,\n}\n";
        assert_eq!(check("crates/kiln-ir/src/infer.rs", text).len(), 1);
        assert!(check("crates/kiln-ir/src/infer.rs", &format!("//! A.\n{DENY}\n{text}")).is_empty());
        assert!(check("crates/kiln-nn/src/linear.rs", text).is_empty());
    }

    #[test]
    fn naming_an_op_outside_a_match_needs_nothing() {
        assert!(check("crates/kiln-ir/src/a.rs", "//! A.\nlet op = Op::Dot(d);\n").is_empty());
    }
}
