//! The house rules that a program can check, in well under a second.

mod docs;
mod examples;
mod layering;
mod ops;
mod source;

use crate::{Outcome, workspace};

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root, or the package.
    pub place: String,
    /// The line it starts at; zero when the whole file is meant.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Finding {
    fn new(place: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { place: place.into(), line, message: message.into() }
    }
}

/// Checks every rule and prints what breaks one.
pub fn run() -> Outcome {
    let root = workspace::root();
    let mut findings = Vec::new();
    let paths = workspace::files("rs");
    for path in &paths {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        let shown = workspace::shown(path);
        findings.extend(source::check(&shown, &text));
        findings.extend(ops::check(&shown, &text));
        findings.extend(examples::check(&shown, &text));
    }
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).map_err(|error| format!("ARCHITECTURE.md cannot be read: {error}"))?;
    findings.extend(layering::check(&map, &workspace::packages()?));
    findings.extend(docs::check(&root));
    findings.sort();
    for Finding { place, line, message } in &findings {
        match line {
            0 => println!("{place}: {message}"),
            _ => println!("{place}:{line}: {message}"),
        }
    }
    match findings.len() {
        0 => {
            println!("tidy: {} source files in order", paths.len());
            Ok(())
        }
        n => Err(format!("{n} findings")),
    }
}
