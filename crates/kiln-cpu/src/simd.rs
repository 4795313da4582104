//! Run-time choice of the vector instruction set: loops are written once and compiled for every level.
use crate::math::Arith;
#[cfg(not(all(feature = "std", target_arch = "aarch64")))]
use crate::math::Split;

#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
use crate::math::Fused;

/// An instruction set that loops are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What the target always has: SSE2, NEON, wasm128 or plain code.
    Base,
    /// AVX2 with fused multiply-add and f16 conversion.
    Avx2,
    /// AVX-512 F, BW, DQ, VL.
    Avx512,
}

impl Level {
    /// The levels this CPU can run, lowest first.
    pub fn available() -> &'static [Level] {
        const ALL: [Level; 3] = [Level::Base, Level::Avx2, Level::Avx512];
        &ALL[..=Level::best() as usize]
    }

    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    fn best() -> Level {
        use std::arch::is_x86_feature_detected as has;
        if !(has!("avx2") && has!("fma") && has!("f16c")) {
            Level::Base
        } else if has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
            Level::Avx512
        } else {
            Level::Avx2
        }
    }

    #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
    fn best() -> Level {
        Level::Base
    }

    /// The level to use: the CPU's best, or the lower one that the environment variable `KILN_SIMD` names (`base`, `avx2`, `avx512`).
    pub fn detect() -> Level {
        static CHOICE: spin::Once<Level> = spin::Once::new();
        *CHOICE.call_once(|| {
            let best = Level::best();
            #[cfg(feature = "std")]
            if let Ok(name) = std::env::var("KILN_SIMD") {
                return Level::available().iter().copied().find(|level| level.name() == name).unwrap_or(best);
            }
            best
        })
    }

    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Level::Base => "base",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

/// A compiled loop: destination, up to three sources, number of elements. What the pointers refer to is the loop's own business.
pub type LoopFn = unsafe fn(*mut u8, *const u8, *const u8, *const u8, usize);

/// A loop to be compiled for each level. Implementations mark `run` as `#[inline(always)]`, so that it takes on the level's instructions.
pub trait Loop {
    /// Whether the loop is compiled once, for what every machine of the target has: rare loops, and those that gain little from more.
    const ONCE: bool = false;
    /// Whether AVX2 is the highest level that the loop is compiled for.
    const NARROW: bool = false;

    /// Runs the loop.
    ///
    /// # Safety
    /// The pointers refer to what the loop's documentation says, for `n` elements; the destination overlaps no source.
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize);

    /// The same, where AVX2 is at hand; for loops with intrinsics.
    ///
    /// # Safety
    /// As [`Loop::run`], and the CPU has the level.
    #[inline(always)]
    unsafe fn run_avx2<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { Self::run::<A>(dst, a, b, c, n) }
    }

    /// The same, where AVX-512 is at hand.
    ///
    /// # Safety
    /// As [`Loop::run`], and the CPU has the level.
    #[inline(always)]
    unsafe fn run_avx512<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { Self::run_avx2::<A>(dst, a, b, c, n) }
    }
}

/// The arithmetic of the base level.
#[cfg(all(feature = "std", target_arch = "aarch64"))]
type BaseArith = Fused;
/// The arithmetic of the base level.
#[cfg(not(all(feature = "std", target_arch = "aarch64")))]
type BaseArith = Split;

unsafe fn base<L: Loop>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { L::run::<BaseArith>(dst, a, b, c, n) }
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx2<L: Loop>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { L::run_avx2::<Fused>(dst, a, b, c, n) }
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx512<L: Loop>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { L::run_avx512::<Fused>(dst, a, b, c, n) }
}

/// The loop compiled for `level` or the highest below it that it is compiled for. The level must be one of [`Level::available`] when the loop is called.
pub fn compiled<L: Loop>(level: Level) -> LoopFn {
    // What the constants of the loop rule out is never instantiated.
    if L::ONCE {
        return base::<L>;
    }
    match level {
        Level::Base => base::<L>,
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        Level::Avx2 => avx2::<L>,
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        Level::Avx512 => {
            if L::NARROW {
                avx2::<L>
            } else {
                avx512::<L>
            }
        }
        #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
        Level::Avx2 | Level::Avx512 => base::<L>,
    }
}
