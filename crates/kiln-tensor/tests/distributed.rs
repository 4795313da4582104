//! Sums over devices.

use std::thread;

use kiln_tensor::distributed::{DistributedConfig, DistributedContext, ReduceOperation, all_reduce};
use kiln_tensor::{Device, Tensor};

use crate::{check_panics, compiled, cpu};

fn values(x: Tensor<1>) -> Vec<f32> {
    x.try_into_vec_as().unwrap()
}

#[test]
fn every_device_gets_the_same_sum_in_every_round() {
    let devices = vec![compiled(), compiled(), cpu()];
    let threads: Vec<_> = (0..3)
        .map(|k| {
            let devices = devices.clone();
            thread::spawn(move || {
                let own = &devices[k];
                let round = |r: usize| {
                    let x = Tensor::<1>::from_data([(k * 100 + r) as f32, 0.1 * (k + 1) as f32], own);
                    let op = if r.is_multiple_of(2) { ReduceOperation::Sum } else { ReduceOperation::Mean };
                    // The list's order is each device's own affair.
                    let mut list = devices.clone();
                    list.rotate_left(k);
                    let result = all_reduce(x, op, list).resolve();
                    assert_eq!(&result.device(), own);
                    values(result)
                };
                (0..30).map(round).collect::<Vec<_>>()
            })
        })
        .collect();
    let results: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    assert!(results[0] == results[1] && results[1] == results[2], "to the bit");
    for (r, result) in results[0].iter().enumerate() {
        let sum = 300.0 + 3.0 * r as f32;
        assert_eq!(result[0], if r % 2 == 0 { sum } else { sum / 3.0 });
    }
}

#[test]
fn one_thread_may_drive_several_devices() {
    let devices = vec![compiled(), compiled()];
    let open: Vec<_> = devices.iter().map(|d| all_reduce(Tensor::<1>::ones([2], d), ReduceOperation::Sum, devices.clone())).collect();
    for sum in open {
        assert_eq!(values(sum.clone().resolve()), [2.0, 2.0]);
        // SAFETY: every device has called.
        assert_eq!(values(unsafe { sum.assume_resolved() }), [2.0, 2.0]);
    }
}

#[test]
fn mistakes_are_named_and_leave_the_others_waiting_for_a_right_call() {
    let devices = vec![compiled(), compiled()];
    let reduce = |k: usize, n: usize| all_reduce(Tensor::<1>::ones([n], &devices[k]), ReduceOperation::Sum, devices.clone());
    let first = reduce(0, 2);
    check_panics(|| reduce(1, 3), "all_reduce: the devices' tensors differ: f32[2], f32[3]");
    reduce(1, 2);
    assert_eq!(values(first.resolve()), [2.0, 2.0]);
    check_panics(|| all_reduce(Tensor::<1>::ones([1], &compiled()), ReduceOperation::Sum, devices.clone()), "not among the devices");
    check_panics(|| all_reduce(Tensor::<1>::ones([1], &devices[0]), ReduceOperation::Sum, Vec::new()), "all_reduce: no devices");
    let twice = vec![devices[0].clone(), devices[0].clone()];
    check_panics(|| all_reduce(Tensor::<1>::ones([1], &devices[0]), ReduceOperation::Sum, twice.clone()), "named twice");
    check_panics(|| Tensor::<1>::ones([1], &devices[0]).set_distributed(1.into()), "set_distributed: the tensor retains no gradient");
}

/// The gradients of a marked and an unmarked factor on each device, which has an input of its own.
fn gradients(devices: &[Device]) -> Vec<[f32; 2]> {
    let threads: Vec<_> = devices
        .iter()
        .cloned()
        .enumerate()
        .map(|(k, device)| {
            thread::spawn(move || {
                let device = device.autodiff();
                let leaf = || Tensor::<1>::from_data([2.0], &device).require_grad();
                let (marked, own) = (leaf().set_distributed(3.into()), leaf());
                assert!(marked.is_distributed() && !own.is_distributed());
                let gradients = (marked.clone() * (k + 1) as f32 + own.clone() * 10.0).sum().backward();
                [&marked, &own].map(|leaf| leaf.grad(&gradients).unwrap().into_scalar::<f32>())
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

#[test]
fn marked_gradients_are_reduced_while_a_context_lives() {
    let devices = vec![compiled(), compiled(), compiled()];
    assert_eq!(gradients(&devices), [[1.0, 10.0], [2.0, 10.0], [3.0, 10.0]]);
    let context = DistributedContext::init(devices.clone(), DistributedConfig { all_reduce_op: ReduceOperation::Sum });
    assert_eq!(gradients(&devices), [[6.0, 10.0]; 3]);
    drop(context);
    let _context = DistributedContext::init(devices.clone(), DistributedConfig { all_reduce_op: ReduceOperation::Mean });
    assert_eq!(gradients(&devices), [[2.0, 10.0]; 3]);
}
