//! Bodies of kernels compiled for each instruction set: write the loop once, run it at the machine's level.
use crate::math::Arith;
#[cfg(all(feature = "std", any(target_arch = "x86_64", target_arch = "aarch64")))]
use crate::math::Fused;
#[cfg(not(all(feature = "std", target_arch = "aarch64")))]
use crate::math::Split;
use crate::simd::Level;

/// A piece of work whose loops should be vector code. Implementations mark `run` as `#[inline(always)]`.
pub(crate) trait Body {
    /// What comes out.
    type Out;
    /// Whether vectors of 512 bits pay; otherwise AVX2 is the highest level.
    #[cfg_attr(not(all(feature = "std", target_arch = "x86_64")), allow(dead_code))]
    const WIDE: bool = true;
    /// Whether what every machine has is enough, so that the body is compiled once.
    const ONCE: bool = false;
    /// Does the work with the arithmetic of the level.
    fn run<A: Arith>(self) -> Self::Out;
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx2<B: Body>(body: B) -> B::Out {
    body.run::<Fused>()
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx512<B: Body>(body: B) -> B::Out {
    body.run::<Fused>()
}

/// Without instructions that not every machine has. A function of its own, so that the body is compiled once and not wherever it is called.
fn plain<B: Body>(body: B) -> B::Out {
    #[cfg(all(feature = "std", target_arch = "aarch64"))]
    return body.run::<Fused>();
    #[cfg(not(all(feature = "std", target_arch = "aarch64")))]
    return body.run::<Split>();
}

/// Runs a body at the machine's level.
#[inline]
pub(crate) fn vectorize<B: Body>(body: B) -> B::Out {
    if B::ONCE {
        return plain(body);
    }
    match Level::detect() {
        // SAFETY: the machine was found to have the level.
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        Level::Avx2 => unsafe { avx2(body) },
        // SAFETY: the machine was found to have the level, which includes AVX2.
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        Level::Avx512 => unsafe { if B::WIDE { avx512(body) } else { avx2(body) } },
        _ => plain(body),
    }
}
