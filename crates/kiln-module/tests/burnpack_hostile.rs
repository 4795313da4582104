//! Burnpack files that are damaged or made to do harm: refused with an error that says where and what, without memory being asked for.

use kiln_module::record::burnpack::{Header, PackErrorKind, Writer};

use crate::burnpack::{bytes_tensor, read, sample};

/// A file of this metadata and `data` bytes behind it.
fn file(metadata: &[u8], data: usize) -> Vec<u8> {
    let mut file = Header::new(metadata.len() as u32).into_bytes().to_vec();
    file.extend(metadata);
    file.resize(file.len().next_multiple_of(256) + data, 0);
    file
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = vec![0x60 | text.len() as u8];
    assert!(text.len() < 24, "the short form of a length");
    bytes.extend(text.as_bytes());
    bytes
}

/// A tensor's name, dtype, shape and offsets.
type Encoded<'a> = (&'a str, &'a [u8], &'a [u8], &'a [u8]);

/// The metadata of these tensors, each with its dtype, shape and offsets as encoded items.
fn tensors(entries: &[Encoded]) -> Vec<u8> {
    let mut bytes = vec![0xa1];
    bytes.extend(text("tensors"));
    bytes.push(0xa0 | entries.len() as u8);
    for (name, dtype, shape, offsets) in entries {
        bytes.extend(text(name));
        bytes.push(0xa3);
        for (key, value) in [("dtype", dtype), ("shape", shape), ("data_offsets", offsets)] {
            bytes.extend(text(key));
            bytes.extend(*value);
        }
    }
    bytes
}

const U8: &[u8] = b"\x62U8";

/// The error of reading this file.
#[track_caller]
fn refused(file: &[u8]) -> PackErrorKind {
    read(file).map(|reader| reader.index().clone()).expect_err("refused")
}

/// The message of a file whose metadata is refused.
#[track_caller]
fn refused_metadata(metadata: &[u8]) -> String {
    match refused(&file(metadata, 1 << 12)) {
        PackErrorKind::Metadata(error) => error.to_string(),
        kind => panic!("refused for another reason: {kind:?}"),
    }
}

#[test]
fn every_truncation_is_refused() {
    for name in ["module_full.bpk", "optim_adamw.bpk"] {
        let whole = sample(name);
        for len in 0..whole.len() {
            let kind = refused(&whole[..len]);
            let expected = match len {
                0..10 => matches!(kind, PackErrorKind::Header { size } if size == len as u64),
                _ => matches!(kind, PackErrorKind::MetadataSize { .. } | PackErrorKind::OutOfRange { .. }),
            };
            assert!(expected, "{name} at {len}: {kind:?}");
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    for name in ["module_full.bpk", "optim_adamw.bpk", "store_022.bpk"] {
        let mut bytes = sample(name);
        let end = 10 + u32::from_le_bytes(bytes[6..10].try_into().expect("four bytes")) as usize;
        for at in 0..end {
            let whole = bytes[at];
            for damage in [0, 1, 0x1b, 0x3b, 0x5b, 0x7b, 0x9b, 0xbb, 0xdb, 0xf6, 0xff, whole ^ 0x20, whole ^ 1] {
                bytes[at] = damage;
                if let Ok(reader) = read(&bytes) {
                    reader.tensors().iter().for_each(|tensor| drop(tensor.to_bytes().expect("ranges were checked")));
                }
            }
            bytes[at] = whole;
        }
    }
}

#[test]
fn another_kind_of_file_is_told() {
    let kind = refused(b"PK\x03\x04 and so on");
    assert_eq!(kind, PackErrorKind::Magic { found: 0x0403_4b50 });
    assert!(kind.to_string().starts_with("is no burnpack file"), "{kind}");
    let mut newer = sample("module_full.bpk");
    newer[4] = 2;
    assert_eq!(refused(&newer), PackErrorKind::Version { found: 2 });
}

#[test]
fn absurd_lengths_are_refused() {
    let mut header = Header::new(u32::MAX).into_bytes().to_vec();
    header.push(0);
    assert_eq!(refused(&header), PackErrorKind::MetadataSize { claimed: u32::MAX.into(), available: 1 });
    header[6..10].copy_from_slice(&1_000u32.to_le_bytes());
    assert_eq!(refused(&header), PackErrorKind::MetadataSize { claimed: 1_000, available: 1 });
    // A map of 2^64 - 1 pairs, a text of 2^40 bytes, an array of 2^32 - 1 extents.
    assert_eq!(refused_metadata(b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff"), "expected the metadata map at byte 0 of the metadata");
    assert_eq!(refused_metadata(b"\xa1\x7b\x00\x00\x01\x00\x00\x00\x00\x00"), "expected a key at byte 1 of the metadata");
    let shape = tensors(&[("x", U8, b"\x9a\xff\xff\xff\xff", b"\x82\x00\x00")]);
    assert!(refused_metadata(&shape).starts_with("expected a shape at byte "));
    let rank = tensors(&[("x", U8, &[&[0x98, 65][..], &[1; 65]].concat(), b"\x82\x00\x00")]);
    assert!(refused_metadata(&rank).starts_with("expected a shape at byte "));
}

#[test]
fn more_tensors_than_are_read_are_refused() {
    let mut metadata = b"\xa1\x67tensors\xba\x00\x01\x86\xa1".to_vec();
    metadata.resize(metadata.len() + 200_002, 0xf6);
    assert_eq!(refused(&file(&metadata, 0)), PackErrorKind::TooManyTensors { count: 100_001 });
    let tensors = (0..100_001).map(|i| bytes_tensor(&i.to_string(), 0)).collect();
    let error = Writer::new(tensors).into_bytes().expect_err("too many to be read back");
    assert_eq!(error.kind, PackErrorKind::TooManyTensors { count: 100_001 });
}

#[test]
fn nesting_without_end_is_refused() {
    let nested = |key: &str, first: u8| [&[0xa1][..], &text(key), &vec![first; 100_000]].concat();
    assert!(refused_metadata(&nested("unknown", 0x81)).starts_with("expected less nesting"));
    assert!(refused_metadata(&nested("unknown", 0xc1)).starts_with("expected less nesting"));
    let dtype = tensors(&[("x", &vec![0x81; 100_000], b"\x81\x01", b"\x82\x00\x01")]);
    assert!(refused_metadata(&dtype).starts_with("expected less nesting"));
}

#[test]
fn keys_of_later_versions_are_passed_over() {
    let mut metadata = vec![0xa2];
    metadata.extend(text("extra"));
    metadata.extend(b"\xa2\x61a\x82\x01\xf9\x3e\x00\x61b\xc1\x43\x01\x02\x03");
    metadata.extend(&tensors(&[("x", U8, b"\x81\x02", b"\x82\x00\x02")])[1..]);
    let reader = read(&file(&metadata, 2)).expect("readable");
    assert_eq!(reader.bytes("x").expect("the tensor is there")[..], [0, 0]);
}

#[test]
fn ranges_that_do_not_fit_are_refused_with_the_tensor_named() {
    let one = |shape: &[u8], offsets: &[u8], data| refused(&file(&tensors(&[("layer.weight", U8, shape, offsets)]), data));
    let name = || String::from("layer.weight");
    // The shape calls for 3 bytes, the range has 2.
    let kind = one(b"\x81\x03", b"\x82\x00\x02", 3);
    assert_eq!(kind, PackErrorKind::TensorSize { name: name(), expected: Some(3), found: 2 });
    assert_eq!(kind.to_string(), "tensor `layer.weight` has 2 bytes; its shape and dtype call for 3");
    // Behind the end, and reversed.
    let kind = one(b"\x81\x03", b"\x82\x00\x03", 2);
    assert_eq!(kind, PackErrorKind::OutOfRange { name: name(), range: [0, 3], available: 2 });
    let kind = one(b"\x81\x03", b"\x82\x03\x00", 3);
    assert_eq!(kind, PackErrorKind::OutOfRange { name: name(), range: [3, 0], available: 3 });
    let kind = one(b"\x81\x03", b"\x82\x00\x1b\xff\xff\xff\xff\xff\xff\xff\xff", 3);
    assert_eq!(kind, PackErrorKind::OutOfRange { name: name(), range: [0, u64::MAX], available: 3 });
    // 2^40 × 2^40 elements.
    let kind = one(b"\x82\x1b\x00\x00\x01\x00\x00\x00\x00\x00\x1b\x00\x00\x01\x00\x00\x00\x00\x00", b"\x82\x00\x03", 3);
    assert_eq!(kind, PackErrorKind::TensorSize { name: name(), expected: None, found: 3 });
}

#[test]
fn overlapping_and_repeated_tensors_are_refused() {
    let two = |first: &[u8], second: &[u8]| file(&tensors(&[("b", U8, b"\x81\x04", first), ("a", U8, b"\x81\x04", second)]), 8);
    let kind = refused(&two(b"\x82\x00\x04", b"\x82\x03\x07"));
    assert_eq!(kind, PackErrorKind::Overlap { first: "b".into(), second: "a".into() });
    assert!(read(&two(b"\x82\x04\x08", b"\x82\x00\x04")).is_ok(), "side by side is fine");
    let entry: Encoded = ("a", U8, b"\x81\x01", b"\x82\x00\x01");
    let kind = refused(&file(&tensors(&[entry, entry]), 1));
    assert_eq!(kind, PackErrorKind::Duplicate { name: "a".into() });
}

#[test]
fn malformed_entries_are_refused() {
    assert!(refused_metadata(b"\xa0").starts_with("expected the key `tensors`"));
    assert!(refused_metadata(b"\xa1\x67tensors\xa0\x00").starts_with("expected the end at byte 10"));
    let dtype = |dtype: &[u8]| refused_metadata(&tensors(&[("x", dtype, b"\x81\x01", b"\x82\x00\x01")]));
    for bad in [&b"\x63F99"[..], b"\x01", b"\xa1\x64Bool\x63Odd", b"\xa1\x66QFloat\xa0", b"\xa0", b"\xf9\x3e\x00", b"\x62\xff\xff"] {
        let message = dtype(bad);
        assert!(message.starts_with("expected a dtype") || message.starts_with("expected a text"), "{message}");
    }
    let offsets = |offsets: &[u8]| refused_metadata(&tensors(&[("x", U8, b"\x81\x01", offsets)]));
    for bad in [&b"\x81\x00"[..], b"\x83\x00\x01\x02", b"\x82\x20\x01", b"\xf6"] {
        assert!(offsets(bad).starts_with("expected a pair of offsets"));
    }
    let scalars = [b"\xa2\x67tensors\xa0\x67scalars\xa1\x61k".as_slice(), b"\xa1\x64UInt\x20"].concat();
    assert!(refused_metadata(&scalars).starts_with("expected a scalar"));
    let missing = b"\xa1\x67tensors\xa1\x61x\xa1\x65dtype\x62U8";
    assert!(refused_metadata(missing).starts_with("expected dtype, shape and data_offsets"));
}
