//! Tensors of golden cases, and comparison of results and gradients with them.

use kiln_module::module::Param;
use kiln_tensor::{Bool, Device, Gradients, Int, Tensor, TensorData};

use crate::golden::{self, Case, Golden};

/// How far values may be from PyTorch's, relative and absolute.
pub const TOLERANCE: f64 = 2e-5;

/// A device on which gradients are kept.
pub fn device() -> Device {
    Device::default().autodiff()
}

/// The cases of a file with the given name.
pub fn cases(file: &str, name: &str) -> Vec<Case> {
    let cases = golden::read(env!("CARGO_MANIFEST_DIR"), file);
    let cases: Vec<Case> = cases.into_iter().filter(|case| case.name == name).collect();
    assert!(!cases.is_empty(), "{file} has no case {name}");
    cases
}

fn float<const D: usize>(golden: &Golden, device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(golden.f32(), golden.shape.clone()), device)
}

/// A float tensor that keeps its gradient.
pub fn leaf<const D: usize>(case: &Case, name: &str) -> Tensor<D> {
    float(case.tensor(name), &device()).require_grad()
}

/// A float tensor without gradient.
pub fn constant<const D: usize>(case: &Case, name: &str) -> Tensor<D> {
    float(case.tensor(name), &device())
}

/// An int tensor.
pub fn int<const D: usize>(case: &Case, name: &str) -> Tensor<D, Int> {
    let golden = case.tensor(name);
    Tensor::from_data(TensorData::new(golden.i64(), golden.shape.clone()), &device())
}

/// A mask.
pub fn mask<const D: usize>(case: &Case, name: &str) -> Option<Tensor<D, Bool>> {
    let golden = case.get(name)?;
    Some(Tensor::from_data(TensorData::new(golden.bool(), golden.shape.clone()), &device()))
}

/// A parameter.
pub fn param<const D: usize>(case: &Case, name: &str) -> Param<Tensor<D>> {
    Param::from_tensor(constant(case, name))
}

/// Compares a result.
#[track_caller]
pub fn same<const D: usize>(case: &Case, name: &str, tensor: Tensor<D>) {
    let shape = tensor.dims();
    let values = tensor.into_data().try_to_vec::<f32>().expect("results are f32");
    let what = format!("{} {name}", case.name);
    case.tensor(name).assert_close(&what, &shape, &values, TOLERANCE);
}

/// Compares the result `y`, and gives the gradients of `sum(y * dy)`.
#[track_caller]
pub fn backward<const D: usize>(case: &Case, y: Tensor<D>) -> Gradients {
    same(case, "y", y.clone());
    (y * constant::<D>(case, "dy")).sum().backward()
}

/// Compares the gradient of a tensor.
#[track_caller]
pub fn same_gradient<const D: usize>(case: &Case, name: &str, tensor: &Tensor<D>, gradients: &Gradients) {
    let gradient = tensor.grad(gradients);
    let gradient = gradient.unwrap_or_else(|| panic!("{}: {name} has no gradient", case.name));
    same(case, &format!("d_{name}"), gradient);
}

/// The message that `call` panics with.
#[track_caller]
pub fn panic_of<T>(call: impl FnOnce() -> T) -> String {
    let payload = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
        Ok(_) => panic!("a panic was expected"),
        Err(payload) => payload,
    };
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => (*payload.downcast::<&str>().expect("a message")).into(),
    }
}
