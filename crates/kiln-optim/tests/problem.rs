//! A model of free parameters, stepped with given gradients.

use kiln_module::module::{Module, Param, ParamId};
use kiln_optim::{GradientsParams, ModuleOptimizer};
use kiln_tensor::{Device, Tensor, TensorData};

/// A matrix and a vector.
#[derive(Module, Debug)]
pub struct Free {
    pub matrix: Param<Tensor<2>>,
    pub vector: Param<Tensor<1>>,
}

/// A device on which gradients are kept.
pub fn device() -> Device {
    Device::default().autodiff()
}

impl Free {
    /// Parameters with the given values and fixed ids.
    pub fn new(matrix: [[f32; 3]; 2], vector: [f32; 2]) -> Self {
        Self { matrix: with_id(1, Tensor::from_floats(matrix, &device())), vector: with_id(2, Tensor::from_floats(vector, &device())) }
    }

    /// All values, the matrix' first.
    pub fn values(&self) -> Vec<f32> {
        let mut values = self.matrix.val().into_data().try_to_vec::<f32>().unwrap();
        values.extend(self.vector.val().into_data().try_to_vec::<f32>().unwrap());
        values
    }
}

fn with_id<const D: usize>(id: u64, tensor: Tensor<D>) -> Param<Tensor<D>> {
    Param::initialized(ParamId::from(id), tensor.require_grad())
}

/// The matrix that the tests start from.
pub const MATRIX: [[f32; 3]; 2] = [[0.5, -1.5, 2.0], [-0.25, 1.0, -3.0]];
/// The vector that the tests start from.
pub const VECTOR: [f32; 2] = [1.25, -0.75];

/// Gradients that differ from step to step.
pub fn gradients(step: usize, model: &Free) -> GradientsParams {
    let mut gradients = GradientsParams::new();
    let value = |index: usize| ((step * 7 + index * 5 + 3) % 11) as f32 * 0.25 - 1.1;
    let matrix: Vec<f32> = (0..6).map(value).collect();
    let vector: Vec<f32> = (6..8).map(value).collect();
    let plain = Device::default();
    gradients.register(model.matrix.id, Tensor::<2>::from_data(TensorData::new(matrix, [2, 3]), &plain));
    gradients.register(model.vector.id, Tensor::<1>::from_data(TensorData::new(vector, [2]), &plain));
    gradients
}

/// The model after steps `from..to`.
pub fn stepped(optimizer: &mut ModuleOptimizer, mut model: Free, steps: std::ops::Range<usize>, lr: f64) -> Free {
    for step in steps {
        let gradients = gradients(step, &model);
        model = optimizer.step(lr, model, gradients);
    }
    model
}

/// Fails unless all values agree.
#[track_caller]
pub fn close(found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        assert!(error <= tolerance * (1.0 + expected.abs()), "value {index} is {found}, expected {expected}");
    }
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
