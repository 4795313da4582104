//! Where random numbers come from, and how an index is drawn from them.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Where a transform takes its random numbers from.
// One value lives for the length of a call, so its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Default, PartialEq, Eq)]
pub enum RngSource {
    /// A generator seeded by the system: different in every run.
    #[default]
    Default,
    /// A generator seeded by this number: the same in every run and on every platform.
    Seed(u64),
    /// This generator.
    Rng(StdRng),
}

impl From<RngSource> for StdRng {
    fn from(source: RngSource) -> Self {
        match source {
            RngSource::Default => rand::make_rng(),
            RngSource::Seed(seed) => StdRng::seed_from_u64(seed),
            RngSource::Rng(rng) => rng,
        }
    }
}

impl From<StdRng> for RngSource {
    fn from(rng: StdRng) -> Self {
        Self::Rng(rng)
    }
}

impl From<&mut StdRng> for RngSource {
    /// A new generator seeded by `rng`, which moves on.
    fn from(rng: &mut StdRng) -> Self {
        Self::Rng(StdRng::from_rng(rng))
    }
}

impl From<u64> for RngSource {
    fn from(seed: u64) -> Self {
        Self::Seed(seed)
    }
}

/// A uniform number below `bound`, from 64 random bits whatever the width of `usize`, so that 32-bit and 64-bit platforms draw alike.
///
/// The unbiased multiply-and-reject method of D. Lemire, "Fast random integer generation in an interval" (2019).
pub(crate) fn below(bound: usize, rng: &mut StdRng) -> usize {
    let bound = bound as u64;
    let wide = |word: u64| u128::from(word) * u128::from(bound);
    let mut product = wide(rng.next_u64());
    if (product as u64) < bound {
        let threshold = bound.wrapping_neg() % bound;
        while (product as u64) < threshold {
            product = wide(rng.next_u64());
        }
    }
    (product >> 64) as usize
}
