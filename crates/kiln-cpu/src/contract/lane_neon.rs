//! `Lane` on aarch64: NEON registers of `f32` and `f64`.
// SAFETY (all blocks of this file): NEON is part of the aarch64 baseline, and each method touches only the memory its
// contract in `Lane` names.
#![allow(clippy::undocumented_unsafe_blocks)]

use super::lane::{Lane, MAX_LANES, first_bits};
use core::arch::aarch64::*;

macro_rules! neon {
    ($t:ty, $e:ty, $n:literal, $dup:ident, $load:ident, $store:ident, $add:ident, $fma:ident) => {
        type E = $e;
        type Mask = u32;
        const N: usize = $n;
        #[inline(always)]
        unsafe fn zero() -> Self {
            unsafe { $dup(0.0) }
        }
        #[inline(always)]
        unsafe fn splat(x: $e) -> Self {
            unsafe { $dup(x) }
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
        unsafe fn mask(bits: u32) -> u32 {
            bits
        }
        #[inline(always)]
        unsafe fn load_mask(p: *const $e, mask: u32) -> Self {
            unsafe { Self::zero().merge(p, mask) }
        }
        #[inline(always)]
        unsafe fn store_mask(self, p: *mut $e, mask: u32) {
            unsafe {
                if mask == first_bits($n) {
                    return self.store(p);
                }
                let mut parts = [0.0; $n];
                self.store(parts.as_mut_ptr());
                for (i, x) in parts.iter().enumerate() {
                    if mask >> i & 1 != 0 {
                        p.add(i).write(*x);
                    }
                }
            }
        }
        #[inline(always)]
        unsafe fn merge(self, p: *const $e, mask: u32) -> Self {
            unsafe {
                if mask == first_bits($n) {
                    return Self::load(p);
                }
                let mut parts = [0.0; $n];
                self.store(parts.as_mut_ptr());
                for (i, x) in parts.iter_mut().enumerate() {
                    if mask >> i & 1 != 0 {
                        *x = p.wrapping_add(i).read();
                    }
                }
                Self::load(parts.as_ptr())
            }
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            unsafe { $add(self, other) }
        }
        #[inline(always)]
        unsafe fn fma(self, by: Self, to: Self) -> Self {
            unsafe { $fma(to, self, by) }
        }
    };
}

impl Lane for float32x4_t {
    neon!(float32x4_t, f32, 4, vdupq_n_f32, vld1q_f32, vst1q_f32, vaddq_f32, vfmaq_f32);
    #[inline(always)]
    unsafe fn transpose(rows: &mut [Self; MAX_LANES]) {
        unsafe {
            let t = [
                vreinterpretq_f64_f32(vtrn1q_f32(rows[0], rows[1])),
                vreinterpretq_f64_f32(vtrn2q_f32(rows[0], rows[1])),
                vreinterpretq_f64_f32(vtrn1q_f32(rows[2], rows[3])),
                vreinterpretq_f64_f32(vtrn2q_f32(rows[2], rows[3])),
            ];
            for c in 0..2 {
                rows[c] = vreinterpretq_f32_f64(vtrn1q_f64(t[c], t[2 + c]));
                rows[2 + c] = vreinterpretq_f32_f64(vtrn2q_f64(t[c], t[2 + c]));
            }
        }
    }
}

impl Lane for float64x2_t {
    neon!(float64x2_t, f64, 2, vdupq_n_f64, vld1q_f64, vst1q_f64, vaddq_f64, vfmaq_f64);
    #[inline(always)]
    unsafe fn transpose(rows: &mut [Self; MAX_LANES]) {
        unsafe {
            let (x, y) = (rows[0], rows[1]);
            rows[0] = vtrn1q_f64(x, y);
            rows[1] = vtrn2q_f64(x, y);
        }
    }
}
