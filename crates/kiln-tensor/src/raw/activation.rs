//! Activations whose stable form or short gradient is worth a method; the others are composed of these where they are used.
use kiln_ir::Elementwise::{Add, Div, Eq, Gt, Max, Mul, Sub};

use super::RawTensor;
use crate::autodiff::{self, Keep};

/// `sqrt(2 / pi)`.
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;

impl RawTensor {
    /// `max(x, 0)`; its slope at 0 is 0.
    #[track_caller]
    pub fn relu(&self) -> RawTensor {
        let y = self.untracked().with_constant(Max, 0.0);
        autodiff::custom(&[self], y, Keep::Output, |call| [Some(call.output().with_constant(Gt, 0.0).choose_or_zero(call.dy))].into())
    }

    /// `1 / (1 + exp(-x))`: saturates without overflow, in value and slope.
    #[track_caller]
    pub fn sigmoid(&self) -> RawTensor {
        let y = self.untracked().neg().exp().with_constant(Add, 1.0).recip();
        autodiff::custom(&[self], y, Keep::Output, |call| {
            let s = call.output();
            [Some(call.dy.mul(&s.mul(&s.constant_with(Sub, 1.0))))].into()
        })
    }

    /// `x * sigmoid(x)`.
    #[track_caller]
    pub fn silu(&self) -> RawTensor {
        let x = self.untracked();
        let y = x.mul(&x.sigmoid());
        autodiff::custom(&[self], y, Keep::Inputs, |call| {
            let x = call.input(0);
            let s = x.sigmoid();
            let slope = s.mul(&x.mul(&s.constant_with(Sub, 1.0)).with_constant(Add, 1.0));
            [Some(call.dy.mul(&slope))].into()
        })
    }

    /// `x / 2 * (1 + erf(x / sqrt 2))`.
    #[track_caller]
    pub fn gelu(&self) -> RawTensor {
        fn cdf(x: &RawTensor) -> RawTensor {
            x.with_constant(Mul, core::f64::consts::FRAC_1_SQRT_2).erf().with_constant(Add, 1.0).with_constant(Mul, 0.5)
        }
        let x = self.untracked();
        let y = x.mul(&cdf(&x));
        autodiff::custom(&[self], y, Keep::Inputs, |call| {
            let x = call.input(0);
            // The density of the normal distribution, 1 / sqrt(2 pi) exp(-x² / 2).
            let density = x.square().with_constant(Mul, -0.5).exp().with_constant(Mul, 0.398_942_280_401_432_7);
            [Some(call.dy.mul(&cdf(x).add(&x.mul(&density))))].into()
        })
    }

    /// The tanh form of gelu: `x / 2 * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³)))`.
    #[track_caller]
    pub fn gelu_tanh(&self) -> RawTensor {
        fn tanh_of(x: &RawTensor, square: &RawTensor) -> RawTensor {
            let inner = square.with_constant(Mul, 0.044_715).with_constant(Add, 1.0).mul(x);
            inner.with_constant(Mul, SQRT_2_OVER_PI).tanh()
        }
        let x = self.untracked();
        let y = x.with_constant(Mul, 0.5).mul(&tanh_of(&x, &x.square()).with_constant(Add, 1.0));
        autodiff::custom(&[self], y, Keep::Inputs, |call| {
            let x = call.input(0);
            let square = x.square();
            let t = tanh_of(x, &square);
            let inner = square.with_constant(Mul, 3.0 * 0.044_715).with_constant(Add, 1.0).with_constant(Mul, SQRT_2_OVER_PI);
            let bend = x.mul(&t.square().constant_with(Sub, 1.0)).mul(&inner);
            let slope = t.with_constant(Add, 1.0).add(&bend).with_constant(Mul, 0.5);
            [Some(call.dy.mul(&slope))].into()
        })
    }

    /// `ln(1 + exp(beta x)) / beta`, and `x` itself where `beta x` exceeds the threshold.
    #[track_caller]
    pub fn softplus(&self, beta: f64, threshold: f64) -> RawTensor {
        let x = self.untracked();
        let scaled = x.with_constant(Mul, beta);
        let soft = scaled.abs().neg().exp().log1p().add(&scaled.with_constant(Max, 0.0)).with_constant(Div, beta);
        let y = soft.mask_where(&scaled.with_constant(Gt, threshold), &x);
        autodiff::custom(&[self], y, Keep::Inputs, move |call| {
            let scaled = call.input(0).with_constant(Mul, beta);
            let slope = scaled.sigmoid().fill_constant(&scaled.with_constant(Gt, threshold), 1.0);
            [Some(call.dy.mul(&slope))].into()
        })
    }

    /// `ln sigmoid(x) = -softplus(-x)`.
    #[track_caller]
    pub fn log_sigmoid(&self) -> RawTensor {
        let x = self.untracked();
        let y = x.with_constant(kiln_ir::Elementwise::Min, 0.0).sub(&x.abs().neg().exp().log1p());
        autodiff::custom(&[self], y, Keep::Inputs, |call| [Some(call.dy.mul(&call.input(0).neg().sigmoid()))].into())
    }

    /// The maximum that is taken out before exponentials: 0 of nothing, for which nothing is computed.
    #[track_caller]
    fn top(&self, axes: &[usize]) -> RawTensor {
        let empty = axes.iter().any(|axis| self.dims().get(*axis) == Some(&0));
        if empty { self.sum(axes) } else { self.max(axes) }
    }

    /// Softmax along an axis.
    #[track_caller]
    pub fn softmax(&self, axis: usize) -> RawTensor {
        let x = self.untracked();
        let e = x.sub(&x.top(&[axis])).exp();
        let y = e.div(&e.sum(&[axis]));
        autodiff::custom(&[self], y, Keep::Output, move |call| {
            let weighted = call.dy.mul(call.output());
            [Some(weighted.sub(&call.output().mul(&weighted.sum(&[axis]))))].into()
        })
    }

    /// Softmax along an axis with one more term of 0 in the sum, so that a row may be all 0.
    #[track_caller]
    pub fn quiet_softmax(&self, axis: usize) -> RawTensor {
        let x = self.untracked();
        // The extra term is part of the maximum that is taken out.
        let top = x.top(&[axis]).with_constant(Max, 0.0);
        let e = x.sub(&top).exp();
        let y = e.div(&e.sum(&[axis]).add(&top.neg().exp()));
        autodiff::custom(&[self], y, Keep::Output, move |call| {
            let weighted = call.dy.mul(call.output());
            [Some(weighted.sub(&call.output().mul(&weighted.sum(&[axis]))))].into()
        })
    }

    /// Softmax along an axis where a row of nothing but -inf gives 0 instead of NaN: what attention means by a fully masked row.
    #[track_caller]
    pub fn masked_softmax(&self, axis: usize) -> RawTensor {
        let x = self.untracked();
        let top = x.top(&[axis]);
        let nothing = top.with_constant(Eq, f64::NEG_INFINITY);
        let e = x.sub(&top.fill_constant(&nothing, 0.0)).exp();
        let y = e.div(&e.sum(&[axis]).fill_constant(&nothing, 1.0));
        autodiff::custom(&[self], y, Keep::Output, move |call| {
            let weighted = call.dy.mul(call.output());
            [Some(weighted.sub(&call.output().mul(&weighted.sum(&[axis]))))].into()
        })
    }

    /// Logarithm of softmax along an axis.
    #[track_caller]
    pub fn log_softmax(&self, axis: usize) -> RawTensor {
        let x = self.untracked();
        let shifted = x.sub(&x.top(&[axis]));
        let y = shifted.sub(&shifted.exp().sum(&[axis]).log());
        autodiff::custom(&[self], y, Keep::Output, move |call| [Some(call.dy.sub(&call.output().exp().mul(&call.dy.sum(&[axis]))))].into())
    }

    /// `ln(sum(exp(x)))` over axes without overflow; -inf over nothing but -inf.
    #[track_caller]
    pub fn log_sum_exp(&self, axes: &[usize]) -> RawTensor {
        let x = self.untracked();
        let top = x.top(axes);
        let top = top.fill_constant(&top.is_inf(), 0.0);
        let y = x.sub(&top).exp().sum(axes).log().add(&top);
        let axes: smallvec::SmallVec<[usize; 4]> = axes.into();
        autodiff::custom(&[self], y, Keep::Inputs, move |call| {
            let x = call.input(0);
            let y = x.log_sum_exp(&axes);
            let nothing = y.with_constant(Eq, f64::NEG_INFINITY);
            let weights = x.sub(&y.fill_constant(&nothing, 0.0)).exp();
            [Some(call.dy.mul(&weights))].into()
        })
    }
}
