//! Traces: liveness, donation, the program cache, run-time scalars, threads, bounds, failures.
use std::sync::{Arc, Barrier};

use kiln_ir::DType;
use kiln_tensor::raw::{RawTensor, SliceRange};
use kiln_tensor::{Device, HostRuntime};

use crate::{check_panics, compiled, cpu, devices};

fn tensor(device: &Device, values: &[f32]) -> RawTensor {
    RawTensor::from_slice(device, &[values.len()], DType::F32, values)
}

fn values(x: &RawTensor) -> Vec<f64> {
    x.to_f64s().unwrap()
}

#[test]
fn nothing_runs_before_it_is_asked_for() {
    let device = compiled();
    let x = tensor(&device, &[1.0, 2.0]).add_scalar(1.0);
    assert_eq!(device.trace_stats().runs, 0);
    assert!(!x.is_ready());
    assert_eq!(values(&x), [2.0, 3.0]);
    assert!(x.is_ready());
    assert_eq!(device.trace_stats().runs, 1);
    assert_eq!(values(&x), [2.0, 3.0]);
    assert_eq!(device.trace_stats().runs, 1);
}

#[test]
fn equal_traces_are_compiled_once() {
    for device in [compiled(), cpu()] {
        for step in 0..10 {
            let x = tensor(&device, &[step as f32, 2.0]);
            let y = x.mul(&x).add_scalar(step as f64).sub_scalar(0.5);
            assert_eq!(values(&y), [(step * step) as f64 + step as f64 - 0.5, 4.0 + step as f64 - 0.5]);
        }
        let stats = device.trace_stats();
        assert_eq!((stats.compiles, stats.hits, stats.programs), (1, 9, 1));
    }
}

#[test]
fn other_structures_are_other_programs() {
    let device = compiled();
    let x = tensor(&device, &[1.0, 2.0, 3.0, 4.0]);
    let _ = values(&x.add_scalar(1.0));
    let _ = values(&x.sub_scalar(1.0));
    let _ = values(&x.reshape(&[2, 2]).add_scalar(1.0));
    let _ = values(&x.cast(DType::F64).add_scalar(1.0));
    let _ = values(&x.powi_scalar(2));
    assert_eq!(device.trace_stats().compiles, 5);
}

#[test]
fn which_results_are_held_is_part_of_the_key() {
    let device = compiled();
    let x = tensor(&device, &[1.0]);
    for _ in 0..3 {
        let y = x.exp();
        let z = y.log();
        drop(y);
        let _ = values(&z);
    }
    assert_eq!(device.trace_stats().compiles, 1);
    for _ in 0..3 {
        let y = x.exp();
        let z = y.log();
        let _ = values(&z);
        assert!(y.is_ready());
    }
    assert_eq!(device.trace_stats().compiles, 2);
}

#[test]
fn a_result_without_owner_is_never_materialised() {
    let device = compiled();
    let x = RawTensor::zeros(&device, &[1000], DType::F32);
    x.realize().unwrap();
    let before = device.memory_pool_usage().unwrap();
    let y = x.add_scalar(1.0).mul_scalar(2.0).exp();
    y.realize().unwrap();
    let after = device.memory_pool_usage().unwrap();
    assert_eq!(after.bytes_in_use - before.bytes_in_use, 4000);
    assert_eq!(after.number_allocs - before.number_allocs, 1);
}

#[test]
fn a_trace_of_dead_results_runs_nothing() {
    let device = compiled();
    for _ in 0..10 {
        drop(tensor(&device, &[1.0]).exp());
    }
    device.sync().unwrap();
    assert_eq!(device.trace_stats().runs, 0);
    assert_eq!(device.memory_pool_usage().unwrap().bytes_in_use, 0);
}

#[test]
fn an_input_without_owner_is_donated() {
    let device = compiled();
    let mut x = RawTensor::zeros(&device, &[1000], DType::F32);
    x.realize().unwrap();
    for _ in 0..3 {
        let before = device.memory_pool_usage().unwrap();
        x = x.add_scalar(1.0);
        x.realize().unwrap();
        let after = device.memory_pool_usage().unwrap();
        assert_eq!(after.bytes_in_use, before.bytes_in_use);
        assert_eq!(after.number_allocs, before.number_allocs, "the step wrote in place");
    }
    assert_eq!(values(&x)[..2], [3.0, 3.0]);
}

#[test]
fn an_input_with_an_owner_is_kept() {
    for device in devices() {
        let x = tensor(&device, &[1.0, 2.0]);
        let kept = x.clone();
        let y = x.add_scalar(1.0);
        drop(x);
        assert_eq!(values(&y), [2.0, 3.0]);
        assert_eq!(values(&kept), [1.0, 2.0]);
    }
}

#[test]
fn a_reshape_shares_memory_and_is_not_donated() {
    for device in [compiled(), cpu()] {
        let x = tensor(&device, &[1.0, 2.0, 3.0, 4.0]);
        let view = x.reshape(&[2, 2]);
        view.realize().unwrap();
        let y = view.add_scalar(1.0);
        drop(view);
        assert_eq!(values(&y), [2.0, 3.0, 4.0, 5.0]);
        assert_eq!(values(&x), [1.0, 2.0, 3.0, 4.0], "a view's memory belongs to its source too");
    }
}

#[test]
fn run_time_scalars_make_no_new_programs() {
    for device in [compiled(), cpu()] {
        for step in 0..5 {
            let x = tensor(&device, &[1.0, 2.0]);
            let full = RawTensor::full(&device, &[2], DType::F32, (step as f64).into());
            let filled = x.mask_fill(&x.gt_scalar(1.5), (step as f64).into());
            let noise = RawTensor::random_uniform(&device, &[2], DType::F32, 0.0, step as f64 + 2.0).mul_scalar(0.0);
            let y = filled.add(&full).add(&noise).pad_constant(&[(1, 0)], (-step as f64).into());
            assert_eq!(values(&y), [-step as f64, 1.0 + step as f64, 2.0 * step as f64]);
        }
        assert_eq!(device.trace_stats().compiles, 1);
    }
}

#[test]
fn constants_are_part_of_the_program() {
    let device = compiled();
    for _ in 0..2 {
        let _ = values(&RawTensor::zeros(&device, &[2], DType::F32));
        let _ = values(&RawTensor::ones(&device, &[2], DType::F32));
    }
    assert_eq!(device.trace_stats().compiles, 2);
}

#[test]
fn a_moving_slice_start_is_generalised_once() {
    for device in [compiled(), cpu()] {
        let x = tensor(&device, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        for start in 0..6 {
            let y = x.narrow(0, start, 2).add(&x.narrow(0, 1, 2));
            assert_eq!(values(&y), [start as f64 + 1.0, start as f64 + 3.0]);
        }
        // One program with both starts built in, one that reads the moving one.
        assert_eq!(device.trace_stats().compiles, 2);
        for (first, second) in [(3, 4), (2, 5), (0, 1)] {
            let y = x.narrow(0, first, 2).add(&x.narrow(0, second, 2));
            assert_eq!(values(&y), [(first + second) as f64, (first + second) as f64 + 2.0]);
        }
        assert_eq!(device.trace_stats().compiles, 3, "the other start moved too, once");
    }
}

#[test]
fn a_cache_that_is_written_at_a_moving_place_is_updated_in_place() {
    let device = compiled();
    let mut cache = RawTensor::zeros(&device, &[64, 8], DType::F32);
    cache.realize().unwrap();
    let mut allocations = 0;
    for position in 0..10 {
        let row = RawTensor::full(&device, &[1, 8], DType::F32, (position as f64).into());
        let before = device.memory_pool_usage().unwrap().number_allocs;
        cache = cache.slice_assign(&[SliceRange::new(0, position, 1)], &row);
        drop(row);
        cache.realize().unwrap();
        allocations += device.memory_pool_usage().unwrap().number_allocs - before;
    }
    assert_eq!(device.trace_stats().compiles, 3, "zeros, then a built-in start, then an argument");
    assert_eq!(allocations, 0);
    assert_eq!(values(&cache.narrow(1, 0, 1).narrow(0, 0, 10)), (0..10).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn tensors_cross_threads() {
    for device in devices() {
        let x = tensor(&device, &[1.0, 2.0]).add_scalar(1.0);
        let there = {
            let x = x.clone();
            std::thread::spawn(move || x.mul_scalar(10.0)).join().unwrap()
        };
        // Pending in a thread that has ended.
        assert_eq!(values(&there.add(&x)), [22.0, 33.0]);
        let device = device.clone();
        let made = std::thread::spawn(move || tensor(&device, &[5.0]).exp().log()).join().unwrap();
        assert!((values(&made)[0] - 5.0).abs() < 1e-5);
    }
}

#[test]
fn many_threads_share_parameters() {
    for device in [compiled(), cpu()] {
        let w = tensor(&device, &[2.0; 64]).add_scalar(1.0);
        let barrier = Arc::new(Barrier::new(4));
        let workers: Vec<_> = (0..4)
            .map(|t| {
                let (w, device, barrier) = (w.clone(), device.clone(), barrier.clone());
                std::thread::spawn(move || {
                    barrier.wait();
                    for step in 0..50 {
                        let x = RawTensor::full(&device, &[64], DType::F32, ((t * 50 + step) as f64).into());
                        let y = x.mul(&w).add(&w).sum(&[0]);
                        assert_eq!(values(&y), [64.0 * 3.0 * (t * 50 + step + 1) as f64]);
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|w| w.join().unwrap());
        // A fresh trace, its repetition on each thread, and whatever the first reads raced for.
        assert!(device.trace_stats().programs <= 4, "{:?}", device.trace_stats());
    }
}

#[test]
fn two_threads_may_wait_for_each_other() {
    let device = compiled();
    let barrier = Arc::new(Barrier::new(2));
    let (to_b, from_a) = std::sync::mpsc::channel();
    let (to_a, from_b) = std::sync::mpsc::channel();
    let side = |to: std::sync::mpsc::Sender<RawTensor>, from: std::sync::mpsc::Receiver<RawTensor>| {
        let (device, barrier) = (device.clone(), barrier.clone());
        std::thread::spawn(move || {
            for k in 0..50 {
                let mine = tensor(&device, &[k as f32]).add_scalar(1.0);
                to.send(mine.clone()).unwrap();
                let theirs = from.recv().unwrap();
                barrier.wait();
                assert_eq!(values(&mine.add(&theirs)), [2.0 * (k as f64 + 1.0)]);
            }
        })
    };
    let (a, b) = (side(to_b, from_b), side(to_a, from_a));
    a.join().unwrap();
    b.join().unwrap();
}

#[test]
fn cells_of_ended_threads_are_used_again() {
    let device = compiled();
    for _ in 0..200 {
        let device = device.clone();
        std::thread::spawn(move || values(&tensor(&device, &[1.0]).add_scalar(1.0))).join().unwrap();
    }
    assert_eq!(device.trace_stats().compiles, 1);
    assert_eq!(device.memory_pool_usage().unwrap().bytes_in_use, 0);
}

#[test]
fn endless_traces_are_cut() {
    let device = cpu();
    let mut x = tensor(&device, &[0.0; 16]);
    let mut longest = 0;
    for _ in 0..50_000 {
        x = x.add_scalar(1.0);
        longest = longest.max(device.pending_ops());
    }
    assert!(longest < 10_000, "{longest}");
    assert_eq!(values(&x), [50_000.0; 16]);
    let stats = device.trace_stats();
    assert!(stats.programs <= 3, "{stats:?}");
}

#[test]
fn traces_that_hold_much_are_cut() {
    let device = compiled();
    let block = vec![1u8; 8 << 20];
    let mut sum = RawTensor::zeros(&device, &[1, 1], DType::I64);
    for _ in 0..80 {
        let x = RawTensor::from_bytes(&device, &[1 << 10, 8 << 10], DType::U8, &block);
        // Only a corner is needed, but the trace keeps the whole block alive.
        sum = sum.add(&x.narrow(0, 0, 1).narrow(1, 0, 1).cast(DType::I64));
        assert!(device.memory_pool_usage().unwrap().bytes_in_use < 320 << 20);
    }
    assert_eq!(values(&sum), [80.0]);
}

#[test]
fn the_cache_forgets_the_longest_unused_program() {
    let device = compiled();
    device.set_program_bound(8);
    let x = tensor(&device, &[1.0; 40]);
    for n in 1..40 {
        let _ = values(&x.narrow(0, 0, n).exp());
        let _ = values(&x.add_scalar(1.0));
        assert!(device.trace_stats().programs <= 8);
    }
    // The one that is used again and again stays.
    assert_eq!(device.trace_stats().compiles, 40);
    let _ = values(&x.narrow(0, 0, 1).exp());
    assert_eq!(device.trace_stats().compiles, 41);
}

#[test]
fn a_failed_run_is_an_error_where_its_results_are_read() {
    for device in devices() {
        let x = tensor(&device, &[1.0, 2.0]);
        let index = RawTensor::from_slice(&device, &[1], DType::I64, &[7i64]);
        let bad = x.gather(0, &index);
        let later = bad.add_scalar(1.0);
        assert!(bad.to_bytes().is_err());
        let message = later.to_bytes().unwrap_err().to_string();
        assert!(message.contains("range") || message.contains('7'), "{message}");
        // What is computed from a failed tensor fails too, and nothing else does.
        assert!(bad.mul_scalar(2.0).to_bytes().is_err());
        assert_eq!(values(&x.mul_scalar(2.0)), [2.0, 4.0]);
        assert!(device.sync().is_ok());
    }
}

#[test]
fn a_failed_run_is_an_error_of_flush() {
    let device = compiled();
    let x = tensor(&device, &[1.0, 2.0]);
    let index = RawTensor::from_slice(&device, &[1], DType::I64, &[-9i64]);
    let bad = x.gather(0, &index);
    assert!(device.flush().is_err());
    assert!(bad.to_bytes().is_err());
    assert!(device.flush().is_ok());
}

#[test]
fn an_error_of_a_cut_trace_is_reported_by_sync() {
    let device = compiled();
    let x = tensor(&device, &[1.0, 2.0]);
    let index = RawTensor::from_slice(&device, &[1], DType::I64, &[2i64]);
    let bad = x.gather(0, &index);
    let mut y = x.clone();
    for _ in 0..9000 {
        y = y.add_scalar(1.0);
    }
    assert!(bad.is_ready() || bad.to_bytes().is_err());
    assert!(device.sync().is_err());
    assert!(device.sync().is_ok());
}

#[test]
fn memory_is_flat_over_a_thousand_steps() {
    let device = compiled();
    let mut w = tensor(&device, &[1.0; 256]);
    let mut peak = 0;
    for step in 0..1000 {
        let x = tensor(&device, &[0.5; 256]);
        let y = w.mul(&x).sum_all();
        w = w.sub(&x.mul_scalar(1e-3));
        device.flush().unwrap();
        let _ = values(&y);
        let used = device.memory_pool_usage().unwrap().bytes_in_use;
        if step == 10 {
            peak = used;
        }
        assert!(step < 10 || used <= peak, "step {step}: {used} bytes, {peak} before");
    }
}

#[test]
fn dropping_tensors_frees_them() {
    let runtime = Arc::new(HostRuntime::new());
    let device = Device::with_runtime("compiled", runtime);
    let x = tensor(&device, &[1.0; 100]);
    let y = x.exp();
    y.realize().unwrap();
    assert_eq!(device.memory_pool_usage().unwrap().bytes_in_use, 800);
    drop(x);
    assert_eq!(device.memory_pool_usage().unwrap().bytes_in_use, 400);
    drop(y);
    assert_eq!(device.memory_pool_usage().unwrap().bytes_in_use, 0);
}

#[test]
fn devices_do_not_mix() {
    let (a, b) = (compiled(), compiled());
    let (x, y) = (tensor(&a, &[1.0]), tensor(&b, &[2.0]));
    check_panics(|| x.add(&y), "add: devices differ");
    assert_eq!(values(&x.add(&y.to_device(&a))), [3.0]);
}

#[test]
fn replays_equal_the_first_run() {
    for device in devices() {
        let step = || {
            let x = RawTensor::iota(&device, &[7, 5], DType::F32, 1).mul_scalar(0.3);
            let y = x.softmax(1).matmul(&x.transpose()).sum(&[0]);
            values(&y)
        };
        let first = step();
        for _ in 0..3 {
            assert_eq!(step(), first);
        }
    }
}

#[test]
fn what_nobody_holds_leaves_a_full_trace_without_being_compiled() {
    let device = compiled();
    let x = tensor(&device, &[1.0, 2.0]);
    // A chain that lives through every bound, beside results that are dropped at once: slices with starts of their own, several results, random numbers, other dtypes.
    let mut kept = tensor(&device, &[0.5, -0.5]);
    let four = tensor(&device, &[1.0, 2.0, 4.0, 8.0]);
    let mut longest = 0;
    for n in 0..40_000 {
        let y = x.add(&x).mul_scalar(n as f64);
        match n % 4_000 {
            0 => kept = kept.add(&x).mul_scalar(0.5),
            1_000 => kept = kept.add(&four.slice(&[SliceRange::new(0, n / 4_000 % 3, 2)])),
            2_000 => drop(y.cast(DType::F64).sort(0, false)),
            _ => drop(y),
        }
        longest = longest.max(device.pending_ops());
    }
    let stats = device.trace_stats();
    assert_eq!((stats.runs, stats.compiles), (0, 0));
    assert!(longest <= 1 << 13, "{longest} nodes");
    let mut expected = [0.5, -0.5];
    for n in 0..10 {
        let from = [1.0, 2.0, 4.0, 8.0];
        expected = [0, 1].map(|i| (expected[i] + [1.0, 2.0][i]) * 0.5 + from[n % 3 + i]);
    }
    assert_eq!(values(&kept), expected);
    assert_eq!(values(&x), [1.0, 2.0]);
}

#[test]
fn a_full_trace_that_is_wanted_runs() {
    let device = compiled();
    let x = tensor(&device, &[1.0]);
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = y.add(&x);
    }
    assert!(device.trace_stats().runs >= 2);
    assert_eq!(values(&y), [20_001.0]);
}

#[test]
fn inputs_that_only_dropped_results_read_are_let_go() {
    let device = compiled();
    let kept = tensor(&device, &[1.0]).add_scalar(1.0);
    for n in 0..9_000 {
        let x = tensor(&device, &[n as f32; 256]);
        drop(x.add(&x));
    }
    assert!(device.memory_pool_usage().unwrap().bytes_in_use < 8_500 << 10, "{:?}", device.memory_pool_usage());
    assert_eq!(values(&kept), [2.0]);
}
