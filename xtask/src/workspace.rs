//! The workspace on disk: its root, its source files, its packages.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies one level below the root").to_path_buf()
}

/// `path` as written in messages: relative to the root, with forward slashes.
pub fn shown(path: &Path) -> String {
    let relative = path.strip_prefix(root()).unwrap_or(path);
    relative.to_string_lossy().replace('\\', "/")
}

/// Every file below the root whose name ends in `.ext`, sorted; build output and hidden directories are left out.
pub fn files(ext: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|found| found == ext) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A package of the workspace and the workspace packages that it imports.
#[derive(Debug)]
pub struct Package {
    /// Its name in `Cargo.toml`.
    pub name: String,
    /// Names of normal and build dependencies (what only tests use is left out).
    pub imports: Vec<String>,
}

/// The packages of the workspace, from `cargo metadata`.
pub fn packages() -> Result<Vec<Package>, String> {
    let output = Command::new(cargo())
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .map_err(|error| format!("cargo metadata did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata printed no JSON: {error}"))?;
    Ok(list(&metadata["packages"]).map(package).collect())
}

fn package(value: &Value) -> Package {
    let imports = list(&value["dependencies"])
        .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
        .filter_map(|dependency| dependency["name"].as_str())
        .map(String::from)
        .collect();
    Package { name: value["name"].as_str().unwrap_or_default().into(), imports }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs this task.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}
