//! The derives' errors: each points at the field or item that is wrong and says what to do.
//!
//! A file of `derive_errors/` is compiled as a user's crate is. A comment `//~ TEXT` says that the compiler must report an error at this line whose message, label, note
//! or help contains the text; there must be no error that no comment speaks of. Wording that is the compiler's own is not compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use kiln::serde::Deserialize;

/// What the compiler reports, as far as it is compared.
#[derive(Deserialize, Debug)]
#[serde(crate = "kiln::serde")]
struct Report {
    message: String,
    #[serde(default)]
    level: String,
    #[serde(default)]
    spans: Vec<Span>,
    #[serde(default)]
    children: Vec<Report>,
}

#[derive(Deserialize, Debug)]
#[serde(crate = "kiln::serde")]
struct Span {
    line_start: usize,
    is_primary: bool,
    label: Option<String>,
}

impl Report {
    /// Message, labels, notes and helps.
    fn texts(&self) -> Vec<&str> {
        let labels = self.spans.iter().filter_map(|span| span.label.as_deref());
        [self.message.as_str()].into_iter().chain(labels).chain(self.children.iter().flat_map(Report::texts)).collect()
    }
}

/// Compiles a file against `library`; gives the errors.
fn compile(file: &Path, library: &Path) -> Vec<Report> {
    let deps = library.parent().expect("it lies in a folder");
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--crate-type", "lib", "--crate-name", "case", "--emit", "metadata", "--error-format", "json"])
        .arg("--extern")
        .arg(format!("kiln={}", library.display()))
        .arg("-L")
        .arg(format!("dependency={}", deps.display()))
        .arg("--out-dir")
        .arg(env!("CARGO_TARGET_TMPDIR"))
        .arg(file)
        .output()
        .expect("the compiler that compiled this test can be run");
    let text = String::from_utf8_lossy(&output.stderr);
    let reports = text.lines().filter_map(|line| serde_json::from_str::<Report>(line).ok());
    let errors: Vec<Report> = reports.filter(|report| report.level == "error" && !report.message.starts_with("aborting due to")).collect();
    assert!(output.status.success() == errors.is_empty(), "{}: {text}", file.display());
    errors
}

/// The library that this test was built with: among those beside it, the newest that a program compiles with.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("it lies in a folder");
    let entries = std::fs::read_dir(deps).expect("it can be read").flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libkiln-") && name.ends_with(".rlib")
        })
        .map(|entry| (entry.metadata().and_then(|about| about.modified()).ok(), entry.path()))
        .collect();
    found.sort();
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/derive_errors/none.rs");
    let usable = found.into_iter().rev().map(|(_, path)| path).find(|path| compile(&probe, path).is_empty());
    usable.unwrap_or_else(|| panic!("no library of this crate in {}", deps.display()))
}

#[test]
fn errors_point_at_the_field_and_say_what_to_do() {
    let library = library();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/derive_errors");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut failures, mut expectations) = (Vec::new(), 0);
    for file in &files {
        let source = std::fs::read_to_string(file).unwrap();
        let expected: Vec<(usize, &str)> =
            source.lines().enumerate().flat_map(|(at, line)| line.split("//~ ").skip(1).map(move |text| (at + 1, text.trim()))).collect();
        expectations += expected.len();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let mut met = vec![false; expected.len()];
        for report in compile(file, &library) {
            let lines: Vec<usize> = report.spans.iter().filter(|span| span.is_primary).map(|span| span.line_start).collect();
            let texts = report.texts();
            let fits = |(line, text): &(usize, &str)| lines.contains(line) && texts.iter().any(|found| found.contains(text));
            let fitting: Vec<usize> = (0..expected.len()).filter(|place| fits(&expected[*place])).collect();
            if fitting.is_empty() {
                failures.push(format!("{name}: unexpected error at {lines:?}: {texts:?}"));
            }
            fitting.into_iter().for_each(|place| met[place] = true);
        }
        let unmet = expected.iter().zip(met).filter(|(_, met)| !met);
        failures.extend(unmet.map(|((line, text), _)| format!("{name}:{line}: no error with `{text}`")));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(expectations >= 20, "only {expectations} errors are looked for");
}
