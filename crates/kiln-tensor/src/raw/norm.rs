//! Normalisation: subtract the mean, divide by the standard deviation.
use kiln_ir::Elementwise::{Add, Mul};
use kiln_ir::{DType, Dims};

use super::{RawTensor, SliceRange};
use crate::autodiff::{self, Keep};

/// A normalised tensor and the statistics it was normalised with.
#[derive(Clone, Debug)]
pub struct Normalized {
    /// `(x - mean) / sqrt(var + eps)`.
    pub output: RawTensor,
    /// Mean over the axes, which stay with size 1. Not tracked.
    pub mean: RawTensor,
    /// Biased variance over the axes. Not tracked.
    pub var: RawTensor,
}

/// Centered values and the reciprocal of their deviation.
fn center(x: &RawTensor, axes: &[usize], eps: f64) -> (RawTensor, RawTensor, RawTensor, RawTensor) {
    let mean = x.mean(axes);
    let centered = x.sub(&mean);
    let var = centered.square().mean(axes);
    let scale = var.with_constant(Add, eps).sqrt().recip();
    (mean, var, centered, scale)
}

/// The statistics' dtype: half floats are too narrow for squares.
fn wide(x: &RawTensor) -> RawTensor {
    if matches!(x.dtype(), DType::F16 | DType::BF16) { x.cast(DType::F32) } else { x.clone() }
}

impl RawTensor {
    /// `(x - mean) / sqrt(var + eps)` over axes, with the biased variance in two passes. Only `x` is kept for the gradient.
    #[track_caller]
    pub fn normalize(&self, axes: &[usize], eps: f64) -> Normalized {
        let (mean, var, centered, scale) = center(&wide(&self.untracked()), axes, eps);
        let y = centered.mul(&scale).cast(self.dtype());
        let axes: smallvec::SmallVec<[usize; 4]> = axes.into();
        let output = autodiff::custom(&[self], y, Keep::Inputs, move |call| {
            let (_, _, centered, scale) = center(&wide(call.input(0)), &axes, eps);
            let g = wide(call.dy);
            let unit = centered.mul(&scale);
            let along = g.mul(&unit).mean(&axes);
            let dx = g.sub(&g.mean(&axes)).sub(&unit.mul(&along)).mul(&scale);
            [Some(dx.cast(call.dy.dtype()))].into()
        });
        Normalized { output, mean, var }
    }

    /// Layer normalisation over the last axis with weight `gamma` and offset `beta`.
    #[track_caller]
    pub fn layer_norm(&self, gamma: &RawTensor, beta: Option<&RawTensor>, eps: f64) -> RawTensor {
        let Some(&width) = self.dims().last() else {
            panic!("layer_norm: needs an axis: shape []");
        };
        let fits = |p: &RawTensor| p.dims() == [width];
        if !fits(gamma) || beta.is_some_and(|b| !fits(b)) {
            let beta = beta.map(RawTensor::dims);
            panic!("layer_norm: input {:?}, gamma {:?}, beta {beta:?}: gamma and beta need the last size", self.dims(), gamma.dims());
        }
        let y = self.normalize(&[self.rank() - 1], eps).output.mul(gamma);
        match beta {
            Some(b) => y.add(b),
            None => y,
        }
    }

    /// Division by the root of the mean square over the last axis, times `gamma`.
    #[track_caller]
    pub fn rms_norm(&self, gamma: &RawTensor, eps: f64) -> RawTensor {
        let axis = self.rank() - 1;
        let scale_of = move |x: &RawTensor| x.square().mean(&[axis]).with_constant(Add, eps).sqrt().recip();
        let x = wide(&self.untracked());
        let y = x.mul(&scale_of(&x)).cast(self.dtype());
        let unit = autodiff::custom(&[self], y, Keep::Inputs, move |call| {
            let x = wide(call.input(0));
            let g = wide(call.dy);
            let scale = scale_of(&x);
            let unit = x.mul(&scale);
            let dx = g.sub(&unit.mul(&g.mul(&unit).mean(&[axis]))).mul(&scale);
            [Some(dx.cast(call.dy.dtype()))].into()
        });
        unit.mul(gamma)
    }

    /// Batch normalisation of `[n, c, spatial...]` with given statistics, all of sizes `[c]`.
    #[track_caller]
    pub fn batch_norm(&self, gamma: &RawTensor, beta: &RawTensor, mean: &RawTensor, var: &RawTensor, eps: f64) -> RawTensor {
        for p in [gamma, var] {
            self.per_channel("batch_norm", p);
        }
        let c = |p: &RawTensor| self.per_channel("batch_norm", p);
        let scale = var.with_constant(Add, eps).sqrt().recip().mul(gamma);
        self.sub(&c(mean)).mul(&c(&scale)).add(&c(beta))
    }

    /// Batch normalisation with the batch's own statistics: the output, and the mean and biased variance `[c]`.
    #[track_caller]
    pub fn batch_norm_train(&self, gamma: &RawTensor, beta: &RawTensor, eps: f64) -> Normalized {
        let (gamma4, beta4) = (self.per_channel("batch_norm", &gamma.untracked()), self.per_channel("batch_norm", &beta.untracked()));
        let axes: smallvec::SmallVec<[usize; 8]> = (0..self.rank()).filter(|a| *a != 1).collect();
        let (x, c) = (wide(&self.untracked()), self.dims()[1]);
        let (mean, var) = x.batch_statistics(&axes);
        let scale = var.with_constant(Add, eps).sqrt().recip();
        let y = x.sub(&mean).mul(&scale.mul(&wide(&gamma4))).add(&wide(&beta4)).cast(self.dtype());
        let (mean, var) = (mean.reshape(&[c]), var.reshape(&[c]));
        // Both sums of the gradient are taken in one pass: they are the gradients of `beta` and `gamma`, and what `x` needs of all other points.
        let output = autodiff::custom(&[self, gamma, beta], y, Keep::Inputs, move |call| {
            let (x, gamma, g) = (wide(call.input(0)), call.input(1), wide(call.dy));
            let (mean, var) = x.batch_statistics(&axes);
            let scale = var.with_constant(Add, eps).sqrt().recip();
            let unit = x.sub(&mean).mul(&scale);
            let (sum, along) = (g.sum(&axes), g.mul(&unit).sum(&axes));
            let n = (x.dims().iter().product::<usize>() / c.max(1)).max(1) as f64;
            let back = |s: &RawTensor| s.with_constant(Mul, 1.0 / n);
            let dx = g.sub(&back(&sum)).sub(&unit.mul(&back(&along))).mul(&scale.mul(&x.per_channel("batch_norm", &wide(gamma))));
            let parameter = |s: &RawTensor| Some(s.reshape(&[c]).cast(gamma.dtype()));
            [Some(dx.cast(call.dy.dtype())), parameter(&along), parameter(&sum)].into()
        });
        Normalized { output, mean, var }
    }

    /// Mean and biased variance over axes, which stay with size 1, in one pass: sums of the distances from the first element and of their squares. That
    /// element is no further from the mean than the deviation is wide, but for outliers, so that little is lost in the difference.
    #[track_caller]
    fn batch_statistics(&self, axes: &[usize]) -> (RawTensor, RawTensor) {
        let first: smallvec::SmallVec<[SliceRange; 8]> = axes.iter().map(|a| SliceRange::new(*a, 0, self.dims()[*a].min(1))).collect();
        let first = self.slice_fixed(&first);
        let off = self.sub(&first);
        let (mean, square) = (off.mean(axes), off.square().mean(axes));
        let var = square.sub(&mean.square()).with_constant(kiln_ir::Elementwise::Max, 0.0);
        (first.add(&mean), var)
    }

    /// A parameter `[c]` of axis 1, ready to broadcast.
    #[track_caller]
    fn per_channel(&self, op: &str, p: &RawTensor) -> RawTensor {
        if self.rank() < 2 || p.dims() != [self.dims()[1]] {
            panic!("{op}: input {:?}, parameter {:?}: it needs one element a channel", self.dims(), p.dims());
        }
        let mut dims = Dims::from_elem(1, self.rank());
        dims[1] = self.dims()[1];
        p.reshape(&dims)
    }

    /// Euclidean length over axes, scaled so that large elements don't overflow; 0 over axes without elements.
    #[track_caller]
    pub fn norm2(&self, axes: &[usize]) -> RawTensor {
        if axes.iter().any(|axis| self.dims()[*axis] == 0) {
            return self.sum(axes);
        }
        let top = self.untracked().abs().max(axes);
        let plain = top.with_constant(kiln_ir::Elementwise::Eq, 0.0).or(&top.is_inf());
        let top = top.fill_constant(&plain, 1.0);
        let length = self.div(&top).square().sum(axes);
        // The slope of the root at 0 is infinite; the norm's is 0.
        let zero = length.untracked().with_constant(kiln_ir::Elementwise::Eq, 0.0);
        length.fill_constant(&zero, 1.0).sqrt().fill_constant(&zero, 0.0).mul(&top)
    }

    /// Product with a structural constant.
    #[track_caller]
    pub fn scale_by(&self, factor: f64) -> RawTensor {
        self.with_constant(Mul, factor)
    }
}
