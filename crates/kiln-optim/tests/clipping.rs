//! Gradient clipping.

use kiln_optim::grad_clipping::{GradientClipping, GradientClippingConfig};
use kiln_optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use kiln_tensor::{Device, Tensor, TensorData};

use crate::golden;
use crate::problem::{Free, close};

#[test]
fn clipping_matches_pytorch() {
    let cases = golden::read(env!("CARGO_MANIFEST_DIR"), "optimizer.txt");
    let mut seen = 0;
    for case in cases.iter().filter(|case| case.name.starts_with("clip")) {
        let limit = case.number("limit") as f32;
        let clipping = match case.name.as_str() {
            "clip_norm" => GradientClippingConfig::Norm(limit),
            _ => GradientClippingConfig::Value(limit),
        };
        let grad = case.tensor("grad");
        let grad = Tensor::<2>::from_data(TensorData::new(grad.f32(), grad.shape.clone()), &Device::default());
        let found = clipping.init().clip_gradient(grad).into_data().try_to_vec::<f32>().unwrap();
        close(&found, &case.tensor("after").values, 1e-6);
        seen += 1;
    }
    assert_eq!(seen, 3);
}

fn step(optimizer: &mut ModuleOptimizer) -> Vec<f32> {
    let model = Free::new([[0.0; 3]; 2], [0.0; 2]);
    let mut gradients = GradientsParams::new();
    let plain = Device::default();
    gradients.register(model.matrix.id, Tensor::<2>::from_floats([[3.0, 0.0, 0.0], [0.0; 3]], &plain));
    gradients.register(model.vector.id, Tensor::<1>::from_floats([0.0, 4.0], &plain));
    optimizer.step(1.0, model, gradients).values()
}

#[test]
fn norms_are_per_parameter_or_global() {
    let each = step(&mut SgdConfig::new().with_gradient_clipping(Some(GradientClippingConfig::Norm(1.0))).init());
    assert!((each[0] + 1.0).abs() < 1e-5 && (each[7] + 1.0).abs() < 1e-5, "{each:?}");
    let global = step(&mut SgdConfig::new().init().with_global_norm_clipping(1.0));
    assert!((global[0] + 0.6).abs() < 1e-5 && (global[7] + 0.8).abs() < 1e-5, "{global:?}");
    let loose = step(&mut SgdConfig::new().init().with_global_norm_clipping(10.0));
    assert!((loose[0] + 3.0).abs() < 1e-5 && (loose[7] + 4.0).abs() < 1e-5, "{loose:?}");
}

#[test]
fn clipping_can_be_set_later() {
    let optimizer = SgdConfig::new().init();
    assert!(!optimizer.has_gradient_clipping());
    let optimizer = optimizer.with_grad_clipping(GradientClipping::Value(0.5));
    assert_eq!(optimizer.grad_clipping(), Some(&GradientClipping::Value(0.5)));
}
