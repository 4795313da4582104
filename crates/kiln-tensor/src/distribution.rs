//! `Distribution`: what random numbers are drawn from, and drawing them on the host.

use alloc::format;
use alloc::string::String;

use rand::Rng;
use rand::RngExt;
use rand::distr::uniform::SampleUniform;
use rand::distr::{Bernoulli, StandardUniform, Uniform};
use rand_distr::{Distribution as _, Normal, StandardNormal};
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
    /// ```
    /// use kiln_tensor::Distribution;
    /// use rand::SeedableRng;
    /// let mut rng = rand::rngs::StdRng::seed_from_u64(1);
    /// let x: f32 = Distribution::Uniform(2.0, 3.0).sampler(&mut rng).sample();
    /// assert!((2.0..3.0).contains(&x));
    /// ```
    ///
    /// # Panics
    /// When a parameter is not valid: a probability outside of 0..=1, an empty or infinite range, a negative deviation.
    #[track_caller]
    pub fn sampler<R, E>(self, rng: &mut R) -> DistributionSampler<'_, E, R>
    where
        R: Rng,
        E: Element + SampleUniform,
        StandardUniform: rand_distr::Distribution<E>,
    {
        if let Err(why) = self.checked() {
            panic!("{why}");
        }
        let kind = match self {
            Self::Default => DistributionSamplerKind::Standard(StandardUniform),
            Self::Uniform(low, high) => match Uniform::new(E::from_elem(low), E::from_elem(high)) {
                Ok(uniform) => DistributionSamplerKind::Uniform(uniform),
                Err(error) => panic!("Uniform: the range {low}..{high} has no values of {:?}: {error}", E::dtype()),
            },
            Self::Bernoulli(p) => DistributionSamplerKind::Bernoulli(Bernoulli::new(p).expect("the probability was checked")),
            Self::Normal(mean, std) => DistributionSamplerKind::Normal(Normal::new(mean, std).expect("the deviation was checked")),
        };
        DistributionSampler::new(kind, rng)
    }

    /// What is wrong with the parameters.
    pub(crate) fn checked(self) -> Result<(), String> {
        match self {
            Self::Bernoulli(p) if !(0.0..=1.0).contains(&p) => Err(format!("Bernoulli: probability {p} is outside of 0..=1")),
            Self::Uniform(low, high) if !(low < high && (high - low).is_finite()) => {
                Err(format!("Uniform: the range {low}..{high} is empty or infinite"))
            }
            Self::Normal(mean, std) if !(std >= 0.0 && std.is_finite() && mean.is_finite()) => {
                Err(format!("Normal: mean {mean}, standard deviation {std} is not valid"))
            }
            Self::Default | Self::Bernoulli(_) | Self::Uniform(..) | Self::Normal(..) => Ok(()),
        }
    }
}

/// What a [`DistributionSampler`] draws from: a [`Distribution`] made ready for one element type.
pub enum DistributionSamplerKind<E>
where
    StandardUniform: rand_distr::Distribution<E>,
    E: SampleUniform,
{
    /// Uniform: floats in `[0, 1)`, integers over their whole range.
    Standard(StandardUniform),
    /// Uniform in a half-open range.
    Uniform(Uniform<E>),
    /// 1 with some probability, else 0.
    Bernoulli(Bernoulli),
    /// Normal, rounded to the element type.
    Normal(Normal<f64>),
}

/// Draws elements from a [`Distribution`].
pub struct DistributionSampler<'a, E, R>
where
    StandardUniform: rand_distr::Distribution<E>,
    E: SampleUniform,
    R: Rng,
{
    kind: DistributionSamplerKind<E>,
    rng: &'a mut R,
}

impl<'a, E, R> DistributionSampler<'a, E, R>
where
    StandardUniform: rand_distr::Distribution<E>,
    E: SampleUniform,
    R: Rng,
{
    /// A sampler that draws from `kind` with one generator.
    ///
    /// ```
    /// use kiln_tensor::{DistributionSampler, DistributionSamplerKind};
    /// use rand::SeedableRng;
    /// use rand::distr::Bernoulli;
    /// let mut rng = rand::rngs::StdRng::seed_from_u64(1);
    /// let certain = DistributionSamplerKind::<i32>::Bernoulli(Bernoulli::new(1.0).unwrap());
    /// assert_eq!(DistributionSampler::new(certain, &mut rng).sample(), 1);
    /// ```
    pub fn new(kind: DistributionSamplerKind<E>, rng: &'a mut R) -> Self {
        Self { kind, rng }
    }
}

impl<E, R> DistributionSampler<'_, E, R>
where
    StandardUniform: rand_distr::Distribution<E>,
    E: SampleUniform + Element,
    R: Rng,
{
    /// Draws one element.
    pub fn sample(&mut self) -> E {
        match &self.kind {
            DistributionSamplerKind::Standard(standard) => standard.sample(self.rng),
            DistributionSamplerKind::Uniform(uniform) => uniform.sample(self.rng),
            DistributionSamplerKind::Bernoulli(bernoulli) => E::from_elem(bernoulli.sample(self.rng)),
            DistributionSamplerKind::Normal(normal) => E::from_elem(normal.sample(self.rng)),
        }
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
