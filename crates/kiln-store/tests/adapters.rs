//! Adapters between conventions and precisions.

use kiln_store::burn_pack::Tensor;
use kiln_store::{
    BurnToPyTorchAdapter, FloatCastAdapter, HalfPrecisionAdapter, IdentityAdapter, ModuleAdapter, ModuleContext, PyTorchToBurnAdapter, bridge,
};
use kiln_tensor::{DType, TensorData};

use crate::tensor;

fn adapt(adapter: &dyn ModuleAdapter, tensor: Tensor, module: &str) -> Tensor {
    adapter.adapt(tensor, ModuleContext::new(&["Struct:Model".into(), module.into()]))
}

fn values(tensor: &Tensor) -> Vec<f32> {
    bridge::to_data(tensor).expect("held").try_to_vec_as().expect("numbers")
}

#[test]
fn linear_weights_are_transposed_both_ways() {
    let weight = || bridge::from_data(TensorData::from([[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]), "fc.weight".into(), Some(7));
    let loaded = adapt(&PyTorchToBurnAdapter, weight(), "Struct:Linear");
    assert_eq!(loaded.shape.as_slice(), [3, 2]);
    assert_eq!(values(&loaded), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(loaded.param_id, Some(7));
    let saved = adapt(&BurnToPyTorchAdapter, loaded, "Struct:Linear");
    assert_eq!((saved.shape.as_slice(), values(&saved)), (&[2, 3][..], values(&weight())));
    let other = adapt(&PyTorchToBurnAdapter, weight(), "Struct:Embedding");
    assert_eq!(other.shape.as_slice(), [2, 3]);
    let bias = adapt(&PyTorchToBurnAdapter, tensor("fc.bias", [1.0, 2.0]), "Struct:Linear");
    assert_eq!(values(&bias), [1.0, 2.0]);
}

#[test]
fn norm_parameters_are_renamed_both_ways() {
    for norm in ["Struct:BatchNorm", "Struct:LayerNorm", "Struct:RmsNorm"] {
        let name = |adapter: &dyn ModuleAdapter, name| adapt(adapter, tensor(name, [1.0]), norm).name;
        assert_eq!(name(&PyTorchToBurnAdapter, "norm.weight"), "norm.gamma");
        assert_eq!(name(&PyTorchToBurnAdapter, "bias"), "beta");
        assert_eq!(name(&BurnToPyTorchAdapter, "norm.gamma"), "norm.weight");
        assert_eq!(name(&BurnToPyTorchAdapter, "norm.running_mean"), "norm.running_mean");
        assert_eq!(PyTorchToBurnAdapter.get_alternative_param_name("gamma", norm).as_deref(), Some("weight"));
        assert_eq!(BurnToPyTorchAdapter.get_alternative_param_name("bias", norm).as_deref(), Some("beta"));
    }
    assert_eq!(adapt(&PyTorchToBurnAdapter, tensor("conv.weight", [1.0]), "Struct:Conv2d").name, "conv.weight");
    assert_eq!(PyTorchToBurnAdapter.get_alternative_param_name("gamma", "Struct:Linear"), None);
}

#[test]
fn half_precision_goes_there_and_back_for_chosen_modules() {
    let adapter = HalfPrecisionAdapter::new();
    let stored = adapt(&adapter, tensor("w", [0.1, 65504.0]), "Struct:Conv2d");
    assert_eq!(stored.dtype, DType::F16);
    assert_eq!(stored.to_bytes().expect("held")[..], [0x66, 0x2e, 0xff, 0x7b]);
    let loaded = adapt(&adapter, stored, "Struct:Conv2d");
    assert_eq!((loaded.dtype, values(&loaded)[1]), (DType::F32, 65504.0));
    assert_eq!(adapt(&adapter, tensor("w", [0.1]), "Struct:BatchNorm").dtype, DType::F32);
    let adapter = adapter.with_module("BatchNorm").without_module("Struct:Conv2d");
    assert_eq!(adapt(&adapter, tensor("w", [0.1]), "Struct:BatchNorm").dtype, DType::F16);
    assert_eq!(adapt(&adapter, tensor("w", [0.1]), "Struct:Conv2d").dtype, DType::F32);
}

#[test]
fn floats_are_cast_and_nothing_else() {
    let adapter = FloatCastAdapter::to(DType::F64);
    let cast = adapt(&adapter, tensor("w", [0.5]), "Struct:Any");
    assert_eq!((cast.dtype, cast.byte_len(), values(&cast)), (DType::F64, 8, vec![0.5]));
    let ints = bridge::from_data(TensorData::from([1i32]), "i".into(), None);
    assert_eq!(adapt(&adapter, ints, "Struct:Any").dtype, DType::I32);
}

#[test]
fn chains_apply_their_parts_in_order() {
    let chain = IdentityAdapter.chain(PyTorchToBurnAdapter).chain(FloatCastAdapter::to(DType::BF16)).clone_box();
    let adapted = adapt(chain.as_ref(), tensor("norm.weight", [1.0]), "Struct:GroupNorm");
    assert_eq!((adapted.name.as_str(), adapted.dtype), ("norm.gamma", DType::BF16));
    assert_eq!(chain.get_alternative_param_name("beta", "Struct:GroupNorm").as_deref(), Some("bias"));
    assert_eq!(ModuleContext::new(&[]).module_type(), None);
}
