//! Pools of the interpreter.
use super::elementwise::{apply, better};
use super::structural::flat;
use super::value::{Scalar, Tensor, cast};
use crate::dims::{for_each_index, numel};
use crate::op::PoolAttrs;
use crate::{DType, Dims, Elementwise};

/// Calls `f(y, x, counts)` for each element of each window: the flat index of the window, that of the element in its plane (absent in the padding) and
/// whether the element counts in a mean's denominator.
fn for_each_element(attrs: &PoolAttrs, x: &[usize], y: &[usize], mut f: impl FnMut(usize, Option<usize>, bool)) {
    let n = attrs.kernel.len();
    let mut coords = Dims::from_elem(0, n);
    let mut yi = 0;
    for_each_index(y, |i| {
        for_each_index(&attrs.kernel, |k| {
            let (mut inside, mut padded) = (true, true);
            for s in 0..n {
                let (lo, hi) = attrs.padding[s];
                let at = (i[s + 2] * attrs.stride[s] + k[s] * attrs.dilation[s]) as isize - lo as isize;
                inside &= (0..x[s + 2] as isize).contains(&at);
                padded &= at < (x[s + 2] + hi) as isize;
                coords[s] = at.max(0) as usize;
            }
            let place = if inside { Some(flat(&x[2..], &coords)) } else { None };
            f(yi, place, inside || (padded && attrs.count_include_pad));
        });
        yi += 1;
    });
}

/// First element of the input plane that window `y` reads.
fn plane(x: &[usize], y: &[usize], yi: usize) -> usize {
    yi / numel(&y[2..]).max(1) * numel(&x[2..])
}

/// The smallest value of a dtype: what a window of padding alone gives.
fn lowest(dtype: DType) -> Scalar {
    if dtype.is_float() { Scalar::Float(f64::NEG_INFINITY) } else { Scalar::Int(dtype.int_range().0) }
}

/// [`crate::Op::MaxPool`]: values and indices (-1 for a window of padding alone).
pub fn max_pool(x: &Tensor, attrs: &PoolAttrs, dims: &[usize]) -> (Tensor, Tensor) {
    let mut values = Tensor::filled(x.dtype, dims, lowest(x.dtype));
    let mut indices = Tensor::filled(DType::I64, dims, Scalar::Int(-1));
    for_each_element(attrs, &x.dims, dims, |yi, xi, _| {
        if let Some(xi) = xi {
            let v = x.get(plane(&x.dims, dims, yi) + xi);
            if indices.get(yi).int() < 0 || better(v, values.get(yi), true) {
                values.set(yi, v);
                indices.set(yi, Scalar::Int(xi as i128));
            }
        }
    });
    (values, indices)
}

/// The denominators of a mean pool.
fn counts(attrs: &PoolAttrs, x: &[usize], y: &[usize]) -> alloc::vec::Vec<i128> {
    let mut counts = alloc::vec![0; numel(y)];
    for_each_element(attrs, x, y, |yi, _, c| counts[yi] += c as i128);
    counts
}

/// [`crate::Op::AvgPool`].
pub fn avg_pool(x: &Tensor, attrs: &PoolAttrs, dims: &[usize]) -> Tensor {
    let mut out = Tensor::zeros(x.dtype, dims);
    for_each_element(attrs, &x.dims, dims, |yi, xi, _| {
        if let Some(xi) = xi {
            let v = x.get(plane(&x.dims, dims, yi) + xi);
            out.set(yi, apply(Elementwise::Add, x.dtype, &[out.get(yi), v]));
        }
    });
    for (yi, n) in counts(attrs, &x.dims, dims).into_iter().enumerate() {
        out.set(yi, apply(Elementwise::Div, x.dtype, &[out.get(yi), cast(Scalar::Int(n), wide(x.dtype))]));
    }
    out
}

/// A dtype that holds a count exactly.
fn wide(dtype: DType) -> DType {
    if dtype.is_float() { DType::F64 } else { DType::I64 }
}

/// [`crate::Op::MaxPoolGrad`]; negative indices take part in nothing.
pub fn max_pool_grad(dy: &Tensor, indices: &Tensor, dims: &[usize]) -> Result<Tensor, alloc::string::String> {
    let mut out = Tensor::zeros(dy.dtype, dims);
    for yi in 0..dy.len() {
        let i = indices.get(yi).int();
        if i >= 0 {
            let i = super::structural::checked_index("max_pool_grad", i, 2, numel(&dims[2..]))?;
            let at = plane(dims, &dy.dims, yi) + i;
            out.set(at, apply(Elementwise::Add, dy.dtype, &[out.get(at), dy.get(yi)]));
        }
    }
    Ok(out)
}

/// [`crate::Op::AvgPoolGrad`].
pub fn avg_pool_grad(dy: &Tensor, attrs: &PoolAttrs, dims: &[usize]) -> Tensor {
    let mut out = Tensor::zeros(dy.dtype, dims);
    let counts = counts(attrs, dims, &dy.dims);
    for_each_element(attrs, dims, &dy.dims, |yi, xi, _| {
        if let Some(xi) = xi {
            let at = plane(dims, &dy.dims, yi) + xi;
            let share = apply(Elementwise::Div, dy.dtype, &[dy.get(yi), cast(Scalar::Int(counts[yi]), wide(dy.dtype))]);
            out.set(at, apply(Elementwise::Add, dy.dtype, &[out.get(at), share]));
        }
    });
    out
}
