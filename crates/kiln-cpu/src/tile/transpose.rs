//! Blocks of 32-bit elements transposed in registers.

/// Edge of the blocks of [`block32`].
pub(super) const EDGE: usize = 8;

/// Transposes a block: `to[j * to_step + k] = from[k * from_step + j]` for `j, k < 8`.
///
/// # Safety
/// All elements are readable and writable.
#[inline(always)]
pub(super) unsafe fn block32_plain(from: *const u32, from_step: isize, to: *mut u32, to_step: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        for j in 0..EDGE {
            for k in 0..EDGE {
                *to.add(j * to_step + k) = *from.offset(k as isize * from_step + j as isize);
            }
        }
    }
}

/// As [`block32_plain`], with AVX2.
///
/// # Safety
/// As [`block32_plain`], and the CPU has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
pub(super) unsafe fn block32_avx(from: *const u32, from_step: isize, to: *mut u32, to_step: usize) {
    use core::arch::x86_64::*;
    let from = from as *const f32;
    let to = to as *mut f32;
    // SAFETY: the caller's promise.
    unsafe {
        let row = |k: isize| _mm256_loadu_ps(from.offset(k * from_step));
        let (r0, r1, r2, r3, r4, r5, r6, r7) = (row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7));
        let (t0, t1) = (_mm256_unpacklo_ps(r0, r1), _mm256_unpackhi_ps(r0, r1));
        let (t2, t3) = (_mm256_unpacklo_ps(r2, r3), _mm256_unpackhi_ps(r2, r3));
        let (t4, t5) = (_mm256_unpacklo_ps(r4, r5), _mm256_unpackhi_ps(r4, r5));
        let (t6, t7) = (_mm256_unpacklo_ps(r6, r7), _mm256_unpackhi_ps(r6, r7));
        let (s0, s1) = (_mm256_shuffle_ps::<0x44>(t0, t2), _mm256_shuffle_ps::<0xee>(t0, t2));
        let (s2, s3) = (_mm256_shuffle_ps::<0x44>(t1, t3), _mm256_shuffle_ps::<0xee>(t1, t3));
        let (s4, s5) = (_mm256_shuffle_ps::<0x44>(t4, t6), _mm256_shuffle_ps::<0xee>(t4, t6));
        let (s6, s7) = (_mm256_shuffle_ps::<0x44>(t5, t7), _mm256_shuffle_ps::<0xee>(t5, t7));
        _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(s0, s4));
        _mm256_storeu_ps(to.add(to_step), _mm256_permute2f128_ps::<0x20>(s1, s5));
        _mm256_storeu_ps(to.add(2 * to_step), _mm256_permute2f128_ps::<0x20>(s2, s6));
        _mm256_storeu_ps(to.add(3 * to_step), _mm256_permute2f128_ps::<0x20>(s3, s7));
        _mm256_storeu_ps(to.add(4 * to_step), _mm256_permute2f128_ps::<0x31>(s0, s4));
        _mm256_storeu_ps(to.add(5 * to_step), _mm256_permute2f128_ps::<0x31>(s1, s5));
        _mm256_storeu_ps(to.add(6 * to_step), _mm256_permute2f128_ps::<0x31>(s2, s6));
        _mm256_storeu_ps(to.add(7 * to_step), _mm256_permute2f128_ps::<0x31>(s3, s7));
    }
}
