//! Records of Burn 0.21: every sample read to its expected values, and damaged ones refused.

use kiln_module::record::burnpack::{PackErrorKind, PackTensor, Scalar};
use kiln_module::record::legacy::{LegacyFormat, LegacyRecord};
use kiln_tensor::{Bytes, DType, TensorData, f16};
use serde_json::Value;

fn sample(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/legacy/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).expect("the sample is part of the repository")
}

fn read(bytes: Vec<u8>) -> Result<LegacyRecord, PackErrorKind> {
    LegacyRecord::from_bytes("a.mpk", Bytes::from_bytes_vec(bytes)).map_err(|error| {
        assert_eq!(error.file, "a.mpk");
        error.kind
    })
}

fn values(tensor: &PackTensor) -> Vec<f64> {
    let bytes = tensor.to_bytes().expect("held");
    TensorData::from_bytes(bytes, tensor.shape.clone(), tensor.dtype).iter::<f64>().collect()
}

const SAMPLES: [(&str, &str, LegacyFormat); 8] = [
    ("named_mpk", ".mpk", LegacyFormat::MessagePack),
    ("named_mpk", ".mpk.gz", LegacyFormat::MessagePack),
    ("named_mpk_bytes", ".mpk", LegacyFormat::MessagePack),
    ("bin", ".bin", LegacyFormat::Bincode),
    ("bin", ".bin.gz", LegacyFormat::Bincode),
    ("bin_bytes", ".bin", LegacyFormat::Bincode),
    ("json", ".json", LegacyFormat::Json),
    ("json", ".json.gz", LegacyFormat::Json),
];

#[test]
fn every_sample_holds_its_expected_parameters() {
    let expected: Vec<Value> = serde_json::from_slice(&sample("expected.json")).expect("valid JSON");
    for (stem, extension, format) in SAMPLES {
        for (precision, float, int) in [("full", DType::F32, DType::I32), ("half", DType::F16, DType::I16), ("double", DType::F64, DType::I64)] {
            let name = format!("{stem}_{precision}{extension}");
            let bytes = sample(&name);
            assert!(LegacyRecord::is_start(&bytes[..bytes.len().min(1 << 10)]), "{name}");
            let record = read(bytes).expect("a sample is readable");
            assert_eq!((record.format, record.compressed), (format, name.ends_with(".gz")), "{name}");
            assert_eq!(record.tensors.len(), expected.len(), "{name}");
            assert!(record.scalars.is_empty(), "{name}");
            for (position, (tensor, expected)) in record.tensors.iter().zip(&expected).enumerate() {
                let path = expected["path"].as_str().expect("a path");
                match format {
                    LegacyFormat::Bincode => assert_eq!(tensor.name, format!("#{position}"), "{name}"),
                    LegacyFormat::MessagePack | LegacyFormat::Json => assert_eq!(tensor.name, path, "{name}"),
                }
                let dtype = match expected["kind"].as_str().expect("a kind") {
                    "float" => float,
                    "int" => int,
                    _ => DType::Bool(kiln_tensor::BoolStore::Native),
                };
                assert_eq!(tensor.dtype, dtype, "{name}: {path}");
                let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).expect("a shape");
                assert_eq!(tensor.shape.as_slice(), shape, "{name}: {path}");
                if !path.contains("running_") {
                    assert_eq!(tensor.param_id, expected["param_id_u64"].as_u64(), "{name}: {path}");
                }
                let number = |value: &Value| value.as_f64().or(value.as_bool().map(|b| f64::from(u8::from(b)))).expect("a number");
                let rounded = |value: f64| match dtype {
                    DType::F16 => f16::from_f64(value).into(),
                    // The wider integers of the sample are cut to 16 bits.
                    DType::I16 => f64::from(value as i64 as i16),
                    _ => value,
                };
                let expected: Vec<f64> = expected["values"].as_array().expect("values").iter().map(|v| rounded(number(v))).collect();
                let found = values(tensor);
                let close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-15 * b.abs());
                assert!(close && found.len() == expected.len(), "{name}: {path}: {found:?}, not {expected:?}");
            }
        }
    }
}

#[test]
fn no_sample_is_left_out() {
    let mut names: Vec<String> = SAMPLES
        .iter()
        .flat_map(|(stem, extension, _)| ["full", "half", "double"].map(|precision| format!("{stem}_{precision}{extension}")))
        .chain(OPTIMIZERS.map(String::from))
        .chain(["README.md", "expected.json"].map(String::from))
        .collect();
    names.sort();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/legacy");
    let mut found: Vec<String> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name().into_string().expect("a text")).collect();
    found.sort();
    assert_eq!(found, names);
}

/// Records of AdamW's state.
const OPTIMIZERS: [&str; 3] = ["optim_adamw_full.mpk", "optim_adamw_full.json", "optim_adamw_full.bin"];

#[test]
fn optimizer_states_get_the_names_of_burnpack_records() {
    for name in OPTIMIZERS {
        let record = read(sample(name)).expect("readable");
        let mut ids: Vec<u64> = record.tensors.iter().filter_map(|tensor| tensor.param_id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((record.tensors.len(), ids.len(), record.scalars.len()), (4, 2, 4), "{name}");
        for id in ids {
            let rank = &record.scalars[&format!("{id}.__rank")];
            assert_eq!(record.scalars[&format!("{id}.momentum.time")], Scalar::UInt(2));
            for moment in ["moment_1", "moment_2"] {
                let name = format!("{id}.momentum.{moment}");
                let tensor = record.tensors.iter().find(|tensor| tensor.name == name).expect("both moments are there");
                assert_eq!(*rank, Scalar::UInt(tensor.shape.rank() as u64));
            }
        }
    }
    let named = read(sample("optim_adamw_full.mpk")).expect("readable");
    let unnamed = read(sample("optim_adamw_full.bin")).expect("readable");
    assert_eq!(named.scalars, unnamed.scalars);
    for tensor in named.tensors {
        let other = unnamed.tensors.iter().find(|other| other.name == tensor.name).expect("the same names");
        assert_eq!(values(other), values(&tensor));
    }
}

/// The metadata that begins a record of bincode.
fn bincode_start() -> Vec<u8> {
    let texts = ["f32", "i32", "burn_core::record::file::BinFileRecorder", "0.21.0", "FullPrecisionSettings"];
    texts.iter().flat_map(|text| [&[text.len() as u8], text.as_bytes()].concat()).collect()
}

#[test]
fn every_optimizers_state_is_told_by_its_bytes() {
    // Four bytes of values, a shape of one, F32.
    let tensor = |value: f32| [&[4], &value.to_le_bytes()[..], &[1, 1, 1]].concat();
    let read_state = |state: &[u8]| {
        let entry = [&b"\x01\x0d9k00000000000\x00\x01"[..], state].concat();
        read([bincode_start(), entry].concat()).expect("readable")
    };
    let names = |record: &LegacyRecord| {
        let mut names: Vec<String> = record.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        names.extend(record.scalars.keys().cloned());
        names.sort();
        names
    };
    let adan = read_state(&[vec![7], tensor(1.0), tensor(2.0), tensor(3.0), tensor(4.0)].concat());
    assert_eq!(names(&adan)[1..4], ["77.momentum.exp_avg", "77.momentum.exp_avg_diff", "77.momentum.exp_avg_sq"]);
    let rmsprop = read_state(&[tensor(1.0), vec![0], tensor(2.0), vec![1], tensor(3.0)].concat());
    assert_eq!(names(&rmsprop), ["77.__rank", "77.centered.avg", "77.momentum.buf", "77.square_avg.square_avg"]);
    assert_eq!(names(&read_state(&tensor(1.0))), ["77.__rank", "77.momentum.velocity"]);
    assert_eq!(names(&read_state(&[0])), ["77.__rank"]);
    // A time of 1 and a tag of 1 are the same byte: each optimizer finds its own name.
    let both = read_state(&[vec![1], tensor(2.5)].concat());
    assert_eq!(names(&both), ["77.__rank", "77.lr_decay.sum", "77.lr_decay.time", "77.momentum.velocity"]);
    assert!(both.tensors.iter().all(|tensor| values(tensor) == [2.5]));
}

#[test]
fn quantized_tensors_are_told_by_todays_scheme() {
    use kiln_tensor::quantization::{QuantMode, QuantScheme, QuantStore, QuantValue, ScaleDtype};
    let plain = QuantScheme::default().with_value(QuantValue::Q8S).with_store(QuantStore::Native).with_mode(QuantMode::Symmetric);
    let whole = plain.per_tensor(ScaleDtype::F32);
    let blocks = plain.with_value(QuantValue::Q4F).with_store(QuantStore::PackedU32(0)).per_block([2, 32], ScaleDtype::F16);
    let json = |store: &str, value: &str, param: &str, level: &str| {
        let dtype = format!(r#"{{"QFloat":{{"value":"{value}","param":"{param}","store":{store},"level":{level},"mode":"Symmetric"}}}}"#);
        let tensor = format!(r#"{{"bytes":[1,2,3,255,0,0,128,63],"shape":[4],"dtype":{dtype}}}"#);
        let text = format!(r#"{{"metadata":{{}},"item":{{"w":{{"id":"9k00000000000","param":{tensor}}}}},"_b":null}}"#);
        let record = read(text.into_bytes()).expect("readable");
        (record.tensors[0].dtype, record.tensors[0].byte_len())
    };
    assert_eq!(json("\"Native\"", "Q8S", "F32", "\"Tensor\""), (DType::QFloat(whole), 8));
    let level = r#"{"Block":{"storage":[2,32,0,0,0],"len":2}}"#;
    let (found, _) = json(r#"{"PackedU32":0}"#, "Q4F", "F16", level);
    let DType::QFloat(scheme) = found else { panic!("{found:?}") };
    assert_eq!((scheme.value, scheme.store, scheme.scale_dtype()), (blocks.value, blocks.store, ScaleDtype::F16));
    assert_eq!(scheme.block_size().map(|size| size.to_vec()), Some(vec![2, 32]));
    // Bincode: id, eight bytes, a shape of four, QFloat, then Q8S, F32, Native, Tensor, Symmetric.
    let item = [&b"\x0d9k00000000000"[..], &[8, 1, 2, 3, 255, 0, 0, 128, 63, 1, 4, 14, 6, 0, 0, 0, 0]].concat();
    let record = read([bincode_start(), item].concat()).expect("readable");
    assert_eq!((record.tensors[0].dtype, record.tensors[0].byte_len()), (DType::QFloat(whole), 8));
    // A module takes them; scales that were wider than their type are brought into it.
    use kiln_module::module::{Module, Param};
    use kiln_module::record::ModuleRecord;
    use kiln_tensor::{Device, Tensor};
    #[derive(Module, Debug)]
    struct Layer {
        w: Param<Tensor<2>>,
    }
    let layer = || Layer { w: Param::from_tensor(Tensor::zeros([2, 3], &Device::default())) };
    let load = |param: &str, level: &str, bytes: &str| {
        let dtype = format!(r#"{{"QFloat":{{"value":"Q8S","param":"{param}","store":"Native","level":{level},"mode":"Symmetric"}}}}"#);
        let tensor = format!(r#"{{"bytes":[{bytes}],"shape":[2,3],"dtype":{dtype}}}"#);
        let text = format!(r#"{{"metadata":{{}},"item":{{"w":{{"id":"9k00000000000","param":{tensor}}}}},"_b":null}}"#);
        layer().try_load_record(ModuleRecord::from_bytes(kiln_tensor::Bytes::from_bytes_vec(text.into_bytes())).expect("readable"))
    };
    let values = |layer: Layer| layer.w.val().dequantize().try_into_vec_as::<f32>().expect("floats");
    // Six values, two bytes that align the scale, and a scale of one half.
    let loaded = load("F32", "\"Tensor\"", "1,2,3,4,5,255,0,0,0,0,0,63").expect("fits");
    assert_eq!(loaded.w.dtype().name(), "qfloat");
    assert_eq!(values(loaded), [0.5, 1.0, 1.5, 2.0, 2.5, -0.5]);
    let rows = r#"{"Block":{"storage":[3,0,0,0,0],"len":1}}"#;
    let loaded = load("F16", rows, "1,2,3,4,5,255,0,0,0,0,0,63,0,0,128,63").expect("fits");
    assert_eq!(values(loaded), [0.5, 1.0, 1.5, 4.0, 5.0, -1.0]);
    let error = load("F32", "\"Tensor\"", "1,2,3").expect_err("too short").to_string();
    assert!(error.contains("w: "), "{error}");
    // Reading one says what is wrong.
    let text = r#"{"metadata":{},"item":{"w":{"id":"9k00000000000","param":{"bytes":[],"shape":[0],"dtype":{"QFloat":{"value":"Q9"}}}}}}"#;
    assert!(read(text.as_bytes().to_vec()).expect_err("an unknown scheme").to_string().contains("no valid dtype"));
}

#[test]
fn schedulers_records_are_their_number() {
    let json = |item: &str| read(format!("{{\"metadata\":{{}},\"item\":{item},\"_b\":null}}").into_bytes()).expect("readable").scalars;
    assert_eq!(json("12")[""], Scalar::UInt(12));
    assert_eq!(json("0.25")[""], Scalar::Float(0.25));
    assert_eq!(json("-1")[""], Scalar::Int(-1));
    assert!(json("null").is_empty());
    assert_eq!(json("{\"schedulers\":[{\"Linear\":3},{\"Exponential\":0.5}]}")["schedulers.1.Exponential"], Scalar::Float(0.5));
    let bincode = |item: &[u8]| read([bincode_start(), item.to_vec()].concat()).expect("readable").scalars;
    assert_eq!((bincode(&[9])["#uint"], bincode(&[9])["#int"]), (Scalar::UInt(9), Scalar::Int(-5)));
    assert_eq!(bincode(&0.5f64.to_le_bytes())["#float"], Scalar::Float(0.5));
    assert!(bincode(&[]).is_empty());
}

#[test]
fn every_truncation_is_refused_or_loses_no_part_of_a_tensor() {
    for name in ["named_mpk_full.mpk", "json_half.json", "named_mpk_half.mpk.gz"] {
        let whole = sample(name);
        for len in 0..whole.len() {
            assert!(read(whole[..len].to_vec()).is_err(), "{name} at {len}");
        }
    }
    // Bincode does not tell how many parameters there are, so a file that ends between two of them is read as far as it goes.
    let whole = sample("bin_full.bin");
    let all = read(whole.clone()).expect("readable").tensors;
    for len in 0..whole.len() {
        if let Ok(record) = read(whole[..len].to_vec()) {
            for (found, expected) in record.tensors.iter().zip(&all) {
                assert_eq!((found.byte_len(), &found.shape), (expected.byte_len(), &expected.shape));
            }
        }
    }
}

#[test]
fn damaged_bytes_never_panic() {
    for name in ["named_mpk_full.mpk", "bin_full.bin", "json_half.json", "json_half.json.gz", "optim_adamw_full.mpk"] {
        let mut bytes = sample(name);
        for at in (0..bytes.len().min(2_500)).step_by(3) {
            let whole = bytes[at];
            for damage in [0, 0x0d, 0x22, 0x7b, 0x90, 0xc6, 0xdb, 0xdd, 0xdf, 0xfd, 0xff, whole ^ 1] {
                bytes[at] = damage;
                let _ = read(bytes.clone());
            }
            bytes[at] = whole;
        }
    }
}

#[test]
fn hostile_values_are_refused() {
    let refused = |bytes: Vec<u8>| read(bytes).expect_err("refused").to_string();
    let start = b"\x83\xa8metadata\xc0\xa4item".to_vec();
    let with = |item: &[u8]| [&start[..], item].concat();
    assert!(refused(with(&[0x91; 100_000])).contains("expected less nesting"));
    // A map of 2^32 - 1 entries, bytes of 2^32 - 1, and more values than are read.
    assert!(refused(with(b"\xdf\xff\xff\xff\xff")).contains("expected a number at byte 21"));
    assert!(refused(with(b"\xc6\xff\xff\xff\xff")).contains("expected bytes"));
    let mut many = with(b"\xdd\x00\x50\x00\x00");
    many.resize(many.len() + 0x50_0000, 0xc0);
    assert!(refused(many).contains("has more than 4194304 values"));
    assert!(refused(format!("{{\"metadata\":0,\"item\":{}", "[".repeat(100_000)).into_bytes()).contains("recursion limit"));
    assert!(refused(format!("{{\"metadata\":0,\"item\":[{}0]}}", "null,".repeat(5 << 20)).into_bytes()).contains("has more than 4194304 values"));
    assert!(refused(b"PK\x03\x04".to_vec()).contains("is no record of Burn 0.21"));
    assert!(refused(Vec::new()).contains("is no record of Burn 0.21"));
    let lying = br#"{"metadata":0,"item":{"w":{"id":"9k00000000000","param":{"bytes":[1,2,3],"shape":[1],"dtype":"F32"}}}}"#;
    let expected = PackErrorKind::TensorSize { name: "w".into(), expected: Some(4), found: 3 };
    assert_eq!(read(lying.to_vec()).expect_err("three bytes for four"), expected);
    let huge = br#"{"metadata":0,"item":{"w":{"id":"9k00000000000","param":{"bytes":[],"shape":[4294967296,4294967296],"dtype":"F32"}}}}"#;
    let expected = PackErrorKind::TensorSize { name: "w".into(), expected: None, found: 0 };
    assert_eq!(read(huge.to_vec()).expect_err("beyond any memory"), expected);
    let untyped = br#"{"metadata":0,"item":{"w":{"bytes":[],"shape":[0],"dtype":"F99"}}}"#;
    assert!(refused(untyped.to_vec()).contains("tensor `w` has no valid dtype"));
}

#[test]
fn a_decompression_bomb_is_refused() {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let block = vec![0; 1 << 20];
    (0..257).for_each(|_| encoder.write_all(&block).expect("memory is writable"));
    let bomb = encoder.finish().expect("memory is writable");
    let message = read(bomb).expect_err("257 MiB of zeros").to_string();
    assert!(message.contains("decompresses to more than 268435456 bytes"), "{message}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let path = format!("{}/tests/data/legacy/named_mpk_full.mpk", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(LegacyRecord::open(&path).expect("readable").tensors.len(), 22);
    let error = LegacyRecord::open("absent.mpk").expect_err("there is no such file");
    assert!(error.to_string().starts_with("absent.mpk: "), "{error}");
    let error = LegacyRecord::open(env!("CARGO_MANIFEST_DIR")).expect_err("a folder is no file");
    assert!(error.to_string().ends_with("is not a file"), "{error}");
}
