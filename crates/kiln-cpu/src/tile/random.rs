//! Loops that fill tiles with numbers made from their positions: counters and random numbers.
use core::marker::PhantomData;

use kiln_ir::{DType, RandomKind, philox};

use crate::math::Arith;
use crate::simd::{Level, Loop, LoopFn, compiled};

/// Which random numbers a row takes.
pub(super) struct RandomRow {
    /// Key of the generator.
    pub seed: u64,
    /// Position of the first element.
    pub start: u64,
    /// Positions between neighbours.
    pub step: i64,
    /// Makes the words of a group: see [`words`].
    pub words: LoopFn,
}

trait Draw: 'static {
    type T: Copy + 'static;
    /// Whether a second stream of words is used.
    const TWO: bool;

    /// From the words of the two streams.
    fn draw(first: u32, second: u32) -> Self::T;
}

struct UniformF32;
struct UniformF64;
struct NormalF32;
struct NormalF64;
struct Bits;

impl Draw for UniformF32 {
    type T = f32;
    const TWO: bool = false;

    #[inline(always)]
    fn draw(first: u32, _: u32) -> f32 {
        (first >> 8) as f32 * (1.0 / 16_777_216.0)
    }
}

impl Draw for UniformF64 {
    type T = f64;
    const TWO: bool = true;

    #[inline(always)]
    fn draw(first: u32, second: u32) -> f64 {
        (((first as u64) << 21) | (second >> 11) as u64) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}

/// Box and Muller's transform, in f64. Logarithm and cosine are plain code, which no instruction set changes.
#[inline(never)]
fn normal(u: f64, v: f64) -> f64 {
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(core::f64::consts::TAU * v)
}

impl Draw for NormalF32 {
    type T = f32;
    const TWO: bool = true;

    #[inline(always)]
    fn draw(first: u32, second: u32) -> f32 {
        let u = ((first >> 8) as f64 + 1.0) * (1.0 / 16_777_216.0);
        let v = (second >> 8) as f64 * (1.0 / 16_777_216.0);
        normal(u, v) as f32
    }
}

impl Draw for NormalF64 {
    type T = f64;
    const TWO: bool = true;

    #[inline(always)]
    fn draw(first: u32, second: u32) -> f64 {
        normal((first as f64 + 1.0) * (1.0 / 4_294_967_296.0), second as f64 * (1.0 / 4_294_967_296.0))
    }
}

impl Draw for Bits {
    type T = i64;
    const TWO: bool = false;

    #[inline(always)]
    fn draw(first: u32, _: u32) -> i64 {
        first as i64
    }
}

/// Counters that share one group: 16 blocks of four words are 64 neighbouring elements.
const GROUP: usize = 64;

/// Fills 64 words of a group, in order; `a` refers to seed, group and stream, a `[u64; 3]`.
struct Words;

impl Loop for Words {
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, _: usize) {
        // SAFETY: the caller passes both.
        let (&[seed, group, stream], words) = unsafe { (&*(a as *const [u64; 3]), &mut *(dst as *mut [u32; GROUP])) };
        *words = group_words(seed, group, stream as u32);
    }
}

/// The loop that makes the words of a group, once for all kinds of numbers.
pub(super) fn words(level: Level) -> LoopFn {
    compiled::<Words>(level)
}

/// The words of the 64 elements `64 group ..`, in order.
#[inline(always)]
fn group_words(seed: u64, group: u64, stream: u32) -> [u32; GROUP] {
    const M0: u64 = 0xD251_1F53;
    const M1: u64 = 0xCD9E_8D57;
    let mut c0: [u32; 16] = core::array::from_fn(|k| (group * 16 + k as u64) as u32);
    let mut c1 = [(group >> 28) as u32; 16];
    let mut c2 = [stream; 16];
    let mut c3 = [0u32; 16];
    let (mut k0, mut k1) = (seed as u32, (seed >> 32) as u32);
    for _ in 0..10 {
        for k in 0..16 {
            let p0 = M0 * c0[k] as u64;
            let p1 = M1 * c2[k] as u64;
            let (x0, x2) = ((p1 >> 32) as u32 ^ c1[k] ^ k0, (p0 >> 32) as u32 ^ c3[k] ^ k1);
            c1[k] = p1 as u32;
            c3[k] = p0 as u32;
            c0[k] = x0;
            c2[k] = x2;
        }
        k0 = k0.wrapping_add(0x9E37_79B9);
        k1 = k1.wrapping_add(0xBB67_AE85);
    }
    let mut words = [0; GROUP];
    words[..16].copy_from_slice(&c0);
    words[16..32].copy_from_slice(&c1);
    words[32..48].copy_from_slice(&c2);
    words[48..].copy_from_slice(&c3);
    words
}

/// Fills `n` elements by the [`RandomRow`] `a`.
struct Random<D>(PhantomData<D>);

impl<D: Draw> Loop for Random<D> {
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: the caller passes a `RandomRow`, and a destination writable for `n` elements.
        let (row, dst) = unsafe { (&*(a as *const RandomRow), core::slice::from_raw_parts_mut(dst as *mut D::T, n)) };
        if row.step != 1 {
            for (k, d) in dst.iter_mut().enumerate() {
                let at = row.start.wrapping_add((k as i64).wrapping_mul(row.step) as u64);
                let second = if D::TWO { philox::word(row.seed, at, 1) } else { 0 };
                *d = D::draw(philox::word(row.seed, at, 0), second);
            }
            return;
        }
        let mut done = 0;
        while done < n {
            // Outside the bounds of a padded tensor positions may be negative; those numbers are not used.
            let at = row.start.wrapping_add(done as u64);
            let skip = (at % GROUP as u64) as usize;
            let take = (GROUP - skip).min(n - done);
            let group = at / GROUP as u64;
            let (mut first, mut second) = ([0; GROUP], [0; GROUP]);
            let fill = |words: &mut [u32; GROUP], stream: u64| {
                let (key, null) = ([row.seed, group, stream], core::ptr::null());
                // SAFETY: the loop fills a group's words.
                unsafe { (row.words)(words.as_mut_ptr().cast(), key.as_ptr().cast(), null, null, GROUP) }
            };
            fill(&mut first, 0);
            if D::TWO {
                fill(&mut second, 1);
            }
            for (k, d) in dst[done..done + take].iter_mut().enumerate() {
                *d = D::draw(first[skip + k], second[skip + k]);
            }
            done += take;
        }
    }
}

/// The loop that makes random numbers of a dtype, or `None` where they are not defined.
pub(super) fn select(kind: RandomKind, dtype: DType, level: Level) -> Option<LoopFn> {
    Some(match (kind, dtype) {
        (RandomKind::Uniform, DType::F64) => compiled::<Random<UniformF64>>(level),
        (RandomKind::Normal, DType::F64) => compiled::<Random<NormalF64>>(level),
        (RandomKind::Uniform, DType::F32 | DType::F16 | DType::BF16) => compiled::<Random<UniformF32>>(level),
        (RandomKind::Normal, DType::F32 | DType::F16 | DType::BF16) => compiled::<Random<NormalF32>>(level),
        // 32 bits read the same in a signed and an unsigned word.
        (RandomKind::Bits, DType::I64 | DType::U64 | DType::U32) => compiled::<Random<Bits>>(level),
        _ => return None,
    })
}

/// `dst[k] = start + k * step` for `n` elements; `a` refers to the pair `(start, step)`.
struct Count;

impl Loop for Count {
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: the caller passes a pair, and a destination writable for `n` elements.
        let (&[start, step], dst) = unsafe { (&*(a as *const [i64; 2]), core::slice::from_raw_parts_mut(dst as *mut i64, n)) };
        dst.iter_mut().enumerate().for_each(|(k, d)| *d = start + k as i64 * step);
    }
}

/// The loop of an affine counter: `a` refers to `[start, step]`, an `[i64; 2]`.
pub(super) fn count(level: Level) -> LoopFn {
    compiled::<Count>(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_the_words_of_their_elements() {
        for group in [0, 1, 7, 1 << 20, (1 << 28) - 1, 1 << 28, (1 << 40) + 5] {
            for stream in [0, 1] {
                let words = group_words(0x1234_5678_9abc_def0, group, stream);
                for (k, &word) in words.iter().enumerate() {
                    assert_eq!(word, philox::word(0x1234_5678_9abc_def0, group * 64 + k as u64, stream), "{group} {k}");
                }
            }
        }
    }
}
