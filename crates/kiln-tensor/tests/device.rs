//! Devices: equality, autodiff flags, settings, seeds.
use kiln_ir::DType;
use kiln_tensor::raw::RawTensor;
use kiln_tensor::{Device, DeviceError, DeviceType, FloatDType, GradientCheckpointingStrategy, IntDType};

use crate::{compiled, devices};

#[test]
fn equality_ignores_autodiff() {
    let device = compiled();
    assert_eq!(device, device.clone().autodiff());
    assert_eq!(device, device.clone().gradient_checkpointing());
    assert_ne!(device, compiled());
}

#[test]
fn autodiff_flags_are_set_and_taken_back() {
    let device = compiled();
    assert!(!device.is_autodiff() && device.gradient_checkpointing_strategy().is_none());
    let tracking = device.clone().autodiff();
    assert_eq!(tracking.gradient_checkpointing_strategy(), Some(GradientCheckpointingStrategy::Disabled));
    let sparing = device.gradient_checkpointing();
    assert_eq!(sparing.gradient_checkpointing_strategy(), Some(GradientCheckpointingStrategy::Balanced));
    assert!(!sparing.inner().is_autodiff());
}

#[test]
fn settings_are_fixed_by_the_first_use() {
    let mut device = compiled();
    device.configure((FloatDType::F16, IntDType::I32)).unwrap();
    assert_eq!(device.settings().float_dtype, FloatDType::F16);
    assert!(matches!(device.configure(FloatDType::F64), Err(DeviceError::AlreadyInitialized { .. })));
    let mut other = compiled();
    other.locked_settings();
    assert!(other.configure(IntDType::U8).is_err());
    assert_eq!(other.settings().int_dtype, IntDType::I32);
}

#[test]
fn filters_pick_kinds() {
    let all = Device::enumerate(kiln_tensor::DeviceFilter::new());
    assert!(all.contains(&Device::reference()));
    let some = Device::enumerate(DeviceType::Reference).into_vec();
    assert_eq!(some, [Device::reference()]);
}

#[test]
fn a_seed_fixes_every_later_draw_on_every_device() {
    let draw = |device: &Device| {
        let uniform = RawTensor::random_uniform(device, &[5, 70], DType::F32, -1.0, 1.0).to_f64s().unwrap();
        let ints = RawTensor::random_int(device, &[100], DType::I32, -3, 4).to_f64s().unwrap();
        let coins = RawTensor::random_bernoulli(device, &[100], 0.3).to_f64s().unwrap();
        (uniform, ints, coins)
    };
    // The reference device is shared with other tests, which may draw in between.
    let own = [compiled(), crate::cpu()];
    let results: Vec<_> = own
        .iter()
        .map(|device| {
            device.seed(7);
            let first = draw(device);
            assert_ne!(first, draw(device));
            device.seed(7);
            assert_eq!(first, draw(device));
            first
        })
        .collect();
    assert_eq!(results[0], results[1]);
    let (uniform, ints, coins) = &results[0];
    assert!(uniform.iter().all(|u| (-1.0..1.0).contains(u)));
    assert!((-3..4).all(|v| ints.contains(&(v as f64))) && ints.iter().all(|v| (-3.0..4.0).contains(v)));
    assert!((10..50).contains(&coins.iter().filter(|c| **c == 1.0).count()));
}

#[test]
fn normal_draws_have_their_moments() {
    for device in devices() {
        let x = RawTensor::random_normal(&device, &[4000], DType::F64, 2.0, 3.0).to_f64s().unwrap();
        let mean = x.iter().sum::<f64>() / 4000.0;
        let var = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 4000.0;
        assert!((mean - 2.0).abs() < 0.25 && (var.sqrt() - 3.0).abs() < 0.2, "{mean} {var}");
    }
}

#[test]
fn wide_integer_ranges_reach_both_ends() {
    let device = compiled();
    let x = RawTensor::random_int(&device, &[2000], DType::I64, -(1 << 40), 1 << 40).to_f64s().unwrap();
    let limit = (1u64 << 40) as f64;
    assert!(x.iter().all(|v| (-limit..limit).contains(v)));
    assert!(x.iter().any(|v| *v < -0.9 * limit) && x.iter().any(|v| *v > 0.9 * limit));
}

#[test]
fn rounding_never_leaves_a_range_of_uniform_numbers() {
    let device = crate::cpu();
    // In 16 bits a draw in 4,096 rounds up to 1; a third of the draws of the last range does in 32 bits.
    let ranges = [(0.0, 1.0), (1.0, 2.0), (-3.0, -1.0), (0.1, 0.3), (1.0, 1.0 + 1.5 / (1u64 << 23) as f64)];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for (low, high) in ranges {
            let x = RawTensor::random_uniform(&device, &[1 << 17], dtype, low, high).to_f64s().unwrap();
            let outside = x.iter().filter(|v| !(low..high).contains(*v)).count();
            assert_eq!(outside, 0, "{dtype} in {low}..{high}: {:?}", x.iter().find(|v| !(low..high).contains(*v)));
            let mean = x.iter().sum::<f64>() / x.len() as f64;
            if high - low > 0.1 {
                assert!((mean - (low + high) / 2.0).abs() < 0.01, "{dtype} in {low}..{high}: mean {mean}");
            }
        }
    }
}

#[test]
fn making_a_tensor_fixes_the_settings_whatever_its_type() {
    let mut device = compiled();
    // Asking and failing fix nothing.
    assert_eq!(device.settings().float_dtype, FloatDType::F32);
    let quantized = kiln_tensor::DType::QFloat(kiln_tensor::quantization::QuantScheme::default());
    assert!(!device.supports_dtype(quantized));
    let x = kiln_tensor::Tensor::<1>::from_data([1.0f64], (&device, kiln_tensor::DType::F64));
    assert!(matches!(device.configure(FloatDType::F64), Err(DeviceError::AlreadyInitialized { .. })));
    assert_eq!((x.dtype(), device.settings().float_dtype), (kiln_tensor::DType::F64, FloatDType::F32));
    // The settings belong to the device, not to the handle.
    let mut device = compiled();
    let mut other = device.clone().autodiff();
    device.configure((FloatDType::F64, IntDType::U8)).unwrap();
    assert_eq!(other.settings(), device.settings());
    assert!(other.configure(FloatDType::F16).is_err());
    let floats = kiln_tensor::Tensor::<1>::zeros([1], &other);
    let ints = kiln_tensor::Tensor::<1, kiln_tensor::Int>::arange(0..2, &other);
    assert_eq!((floats.dtype(), ints.dtype()), (kiln_tensor::DType::F64, kiln_tensor::DType::U8));
}

#[test]
fn only_allocators_of_pages_report_pages() {
    let device = crate::cpu();
    let before = device.memory_pool_usage().expect("the CPU counts its bytes");
    let x = kiln_tensor::Tensor::<1>::ones([1000], &device);
    device.sync().unwrap();
    let after = device.memory_pool_usage().unwrap();
    assert!(after.number_allocs > before.number_allocs && after.bytes_reserved >= 4000);
    assert!(device.memory_pool_report().is_none());
    drop(x);
}

#[test]
fn the_environment_chooses_the_default_device() {
    // Another process, because the variable is read once.
    let program = std::env::current_exe().unwrap();
    let told = |name: &str| {
        let mut command = std::process::Command::new(&program);
        let command = command.args(["--exact", "device::tell_the_default_device", "--nocapture"]).env("BURN_DEVICE", name);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    for (name, device) in [("reference", "reference"), ("Reference:0", "reference")] {
        assert!(told(name).contains(&format!("the default device is {device}\n")), "{name}: {}", told(name));
    }
    if cfg!(feature = "cpu") {
        assert!(told("flex").contains("the default device is cpu\n") && told("CPU").contains("the default device is cpu\n"));
    }
    for name in ["abacus", "reference:7", "reference:x"] {
        assert!(told(name).contains("no default device"), "{name}: {}", told(name));
    }
}

/// Prints what the test above looks for; alone it only sees that there is a default device.
#[test]
fn tell_the_default_device() {
    match std::panic::catch_unwind(Device::default) {
        Ok(device) => println!("the default device is {device:?}"),
        Err(_) => {
            println!("no default device");
            assert!(std::env::var_os("BURN_DEVICE").is_some());
        }
    }
}

#[test]
fn flushing_starts_what_is_recorded_and_waits_for_nothing() {
    let (device, counts) = crate::counting::counting();
    let x = kiln_tensor::Tensor::<1>::ones([3], &device) + 1.0;
    assert_eq!((counts.runs(), counts.syncs()), (0, 0), "recording runs nothing");
    device.flush().unwrap();
    assert_eq!((counts.runs(), counts.syncs()), (1, 0), "a flush runs and does not wait");
    device.sync().unwrap();
    assert_eq!((counts.runs(), counts.syncs()), (1, 1), "a sync waits");
    assert_eq!(x.try_into_vec_as::<f32>().unwrap(), [2.0; 3]);
    assert_eq!(counts.runs(), 1, "what was run is not run again");
}

#[test]
fn a_cleanup_forgets_programs_and_keeps_tensors() {
    for device in [compiled(), crate::cpu()] {
        let step = |x: &kiln_tensor::Tensor<1>| {
            let y = x.clone().exp() * 2.0;
            device.sync().unwrap();
            y
        };
        let x = kiln_tensor::Tensor::<1>::ones([5], &device) * 0.0;
        device.sync().unwrap();
        let before = step(&x);
        let compiles = || device.trace_stats().compiles;
        let known = compiles();
        drop(step(&x));
        let pending = x.clone() + 3.0;
        assert_eq!(compiles(), known, "a known program is not compiled again");
        device.memory_cleanup();
        let cleaned = compiles();
        let after = step(&x);
        assert_eq!(compiles(), cleaned + 1, "a cleanup forgets programs");
        for (y, value) in [(before, 2.0), (after, 2.0), (pending, 3.0), (x.clone(), 0.0)] {
            assert_eq!(y.try_into_vec_as::<f32>().unwrap(), [value; 5]);
        }
    }
}

#[test]
fn what_a_device_supports_is_what_it_computes() {
    use kiln_tensor::DType as D;
    let all = [
        D::F64,
        D::F32,
        D::Flex32,
        D::F16,
        D::BF16,
        D::I64,
        D::I32,
        D::I16,
        D::I8,
        D::U64,
        D::U32,
        D::U16,
        D::U8,
        D::Bool(kiln_tensor::BoolStore::Native),
    ];
    for device in [compiled(), crate::cpu(), Device::reference()] {
        for dtype in all {
            assert!(device.supports_dtype(dtype), "{dtype:?} on {device:?}");
            let data = kiln_tensor::TensorData::from([1.0f32, 0.0]).convert_dtype(dtype);
            let read = match dtype {
                D::F64 | D::F32 | D::Flex32 | D::F16 | D::BF16 => {
                    kiln_tensor::Tensor::<1>::from_data(data.clone(), (&device, dtype)).abs().into_data()
                }
                D::Bool(_) => {
                    kiln_tensor::Tensor::<1, kiln_tensor::Bool>::from_data(data.clone(), (&device, dtype)).bool_not().bool_not().into_data()
                }
                _ => kiln_tensor::Tensor::<1, kiln_tensor::Int>::from_data(data.clone(), (&device, dtype)).abs().into_data(),
            };
            assert_eq!((read.dtype(), read.iter::<f64>().collect::<Vec<_>>()), (dtype, vec![1.0, 0.0]), "{device:?}");
        }
    }
}
