//! `Lane` on x86-64: AVX-512 and AVX2 registers of `f32` and `f64`.
// SAFETY (all blocks of this file): each method runs only where the features of its register are enabled and touches only
// the memory its contract in `Lane` names.
#![allow(clippy::undocumented_unsafe_blocks)]

use super::lane::{Lane, MAX_LANES};
use core::arch::x86_64::*;

macro_rules! ops {
    ($t:ty, $e:ty, $zero:ident, $splat:ident, $load:ident, $store:ident, $add:ident, $fma:ident) => {
        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { $zero() }
        }
        #[inline(always)]
        unsafe fn splat(x: $e) -> Self {
            unsafe { $splat(x) }
        }
        #[inline(always)]
        unsafe fn load(p: *const $e) -> Self {
            unsafe { $load(p) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut $e) {
            unsafe { $store(p, self) }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            unsafe { $add(self, other) }
        }
        #[inline(always)]
        unsafe fn fma(self, by: Self, to: Self) -> Self {
            unsafe { $fma(self, by, to) }
        }
        #[inline(always)]
        unsafe fn prefetch(p: *const $e) {
            unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
        }
    };
}

impl Lane for __m512 {
    type E = f32;
    type Mask = __mmask16;
    const N: usize = 16;
    ops!(__m512, f32, _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps);
    #[inline(always)]
    unsafe fn mask(bits: u32) -> __mmask16 {
        bits as __mmask16
    }
    #[inline(always)]
    unsafe fn load_mask(p: *const f32, mask: __mmask16) -> Self {
        unsafe { _mm512_maskz_loadu_ps(mask, p) }
    }
    #[inline(always)]
    unsafe fn store_mask(self, p: *mut f32, mask: __mmask16) {
        unsafe { _mm512_mask_storeu_ps(p, mask, self) }
    }
    #[inline(always)]
    unsafe fn merge(self, p: *const f32, mask: __mmask16) -> Self {
        unsafe { _mm512_mask_loadu_ps(self, mask, p) }
    }
    #[inline(always)]
    unsafe fn merge_step(self, p: *const f32, step: isize, _bits: u32, mask: __mmask16) -> Self {
        unsafe {
            let lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let index = _mm512_mullo_epi32(lane, _mm512_set1_epi32(step as i32));
            _mm512_mask_i32gather_ps::<4>(self, mask, index, p)
        }
    }
    #[inline(always)]
    unsafe fn transpose(rows: &mut [Self; MAX_LANES]) {
        unsafe {
            let mut t = [_mm512_setzero_ps(); 16];
            for i in 0..8 {
                t[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
                t[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
            }
            let mut u = [_mm512_setzero_ps(); 16];
            for i in 0..4 {
                for h in 0..2 {
                    let (x, y) = (_mm512_castps_pd(t[4 * i + h]), _mm512_castps_pd(t[4 * i + 2 + h]));
                    u[4 * i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
                    u[4 * i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
                }
            }
            // u[4 i + c] holds, in each 128-bit block q, column 4 q + c of rows 4 i .. 4 i + 4.
            for c in 0..4 {
                let a = _mm512_shuffle_f32x4::<0x88>(u[c], u[4 + c]);
                let b = _mm512_shuffle_f32x4::<0x88>(u[8 + c], u[12 + c]);
                let d = _mm512_shuffle_f32x4::<0xdd>(u[c], u[4 + c]);
                let e = _mm512_shuffle_f32x4::<0xdd>(u[8 + c], u[12 + c]);
                rows[c] = _mm512_shuffle_f32x4::<0x88>(a, b);
                rows[8 + c] = _mm512_shuffle_f32x4::<0xdd>(a, b);
                rows[4 + c] = _mm512_shuffle_f32x4::<0x88>(d, e);
                rows[12 + c] = _mm512_shuffle_f32x4::<0xdd>(d, e);
            }
        }
    }
}

impl Lane for __m512d {
    type E = f64;
    type Mask = __mmask8;
    const N: usize = 8;
    ops!(__m512d, f64, _mm512_setzero_pd, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd, _mm512_fmadd_pd);
    #[inline(always)]
    unsafe fn mask(bits: u32) -> __mmask8 {
        bits as __mmask8
    }
    #[inline(always)]
    unsafe fn load_mask(p: *const f64, mask: __mmask8) -> Self {
        unsafe { _mm512_maskz_loadu_pd(mask, p) }
    }
    #[inline(always)]
    unsafe fn store_mask(self, p: *mut f64, mask: __mmask8) {
        unsafe { _mm512_mask_storeu_pd(p, mask, self) }
    }
    #[inline(always)]
    unsafe fn merge(self, p: *const f64, mask: __mmask8) -> Self {
        unsafe { _mm512_mask_loadu_pd(self, mask, p) }
    }
    #[inline(always)]
    unsafe fn transpose(rows: &mut [Self; MAX_LANES]) {
        unsafe {
            let mut t = [_mm512_setzero_pd(); 8];
            for i in 0..4 {
                t[2 * i] = _mm512_unpacklo_pd(rows[2 * i], rows[2 * i + 1]);
                t[2 * i + 1] = _mm512_unpackhi_pd(rows[2 * i], rows[2 * i + 1]);
            }
            // t[2 i + c] holds, in each 128-bit block q, column 2 q + c of rows 2 i and 2 i + 1.
            for c in 0..2 {
                let a = _mm512_shuffle_f64x2::<0x88>(t[c], t[2 + c]);
                let b = _mm512_shuffle_f64x2::<0x88>(t[4 + c], t[6 + c]);
                let d = _mm512_shuffle_f64x2::<0xdd>(t[c], t[2 + c]);
                let e = _mm512_shuffle_f64x2::<0xdd>(t[4 + c], t[6 + c]);
                rows[c] = _mm512_shuffle_f64x2::<0x88>(a, b);
                rows[4 + c] = _mm512_shuffle_f64x2::<0xdd>(a, b);
                rows[2 + c] = _mm512_shuffle_f64x2::<0x88>(d, e);
                rows[6 + c] = _mm512_shuffle_f64x2::<0xdd>(d, e);
            }
        }
    }
}

impl Lane for __m256 {
    type E = f32;
    type Mask = __m256i;
    const N: usize = 8;
    ops!(__m256, f32, _mm256_setzero_ps, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_fmadd_ps);
    #[inline(always)]
    unsafe fn mask(bits: u32) -> __m256i {
        unsafe {
            let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), bit), bit)
        }
    }
    #[inline(always)]
    unsafe fn load_mask(p: *const f32, mask: __m256i) -> Self {
        unsafe { _mm256_maskload_ps(p, mask) }
    }
    #[inline(always)]
    unsafe fn store_mask(self, p: *mut f32, mask: __m256i) {
        unsafe { _mm256_maskstore_ps(p, mask, self) }
    }
    #[inline(always)]
    unsafe fn merge(self, p: *const f32, mask: __m256i) -> Self {
        unsafe { _mm256_blendv_ps(self, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask)) }
    }
    #[inline(always)]
    unsafe fn transpose(rows: &mut [Self; MAX_LANES]) {
        unsafe {
            let mut t = [_mm256_setzero_ps(); 8];
            for i in 0..4 {
                t[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
                t[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
            }
            let mut u = [_mm256_setzero_ps(); 8];
            for i in 0..2 {
                for h in 0..2 {
                    let (x, y) = (_mm256_castps_pd(t[4 * i + h]), _mm256_castps_pd(t[4 * i + 2 + h]));
                    u[4 * i + 2 * h] = _mm256_castpd_ps(_mm256_unpacklo_pd(x, y));
                    u[4 * i + 2 * h + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(x, y));
                }
            }
            for c in 0..4 {
                rows[c] = _mm256_permute2f128_ps::<0x20>(u[c], u[4 + c]);
                rows[4 + c] = _mm256_permute2f128_ps::<0x31>(u[c], u[4 + c]);
            }
        }
    }
}

impl Lane for __m256d {
    type E = f64;
    type Mask = __m256i;
    const N: usize = 4;
    ops!(__m256d, f64, _mm256_setzero_pd, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd, _mm256_fmadd_pd);
    #[inline(always)]
    unsafe fn mask(bits: u32) -> __m256i {
        unsafe {
            let bit = _mm256_setr_epi64x(1, 2, 4, 8);
            _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits as i64), bit), bit)
        }
    }
    #[inline(always)]
    unsafe fn load_mask(p: *const f64, mask: __m256i) -> Self {
        unsafe { _mm256_maskload_pd(p, mask) }
    }
    #[inline(always)]
    unsafe fn store_mask(self, p: *mut f64, mask: __m256i) {
        unsafe { _mm256_maskstore_pd(p, mask, self) }
    }
    #[inline(always)]
    unsafe fn merge(self, p: *const f64, mask: __m256i) -> Self {
        unsafe { _mm256_blendv_pd(self, _mm256_maskload_pd(p, mask), _mm256_castsi256_pd(mask)) }
    }
    #[inline(always)]
    unsafe fn transpose(rows: &mut [Self; MAX_LANES]) {
        unsafe {
            let t = [
                _mm256_unpacklo_pd(rows[0], rows[1]),
                _mm256_unpackhi_pd(rows[0], rows[1]),
                _mm256_unpacklo_pd(rows[2], rows[3]),
                _mm256_unpackhi_pd(rows[2], rows[3]),
            ];
            for c in 0..2 {
                rows[c] = _mm256_permute2f128_pd::<0x20>(t[c], t[2 + c]);
                rows[2 + c] = _mm256_permute2f128_pd::<0x31>(t[c], t[2 + c]);
            }
        }
    }
}
