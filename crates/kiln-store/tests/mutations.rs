//! Damaged files of every format: a fixed sequence of mutations of every sample, read in bounded time and memory and without a panic.
//!
//! `fuzz/` has a target for each reader that goes on from here.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kiln_module::record::burnpack::Reader;
use kiln_module::record::legacy::LegacyRecord;
use kiln_store::burn_pack::Tensor;
use kiln_store::pytorch::{PytorchOptimizer, PytorchReader};
use kiln_store::safetensors::SafetensorsReader;
use kiln_tensor::Bytes;

use crate::allocations::peak_of;

/// How many damaged versions of a sample are read.
const VERSIONS: usize = 4000;
/// Memory that reading may take at the most: so much at once and so much for each byte of the file. A JSON record is a tree of values before it is
/// tensors.
const MEMORY: (usize, usize) = (1 << 20, 256);
/// How long reading one file of a few kilobytes may take.
const TIME: Duration = Duration::from_secs(2);

/// Numbers that look random and are the same every time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Damages a file in one to four places.
fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    const BYTES: [u8; 12] = [0, 1, 0x7f, 0x80, 0xff, b'{', b'[', b'(', b'"', b'.', 0xdf, 0xfd];
    for _ in 0..=numbers.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = numbers.below(bytes.len());
        let len = 1 + numbers.below(16).min(bytes.len() - at - 1);
        match numbers.below(7) {
            0 => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes[at] = BYTES[numbers.below(BYTES.len())],
            2 => bytes[at..at + len].fill(0xff),
            3 => drop(bytes.drain(at..at + len)),
            4 => bytes.truncate(at),
            5 => {
                let part = bytes[at..at + len].to_vec();
                let to = numbers.below(bytes.len());
                bytes.splice(to..to, part);
            }
            _ => {
                let other = numbers.below(bytes.len());
                bytes.swap(at, other);
            }
        }
    }
}

/// Takes the bytes of tensors that are not large.
fn touch(tensors: &[Tensor]) {
    for tensor in tensors.iter().filter(|tensor| tensor.byte_len() < 1 << 16) {
        let _ = tensor.to_bytes();
    }
}

fn samples(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let named = |path: &PathBuf| extensions.iter().any(|extension| path.to_string_lossy().ends_with(extension));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(named).collect();
    found.sort();
    assert!(!found.is_empty(), "no sample in {}", folder.display());
    found
}

/// Reads damaged versions of every sample; `read` tells whether one was accepted.
fn survive(files: &[PathBuf], read: impl Fn(Bytes) -> bool) {
    let (mut accepted, mut refused) = (0, 0);
    for (seed, file) in files.iter().enumerate() {
        let whole = std::fs::read(file).unwrap();
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ seed as u64);
        for version in 0..VERSIONS {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut numbers);
            let len = bytes.len();
            let start = Instant::now();
            let (peak, good) = peak_of(|| read(Bytes::from_bytes_vec(bytes)));
            let (bound, elapsed) = (MEMORY.0 + MEMORY.1 * len, start.elapsed());
            assert!(peak <= bound, "{} version {version}: {peak} bytes for a file of {len}", file.display());
            assert!(elapsed <= TIME, "{} version {version}: {elapsed:?}", file.display());
            if good {
                accepted += 1;
            } else {
                refused += 1;
            }
        }
    }
    // Damage to values goes unseen; damage to anything else does not.
    assert!(accepted > 0 && refused > accepted / 50, "{accepted} accepted, {refused} refused");
}

#[test]
fn damaged_burnpack_files_are_read_or_refused() {
    survive(&samples("../kiln-module/tests/data/burnpack", &[".bpk"]), |bytes| {
        Reader::from_bytes("damaged", bytes).map(|reader| touch(&reader.tensors())).is_ok()
    });
}

#[test]
fn damaged_safetensors_files_are_read_or_refused() {
    survive(&samples("tests/data", &[".safetensors"]), |bytes| {
        SafetensorsReader::from_bytes("damaged", bytes).map(|reader| touch(&reader.tensors())).is_ok()
    });
}

#[test]
fn damaged_files_of_pytorch_are_read_or_refused() {
    survive(&samples("tests/data/pytorch", &[".pt", ".pth", ".tar"]), |bytes| {
        let _ = PytorchOptimizer::from_bytes("damaged", bytes.clone(), Some("optimizer"));
        let read = PytorchReader::from_bytes("damaged", bytes, None);
        read.map(|reader| touch(&reader.tensors().map(|tensor| tensor.clone().into_pack()).collect::<Vec<_>>())).is_ok()
    });
}

#[test]
fn damaged_records_of_burn_0_21_are_read_or_refused() {
    let extensions = ["full.mpk", "half.bin", "full.json", "full.mpk.gz", "half.bin.gz", "half.json.gz"];
    survive(&samples("../kiln-module/tests/data/legacy", &extensions), |bytes| {
        LegacyRecord::from_bytes("damaged", bytes).map(|record| touch(&record.tensors)).is_ok()
    });
}
