//! Dots and convolutions of the interpreter.
use super::structural::flat;
use super::value::{Data, Tensor};
use crate::dims::{for_each_index, numel, row_major};
use crate::op::ConvAttrs;
use crate::{DType, Dims};

/// A sum of products: floats in `f64`, integers wrapping.
#[derive(Clone, Copy, Default)]
struct Sum {
    float: f64,
    int: i128,
}

impl Sum {
    /// Adds `x[i] * y[j]`; an absent position is a zero (which still meets the other factor: `0 * inf` is NaN).
    fn add(&mut self, x: &Tensor, i: Option<usize>, y: &Tensor, j: Option<usize>) {
        match (&x.data, &y.data) {
            (Data::Float(x), Data::Float(y)) => self.float += i.map_or(0.0, |i| x[i]) * j.map_or(0.0, |j| y[j]),
            (Data::Int(x), Data::Int(y)) => {
                let product = i.map_or(0, |i| x[i]).wrapping_mul(j.map_or(0, |j| y[j]));
                self.int = self.int.wrapping_add(product);
            }
            (Data::Float(_), Data::Int(_)) | (Data::Int(_), Data::Float(_)) => unreachable!("operands of a contraction have one dtype"),
        }
    }

    fn store(self, out: &mut Tensor, at: usize) {
        let dtype = out.dtype;
        match &mut out.data {
            Data::Float(v) => v[at] = self.float,
            Data::Int(v) => v[at] = dtype.wrap(self.int),
        }
    }
}

/// [`crate::Op::Dot`].
pub fn dot(x: &Tensor, y: &Tensor, dims: &[usize], dtype: DType) -> Tensor {
    let r = dims.len();
    let (m, n, k) = (dims[r - 2], dims[r - 1], x.dims[r - 1]);
    let mut out = Tensor::zeros(dtype, dims);
    let (xs, ys) = (row_major(&x.dims), row_major(&y.dims));
    let mut at = 0;
    for_each_index(&dims[..r - 2], |b| {
        let start = |t: &Tensor, strides: &[isize]| -> usize { (0..r - 2).filter(|a| t.dims[*a] != 1).map(|a| strides[a] as usize * b[a]).sum() };
        let (x0, y0) = (start(x, &xs), start(y, &ys));
        for i in 0..m {
            for j in 0..n {
                let mut sum = Sum::default();
                for p in 0..k {
                    sum.add(x, Some(x0 + i * k + p), y, Some(y0 + p * n + j));
                }
                sum.store(&mut out, at);
                at += 1;
            }
        }
    });
    out
}

/// Calls `f(x, w, y)` with the flat indices of every product of a convolution; `x` is absent in the padding.
pub fn for_each_product(attrs: &ConvAttrs, x: &[usize], w: &[usize], y: &[usize], mut f: impl FnMut(Option<usize>, usize, usize)) {
    let outputs_per_group = w[0] / attrs.groups.max(1);
    let mut coords = Dims::from_elem(0, x.len());
    let mut yi = 0;
    for_each_index(y, |i| {
        let (o, group) = (i[1], i[1] / outputs_per_group.max(1));
        let mut wi = o * numel(&w[1..]);
        for_each_index(&w[1..], |k| {
            coords[0] = i[0];
            coords[1] = group * w[1] + k[0];
            let mut inside = true;
            for s in 0..attrs.stride.len() {
                let at = (i[s + 2] * attrs.stride[s] + k[s + 1] * attrs.dilation[s]) as isize - attrs.padding[s].0 as isize;
                inside &= (0..x[s + 2] as isize).contains(&at);
                coords[s + 2] = at.max(0) as usize;
            }
            f(if inside { Some(flat(x, &coords)) } else { None }, wi, yi);
            wi += 1;
        });
        yi += 1;
    });
}

/// [`crate::Op::Conv`].
pub fn conv(x: &Tensor, w: &Tensor, attrs: &ConvAttrs, dims: &[usize]) -> Tensor {
    let mut sums = alloc::vec![Sum::default(); numel(dims)];
    for_each_product(attrs, &x.dims, &w.dims, dims, |xi, wi, yi| sums[yi].add(x, xi, w, Some(wi)));
    collect(sums, x.dtype, dims)
}

/// [`crate::Op::ConvInputGrad`].
pub fn conv_input_grad(dy: &Tensor, w: &Tensor, attrs: &ConvAttrs, dims: &[usize]) -> Tensor {
    let mut sums = alloc::vec![Sum::default(); numel(dims)];
    for_each_product(attrs, dims, &w.dims, &dy.dims, |xi, wi, yi| {
        if let Some(xi) = xi {
            sums[xi].add(dy, Some(yi), w, Some(wi));
        }
    });
    collect(sums, dy.dtype, dims)
}

/// [`crate::Op::ConvWeightGrad`].
pub fn conv_weight_grad(x: &Tensor, dy: &Tensor, attrs: &ConvAttrs, dims: &[usize]) -> Tensor {
    let mut sums = alloc::vec![Sum::default(); numel(dims)];
    for_each_product(attrs, &x.dims, dims, &dy.dims, |xi, wi, yi| sums[wi].add(x, xi, dy, Some(yi)));
    collect(sums, x.dtype, dims)
}

fn collect(sums: alloc::vec::Vec<Sum>, dtype: DType, dims: &[usize]) -> Tensor {
    let mut out = Tensor::zeros(dtype, dims);
    sums.into_iter().enumerate().for_each(|(i, s)| s.store(&mut out, i));
    out
}
