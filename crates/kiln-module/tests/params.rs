//! Parameters: laziness, trainability, moves between devices, groups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param, ParamGroup, ParamId, RunningState};
use kiln_tensor::{Device, Shape, Tensor};

fn counted(count: &Arc<AtomicUsize>, device: &Device) -> Param<Tensor<1>> {
    let count = count.clone();
    let init = move |device: &Device, require_grad: bool| {
        count.fetch_add(1, Ordering::SeqCst);
        let tensor = Tensor::<1>::from_floats([1.0, 2.0], device);
        if require_grad && device.is_autodiff() { tensor.require_grad() } else { tensor }
    };
    Param::uninitialized(ParamId::new(), init, device.clone(), true, Shape::from([2]))
}

#[test]
fn a_lazy_value_is_made_once_for_all_clones() {
    let count = Arc::new(AtomicUsize::new(0));
    let param = counted(&count, &Device::default().autodiff());
    let clone = param.clone();
    assert_eq!((param.lazy_shape().to_vec(), param.is_initialized()), (vec![2], false));
    assert!(!format!("{param:?}").is_empty());
    assert_eq!(count.load(Ordering::SeqCst), 0, "printing makes no value");
    assert_eq!(clone.dims(), [2]);
    assert!(param.is_initialized() && param.is_require_grad());
    let (_, value, _) = param.consume();
    assert_eq!(value.sum().into_scalar::<f32>(), 3.0);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn loading_a_record_makes_no_value_first() {
    let count = Arc::new(AtomicUsize::new(0));
    let device = Device::default().autodiff();
    let record = Param::<Tensor<1>>::from_data([5.0, 6.0], &device).into_record();
    let loaded = counted(&count, &device).load_record(record);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert!(loaded.is_require_grad());
    assert_eq!(loaded.val().sum().into_scalar::<f32>(), 11.0);
}

#[test]
fn an_unshared_lazy_parameter_moves_before_it_is_made() {
    let count = Arc::new(AtomicUsize::new(0));
    let device = Device::default();
    let moved = counted(&count, &device).to_device(&device);
    assert!(!moved.is_initialized());
    let shared = moved.clone();
    let moved = moved.to_device(&device);
    assert!(moved.is_initialized() && shared.is_initialized());
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn an_initial_mapping_acts_when_the_value_is_made() {
    let count = Arc::new(AtomicUsize::new(0));
    let device = Device::default().autodiff();
    let lazy = counted(&count, &device).init_mapper(|tensor| tensor * 10.0);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert_eq!(lazy.val().sum().into_scalar::<f32>(), 30.0);
    assert!(lazy.is_require_grad());
    let ready = Param::<Tensor<1>>::from_data([1.0], &device).init_mapper(|tensor| tensor + 1.0);
    assert_eq!(ready.val().into_scalar::<f32>(), 2.0);
}

#[test]
fn mapping_keeps_a_parameter_trained() {
    let device = Device::default().autodiff();
    let param = Param::<Tensor<1>>::from_data([1.0, 2.0], &device);
    let mapped = param.clone().map(|tensor| tensor * 3.0);
    assert!(mapped.is_require_grad());
    let gradients = mapped.val().square().sum().backward();
    assert_eq!(mapped.grad(&gradients).unwrap().sum().into_scalar::<f32>(), 18.0);
    assert!(param.grad(&gradients).is_none());
    let (id, value, mapper) = param.clone().consume();
    assert!(Param::from_mapped_value(id, value * 2.0, mapper).is_require_grad());
    let (id, value, mapper) = param.consume();
    let off = Param::from_mapped_value(id, value.set_require_grad(false), mapper);
    assert!(!off.is_require_grad() && !off.valid().train().is_require_grad());
}

#[test]
fn trainability_survives_a_device_without_autodiff() {
    let plain = Device::default();
    let param = Param::<Tensor<1>>::from_data([1.0], &plain);
    assert!(!param.is_require_grad());
    assert!(param.clone().train().is_require_grad());
    assert!(!param.clone().no_grad().train().is_require_grad());
    assert!(param.train().valid().train().is_require_grad());
    let lazy: Param<Tensor<1>> = Initializer::Ones.init([2], &plain);
    assert!(lazy.no_grad().set_require_grad(true).train().is_require_grad());
}

#[test]
fn moving_keeps_the_graph_and_forking_cuts_it() {
    let device = Device::default().autodiff();
    let param = Param::<Tensor<1>>::from_data([1.0, 2.0], &device);
    let forked = param.clone().fork(&device);
    let gradients = forked.val().sum().backward();
    assert!(param.grad(&gradients).is_none() && forked.grad(&gradients).is_some());
    let moved = param.clone().to_device(&device);
    let gradients = moved.val().sum().backward();
    assert!(param.grad(&gradients).is_some());
}

#[test]
fn running_states_are_never_trained_and_clones_are_snapshots() {
    let device = Device::default().autodiff();
    let state = RunningState::new(Tensor::<1>::from_floats([1.0], &device));
    let clone = state.clone();
    let leaf = Tensor::<1>::from_floats([2.0], &device).require_grad();
    state.update(leaf * 3.0);
    assert!(!state.value().is_tracked());
    assert_eq!((state.value().into_scalar::<f32>(), clone.value().into_scalar::<f32>()), (6.0, 1.0));
    assert!(!state.clone().unfreeze().value().is_require_grad());
    assert_eq!(state.num_params(), 1);
}

#[test]
fn groups_select_by_path_text_pattern_and_id() {
    let id = ParamId::new();
    let held = |group: &ParamGroup, path: &str| group.matches(&id, Some(path));
    assert!(held(&ParamGroup::all(), "a"));
    let paths = ParamGroup::from_paths(vec!["encoder", "head.bias"]);
    assert!(held(&paths, "encoder.weight") && held(&paths, "head.bias") && !held(&paths, "head.weight") && !held(&paths, "encoders.weight"));
    let all = ParamGroup::from_predicates(vec!["layer", "weight"]);
    let any = ParamGroup::from_any_predicates(vec!["layer", "weight"]);
    assert!(held(&all, "layer.weight") && !held(&all, "layer.bias") && held(&any, "layer.bias"));
    let all = ParamGroup::from_regexes(vec!["^a", r"\d$"]).unwrap();
    let any = ParamGroup::from_any_regexes(vec!["^a", r"\d$"]).unwrap();
    assert!(held(&all, "a.1") && !held(&all, "b.1") && held(&any, "b.1"));
    assert!(ParamGroup::from_regex("(").is_err());
    let ids = ParamGroup::from_ids(vec![ParamId::new(), id]);
    assert!(ids.matches(&id, None) && !ids.matches(&ParamId::new(), None));
    assert!(!ParamGroup::from_path("a").matches(&id, None));
}

#[test]
fn groups_fuse_and_exclude() {
    let id = ParamId::new();
    let held = |group: &ParamGroup, path: &str| group.matches(&id, Some(path));
    let first = ParamGroup::from_path("a").exclude(ParamGroup::from_predicate("bias"));
    let both = first.clone().fuse(&ParamGroup::from_path("b"));
    for (path, expected) in [("a.weight", true), ("a.bias", false), ("b.bias", true), ("c.weight", false)] {
        assert_eq!(held(&both, path), expected, "{path}");
    }
    let text = serde_json::to_string(&both).unwrap();
    let copy: ParamGroup = serde_json::from_str(&text).unwrap();
    assert!(held(&copy, "a.weight") && !held(&copy, "a.bias"));
}

#[test]
fn initializers_are_configurations() {
    let initializer = Initializer::Uniform { min: 0.0, max: 1.0 };
    assert_eq!(Initializer::load_binary(initializer.to_string().as_bytes()).unwrap(), initializer);
}
