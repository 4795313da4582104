//! Values on the host: one code a value, and the bytes a scheme stores them in.
//!
//! A code is what a value is before it is packed: an integer in two's complement, or the bits of a small float.

use alloc::vec;
use alloc::vec::Vec;

use super::QuantScheme;
use super::layout::{packed_axis, values_len};

/// Packs 8-bit integers into words, four a word, the first in the lowest byte. A last word that is not full is filled up with zeros.
///
/// ```
/// use kiln_tensor::quantization::pack_i8s_to_u32s;
/// assert_eq!(pack_i8s_to_u32s(vec![-128, 2, -3, 127, 5]), [0x7FFD_0280, 5]);
/// ```
pub fn pack_i8s_to_u32s(values: Vec<i8>) -> Vec<u32> {
    let word = |values: &[i8]| values.iter().rev().fold(0, |word, value| word << 8 | u32::from(*value as u8));
    values.chunks(4).map(word).collect()
}

/// The place of each pack of values: bytes from `start`, and the codes `first, first + stride, ...`, `len` of them.
struct Pack {
    first: usize,
    stride: usize,
    len: usize,
}

fn packs(scheme: &QuantScheme, shape: &[usize]) -> impl Iterator<Item = Pack> {
    let count: usize = shape.iter().product();
    let (quants, size, stride) = match packed_axis(scheme, shape.len()) {
        Some(axis) => (scheme.num_quants(), shape[axis], shape[axis + 1..].iter().product()),
        None => (1, count, 1),
    };
    let rows = if size == 0 || stride == 0 { 0 } else { count / (size * stride) };
    let across = size.div_ceil(quants);
    (0..rows * across * stride).map(move |pack| {
        let (row, place, offset) = (pack / (across * stride), pack / stride % across, pack % stride);
        Pack { first: (row * size + place * quants) * stride + offset, stride, len: quants.min(size - place * quants) }
    })
}

/// The bytes of codes, one code a value in row-major order.
pub(crate) fn pack(codes: &[u8], scheme: &QuantScheme, shape: &[usize]) -> Vec<u8> {
    let (bits, unit) = (scheme.size_bits_value(), scheme.unit_bytes());
    let mask = ((1u32 << bits) - 1) as u8;
    let mut bytes = Vec::with_capacity(values_len(scheme, shape));
    for pack in packs(scheme, shape) {
        if pack.len == 1 && unit == 1 {
            // A value that has a byte of its own is signed by all of it.
            bytes.push(codes[pack.first]);
            continue;
        }
        let codes = (0..pack.len).map(|i| codes[pack.first + i * pack.stride] & mask);
        let word = codes.enumerate().fold(0u32, |word, (i, code)| word | u32::from(code) << (i * bits));
        bytes.extend_from_slice(&word.to_le_bytes()[..unit]);
    }
    bytes
}

/// The codes of packed bytes: integers of less than 8 bits are extended by their sign.
pub(crate) fn unpack(bytes: &[u8], scheme: &QuantScheme, shape: &[usize]) -> Vec<u8> {
    let (bits, unit) = (scheme.size_bits_value(), scheme.unit_bytes());
    let mut codes = vec![0; shape.iter().product()];
    for (pack, bytes) in packs(scheme, shape).zip(bytes.chunks(unit)) {
        let word = bytes.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        for i in 0..pack.len {
            codes[pack.first + i * pack.stride] = extend((word >> (i * bits)) as u8, scheme);
        }
    }
    codes
}

/// The code in the lowest bits of a byte.
pub(crate) fn extend(byte: u8, scheme: &QuantScheme) -> u8 {
    let unused = 8 - scheme.size_bits_value();
    let high = byte << unused;
    if scheme.value.is_float() { high >> unused } else { ((high as i8) >> unused) as u8 }
}
