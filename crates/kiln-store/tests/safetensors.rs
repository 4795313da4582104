//! Safetensors files: the sample read and written byte for byte, and files that are refused.

use kiln_module::record::burnpack::{PackErrorKind, Reader};
use kiln_store::bridge;
use kiln_store::burn_pack::Tensor;
use kiln_store::safetensors::{SafeTensorErrorKind, SafetensorsReader, SafetensorsWriter};
use kiln_tensor::quantization::QuantScheme;
use kiln_tensor::{Bytes, DType};

use crate::{burnpack_sample, tensor};

fn sample_of(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/{name}.safetensors", env!("CARGO_MANIFEST_DIR"))).expect("the sample is part of the repository")
}

fn sample() -> Vec<u8> {
    sample_of("store_022")
}

fn read(bytes: &[u8]) -> Result<SafetensorsReader, SafeTensorErrorKind> {
    SafetensorsReader::from_bytes("a.safetensors", Bytes::copy_of(bytes)).map_err(|error| error.kind)
}

fn file(header: &str, data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + data, 0);
    file
}

#[track_caller]
fn refused(file: &[u8]) -> SafeTensorErrorKind {
    read(file).err().expect("refused")
}

#[test]
fn the_samples_hold_what_the_burnpack_samples_hold() {
    for name in ["store_021", "store_022"] {
        let reader = read(&sample_of(name)).expect("readable");
        assert_eq!(reader.index().metadata["producer"], "burn", "{name}");
        // Their values are compared with the expected ones by the tests of `kiln-module`.
        let burnpack = Reader::open(burnpack_sample(&format!("{name}.bpk"))).expect("readable");
        assert_eq!(reader.tensors().len(), burnpack.tensors().len(), "{name}");
        for tensor in reader.tensors() {
            let entry = burnpack.entry(&tensor.name).expect("the same names");
            assert_eq!((tensor.dtype, &tensor.shape), (entry.dtype, &entry.shape), "{name}: {}", tensor.name);
            assert!(tensor.to_bytes().expect("held") == burnpack.bytes(&tensor.name).expect("held"), "{name}: {}", tensor.name);
        }
    }
}

#[test]
fn the_rewritten_sample_is_byte_identical() {
    let reader = read(&sample()).expect("readable");
    let mut tensors = reader.tensors();
    tensors.reverse();
    let mut writer = SafetensorsWriter::new(tensors);
    for (key, text) in &reader.index().metadata {
        writer = writer.with_metadata(key, text);
    }
    assert!(writer.into_bytes().expect("writable")[..] == sample()[..]);
}

#[test]
fn names_and_texts_are_quoted() {
    let name = "a \"quoted\"\n\u{1F600} name";
    let bytes = SafetensorsWriter::new(vec![tensor(name, [1.5])]).with_metadata(name, name).into_bytes().expect("writable");
    let reader = read(&bytes).expect("readable");
    assert_eq!(reader.tensors()[0].name, name);
    assert_eq!(reader.index().metadata[name], name);
    assert_eq!(u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) % 8, 0);
}

#[test]
fn files_are_mapped_and_replaced_whole() {
    let folder = std::env::temp_dir().join(format!("kiln-safetensors-{}", std::process::id()));
    let path = folder.join("new/model.safetensors");
    SafetensorsWriter::new(vec![tensor("w", [1.0, 2.0])]).write_to_file(&path).expect("writable");
    let held = SafetensorsReader::open(&path).expect("readable").tensors().remove(0);
    let error = SafetensorsWriter::new(Vec::new()).overwrite(false).write_to_file(&path).expect_err("in the way");
    assert_eq!(error.kind, SafeTensorErrorKind::Tensor(PackErrorKind::AlreadyExists));
    SafetensorsWriter::new(Vec::new()).write_to_file(&path).expect("replaced");
    assert_eq!(bridge::to_data(&held).expect("held").try_to_vec::<f32>().expect("f32"), [1.0, 2.0]);
    assert!(SafetensorsReader::open(&path).expect("readable").tensors().is_empty());
    let error = SafetensorsReader::open(folder.join("absent")).err().expect("there is no such file");
    assert!(error.to_string().contains("absent: "), "{error}");
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
fn dtypes_that_the_format_lacks_are_refused() {
    let quantized = Tensor::new("q".into(), DType::QFloat(QuantScheme::default()), [1], None, Bytes::from_bytes_vec(vec![0; 8]));
    let error = SafetensorsWriter::new(vec![quantized]).into_bytes().expect_err("not in the format");
    assert!(error.to_string().contains("tensor `q` has the unsupported dtype QFloat"), "{error}");
    let kind = refused(&file(r#"{"x":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}"#, 1));
    assert_eq!(kind, SafeTensorErrorKind::DType { name: "x".into(), dtype: "F8_E4M3".into() });
}

#[test]
fn every_truncation_is_refused() {
    let whole = sample();
    for len in 0..whole.len() {
        let kind = refused(&whole[..len]);
        let expected = match len {
            0..8 => kind == SafeTensorErrorKind::TooShort { size: len as u64 },
            _ => matches!(kind, SafeTensorErrorKind::HeaderSize { .. } | SafeTensorErrorKind::Tensor(PackErrorKind::OutOfRange { .. })),
        };
        assert!(expected, "at {len}: {kind:?}");
    }
}

#[test]
fn malformed_headers_are_refused() {
    assert_eq!(refused(&u64::MAX.to_le_bytes()), SafeTensorErrorKind::HeaderSize { claimed: u64::MAX, available: 0 });
    for header in ["[]", "{", "{\"x\":3}", r#"{"x":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}"#, r#"{"__metadata__":{"a":1}}"#] {
        assert!(matches!(refused(&file(header, 1)), SafeTensorErrorKind::Json(_)), "{header}");
    }
    let twice = r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    assert!(refused(&file(twice, 1)).to_string().contains("two tensors named `x`"));
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    assert!(matches!(refused(&file(&deep, 0)), SafeTensorErrorKind::Json(_)));
    let rank = format!(r#"{{"x":{{"dtype":"U8","shape":[{}1],"data_offsets":[0,1]}}}}"#, "1,".repeat(64));
    assert!(refused(&file(&rank, 1)).to_string().contains("a shape of rank 65, more than 64"));
}

#[test]
fn ranges_that_do_not_fit_are_refused() {
    let one = |shape: &str, offsets: &str| refused(&file(&format!(r#"{{"x":{{"dtype":"U8","shape":{shape},"data_offsets":{offsets}}}}}"#), 4));
    let kind = |kind| SafeTensorErrorKind::Tensor(kind);
    assert_eq!(one("[3]", "[0,2]"), kind(PackErrorKind::TensorSize { name: "x".into(), expected: Some(3), found: 2 }));
    assert_eq!(one("[3]", "[2,5]"), kind(PackErrorKind::OutOfRange { name: "x".into(), range: [2, 5], available: 4 }));
    assert_eq!(one("[4294967296,4294967296]", "[0,4]"), kind(PackErrorKind::TensorSize { name: "x".into(), expected: None, found: 4 }));
    let two = r#"{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}"#;
    assert_eq!(refused(&file(two, 4)), kind(PackErrorKind::Overlap { first: "a".into(), second: "b".into() }));
}
