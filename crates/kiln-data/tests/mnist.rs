//! The MNIST data set, embedded and from files.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use kiln_data::dataset::Dataset;
use kiln_data::dataset::vision::{IdxError, MnistDataset};

use crate::Folder;

fn images(count: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = [0x803u32, count, 28, 28].iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.extend((0..count as usize * 784).map(|i| (i % 251) as u8));
    bytes
}

fn labels(of: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = [0x801u32, of.len() as u32].iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.extend(of);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory is writable");
    encoder.finish().expect("memory is writable")
}

/// The error of reading these two files as training digits, and its message.
fn refused(images: &[u8], labels: &[u8]) -> (IdxError, String) {
    let folder = Folder::new();
    folder.write("train-images-idx3-ubyte", images);
    folder.write("train-labels-idx1-ubyte.gz", labels);
    let error = MnistDataset::train_from(&folder.0).err().expect("refused");
    let message = error.to_string();
    assert!(message.starts_with(folder.0.to_str().unwrap()), "{message}");
    (error, message)
}

#[test]
fn the_embedded_subset_is_balanced() {
    for (dataset, per_class) in [(MnistDataset::train(), 1_000), (MnistDataset::test(), 100)] {
        assert_eq!(dataset.len(), 10 * per_class);
        let mut counts = [0; 10];
        for item in dataset.iter() {
            let item = item.expect("readable");
            let pixels = item.image.as_flattened();
            assert!(pixels.iter().all(|pixel| (0.0..=255.0).contains(pixel) && pixel.fract() == 0.0));
            assert!(pixels.iter().any(|pixel| *pixel > 200.0), "every digit has ink");
            counts[usize::from(item.label)] += 1;
        }
        assert_eq!(counts, [per_class; 10]);
    }
}

#[test]
fn plain_and_compressed_files_read_alike() {
    let folder = Folder::new();
    folder.write("train-images-idx3-ubyte", &images(2));
    folder.write("train-labels-idx1-ubyte", &labels(&[3, 9]));
    folder.write("t10k-images-idx3-ubyte.gz", &gzip(&images(2)));
    folder.write("t10k-labels-idx1-ubyte.gz", &gzip(&labels(&[3, 9])));
    let plain = MnistDataset::train_from(&folder.0).expect("readable");
    let packed = MnistDataset::test_from(&folder.0).expect("readable");
    for dataset in [plain, packed] {
        assert_eq!(dataset.len(), 2);
        let item = dataset.get(1).expect("readable");
        assert_eq!(item.label, 9);
        assert_eq!(item.image[0][0], (784 % 251) as f32);
        assert_eq!(item.image[27][27], (1567 % 251) as f32);
    }
}

#[test]
fn a_missing_file_is_named() {
    let folder = Folder::new();
    let error = MnistDataset::train_from(&folder.0).err().expect("the folder is empty");
    assert!(matches!(error, IdxError::Io { .. }));
    assert!(error.to_string().contains("train-images-idx3-ubyte"), "{error}");
}

#[test]
fn another_kind_of_file_is_refused() {
    let (error, message) = refused(&labels(&[1]), &gzip(&labels(&[1])));
    assert!(matches!(error, IdxError::Truncated { expected: 16, found: 9, .. }), "{message}");
    let mut other = images(1);
    other[3] = 4;
    let (error, message) = refused(&other, &gzip(&labels(&[1])));
    assert!(matches!(error, IdxError::Magic { expected: 0x803, found: 0x804, .. }));
    assert!(message.contains("train-images-idx3-ubyte: magic number is 0x00000804, not 0x00000803"), "{message}");
    let mut other = images(1);
    other[11] = 29;
    let (error, message) = refused(&other, &gzip(&labels(&[1])));
    assert!(matches!(error, IdxError::ItemSize { .. }) && message.contains("29×28, not 28×28"), "{message}");
}

#[test]
fn a_truncated_file_is_refused_at_every_length() {
    let whole = images(1);
    for len in 0..whole.len() {
        let (error, _) = refused(&whole[..len], &gzip(&labels(&[1])));
        assert!(matches!(error, IdxError::Truncated { found, .. } if found == len as u64), "{error}");
    }
    let packed = gzip(&labels(&[1, 2, 3]));
    for len in 2..packed.len() {
        let (error, message) = refused(&images(3), &packed[..len]);
        assert!(matches!(error, IdxError::Truncated { .. }), "{len}: {message}");
        assert!(message.contains("train-labels-idx1-ubyte.gz"), "{message}");
    }
}

#[test]
fn absurd_counts_are_refused_before_memory_is_asked_for() {
    let mut absurd = images(0);
    absurd[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    let (error, _) = refused(&absurd, &gzip(&labels(&[])));
    assert!(matches!(error, IdxError::TooManyItems { found: u32::MAX, .. }));
    absurd[4..8].copy_from_slice(&1_000_000u32.to_be_bytes());
    let (error, _) = refused(&absurd, &gzip(&labels(&[])));
    assert!(matches!(error, IdxError::Truncated { expected: 784_000_016, found: 16, .. }));
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let (error, message) = refused(&images(2), &gzip(&labels(&[1])));
    assert!(matches!(error, IdxError::Count { images: 2, labels: 1, .. }), "{message}");
    let (error, message) = refused(&images(2), &gzip(&labels(&[1, 10])));
    assert!(matches!(error, IdxError::Label { index: 1, found: 10, .. }), "{message}");
    let mut long = images(1);
    long.push(0);
    let (error, message) = refused(&long, &gzip(&labels(&[1])));
    assert!(matches!(error, IdxError::TrailingBytes { expected: 800, .. }), "{message}");
}

#[test]
fn a_damaged_checksum_is_noticed() {
    let mut packed = gzip(&labels(&[1, 2]));
    let crc = packed.len() - 8;
    packed[crc] ^= 1;
    let (error, message) = refused(&images(2), &packed);
    assert!(matches!(error, IdxError::Io { .. }), "{message}");
}
