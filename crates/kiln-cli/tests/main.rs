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
