//! Shapes, their arithmetic, and the arguments of shape methods.

use kiln_tensor::{
    AsIndex, BoundsError, BroadcastArgs, ExpressionError, IndexWrap, MetadataError, MovedimArgs, ReshapeArgs, Shape, calculate_matmul_output,
    ravel_index, shape, wrap_index,
};

use crate::check_panics;

#[test]
fn every_source_gives_the_same_shape() {
    let expected = shape![2, 3];
    assert_eq!(Shape::new([2, 3]), expected);
    assert_eq!(Shape::from([2i64, 3]), expected);
    assert_eq!(Shape::from(vec![2u32, 3]), expected);
    assert_eq!(Shape::from(&[2usize, 3]), expected);
    assert_eq!(Shape::from(&expected), expected);
    assert_eq!([2usize, 3].iter().collect::<Shape>(), expected);
    assert_eq!("[2, 3]".parse::<Shape>().unwrap(), expected);
    assert_eq!(" 2 ,3 ".parse::<Shape>().unwrap(), expected);
    assert_eq!("[]".parse::<Shape>().unwrap(), shape![]);
    assert_eq!(Vec::from(expected), [2, 3]);
    assert_eq!(shape![4; 3], Shape::new([4, 4, 4]));
    check_panics(|| Shape::from([-1, 3]), "size -1 at axis 0 is negative");
}

#[test]
fn parse_errors_name_the_text() {
    for text in ["", "[2", "2,x", "[2,,3]", "[-1]"] {
        let error = text.parse::<Shape>().unwrap_err();
        assert!(matches!(error, ExpressionError::ParseError { .. }), "{text}");
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
    }
}

#[test]
fn counts_and_conversions() {
    let s = shape![2, 0, 3];
    assert_eq!((s.rank(), s.num_dims(), s.num_elements()), (3, 3, 0));
    assert_eq!(shape![].num_elements(), 1);
    assert_eq!(s.dims::<3>(), [2, 0, 3]);
    check_panics(|| s.dims::<2>(), "shape [2, 0, 3] has rank 3, not 2");
    assert_eq!(shape![2, 3].flatten(), shape![6]);
    assert_eq!(shape![2, 3].into_ranges(), [0..2, 0..3]);
    assert_eq!(shape![2, 3].ravel_index(&[1, -1]), 5);
    assert_eq!(shape![1, 2, 3, 4, 5, 6].to_string(), "[1, 2, 3, 4, 5, 6]");
}

#[test]
fn flatten_merges_a_range_of_axes() {
    assert_eq!(shape![2, 3, 4].flatten_dims(0, 1), shape![6, 4]);
    assert_eq!(shape![2, 3, 4].flatten_dims(-2, -1), shape![2, 12]);
    assert_eq!(shape![2, 3, 4].flatten_dims(1, 1), shape![2, 3, 4]);
    assert_eq!(shape![].flatten_dims(0, -1), shape![1]);
    check_panics(|| shape![2, 3].flatten_dims(1, 0), "start axis 1 lies behind end axis 0: shape [2, 3]");
    check_panics(|| shape![2, 3].flatten_dims(0, 2), "axis 2 is out of range for rank 2");
}

#[test]
fn editing_axes() {
    let mut s = shape![2, 3];
    s.insert(1, 7);
    s.push(5);
    s.extend([1, 1]);
    assert_eq!(s, shape![2, 7, 3, 5, 1, 1]);
    assert_eq!(s.remove(1), 7);
    s[0] = 9;
    assert_eq!(s, shape![9, 3, 5, 1, 1]);
    assert_eq!(&s[1..3], [3, 5]);
    assert_eq!(s.clone().swapped(0, 1).unwrap(), shape![3, 9, 5, 1, 1]);
    assert_eq!(s.swapped(0, 5), Err(MetadataError::OutOfBounds { dim: 5, rank: 5 }));
}

#[test]
fn permutations_are_checked() {
    assert_eq!(shape![2, 3, 4].permuted(&[2, 0, 1]).unwrap(), shape![4, 2, 3]);
    let mut s = shape![2, 3, 4];
    assert!(s.permute(&[0, 0, 1]).is_err());
    assert!(s.permute(&[0, 1]).is_err());
    assert!(s.permute(&[0, 1, 3]).is_err());
    assert_eq!(s, shape![2, 3, 4]);
}

#[test]
fn repeat_reduce_and_cat() {
    assert_eq!(shape![2, 3].repeat(1, 0).unwrap(), shape![2, 0]);
    assert_eq!(shape![2, 3].reduce(0).unwrap(), shape![1, 3]);
    assert!(shape![2].reduce(1).is_err());
    assert_eq!(Shape::cat(&[shape![2, 3], shape![0, 3], shape![4, 3]], 0).unwrap(), shape![6, 3]);
    assert_eq!(Shape::cat(&[shape![2, 3], shape![2, 4]], 0), Err(MetadataError::IncompatibleDims { left: 3, right: 4, dim: 1 }));
    assert!(Shape::cat(&[shape![2, 3], shape![2]], 0).is_err());
    assert!(Shape::cat(&[], 0).is_err());
}

#[test]
fn broadcast_keeps_zero_sizes() {
    let check = |a: Shape, b: Shape, expected: Option<Shape>| {
        assert_eq!(a.broadcast(&b).ok(), expected, "{a} {b}");
        assert_eq!(b.broadcast(&a).ok(), expected, "{b} {a}");
    };
    check(shape![2, 0], shape![2, 1], Some(shape![2, 0]));
    check(shape![2, 3], shape![1, 3], Some(shape![2, 3]));
    check(shape![2, 3], shape![2, 2], None);
    check(shape![2, 3], shape![3], None);
    assert_eq!(Shape::broadcast_many(&[shape![1, 3], shape![2, 1], shape![1, 1]]).unwrap(), shape![2, 3]);
}

#[test]
fn expand_aligns_at_the_end() {
    assert_eq!(shape![3].expand(shape![2, 3]).unwrap(), shape![2, 3]);
    assert_eq!(shape![1].expand(shape![2, 0]).unwrap(), shape![2, 0]);
    assert!(shape![2].expand(shape![2, 3]).is_err());
    assert!(shape![1, 3].expand(shape![3]).is_err());
    let s = BroadcastArgs::<2, 3>::into_shape([4, -1, 5], &shape![2, 1]);
    assert_eq!(s, shape![4, 2, 5]);
    check_panics(|| BroadcastArgs::<2, 3>::into_shape([-1, 2, 1], &shape![2, 1]), "size -1 at axis 0");
}

#[test]
fn reshape_resolves_minus_one_and_zero() {
    let check = |from: Shape, to: &[i32], expected: Shape| {
        assert_eq!(from.reshape(to).unwrap(), expected, "{from} to {to:?}");
    };
    check(shape![2, 3, 4], &[-1], shape![24]);
    check(shape![2, 3, 4], &[0, -1], shape![2, 12]);
    check(shape![2, 3, 4], &[4, 0, 2], shape![4, 3, 2]);
    check(shape![2, 3], &[6, 1, 1], shape![6, 1, 1]);
    check(shape![1], &[], shape![]);
    check(shape![0, 3], &[0, 3], shape![0, 3]);
    check(shape![2, 0], &[0], shape![0]);
    check(shape![2, 0], &[0, 5], shape![0, 5]);
    check(shape![2, 0], &[2, -1], shape![2, 0]);
    for (from, to) in [(shape![2, 3], [-1, -1]), (shape![2, 3], [-2, 3]), (shape![2, 3], [4, -1]), (shape![2, 3], [4, 2]), (shape![0, 3], [0, -1])] {
        let message = from.reshape(to).unwrap_err().to_string();
        assert!(message.contains(&from.to_string()), "{message}");
    }
    assert!(shape![2].reshape([2, 0]).is_err());
    assert_eq!(ReshapeArgs::<2>::into_shape::<2>([3, -1], shape![2, 3]), shape![3, 2]);
    check_panics(|| ReshapeArgs::<2>::into_shape::<2>(shape![4, 2], shape![2, 3]), "element counts differ: from [2, 3] (6) to [4, 2] (8)");
}

#[test]
fn indices_count_from_the_end() {
    assert_eq!((-3i8).try_dim_index(3), Ok(0));
    assert_eq!(3u64.try_dim_index(3), Err(BoundsError::Dim { index: 3, rank: 3 }));
    assert_eq!((-4i64).try_dim_index(3), Err(BoundsError::Dim { index: -4, rank: 3 }));
    assert_eq!((&-1i32).expect_dim_index(0), 0);
    assert!(IndexWrap::dim().try_wrap(0, 0).is_err());
    assert_eq!(IndexWrap::index().expect_wrap(-2isize, 5), 3);
    check_panics(|| 5.expect_elem_index(5), "index 5 is out of range for size 5");
    check_panics(|| 0.expect_elem_index(0), "the size is 0");
    assert_eq!(wrap_index(-7, 5), 3);
    assert_eq!(wrap_index(3, 0), 0);
    assert_eq!(ravel_index(&[2, 1], &[3, 4]), 9);
    check_panics(|| ravel_index(&[1], &[3, 4]), "1 indices given for shape [3, 4]");
}

#[test]
fn movedim_arguments_are_resolved_and_checked() {
    assert_eq!(MovedimArgs::into_dim_vec::<3>(-1), [2]);
    assert_eq!(MovedimArgs::into_dim_vec::<3>(vec![0usize, 2]), [0, 2]);
    check_panics(|| MovedimArgs::into_dim_vec::<3>(vec![2, -1]), "axis 2 is named twice in [2, -1]");
}

#[test]
fn matmul_output_broadcasts_batches() {
    let out = |a: Shape, b: Shape| calculate_matmul_output(&a, &b);
    assert_eq!(out(shape![2, 3], shape![3, 4]).unwrap(), shape![2, 4]);
    assert_eq!(out(shape![2, 0], shape![0, 3]).unwrap(), shape![2, 3]);
    assert_eq!(out(shape![5, 1, 2, 3], shape![1, 6, 3, 4]).unwrap(), shape![5, 6, 2, 4]);
    assert!(out(shape![2, 3], shape![4, 5]).is_err());
    assert!(out(shape![2, 2, 3], shape![3, 3, 4]).is_err());
    assert!(out(shape![3], shape![3]).is_err());
}

#[test]
fn serialized_as_a_plain_sequence() {
    let text = serde_json::to_string(&shape![2, 3]).unwrap();
    assert_eq!(text, "[2,3]");
    assert_eq!(serde_json::from_str::<Shape>(&text).unwrap(), shape![2, 3]);
}
