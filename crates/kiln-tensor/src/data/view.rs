//! Tensor data viewed as an n-dimensional array of elements.

use core::ops::{Index, IndexMut};

use super::{DataError, TensorData};
use crate::element::Element;
use crate::shape::{AsIndex, Shape, ravel_index};

/// Tensor data seen as an array that is indexed by one index an axis; negative indices count from the end.
///
/// ```
/// use kiln_tensor::TensorData;
/// let data = TensorData::from([[1, 2, 3], [4, 5, 6]]);
/// let view = data.view::<i32>();
/// assert_eq!(view[[1, 0]], 4);
/// assert_eq!(view[[-1, -1]], 6);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TensorDataView<'a, E> {
    values: &'a [E],
    shape: &'a Shape,
}

/// Tensor data seen as a mutable array; see [`TensorDataView`].
#[derive(Debug)]
pub struct TensorDataViewMut<'a, E> {
    values: &'a mut [E],
    shape: &'a Shape,
}

impl<'a, E> TensorDataView<'a, E> {
    /// The shape.
    pub fn shape(&self) -> &'a Shape {
        self.shape
    }

    /// The values in row-major order.
    pub fn as_slice(&self) -> &'a [E] {
        self.values
    }
}

impl<E> TensorDataViewMut<'_, E> {
    /// The shape.
    pub fn shape(&self) -> &Shape {
        self.shape
    }

    /// The values in row-major order.
    pub fn as_slice(&self) -> &[E] {
        self.values
    }

    /// The values in row-major order, mutable.
    pub fn as_mut_slice(&mut self) -> &mut [E] {
        self.values
    }
}

impl<E, I: AsIndex, const D: usize> Index<[I; D]> for TensorDataView<'_, E> {
    type Output = E;

    /// # Panics
    /// When the number of indices is not the rank or an index is out of range.
    #[track_caller]
    fn index(&self, indices: [I; D]) -> &E {
        &self.values[ravel_index(&indices, self.shape)]
    }
}

impl<E, I: AsIndex> Index<&[I]> for TensorDataView<'_, E> {
    type Output = E;

    /// # Panics
    /// When the number of indices is not the rank or an index is out of range.
    #[track_caller]
    fn index(&self, indices: &[I]) -> &E {
        &self.values[ravel_index(indices, self.shape)]
    }
}

impl<E, I: AsIndex, const D: usize> Index<[I; D]> for TensorDataViewMut<'_, E> {
    type Output = E;

    /// # Panics
    /// When the number of indices is not the rank or an index is out of range.
    #[track_caller]
    fn index(&self, indices: [I; D]) -> &E {
        &self.values[ravel_index(&indices, self.shape)]
    }
}

impl<E, I: AsIndex, const D: usize> IndexMut<[I; D]> for TensorDataViewMut<'_, E> {
    /// # Panics
    /// When the number of indices is not the rank or an index is out of range.
    #[track_caller]
    fn index_mut(&mut self, indices: [I; D]) -> &mut E {
        &mut self.values[ravel_index(&indices, self.shape)]
    }
}

impl TensorData {
    /// The data as an array of `E`.
    ///
    /// # Errors
    /// As [`as_slice`](Self::as_slice).
    pub fn try_view<E: Element>(&self) -> Result<TensorDataView<'_, E>, DataError> {
        Ok(TensorDataView { values: self.as_slice()?, shape: &self.shape })
    }

    /// The data as an array of `E`.
    ///
    /// # Panics
    /// When the data is of another type or the bytes are not valid values.
    #[track_caller]
    pub fn view<E: Element>(&self) -> TensorDataView<'_, E> {
        match self.try_view() {
            Ok(view) => view,
            Err(error) => panic!("view: {error}"),
        }
    }

    /// The data as a mutable array of `E`.
    ///
    /// # Errors
    /// As [`as_mut_slice`](Self::as_mut_slice).
    pub fn try_mut_view<E: Element>(&mut self) -> Result<TensorDataViewMut<'_, E>, DataError> {
        self.as_mut_slice::<E>()?;
        let values = bytemuck::checked::try_cast_slice_mut(&mut self.bytes).map_err(DataError::InvalidRepresentation)?;
        Ok(TensorDataViewMut { values, shape: &self.shape })
    }

    /// The data as a mutable array of `E`.
    ///
    /// # Panics
    /// When the data is of another type or the bytes are not valid values.
    #[track_caller]
    pub fn mut_view<E: Element>(&mut self) -> TensorDataViewMut<'_, E> {
        match self.try_mut_view() {
            Ok(view) => view,
            Err(error) => panic!("view: {error}"),
        }
    }
}
