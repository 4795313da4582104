//! `Shape`: the sizes of a tensor's axes, and the arithmetic of shapes.

mod args;
mod error;
mod index;

pub use args::{BroadcastArgs, MovedimArgs, ReshapeArgs};
pub use error::{BoundsError, ExpressionError, MetadataError};
pub(crate) use index::axis_of;
pub use index::{AsIndex, AsSize, IndexWrap, ravel_index, wrap_index};

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut, Index, IndexMut, Range};
use core::slice::SliceIndex;
use core::str::FromStr;

use kiln_ir::dims::numel;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

/// The sizes of a tensor's axes, outermost first. Up to five axes are stored without an allocation.
///
/// ```
/// use kiln_tensor::{Shape, shape};
/// let s = Shape::new([2, 3]);
/// assert_eq!(s, Shape::from([2usize, 3]));
/// assert_eq!(s, shape![2, 3]);
/// assert_eq!((s.rank(), s.num_elements(), s[1]), (2, 6, 3));
/// assert_eq!(s.to_string(), "[2, 3]");
/// assert_eq!(s.reshape([3, -1]).unwrap(), shape![3, 2]);
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Shape {
    dims: SmallVec<[usize; 5]>,
}

impl Shape {
    /// The shape with the given sizes.
    pub fn new<const D: usize>(dims: [usize; D]) -> Self {
        Self { dims: SmallVec::from_slice(&dims) }
    }

    /// The shape with the given sizes, taking over the storage.
    pub fn new_raw(dims: SmallVec<[usize; 5]>) -> Self {
        Self { dims }
    }

    /// The product of the sizes; 1 for rank 0.
    ///
    /// # Panics
    /// When it is larger than `usize` holds.
    #[track_caller]
    pub fn num_elements(&self) -> usize {
        match self.dims.iter().try_fold(1usize, |n, size| n.checked_mul(*size)) {
            Some(n) => n,
            // An empty axis makes up for any other.
            None if self.dims.contains(&0) => 0,
            None => panic!("shape: too many elements: {self}"),
        }
    }

    /// The number of axes. The same as [`rank`](Self::rank).
    pub fn num_dims(&self) -> usize {
        self.dims.len()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The sizes as an array.
    ///
    /// # Panics
    /// When the rank is not `D`.
    #[track_caller]
    pub fn dims<const D: usize>(&self) -> [usize; D] {
        match self.dims.as_slice().try_into() {
            Ok(dims) => dims,
            Err(_) => panic!("dims: shape {self} has rank {}, not {D}", self.rank()),
        }
    }

    /// The shape `[num_elements]`.
    #[track_caller]
    pub fn flatten(self) -> Self {
        Self::new([self.num_elements()])
    }

    /// The axes `start_dim..=end_dim` merged into one.
    ///
    /// # Panics
    /// When an axis does not exist or the start lies behind the end.
    #[track_caller]
    pub fn flatten_dims(self, start_dim: impl AsIndex, end_dim: impl AsIndex) -> Self {
        let rank = self.rank();
        let (start, end) = (axis_of("flatten", start_dim, rank, &self.dims), axis_of("flatten", end_dim, rank, &self.dims));
        assert!(start <= end, "flatten: start axis {start} lies behind end axis {end}: shape {self}");
        if rank == 0 {
            return Self::new([1]);
        }
        let merged = self.dims[start..=end].iter().product();
        let mut dims = SmallVec::from_slice(&self.dims[..start]);
        dims.push(merged);
        dims.extend_from_slice(&self.dims[end + 1..]);
        Self { dims }
    }

    /// The row-major position of the element at `indices`; negative indices count from the end.
    ///
    /// # Panics
    /// When the number of indices is not the rank, or an index is out of range.
    #[track_caller]
    pub fn ravel_index<I: AsIndex>(&self, indices: &[I]) -> usize {
        ravel_index(indices, &self.dims)
    }

    /// The whole range of every axis.
    pub fn into_ranges(self) -> Vec<Range<usize>> {
        self.dims.into_iter().map(|size| 0..size).collect()
    }

    /// The sizes as a vector.
    pub fn to_vec(&self) -> Vec<usize> {
        self.dims.to_vec()
    }

    /// Iterates over the sizes.
    pub fn iter(&self) -> core::slice::Iter<'_, usize> {
        self.dims.iter()
    }

    /// Iterates over the sizes, mutably.
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, usize> {
        self.dims.iter_mut()
    }

    /// The sizes as a slice.
    pub fn as_slice(&self) -> &[usize] {
        &self.dims
    }

    /// The sizes as a mutable slice.
    pub fn as_mut_slice(&mut self) -> &mut [usize] {
        &mut self.dims
    }

    /// Inserts an axis before position `index`.
    ///
    /// # Panics
    /// When `index` is larger than the rank.
    #[track_caller]
    pub fn insert(&mut self, index: usize, size: usize) {
        assert!(index <= self.rank(), "insert: axis {index} is out of range: shape {self}");
        self.dims.insert(index, size);
    }

    /// Removes the axis and returns its size.
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn remove(&mut self, index: usize) -> usize {
        assert!(index < self.rank(), "remove: axis {index} is out of range: shape {self}");
        self.dims.remove(index)
    }

    /// Appends an axis.
    pub fn push(&mut self, size: usize) {
        self.dims.push(size);
    }

    /// Appends axes.
    pub fn extend(&mut self, iter: impl IntoIterator<Item = usize>) {
        self.dims.extend(iter);
    }

    /// The shape with two axes exchanged.
    ///
    /// # Errors
    /// [`MetadataError::OutOfBounds`] when an axis does not exist.
    pub fn swapped(mut self, dim1: usize, dim2: usize) -> Result<Self, MetadataError> {
        self.check_axis(dim1)?;
        self.check_axis(dim2)?;
        self.dims.swap(dim1, dim2);
        Ok(self)
    }

    /// Reorders the axes: axis `i` of the result is axis `axes[i]` of this shape.
    ///
    /// # Errors
    /// When `axes` is not a permutation of `0..rank`; the shape is then unchanged.
    pub fn permute(&mut self, axes: &[usize]) -> Result<(), MetadataError> {
        let rank = self.rank();
        if axes.len() != rank {
            return Err(MetadataError::RankMismatch { left: rank, right: axes.len() });
        }
        for (position, &axis) in axes.iter().enumerate() {
            self.check_axis(axis)?;
            if axes[..position].contains(&axis) {
                return Err(MetadataError::Invalid { reason: format!("axis {axis} is named twice in {axes:?}") });
            }
        }
        self.dims = axes.iter().map(|&axis| self.dims[axis]).collect();
        Ok(())
    }

    /// The shape with its axes reordered; see [`permute`](Self::permute).
    ///
    /// # Errors
    /// When `axes` is not a permutation of `0..rank`.
    pub fn permuted(mut self, axes: &[usize]) -> Result<Self, MetadataError> {
        self.permute(axes)?;
        Ok(self)
    }

    /// The shape with axis `dim` repeated `times` times.
    ///
    /// # Errors
    /// [`MetadataError::OutOfBounds`] when the axis does not exist.
    pub fn repeat(mut self, dim: usize, times: usize) -> Result<Shape, MetadataError> {
        self.check_axis(dim)?;
        self.dims[dim] *= times;
        Ok(self)
    }

    /// The shape with axis `dim` reduced to size 1.
    ///
    /// # Errors
    /// [`MetadataError::OutOfBounds`] when the axis does not exist.
    pub fn reduce(mut self, dim: usize) -> Result<Shape, MetadataError> {
        self.check_axis(dim)?;
        self.dims[dim] = 1;
        Ok(self)
    }

    /// The shape of the concatenation along axis `dim`.
    ///
    /// # Errors
    /// When no shape is given, ranks differ, the axis does not exist, or another axis has different sizes.
    pub fn cat<'a, I>(shapes: I, dim: usize) -> Result<Self, MetadataError>
    where
        I: IntoIterator<Item = &'a Shape>,
    {
        let mut shapes = shapes.into_iter();
        let mut result = shapes.next().ok_or_else(|| MetadataError::Invalid { reason: "no shape to concatenate".into() })?.clone();
        result.check_axis(dim)?;
        for shape in shapes {
            if shape.rank() != result.rank() {
                return Err(MetadataError::RankMismatch { left: result.rank(), right: shape.rank() });
            }
            for axis in 0..result.rank() {
                let (left, right) = (result[axis], shape[axis]);
                if axis == dim {
                    result[axis] = left + right;
                } else if left != right {
                    return Err(MetadataError::IncompatibleDims { left, right, dim: axis });
                }
            }
        }
        Ok(result)
    }

    /// The shape two tensors of the same rank broadcast to: on each axis the sizes agree or one of them is 1.
    ///
    /// # Errors
    /// When the ranks differ or an axis does not fit.
    pub fn broadcast(&self, other: &Self) -> Result<Self, MetadataError> {
        Self::broadcast_many([self, other])
    }

    /// The shape several tensors of the same rank broadcast to.
    ///
    /// # Errors
    /// When no shape is given, the ranks differ or an axis does not fit.
    pub fn broadcast_many<'a, I>(shapes: I) -> Result<Self, MetadataError>
    where
        I: IntoIterator<Item = &'a Shape>,
    {
        let mut shapes = shapes.into_iter();
        let mut result = shapes.next().ok_or_else(|| MetadataError::Invalid { reason: "no shape to broadcast".into() })?.clone();
        for shape in shapes {
            if shape.rank() != result.rank() {
                return Err(MetadataError::RankMismatch { left: result.rank(), right: shape.rank() });
            }
            for axis in 0..result.rank() {
                let (left, right) = (result[axis], shape[axis]);
                if left == 1 {
                    result[axis] = right;
                } else if right != 1 && left != right {
                    return Err(MetadataError::IncompatibleDims { left, right, dim: axis });
                }
            }
        }
        Ok(result)
    }

    /// Checks that this shape broadcasts to `target` (axes are aligned at the end, sizes agree or are 1) and returns `target`.
    ///
    /// # Errors
    /// When the target has fewer axes or an axis does not fit.
    pub fn expand(&self, target: Shape) -> Result<Shape, MetadataError> {
        if target.rank() < self.rank() {
            return Err(MetadataError::RankMismatch { left: self.rank(), right: target.rank() });
        }
        let new = target.rank() - self.rank();
        let fits = (self.iter().zip(&target[new..])).all(|(from, to)| from == to || *from == 1);
        if !fits {
            return Err(MetadataError::IncompatibleShapes { left: self.clone(), right: target });
        }
        Ok(target)
    }

    /// Resolves the arguments of a reshape: -1 (once) stands for what remains, 0 for the size of this shape's axis at the same position.
    /// For a shape without elements, sizes of 0 that fit as they stand are taken as they stand.
    ///
    /// # Errors
    /// When -1 occurs twice or is not a whole number, another negative size occurs, or the element counts differ.
    pub fn reshape<A, T>(&self, args: A) -> Result<Shape, MetadataError>
    where
        A: AsRef<[T]> + fmt::Debug,
        T: AsIndex,
    {
        let sizes: Result<SmallVec<[isize; 5]>, isize> = args.as_ref().iter().map(|size| size.fitted()).collect();
        let Ok(sizes) = sizes else {
            return Err(MetadataError::Invalid { reason: format!("a size is too large: from {self} to {args:?}") });
        };
        self.reshape_impl(&sizes)
    }

    fn reshape_impl(&self, sizes: &[isize]) -> Result<Shape, MetadataError> {
        let count = numel(self);
        let fail = |why: &str| MetadataError::Invalid { reason: format!("{why}: from {self} ({count} elements) to {sizes:?}") };
        if sizes.iter().any(|size| *size < -1) {
            return Err(fail("a size is negative"));
        }
        if sizes.iter().filter(|size| **size == -1).count() > 1 {
            return Err(fail("more than one size is -1"));
        }
        match self.reshape_keeping(sizes) {
            Ok(shape) if numel(&shape) == count => Ok(shape),
            // A size of 0 means "keep the source's size"; in a tensor without elements it may also mean zero.
            _ if count == 0 && sizes.contains(&0) && !sizes.contains(&-1) => Ok(sizes.iter().map(|&size| size as usize).collect()),
            Ok(_) => Err(fail("element counts differ")),
            Err(why) => Err(fail(why)),
        }
    }

    fn reshape_keeping(&self, sizes: &[isize]) -> Result<Shape, &'static str> {
        let mut dims: SmallVec<[usize; 5]> = SmallVec::with_capacity(sizes.len());
        for (axis, &size) in sizes.iter().enumerate() {
            dims.push(match size {
                -1 => 1,
                0 => *(self.dims.get(axis)).ok_or("a size of 0 keeps the source's axis, and there is none")?,
                size => size as usize,
            });
        }
        if let Some(axis) = sizes.iter().position(|size| *size == -1) {
            let (count, known) = (numel(self), numel(&dims));
            if known == 0 || !count.is_multiple_of(known) {
                return Err("the size for -1 is not a whole number");
            }
            dims[axis] = count / known;
        }
        Ok(Shape { dims })
    }

    fn check_axis(&self, dim: usize) -> Result<(), MetadataError> {
        let rank = self.rank();
        if dim < rank { Ok(()) } else { Err(MetadataError::OutOfBounds { dim, rank }) }
    }
}

/// The shape of the matrix product of two shapes of the same rank: batch axes broadcast, `[.., m, k] x [.., k, n] -> [.., m, n]`.
///
/// # Errors
/// When the ranks differ or are below 2, batch axes do not broadcast, or the inner sizes differ.
pub fn calculate_matmul_output(lhs: &Shape, rhs: &Shape) -> Result<Shape, MetadataError> {
    let rank = lhs.rank();
    if rank != rhs.rank() {
        return Err(MetadataError::RankMismatch { left: rank, right: rhs.rank() });
    }
    if rank < 2 {
        return Err(MetadataError::Invalid { reason: format!("matmul needs at least two axes: lhs {lhs}, rhs {rhs}") });
    }
    if lhs[rank - 1] != rhs[rank - 2] {
        return Err(MetadataError::IncompatibleShapes { left: lhs.clone(), right: rhs.clone() });
    }
    let batch = |shape: &Shape| Shape::from(&shape[..rank - 2]);
    let mut result = batch(lhs).broadcast(&batch(rhs))?;
    result.extend([lhs[rank - 2], rhs[rank - 1]]);
    Ok(result)
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.dims
    }
}

impl DerefMut for Shape {
    fn deref_mut(&mut self) -> &mut [usize] {
        &mut self.dims
    }
}

impl AsRef<[usize]> for Shape {
    fn as_ref(&self) -> &[usize] {
        &self.dims
    }
}

impl<Idx: SliceIndex<[usize]>> Index<Idx> for Shape {
    type Output = Idx::Output;

    #[track_caller]
    fn index(&self, index: Idx) -> &Self::Output {
        match self.dims.as_slice().get(index) {
            Some(sizes) => sizes,
            None => panic!("shape: axes are out of range: {self}"),
        }
    }
}

impl<Idx: SliceIndex<[usize]>> IndexMut<Idx> for Shape {
    #[track_caller]
    fn index_mut(&mut self, index: Idx) -> &mut Self::Output {
        // For the message: the borrow that is given back lasts too long.
        let before = self.clone();
        match self.dims.as_mut_slice().get_mut(index) {
            Some(sizes) => sizes,
            None => panic!("shape: axes are out of range: {before}"),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}

impl FromStr for Shape {
    type Err = ExpressionError;

    /// Parses `[2, 3]` or `2, 3`; `[]` is the shape of rank 0.
    fn from_str(source: &str) -> Result<Self, ExpressionError> {
        let text = source.trim();
        let inner = match text.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(|| ExpressionError::parse_error("the bracket is not closed", source))?,
            None => text,
        };
        let inner = inner.trim();
        if inner.is_empty() {
            return if text.is_empty() { Err(ExpressionError::parse_error("the text is empty", source)) } else { Ok(Self::new([])) };
        }
        inner.split(',').map(|size| size.trim().parse::<usize>().map_err(|e| ExpressionError::parse_error(e.to_string(), source))).collect()
    }
}

impl<I: AsSize> FromIterator<I> for Shape {
    /// # Panics
    /// When a size is negative or too large.
    #[track_caller]
    fn from_iter<T: IntoIterator<Item = I>>(iter: T) -> Self {
        let sizes: SmallVec<[I; 5]> = iter.into_iter().collect();
        let mut dims = SmallVec::with_capacity(sizes.len());
        for (axis, size) in sizes.iter().enumerate() {
            match size.fitting_size() {
                Some(size) => dims.push(size),
                None => panic!("shape: size {size:?} at axis {axis} is negative or too large: {:?}", sizes.as_slice()),
            }
        }
        Self { dims }
    }
}

impl<T, I> From<T> for Shape
where
    T: IntoIterator<Item = I>,
    I: AsSize,
{
    /// # Panics
    /// When a size is negative or too large.
    #[track_caller]
    fn from(dims: T) -> Self {
        Self::from_iter(dims)
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

impl From<Shape> for Vec<usize> {
    fn from(shape: Shape) -> Self {
        shape.dims.into_vec()
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<usize>::deserialize(deserializer)?.into())
    }
}

/// Builds a [`Shape`] from its sizes: `shape![2, 3]`, `shape![0; 4]`.
#[macro_export]
macro_rules! shape {
    ($size:expr; $rank:expr) => {
        $crate::Shape::new([$size; $rank])
    };
    ($($size:expr),* $(,)?) => {
        $crate::Shape::new([$($size),*])
    };
}
