//! `Distribution`: what random numbers are drawn from, and drawing them on the host.

use core::marker::PhantomData;

use rand::Rng;
use rand::RngExt;
use rand_distr::{Distribution as _, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::element::{Element, ElementConversion, ToElement};

/// A distribution of random numbers.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub enum Distribution {
    /// Uniform: floats in `[0, 1)`, integers over their whole range, booleans with even odds.
    #[default]
    Default,
    /// 1 with the given probability, else 0.
    Bernoulli(f64),
    /// Uniform in the half-open range `[low, high)`.
    Uniform(f64, f64),
    /// Normal, with mean and standard deviation.
    Normal(f64, f64),
}

impl Distribution {
    /// A sampler that draws elements of one type with one generator.
    ///
    /// # Panics
    /// When a parameter is not valid: a probability outside of 0..=1, an empty or infinite range, a negative deviation.
    #[track_caller]
    pub fn sampler<R, E>(self, rng: &mut R) -> DistributionSampler<'_, E, R>
    where
        R: Rng,
        E: Element,
    {
        self.check();
        DistributionSampler { distribution: self, rng, element: PhantomData }
    }

    #[track_caller]
    pub(crate) fn check(self) {
        match self {
            Self::Default => {}
            Self::Bernoulli(p) => assert!((0.0..=1.0).contains(&p), "Bernoulli: probability {p} is outside of 0..=1"),
            Self::Uniform(low, high) => assert!(low < high && (high - low).is_finite(), "Uniform: the range {low}..{high} is empty or infinite"),
            Self::Normal(mean, std) => {
                assert!(std >= 0.0 && std.is_finite() && mean.is_finite(), "Normal: mean {mean}, standard deviation {std} is not valid")
            }
        }
    }
}

/// Draws elements from a [`Distribution`].
pub struct DistributionSampler<'a, E, R> {
    distribution: Distribution,
    rng: &'a mut R,
    element: PhantomData<E>,
}

impl<E: Element, R: Rng> DistributionSampler<'_, E, R> {
    /// Draws one element.
    pub fn sample(&mut self) -> E {
        E::random(self.distribution, self.rng)
    }
}

fn real<R: Rng>(distribution: Distribution, rng: &mut R) -> f64 {
    match distribution {
        Distribution::Default => rng.random(),
        Distribution::Bernoulli(p) => f64::from(u8::from(rng.random::<f64>() < p)),
        Distribution::Uniform(low, high) => low + (high - low) * rng.random::<f64>(),
        Distribution::Normal(mean, std) => {
            let x: f64 = StandardNormal.sample(rng);
            mean + std * x
        }
    }
}

/// Draws a float. Rounding never reaches the upper bound of a half-open range.
pub(crate) fn random_float<E, R>(distribution: Distribution, rng: &mut R) -> E
where
    E: ElementConversion + ToElement + Copy,
    R: Rng,
{
    let open = match distribution {
        Distribution::Default => Some(1.0),
        Distribution::Uniform(low, high) => Some(high).filter(|_| {
            let bound: f64 = E::from_elem(low).to_f64();
            bound < high
        }),
        Distribution::Bernoulli(_) | Distribution::Normal(..) => None,
    };
    loop {
        let x = E::from_elem(real(distribution, rng));
        if open.is_none_or(|high| x.to_f64() < high) {
            return x;
        }
    }
}

/// Draws an integer.
pub(crate) fn random_int<E, R>(distribution: Distribution, rng: &mut R) -> E
where
    E: ElementConversion,
    R: Rng,
{
    let floor = |x: f64| E::from_elem(libm::floor(x));
    match distribution {
        Distribution::Default => E::from_elem(rng.random::<u64>()),
        Distribution::Uniform(low, high) => floor(low + (high - low) * rng.random::<f64>()),
        Distribution::Bernoulli(_) => E::from_elem(real(distribution, rng)),
        Distribution::Normal(..) => E::from_elem(libm::round(real(distribution, rng))),
    }
}

/// Draws a boolean: with even odds by default, with the given probability for Bernoulli, else whether the number drawn is not zero
/// after truncation.
pub(crate) fn random_bool<R: Rng>(distribution: Distribution, rng: &mut R) -> bool {
    match distribution {
        Distribution::Default => rng.random(),
        Distribution::Bernoulli(_) => real(distribution, rng) != 0.0,
        Distribution::Uniform(..) | Distribution::Normal(..) => real(distribution, rng).to_i64() != 0,
    }
}
