//! Printing of values.

use std::sync::RwLock;

use kiln_tensor::{BoolStore, DType, Int, Tensor, TensorData, bf16, f16};

use crate::counting::counting;

/// Held while options are in force: by many readers, or by the one test that sets them.
pub static OPTIONS: RwLock<()> = RwLock::new(());

#[track_caller]
fn check(data: TensorData, expected: &str) {
    let _options = OPTIONS.read().unwrap();
    assert_eq!(data.to_string(), expected);
}

#[test]
fn values_are_nested_by_axes() {
    check(TensorData::from([1.0f32, 2.5]), "[1.0, 2.5]");
    check(TensorData::from([[1, 2, 3], [4, 5, 6]]), "[[1, 2, 3],\n [4, 5, 6]]");
    check(TensorData::from([[[1u8], [2]], [[3], [4]]]), "[[[1],\n  [2]],\n [[3],\n  [4]]]");
    check(TensorData::new(vec![7i64], [0usize; 0]), "7");
    check(TensorData::new(Vec::<f32>::new(), [0]), "[]");
    check(TensorData::new(Vec::<f32>::new(), [2, 0]), "[[],\n []]");
    check(TensorData::from([true, false]), "[true, false]");
    check(TensorData::from([true, false]).convert_dtype(DType::Bool(BoolStore::U32)), "[true, false]");
}

#[test]
fn floats_show_what_tells_them_apart() {
    check(TensorData::from([0.1f64, f64::NAN, f64::INFINITY, -0.0, 1e-9, 1e20]), "[0.1, NaN, inf, -0.0, 1e-9, 1e20]");
    check(TensorData::from([f16::from_f32(0.1), f16::from_f32(2.0)]), "[0.099975586, 2.0]");
    check(TensorData::from([bf16::from_f32(0.5)]), "[0.5]");
}

#[test]
fn precision_of_the_format_applies_to_floats_only() {
    let _options = OPTIONS.read().unwrap();
    let data = TensorData::from([[1.0f32, 2.0 / 3.0]]);
    assert_eq!(format!("{data:.2}"), "[[1.00, 0.67]]");
    let data = TensorData::from([[1, 2]]);
    assert_eq!(format!("{data:.2}"), "[[1, 2]]");
}

#[test]
fn many_values_are_summarised_at_the_ends_of_each_axis() {
    let data = TensorData::new((0..1001).collect::<Vec<i32>>(), [1001]);
    check(data, "[0, 1, 2, ..., 998, 999, 1000]");
    let data = TensorData::new((0..1000).collect::<Vec<i32>>(), [1000]);
    let text = {
        let _options = OPTIONS.read().unwrap();
        data.to_string()
    };
    assert_eq!(text.matches(", ").count(), 999);
    let data = TensorData::new((0..1200).collect::<Vec<i32>>(), [300, 4]);
    check(
        data,
        "[[0, 1, 2, 3],\n [4, 5, 6, 7],\n [8, 9, 10, 11],\n ...,\n [1188, 1189, 1190, 1191],\n [1192, 1193, 1194, 1195],\n \
         [1196, 1197, 1198, 1199]]",
    );
}

#[test]
fn only_what_is_shown_of_a_large_tensor_is_read() {
    let _options = OPTIONS.read().unwrap();
    let (device, counts) = counting();
    let x = Tensor::<1, Int>::arange(0..60_000, &device).reshape([300, 4, 50]);
    let text = x.to_string();
    assert!(counts.downloaded() <= 6 * 4 * 6 * 8, "{} bytes were read", counts.downloaded());
    assert!(text.contains(&x.to_data().to_string()), "the same as what the whole data prints");
    assert!(text.contains("shape:  [300, 4, 50],"));
    let small = Tensor::<1, Int>::arange(0..10, &device);
    assert!(small.to_string().contains("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"));
}
