//! How large a sampled dataset is.

/// The size of a dataset made from another one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum SizeConfig {
    /// As many items as the source.
    #[default]
    Default,
    /// This share of the source's items, rounded down.
    Ratio(f64),
    /// This number of items.
    Fixed(usize),
}

impl SizeConfig {
    /// As many items as the source.
    pub fn source() -> Self {
        Self::Default
    }

    /// The number of items for a source of `source_size` items.
    pub fn resolve(self, source_size: usize) -> usize {
        match self {
            Self::Default => source_size,
            Self::Ratio(ratio) => (source_size as f64 * ratio) as usize,
            Self::Fixed(size) => size,
        }
    }
}

impl From<f64> for SizeConfig {
    fn from(ratio: f64) -> Self {
        Self::Ratio(ratio)
    }
}

impl From<usize> for SizeConfig {
    fn from(size: usize) -> Self {
        Self::Fixed(size)
    }
}
