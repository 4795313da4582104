//! Modules into stores and back.

use kiln_module::module::{Module, Param};
use kiln_module::record::ModuleRecord;
use kiln_module::record::burnpack::Reader;
use kiln_store::burn_pack::Error;
use kiln_store::{
    ApplyError, BurnToPyTorchAdapter, BurnpackStore, HalfPrecisionAdapter, ModuleSnapshot, ModuleStore, PathFilter, PyTorchToBurnAdapter,
    SafetensorsStore, SafetensorsStoreError,
};
use kiln_tensor::{DType, Device, Tensor, TensorData};

use crate::burnpack_sample;
use crate::model::{Head, Linear, Model, linear};

/// The sample's parameters in a module.
fn loaded() -> Model {
    let mut model = Model::new(&Device::default());
    let result = model.load_from(&mut BurnpackStore::from_file(burnpack_sample("module_full.bpk"))).expect("the sample fits");
    assert_eq!((result.applied.len(), result.missing.len(), result.unused.len()), (22, 0, 0));
    model
}

fn values<const D: usize>(param: &Param<Tensor<D>>) -> Vec<f32> {
    param.val().into_data().try_to_vec_as().expect("floats")
}

#[test]
fn a_sample_of_burn_makes_the_round_trip_byte_for_byte() {
    let model = loaded();
    assert_eq!(values(&model.conv.weight)[..3], [-2.375, -1.5, -0.625]);
    assert_eq!(model.conv.weight.id.val(), 15_237_285_461_163_762_627);
    assert_eq!(model.mask.val().into_data(), TensorData::from([true, false, true]));
    let mut store = BurnpackStore::from_bytes(None).clear_metadata();
    model.save_into(&mut store).expect("writable");
    let sample = std::fs::read(burnpack_sample("module_full.bpk")).expect("readable");
    assert!(store.get_bytes().expect("saved")[..] == sample[..]);

    let mut store = SafetensorsStore::default().metadata("producer", "burn").metadata("version", "0.22.0");
    model.save_into(&mut store).expect("writable");
    let sample = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store_022.safetensors")).expect("readable");
    assert!(store.get_bytes().expect("saved") == sample);
}

#[test]
fn records_of_burn_0_21_load_into_the_module_whatever_their_encoding() {
    let expected = loaded();
    let names = ["named_mpk_full.mpk", "named_mpk_double.mpk.gz", "json_full.json", "json_double.json.gz", "bin_full.bin", "bin_double.bin.gz"];
    for name in names {
        let record = ModuleRecord::load(burnpack_sample("../legacy").join(name)).expect("readable");
        let model = Model::new(&Device::default()).try_load_record(record).expect("fits");
        assert_eq!(values(&model.scale), values(&expected.scale), "{name}");
        assert_eq!(values(&model.tup.1.weight), values(&expected.tup.1.weight), "{name}");
        assert_eq!(model.mask.val().into_data(), expected.mask.val().into_data(), "{name}");
        assert_eq!(model.ints.id.val(), 77, "{name}");
    }
    let record = ModuleRecord::load(burnpack_sample("../legacy/bin_full.bin")).expect("readable");
    let error = linear(4, 2, true, &Device::default()).try_load_record(record).expect_err("another module");
    assert!(error.to_string().contains("unused: #"), "{error}");
}

#[test]
fn files_keep_their_dtype_when_loaded() {
    for (name, dtype) in [("module_f16.bpk", DType::F16), ("module_bf16.bpk", DType::BF16), ("module_f64.bpk", DType::F64)] {
        let mut model = Model::new(&Device::default());
        model.load_from(&mut BurnpackStore::from_file(burnpack_sample(name))).expect("the sample fits");
        assert_eq!(model.linear.weight.val().dtype(), dtype);
        assert_eq!(values(&model.conv.weight)[..3], [-2.375, -1.5, -0.625]);
    }
}

#[test]
fn stores_on_the_disk_replace_only_what_they_may() {
    let folder = std::env::temp_dir().join(format!("kiln-stores-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let model = loaded();
    let burnpack = || BurnpackStore::from_file(folder.join("model"));
    model.save_into(&mut burnpack()).expect("writable");
    let error = model.save_into(&mut burnpack()).expect_err("in the way");
    assert!(matches!(&error, Error::AlreadyExists(text) if text.contains("model.bpk")), "{error}");
    model.save_into(&mut burnpack().overwrite(true)).expect("replaced");
    assert_eq!(Reader::open(folder.join("model.bpk")).expect("readable").index().metadata["producer"], "kiln");
    let safetensors = || SafetensorsStore::from_file(folder.join("model.safetensors"));
    model.save_into(&mut safetensors()).expect("writable");
    let error = model.save_into(&mut safetensors()).expect_err("in the way");
    assert!(error.to_string().ends_with("model.safetensors: exists already"), "{error}");
    let mut fresh = Model::new(&Device::default());
    fresh.load_from(&mut burnpack()).expect("readable");
    fresh.load_from(&mut safetensors()).expect("readable");
    assert_eq!(values(&fresh.tup.1.weight), values(&model.tup.1.weight));
    assert_eq!(safetensors().keys().expect("readable").len(), 22);
    assert_eq!(burnpack().get_tensor("head.Lin.bias").expect("readable").expect("there").shape.as_slice(), [2]);
    assert!(burnpack().get_tensor("head.bias").expect("readable").is_none());
    std::fs::remove_dir_all(folder).expect("removable");
}

#[test]
fn collecting_filters_by_path_and_by_module_type() {
    let model = loaded();
    let names = |filter: PathFilter| model.collect(Some(filter), None, false).into_iter().map(|tensor| tensor.name).collect::<Vec<_>>();
    assert_eq!(names(PathFilter::new().with_regex(r"^layers\.\d+\.weight$")), ["layers.0.weight", "layers.1.weight"]);
    let norms = PathFilter::from_predicate(|_, containers| containers.ends_with("Struct:BatchNorm"));
    assert_eq!(names(norms), ["norm.gamma", "norm.beta", "norm.running_mean", "norm.running_var"]);
    let skipped = model.collect(Some(PathFilter::from_regex_patterns(["^head"])), None, true);
    assert_eq!(skipped.iter().map(|tensor| tensor.name.as_str()).collect::<Vec<_>>(), ["head.weight", "head.bias"]);
}

#[test]
fn only_what_the_filter_chooses_is_loaded() {
    let mut model = Model::new(&Device::default());
    let mut store = BurnpackStore::from_file(burnpack_sample("module_full.bpk")).with_regex("^linear").with_full_path("scale");
    let result = model.load_from(&mut store).expect("a part was asked for");
    assert_eq!(result.applied, ["linear.weight", "linear.bias", "scale"]);
    assert_eq!((result.skipped.len(), result.unused.len(), result.missing.len()), (19, 0, 0));
    assert_eq!(values(&model.linear.weight), values(&loaded().linear.weight));
    assert!(values(&model.conv.weight).iter().all(|value| *value == 0.0));
}

#[test]
fn what_does_not_fit_is_listed_and_the_module_stays_as_it_was() {
    let device = Device::default();
    let saved = loaded();
    let mut model = Model::new(&device);
    model.linear = linear(2, 2, true, &device);
    model.maybe_none = Some(linear(1, 1, false, &device));
    let tensors = || saved.collect(None, None, false);
    let mut store = BurnpackStore::from_bytes(None);
    saved.save_into(&mut store).expect("writable");
    let error = model.load_from(&mut store).expect_err("does not fit").to_string();
    assert!(error.starts_with("burnpack bytes: does not fit the module: 21 applied, 0 skipped, 1 missing, 0 unused, 1 failed"), "{error}");
    assert!(error.contains("missing `maybe_none.weight` (Struct:Model.Struct:Linear)"), "{error}");
    assert!(error.contains("`linear.weight`: the module has shape [2, 2], the file [4, 2]"), "{error}");
    assert!(values(&model.conv.weight).iter().all(|value| *value == 0.0), "nothing was loaded");

    let mut store = store.allow_partial(true).validate(false);
    let result = model.load_from(&mut store).expect("allowed");
    assert!(!result.is_success());
    assert_eq!(values(&model.conv.weight), values(&saved.conv.weight));
    assert!(values(&model.linear.weight).iter().all(|value| *value == 0.0), "what does not fit keeps its value");

    let mut wrong = tensors();
    let ints = kiln_store::bridge::from_data(TensorData::from([1i32, 2, 3, 4, 5, 6]), "scale".into(), None);
    wrong.retain(|tensor| tensor.name != "scale");
    wrong.push(ints);
    wrong.push(crate::tensor("nowhere", [1.0]));
    let result = Model::new(&device).apply(wrong, None, None, false);
    assert!(matches!(&result.errors[..], [ApplyError::DTypeMismatch { path, found: DType::I32, .. }] if path == "scale"), "{result}");
    assert_eq!(result.unused, ["nowhere"]);
}

/// PyTorch's side of two layers: names and orientations are its own.
#[derive(Module, Debug)]
struct Net {
    fc: Vec<Linear>,
    head: Head,
}

#[test]
fn files_of_pytorch_are_renamed_renumbered_and_transposed() {
    let device = Device::default();
    let net = || Net { fc: vec![linear(3, 2, true, &device), linear(2, 1, false, &device)], head: Head::Lin(linear(1, 1, false, &device)) };
    let weight = TensorData::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let matrix = |name: &str, data| kiln_store::bridge::from_data(data, name.into(), None);
    let tensors = vec![
        matrix("net.fc.0.weight", weight),
        crate::tensor("net.fc.0.bias", [7.0, 8.0]),
        matrix("net.fc.2.weight", TensorData::from([[9.0f32, 10.0]])),
        matrix("net.head.weight", TensorData::from([[11.0f32]])),
    ];
    let bytes = kiln_store::safetensors::SafetensorsWriter::new(tensors).into_bytes().expect("writable");
    let mut store = SafetensorsStore::from_bytes(Some(bytes.to_vec()))
        .with_key_remapping("^net\\.", "")
        .map_indices_contiguous(true)
        .skip_enum_variants(true)
        .with_from_adapter(PyTorchToBurnAdapter);
    let mut loaded = net();
    loaded.load_from(&mut store).expect("fits");
    assert_eq!(values(&loaded.fc[0].weight), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(loaded.fc[1].weight.val().dims(), [2, 1]);
    // And back.
    let mut store = SafetensorsStore::default().skip_enum_variants(true).with_to_adapter(BurnToPyTorchAdapter);
    loaded.save_into(&mut store).expect("writable");
    assert_eq!(store.get_tensor("fc.0.weight").expect("readable").expect("there").shape.as_slice(), [2, 3]);
    assert_eq!(store.keys().expect("readable"), ["fc.0.bias", "fc.0.weight", "fc.1.weight", "head.weight"]);
}

#[test]
fn half_precision_stores_load_back_in_full() {
    let model = loaded();
    let mut store = BurnpackStore::from_bytes(None).with_to_adapter(HalfPrecisionAdapter::new()).with_from_adapter(HalfPrecisionAdapter::new());
    model.save_into(&mut store).expect("writable");
    let reader = Reader::from_bytes("half", store.get_bytes().expect("saved")).expect("readable");
    assert_eq!(reader.entry("conv.weight").expect("there").dtype, DType::F16);
    assert_eq!(reader.entry("norm.gamma").expect("there").dtype, DType::F32);
    let mut fresh = Model::new(&Device::default());
    fresh.load_from(&mut store).expect("fits");
    assert_eq!(fresh.conv.weight.val().dtype(), DType::F32);
    assert_eq!(values(&fresh.conv.weight), values(&model.conv.weight));
}

#[test]
fn an_empty_store_says_so() {
    let mut model = loaded();
    let error = model.load_from(&mut BurnpackStore::from_bytes(None)).expect_err("nothing was saved");
    assert_eq!(error.to_string(), "burnpack bytes: nothing was saved yet");
    let error = model.load_from(&mut SafetensorsStore::default()).expect_err("nothing was saved");
    assert!(matches!(error, SafetensorsStoreError::Other(_)));
    static SAMPLE: &[u8] = include_bytes!("../../kiln-module/tests/data/burnpack/module_full.bpk");
    Model::new(&Device::default()).load_from(&mut BurnpackStore::from_static(SAMPLE)).expect("the sample fits");
}
