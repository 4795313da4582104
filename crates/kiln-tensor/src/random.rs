//! Seeds: which key each random tensor of a device draws with.

/// The seed of a device and how many tensors have drawn since it was set.
///
/// Every draw takes a key of its own from (seed, count), and every element its own counter below that key: what a draw gives depends on the seed and on the number of
/// draws before it, never on how the work is split.
pub(crate) struct Seeds {
    seed: u64,
    draws: u64,
}

impl Seeds {
    /// The state of a device that was never seeded. Programs that don't set a seed are reproducible too.
    pub const fn new() -> Self {
        Seeds { seed: 0, draws: 0 }
    }

    /// Starts again from `seed`.
    pub fn set(&mut self, seed: u64) {
        *self = Seeds { seed, draws: 0 };
    }

    /// The key of the next draw: the SplitMix64 sequence of the seed (Steele, Lea and Flood, 2014).
    pub fn next(&mut self) -> u64 {
        self.draws += 1;
        let mut z = self.seed.wrapping_add(self.draws.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
