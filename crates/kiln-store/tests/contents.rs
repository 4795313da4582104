//! Files recognised by their first bytes.

use kiln_store::burn_pack::Scalar;
use kiln_store::{Contents, ContentsError, Format};

use crate::burnpack_sample;

#[test]
fn formats_are_told_by_content() {
    let burnpack = Contents::open(burnpack_sample("optim_adamw.bpk")).expect("readable");
    assert_eq!((burnpack.format, burnpack.tensors.len()), (Format::Burnpack, 4));
    assert_eq!(burnpack.scalars["11933479334135034448.__rank"], Scalar::UInt(1));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store_022.safetensors");
    let safetensors = Contents::open(path).expect("readable");
    assert_eq!((safetensors.format, safetensors.tensors.len()), (Format::Safetensors, 22));
    assert_eq!(safetensors.metadata["version"], "0.22.0");
}

#[test]
fn records_of_burn_0_21_are_told_by_content() {
    let open = |name: &str| {
        let path = burnpack_sample("../legacy").join(name);
        let contents = Contents::open(path).expect("readable");
        (contents.format.to_string(), contents.format.has_paths(), contents.tensors.len(), contents.tensors[0].name.clone())
    };
    assert_eq!(open("named_mpk_full.mpk"), ("Burn 0.21 MessagePack".into(), true, 22, "conv.weight".into()));
    assert_eq!(open("json_half.json.gz"), ("Burn 0.21 JSON, compressed".into(), true, 22, "conv.weight".into()));
    assert_eq!(open("bin_double.bin"), ("Burn 0.21 bincode".into(), false, 22, "#0".into()));
}

#[test]
fn other_files_are_named_with_their_first_bytes() {
    let error = Contents::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).expect_err("no weight file");
    assert!(matches!(&error, ContentsError::UnknownFormat { start, .. } if start.starts_with(b"[package]")));
    assert!(error.to_string().contains("Cargo.toml: is of no supported format; it starts with the bytes [5b, 70,"), "{error}");
    let error = Contents::open("absent.bpk").expect_err("there is no such file");
    assert!(error.to_string().starts_with("absent.bpk: "), "{error}");
    let error = Contents::open(env!("CARGO_MANIFEST_DIR")).expect_err("a folder is no file");
    assert!(error.to_string().ends_with("is not a file"), "{error}");
}
