//! Documents: the files a newcomer needs exist, their links to files of the repository lead somewhere, and derived ones are fresh.

use super::Finding;
use crate::generate;
use std::path::Path;

/// Documents that the repository promises.
const PROMISED: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs/adding-an-op.md",
    "docs/adding-a-layer.md",
    "docs/adding-a-backend.md",
];

/// Checks the documents below `root`.
pub fn check(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in PROMISED {
        let path = root.join(name);
        match std::fs::read_to_string(&path) {
            Err(_) => findings.push(Finding::new(name, 0, "this document is missing")),
            Ok(text) => {
                let dir = path.parent().unwrap_or(root);
                for (line, link) in links(&text).filter(|(_, link)| !dir.join(link).exists()) {
                    findings.push(Finding::new(name, line, format!("links to {link}, which does not exist")));
                }
            }
        }
    }
    match generate::ops(root) {
        Err(message) => findings.push(Finding::new(generate::OPS, 0, message)),
        Ok(fresh) => {
            if std::fs::read_to_string(root.join(generate::OPS)).ok() != Some(fresh) {
                findings.push(Finding::new(generate::OPS, 0, "is not what the op table says; run `cargo xtask docs`"));
            }
        }
    }
    findings
}

/// The relative targets of Markdown links, each with its line; addresses and anchors are left out.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(i, line)| {
        line.split("](").skip(1).filter_map(move |rest| {
            let target = rest.split(')').next()?.split('#').next()?;
            (!target.is_empty() && !target.contains("://")).then_some((i + 1, target))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn only_relative_links_are_followed() {
        let text = "see [a](docs/a.md#part) and [b](https://example.org/x)\n[c](#here) [d](e.md)";
        assert_eq!(links(text).collect::<Vec<_>>(), [(1, "docs/a.md"), (2, "e.md")]);
    }
}
