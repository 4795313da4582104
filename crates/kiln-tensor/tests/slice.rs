//! Slices and the `s!` macro.

use kiln_tensor::{Shape, Slice, SliceArg, SliceOps, s, shape};

use crate::check_panics;

/// The positions that a slice takes of an axis, and its output size, against a list.
#[track_caller]
fn check(slice: Slice, size: usize, expected: &[usize]) {
    let (range, step) = slice.to_range_and_step(size);
    let taken: Vec<usize> = if step > 0 { range.step_by(step as usize).collect() } else { range.rev().step_by(step.unsigned_abs()).collect() };
    assert_eq!(taken, expected, "{slice} of {size}");
    assert_eq!(slice.output_size(size), expected.len(), "{slice} of {size}");
}

#[test]
fn ranges_steps_and_negative_positions() {
    check(s![..], 3, &[0, 1, 2]);
    check(s![1..3], 5, &[1, 2]);
    check(s![1..=3], 5, &[1, 2, 3]);
    check(s![..2], 5, &[0, 1]);
    check(s![..=-2], 5, &[0, 1, 2, 3]);
    check(s![..=-1], 5, &[0, 1, 2, 3, 4]);
    check(s![-2..], 5, &[3, 4]);
    check(s![-4..-1], 5, &[1, 2, 3]);
    check(s![2], 5, &[2]);
    check(s![-1], 5, &[4]);
    check(s![-5], 5, &[0]);
    check(s![2..2], 5, &[]);
    check(Slice::new(3, Some(2), 1), 5, &[]);
    check(s![..; 2], 5, &[0, 2, 4]);
    check(s![1..; 3], 6, &[1, 4]);
    check(s![..; -1], 4, &[3, 2, 1, 0]);
    check(s![0..8; -2], 10, &[7, 5, 3, 1]);
    check(s![-3..; -2], 10, &[9, 7]);
    check(s![..], 0, &[]);
    check(s![..; -1], 0, &[]);
    check(s![0..10; 100], 10, &[0]);
}

#[test]
fn the_macro_gives_one_slice_or_an_array() {
    let one: Slice = s![0..2; -1];
    assert_eq!(one, Slice::new(0, Some(2), -1));
    let n = 3usize;
    let several: [Slice; 4] = s![0..n, n - 1, ..; 2, -2..];
    assert_eq!(several, [Slice::new(0, Some(3), 1), Slice::index(2), Slice::new(0, None, 2), Slice::new(-2, None, 1)]);
    let trailing: [Slice; 2] = s![1, 2..3; 4,];
    assert_eq!(trailing, [Slice::index(1), Slice::new(2, Some(3), 4)]);
    check_panics(|| s![..; 0], "the step must not be 0");
}

#[test]
fn arguments_fill_up_with_whole_axes() {
    let shape = shape![4, 5, 6];
    let full = Slice::full();
    assert_eq!((0..2).into_slices(&shape), [s![0..2], full, full]);
    assert_eq!([0..2, 1..3].into_slices(&shape), [s![0..2], s![1..3], full]);
    assert_eq!(s![.., 1].into_slices(&shape), [full, s![1], full]);
    assert_eq!(vec![s![1]].as_slice().into_slices(&shape), [s![1], full, full]);
    assert_eq!((&vec![s![1]]).into_slices(&shape), [s![1], full, full]);
    assert_eq!(2i32.into_slices(&shape), [s![2], full, full]);
    assert_eq!(SliceOps::into_slices(shape.clone(), ..), [full; 3]);
    check_panics(|| [(); 4].map(|()| 0..1).into_slices(&shape), "4 slices given for shape [4, 5, 6] of rank 3");
    assert_eq!(SliceOps::slice(shape, &s![1.., ..; 2]).unwrap(), shape![3, 3, 6]);
    assert!(SliceOps::slice(Shape::new([2]), &s![0, 0]).is_err());
}

#[test]
fn listing_positions() {
    assert_eq!(s![2..5].into_vec(), [2, 3, 4]);
    assert_eq!(s![0..10; -3].into_vec(), [9, 6, 3, 0]);
    assert_eq!(s![4..].into_iter().take(2).collect::<Vec<_>>(), [4, 5]);
    check_panics(|| s![4..].into_vec(), "has no end");
    check_panics(|| s![..; -1].into_iter().next(), "has no end");
    assert_eq!(s![..].bound_to(4), s![0..4]);
    assert_eq!(s![1..9].bound_to(4), s![1..4]);
}

#[test]
fn text_round_trips() {
    for (text, slice) in [("..", s![..]), ("1..3", s![1..3]), ("-2..", s![-2..]), ("..4;2", s![..4; 2]), ("..;-1", s![..; -1])] {
        assert_eq!(slice.to_string(), text);
        assert_eq!(text.parse::<Slice>().unwrap(), slice, "{text}");
    }
    assert_eq!("1..=3".parse::<Slice>().unwrap(), s![1..4]);
    assert_eq!("..=-1".parse::<Slice>().unwrap(), s![..]);
    assert_eq!("-1".parse::<Slice>().unwrap(), s![-1]);
    for text in ["", "a..", "1..2;0", "1..2;x"] {
        assert!(text.parse::<Slice>().is_err(), "{text}");
    }
}

#[test]
fn out_of_range_slices_are_found() {
    assert!(s![0..5].check(5).is_ok());
    assert!(s![-5..].check(5).is_ok());
    assert!(s![0..6].check(5).is_err());
    assert!(s![-6..].check(5).is_err());
    assert!(s![6..].check(5).is_err());
    assert!(s![..-6].check(5).is_err());
}
