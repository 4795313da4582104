//! Handwritten digits: the MNIST data set, as an embedded subset or from its full files.

use std::io::BufRead;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::{Dataset, DatasetError, check_index};
use super::idx::{IdxError, IdxFile};

const SIDE: usize = 28;
const PIXELS: usize = SIDE * SIDE;
const CLASSES: u8 = 10;

/// One digit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MnistItem {
    /// The pixels, row by row from the top, `0.0` (paper) to `255.0` (ink).
    pub image: [[f32; SIDE]; SIDE],
    /// The digit, 0 to 9.
    pub label: u8,
}

/// The MNIST data set of handwritten digits (Y. LeCun, C. Cortes, C. Burges), 28×28 pixels.
///
/// [`train`](Self::train) and [`test`](Self::test) give a class-balanced subset that is part of this crate, 10,000 and 1,000 digits;
/// [`train_from`](Self::train_from) and [`test_from`](Self::test_from) read the full files, 60,000 and 10,000 digits. Pixels are kept
/// as bytes; an item is converted when it is read.
///
/// ```
/// use kiln_data::dataset::{Dataset, vision::MnistDataset};
///
/// let test = MnistDataset::test();
/// assert_eq!(test.len(), 1_000);
/// assert_eq!(test.get(0)?.label, 7);
/// # Ok::<(), kiln_data::dataset::DatasetError>(())
/// ```
pub struct MnistDataset {
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl MnistDataset {
    /// The training digits of the embedded subset.
    pub fn train() -> Self {
        Self::embedded(
            include_bytes!("../../../data/mnist/train-images-idx3-ubyte.gz"),
            include_bytes!("../../../data/mnist/train-labels-idx1-ubyte.gz"),
        )
    }

    /// The test digits of the embedded subset.
    pub fn test() -> Self {
        Self::embedded(
            include_bytes!("../../../data/mnist/t10k-images-idx3-ubyte.gz"),
            include_bytes!("../../../data/mnist/t10k-labels-idx1-ubyte.gz"),
        )
    }

    /// Reads the training digits from `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, plain or with `.gz`, in `folder`.
    ///
    /// # Errors
    ///
    /// A file is missing, unreadable, truncated, of another kind, or the two do not belong together; the error names the file.
    pub fn train_from(folder: impl AsRef<Path>) -> Result<Self, IdxError> {
        Self::from_folder(folder.as_ref(), "train")
    }

    /// Reads the test digits from `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, plain or with `.gz`, in `folder`.
    ///
    /// # Errors
    ///
    /// As [`train_from`](Self::train_from).
    pub fn test_from(folder: impl AsRef<Path>) -> Result<Self, IdxError> {
        Self::from_folder(folder.as_ref(), "t10k")
    }

    fn from_folder(folder: &Path, split: &str) -> Result<Self, IdxError> {
        let images = IdxFile::open(folder, &format!("{split}-images-idx3-ubyte"))?;
        let labels = IdxFile::open(folder, &format!("{split}-labels-idx1-ubyte"))?;
        Self::from_idx(images, labels)
    }

    fn embedded(images: &[u8], labels: &[u8]) -> Self {
        let images = IdxFile::from_reader("embedded images", images);
        let labels = IdxFile::from_reader("embedded labels", labels);
        Self::from_idx(images, labels).expect("the embedded subset is whole")
    }

    fn from_idx(images: IdxFile<impl BufRead>, labels: IdxFile<impl BufRead>) -> Result<Self, IdxError> {
        let pixels = images.images([SIDE as u32; 2])?;
        let labels = labels.labels(pixels.len() / PIXELS, CLASSES)?;
        Ok(Self { pixels, labels })
    }
}

impl Dataset<MnistItem> for MnistDataset {
    fn get(&self, index: usize) -> Result<MnistItem, DatasetError> {
        check_index(index, self.labels.len());
        let pixels = &self.pixels[index * PIXELS..(index + 1) * PIXELS];
        let pixel = |row: usize, column: usize| f32::from(pixels[row * SIDE + column]);
        Ok(MnistItem { image: std::array::from_fn(|row| std::array::from_fn(|column| pixel(row, column))), label: self.labels[index] })
    }

    fn len(&self) -> usize {
        self.labels.len()
    }
}
