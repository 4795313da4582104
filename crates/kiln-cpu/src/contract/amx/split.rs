//! Splitting blocks of `f32` into three parts of `bf16`, in the tiles' layout.
//!
//! A number is `h + m + l`: `h` its upper 16 bits, rounded; `m` the upper 16 bits of the rest; `l` what then remains, which has at most eight bits. Each part of a
//! block is a tile of 16 rows of 16 pairs. A pair holds two steps of the contraction 16 apart, on both sides alike, so that pairs are made without moving numbers
//! across a register. In a left panel rows are outer positions and pairs steps; in a right one rows are steps and pairs outer positions.

use core::arch::x86_64::*;

use super::super::lane::{Lane, first_bits};
use super::{BLOCK, STEPS, TILE, WIDTH};

/// A panel to split: up to 32 outer positions in memory, adjacent along one of the two axes.
pub(super) struct Panel {
    /// The first element.
    pub ptr: *const f32,
    /// Stride of outer positions, in elements; one unless `inner` is.
    pub outer: isize,
    /// Stride of the contraction, in elements.
    pub inner: isize,
    /// Outer positions; the rest of the panel is zero.
    pub len: usize,
    /// Steps of the contraction; the rest of the last block is zero.
    pub steps: usize,
    /// Where the blocks go.
    pub to: *mut u8,
    /// Whether it is the left operand's.
    pub left: bool,
}

/// Registers of 16 numbers for a tile: two halves of 16 registers.
struct Square {
    ptr: *const f32,
    /// Distance of registers.
    step: isize,
    /// Distance of the halves.
    half: isize,
    /// Distance of the next block's square.
    next: isize,
    /// Registers of each half that exist.
    registers: [usize; 2],
    /// Numbers in a register of each half.
    lanes: [usize; 2],
}

/// Splits a panel; returns the greatest magnitude in it, as bits: at least those of infinity if something is not finite.
///
/// # Safety
/// The memory is as described, and the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
pub(super) unsafe fn panel(job: &Panel) -> u32 {
    let mut most = _mm512_setzero_si512();
    let upto = |n: usize| n.min(16);
    for block in 0..job.steps.div_ceil(STEPS) {
        let left_over = job.steps - block * STEPS;
        let steps = [upto(left_over), upto(left_over.saturating_sub(16))];
        for side in 0..WIDTH / 16 {
            let outer = [upto(job.len.saturating_sub(16 * side)); 2];
            let ptr = job.ptr.wrapping_offset(16 * side as isize * job.outer + (block * STEPS) as isize * job.inner);
            let to = job.to.wrapping_add(block * BLOCK + side * TILE);
            // Registers along the steps or along outer positions, whichever is adjacent in memory.
            let along = job.inner == 1;
            let next = STEPS as isize * job.inner;
            let square = match along {
                true => Square { ptr, step: job.outer, half: 16, next, registers: outer, lanes: steps },
                false => Square { ptr, step: job.inner, half: 16 * job.inner, next, registers: steps, lanes: outer },
            };
            let full = square.registers == [16; 2] && square.lanes == [16; 2];
            // SAFETY: as the caller's; the square is part of the panel, and its block has room for its tiles.
            unsafe {
                match (along == job.left, full) {
                    (true, true) => split::<false, true>(&square, to, &mut most),
                    (true, false) => split::<false, false>(&square, to, &mut most),
                    (false, true) => split::<true, true>(&square, to, &mut most),
                    (false, false) => split::<true, false>(&square, to, &mut most),
                }
            }
        }
    }
    _mm512_reduce_max_epu32(most)
}

/// Splits a square into three tiles, a block's two tiles of a part lying side by side; with `TURNED` the registers become the pairs of a row.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
unsafe fn split<const TURNED: bool, const FULL: bool>(square: &Square, to: *mut u8, most: &mut __m512i) {
    // SAFETY: as the caller's; masks keep every access inside the square.
    unsafe {
        let load = |half: usize, r: usize| {
            let from = square.ptr.wrapping_offset(half as isize * square.half + r as isize * square.step);
            if FULL {
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_offset(square.next).cast());
                _mm512_loadu_ps(from)
            } else if r < square.registers[half] {
                _mm512_maskz_loadu_ps(first_bits(square.lanes[half]) as __mmask16, from)
            } else {
                _mm512_setzero_ps()
            }
        };
        if TURNED {
            let mut halves = [[_mm512_setzero_ps(); 16]; 2];
            for half in 0..2 {
                for r in 0..16 {
                    halves[half][r] = load(half, r);
                }
                <__m512 as Lane>::transpose(&mut halves[half]);
            }
            for r in 0..16 {
                pairs(halves[0][r], halves[1][r], to.add(64 * r), most);
            }
        } else {
            for r in 0..16 {
                pairs(load(0, r), load(1, r), to.add(64 * r), most);
            }
        }
    }
}

/// Splits a row of pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
unsafe fn pairs(x: __m512, y: __m512, to: *mut u8, most: &mut __m512i) {
    let upper = _mm512_set1_epi32(0xffff_0000_u32 as i32);
    let rounding = _mm512_set1_epi32(0x8000);
    let magnitude = _mm512_set1_epi32(0x7fff_ffff);
    let bits = |x: __m512| _mm512_castps_si512(x);
    let float = |x: __m512i| _mm512_castsi512_ps(x);
    // The pair of two registers' upper halves.
    let pair = |x: __m512i, y: __m512i| _mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_srli_epi32::<16>(x), y);
    *most = _mm512_max_epu32(*most, _mm512_max_epu32(_mm512_and_si512(bits(x), magnitude), _mm512_and_si512(bits(y), magnitude)));
    let (hx, hy) = (_mm512_add_epi32(bits(x), rounding), _mm512_add_epi32(bits(y), rounding));
    let (rx, ry) = (_mm512_sub_ps(x, float(_mm512_and_si512(hx, upper))), _mm512_sub_ps(y, float(_mm512_and_si512(hy, upper))));
    let (mx, my) = (_mm512_and_si512(bits(rx), upper), _mm512_and_si512(bits(ry), upper));
    let (lx, ly) = (_mm512_sub_ps(rx, float(mx)), _mm512_sub_ps(ry, float(my)));
    // SAFETY: the caller gives a row of each of the three tiles.
    unsafe {
        _mm512_storeu_si512(to.cast(), pair(hx, hy));
        _mm512_storeu_si512(to.add(2 * TILE).cast(), pair(mx, my));
        _mm512_storeu_si512(to.add(4 * TILE).cast(), pair(bits(lx), bits(ly)));
    }
}

/// Whether all of some rows of `cols` adjacent numbers are finite.
///
/// # Safety
/// The numbers are readable, and the machine has AVX-512.
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c")]
pub(super) unsafe fn finite(first: *const f32, row: isize, rows: usize, cols: usize) -> bool {
    let magnitude = _mm512_set1_epi32(0x7fff_ffff);
    let mut most = _mm512_setzero_si512();
    for r in 0..rows {
        let from = first.wrapping_offset(r as isize * row);
        for c in (0..cols).step_by(16) {
            let mask = first_bits((cols - c).min(16)) as __mmask16;
            // SAFETY: the mask keeps the access inside the row.
            let x = unsafe { _mm512_maskz_loadu_epi32(mask, from.wrapping_add(c).cast()) };
            most = _mm512_max_epu32(most, _mm512_and_si512(x, magnitude));
        }
    }
    _mm512_reduce_max_epu32(most) < f32::INFINITY.to_bits()
}
