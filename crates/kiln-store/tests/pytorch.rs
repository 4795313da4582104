//! Files of `torch.save`: what is read from them, and what is refused.

use kiln_module::module::{Module, Param};
use kiln_store::pytorch::{PickleError, PytorchErrorKind, PytorchOptimizer, PytorchReader};
use kiln_store::{Contents, Format, ModuleSnapshot, ModuleStore, PytorchStore, PytorchStoreError};
use kiln_tensor::{Bytes, DType, Device, Tensor, TensorData};

use crate::model::{Linear, linear};

fn sample(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pytorch").join(name)
}

fn open(name: &str) -> PytorchReader {
    PytorchReader::new(sample(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn data(reader: &PytorchReader, name: &str) -> TensorData {
    let tensor = reader.get(name).unwrap_or_else(|| panic!("no `{name}` among {:?}", reader.keys()));
    kiln_store::bridge::into_data(kiln_store::bridge::from_pytorch(tensor.clone())).unwrap()
}

#[track_caller]
fn check(reader: &PytorchReader, name: &str, shape: &[usize], values: &[f64]) {
    let data = data(reader, name);
    assert_eq!(data.shape().as_slice(), shape, "{name}");
    assert_eq!(data.iter::<f64>().collect::<Vec<_>>(), values, "{name}");
}

/// The values that the samples' parameters have.
fn fill(count: usize, number: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7 + number * 13) % 64) as f64 * 0.125 - 4.0).collect()
}

#[test]
fn every_dtype_and_layout_is_read() {
    let reader = open("kinds.pt");
    for (name, dtype) in [("f64", DType::F64), ("f32", DType::F32), ("f16", DType::F16), ("bf16", DType::BF16)] {
        assert_eq!(reader.get(name).unwrap().dtype, dtype);
        check(&reader, name, &[4], &[1.0, 2.5, -3.75, 0.0]);
    }
    let ints = [DType::I64, DType::I32, DType::I16, DType::I8, DType::U8, DType::U16, DType::U32, DType::U64];
    for (name, dtype) in ["i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64"].into_iter().zip(ints) {
        assert_eq!(reader.get(name).unwrap().dtype, dtype);
        check(&reader, name, &[4], &[1.0, 2.0, 3.0, 100.0]);
    }
    assert_eq!(data(&reader, "bool").try_to_vec::<bool>().unwrap(), [true, false, true]);
    check(&reader, "transposed", &[4, 3], &[0.0, 4.0, 8.0, 1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0]);
    check(&reader, "window", &[2, 2], &[5.0, 6.0, 9.0, 10.0]);
    check(&reader, "stepped", &[3, 2], &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    check(&reader, "expanded", &[2, 3], &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    check(&reader, "row", &[4], &[8.0, 9.0, 10.0, 11.0]);
    check(&reader, "same", &[4], &[8.0, 9.0, 10.0, 11.0]);
    check(&reader, "number", &[], &[7.5]);
    check(&reader, "empty", &[0, 3], &[]);
    check(&reader, "parameter", &[2], &[5.0, 6.0]);
}

#[test]
fn tensors_in_lists_and_under_numbers_are_found() {
    let reader = open("kinds.pt");
    for (name, value) in [("list.0", 1.0), ("list.1", 2.0), ("tuple.0", 3.0), ("tuple.1.deep", 4.0), ("0", 8.0)] {
        check(&reader, name, &[1], &[value]);
    }
    assert!(["text", "none", "number_", "flag"].iter().all(|name| reader.get(name).is_none()));
    assert_eq!(reader.len(), reader.keys().len());
}

#[test]
fn every_format_of_torch_save_is_read() {
    let plain = open("plain.pt");
    assert_eq!(plain.keys(), ["layers.0.weight", "layers.0.bias", "layers.2.weight"]);
    check(&plain, "layers.0.bias", &[3], &fill(3, 8));
    check(&open("protocol4.pt"), "a", &[1], &[1.0]);
    let archive = open("archive.tar");
    check(&archive, "a", &[4], &[1.0, 2.5, f64::from(-3.7_f32), 0.0]);
    check(&archive, "b.0", &[2, 2], &[2.5, 0.0, f64::from(-3.7_f32), 9.0]);
    // A pickled module has the names of its state dict.
    let module = open("module.pt");
    assert_eq!(module.keys(), ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"]);
    check(&module, "1.bias", &[2], &fill(2, 3));
}

#[test]
fn contents_are_told_by_their_first_bytes() {
    for name in ["net.pt", "plain.pt", "archive.tar"] {
        let contents = Contents::open(sample(name)).unwrap();
        assert_eq!(contents.format, Format::Pytorch);
        assert!(!contents.tensors.is_empty());
    }
}

#[derive(Module, Debug)]
struct Layers {
    layers: Vec<Linear>,
}

fn layers(device: &Device) -> Layers {
    Layers { layers: vec![linear(4, 3, true, device), linear(3, 2, false, device)] }
}

#[test]
fn a_state_dict_becomes_a_module() {
    let mut model = layers(&Device::default());
    let result = model.load_from(&mut PytorchStore::from_file(sample("plain.pt"))).unwrap();
    assert_eq!(result.applied.len(), 3);
    // PyTorch has [out, in], modules have [in, out].
    let stored = fill(12, 7);
    let transposed: Vec<f32> = (0..12).map(|i| stored[i % 3 * 4 + i / 3] as f32).collect();
    assert_eq!(model.layers[0].weight.val().try_to_vec_as::<f32>().unwrap(), transposed);

    let mut other = layers(&Device::default());
    let mut store = PytorchStore::from_file(sample("checkpoint.pth")).with_top_level_key("state_dict");
    let result = other.load_from(&mut store).unwrap();
    assert!(result.unused.iter().any(|name| name == "rnn.weight_ih_l0"), "{result}");
    let bias = |model: &Layers| model.layers[0].bias.as_ref().unwrap().val().try_to_vec_as::<f32>().unwrap();
    assert_eq!(bias(&model), bias(&other));
    assert_eq!(store.get_tensor("layers.1.weight").unwrap().unwrap().shape.as_slice(), [2, 3]);
}

#[test]
fn what_does_not_fit_is_told() {
    let mut model = layers(&Device::default());
    let load = |model: &mut Layers, store: PytorchStore| model.load_from(&mut { store }).unwrap_err().to_string();
    let error = load(&mut model, PytorchStore::from_file(sample("checkpoint.pth")).with_top_level_key("model"));
    assert!(error.contains("has no key `model`; its keys are epoch, state_dict, note"), "{error}");
    let error = load(&mut model, PytorchStore::from_file(sample("plain.pt")).map_indices_contiguous(false));
    assert!(error.contains("plain.pt") && error.contains("missing `layers.1.weight`"), "{error}");
    let error = load(&mut model, PytorchStore::from_file(sample("nowhere.pt")));
    assert!(error.contains("nowhere.pt"), "{error}");
    let refused = model.save_into(&mut PytorchStore::from_file("x.pt"));
    assert!(matches!(refused, Err(PytorchStoreError::Other(how)) if how.contains("can't be written")));
    let error = PytorchOptimizer::new(sample("net.pt")).unwrap_err().to_string();
    assert!(error.contains("no dictionary `state`"), "{error}");
}

#[derive(Module, Debug)]
struct Two {
    a: Param<Tensor<2>>,
    b: Param<Tensor<1>>,
}

#[test]
fn an_optimizers_state_that_does_not_fit_is_refused() {
    let device = Device::default();
    let saved = PytorchOptimizer::with_top_level_key(sample("adamw.pt"), "optimizer").unwrap();
    assert_eq!((saved.option(0, "lr"), saved.option(0, "weight_decay"), saved.option(0, "none")), (Some(0.1), Some(0.1), None));
    let two = Two { a: Param::from_tensor(Tensor::zeros([2, 3], &device)), b: Param::from_tensor(Tensor::zeros([2], &device)) };
    let error = saved.record(&two).unwrap_err().to_string();
    assert!(error.contains("adamw.pt") && error.contains("it has 4 parameters, the module 2"), "{error}");
    let named = PytorchOptimizer::with_top_level_key(sample("named.pt"), "optimizer").unwrap();
    let error = named.record(&two).unwrap_err().to_string();
    assert!(error.contains("it has no parameter for `a`; it has rnn.weight_ih_l0"), "{error}");
}

/// The error of bytes that begin as a plain file and go on with `program`.
fn refused(program: &[u8]) -> PytorchErrorKind {
    let mut bytes = std::fs::read(sample("plain.pt")).unwrap()[..15].to_vec();
    for _ in 0..2 {
        bytes.extend(b"\x80\x02K\x01.");
    }
    bytes.extend(program);
    bytes.extend(b"\x80\x02].");
    match PytorchReader::from_bytes("bytes", Bytes::from_bytes_vec(bytes), None) {
        Ok(reader) => panic!("accepted: {reader:?}"),
        Err(error) => error.kind,
    }
}

#[test]
fn hostile_programs_are_refused_in_bounded_time_and_memory() {
    // Each list holds the one before it twice: 2^60 values when taken apart.
    let mut bomb = b"\x80\x02]q\x00".to_vec();
    for number in 1..60u8 {
        bomb.extend([b']', b'q', number, b'(', b'h', number - 1, b'h', number - 1, b'e']);
    }
    bomb.push(b'.');
    assert_eq!(refused(&bomb), PickleError::TooManyValues.into());
    // Nesting.
    let mut deep = b"\x80\x02N".to_vec();
    deep.extend([0x85].repeat(100_000));
    deep.push(b'.');
    assert_eq!(refused(&deep), PickleError::TooDeep.into());
    // Lengths that are not there.
    assert_eq!(refused(b"\x80\x02X\xff\xff\xff\xffa."), PickleError::UnexpectedEnd.into());
    assert_eq!(refused(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffa."), PickleError::UnexpectedEnd.into());
    // Operands that are not there, and values that were never remembered.
    assert!(matches!(refused(b"\x80\x02R."), PytorchErrorKind::Pickle(PickleError::Stack { .. })));
    assert!(matches!(refused(b"\x80\x02(K\x01s."), PytorchErrorKind::Pickle(PickleError::Stack { .. })));
    assert_eq!(refused(b"\x80\x02h\x07."), PickleError::Memo(7).into());
    assert!(matches!(refused(b"\x80\x02\xff."), PytorchErrorKind::Pickle(PickleError::UnknownOpCode { byte: 0xff, .. })));
}

#[test]
fn a_value_that_holds_itself_ends() {
    // A list that is its own item, and an object that would delete files if it were called.
    let mut bytes = std::fs::read(sample("plain.pt")).unwrap()[..15].to_vec();
    bytes.extend(b"\x80\x02K\x01.\x80\x02K\x01.\x80\x02]q\x00h\x00acos\nsystem\nX\x02\x00\x00\x00rm\x85Ra.\x80\x02].");
    let reader = PytorchReader::from_bytes("bytes", Bytes::from_bytes_vec(bytes), None).unwrap();
    assert!(reader.is_empty());
}

#[test]
fn views_outside_of_their_storage_are_refused() {
    let whole = std::fs::read(sample("protocol4.pt")).unwrap();
    // `(1,)` of the shape and of the strides: K\x01\x85.
    let places: Vec<usize> = whole.windows(3).enumerate().filter(|(_, window)| *window == b"K\x01\x85").map(|(at, _)| at + 1).collect();
    assert_eq!(places.len(), 2);
    let with = |extent: u8, stride: u8| {
        let mut bytes = whole.clone();
        bytes[places[0]] = extent;
        bytes[places[1]] = stride;
        PytorchReader::from_bytes("bytes", Bytes::from_bytes_vec(bytes), None)
    };
    assert!(with(1, 200).is_ok());
    let error = with(2, 1).unwrap_err().to_string();
    assert!(error.contains("tensor `a` reaches beyond its storage of 4 bytes"), "{error}");
    // Expanded: one element read over and over is allowed.
    assert_eq!(with(200, 0).unwrap().get("a").unwrap().to_bytes().len(), 800);
}

#[test]
fn cut_off_files_are_refused() {
    for name in ["net.pt", "plain.pt", "archive.tar", "module.pt"] {
        let whole = std::fs::read(sample(name)).unwrap();
        // The last member of the tar file begins there; padding follows it.
        let end = if name.ends_with("tar") { 3584 } else { whole.len() };
        for len in (0..end).step_by(7) {
            let cut = Bytes::from_bytes_vec(whole[..len].to_vec());
            assert!(PytorchReader::from_bytes(name, cut, None).is_err(), "{name} cut at {len}");
        }
    }
}
