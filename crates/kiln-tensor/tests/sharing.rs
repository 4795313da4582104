//! Large tensors on the CPU share memory with what they are made from and with what is read from them, and nobody sees anybody else's writes.
use kiln_tensor::{Bytes, DType, Device, Tensor, TensorData};

use crate::cpu;

/// Elements of a tensor that is large enough to share.
const LEN: usize = 1 << 19;

/// Data of floats whose memory is shared.
fn shared(value: f32) -> TensorData {
    TensorData::from_bytes(Bytes::from_elems(vec![value; LEN]).shared(), [LEN], DType::F32)
}

#[test]
fn a_tensor_is_made_of_shared_memory_without_a_copy() {
    let data = shared(2.0);
    let x = Tensor::<1>::from_data(data.clone(), &cpu());
    let read = x.to_data();
    assert!(core::ptr::eq(read.as_bytes(), data.as_bytes()));
    assert_eq!((x * 3).sum().into_scalar::<f32>(), 6.0 * LEN as f32);
}

#[test]
fn an_update_in_place_leaves_shared_memory_as_it_was() {
    let data = shared(1.0);
    let device = cpu();
    let mut x = Tensor::<1>::from_data(data.clone(), &device);
    for step in 1..4 {
        x = x + 1;
        device.sync().unwrap();
        assert_eq!(x.to_data().as_slice::<f32>().unwrap()[LEN - 1], 1.0 + step as f32);
    }
    assert!(data.as_slice::<f32>().unwrap().iter().all(|v| *v == 1.0));
}

#[test]
fn what_was_read_keeps_its_values_when_the_tensor_is_updated() {
    let device: Device = cpu();
    let mut x = Tensor::<1>::full([LEN], 1.0, &device);
    let first = x.to_data();
    x = x + 1;
    let second = x.to_data();
    x = x * 2;
    device.sync().unwrap();
    let all = |data: &TensorData, value: f32| data.as_slice::<f32>().unwrap().iter().all(|v| *v == value);
    assert!(all(&first, 1.0) && all(&second, 2.0) && all(&x.to_data(), 4.0));
}

#[test]
fn writing_what_was_read_leaves_the_tensor_as_it_was() {
    let x = Tensor::<1>::full([LEN], 1.0, &cpu());
    let mut data = x.to_data();
    data.as_mut_slice::<f32>().unwrap()[0] = 9.0;
    assert_eq!((x.clone().max().into_scalar::<f32>(), data.as_slice::<f32>().unwrap()[0]), (1.0, 9.0));
    let mut values = x.to_data().try_into_vec::<f32>().unwrap();
    values[1] = 8.0;
    assert_eq!(x.max().into_scalar::<f32>(), 1.0);
}

#[test]
fn memory_between_elements_and_small_memory_is_copied() {
    let bytes = Bytes::from_elems(vec![0u8; 4 * LEN + 8]).shared();
    let start = bytes.as_ptr().align_offset(4) + 1;
    let between = bytes.view(start, start + 4 * LEN).unwrap();
    let x = Tensor::<1>::from_data(TensorData::from_bytes(between, [LEN], DType::F32), &cpu());
    assert_eq!(x.sum().into_scalar::<f32>(), 0.0);
    let small = TensorData::from_bytes(Bytes::from_elems(vec![1f32; 8]).shared(), [8], DType::F32);
    let x = Tensor::<1>::from_data(small.clone(), &cpu());
    assert!(!core::ptr::eq(x.to_data().as_bytes(), small.as_bytes()));
    x.to_data().assert_eq(&small, true);
}

#[test]
fn an_update_runs_in_place_again_once_what_was_read_is_gone() {
    let device = cpu();
    let mut x = Tensor::<1>::full([LEN], 1.0, &device);
    device.sync().unwrap();
    let address = |x: &Tensor<1>| x.to_data().as_bytes().as_ptr();
    let first = address(&x);
    x = x + 1;
    device.sync().unwrap();
    assert_eq!(address(&x), first);
    let held = x.to_data();
    x = x + 1;
    device.sync().unwrap();
    assert_ne!(address(&x), first);
    assert_eq!(held.as_slice::<f32>().unwrap()[0], 2.0);
}
