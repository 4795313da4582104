//! Tensor data: construction, conversion, views, assertions, bytes and serialization.

use kiln_tensor::{
    BoolStore, Bytes, DType, DataError, Distribution, Element, ElementComparison, ElementConversion, ElementEq, FloatDType, IntDType, Scalar,
    TensorData, Tolerance, bf16, cast::ToElement, f16, flex32, shape,
};
use rand::{SeedableRng, rngs::StdRng};

use crate::check_panics;

#[test]
fn arrays_give_shape_and_type() {
    let data = TensorData::from([[[[[1.0f32; 2]; 3]; 1]; 4]; 2]);
    assert_eq!(data.shape(), &shape![2, 4, 1, 3, 2]);
    assert_eq!(data.dtype(), DType::F32);
    assert_eq!(TensorData::from([1usize, 2]).dtype(), DType::I64);
    assert_eq!(TensorData::from([7usize, 8].as_slice()).dtype(), DType::I64);
    assert_eq!(TensorData::from([true].as_slice()).dtype(), DType::Bool(BoolStore::Native));
    let empty = TensorData::from([[0.5f64; 0]; 3]);
    assert_eq!((empty.shape(), empty.num_elements()), (&shape![3, 0], 0));
    check_panics(|| TensorData::new(vec![1, 2, 3], [2, 2]), "shape [2, 2] needs 4 values, found 3");
}

/// The same numbers in a type of data, which must come back in every other type by the rules of element conversion.
#[test]
fn every_pair_of_types_converts_by_the_element_rules() {
    /// Converts data of `S` to `T` in every way there is, against single elements.
    fn pair<S: Element, T: Element>() {
        let numbers = [0.0, 1.0, -1.0, 2.7, -2.7, 127.0, 300.0, -40000.0, 1e10, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let source: Vec<S> = numbers.iter().map(|x| x.elem()).collect();
        let expected: Vec<T> = source.iter().map(|x| x.elem()).collect();
        let data = TensorData::new(source, [3, 4]);
        let same = |values: &[T]| values.iter().zip(&expected).all(|(a, b)| ElementEq::eq(a, b)) && values.len() == 12;
        assert!(same(&data.try_to_vec_as::<T>().unwrap()), "{} to {}", S::dtype().name(), T::dtype().name());
        assert!(same(&data.iter::<T>().collect::<Vec<_>>()));
        assert!(same(&data.clone().try_into_vec_as::<T>().unwrap()));
        let converted = data.clone().convert::<T>();
        assert_eq!((converted.dtype(), converted.shape()), (T::dtype(), data.shape()));
        assert!(same(converted.as_slice::<T>().unwrap()));
    }
    fn from<S: Element>() {
        pair::<S, f64>();
        pair::<S, f32>();
        pair::<S, flex32>();
        pair::<S, f16>();
        pair::<S, bf16>();
        pair::<S, i64>();
        pair::<S, i32>();
        pair::<S, i16>();
        pair::<S, i8>();
        pair::<S, u64>();
        pair::<S, u32>();
        pair::<S, u16>();
        pair::<S, u8>();
        pair::<S, bool>();
    }
    from::<f64>();
    from::<f32>();
    from::<flex32>();
    from::<f16>();
    from::<bf16>();
    from::<i64>();
    from::<i32>();
    from::<i16>();
    from::<i8>();
    from::<u64>();
    from::<u32>();
    from::<u16>();
    from::<u8>();
    from::<bool>();
}

#[test]
fn floats_to_integers_truncate_and_saturate() {
    assert_eq!(2.9f32.elem::<i32>(), 2);
    assert_eq!((-2.9f32).elem::<i32>(), -2);
    assert_eq!((-2.9f32).elem::<u8>(), 0);
    assert_eq!(1e30f64.elem::<i64>(), i64::MAX);
    assert_eq!(f32::NEG_INFINITY.elem::<i16>(), i16::MIN);
    assert_eq!(f16::NAN.elem::<i8>(), 0);
    assert_eq!(f16::from_f32(300.0).elem::<i8>(), 127);
    assert_eq!(u64::MAX.elem::<u64>(), u64::MAX);
    assert_eq!(i64::MAX.elem::<i64>(), i64::MAX);
    assert_eq!((-1i32).elem::<u8>(), 255);
    assert!(f32::NAN.elem::<bool>() && 0.1f64.elem::<bool>() && !(-0.0f32).elem::<bool>());
    assert_eq!(true.elem::<f16>(), f16::ONE);
    assert_eq!(70000.0f32.elem::<f16>(), f16::INFINITY);
    assert_eq!(u64::MAX.to_f64(), u64::MAX as f64);
}

#[test]
fn half_floats_round_to_nearest_even_from_every_width() {
    // The sticky part is below single precision: rounding in two steps would give the wrong neighbour.
    let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    assert_eq!(x.elem::<f16>().to_f64(), 1.0 + 2f64.powi(-10));
    let y = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
    assert_eq!(y.elem::<bf16>().to_f64(), 1.0 + 2f64.powi(-7));
    assert_eq!(2049i32.elem::<f16>().to_f32(), 2048.0);
}

#[test]
fn booleans_are_read_from_every_store() {
    let data = TensorData::from([true, false, true]);
    for store in [BoolStore::U8, BoolStore::U32, BoolStore::Native] {
        let stored = data.clone().convert_dtype(store.into());
        assert_eq!(stored.as_bytes().len(), 3 * stored.dtype().size());
        assert_eq!(stored.try_to_vec_as::<bool>().unwrap(), [true, false, true]);
        assert_eq!(stored.iter::<i32>().collect::<Vec<_>>(), [1, 0, 1]);
        stored.convert::<bool>().assert_eq(&data, true);
    }
    let any = TensorData::from_bytes_vec(vec![2, 0, 255], [3], DType::Bool(BoolStore::U8));
    assert_eq!(any.iter::<bool>().collect::<Vec<_>>(), [true, false, true]);
    assert!(matches!(any.as_slice::<bool>(), Err(DataError::InvalidRepresentation(_))));
}

#[test]
fn reading_as_another_type_is_an_error() {
    let data = TensorData::from([1.0f32, 2.0]);
    let expected = DataError::DTypeMismatch { expected: DType::F64, actual: DType::F32 };
    assert_eq!(data.try_to_vec::<f64>().unwrap_err(), expected);
    assert_eq!(data.as_slice::<f64>().unwrap_err(), expected);
    assert_eq!(data.clone().try_into_vec::<f64>().unwrap_err(), expected);
    assert_eq!(data.try_view::<f64>().unwrap_err(), expected);
    assert_eq!(data.try_to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn byte_lengths_are_checked() {
    let error = TensorData::try_from_bytes_vec(vec![0; 7], [2], DType::F32).unwrap_err();
    assert_eq!(error, DataError::InvalidByteLength { shape: shape![2], dtype: DType::F32, len: 7 });
    assert_eq!(error.to_string(), "shape [2] of f32 needs 8 bytes, found 7");
    // The product of the sizes overflows.
    let huge = [usize::MAX, 2];
    assert!(TensorData::try_from_bytes_vec(vec![], huge, DType::F32).is_err());
    check_panics(|| TensorData::from_bytes(Bytes::from_bytes_vec(vec![1]), [1], DType::I16), "needs 2 bytes, found 1");
    let mut data = TensorData::from([1u8, 2]);
    TensorData::with_bytes_mut([&mut data], |mut bytes| bytes[0][1] = 9);
    assert_eq!(data.as_slice::<u8>().unwrap(), [1, 9]);
    check_panics(|| TensorData::with_bytes_mut([&mut data], |mut bytes| bytes[0].extend_from_byte_slice(&[1])), "changed from 2 to 3 bytes");
}

#[test]
fn values_can_be_borrowed_at_any_offset_of_the_source() {
    let source: Vec<u8> = (0..41).collect();
    for offset in 0..9 {
        let part = source[offset..offset + 32].to_vec();
        let data = TensorData::from_bytes_vec(part, [4], DType::I64);
        assert_eq!(data.as_slice::<i64>().unwrap().len(), 4);
        let shared = Bytes::from_bytes_vec(source.clone()).shared();
        let data = TensorData::from_bytes(shared.view(offset, offset + 32).unwrap(), [4], DType::I64);
        assert_eq!(data.as_slice::<i64>().unwrap()[0].to_le_bytes()[0] as usize, offset);
    }
}

#[test]
fn views_index_elements() {
    let mut data = TensorData::from([[1, 2, 3], [4, 5, 6]]);
    assert_eq!(data.view::<i32>()[[1, 2]], 6);
    assert_eq!(data.view::<i32>()[[-2, -3]], 1);
    data.mut_view::<i32>()[[0, 1]] = 7;
    assert_eq!(data.view::<i32>()[&[0usize, 1][..]], 7);
    check_panics(|| data.view::<i32>()[[0, 3]], "index 3 is out of range for size 3");
    check_panics(|| data.view::<f32>().as_slice().len(), "the data holds i32, not f32");
}

#[test]
fn full_converts_the_value() {
    assert_eq!(TensorData::full_dtype([2], 2.5, DType::I8).as_slice::<i8>().unwrap(), [2, 2]);
    assert_eq!(TensorData::full_dtype([1], 3, DType::BF16).iter::<f32>().next(), Some(3.0));
    let flags = TensorData::full_dtype([2], true, DType::Bool(BoolStore::U32));
    assert_eq!(flags.as_bytes().len(), 8);
    assert_eq!(TensorData::ones::<f16, _>([2]).iter::<f32>().sum::<f32>(), 2.0);
    assert_eq!(TensorData::zeros::<u16, _>([2, 0]).num_elements(), 0);
}

#[test]
fn equality_assertions() {
    let a = TensorData::from([1.0f32, f32::NAN, f32::INFINITY]);
    a.assert_eq(&a.clone(), true);
    a.assert_eq(&TensorData::from([1.0f64, f64::NAN, f64::INFINITY]), false);
    check_panics(|| a.assert_eq(&TensorData::from([1.0f64, 2.0, 3.0]), true), "data types differ");
    check_panics(|| a.assert_eq(&TensorData::from([1.0f32, 0.0, f32::INFINITY]), true), "1 of 3\n  position 1: NaN != 0");
    check_panics(|| a.assert_eq(&TensorData::from([[1.0f32, f32::NAN, f32::INFINITY]]), true), "shapes differ: left [3], right [1, 3]");
}

#[test]
fn approximate_assertions() {
    let a = TensorData::from([1.0f32, 100.0, f32::NAN]);
    let b = TensorData::from([1.0005f32, 100.5, f32::NAN]);
    a.assert_approx_eq::<f32>(&b, Tolerance::default());
    check_panics(|| a.assert_approx_eq::<f32>(&b, Tolerance::strict()), "2 of 3");
    check_panics(|| a.assert_approx_eq::<f32>(&b, Tolerance::absolute(1e-3)), "1 of 3");
    a.assert_approx_eq::<f64>(&b.convert::<f64>(), Tolerance::rel_abs(0.01, 0.0));
}

#[test]
fn tolerances() {
    let relative = Tolerance::<f32>::relative(0.01);
    assert!(relative.approx_eq(f32::INFINITY, f32::INFINITY));
    assert!(!relative.approx_eq(f32::INFINITY, 1.0));
    assert!(!relative.approx_eq(f32::NAN, f32::NAN));
    assert!(!relative.approx_eq(0.0, 1e-20));
    assert!(Tolerance::<f32>::absolute(1e-3).approx_eq(0.0, 9e-4));
    // The sum of the two overflows f16, but their difference is large.
    let half = Tolerance::<f16>::relative(0.01);
    assert!(!half.approx_eq(f16::from_f32(60000.0), f16::from_f32(40000.0)));
    let only_half = Tolerance::<f32>::strict().set_half_precision_absolute(1.0);
    assert!(!only_half.approx_eq(1.0, 1.5));
    let single = only_half.set_single_precision_absolute(1.0);
    assert!(single.approx_eq(1.0, 1.5));
    assert!(Tolerance::<f64>::strict().set_double_precision_relative(0.5).approx_eq(1.0, 1.5));
    check_panics(|| Tolerance::<f32>::relative(1.5), "outside of 0..=1");
    check_panics(|| Tolerance::<f32>::absolute(-1.0), "is negative");
}

#[test]
fn range_assertions() {
    let data = TensorData::from([0.0f32, 0.5]);
    data.assert_within_range(0.0f32..1.0);
    data.assert_within_range_inclusive(0.0f32..=0.5);
    check_panics(|| data.assert_within_range(0.0f32..0.5), "value 0.5 at position 1 is outside of 0..0.5");
    check_panics(|| TensorData::from([f32::NAN]).assert_within_range(0.0f32..1.0), "value NaN");
}

#[test]
fn order_and_equality_of_elements() {
    use std::cmp::Ordering::{Equal, Greater, Less};
    assert_eq!(ElementComparison::cmp(&f32::NAN, &f32::INFINITY), Greater);
    assert_eq!(ElementComparison::cmp(&1.0f32, &-f32::NAN), Less);
    assert_eq!(ElementComparison::cmp(&f16::NAN, &f16::NAN), Equal);
    assert_eq!(ElementComparison::cmp(&false, &true), Less);
    assert!(ElementEq::eq(&f64::NAN, &f64::NAN) && ElementEq::eq(&0.0, &-0.0));
}

#[test]
fn random_values_follow_the_distribution() {
    let mut rng = StdRng::seed_from_u64(7);
    let n = 100_000;
    let ints = TensorData::random::<i32, _, _>([n], Distribution::Uniform(0.0, 5.0), &mut rng);
    let mut seen = [0usize; 5];
    ints.iter::<u8>().for_each(|i| seen[usize::from(i)] += 1);
    assert!(seen.iter().all(|count| (19_000..21_000).contains(count)), "{seen:?}");
    let floats = TensorData::random::<f16, _, _>([n], Distribution::Default, &mut rng);
    floats.assert_within_range(f16::ZERO..f16::ONE);
    let normal = TensorData::random::<f64, _, _>([n], Distribution::Normal(3.0, 2.0), &mut rng);
    let mean = normal.iter::<f64>().sum::<f64>() / n as f64;
    let var = normal.iter::<f64>().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
    assert!((mean - 3.0).abs() < 0.03 && (var - 4.0).abs() < 0.08, "{mean} {var}");
    let coins = TensorData::random::<bool, _, _>([n], Distribution::Bernoulli(0.2), &mut rng);
    let heads = coins.iter::<u32>().sum::<u32>();
    assert!((19_000..21_000).contains(&heads), "{heads}");
    check_panics(|| TensorData::random::<f32, _, _>([1], Distribution::Bernoulli(1.5), &mut rng), "probability 1.5");
    check_panics(|| TensorData::random::<f32, _, _>([1], Distribution::Uniform(1.0, 1.0), &mut rng), "range 1..1 is empty");
}

#[test]
fn scalars_keep_the_class_of_the_type() {
    assert!(matches!(Scalar::new(2.7f32, &DType::I32), Scalar::Int(2)));
    assert!(matches!(Scalar::new(-1, &DType::U8), Scalar::UInt(u64::MAX)));
    assert!(matches!(Scalar::new(2, &DType::Bool(BoolStore::U8)), Scalar::Bool(true)));
    assert!(matches!(Scalar::new(2, &DType::F16), Scalar::Float(x) if x == 2.0));
    assert!(matches!(Scalar::from(3usize), Scalar::UInt(3)));
    assert!(matches!(Scalar::Float(4.0).try_as_integer(), Some(Scalar::Int(4))));
    assert!(Scalar::Float(4.5).try_as_integer().is_none());
    assert!(Scalar::Float(f64::INFINITY).try_as_integer().is_none());
}

#[test]
fn bytes_keep_memory_and_alignment() {
    let elems = vec![1.5f64, 2.5];
    let at = elems.as_ptr().cast::<u8>();
    let bytes = Bytes::from_elems(elems);
    assert_eq!((bytes.as_ptr(), bytes.align(), bytes.len()), (at, 8, 16));
    let bytes = bytes.try_into_vec::<f32>().unwrap_err();
    let elems = bytes.try_into_vec::<f64>().unwrap();
    assert_eq!(elems.as_ptr().cast::<u8>(), at);
    let shared = Bytes::from_elems(elems).shared();
    let mut other = shared.clone();
    assert_eq!(shared.as_ptr(), other.as_ptr());
    other[0] ^= 1;
    assert_ne!(shared, other);
    assert_eq!(shared.view(8, 16).unwrap()[..], shared[8..]);
    assert!(shared.view(8, 17).is_err());
    let mut grown = Bytes::from_elems(vec![1u32]);
    grown.extend_from_byte_slice(&[2, 0, 0, 0]);
    assert_eq!(grown.align(), 4);
    grown.extend_from_byte_slice_aligned(&[3, 0, 0, 0], 8);
    assert_eq!((grown.align(), &grown[..]), (8, &[1u8, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0][..]));
    assert!(Bytes::from_bytes_vec(vec![2u8]).try_into_vec::<bool>().is_err());
}

#[test]
fn serialization_checks_the_length() {
    let data = TensorData::from([[1u8, 2], [3, 4]]);
    let text = serde_json::to_string(&data).unwrap();
    assert_eq!(text, r#"{"bytes":[1,2,3,4],"shape":[2,2],"dtype":"U8"}"#);
    serde_json::from_str::<TensorData>(&text).unwrap().assert_eq(&data, true);
    let short = text.replace("[2,2]", "[2,3]");
    let error = serde_json::from_str::<TensorData>(&short).unwrap_err().to_string();
    assert!(error.contains("shape [2, 3] of u8 needs 6 bytes, found 4"), "{error}");
    let flags = serde_json::to_string(&TensorData::from([true])).unwrap();
    assert!(flags.ends_with(r#""dtype":{"Bool":"Native"}}"#), "{flags}");
}

#[test]
fn dtype_sizes_names_and_limits() {
    for (dtype, size, name) in [
        (DType::F64, 8, "f64"),
        (DType::Flex32, 4, "flex32"),
        (DType::BF16, 2, "bf16"),
        (DType::U8, 1, "u8"),
        (DType::Bool(BoolStore::U32), 4, "bool"),
    ] {
        assert_eq!((dtype.size(), dtype.name()), (size, name));
    }
    assert_eq!(DType::F16.finfo().unwrap().max, 65504.0);
    assert_eq!(FloatDType::F32.finfo().epsilon, f64::from(f32::EPSILON));
    assert!(DType::I8.finfo().is_none());
    check_panics(|| FloatDType::from(DType::I32), "expected a float dtype, found I32");
    check_panics(|| IntDType::from(DType::F32), "expected an integer dtype, found F32");
    check_panics(|| BoolStore::from(DType::F32), "expected a bool dtype, found F32");
    assert_eq!(kiln_ir::DType::from(DType::Flex32), kiln_ir::DType::F32);
    for dtype in kiln_ir::DType::ALL {
        assert_eq!(kiln_ir::DType::from(DType::from(dtype)), dtype);
        assert_eq!(DType::from(dtype).size(), dtype.size());
    }
}
