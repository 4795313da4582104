//! Burnpack files: the samples of Burn 0.22 read value for value and written byte for byte.

use kiln_module::record::burnpack::{PackErrorKind, PackTensor, Reader, Scalar, ScalarConversionError, Writer};
use kiln_tensor::quantization::{QuantScheme, QuantStore, QuantValue, ScaleDtype};
use kiln_tensor::{BoolStore, Bytes, DType, bf16, f16};
use serde_json::Value;

/// The bytes of a sample file.
pub fn sample(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/burnpack/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("the sample is part of the repository")
}

/// Reads bytes as a file called `a.bpk`.
pub fn read(bytes: &[u8]) -> Result<Reader, PackErrorKind> {
    Reader::from_bytes("a.bpk", Bytes::copy_of(bytes)).map_err(|error| {
        assert_eq!(error.file, "a.bpk");
        error.kind
    })
}

/// A tensor of bytes `0, 1, ..`.
pub fn bytes_tensor(name: &str, len: usize) -> PackTensor {
    let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
    PackTensor::new(name.into(), DType::U8, [len], None, Bytes::from_bytes_vec(bytes))
}

/// The elements of a float or integer tensor, widened.
fn values(bytes: &[u8], dtype: DType) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|chunk| value(*chunk)).collect()
    }
    match dtype {
        DType::F64 => each(bytes, f64::from_le_bytes),
        DType::F32 => each(bytes, |b| f32::from_le_bytes(b).into()),
        DType::F16 => each(bytes, |b| f16::from_le_bytes(b).into()),
        DType::BF16 => each(bytes, |b| bf16::from_le_bytes(b).into()),
        DType::I32 => each(bytes, |b| i32::from_le_bytes(b).into()),
        DType::Bool(BoolStore::Native) => each(bytes, |[b]| b.into()),
        _ => panic!("no sample has dtype {dtype:?}"),
    }
}

#[test]
fn samples_hold_their_expected_parameters() {
    let samples = [
        ("module_full", "expected"),
        ("module_f16", "expected_f16"),
        ("module_bf16", "expected_bf16"),
        ("module_f64", "expected_f64"),
        ("store_022", "expected"),
        ("store_021", "expected"),
    ];
    for (name, expected) in samples {
        let reader = read(&sample(&format!("{name}.bpk"))).expect("a sample is readable");
        let expected: Vec<Value> = serde_json::from_slice(&sample(&format!("{expected}.json"))).expect("valid JSON");
        assert_eq!(reader.index().tensors.len(), expected.len(), "{name}");
        for (entry, expected) in reader.index().tensors.iter().zip(&expected) {
            assert_eq!(entry.name, expected["path"], "{name}: the bytes are in the order of visits");
            let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).expect("a shape");
            assert_eq!(entry.shape.as_slice(), shape, "{name}: {}", entry.name);
            let number = |value: &Value| value.as_f64().or(value.as_bool().map(|b| f64::from(u8::from(b))));
            let expected: Vec<f64> = expected["values"].as_array().expect("values").iter().map(|v| number(v).expect("a number")).collect();
            let bytes = reader.bytes(&entry.name).expect("the tensor is there");
            let found = values(&bytes, entry.dtype);
            // The JSON reader may be off by a unit in the last place.
            let close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-15 * b.abs());
            assert!(close && found.len() == expected.len(), "{name}: {}: {found:?}, not {expected:?}", entry.name);
        }
    }
    assert_eq!(read(&sample("store_021.bpk")).expect("readable").index().metadata["version"], "0.21.0");
}

#[test]
fn ids_and_dtypes_are_those_of_the_sample() {
    let reader = read(&sample("module_full.bpk")).expect("readable");
    let ids: Vec<Value> = serde_json::from_slice(&sample("expected.json")).expect("valid JSON");
    for expected in ids {
        let entry = reader.entry(expected["path"].as_str().expect("a path")).expect("the tensor is there");
        assert_eq!(entry.param_id, expected["param_id_u64"].as_u64());
    }
    assert_eq!(reader.entry("conv.weight").map(|entry| entry.dtype), Some(DType::F32));
    assert_eq!(reader.entry("ints").map(|entry| entry.dtype), Some(DType::I32));
    assert_eq!(reader.entry("mask").map(|entry| entry.dtype), Some(DType::Bool(BoolStore::Native)));
    assert_eq!(reader.entry("conv.weigh"), None);
    let error = reader.bytes("conv.weigh").expect_err("there is no such tensor");
    assert_eq!(error.to_string(), "a.bpk: has no tensor `conv.weigh`");
}

#[test]
fn rewritten_samples_are_byte_identical() {
    let samples = [
        "module_full.bpk",
        "module_f16.bpk",
        "module_bf16.bpk",
        "module_f64.bpk",
        "store_021.bpk",
        "store_022.bpk",
        "optim_adamw.bpk",
        "sched_cosine.bpk",
    ];
    for name in samples {
        let bytes = sample(name);
        let reader = read(&bytes).expect("a sample is readable");
        let mut writer = Writer::new(reader.tensors());
        for (key, text) in &reader.index().metadata {
            writer = writer.with_metadata(key, text);
        }
        for (key, scalar) in &reader.index().scalars {
            writer = writer.with_scalar(key, *scalar);
        }
        assert_eq!(writer.size().expect("writable"), bytes.len(), "{name}");
        assert!(writer.into_bytes().expect("writable")[..] == bytes, "{name}");
    }
}

#[test]
fn scalars_of_the_samples_are_typed() {
    let index = read(&sample("sched_cosine.bpk")).expect("readable").index().clone();
    assert!(index.tensors.is_empty());
    assert_eq!(index.scalars["0.current_iter"], Scalar::UInt(4));
    let index = read(&sample("optim_adamw.bpk")).expect("readable").index().clone();
    assert_eq!(index.metadata["11933479334135034448"], "bias");
    assert_eq!(index.scalars["11933479334135034448.momentum.time"], Scalar::UInt(2));
}

#[test]
fn every_dtype_makes_the_round_trip() {
    let quantized = QuantScheme::default().with_value(QuantValue::Q4S).with_store(QuantStore::PackedU32(0)).per_block([4, 32], ScaleDtype::F16);
    let dtypes = [
        (DType::F64, 8),
        (DType::F32, 4),
        (DType::Flex32, 4),
        (DType::F16, 2),
        (DType::BF16, 2),
        (DType::I64, 8),
        (DType::I32, 4),
        (DType::I16, 2),
        (DType::I8, 1),
        (DType::U64, 8),
        (DType::U32, 4),
        (DType::U16, 2),
        (DType::U8, 1),
        (DType::Bool(BoolStore::Native), 1),
        (DType::Bool(BoolStore::U8), 1),
        (DType::Bool(BoolStore::U32), 4),
        // Quantized bytes hold scales as well, so their number is not checked.
        (DType::QFloat(QuantScheme::default()), 3),
        (DType::QFloat(quantized), 5),
        (DType::QFloat(QuantScheme::nvfp4()), 5),
    ];
    for (dtype, size) in dtypes {
        for shape in [vec![], vec![3], vec![0], vec![2, 0, 5], vec![1, 3, 1, 2]] {
            let len = size * shape.iter().product::<usize>();
            let bytes = Bytes::from_bytes_vec(vec![1; len]);
            let tensor = PackTensor::new("x".into(), dtype, shape.clone(), Some(u64::MAX), bytes);
            let file = Writer::new(vec![tensor]).into_bytes().expect("writable");
            let reader = read(&file).expect("readable");
            let entry = reader.entry("x").expect("the tensor is there");
            assert_eq!((entry.dtype, entry.shape.as_slice(), entry.param_id), (dtype, &shape[..], Some(u64::MAX)));
            assert_eq!(reader.bytes("x").expect("the tensor is there").len(), len);
        }
    }
}

#[test]
fn a_quantization_scheme_is_written_field_by_field_in_declared_order() {
    let dtype = DType::QFloat(QuantScheme::nvfp4());
    let tensor = PackTensor::new("x".into(), dtype, [1], None, Bytes::from_bytes_vec(vec![0; 4]));
    let file = Writer::new(vec![tensor]).into_bytes().expect("writable");
    // Each key with the length that stands before it; `dtype` is also a key of the tensor itself, so it comes with its value.
    let order = ["\x65value", "\x65store", "\x64mode", "\x66tensor", "\x65block", "\x64size", "\x67storage", "\x63len", "\x65dtype\x65UE4M3"];
    let place = |name: &&str| file.windows(name.len()).position(|window| window == name.as_bytes()).expect("the key is there");
    let places: Vec<usize> = order.iter().map(place).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn scalars_are_written_in_their_shortest_form() {
    let check = |scalar: Scalar, expected: &[u8]| {
        let file = Writer::new(Vec::new()).with_scalar("k", scalar).into_bytes().expect("writable");
        let end = 10 + u32::from_le_bytes(file[6..10].try_into().expect("four bytes")) as usize;
        assert!(file[10..end].ends_with(expected), "{scalar:?}: {:02x?}", &file[10..end]);
        let read = read(&file).expect("readable").index().scalars["k"];
        let same = match (read, scalar) {
            (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
            _ => read == scalar,
        };
        assert!(same, "{scalar:?} came back as {read:?}");
    };
    // The examples of RFC 8949, appendix A.
    check(Scalar::UInt(23), &[b't', 0x17]);
    check(Scalar::UInt(24), &[0x18, 0x18]);
    check(Scalar::UInt(1_000), &[0x19, 0x03, 0xe8]);
    check(Scalar::UInt(1_000_000), &[0x1a, 0x00, 0x0f, 0x42, 0x40]);
    check(Scalar::UInt(u64::MAX), &[0x1b, 255, 255, 255, 255, 255, 255, 255, 255]);
    check(Scalar::Int(-1), &[b't', 0x20]);
    check(Scalar::Int(-1_000), &[0x39, 0x03, 0xe7]);
    check(Scalar::Int(i64::MIN), &[0x3b, 0x7f, 255, 255, 255, 255, 255, 255, 255]);
    check(Scalar::Float(1.5), &[0xf9, 0x3e, 0x00]);
    check(Scalar::Float(-0.0), &[0xf9, 0x80, 0x00]);
    check(Scalar::Float(5.960464477539063e-8), &[0xf9, 0x00, 0x01]);
    check(Scalar::Float(f64::INFINITY), &[0xf9, 0x7c, 0x00]);
    check(Scalar::Float(f64::NAN), &[0xf9, 0x7e, 0x00]);
    check(Scalar::Float(100_000.0), &[0xfa, 0x47, 0xc3, 0x50, 0x00]);
    check(Scalar::Float(1.1), &[0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a]);
    check(Scalar::Bool(true), &[b'l', 0xf5]);
}

#[test]
fn scalars_convert_where_they_fit() {
    assert_eq!(Scalar::from(3usize), Scalar::UInt(3));
    assert_eq!(Scalar::from(-3i8), Scalar::Int(-3));
    assert_eq!(Scalar::from(0.5f32), Scalar::Float(0.5));
    assert_eq!(u8::try_from(Scalar::UInt(255)), Ok(255));
    assert_eq!(u8::try_from(Scalar::UInt(256)), Err(ScalarConversionError));
    assert_eq!(u64::try_from(Scalar::Int(-1)), Err(ScalarConversionError));
    assert_eq!(i64::try_from(Scalar::UInt(u64::MAX)), Err(ScalarConversionError));
    assert_eq!(f32::try_from(Scalar::Float(0.25)), Ok(0.25));
    assert_eq!(f64::try_from(Scalar::UInt(1)), Err(ScalarConversionError));
    assert_eq!(bool::try_from(Scalar::Bool(true)), Ok(true));
    assert_eq!(bool::try_from(Scalar::UInt(1)), Err(ScalarConversionError));
}

#[test]
fn tensors_are_aligned_and_nothing_follows_the_last_one() {
    let tensors = vec![bytes_tensor("b", 300), bytes_tensor("empty", 0), bytes_tensor("a", 5)];
    let file = Writer::new(tensors).into_bytes().expect("writable");
    let reader = read(&file).expect("readable");
    let offsets = |name: &str| reader.entry(name).expect("the tensor is there").data_offsets;
    assert_eq!(offsets("b"), [0, 300]);
    assert_eq!(offsets("empty"), [512, 512]);
    assert_eq!(offsets("a"), [512, 517]);
    assert_eq!(file.len() % 256, 5);
    assert_eq!(reader.bytes("a").expect("the tensor is there")[..], [0, 1, 2, 3, 4]);
    assert!(reader.bytes("empty").expect("the tensor is there").is_empty());
}

#[test]
fn mistakes_in_what_is_written_are_refused() {
    let refused = |tensors| Writer::new(tensors).into_bytes().expect_err("refused").kind;
    let twice = vec![bytes_tensor("a", 1), bytes_tensor("b", 1), bytes_tensor("a", 2)];
    assert_eq!(refused(twice), PackErrorKind::Duplicate { name: "a".into() });
    let short = PackTensor::new("a".into(), DType::F32, [2], None, Bytes::from_bytes_vec(vec![0; 7]));
    let expected = PackErrorKind::TensorSize { name: "a".into(), expected: Some(8), found: 7 };
    assert_eq!(refused(vec![short]), expected);
    let lying = PackTensor::deferred("a".into(), DType::U8, [2], None, 2, || Ok(Bytes::from_bytes_vec(vec![0; 3])));
    let expected = PackErrorKind::TensorSize { name: "a".into(), expected: Some(2), found: 3 };
    assert_eq!(refused(vec![lying]), expected);
    let mut buffer = [0; 100];
    let error = Writer::new(Vec::new()).write_into(&mut buffer).expect_err("too small");
    assert_eq!(error.kind, PackErrorKind::BufferSize { expected: 256, found: 100 });
}

#[test]
fn deferred_bytes_are_made_when_written() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let tensor = PackTensor::deferred("a".into(), DType::U8, [2], None, 2, move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(Bytes::from_bytes_vec(vec![7, 8]))
    });
    let writer = Writer::new(vec![tensor]);
    let mut buffer = vec![0; writer.size().expect("writable")];
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    writer.write_into(&mut buffer).expect("writable");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(read(&buffer).expect("readable").bytes("a").expect("the tensor is there")[..], [7, 8]);
}
