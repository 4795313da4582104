//! Reads and writes by index.
use kiln_ir::{Dims, Elementwise, Op, ScatterOp};

use super::{RawTensor, apply};
use crate::trace::Operand;

impl RawTensor {
    /// `out[.., i, ..] = self[.., index[.., i, ..], ..]` along `axis`; the index has the result's sizes. Indices count from 0; one out of range is an error of the run.
    #[track_caller]
    pub fn gather(&self, axis: usize, index: &RawTensor) -> RawTensor {
        self.check_axis("gather", axis);
        apply(Op::Gather { axis }, &[Operand::Tensor(self), Operand::Tensor(index)])
    }

    /// This tensor with `self[.., index[..], ..] op= values` along `axis`.
    #[track_caller]
    pub fn scatter(&self, axis: usize, index: &RawTensor, values: &RawTensor, op: ScatterOp) -> RawTensor {
        self.check_axis("scatter", axis);
        apply(Op::Scatter { axis, op }, &[Operand::Tensor(self), Operand::Tensor(index), Operand::Tensor(values)])
    }

    /// The index of a rank-1 `index` along `axis`, broadcast over the other axes of `dims`.
    #[track_caller]
    fn along(op: &str, index: &RawTensor, axis: usize, dims: &[usize]) -> RawTensor {
        if index.rank() != 1 {
            panic!("{op}: the index must have one axis: {:?}", index.dims());
        }
        let mut narrow = Dims::from_elem(1, dims.len());
        narrow[axis] = index.dims()[0];
        let mut full = Dims::from_slice(dims);
        full[axis] = index.dims()[0];
        index.reshape(&narrow).expand(&full)
    }

    /// Whole slices of an axis, picked by a rank-1 index.
    #[track_caller]
    pub fn select(&self, axis: usize, index: &RawTensor) -> RawTensor {
        self.check_axis("select", axis);
        if let Some(kept) = self.select_quantized(axis, index) {
            return kept;
        }
        self.gather(axis, &Self::along("select", index, axis, self.dims()))
    }

    /// This tensor with whole slices of an axis, picked by a rank-1 index, combined with `values`.
    #[track_caller]
    pub fn select_assign(&self, axis: usize, index: &RawTensor, values: &RawTensor, op: ScatterOp) -> RawTensor {
        self.check_axis("select_assign", axis);
        let index = Self::along("select_assign", index, axis, self.dims());
        let values = values.expand_for("select_assign", index.dims());
        self.scatter(axis, &index, &values, op)
    }

    /// Rows of a table `[n, width]` picked by an index of any shape: `[..., width]`.
    #[track_caller]
    pub fn embedding(&self, index: &RawTensor) -> RawTensor {
        if self.rank() != 2 {
            panic!("embedding: the table must have two axes: {:?}", self.dims());
        }
        let mut dims = Dims::from_slice(index.dims());
        dims.push(self.dims()[1]);
        self.select(0, &index.reshape(&[index.numel()])).reshape(&dims)
    }

    /// The first axes' position, flattened, of an index `[..., k]` whose last axis holds `k` coordinates.
    #[track_caller]
    fn flat_index(op: &str, dims: &[usize], index: &RawTensor) -> (RawTensor, usize) {
        let Some(&k) = index.dims().last() else {
            panic!("{op}: the index needs a last axis of coordinates: tensor {dims:?}, index []");
        };
        if k == 0 || k > dims.len() {
            panic!("{op}: {k} coordinates for a tensor of rank {}: {dims:?}", dims.len());
        }
        let n: usize = index.dims()[..index.rank() - 1].iter().product();
        let index = index.reshape(&[n, k]);
        let mut flat: Option<RawTensor> = None;
        for (c, size) in dims[..k].iter().enumerate() {
            let part = index.narrow(1, c, 1);
            flat = Some(match flat {
                Some(f) => f.with_constant(Elementwise::Mul, *size as f64).add(&part),
                None => part,
            });
        }
        let flat = flat.unwrap_or(index);
        (flat.reshape(&[n]), k)
    }

    /// Slices at the positions of an index `[..., k]`: `[..., rest]`, where `rest` are the axes of this tensor after the first `k`.
    #[track_caller]
    pub fn gather_nd(&self, index: &RawTensor) -> RawTensor {
        let (flat, k) = Self::flat_index("gather_nd", self.dims(), index);
        let rows: usize = self.dims()[..k].iter().product();
        let width: usize = self.dims()[k..].iter().product();
        let mut dims = Dims::from_slice(&index.dims()[..index.rank() - 1]);
        dims.extend_from_slice(&self.dims()[k..]);
        self.reshape(&[rows, width]).select(0, &flat).reshape(&dims)
    }

    /// This tensor with slices at the positions of an index `[..., k]` combined with `values [..., rest]`.
    #[track_caller]
    pub fn scatter_nd(&self, index: &RawTensor, values: &RawTensor, op: ScatterOp) -> RawTensor {
        let (flat, k) = Self::flat_index("scatter_nd", self.dims(), index);
        let rows: usize = self.dims()[..k].iter().product();
        let width: usize = self.dims()[k..].iter().product();
        let n = flat.numel();
        if values.numel() != n * width {
            panic!("scatter_nd: values {:?} for an index {:?} of {:?}", values.dims(), index.dims(), self.dims());
        }
        let values = values.reshape(&[n, width]);
        self.reshape(&[rows, width]).select_assign(0, &flat, &values, op).reshape(self.dims())
    }

    /// Classes as a new last axis: `on` at the index, `off` elsewhere.
    #[track_caller]
    pub fn one_hot(&self, classes: usize, dtype: kiln_ir::DType) -> RawTensor {
        let mut dims = Dims::from_slice(self.dims());
        dims.push(classes);
        let axis = dims.len() - 1;
        let counter = RawTensor::iota(&self.device(), &dims, self.dtype(), axis);
        counter.eq(&self.unsqueeze(axis)).cast(dtype)
    }
}
