//! Records of modules: round trips, mismatches, files of Burn.

use kiln_module::module::{Module, Param, ParamGroup, ParamId, RunningState};
use kiln_module::record::{ModuleRecord, RecordError};
use kiln_tensor::{Bool, DType, Device, Int, Tensor};

#[derive(Module, Debug)]
struct Linear {
    weight: Param<Tensor<2>>,
    bias: Option<Param<Tensor<1>>>,
}

#[derive(Module, Debug)]
struct Net {
    first: Linear,
    second: Linear,
    steps: Param<Tensor<1, Int>>,
    mask: Param<Tensor<1, Bool>>,
    mean: RunningState<Tensor<1>>,
}

fn linear(inputs: usize, outputs: usize, value: f32) -> Linear {
    let device = Device::default();
    Linear {
        weight: Param::from_tensor(Tensor::full([inputs, outputs], value, &device)),
        bias: Some(Param::from_tensor(Tensor::full([outputs], value + 0.5, &device))),
    }
}

fn net(value: f32) -> Net {
    let device = Device::default();
    Net {
        first: linear(2, 3, value),
        second: linear(3, 1, value + 1.0),
        steps: Param::initialized(ParamId::new(), Tensor::from_ints([value as i64], &device)),
        mask: Param::initialized(ParamId::new(), Tensor::from_bool([value > 0.0], &device)),
        mean: RunningState::new(Tensor::from_floats([value], &device)),
    }
}

fn texts(net: &Net) -> Vec<String> {
    let record = net.clone().into_record();
    record.tensors().iter().map(|tensor| format!("{} {}", tensor.name, kiln_module::record::data_of(tensor).unwrap())).collect()
}

#[test]
fn bytes_and_files_round_trip_exactly() {
    let saved = net(4.0);
    let bytes = saved.clone().into_record().into_bytes().unwrap();
    let loaded = net(0.0).load_record(ModuleRecord::from_bytes(bytes).unwrap());
    assert_eq!(texts(&loaded), texts(&saved));
    assert_eq!(loaded.first.weight.id, saved.first.weight.id, "ids come from the record");
    let path = std::env::temp_dir().join(format!("kiln-record-{}", std::process::id()));
    saved.clone().save_file(&path).unwrap();
    let loaded = net(0.0).try_load_file(&path).unwrap();
    assert_eq!(texts(&loaded), texts(&saved));
    std::fs::remove_file(path.with_extension("bpk")).unwrap();
}

#[track_caller]
fn reason(result: Result<Net, RecordError>) -> String {
    match result.expect_err("the record does not fit") {
        RecordError::Validation(reason) => reason,
        RecordError::Io(reason) => panic!("{reason}"),
    }
}

#[test]
fn every_mismatch_is_listed_by_path() {
    let mut other = net(1.0);
    other.first = linear(2, 4, 1.0);
    other.second.bias = None;
    let record = other.into_record();
    let reason = reason(net(0.0).try_load_record(record));
    for part in [
        "missing: second.bias",
        "first.weight: the module has shape [2, 3], the record [2, 4]",
        "first.bias: the module has shape [3], the record [4]",
    ] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn missing_unused_and_wrongly_shaped_parameters_are_listed_together() {
    let mut other = net(1.0);
    other.first = linear(2, 4, 1.0);
    other.second.bias = None;
    let mut smaller = net(0.0);
    smaller.first.bias = None;
    let before = texts(&smaller);
    let reason = reason(smaller.clone().try_load_record(other.clone().into_record()));
    let expected = ["missing: second.bias", "unused: first.bias", "first.weight: the module has shape [2, 3], the record [2, 4]"];
    assert!(expected.iter().all(|part| reason.contains(part)), "{reason}");
    // From a file too, and the module that was asked is unchanged.
    let path = std::env::temp_dir().join(format!("kiln-mismatch-{}.bpk", std::process::id()));
    other.save_file(&path).unwrap();
    let from_file = smaller.clone().try_load_file(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(expected.iter().all(|part| from_file.contains(part)), "{from_file}");
    assert_eq!(texts(&smaller), before);
}

#[test]
fn parts_and_leftovers_are_allowed_on_request() {
    let part = net(3.0).into_record_group(ParamGroup::from_path("first"));
    assert_eq!(part.len(), 2);
    assert!(reason(net(0.0).try_load_record(part.clone())).contains("second.weight"));
    let loaded = net(0.0).load_record(part.allow_partial(true));
    assert_eq!(loaded.first.weight.val().sum().into_scalar::<f32>(), 18.0);
    assert_eq!(loaded.second.weight.val().sum().into_scalar::<f32>(), 3.0);
    let whole = net(3.0).into_record();
    let mut smaller = net(0.0);
    smaller.first.bias = None;
    assert!(reason(smaller.clone().try_load_record(whole.clone())).contains("unused: first.bias"));
    smaller.load_record(whole.allow_unused(true));
}

#[test]
fn unfit_tensors_can_be_left_out() {
    let mut other = net(1.0);
    other.first = linear(2, 4, 1.0);
    let loaded = net(0.0).load_record(other.into_record().validate(false));
    assert_eq!(loaded.first.weight.dims(), [2, 3]);
    assert_eq!(loaded.second.weight.val().sum().into_scalar::<f32>(), 6.0);
}

#[test]
fn element_types_come_from_the_record_or_the_module() {
    let mut half = net(1.0);
    half.first.weight = half.first.weight.map(|tensor| tensor.cast(DType::F16));
    let record = half.into_record();
    let loaded = net(0.0).load_record(record.clone());
    assert_eq!(loaded.first.weight.dtype(), DType::F16);
    let cast = net(0.0).load_record(record.cast_to_module_dtype());
    assert_eq!(cast.first.weight.dtype(), DType::F32);
    assert_eq!(cast.first.weight.val().sum().into_scalar::<f32>(), 6.0);
}

#[test]
fn tensors_of_another_kind_are_refused() {
    #[derive(Module, Debug)]
    struct Counts {
        at: Param<Tensor<1, Int>>,
    }
    #[derive(Module, Debug)]
    struct Values {
        at: Param<Tensor<1>>,
    }
    let device = Device::default();
    let record = Counts { at: Param::initialized(ParamId::new(), Tensor::from_ints([1], &device)) }.into_record();
    let error = Values { at: Param::from_data([1.0], &device) }.try_load_record(record).unwrap_err().to_string();
    assert!(error.contains("at: the record has element type"), "{error}");
}

#[test]
fn unreadable_files_are_named() {
    let error = net(0.0).try_load_file("/nowhere/model.bpk").unwrap_err().to_string();
    assert!(error.contains("/nowhere/model.bpk"), "{error}");
}
