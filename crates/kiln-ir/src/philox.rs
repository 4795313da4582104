//! The random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), one counter for each block of words.
//!
//! Element `i` of a random tensor takes word `(i / 16) % 4` of the block with counter `(i / 64) * 16 + i % 16`: 16 neighbouring blocks
//! give 64 consecutive elements, which suits vector units. The key is the seed. A second, independent stream (`stream = 1`) gives the second word that
//! 64-bit uniforms and normals need.

const M0: u32 = 0xD251_1F53;
const M1: u32 = 0xCD9E_8D57;
const W0: u32 = 0x9E37_79B9;
const W1: u32 = 0xBB67_AE85;

/// The four words of a block.
pub fn block(seed: u64, counter: u64, stream: u32) -> [u32; 4] {
    let mut c = [counter as u32, (counter >> 32) as u32, stream, 0];
    let mut k = [seed as u32, (seed >> 32) as u32];
    for _ in 0..10 {
        let p0 = M0 as u64 * c[0] as u64;
        let p1 = M1 as u64 * c[2] as u64;
        c = [(p1 >> 32) as u32 ^ c[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(W0), k[1].wrapping_add(W1)];
    }
    c
}

/// The word of element `i`.
pub fn word(seed: u64, i: u64, stream: u32) -> u32 {
    block(seed, (i / 64) * 16 + i % 16, stream)[(i / 16 % 4) as usize]
}

/// Uniform in `[0, 1)` with 24 bits: the f32 (and half) form.
pub fn uniform_f32(seed: u64, i: u64) -> f32 {
    (word(seed, i, 0) >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Uniform in `[0, 1)` with 53 bits: the f64 form.
pub fn uniform_f64(seed: u64, i: u64) -> f64 {
    let hi = word(seed, i, 0) as u64;
    let lo = (word(seed, i, 1) >> 11) as u64;
    ((hi << 21) | lo) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Standard normal by Box and Muller, from words of both streams: `sqrt(-2 ln u) cos(2 pi v)` with `u` in `(0, 1]`.
pub fn normal_f32(seed: u64, i: u64) -> f32 {
    let u = ((word(seed, i, 0) >> 8) as f64 + 1.0) * (1.0 / 16_777_216.0);
    let v = (word(seed, i, 1) >> 8) as f64 * (1.0 / 16_777_216.0);
    (libm::sqrt(-2.0 * libm::log(u)) * libm::cos(core::f64::consts::TAU * v)) as f32
}

/// Standard normal in f64; the words are those of the f32 form, all 32 bits of each.
pub fn normal_f64(seed: u64, i: u64) -> f64 {
    let u = (word(seed, i, 0) as f64 + 1.0) * (1.0 / 4_294_967_296.0);
    let v = word(seed, i, 1) as f64 * (1.0 / 4_294_967_296.0);
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(core::f64::consts::TAU * v)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_matches_the_published_test_vectors() {
        // Random123 known-answer vectors for philox4x32-10.
        assert_eq!(block(0, 0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }

    #[test]
    fn uniforms_stay_in_range_and_average_one_half() {
        let n = 100_000u64;
        let mut sum = 0.0;
        for i in 0..n {
            let u = uniform_f32(42, i);
            assert!((0.0..1.0).contains(&u));
            sum += u as f64;
        }
        assert!((sum / n as f64 - 0.5).abs() < 0.005);
    }

    #[test]
    fn normals_have_unit_variance() {
        let n = 100_000u64;
        let (mut s, mut q) = (0.0, 0.0);
        for i in 0..n {
            let x = normal_f32(7, i) as f64;
            s += x;
            q += x * x;
        }
        let mean = s / n as f64;
        assert!(mean.abs() < 0.02);
        assert!((q / n as f64 - mean * mean - 1.0).abs() < 0.02);
    }
}
