//! A new random order for each epoch.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::dataset::transform::shuffled_indices;

/// Draws the order of each epoch from a key and the epoch's number, so that copies of a loader go on alike.
pub(super) struct Shuffle {
    key: [u8; 32],
    epoch: AtomicU64,
}

impl Shuffle {
    pub(super) fn new(mut rng: StdRng) -> Self {
        let mut key = [0; 32];
        rng.fill_bytes(&mut key);
        Self { key, epoch: AtomicU64::new(0) }
    }

    /// The order of the next epoch.
    pub(super) fn next_order(&self, len: usize) -> Vec<usize> {
        let epoch = self.epoch.fetch_add(1, Ordering::Relaxed);
        let mut seed = self.key;
        // The generator's stream is unrelated for any two seeds, however close.
        seed.iter_mut().zip(epoch.to_le_bytes()).for_each(|(byte, epoch)| *byte ^= epoch);
        shuffled_indices(len, &mut StdRng::from_seed(seed))
    }
}

impl Clone for Shuffle {
    fn clone(&self) -> Self {
        Self { key: self.key, epoch: AtomicU64::new(self.epoch.load(Ordering::Relaxed)) }
    }
}
