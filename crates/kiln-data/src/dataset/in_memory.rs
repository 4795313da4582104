//! A dataset whose items lie in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::{Dataset, DatasetError, check_index};

/// A dataset whose items lie in a `Vec`; reading one clones it.
pub struct InMemDataset<I> {
    items: Vec<I>,
}

impl<I> InMemDataset<I> {
    /// Wraps items.
    pub fn new(items: Vec<I>) -> Self {
        Self { items }
    }
}

impl<I> InMemDataset<I>
where
    I: Clone + DeserializeOwned,
{
    /// Reads every item of another dataset.
    ///
    /// # Panics
    ///
    /// If an item cannot be read. Collect [`Dataset::iter`] into a `Result` and use [`InMemDataset::new`] to handle the error instead.
    #[track_caller]
    pub fn from_dataset<E>(dataset: &impl Dataset<I, E>) -> Self
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let read = |index| match dataset.get(index) {
            Ok(item) => item,
            Err(error) => panic!("from_dataset: item {index} cannot be read: {error}"),
        };
        Self::new((0..dataset.len()).map(read).collect())
    }

    /// Reads a file of one JSON value a line. Empty lines are skipped.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line is not a value of type `I`: the error names file and line.
    pub fn from_json_rows<P: AsRef<Path>>(path: P) -> Result<Self, io::Error> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| in_file(path, error))?;
        let mut items = Vec::new();
        for (row, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(|error| in_file(path, error))?;
            if line.trim().is_empty() {
                continue;
            }
            let item = serde_json::from_str(&line).map_err(|error| {
                let place = format!("{}, line {}: {error}", path.display(), row + 1);
                io::Error::new(io::ErrorKind::InvalidData, place)
            })?;
            items.push(item);
        }
        Ok(Self::new(items))
    }

    /// Reads a file of comma-separated values, one item a record, as `builder` says (delimiter, headers, quoting).
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a record is not a value of type `I`: the error names file and record.
    pub fn from_csv<P: AsRef<Path>>(path: P, builder: &csv::ReaderBuilder) -> Result<Self, io::Error> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| in_file(path, error))?;
        let items = builder
            .from_reader(BufReader::new(file))
            .into_deserialize()
            .collect::<Result<Vec<I>, csv::Error>>()
            .map_err(|error| in_file(path, io::Error::from(error)))?;
        Ok(Self::new(items))
    }
}

impl<I> Dataset<I> for InMemDataset<I>
where
    I: Clone + Send + Sync,
{
    fn get(&self, index: usize) -> Result<I, DatasetError> {
        check_index(index, self.items.len());
        Ok(self.items[index].clone())
    }

    fn len(&self) -> usize {
        self.items.len()
    }
}

/// The same error, naming the file.
fn in_file(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
