//! Sorting, the largest elements, and one-hot classes.

use super::Tensor;
use super::kind::{Int, Ordered};
use super::reduction::indices;
use crate::raw::RawTensor;
use crate::shape::{AsIndex, axis_of};

impl<const D: usize, K: Ordered> Tensor<D, K> {
    /// Elements in ascending order along an axis. The order of equal ones stays; NaN comes last.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([3, 1, 2], &Device::default());
    /// assert_eq!(x.sort(0).try_to_vec_as::<i32>().unwrap(), [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn sort<I: AsIndex>(self, dim: I) -> Self {
        self.sort_by(dim, false).0
    }

    /// Elements in descending order along an axis. The order of equal ones stays; NaN comes first.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([3, 1, 2], &Device::default());
    /// assert_eq!(x.sort_descending(0).try_to_vec_as::<i32>().unwrap(), [3, 2, 1]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn sort_descending<I: AsIndex>(self, dim: I) -> Self {
        self.sort_by(dim, true).0
    }

    /// Elements in ascending order along an axis, and where they were.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([3, 1, 2], &Device::default());
    /// let (values, indices) = x.sort_with_indices(0);
    /// assert_eq!(values.try_to_vec_as::<i32>().unwrap(), [1, 2, 3]);
    /// assert_eq!(indices.try_to_vec_as::<i32>().unwrap(), [1, 2, 0]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn sort_with_indices<I: AsIndex>(self, dim: I) -> (Self, Tensor<D, Int>) {
        self.sort_by(dim, false)
    }

    /// Elements in descending order along an axis, and where they were.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([3, 1, 2], &Device::default());
    /// let (_, indices) = x.sort_descending_with_indices(0);
    /// assert_eq!(indices.try_to_vec_as::<i32>().unwrap(), [0, 2, 1]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn sort_descending_with_indices<I: AsIndex>(self, dim: I) -> (Self, Tensor<D, Int>) {
        self.sort_by(dim, true)
    }

    /// Where the elements in ascending order are along an axis.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([30, 10, 20], &Device::default());
    /// assert_eq!(x.argsort(0).try_to_vec_as::<i32>().unwrap(), [1, 2, 0]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn argsort<I: AsIndex>(self, dim: I) -> Tensor<D, Int> {
        self.sort_by(dim, false).1
    }

    /// Where the elements in descending order are along an axis.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([30, 10, 20], &Device::default());
    /// assert_eq!(x.argsort_descending(0).try_to_vec_as::<i32>().unwrap(), [0, 2, 1]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn argsort_descending<I: AsIndex>(self, dim: I) -> Tensor<D, Int> {
        self.sort_by(dim, true).1
    }

    /// The `k` largest elements along an axis, in descending order.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[12, -2, 3], [5, 3, 6]], &Device::default());
    /// assert_eq!(x.topk(2, 1).try_to_vec_as::<i32>().unwrap(), [12, 3, 6, 5]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or has fewer than `k` elements.
    #[track_caller]
    pub fn topk<I: AsIndex>(self, k: usize, dim: I) -> Self {
        self.topk_with_indices(k, dim).0
    }

    /// The `k` largest elements along an axis, in descending order, and where they are.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 3, 2], &Device::default());
    /// let (values, indices) = x.topk_with_indices(2, 0);
    /// assert_eq!(values.try_to_vec_as::<i32>().unwrap(), [3, 2]);
    /// assert_eq!(indices.try_to_vec_as::<i32>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or has fewer than `k` elements.
    #[track_caller]
    pub fn topk_with_indices<I: AsIndex>(self, k: usize, dim: I) -> (Self, Tensor<D, Int>) {
        let (values, positions) = self.raw.topk(self.axis("topk", dim), k, true);
        (Self::from_raw(values), indices(&positions))
    }

    /// Where the `k` largest elements along an axis are, in descending order.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 3, 2], &Device::default());
    /// assert_eq!(x.argtopk(2, 0).try_to_vec_as::<i32>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or has fewer than `k` elements.
    #[track_caller]
    pub fn argtopk(self, k: usize, dim: impl AsIndex) -> Tensor<D, Int> {
        self.topk_with_indices(k, dim).1
    }

    /// Classes as ones in a new last axis; the elements are the classes. A negative class counts from the end.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([2, 0], &Device::default());
    /// let y: Tensor<2, Int> = x.one_hot(3);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [0, 0, 1, 1, 0, 0]);
    /// ```
    ///
    /// # Panics
    /// When `num_classes` is 0 or `D2` is not `D + 1`.
    #[track_caller]
    pub fn one_hot<const D2: usize>(self, num_classes: usize) -> Tensor<D2, K> {
        self.one_hot_fill(num_classes, 1.0, 0.0, -1)
    }

    /// Classes as `on_value` among `off_value` in a new axis; the elements are the classes. A negative class counts from the end; one that
    /// does not exist gives `off_value` only.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([1, 0], &Device::default());
    /// let y: Tensor<2, Int> = x.one_hot_fill(2, 5.0, -1.0, 0);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [-1, 5, 5, -1]);
    /// ```
    ///
    /// # Panics
    /// When `num_classes` is 0, `D2` is not `D + 1`, or the position of the new axis does not exist.
    #[track_caller]
    pub fn one_hot_fill<const D2: usize>(self, num_classes: usize, on_value: f32, off_value: f32, axis: impl AsIndex) -> Tensor<D2, K> {
        assert!(num_classes > 0, "one_hot: the number of classes must not be 0: shape {:?}", self.raw.dims());
        assert!(D2 == D + 1, "one_hot: rank {D} becomes {}, not {D2}: shape {:?}", D + 1, self.raw.dims());
        let axis = axis_of("one_hot", axis, D2, self.raw.dims());
        Tensor::from_raw(one_hot(&self.raw, num_classes, on_value.into(), off_value.into(), axis))
    }

    #[track_caller]
    fn sort_by<I: AsIndex>(self, dim: I, descending: bool) -> (Self, Tensor<D, Int>) {
        let (values, positions) = self.raw.sort(self.axis("sort", dim), descending);
        (Self::from_raw(values), indices(&positions))
    }
}

#[track_caller]
fn one_hot(classes: &RawTensor, count: usize, on: f64, off: f64, axis: usize) -> RawTensor {
    let dtype = classes.dtype();
    let classes = classes.cast(RawTensor::INDEX);
    let from_end = classes.add_scalar(count as i64);
    let classes = classes.mask_where(&classes.with_constant(kiln_ir::Elementwise::Lt, 0.0), &from_end).unsqueeze(axis);
    let mut dims = classes.dims().to_vec();
    dims[axis] = count;
    let device = classes.device().without_autodiff();
    let hit = RawTensor::iota(&device, &dims, RawTensor::INDEX, axis).eq(&classes);
    let scalar = |value: f64| crate::Scalar::new(value, &dtype.into());
    RawTensor::full(&device, &dims, dtype, scalar(off)).mask_fill(&hit, scalar(on))
}
