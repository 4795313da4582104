//! Reparameterized modules: what they compute, train and record.

use kiln_module::module::{Lora, LoraAdapter, Module, ModuleMapper, Param, ParamGroup, Reparameterization, Reparameterizer, list_param_ids};
use kiln_tensor::{DType, Device, FloatDType, Int, Tensor};

#[derive(Module, Debug)]
struct Layer {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

#[derive(Module, Debug)]
struct Net {
    first: Layer,
    second: Layer,
}

fn layer(device: &Device) -> Layer {
    Layer { weight: Param::from_data([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device), bias: Param::from_data([0.5, 0.5, 0.5], device) }
}

fn net(device: &Device) -> Net {
    Net { first: layer(device), second: layer(device) }
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_to_vec_as().unwrap()
}

/// Sets every parameter below a `lora` to numbers that count up.
struct Count(i64);

impl ModuleMapper for Count {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| {
            let shape = tensor.shape();
            let (from, len) = (self.0, shape.num_elements() as i64);
            self.0 += len;
            Tensor::<1, Int>::arange(from..from + len, &tensor.device()).float().reshape(shape)
        })
    }
}

#[test]
fn an_update_starts_at_nothing_and_is_added_scaled() {
    let device = Device::default();
    let adapted = net(&device).apply_lora(Lora::new(2, 3.0));
    assert_eq!(values(adapted.first.weight.val()), values(adapted.first.weight.base()));
    let adapter = adapted.second.weight.adapter().expect("adapted");
    assert_eq!((adapter.a.dims(), adapter.b.dims(), adapter.scale), ([2, 2], [2, 3], 1.5));
    assert!(adapted.second.bias.adapter().is_none());

    let layer = adapted.second.map(&mut Count(0));
    // The base is 0..6, A 6..10, B 10..16, the bias 16..19.
    let (a, b) = ([[6.0, 7.0], [8.0, 9.0]], [[10.0, 11.0, 12.0], [13.0, 14.0, 15.0]]);
    let expected: Vec<f32> = (0..6).map(|i| i as f32 + 1.5 * (a[i / 3][0] * b[0][i % 3] + a[i / 3][1] * b[1][i % 3])).collect();
    assert_eq!(values(layer.weight.val()), expected);
    assert_eq!(values(layer.weight.base()), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(values(layer.weight.clone().into_value()), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(values(layer.bias.val()), [16.0, 17.0, 18.0]);
}

#[test]
fn only_the_update_is_trained() {
    let device = Device::default().autodiff();
    let net = net(&device).apply_lora(Lora::new(1, 1.0).set_param_group(ParamGroup::from_path("first")));
    assert!(net.second.weight.adapter().is_none() && net.second.weight.is_require_grad());
    let loss = net.first.weight.val().sum() + net.second.weight.val().sum();
    let gradients = loss.backward();
    assert!(net.first.weight.grad(&gradients).is_none());
    let adapter = net.first.weight.adapter().unwrap();
    // The gradient of A is that of the product with B, which is zero at first; that of B is not.
    assert_eq!(values(adapter.a.grad(&gradients).unwrap()), [0.0, 0.0]);
    assert!(values(adapter.b.grad(&gradients).unwrap()).iter().any(|value| *value != 0.0));
    assert!(net.second.weight.grad(&gradients).is_some());

    let still = net.valid();
    assert!(!still.first.weight.adapter().unwrap().a.is_autodiff());
    let again = still.train();
    let adapter = again.first.weight.adapter().unwrap();
    assert!(adapter.a.is_require_grad() && !again.first.weight.base().is_require_grad());
    let frozen = again.freeze();
    assert!(!frozen.first.weight.adapter().unwrap().b.is_require_grad());
}

#[test]
fn updates_are_recorded_below_their_parameters() {
    let device = Device::default();
    let plain = net(&device).into_record();
    let adapted = net(&device).apply_lora(Lora::new(2, 2.0)).map(&mut Count(0));
    assert_eq!(list_param_ids(&adapted).len(), 8);
    assert_eq!(adapted.num_params(), 2 * (6 + 3 + 4 + 6));
    let record = adapted.clone().into_record();
    let names: Vec<&str> = record.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names[..4], ["first.weight", "first.weight.lora.a", "first.weight.lora.b", "first.bias"]);
    let update = adapted.clone().into_record_group(ParamGroup::from_predicate("lora"));
    assert_eq!(update.len(), 4);

    // The whole record into a net that is adapted in the same way; only the update into one that has the base.
    let bytes = record.into_bytes().unwrap();
    let record = kiln_module::record::ModuleRecord::from_bytes(bytes).unwrap();
    let whole = net(&device).apply_lora(Lora::new(2, 2.0)).load_record(record);
    assert_eq!(values(whole.second.weight.val()), values(adapted.second.weight.val()));
    let base = adapted.clone().into_record_group(ParamGroup::all().exclude(ParamGroup::from_predicate("lora")));
    let mixed = net(&device).load_record(base).apply_lora(Lora::new(2, 2.0)).load_record(update.allow_partial(true));
    assert_eq!(values(mixed.first.weight.val()), values(adapted.first.weight.val()));
    let error = net(&device).apply_lora(Lora::new(2, 2.0)).try_load_record(plain).unwrap_err().to_string();
    assert!(error.contains("first.weight.lora.a"), "{error}");
}

#[test]
fn an_update_has_the_element_type_asked_for() {
    let device = Device::default();
    let net = net(&device).apply_lora(Lora::new(2, 2.0).set_dtype(FloatDType::F16));
    let adapter = net.first.weight.adapter().unwrap();
    assert_eq!((adapter.a.dtype(), adapter.b.dtype(), net.first.weight.val().dtype()), (DType::F16, DType::F16, DType::F32));
}

#[test]
fn clones_share_an_update_that_is_not_drawn_yet() {
    let net = net(&Device::default()).apply_lora(Lora::new(2, 2.0));
    let copy = net.clone();
    let a = |net: &Net| values(net.first.weight.adapter().unwrap().a.val());
    assert_eq!(a(&net), a(&copy));
    let spread: f32 = a(&net).iter().map(|value| value.abs()).sum();
    assert!(spread > 0.0);
}

#[test]
fn a_parameter_is_reparameterized_once() {
    let net = net(&Device::default()).apply_lora(Lora::new(2, 2.0));
    let message = crate::panic_of(|| net.apply_lora(Lora::new(1, 1.0)));
    assert!(message.contains("`first.weight` has one already, `lora`"), "{message}");
}

#[test]
fn an_adapted_module_prints_what_it_is_adapted_by() {
    let net = net(&Device::default()).apply_lora(Lora::new(2, 2.0));
    let text = net.first.to_string();
    assert!(text.contains("weight: Param {rank: 2, shape: [2, 3], kind: float, with: lora}") && text.contains("params: 19"), "{text}");
    assert_eq!(net.first.weight.adapter().unwrap().to_string(), "LoraAdapter {\n  rank: 2\n  scale: 1\n  params: 10\n}");
}

/// A reparameterization with parameters of two kinds.
#[derive(Module, Debug)]
struct Picked {
    rows: Param<Tensor<1, Int>>,
    gain: Param<Tensor<1>>,
}

impl Reparameterization for Picked {
    const NAME: &'static str = "picked";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        base.select(0, self.rows.val()) * self.gain.val().unsqueeze()
    }
}

struct Pick(Device);

impl Reparameterizer for Pick {
    type Reparam = Picked;

    fn reparameterize<const D: usize>(&mut self, path: &str, param: Param<Tensor<D>>) -> (Param<Tensor<D>>, Option<Picked>) {
        let rows = Param::initialized(kiln_module::module::ParamId::new(), Tensor::from_ints([1, 0], &self.0));
        let picked = (path == "weight").then(|| Picked { rows, gain: Param::from_data([2.0], &self.0) });
        (param, picked)
    }
}

#[test]
fn parts_of_every_kind_are_visited_moved_and_recorded() {
    let device = Device::default();
    let picked = layer(&device).apply_reparameterization(Pick(device.clone()));
    assert_eq!(values(picked.weight.val()), [8.0, 10.0, 12.0, 2.0, 4.0, 6.0]);
    assert!(picked.weight.reparameterization::<Picked>().is_some() && picked.weight.reparameterization::<LoraAdapter>().is_none());
    let record = picked.clone().into_record();
    let names: Vec<&str> = record.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["weight", "weight.picked.rows", "weight.picked.gain", "bias"]);
    let copy = layer(&device).apply_reparameterization(Pick(device.clone())).load_record(record).fork(&device).materialize().to_device(&device);
    assert_eq!(values(copy.weight.val()), values(picked.weight.val()));
    assert_eq!(copy.devices().len(), 1);
    // What `consume` takes apart is put together again with it.
    let (id, value, mapper) = picked.weight.consume();
    let restored = Param::from_mapped_value(id, value * 2.0, mapper);
    assert_eq!(values(restored.val()), [16.0, 20.0, 24.0, 4.0, 8.0, 12.0]);
}
