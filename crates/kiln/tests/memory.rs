//! Memory: dropped tensors are freed and loops of any length run in constant memory.
//!
//! Tests run in threads of one process and share the device's memory, so these count in a process of their own: the test starts itself again with one test to run.

use kiln::nn::{Linear, LinearConfig};
use kiln::optim::{AdamConfig, GradientsParams};
use kiln::prelude::*;
use std::process::Command;

/// Runs `body` in a process where nothing else uses the device. `name` is the test's path.
fn alone(name: &str, body: impl FnOnce()) {
    const MARK: &str = "KILN_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let program = std::env::current_exe().expect("the test program has a path");
    let output = Command::new(program).args(["--exact", name, "--nocapture"]).env(MARK, "1").output().expect("it starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the test {name} did not run alone:\n{text}");
}

fn bytes(device: &Device) -> u64 {
    device.sync().expect("the CPU does not fail");
    device.memory_pool_usage().expect("the CPU runtime counts its bytes").bytes_in_use
}

#[test]
fn a_dropped_tensor_is_freed() {
    alone("memory::a_dropped_tensor_is_freed", || {
        let device = Device::default();
        let before = bytes(&device);
        let x = Tensor::<2>::ones([512, 512], &device) * 2.0;
        let held = bytes(&device);
        assert!(held >= before + 512 * 512 * 4, "a tensor of 1 MiB shows as {} bytes", held - before);
        drop(x);
        assert_eq!(bytes(&device), before);
    });
}

#[test]
fn a_training_loop_runs_in_constant_memory() {
    alone("memory::a_training_loop_runs_in_constant_memory", || {
        let device = Device::default().autodiff();
        let mut model: Linear = LinearConfig::new(64, 32).init(&device);
        let mut optimizer = AdamConfig::new().init();
        let x = Tensor::<2>::ones([16, 64], &device);
        let mut steady = 0;
        for step in 0..1000 {
            let loss = model.forward(x.clone()).square().mean();
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(1e-3, model, gradients);
            drop(loss);
            if step == 10 {
                steady = bytes(&device);
            }
        }
        assert_eq!(bytes(&device), steady);
    });
}

#[test]
fn forwards_without_backward_leave_nothing_behind() {
    alone("memory::forwards_without_backward_leave_nothing_behind", || {
        let device = Device::default().autodiff();
        let model: Linear = LinearConfig::new(64, 32).init(&device);
        let x = Tensor::<2>::ones([16, 64], &device);
        let forward = || model.forward(x.clone()).square().mean().into_scalar::<f32>();
        let first = forward();
        let before = bytes(&device);
        for _ in 0..1000 {
            assert_eq!(forward(), first);
        }
        assert_eq!(bytes(&device), before);
    });
}
