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
fn other_files_are_named_with_their_first_bytes() {
    let error = Contents::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).expect_err("no weight file");
    assert!(matches!(&error, ContentsError::UnknownFormat { start, .. } if start.starts_with(b"[package]")));
    assert!(error.to_string().contains("Cargo.toml: is of no supported format; it starts with the bytes [5b, 70,"), "{error}");
    let error = Contents::open("absent.bpk").expect_err("there is no such file");
    assert!(error.to_string().starts_with("absent.bpk: "), "{error}");
    let error = Contents::open(env!("CARGO_MANIFEST_DIR")).expect_err("a folder is no file");
    assert!(error.to_string().ends_with("is not a file"), "{error}");
}
