//! Random samples of a dataset, with or without replacement.

use std::marker::PhantomData;
use std::sync::Mutex;

use rand::rngs::StdRng;

use super::super::{Dataset, DatasetError, check_index};
use super::{RngSource, SizeConfig, below, shuffled_indices};

/// How a [`SamplerDataset`] draws. By default: with replacement, as many items as the source, seeded by the system.
#[derive(Debug, PartialEq)]
pub struct SamplerDatasetOptions {
    /// Whether an item may be drawn again before all others were.
    pub replace_samples: bool,
    /// The number of items an epoch draws.
    pub size_config: SizeConfig,
    /// Where the random numbers come from.
    pub rng_source: RngSource,
}

impl Default for SamplerDatasetOptions {
    fn default() -> Self {
        Self { replace_samples: true, size_config: SizeConfig::Default, rng_source: RngSource::Default }
    }
}

impl SamplerDatasetOptions {
    /// Whether an item may be drawn again before all others were.
    pub fn with_replace_samples(self, replace_samples: bool) -> Self {
        Self { replace_samples, ..self }
    }

    /// Draws with replacement.
    pub fn with_replacement(self) -> Self {
        self.with_replace_samples(true)
    }

    /// Draws without replacement: all items once in random order, then again in another.
    pub fn without_replacement(self) -> Self {
        self.with_replace_samples(false)
    }

    /// Sets the number of items: a number or a share of the source.
    pub fn with_size<S>(self, source: S) -> Self
    where
        S: Into<SizeConfig>,
    {
        Self { size_config: source.into(), ..self }
    }

    /// As many items as the source.
    pub fn with_source_size(self) -> Self {
        self.with_size(SizeConfig::source())
    }

    /// This number of items.
    pub fn with_fixed_size(self, size: usize) -> Self {
        self.with_size(size)
    }

    /// This share of the source's items.
    pub fn with_size_ratio(self, size_ratio: f64) -> Self {
        self.with_size(size_ratio)
    }

    /// Sets where the random numbers come from: a seed or a generator.
    pub fn with_rng<R>(self, rng: R) -> Self
    where
        R: Into<RngSource>,
    {
        Self { rng_source: rng.into(), ..self }
    }

    /// Seeds by the system.
    pub fn with_system_rng(self) -> Self {
        self.with_rng(RngSource::Default)
    }

    /// Seeds by a number.
    pub fn with_seed(self, seed: u64) -> Self {
        self.with_rng(seed)
    }
}

impl<T> From<Option<T>> for SamplerDatasetOptions
where
    T: Into<SamplerDatasetOptions>,
{
    fn from(options: Option<T>) -> Self {
        options.map(Into::into).unwrap_or_default()
    }
}

impl From<usize> for SamplerDatasetOptions {
    fn from(size: usize) -> Self {
        Self::default().with_fixed_size(size)
    }
}

/// What the next draw depends on.
enum Draws {
    WithReplacement(StdRng),
    /// The second field holds what is left of the current permutation.
    WithoutReplacement(StdRng, Vec<usize>),
}

impl Draws {
    fn next(&mut self, source_size: usize) -> usize {
        match self {
            Self::WithReplacement(rng) => below(source_size, rng),
            Self::WithoutReplacement(rng, left) => {
                if left.is_empty() {
                    *left = shuffled_indices(source_size, rng);
                }
                left.pop().expect("a sampled source has items")
            }
        }
    }
}

/// A dataset whose items are drawn at random from another one each time they are read: the index only has to be in range. Its size sets
/// the length of an epoch. Draws happen in the order of the reads, so several worker threads share them out differently from run to run.
pub struct SamplerDataset<D, I> {
    dataset: D,
    size: usize,
    with_replacement: bool,
    draws: Mutex<Draws>,
    item: PhantomData<I>,
}

impl<D, I> SamplerDataset<D, I>
where
    D: Dataset<I>,
    I: Send + Sync,
{
    /// Samples `dataset` as `options` say; a number is a size, with all other options at their defaults.
    ///
    /// # Panics
    ///
    /// If items are to be drawn from an empty dataset.
    #[track_caller]
    pub fn new<O>(dataset: D, options: O) -> Self
    where
        O: Into<SamplerDatasetOptions>,
    {
        let options = options.into();
        let size = options.size_config.resolve(dataset.len());
        assert!(size == 0 || !dataset.is_empty(), "sampler: cannot draw {size} items from an empty dataset");
        let rng = options.rng_source.into();
        let draws = match options.replace_samples {
            true => Draws::WithReplacement(rng),
            false => Draws::WithoutReplacement(rng, Vec::new()),
        };
        Self { dataset, size, with_replacement: options.replace_samples, draws: Mutex::new(draws), item: PhantomData }
    }

    /// Draws `size` items with replacement.
    #[track_caller]
    pub fn with_replacement(dataset: D, size: usize) -> Self {
        let options = SamplerDatasetOptions::default();
        Self::new(dataset, options.with_replacement().with_fixed_size(size))
    }

    /// Draws `size` items without replacement.
    #[track_caller]
    pub fn without_replacement(dataset: D, size: usize) -> Self {
        let options = SamplerDatasetOptions::default();
        Self::new(dataset, options.without_replacement().with_fixed_size(size))
    }

    /// Whether an item may be drawn again before all others were.
    pub fn is_with_replacement(&self) -> bool {
        self.with_replacement
    }

    /// Draws `count` indexes of the source.
    fn draw(&self, count: usize) -> Vec<usize> {
        let source_size = self.dataset.len();
        let mut draws = self.draws.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (0..count).map(|_| draws.next(source_size)).collect()
    }
}

impl<D, I> Dataset<I> for SamplerDataset<D, I>
where
    D: Dataset<I>,
    I: Send + Sync,
{
    fn get(&self, index: usize) -> Result<I, DatasetError> {
        check_index(index, self.size);
        self.dataset.get(self.draw(1)[0])
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<I>, DatasetError> {
        for index in &indexes {
            check_index(*index, self.size);
        }
        self.dataset.get_many(self.draw(indexes.len()))
    }

    fn len(&self) -> usize {
        self.size
    }
}
