//! Build times: the facade from nothing, and a user's small crate after an edit.

use super::lines::Line;
use crate::workspace;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Names of these workloads.
pub const WORKLOADS: [&str; 2] = ["build_cold", "rebuild_user"];

/// Builds with `threads` jobs in a folder of its own, which is removed before and after.
pub fn run(wanted: &[&str], threads: usize) -> Result<Vec<Line>, String> {
    let target = workspace::root().join("target/build-times");
    let clear = || {
        // Absent on the first run.
        let _ = std::fs::remove_dir_all(&target);
    };
    clear();
    let mut lines = Vec::new();
    let cold = build("kiln", &target, threads)?;
    if wanted.contains(&"build_cold") {
        lines.push(line("build_cold", &[cold], threads));
    }
    if wanted.contains(&"rebuild_user") {
        build("migrated", &target, threads)?;
        let source = workspace::root().join("tests/migrated/src/main.rs");
        let mut times = Vec::new();
        for _ in 0..5 {
            touch(&source)?;
            times.push(build("migrated", &target, threads)?);
        }
        times.sort_by(f64::total_cmp);
        lines.push(line("rebuild_user", &times, threads));
    }
    clear();
    Ok(lines)
}

fn build(package: &str, target: &Path, threads: usize) -> Result<f64, String> {
    let start = Instant::now();
    let status = Command::new(workspace::cargo())
        .args(["build", "--release", "--quiet", "-p", package, "-j", &threads.to_string(), "--target-dir"])
        .arg(target)
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    if status.success() { Ok(start.elapsed().as_secs_f64()) } else { Err(format!("{package} does not build")) }
}

/// Makes the file newer than what was built from it.
fn touch(path: &Path) -> Result<(), String> {
    let file = std::fs::File::options().append(true).open(path);
    let done = file.and_then(|file| file.set_modified(std::time::SystemTime::now()));
    done.map_err(|error| format!("{}: {error}", path.display()))
}

fn line(workload: &str, sorted: &[f64], threads: usize) -> Line {
    let (median, min, n) = (sorted[sorted.len() / 2], sorted[0], sorted.len());
    let text = format!(
        "{{\"framework\": \"kiln\", \"workload\": \"{workload}\", \"dtype\": \"\", \"median_s\": {median:e}, \"min_s\": {min:e}, \"n\": {n}, \
         \"extra\": {{\"threads\": {threads}}}}}"
    );
    Line::read(&text).expect("the line is written in the form that is read")
}
