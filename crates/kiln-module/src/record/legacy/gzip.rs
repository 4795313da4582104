//! Decompression with a bound.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;
use kiln_tensor::Bytes;

use super::super::burnpack::PackErrorKind;

/// The first bytes of a gzip file.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What any compressed record may grow to, in bytes.
const SMALL: u64 = 256 << 20;
/// How many times its size a larger one may grow to. Weights hardly shrink when compressed.
const RATIO: u64 = 64;

/// The decompressed file.
pub(super) fn inflate(packed: &[u8]) -> Result<Bytes, PackErrorKind> {
    let limit = SMALL.max(RATIO * packed.len() as u64);
    let mut plain = Vec::new();
    // One byte more than is allowed tells whether there is more.
    MultiGzDecoder::new(packed).take(limit + 1).read_to_end(&mut plain).map_err(|error| PackErrorKind::Malformed(error.to_string()))?;
    match plain.len() as u64 > limit {
        true => Err(PackErrorKind::Malformed(format!("decompresses to more than {limit} bytes"))),
        false => Ok(Bytes::from_bytes_vec(plain)),
    }
}
