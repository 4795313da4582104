//! Every operation of the tensor API shows an example, which is compiled and run with the tests.

use super::Finding;

/// Where operations live.
const OPERATIONS: &str = "crates/kiln-tensor/src/api/";

/// Files there that hold options, private parts, or what no program of a user calls.
const OTHERS: [&str; 6] = ["options/", "bridge.rs", "kind.rs", "linalg/dense.rs", "linalg/host.rs", "signal/transform.rs"];

/// Constructors and setters of options, and the way to the untyped tensor.
const PLAIN: [&str; 5] = ["new", "with_dtype", "with_device", "into_raw", "as_raw"];

/// Checks the file at `path` (relative to the root).
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let Some(rest) = path.strip_prefix(OPERATIONS) else {
        return Vec::new();
    };
    if OTHERS.iter().any(|other| rest.starts_with(other)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let (mut documented, mut hidden, mut untyped) = (false, false, false);
    for (i, line) in text.lines().enumerate() {
        let line_text = line.trim_start();
        if line.starts_with("impl") {
            untyped = line.contains("RawTensor");
        } else if line_text.starts_with("///") {
            documented |= line_text.contains("```");
        } else if line_text.starts_with("#[") {
            hidden |= line_text.contains("hidden");
        } else {
            if let Some(name) = public_function(line_text)
                && !(documented || hidden || untyped || PLAIN.contains(&name))
            {
                findings.push(Finding::new(path, i + 1, format!("`{name}` shows no example")));
            }
            (documented, hidden) = (false, false);
        }
    }
    findings
}

/// The name of the public function that a line begins.
fn public_function(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = ["async ", "unsafe ", "const "].iter().fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    rest.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::check;

    const PATH: &str = "crates/kiln-tensor/src/api/view.rs";

    #[test]
    fn an_operation_without_an_example_is_found() {
        let text = "//! Views.\nimpl Tensor {\n    /// Turns.\n    #[track_caller]\n    pub fn t(self) {}\n}\n";
        let found = check(PATH, text);
        assert_eq!((found.len(), found[0].line), (1, 5));
        assert!(check("crates/kiln-tensor/src/raw/view.rs", text).is_empty());
    }

    #[test]
    fn examples_private_functions_and_constructors_pass() {
        let text = "//! Views.\n/// Turns.\n/// ```\n/// t();\n/// ```\npub fn t() {}\n/// Private.\nfn u() {}\n/// Makes.\npub fn new() {}\n";
        assert!(check(PATH, text).is_empty());
    }
}
