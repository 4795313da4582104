//! Autodiff: the tape, the rules and the states of tensors.
use kiln_ir::DType;
use kiln_tensor::Device;
use kiln_tensor::raw::RawTensor;

fn leaf(device: &Device, dims: &[usize], values: &[f64]) -> RawTensor {
    RawTensor::from_slice(device, dims, DType::F64, values).require_grad()
}

#[test]
fn gradient_of_a_product_is_the_other_factor() {
    let device = Device::reference().autodiff();
    let x = leaf(&device, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = x.add_scalar(1.0).mul(&x).sum_all();
    let grads = y.backward();
    assert_eq!(y.to_f64s().unwrap(), [112.0]);
    assert_eq!(grads.get(&x).unwrap().to_f64s().unwrap(), [3.0, 5.0, 7.0, 9.0, 11.0, 13.0]);
}
