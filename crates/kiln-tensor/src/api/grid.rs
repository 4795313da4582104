//! Grids of coordinates.

use alloc::vec::Vec;

use super::Tensor;
use super::kind::Basic;
use crate::raw::RawTensor;

/// Which axis of a grid the first coordinates run along.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum GridIndexing {
    /// The first: rows and columns (`ij`).
    #[default]
    Matrix,
    /// The second: x and y (`xy`).
    Cartesian,
}

/// Whether a grid's tensors are repeated along the other axes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum GridSparsity {
    /// They are: all have the grid's shape.
    #[default]
    Dense,
    /// They are not: the other axes have size 1.
    Sparse,
}

/// Options of [`meshgrid`].
#[derive(Clone, Copy, Debug, Default)]
pub struct GridOptions {
    /// Which axis the first coordinates run along.
    pub indexing: GridIndexing,
    /// Whether the tensors are repeated.
    pub sparsity: GridSparsity,
}

impl GridOptions {
    /// The options.
    pub fn new(indexing: GridIndexing, sparsity: GridSparsity) -> Self {
        Self { indexing, sparsity }
    }
}

impl From<GridIndexing> for GridOptions {
    fn from(indexing: GridIndexing) -> Self {
        Self { indexing, ..Self::default() }
    }
}

impl From<GridSparsity> for GridOptions {
    fn from(sparsity: GridSparsity) -> Self {
        Self { sparsity, ..Self::default() }
    }
}

/// Where the axis of coordinates is.
#[derive(Clone, Copy, Debug, Default)]
pub enum IndexPos {
    /// In front.
    First,
    /// At the end.
    #[default]
    Last,
}

/// The grid of all combinations of coordinates: one tensor for each list, of the grid's shape.
///
/// ```
/// use kiln_tensor::{Device, Int, Tensor, grid::{GridIndexing, meshgrid}};
/// let device = Device::default();
/// let (a, b) = (Tensor::<1, Int>::from_data([1, 2], &device), Tensor::<1, Int>::from_data([5, 6, 7], &device));
/// let [rows, columns] = meshgrid(&[a.clone(), b.clone()], GridIndexing::Matrix);
/// assert_eq!(rows.try_to_vec_as::<i32>().unwrap(), [1, 1, 1, 2, 2, 2]);
/// assert_eq!(columns.try_to_vec_as::<i32>().unwrap(), [5, 6, 7, 5, 6, 7]);
/// let [x, _] = meshgrid(&[a, b], GridIndexing::Cartesian);
/// assert_eq!(x.dims(), [3, 2]);
/// ```
#[track_caller]
pub fn meshgrid<const N: usize, K, O>(tensors: &[Tensor<1, K>; N], options: O) -> [Tensor<N, K>; N]
where
    K: Basic,
    O: Into<GridOptions>,
{
    let raws: Vec<&RawTensor> = tensors.iter().map(Tensor::as_raw).collect();
    let mut grids = mesh(&raws, options.into()).into_iter();
    core::array::from_fn(|_| Tensor::from_raw(grids.next().expect("one grid for each list")))
}

fn mesh(lists: &[&RawTensor], options: GridOptions) -> Vec<RawTensor> {
    let rank = lists.len();
    let axis_of = |list: usize| match options.indexing {
        GridIndexing::Cartesian if rank > 1 && list < 2 => 1 - list,
        GridIndexing::Cartesian | GridIndexing::Matrix => list,
    };
    let mut full = alloc::vec![1; rank];
    for (list, tensor) in lists.iter().enumerate() {
        full[axis_of(list)] = tensor.dims()[0];
    }
    (lists.iter().enumerate())
        .map(|(list, tensor)| {
            let mut dims = alloc::vec![1; rank];
            dims[axis_of(list)] = tensor.dims()[0];
            let sparse = tensor.reshape(&dims);
            match options.sparsity {
                GridSparsity::Dense => sparse.expand(&full),
                GridSparsity::Sparse => sparse,
            }
        })
        .collect()
}

/// The grid of all combinations of coordinates as one tensor; a new axis holds the coordinates of each point.
///
/// ```
/// use kiln_tensor::{Device, Int, Tensor, grid::{IndexPos, meshgrid_stack}};
/// let device = Device::default();
/// let (a, b) = (Tensor::<1, Int>::from_data([1, 2], &device), Tensor::<1, Int>::from_data([5, 6], &device));
/// let grid: Tensor<3, Int> = meshgrid_stack(&[a, b], IndexPos::Last);
/// assert_eq!(grid.try_to_vec_as::<i32>().unwrap(), [1, 5, 1, 6, 2, 5, 2, 6]);
/// ```
///
/// # Panics
/// When `D2` is not `D + 1`.
#[track_caller]
pub fn meshgrid_stack<const D: usize, const D2: usize, K>(tensors: &[Tensor<1, K>; D], index_pos: IndexPos) -> Tensor<D2, K>
where
    K: Basic,
{
    assert!(D2 == D + 1, "meshgrid_stack: {D} lists give rank {}, not {D2}", D + 1);
    let axis = match index_pos {
        IndexPos::First => 0,
        IndexPos::Last => D,
    };
    Tensor::stack(meshgrid(tensors, GridOptions::default()).into(), axis)
}

/// The grid of places that an affine transform `[batch, 2, 3]` maps the pixels of an image of `dims` `[batch, channels, height, width]` to:
/// `[batch, height, width, 2]`, with x and y in `-1..=1` naming the centres of the corner pixels.
///
/// ```
/// use kiln_tensor::{Device, Tensor, grid::affine_grid_2d};
/// let identity = Tensor::<3>::from_data([[[1, 0, 0], [0, 1, 0]]], &Device::default());
/// let grid = affine_grid_2d(identity, [1, 1, 2, 2]);
/// assert_eq!(grid.try_to_vec_as::<i32>().unwrap(), [-1, -1, 1, -1, -1, 1, 1, 1]);
/// ```
///
/// # Panics
/// When the transform is not `[batch, 2, 3]`.
#[track_caller]
pub fn affine_grid_2d(transform: Tensor<3>, dims: [usize; 4]) -> Tensor<4> {
    let [batch, _, height, width] = dims;
    assert!(transform.dims() == [batch, 2, 3], "affine_grid_2d: the transform has shape {:?}, expected [{batch}, 2, 3]", transform.dims());
    Tensor::from_raw(affine(&transform.raw, batch, height, width))
}

#[track_caller]
fn affine(transform: &RawTensor, batch: usize, height: usize, width: usize) -> RawTensor {
    let (device, dtype) = (transform.device().without_autodiff(), transform.dtype());
    let sizes = [height, width, 1];
    // A single pixel lies at its centre, 0.
    let line = |axis: usize, size: usize| {
        let position = RawTensor::iota(&device, &sizes, dtype, axis);
        match size {
            0 | 1 => position.scale_by(0.0),
            _ => position.scale_by(2.0 / (size - 1) as f64).with_constant(kiln_ir::Elementwise::Sub, 1.0),
        }
    };
    let points = RawTensor::cat(&[line(1, width), line(0, height), RawTensor::ones(&device, &sizes, dtype)], 2);
    let points = points.reshape(&[1, height * width, 3]);
    points.matmul(&transform.transpose()).reshape(&[batch, height, width, 2])
}
