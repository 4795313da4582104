//! The identity of a parameter.

use alloc::string::String;
use core::fmt::{self, Display, Write};
use core::str::FromStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

/// Identifies a parameter across clones, devices and records.
///
/// Its text is the little-endian bytes in lower-case base32hex without padding, 13 characters.
///
/// ```
/// use kiln_module::module::ParamId;
///
/// assert_eq!(ParamId::from(77).to_string(), "9k00000000000");
/// assert_eq!("9k00000000000".parse(), Ok(ParamId::from(77)));
/// assert_ne!(ParamId::new(), ParamId::new());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ParamId {
    value: u64,
}

/// RFC 4648 base32hex in lower case.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

impl ParamId {
    /// A new id, unique in this process and, with `std`, random across processes.
    #[must_use]
    pub fn new() -> Self {
        static COUNTER: AtomicUsize = AtomicUsize::new(0);
        let count = COUNTER.fetch_add(1, Ordering::Relaxed) as u64;
        Self { value: mix(process_seed().wrapping_add(count.wrapping_mul(0x9E37_79B9_7F4A_7C15))) }
    }

    /// The number behind the id.
    #[must_use]
    pub fn val(&self) -> u64 {
        self.value
    }
}

/// The finaliser of splitmix64: a bijection, so that distinct counts give distinct ids.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(feature = "std")]
fn process_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    use std::sync::OnceLock;
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().build_hasher().finish())
}

#[cfg(not(feature = "std"))]
fn process_seed() -> u64 {
    0x4B69_6C6E_5061_7261
}

impl Default for ParamId {
    fn default() -> Self {
        Self::new()
    }
}

impl From<u64> for ParamId {
    fn from(value: u64) -> Self {
        Self { value }
    }
}

impl Display for ParamId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(13);
        // Eight bytes are 64 bits: twelve characters of five bits, and one that holds the last four.
        let bits = u128::from(self.value.swap_bytes()) << 1;
        for position in (0..13).rev() {
            let index = ((bits >> (5 * position)) & 31) as usize;
            text.push(ALPHABET[index] as char);
        }
        formatter.write_str(&text)
    }
}

impl FromStr for ParamId {
    type Err = &'static str;

    /// Reads the text form. Shorter texts of older versions (fewer than eight bytes) are extended by zero bytes; a UUID
    /// gives the id of its hash.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() == 36 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()) {
            return Ok(Self { value: hash_of(text) });
        }
        let bytes = text.len() * 5 / 8;
        if text.is_empty() || bytes == 0 || bytes > 8 || (bytes * 8).div_ceil(5) != text.len() {
            return Err("a parameter id has 2 to 13 characters of base32hex");
        }
        let mut bits: u128 = 0;
        for byte in text.bytes() {
            let digit = ALPHABET.iter().position(|letter| *letter == byte).ok_or("a parameter id is written with the characters 0-9 and a-v")?;
            bits = (bits << 5) | digit as u128;
        }
        let padding = text.len() * 5 - bytes * 8;
        if bits & ((1 << padding) - 1) != 0 {
            return Err("the last character of a parameter id carries stray bits");
        }
        let mut value = [0u8; 8];
        let content = ((bits >> padding) << (128 - bytes * 8)).to_be_bytes();
        value[..bytes].copy_from_slice(&content[..bytes]);
        Ok(Self { value: u64::from_le_bytes(value) })
    }
}

/// FNV-1a, then mixed.
fn hash_of(text: &str) -> u64 {
    let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3));
    mix(hash)
}

impl ParamId {
    /// The id as the decimal text that optimizer records use for their keys.
    #[doc(hidden)]
    #[must_use]
    pub fn decimal(&self) -> String {
        let mut text = String::new();
        write!(text, "{}", self.value).expect("writing to a string never fails");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn text_form_is_base32hex_of_little_endian_bytes() {
        for (value, text) in
            [(77, "9k00000000000"), (0xDEAD_BEEF_0123_4567, "ct2i60ffnqmts"), (0x0101_0001, "0400208000000"), (u64::MAX, "vvvvvvvvvvvvu")]
        {
            assert_eq!(ParamId::from(value).to_string(), text);
            assert_eq!(text.parse(), Ok(ParamId::from(value)));
        }
    }

    #[test]
    fn shorter_texts_are_extended_by_zero_bytes() {
        // Six bytes, 01 to 06.
        assert_eq!("041061050o".parse::<ParamId>().map(|id| id.val()), { Ok(0x0605_0403_0201) });
    }

    #[test]
    fn malformed_texts_are_refused() {
        for text in ["", "9", "9k0000000000w", "9K00000000000", "9k0000000000000", "9k00000000001"] {
            assert!(text.parse::<ParamId>().is_err(), "{text}");
        }
        assert!("123e4567-e89b-12d3-a456-426614174000".parse::<ParamId>().is_ok());
    }
}
