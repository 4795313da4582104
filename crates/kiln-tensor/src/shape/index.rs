//! Integers as axis numbers, element indices and sizes; negative ones count from the end.

use core::fmt::Debug;

use super::BoundsError;

/// An integer usable as an axis or an element index; negative values count from the end.
///
/// ```
/// use kiln_tensor::AsIndex;
/// assert_eq!((-1i32).expect_dim_index(3), 2);
/// assert_eq!(1usize.expect_elem_index(3), 1);
/// assert!(3.try_dim_index(3).is_err());
/// ```
pub trait AsIndex: Debug + Copy + Sized {
    /// The value as a signed index.
    ///
    /// # Panics
    /// When the value does not fit `isize`.
    fn as_index(self) -> isize;

    /// The value as a signed index, or the nearest one there is.
    #[doc(hidden)]
    fn fitted(self) -> Result<isize, isize> {
        Ok(self.as_index())
    }

    /// The axis named by this index among `size` axes. An index of 0 or -1 names the only position of a scalar (`size == 0`).
    ///
    /// # Errors
    /// [`BoundsError::Dim`] when the axis does not exist.
    fn try_dim_index(self, size: usize) -> Result<usize, BoundsError> {
        IndexWrap::dim().with_wrap_scalar(true).try_wrap(self, size)
    }

    /// The element position named by this index among `size` elements.
    ///
    /// # Panics
    /// When the position does not exist.
    #[track_caller]
    fn expect_elem_index(self, size: usize) -> usize {
        IndexWrap::expect_elem(self, size)
    }

    /// The axis named by this index among `size` axes.
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    fn expect_dim_index(self, size: usize) -> usize {
        IndexWrap::expect_dim(self, size)
    }
}

/// An integer usable as a size.
pub trait AsSize: Debug + Copy + Sized {
    /// The value as a size.
    ///
    /// # Panics
    /// When the value is negative or does not fit `usize`.
    fn as_size(self) -> usize;

    /// The value as a size, if it is one.
    #[doc(hidden)]
    fn fitting_size(self) -> Option<usize> {
        Some(self.as_size())
    }
}

/// Implements [`AsIndex`] and [`AsSize`] for the primitive integers.
macro_rules! integers {
    ($($t:ty),*) => {$(
        impl AsIndex for $t {
            #[inline]
            #[track_caller]
            fn as_index(self) -> isize {
                // A closure would report its own line instead of the caller's.
                match isize::try_from(self) {
                    Ok(index) => index,
                    Err(_) => panic!("index {self} does not fit isize"),
                }
            }

            #[inline]
            #[allow(unused_comparisons)]
            fn fitted(self) -> Result<isize, isize> {
                isize::try_from(self).map_err(|_| if self < 0 { isize::MIN } else { isize::MAX })
            }
        }
        impl AsSize for $t {
            #[inline]
            #[track_caller]
            fn as_size(self) -> usize {
                match usize::try_from(self) {
                    Ok(size) => size,
                    Err(_) => panic!("shape: size {self} is negative or too large"),
                }
            }

            #[inline]
            fn fitting_size(self) -> Option<usize> {
                usize::try_from(self).ok()
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl<T: AsIndex> AsIndex for &T {
    #[track_caller]
    fn as_index(self) -> isize {
        (*self).as_index()
    }

    fn fitted(self) -> Result<isize, isize> {
        (*self).fitted()
    }
}

impl<T: AsSize> AsSize for &T {
    #[track_caller]
    fn as_size(self) -> usize {
        (*self).as_size()
    }

    fn fitting_size(self) -> Option<usize> {
        (*self).fitting_size()
    }
}

/// The rule by which a signed index is brought into `0..size`.
#[derive(Debug)]
pub struct IndexWrap {
    is_dim: bool,
    wrap_scalar: bool,
}

impl IndexWrap {
    /// The rule for element indices: valid in `-size..size`, nothing is valid for size 0.
    pub fn index() -> Self {
        Self { is_dim: false, wrap_scalar: false }
    }

    /// The rule for axes: valid in `-rank..rank`.
    pub fn dim() -> Self {
        Self { is_dim: true, wrap_scalar: false }
    }

    /// Whether a size of 0 is taken for one position, so that a scalar accepts axis 0 and -1.
    pub fn with_wrap_scalar(self, wrap_scalar: bool) -> Self {
        Self { wrap_scalar, ..self }
    }

    /// The position in `0..size`.
    ///
    /// # Errors
    /// [`BoundsError`] when the index is out of range.
    pub fn try_wrap<I: AsIndex>(&self, idx: I, size: usize) -> Result<usize, BoundsError> {
        // What doesn't fit is out of every range.
        let index = idx.fitted().unwrap_or_else(|nearest| nearest);
        let range = if size == 0 && self.wrap_scalar { 1 } else { size };
        let wrapped = if index < 0 { range.checked_sub(index.unsigned_abs()) } else { Some(index as usize).filter(|i| *i < range) };
        wrapped.ok_or(if self.is_dim { BoundsError::Dim { index, rank: size } } else { BoundsError::Index { index, size } })
    }

    /// The position in `0..size`.
    ///
    /// # Panics
    /// When the index is out of range.
    #[track_caller]
    pub fn expect_wrap<I: AsIndex>(&self, idx: I, size: usize) -> usize {
        match self.try_wrap(idx, size) {
            Ok(position) => position,
            Err(error) => panic!("{error}"),
        }
    }

    /// The element position in `0..size`.
    ///
    /// # Panics
    /// When the index is out of range.
    #[track_caller]
    pub fn expect_elem<I: AsIndex>(idx: I, size: usize) -> usize {
        Self::index().expect_wrap(idx, size)
    }

    /// The axis in `0..size`.
    ///
    /// # Panics
    /// When the axis is out of range.
    #[track_caller]
    pub fn expect_dim<I: AsIndex>(idx: I, size: usize) -> usize {
        Self::dim().with_wrap_scalar(true).expect_wrap(idx, size)
    }
}

/// The axis that an index names among `rank` axes, for an op on a tensor of the sizes `dims`.
///
/// # Panics
/// When it does not exist.
#[track_caller]
pub(crate) fn axis_of<I: AsIndex>(op: &str, index: I, rank: usize, dims: &[usize]) -> usize {
    match index.try_dim_index(rank) {
        Ok(axis) => axis,
        Err(_) => panic!("{op}: axis {index:?} is out of range for rank {rank}: shape {dims:?}"),
    }
}

/// Brings any index into `0..size` by counting round and round (Euclidean remainder); 0 for size 0.
///
/// ```
/// assert_eq!(kiln_tensor::wrap_index(-1, 4), 3);
/// assert_eq!(kiln_tensor::wrap_index(9, 4), 1);
/// ```
pub fn wrap_index<I: AsIndex>(idx: I, size: usize) -> usize {
    if size == 0 {
        return 0;
    }
    idx.as_index().rem_euclid(size as isize) as usize
}

/// The row-major position of the element at `indices` in a tensor of the given shape; negative indices count from the end.
///
/// ```
/// assert_eq!(kiln_tensor::ravel_index(&[1, -1], &[2, 3]), 5);
/// ```
///
/// # Panics
/// When the number of indices is not the rank, or an index is out of range.
#[track_caller]
pub fn ravel_index<I: AsIndex>(indices: &[I], shape: &[usize]) -> usize {
    assert!(indices.len() == shape.len(), "ravel_index: {} indices given for shape {shape:?}", indices.len());
    let mut at = 0;
    for (index, size) in indices.iter().zip(shape) {
        let Ok(place) = IndexWrap::index().try_wrap(*index, *size) else {
            panic!("ravel_index: index {index:?} is out of range for size {size}: indices {indices:?}, shape {shape:?}");
        };
        at = at * size + place;
    }
    at
}
