//! Autodiff: the tape, the states of tensors, memory.
use kiln_ir::DType;
use kiln_tensor::raw::RawTensor;
use kiln_tensor::{Device, GradientCheckpointingStrategy, Gradients};

use crate::{check_panics, compiled, cpu, devices};

fn tensor(device: &Device, values: &[f64]) -> RawTensor {
    RawTensor::from_slice(device, &[values.len()], DType::F64, values)
}

fn grad(grads: &Gradients, x: &RawTensor) -> Vec<f64> {
    grads.get(x).expect("a gradient").to_f64s().unwrap()
}

#[test]
fn gradient_of_a_product_is_the_other_factor() {
    for device in devices() {
        let x = tensor(&device.autodiff(), &[1.0, 2.0, 3.0]).require_grad();
        let y = x.add_scalar(1.0).mul(&x).sum_all();
        let grads = y.backward();
        assert_eq!(y.to_f64s().unwrap(), [20.0]);
        assert_eq!(grad(&grads, &x), [3.0, 5.0, 7.0]);
    }
}

#[test]
fn autodiff_does_not_make_tensors_require_gradients() {
    let device = compiled().autodiff();
    let x = tensor(&device, &[1.0]);
    assert!(x.is_autodiff() && !x.is_tracked() && !x.is_require_grad());
    let y = x.clone().require_grad();
    assert!(y.is_tracked() && y.is_require_grad());
    let z = y.mul(&x);
    assert!(z.is_tracked() && !z.is_require_grad() && z.is_autodiff());
    assert!(!y.gt(&x).is_tracked(), "comparisons have no gradient");
}

#[test]
fn require_grad_needs_a_source_leaf_with_autodiff() {
    let device = compiled();
    check_panics(|| tensor(&device, &[1.0]).require_grad(), "require_grad: autodiff is off");
    let x = tensor(&device.clone().autodiff(), &[1.0]).require_grad();
    check_panics(|| x.exp().require_grad(), "require_grad: the tensor was computed");
    check_panics(|| RawTensor::zeros(&device.autodiff(), &[1], DType::I64).require_grad(), "require_grad: i64");
    assert!(x.clone().require_grad().leaf_id() == x.leaf_id(), "a leaf stays the same leaf");
}

#[test]
fn detach_cuts_and_keeps_a_leaf_a_leaf() {
    let device = compiled().autodiff();
    let x = tensor(&device, &[3.0]).require_grad();
    let cut = x.square().detach();
    assert!(!cut.is_tracked() && cut.is_autodiff());
    let other = x.clone().detach();
    assert!(other.is_require_grad() && other.leaf_id() != x.leaf_id());
    let grads = x.mul(&cut).backward();
    assert_eq!(grad(&grads, &x), [9.0]);
    assert!(!x.clone().set_require_grad(false).is_tracked());
    assert!(!x.clone().without_autodiff().is_autodiff());
    assert!(x.clone().without_autodiff().autodiff().is_autodiff());
}

#[test]
fn clones_share_the_tape_and_stay_tracked_after_the_pass() {
    let device = compiled().autodiff();
    let x = tensor(&device, &[3.0]).require_grad();
    let y = x.square();
    let twin = y.clone();
    let grads = y.backward();
    assert_eq!(grad(&grads, &x), [6.0]);
    assert!(y.is_tracked() && twin.is_tracked());
    check_panics(|| twin.backward(), "consumed by an earlier backward");
    // A fresh forward pass works again.
    assert_eq!(grad(&x.square().backward(), &x), [6.0]);
}

#[test]
fn a_part_that_was_consumed_is_not_silently_lost() {
    let device = compiled().autodiff();
    let x = tensor(&device, &[3.0]).require_grad();
    let shared = x.square();
    let (a, b) = (shared.exp(), shared.sqrt());
    let _ = a.backward();
    check_panics(|| b.backward(), "consumed by an earlier backward");
}

#[test]
fn backward_needs_a_tracked_tensor() {
    let device = compiled().autodiff();
    check_panics(|| tensor(&device, &[3.0]).backward(), "did you forget to call require_grad");
}

#[test]
fn a_leaf_is_its_own_graph() {
    let x = tensor(&compiled().autodiff(), &[3.0, 4.0]).require_grad();
    assert_eq!(grad(&x.backward(), &x), [1.0, 1.0]);
}

#[test]
fn only_reached_leaves_have_gradients() {
    let device = compiled().autodiff();
    let (x, y) = (tensor(&device, &[3.0]).require_grad(), tensor(&device, &[4.0]).require_grad());
    let mut grads = x.square().backward();
    assert!(grads.get(&y).is_none());
    assert_eq!(grads.len(), 1);
    assert!(!grads.get(&x).unwrap().is_autodiff(), "gradients are plain tensors");
    grads.replace(&x, tensor(&device, &[8.0]));
    assert_eq!(grads.remove(&x).unwrap().to_f64s().unwrap(), [8.0]);
    assert!(grads.is_empty());
    check_panics(|| grads.replace(&x, tensor(&device, &[8.0, 1.0])), "grad_replace: shapes differ");
}

#[test]
fn contributions_add_up() {
    for device in devices() {
        let device = device.autodiff();
        let x = tensor(&device, &[2.0]).require_grad();
        let y = x.mul(&x).add(&x).add(&x.mul(&x).mul(&x));
        assert_eq!(grad(&y.backward(), &x), [4.0 + 1.0 + 12.0]);
    }
}

#[test]
fn untracked_operands_of_a_concatenation_keep_their_place() {
    for device in devices() {
        let device = device.autodiff();
        let (a, c) = (tensor(&device, &[1.0]).require_grad(), tensor(&device, &[100.0, 200.0, 300.0]).require_grad());
        let b = tensor(&device, &[10.0, 20.0]);
        let weights = tensor(&device, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let grads = RawTensor::cat(&[a.clone(), b, c.clone()], 0).mul(&weights).sum_all().backward();
        assert_eq!(grad(&grads, &a), [1.0]);
        assert_eq!(grad(&grads, &c), [4.0, 5.0, 6.0]);
    }
}

#[test]
fn gradients_pass_casts() {
    for device in devices() {
        let device = device.autodiff();
        let x = RawTensor::from_slice(&device, &[2], DType::F32, &[1.0f32, 2.0]).require_grad();
        let grads = x.cast(DType::F64).mul_scalar(3.0).sum_all().backward();
        assert_eq!(grads.get(&x).unwrap().dtype(), DType::F32);
        assert_eq!(grad(&grads, &x), [3.0, 3.0]);
    }
}

#[test]
fn gradients_pass_devices() {
    let (a, b) = (compiled().autodiff(), cpu());
    let x = tensor(&a, &[3.0]).require_grad();
    let moved = x.square().to_device(&b);
    assert!(moved.is_tracked() && moved.is_autodiff() && moved.device() == b);
    let grads = moved.mul_scalar(2.0).backward();
    assert_eq!(grads.get(&x).unwrap().device(), a);
    assert_eq!(grad(&grads, &x), [12.0]);
    // The source's context decides, not the destination's.
    assert!(!tensor(&b, &[1.0]).to_device(&a).is_autodiff());
}

#[test]
fn a_backward_inside_a_backward_finishes() {
    let device = cpu().autodiff();
    let x = tensor(&device, &[2.0]).require_grad();
    let inner = tensor(&device, &[3.0]).require_grad();
    let y = x.mul_scalar(2.0);
    let g = inner.square().mul(&y.clone().detach()).backward();
    let z = y.mul(g.get(&inner).unwrap());
    assert_eq!(grad(&z.backward(), &x), [2.0 * 2.0 * 3.0 * 4.0]);
}

#[test]
fn threads_run_backward_passes_of_their_own() {
    let device = cpu().autodiff();
    let x = tensor(&device, &[1.0, 2.0, 3.0]).require_grad();
    let workers: Vec<_> = (0..4)
        .map(|t| {
            let x = x.clone();
            std::thread::spawn(move || {
                for _ in 0..20 {
                    let grads = x.square().mul_scalar(t as f64).sum_all().backward();
                    assert_eq!(grad(&grads, &x), [2.0 * t as f64, 4.0 * t as f64, 6.0 * t as f64]);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|w| w.join().unwrap());
}

#[test]
fn deep_graphs_neither_overflow_on_drop_nor_on_backward() {
    let device = cpu().autodiff();
    let x = tensor(&device, &[1.0]).require_grad();
    let deep = |n: usize| (0..n).fold(x.clone(), |y, _| y.add_scalar(1e-6));
    drop(deep(100_000));
    let y = deep(100_000);
    assert_eq!(grad(&y.backward(), &x), [1.0]);
    // Half of the graph is kept by a second handle.
    let half = deep(50_000);
    let whole = (0..50_000).fold(half.clone(), |y, _| y.neg());
    drop(whole);
    assert_eq!(grad(&half.backward(), &x), [1.0]);
}

#[test]
fn checkpointing_is_carried_by_tensors() {
    let device = compiled().gradient_checkpointing();
    let x = tensor(&device, &[2.0]).require_grad();
    assert_eq!(x.exp().gradient_checkpointing_strategy(), Some(GradientCheckpointingStrategy::Balanced));
    let y = x.clone().with_gradient_checkpointing_strategy(GradientCheckpointingStrategy::Disabled);
    assert_eq!(y.exp().gradient_checkpointing_strategy(), Some(GradientCheckpointingStrategy::Disabled));
    assert_eq!(grad(&x.exp().backward(), &x), [2f64.exp()]);
}

/// One step of a small network; returns the new parameters.
fn step(device: &Device, w: RawTensor, read: bool) -> RawTensor {
    let w = w.autodiff().require_grad();
    let x = RawTensor::full(device, &[8, 16], DType::F64, 0.1.into());
    let y = x.matmul(&w).gelu().softmax(1).square().sum_all();
    let grads = y.backward();
    let next = w.clone().without_autodiff().sub(&grads.get(&w).unwrap().mul_scalar(0.1));
    drop((w, grads));
    device.flush().unwrap();
    if read {
        let _ = y.to_f64s().unwrap();
    }
    next
}

#[test]
fn memory_is_flat_over_training_steps() {
    let device = compiled();
    let mut w = RawTensor::random_normal(&device, &[16, 16], DType::F64, 0.0, 0.1);
    w.realize().unwrap();
    let one = device.memory_pool_usage().unwrap().bytes_in_use;
    for k in 0..1000 {
        w = step(&device, w, k % 3 == 0);
        assert_eq!(device.memory_pool_usage().unwrap().bytes_in_use, one, "step {k}");
    }
    // The step with its loss read, the one without, and the first numbers.
    assert!(device.trace_stats().programs <= 4, "{:?}", device.trace_stats());
}

#[test]
fn forwards_without_backward_leave_nothing_behind() {
    let device = compiled();
    let w = tensor(&device, &[0.5; 64]).autodiff().require_grad();
    let one = device.memory_pool_usage().unwrap().bytes_in_use;
    for k in 0..1000 {
        let y = w.mul(&w).exp().sum_all();
        if k % 2 == 0 {
            let _ = y.to_f64s().unwrap();
        }
        drop(y);
        assert_eq!(device.memory_pool_usage().unwrap().bytes_in_use, one, "step {k}");
    }
    device.flush().unwrap();
}

#[test]
fn what_the_rules_keep_is_freed_by_the_backward_pass() {
    let device = compiled();
    let w = tensor(&device, &[0.5; 64]).autodiff().require_grad();
    let y = w.exp().sin().exp().cos();
    y.realize().unwrap();
    let with_tape = device.memory_pool_usage().unwrap().bytes_in_use;
    assert_eq!(with_tape, 4 * 512, "w, both exponentials, y");
    let grads = y.backward();
    let g = grads.get(&w).unwrap().clone();
    drop(grads);
    g.realize().unwrap();
    let after = device.memory_pool_usage().unwrap().bytes_in_use;
    assert_eq!(after, 3 * 512, "w, y and the gradient");
}
