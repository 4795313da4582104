//! Views, regions, reductions, scans, indexing and sorts of the interpreter.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::elementwise::{Reduction, scan_step, scatter_step};
use super::value::{Scalar, Tensor};
use crate::dims::{self, for_each_index, numel, row_major};
use crate::op::{SliceAxis, WindowAxis};
use crate::{DType, Dims, ReduceOp, ScanOp, ScatterOp};

/// Flat index of coordinates `i` in a dense tensor of `dims`.
pub fn flat(dims: &[usize], i: &[usize]) -> usize {
    i.iter().zip(dims).fold(0, |a, (i, d)| a * d + i)
}

/// A tensor of `dims` whose element at each index is the element of `x` at the flat index `f` gives.
fn view(x: &Tensor, dims: &[usize], mut f: impl FnMut(&[usize]) -> usize) -> Tensor {
    let mut out = Tensor::zeros(x.dtype, dims);
    let mut n = 0;
    for_each_index(dims, |i| {
        out.set(n, x.get(f(i)));
        n += 1;
    });
    out
}

/// [`crate::Op::Permute`].
pub fn permute(x: &Tensor, perm: &[u8], dims: &[usize]) -> Tensor {
    let strides = row_major(&x.dims);
    view(x, dims, |i| perm.iter().zip(i).map(|(p, i)| strides[*p as usize] as usize * i).sum())
}

/// A tensor whose second axis becomes the last.
pub fn channels_last(x: &Tensor) -> Tensor {
    let mut perm: Vec<u8> = (0..x.dims.len() as u8).collect();
    perm[1..].rotate_left(1);
    permute(x, &perm, &dims::channels_last(&x.dims))
}

/// A tensor whose last axis becomes the second.
pub fn channels_first(x: &Tensor) -> Tensor {
    let mut perm: Vec<u8> = (0..x.dims.len() as u8).collect();
    perm[1..].rotate_right(1);
    permute(x, &perm, &dims::channels_first(&x.dims))
}

/// [`crate::Op::Expand`].
pub fn expand(x: &Tensor, dims: &[usize]) -> Tensor {
    let lead = dims.len() - x.dims.len();
    let strides = row_major(&x.dims);
    view(x, dims, |i| (0..x.dims.len()).filter(|a| x.dims[*a] != 1).map(|a| strides[a] as usize * i[lead + a]).sum())
}

/// Flat index in `whole` of every element of a slice of shape `part`, in row-major order of the slice.
fn slice_indices(whole: &[usize], part: &[usize], axes: &[SliceAxis], starts: &[i64]) -> Result<Vec<usize>, String> {
    let mut error = None;
    let mut indices = Vec::with_capacity(numel(part));
    let mut coords = Dims::from_elem(0, whole.len());
    for_each_index(part, |i| {
        coords.copy_from_slice(i);
        for (s, start) in axes.iter().zip(starts) {
            let a = s.axis as usize;
            let at = start + s.step as i64 * i[a] as i64;
            if at < 0 || at as usize >= whole[a] {
                error = Some(format!("slice: element {at} of axis {a} of {whole:?}"));
                coords[a] = 0;
            } else {
                coords[a] = at as usize;
            }
        }
        indices.push(flat(whole, &coords));
    });
    match error {
        Some(e) => Err(e),
        None => Ok(indices),
    }
}

/// [`crate::Op::Slice`].
pub fn slice(x: &Tensor, axes: &[SliceAxis], starts: &[i64], dims: &[usize]) -> Result<Tensor, String> {
    let mut indices = slice_indices(&x.dims, dims, axes, starts)?.into_iter();
    Ok(view(x, dims, |_| indices.next().unwrap_or(0)))
}

/// [`crate::Op::Update`].
pub fn update(x: &Tensor, y: &Tensor, axes: &[SliceAxis], starts: &[i64]) -> Result<Tensor, String> {
    let mut out = x.clone();
    for (n, i) in slice_indices(&x.dims, &y.dims, axes, starts)?.into_iter().enumerate() {
        out.set(i, y.get(n));
    }
    Ok(out)
}

/// Flat index in the unwindowed tensor of every window element, in row-major order of the windows.
fn window_indices(whole: &[usize], windows: &[usize], axes: &[WindowAxis]) -> Vec<usize> {
    let mut indices = Vec::with_capacity(numel(windows));
    let mut coords = Dims::from_elem(0, whole.len());
    for_each_index(windows, |i| {
        coords.copy_from_slice(&i[..whole.len()]);
        for (k, w) in axes.iter().enumerate() {
            coords[w.axis as usize] = coords[w.axis as usize] * w.stride + i[whole.len() + k] * w.dilation;
        }
        indices.push(flat(whole, &coords));
    });
    indices
}

/// [`crate::Op::Window`].
pub fn window(x: &Tensor, axes: &[WindowAxis], dims: &[usize]) -> Tensor {
    let mut indices = window_indices(&x.dims, dims, axes).into_iter();
    view(x, dims, |_| indices.next().unwrap_or(0))
}

/// [`crate::Op::Fold`].
pub fn fold(x: &Tensor, axes: &[WindowAxis], dims: &[usize]) -> Tensor {
    let mut out = Tensor::zeros(x.dtype, dims);
    for (n, i) in window_indices(dims, &x.dims, axes).into_iter().enumerate() {
        out.set(i, scatter_step(ScatterOp::Add, x.dtype, out.get(i), x.get(n)));
    }
    out
}

/// [`crate::Op::Pad`].
pub fn pad(x: &Tensor, fill: Scalar, pads: &[(usize, usize)], dims: &[usize]) -> Tensor {
    let mut out = Tensor::filled(x.dtype, dims, fill);
    let mut n = 0;
    let mut coords = Dims::from_elem(0, dims.len());
    for_each_index(&x.dims, |i| {
        for (a, c) in coords.iter_mut().enumerate() {
            *c = i[a] + pads[a].0;
        }
        out.set(flat(dims, &coords), x.get(n));
        n += 1;
    });
    out
}

/// [`crate::Op::Concat`].
pub fn concat(parts: &[&Tensor], axis: usize, dims: &[usize], dtype: DType) -> Tensor {
    let mut out = Tensor::zeros(dtype, dims);
    let mut start = 0;
    let mut coords = Dims::from_elem(0, dims.len());
    for part in parts {
        let mut n = 0;
        for_each_index(&part.dims, |i| {
            coords.copy_from_slice(i);
            coords[axis] += start;
            out.set(flat(dims, &coords), part.get(n));
            n += 1;
        });
        start += part.dims[axis];
    }
    out
}

/// [`crate::Op::Iota`].
pub fn iota(dtype: DType, dims: &[usize], axis: usize) -> Tensor {
    let mut out = Tensor::zeros(dtype, dims);
    let mut n = 0;
    for_each_index(dims, |i| {
        out.set(n, super::value::cast(Scalar::Int(i[axis] as i128), dtype));
        n += 1;
    });
    out
}

/// [`crate::Op::Reduce`].
pub fn reduce(x: &Tensor, op: ReduceOp, axes: u32, dims: &[usize], dtype: DType) -> Result<Tensor, String> {
    let mut parts = alloc::vec![Reduction::new(op, x.dtype); numel(dims)];
    if x.is_empty() && !parts.is_empty() && !op.has_identity() {
        return Err(format!("{}: over an empty axis of {:?}", op.name(), &x.dims[..]));
    }
    let mut n = 0;
    let mut coords = Dims::from_elem(0, dims.len());
    for_each_index(&x.dims, |i| {
        for (a, c) in coords.iter_mut().enumerate() {
            *c = if axes >> a & 1 == 1 { 0 } else { i[a] };
        }
        parts[flat(dims, &coords)].push(x.get(n));
        n += 1;
    });
    let mut out = Tensor::zeros(dtype, dims);
    parts.iter().enumerate().for_each(|(i, p)| out.set(i, p.finish()));
    Ok(out)
}

/// Sizes before, along and after an axis.
pub fn around(dims: &[usize], axis: usize) -> [usize; 3] {
    [numel(&dims[..axis]), dims[axis], numel(&dims[axis + 1..])]
}

/// Calls `f` with the flat index of the first element, the count and the step of each line along the middle of `[outer, n, inner]`.
pub fn for_each_line([outer, n, inner]: [usize; 3], mut f: impl FnMut(usize, usize, usize)) {
    for o in 0..outer {
        for i in 0..inner {
            f(o * n * inner + i, n, inner);
        }
    }
}

/// [`crate::Op::Scan`].
pub fn scan(x: &Tensor, op: ScanOp, dims: [usize; 3]) -> Tensor {
    let mut out = x.clone();
    for_each_line(dims, |first, n, step| {
        for k in 1..n {
            let at = first + k * step;
            out.set(at, scan_step(op, x.dtype, out.get(at - step), x.get(at)));
        }
    });
    out
}

/// Order of a sort: NaN above every number, zeros of both signs equal.
pub fn order(a: Scalar, b: Scalar) -> Ordering {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
        _ => a.int().cmp(&b.int()),
    }
}

/// [`crate::Op::Sort`]: values and indices.
pub fn sort(x: &Tensor, dims: [usize; 3], descending: bool) -> (Tensor, Tensor) {
    let mut values = x.clone();
    let mut indices = Tensor::zeros(DType::I64, &x.dims);
    for_each_line(dims, |first, n, step| {
        let mut line: Vec<usize> = (0..n).collect();
        line.sort_by(|&a, &b| {
            let o = order(x.get(first + a * step), x.get(first + b * step));
            if descending { o.reverse() } else { o }
        });
        for (k, &from) in line.iter().enumerate() {
            values.set(first + k * step, x.get(first + from * step));
            indices.set(first + k * step, Scalar::Int(from as i128));
        }
    });
    (values, indices)
}

/// An index checked against the extent of its axis.
pub fn checked_index(op: &str, index: i128, axis: usize, extent: usize) -> Result<usize, String> {
    if (0..extent as i128).contains(&index) {
        Ok(index as usize)
    } else {
        Err(format!("{op}: index {index} is out of range for axis {axis} of size {extent}"))
    }
}

/// [`crate::Op::Gather`].
pub fn gather(x: &Tensor, index: &Tensor, axis: usize) -> Result<Tensor, String> {
    let mut out = Tensor::zeros(x.dtype, &index.dims);
    let mut error = None;
    let mut n = 0;
    let mut coords = Dims::from_elem(0, x.dims.len());
    for_each_index(&index.dims, |i| {
        coords.copy_from_slice(i);
        match checked_index("gather", index.get(n).int(), axis, x.dims[axis]) {
            Ok(k) => {
                coords[axis] = k;
                out.set(n, x.get(flat(&x.dims, &coords)));
            }
            Err(e) => error = Some(error.take().unwrap_or(e)),
        }
        n += 1;
    });
    error.map_or(Ok(out), Err)
}

/// [`crate::Op::Scatter`].
pub fn scatter(x: &Tensor, index: &Tensor, values: &Tensor, axis: usize, op: ScatterOp) -> Result<Tensor, String> {
    let mut out = x.clone();
    let mut error = None;
    let mut n = 0;
    let mut coords = Dims::from_elem(0, x.dims.len());
    for_each_index(&index.dims, |i| {
        coords.copy_from_slice(i);
        match checked_index("scatter", index.get(n).int(), axis, x.dims[axis]) {
            Ok(k) => {
                coords[axis] = k;
                let at = flat(&x.dims, &coords);
                out.set(at, scatter_step(op, x.dtype, out.get(at), values.get(n)));
            }
            Err(e) => error = Some(error.take().unwrap_or(e)),
        }
        n += 1;
    });
    error.map_or(Ok(out), Err)
}
