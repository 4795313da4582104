//! The running 128-bit hash of a recording.
use core::hash::Hasher;

/// Two lanes of folded multiplication. Not cryptographic: equality of what was hashed is verified by the program cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash128 {
    a: u64,
    b: u64,
}

const K0: u64 = 0x9E37_79B9_7F4A_7C15;
const K1: u64 = 0xD6E8_FEB8_6659_FD93;

#[inline]
fn fold(x: u64, k: u64) -> u64 {
    let p = x as u128 * k as u128;
    (p as u64) ^ ((p >> 64) as u64)
}

impl Hash128 {
    /// The hash of nothing.
    pub const fn new() -> Self {
        Hash128 { a: 0x243F_6A88_85A3_08D3, b: 0x1319_8A2E_0370_7344 }
    }

    /// Adds a word.
    #[inline]
    pub fn word(&mut self, w: u64) {
        self.a = fold(self.a ^ w, K0).wrapping_add(w);
        self.b = fold(self.b.rotate_left(29).wrapping_add(w), K1);
    }

    /// Adds sizes.
    #[inline]
    pub fn sizes(&mut self, dims: &[usize]) {
        self.word(dims.len() as u64 | 1 << 40);
        for d in dims {
            self.word(*d as u64);
        }
    }

    /// The key.
    pub fn key(self) -> u128 {
        (self.a as u128) << 64 | self.b as u128
    }
}

impl Hasher for Hash128 {
    fn finish(&self) -> u64 {
        self.a ^ self.b
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for c in &mut chunks {
            self.word(u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]));
        }
        let mut last = [0u8; 8];
        let rest = chunks.remainder();
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
    }
    #[inline]
    fn write_u8(&mut self, i: u8) {
        self.word(i as u64);
    }
    #[inline]
    fn write_u32(&mut self, i: u32) {
        self.word(i as u64);
    }
    #[inline]
    fn write_u64(&mut self, i: u64) {
        self.word(i);
    }
    #[inline]
    fn write_usize(&mut self, i: usize) {
        self.word(i as u64);
    }
    #[inline]
    fn write_isize(&mut self, i: isize) {
        self.word(i as u64);
    }
}
