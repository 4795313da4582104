//! Compares Kiln's burnpack codec with the published crate `burn-pack`: same bytes, and each reads the other's files.

use burn_pack as theirs;
use kiln_module::record::burnpack as ours;
use kiln_tensor::{BoolStore, DType};

/// Name, Kiln's dtype, the published crate's dtype, shape, parameter id.
type Row = (&'static str, DType, theirs::DType, Vec<usize>, Option<u64>);

fn rows() -> Vec<Row> {
    use theirs::DType as Their;
    // The crate does not give the name of the type that a variant of its dtype holds.
    let bool: Their = serde_json::from_str(r#"{"Bool":"Native"}"#).expect("a dtype as it is stored");
    vec![
        ("z.last", DType::F32, Their::F32, vec![3, 5], Some(u64::MAX)),
        ("a.first", DType::F64, Their::F64, vec![7], Some(0)),
        ("half", DType::F16, Their::F16, vec![129], Some(23)),
        ("brain", DType::BF16, Their::BF16, vec![1, 1, 1, 1], Some(24)),
        ("flex", DType::Flex32, Their::Flex32, vec![2], Some(255)),
        ("i64", DType::I64, Their::I64, vec![2, 2], Some(256)),
        ("i32", DType::I32, Their::I32, vec![65_536], Some(65_535)),
        ("i16", DType::I16, Their::I16, vec![3], Some(65_536)),
        ("i8", DType::I8, Their::I8, vec![257], Some(u64::from(u32::MAX))),
        ("u64", DType::U64, Their::U64, vec![1], Some(u64::from(u32::MAX) + 1)),
        ("u32", DType::U32, Their::U32, vec![0], None),
        ("u16", DType::U16, Their::U16, vec![2, 0, 3], None),
        ("u8", DType::U8, Their::U8, vec![], None),
        ("bool", DType::Bool(BoolStore::Native), bool, vec![4], Some(1)),
        (
            "a name with \u{1F600}, quotes \" and a very long tail that needs two bytes for its length ..........................",
            DType::U8,
            Their::U8,
            vec![1],
            Some(2),
        ),
    ]
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 2) as u8).collect()
}

fn len(dtype: DType, shape: &[usize]) -> usize {
    dtype.size() * shape.iter().product::<usize>()
}

fn scalars() -> Vec<(&'static str, ours::Scalar, theirs::Scalar)> {
    use ours::Scalar as Our;
    use theirs::Scalar as Their;
    let mut scalars = Vec::new();
    for (name, value) in [("u0", 0), ("u23", 23), ("u24", 24), ("u255", 255), ("u256", 256), ("u32", 1 << 32), ("umax", u64::MAX)] {
        scalars.push((name, Our::UInt(value), Their::UInt(value)));
    }
    for (name, value) in [("i0", 0), ("i-1", -1), ("i-24", -24), ("i-25", -25), ("i-257", -257), ("imin", i64::MIN), ("imax", i64::MAX)] {
        scalars.push((name, Our::Int(value), Their::Int(value)));
    }
    let floats = [("f0", 0.0), ("f-0", -0.0), ("f1.5", 1.5), ("f0.1", 0.1), ("f0.1f", f64::from(0.1f32)), ("f65504", 65504.0), ("f65505", 65505.0)];
    let edges = [
        ("ftiny", 5.960464477539063e-8),
        ("fsub", f64::from(f32::MIN_POSITIVE) / 4.0),
        ("fmax", f64::MAX),
        ("finf", f64::INFINITY),
        ("f-inf", f64::NEG_INFINITY),
        ("fnan", f64::NAN),
    ];
    for (name, value) in floats.into_iter().chain(edges) {
        scalars.push((name, Our::Float(value), Their::Float(value)));
    }
    scalars.push(("yes", Our::Bool(true), Their::Bool(true)));
    scalars.push(("no", Our::Bool(false), Their::Bool(false)));
    scalars
}

fn main() {
    let tensor = |(name, dtype, _, shape, id): &Row| {
        let bytes = kiln_tensor::Bytes::from_bytes_vec(bytes(len(*dtype, shape)));
        ours::PackTensor::new((*name).into(), *dtype, shape.clone(), *id, bytes)
    };
    let mut writer = ours::Writer::new(rows().iter().map(tensor).collect()).with_metadata("key", "value \u{fc}").with_metadata("a", "");
    for (name, scalar, _) in scalars() {
        writer = writer.with_scalar(name, scalar);
    }
    let our_file = writer.into_bytes().expect("Kiln writes").to_vec();

    let tensor = |(name, dtype, their_dtype, shape, id): &Row| {
        let bytes = theirs::Bytes::from_bytes_vec(bytes(len(*dtype, shape)));
        theirs::Tensor::new((*name).into(), *their_dtype, shape.clone(), *id, bytes)
    };
    let mut writer = theirs::Writer::new(rows().iter().map(tensor).collect()).with_metadata("key", "value \u{fc}").with_metadata("a", "");
    for (name, _, scalar) in scalars() {
        writer = writer.with_scalar(name, scalar);
    }
    let their_file = writer.into_bytes().expect("burn-pack writes").to_vec();
    assert!(our_file == their_file, "the files differ: {} and {} bytes", our_file.len(), their_file.len());

    let reader = theirs::Reader::from_bytes(theirs::Bytes::from_bytes_vec(our_file)).expect("burn-pack reads Kiln's file");
    for (name, dtype, _, shape, _) in rows() {
        assert!(reader.tensor_data(name).expect("the tensor is there") == bytes(len(dtype, &shape)), "{name}");
    }
    let reader = ours::Reader::from_bytes("burn-pack's file", kiln_tensor::Bytes::from_bytes_vec(their_file)).expect("Kiln reads burn-pack's file");
    for (name, dtype, _, shape, id) in rows() {
        let entry = reader.entry(name).expect("the tensor is there");
        assert_eq!((entry.dtype, entry.shape.as_slice(), entry.param_id), (dtype, &shape[..], id), "{name}");
    }
    println!("{} tensors and {} scalars: the files are byte-identical and read by both", rows().len(), scalars().len());
}
