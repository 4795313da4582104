//! Printing of values.

use std::sync::RwLock;

use kiln_tensor::{BoolStore, DType, Int, PrintOptions, Tensor, TensorData, bf16, f16, set_print_options};

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

/// The text under some options.
fn under(options: PrintOptions, data: &TensorData) -> String {
    let _options = OPTIONS.write().unwrap();
    set_print_options(options);
    let text = data.to_string();
    set_print_options(PrintOptions::default());
    text
}

#[test]
fn every_type_prints_its_values() {
    use DType::*;
    for (dtype, expected) in [
        (F64, "[1.0, 0.0, 2.0]"),
        (F32, "[1.0, 0.0, 2.0]"),
        (F16, "[1.0, 0.0, 2.0]"),
        (BF16, "[1.0, 0.0, 2.0]"),
        (Flex32, "[1.0, 0.0, 2.0]"),
        (I64, "[1, 0, 2]"),
        (I32, "[1, 0, 2]"),
        (I16, "[1, 0, 2]"),
        (I8, "[1, 0, 2]"),
        (U64, "[1, 0, 2]"),
        (U32, "[1, 0, 2]"),
        (U16, "[1, 0, 2]"),
        (U8, "[1, 0, 2]"),
        (Bool(BoolStore::Native), "[true, false, true]"),
        (Bool(BoolStore::U8), "[true, false, true]"),
    ] {
        check(TensorData::from([1.0f64, 0.0, 2.0]).convert_dtype(dtype), expected);
    }
    check(TensorData::from([i64::MIN, i64::MAX]), "[-9223372036854775808, 9223372036854775807]");
    check(TensorData::from([u64::MAX]), "[18446744073709551615]");
}

#[test]
fn options_choose_when_what_and_how_exactly_values_are_shown() {
    let options = |threshold, edge_items, precision| PrintOptions { threshold, edge_items, precision };
    let numbers = TensorData::new((0..12).map(|i| i as f32 / 3.0).collect::<Vec<_>>(), [2, 6]);
    // At the threshold everything is shown, beyond it the ends of each axis that is longer than both ends.
    assert_eq!(under(options(12, 1, Some(1)), &numbers), "[[0.0, 0.3, 0.7, 1.0, 1.3, 1.7],\n [2.0, 2.3, 2.7, 3.0, 3.3, 3.7]]");
    assert_eq!(under(options(11, 1, Some(1)), &numbers), "[[0.0, ..., 1.7],\n [2.0, ..., 3.7]]");
    assert_eq!(under(options(11, 2, Some(2)), &numbers), "[[0.00, 0.33, ..., 1.33, 1.67],\n [2.00, 2.33, ..., 3.33, 3.67]]");
    assert_eq!(under(options(11, 3, Some(0)), &numbers), "[[0, 0, 1, 1, 1, 2],\n [2, 2, 3, 3, 3, 4]]");
    let special = TensorData::from([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e30, 1.5]);
    assert_eq!(under(options(3, 2, Some(2)), &special), "[NaN, inf, ..., 1000000015047466219876688855040.00, 1.50]");
    let cube = TensorData::new((0..27).collect::<Vec<i32>>(), [3, 3, 3]);
    assert_eq!(under(options(26, 1, Some(2)), &cube), "[[[0, ..., 2],\n  ...,\n  [6, ..., 8]],\n ...,\n [[18, ..., 20],\n  ...,\n  [24, ..., 26]]]");
    check(TensorData::new(Vec::<f32>::new(), [0, 3]), "[]");
}
