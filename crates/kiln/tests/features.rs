//! The features of the crate beside those of Burn 0.22.1: each is there and in the README's table, or refused by Cargo.

use std::collections::BTreeSet;

/// Features of Burn 0.22.1 that this crate has.
const ACCEPTED: [&str; 25] = [
    "default",
    "std",
    "autodiff",
    "optim",
    "burn-optim",
    "burn-store",
    "store",
    "safetensors",
    "pytorch",
    "dataset",
    "flex",
    "cpu",
    "cuda",
    "linalg",
    "signal",
    "extension",
    "simd",
    "rayon",
    "x86-v4",
    "apple-amx",
    "accelerate",
    "blas-netlib",
    "openblas",
    "openblas-system",
    "fusion",
];

/// More of them.
const TUNING: [&str; 3] = ["autotune", "autotune-checks", "persistence"];

/// Features of Burn 0.22.1 whose part isn't here yet.
const ABSENT: [&str; 27] = [
    "audio",
    "burn-train",
    "burn-vision",
    "capture",
    "cubecl",
    "doc",
    "ir",
    "metal",
    "metrics",
    "ndarray",
    "network",
    "remote",
    "remote-server",
    "remote-websocket",
    "rl",
    "rocm",
    "sqlite",
    "sqlite-bundled",
    "tch",
    "template",
    "tracing",
    "train",
    "tui",
    "vision",
    "vulkan",
    "webgpu",
    "wgpu",
];

/// The names defined in the table `[features]` of this crate.
fn defined() -> BTreeSet<String> {
    let manifest = include_str!("../Cargo.toml");
    let features = manifest.split("[features]").nth(1).and_then(|rest| rest.split("\n[").next()).expect("a table of features");
    features.lines().filter(|line| !line.starts_with('#')).filter_map(|line| Some(line.split_once('=')?.0.trim().to_string())).collect()
}

#[test]
fn every_feature_of_burn_is_here_and_documented_or_refused() {
    let defined = defined();
    let documented = include_str!("../../../README.md").split("| feature of the crate |").nth(1).expect("the table of features");
    let documented = &documented[..documented.find("## ").expect("a section after it")];
    for name in ACCEPTED.iter().chain(&TUNING).filter(|name| **name != "default") {
        assert!(defined.contains(*name), "the feature {name} of Burn is missing");
        assert!(documented.contains(&format!("`{name}`")), "the README's table doesn't name the feature {name}");
    }
    for name in ABSENT {
        assert!(!defined.contains(name), "the feature {name} is listed as absent");
        assert!(!documented.contains(&format!("`{name}`")), "the README's table names the absent feature {name}");
    }
    let known: BTreeSet<&str> = ACCEPTED.into_iter().chain(TUNING).collect();
    let own: Vec<&String> = defined.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(own.is_empty(), "features that Burn doesn't have: {own:?}");
}
