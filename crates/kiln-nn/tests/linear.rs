//! Linear layers and embeddings.

use kiln_module::module::{Module, Param};
use kiln_nn::{Embedding, Linear, LinearConfig, LinearLayout};
use kiln_tensor::{Device, Tensor};

use crate::graded::{backward, cases, int, leaf, param, same_gradient};

fn linear_of<const D: usize>(case: &crate::golden::Case) {
    let layer = Linear { weight: param(case, "weight"), bias: case.get("bias").map(|_| param(case, "bias")) };
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, layer.forward(x.clone()));
    same_gradient(case, "x", &x, &gradients);
    same_gradient(case, "weight", &layer.weight, &gradients);
    if let Some(bias) = &layer.bias {
        same_gradient(case, "bias", bias, &gradients);
    }
}

#[test]
fn linear_matches_pytorch() {
    for case in cases("linear.txt", "linear") {
        match case.tensor("x").shape.len() {
            2 => linear_of::<2>(&case),
            3 => linear_of::<3>(&case),
            4 => linear_of::<4>(&case),
            rank => panic!("no test for rank {rank}"),
        }
    }
}

#[test]
fn embedding_matches_pytorch() {
    for case in cases("linear.txt", "embedding") {
        let layer = Embedding { weight: param(&case, "weight") };
        let gradients = backward(&case, layer.forward(int(&case, "x")));
        same_gradient(&case, "weight", &layer.weight, &gradients);
    }
}

#[test]
fn column_layout_is_recorded_transposed_and_loads_back() {
    let device = Device::default();
    let config = LinearConfig::new(2, 3).with_layout(LinearLayout::Col);
    let layer = config.init(&device);
    let expected = layer.weight.val().into_data();
    let record = layer.clone().into_record();
    let recorded = record.tensors().iter().find(|tensor| tensor.name == "weight").unwrap();
    assert_eq!(recorded.shape.to_vec(), [3, 2]);
    let loaded = config.init(&device).load_record(record);
    assert_eq!(loaded.weight.dims(), [2, 3]);
    loaded.weight.val().into_data().assert_eq(&expected, true);
}

#[test]
fn a_linear_output_of_size_one_keeps_its_axis() {
    let device = Device::default();
    let layer = Linear { weight: Param::from_data([[3.0], [4.0]], &device), bias: None };
    let output = layer.forward(Tensor::<1>::from_floats([1.0, 2.0], &device));
    assert_eq!(output.dims(), [1]);
    assert_eq!(output.into_scalar::<f32>(), 11.0);
}
