//! Tests of the command as a user runs it.

use std::process::{Command, Output};

fn kiln(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kiln")).args(arguments).output().expect("the command runs")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiln-module/tests/data/burnpack");

#[test]
fn inspect_lists_tensors_scalars_and_metadata() {
    let output = kiln(&["inspect", &format!("{SAMPLES}/module_full.bpk")]);
    assert!(output.status.success());
    let listing = text(output.stdout);
    let lines: Vec<&str> = listing.lines().collect();
    assert!(lines[0].ends_with("module_full.bpk: burnpack, 22 tensors, 137 elements, 539 B"), "{listing}");
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["path", "shape", "dtype", "bytes"]);
    assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["conv.weight", "[3,", "2,", "3,", "3]", "f32", "216", "B"]);
    assert_eq!(lines.len(), 24);
    let listing = text(kiln(&["inspect", &format!("{SAMPLES}/sched_cosine.bpk")]).stdout);
    assert!(listing.ends_with("sched_cosine.bpk: burnpack, 0 tensors, 0 elements, 0 B\n  0.current_iter = 4\n"), "{listing}");
}

#[test]
fn inspect_gives_statistics_when_asked() {
    let output = kiln(&["inspect", "--stats", &format!("{SAMPLES}/module_full.bpk")]);
    let listing = text(output.stdout);
    let mask = listing.lines().find(|line| line.trim_start().starts_with("mask")).expect("the sample has a mask");
    assert!(mask.ends_with('0') && mask.contains("0.000000") && mask.contains("1.000000"), "{mask}");
}

#[test]
fn convert_writes_either_format_and_replaces_nothing() {
    let folder = std::env::temp_dir().join(format!("kiln-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let path = |name: &str| folder.join(name).to_str().expect("plain names").to_owned();
    let (bpk, safetensors) = (path("a.bpk"), path("a.safetensors"));
    let convert = |from: &str, to: &str| kiln(&["convert", from, to]);
    assert!(convert(&format!("{SAMPLES}/../legacy/named_mpk_full.mpk"), &bpk).status.success());
    assert!(convert(&bpk, &safetensors).status.success());
    let values =
        |file: &str| text(kiln(&["inspect", "--stats", file]).stdout).lines().skip(2).map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(
        values(&bpk),
        values(&format!("{SAMPLES}/store_021.bpk")).into_iter().filter(|line| !line.contains(" = ")).filter(|line| !line.contains("path")).collect()
    );
    assert_eq!(values(&bpk), values(&safetensors));
    let output = convert(&bpk, &safetensors);
    assert!(!output.status.success() && text(output.stderr).contains("exists already"));
    let output = convert(&format!("{SAMPLES}/../legacy/bin_full.bin"), &path("b.bpk"));
    assert!(!output.status.success() && text(output.stderr).contains("carries no names of parameters"));
    let output = convert(&format!("{SAMPLES}/optim_adamw.bpk"), &path("o.safetensors"));
    assert!(!output.status.success() && text(output.stderr).contains("numbers beside its tensors"));
    assert!(!convert(&bpk, &path("a.txt")).status.success());
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
fn files_of_pytorch_are_inspected_and_converted() {
    let folder = std::env::temp_dir().join(format!("kiln-cli-pt-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let path = |name: &str| folder.join(name).to_str().expect("plain names").to_owned();
    let sample = format!("{SAMPLES}/../../../../kiln-store/tests/data/pytorch/net.pt");
    let listing = text(kiln(&["inspect", &sample]).stdout);
    assert!(listing.lines().next().expect("a heading").contains("net.pt: PyTorch, 22 tensors"), "{listing}");
    let weight = listing.lines().find(|line| line.trim_start().starts_with("rnn.weight_ih_l0")).expect("listed");
    assert_eq!(weight.split_whitespace().collect::<Vec<_>>(), ["rnn.weight_ih_l0", "[12,", "2]", "f32", "96", "B"]);
    for target in ["net.bpk", "net.safetensors"] {
        let output = kiln(&["convert", &sample, &path(target)]);
        assert!(output.status.success(), "{}", text(output.stderr));
        let rows = |file: &str| {
            text(kiln(&["inspect", "--stats", file]).stdout).lines().skip(2).map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(rows(&sample), rows(&path(target)));
    }
    std::fs::remove_dir_all(folder).expect("removable");
}

/// The rows that `inspect --stats` lists for a file, without its heading.
fn rows(file: &str) -> std::collections::BTreeSet<String> {
    let output = kiln(&["inspect", "--stats", file]);
    assert!(output.status.success(), "{file}: {}", text(output.stderr));
    // Columns are as wide as their longest word, which the names of other files change.
    let listing = text(output.stdout);
    let lines = listing.lines().skip(1).filter(|line| !line.contains(" = "));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|line| !line.starts_with("path")).collect()
}

#[test]
fn every_kind_of_file_is_inspected_and_converted() {
    let folder = std::env::temp_dir().join(format!("kiln-cli-kinds-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let path = |name: &str| folder.join(name).to_str().expect("plain names").to_owned();
    let legacy = format!("{SAMPLES}/../legacy");
    let store = format!("{SAMPLES}/../../../../kiln-store/tests/data");
    let mut kinds: Vec<(String, &str, bool)> = Vec::new();
    for precision in ["full", "half", "double"] {
        for (name, format, named) in [
            ("named_mpk", ".mpk", true),
            ("named_mpk", ".mpk.gz", true),
            ("named_mpk_bytes", ".mpk", true),
            ("json", ".json", true),
            ("json", ".json.gz", true),
            ("bin", ".bin", false),
            ("bin", ".bin.gz", false),
            ("bin_bytes", ".bin", false),
        ] {
            kinds.push((format!("{legacy}/{name}_{precision}{format}"), precision, named));
        }
    }
    kinds.push((format!("{SAMPLES}/store_021.bpk"), "full", true));
    kinds.push((format!("{store}/store_021.safetensors"), "full", true));
    kinds.push((format!("{SAMPLES}/store_022.bpk"), "full", true));
    kinds.push((format!("{store}/store_022.safetensors"), "full", true));
    let mut of_precision = std::collections::BTreeMap::new();
    for (at, (file, precision, named)) in kinds.iter().enumerate() {
        let listed = rows(file);
        assert!(listed.len() == 22, "{file}: {listed:#?}");
        if !named {
            let output = kiln(&["convert", file, &path(&format!("{at}.bpk"))]);
            assert!(!output.status.success() && text(output.stderr).contains("carries no names of parameters"), "{file}");
            continue;
        }
        // All files of a precision hold the same parameters, and so do those that they are converted to.
        assert_eq!(&listed, of_precision.entry(precision).or_insert_with(|| listed.clone()), "{file}");
        for target in ["bpk", "safetensors"] {
            let new = path(&format!("{at}.{target}"));
            let output = kiln(&["convert", file, &new]);
            assert!(output.status.success(), "{file}: {}", text(output.stderr));
            assert_eq!(rows(&new), listed, "{file} as {target}");
        }
    }
    for file in ["adam.pt", "archive.tar", "checkpoint.pth", "kinds.pt", "module.pt", "plain.pt", "protocol4.pt"] {
        let file = format!("{store}/pytorch/{file}");
        let output = kiln(&["inspect", &file]);
        assert!(output.status.success() && text(output.stdout).contains("PyTorch"), "{file}: {}", text(output.stderr));
    }
    for file in [format!("{legacy}/optim_adamw_full.mpk"), format!("{legacy}/optim_adamw_full.json"), format!("{legacy}/optim_adamw_full.bin")] {
        assert_eq!(rows(&file).len(), 4, "{file}");
    }
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
fn devices_lists_each_device_and_marks_the_default() {
    let output = kiln(&["devices"]);
    assert!(output.status.success());
    let listing = text(output.stdout);
    let marked = listing.lines().filter(|line| line.starts_with("  *")).count();
    assert_eq!(marked, 1, "{listing}");
    assert!(listing.lines().any(|line| line.contains("reference") && line.contains("f64 f32 f16 bf16")), "{listing}");
}

#[test]
fn mistakes_are_told_apart_by_the_exit_code() {
    let output = kiln(&["inspect", "absent.bpk"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(output.stderr).starts_with("kiln: absent.bpk: "));
    let output = kiln(&["inspect"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(output.stderr).starts_with("Usage: kiln COMMAND"));
    let output = kiln(&["help"]);
    assert!(output.status.success() && text(output.stdout).contains("inspect FILE"));
}
