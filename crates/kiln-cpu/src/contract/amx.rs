//! Products of `f32` on the matrix unit of x86-64 processors (AMX), which multiplies `bf16`.
//!
//! Each number is the exact sum of three `bf16` (`split`), and a product is the sum of the six partial products that matter, added up in `f32`:
//!
//! `(h + m + l) (h' + m' + l') ≈ hh' + hm' + mh' + mm' + hl' + lh'`
//!
//! What is left out, `ml'`, `lm'` and `ll'`, is at most 2⁻²³ of the product and of either sign, 2⁻²⁶ on average; sums are rounded as `f32` after every pair of
//! products, three times a step rather than once. Errors are those of `f32`, of the size that register tiles make: a third more for 1,500 terms of
//! one sign; a test holds them below one and a half times theirs. The unit takes numbers below 2⁻¹²⁶ for zero, and a split infinity gives NaN:
//! tiles of the result whose operands hold infinities, NaNs or nothing but tiny numbers go to the plain kernels, and so do tiles that overflow.
//!
//! `units` cuts the result, `product` computes it: each unit splits what it needs of the operands into the core's own cache.

mod excerpt;
mod product;
mod split;
mod units;

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicU8, Ordering};

pub(crate) use product::run;

/// Outer positions of a panel: two tiles.
const WIDTH: usize = 32;
/// Steps of the contraction in a block of a panel: one tile.
const STEPS: usize = 32;
/// Bytes of a tile.
const TILE: usize = 1024;
/// Bytes of a block of a panel: two tiles for each of the three parts.
const BLOCK: usize = 6 * TILE;

/// The shape of the eight tile registers, as the processor takes it: all of 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Shape {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static SHAPE: Shape = Shape {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// True if this machine has the unit, the system lets this process use it, and `KILN_AMX=off` does not forbid it.
pub(crate) fn is_there() -> bool {
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            let found = !std::env::var("KILN_AMX").is_ok_and(|v| v == "off") && has_unit() && super::isa::has_avx512() && may_use();
            KNOWN.store(1 + found as u8, Ordering::Relaxed);
            found
        }
        known => known == 2,
    }
}

/// Whether the processor has tiles of the shape above and multiplies `bf16` with them.
fn has_unit() -> bool {
    const BF16: u32 = 1 << 22;
    const TILES: u32 = 1 << 24;
    if __cpuid(0).eax < 0x1d || __cpuid_count(7, 0).edx & (BF16 | TILES) != BF16 | TILES {
        return false;
    }
    let palette = __cpuid_count(0x1d, 1);
    palette.ebx & 0xffff == 64 && palette.ebx >> 16 >= 8 && palette.ecx & 0xffff == 16
}

/// Asks the system for the tiles' state, for all threads of the process.
fn may_use() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: the call only changes which features the process may use.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

/// The tile registers, set up for as long as this lives.
struct Tiles;

impl Tiles {
    /// # Safety
    /// [`is_there`] said so.
    unsafe fn new() -> Self {
        // SAFETY: as the caller's; the compiler uses no tile register itself.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const SHAPE, options(nostack, readonly, preserves_flags)) };
        Tiles
    }

    /// Multiplies `blocks` blocks of a left and a right panel into 32 by 32 sums, `row` bytes apart; `fresh` sums start from zero.
    ///
    /// # Safety
    /// The panels have as many blocks, and the sums may be written (and read unless fresh).
    #[inline]
    unsafe fn multiply(&self, left: *const u8, right: *const u8, blocks: usize, sums: *mut f32, row: isize, fresh: bool) {
        let lower = sums.wrapping_byte_offset(16 * row);
        // SAFETY: as the caller's; the shape says what each load and store touches. Sums are in tiles 0 and 1 (upper rows), 2 and 3 (lower rows), parts of the left
        // panel in 4 and 5, of the right one in 6 and 7.
        unsafe {
            asm!(
                "test {fresh:e}, {fresh:e}",
                "jz 3f",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "jmp 2f",
                "3:",
                "tileloadd tmm0, [{c} + {row}*1]",
                "tileloadd tmm1, [{c} + {row}*1 + 64]",
                "tileloadd tmm2, [{d} + {row}*1]",
                "tileloadd tmm3, [{d} + {row}*1 + 64]",
                "2:",
                // high by high
                "tileloadd tmm4, [{a} + {s}*1]",
                "tileloadd tmm6, [{b} + {s}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm5, [{a} + {s}*1 + 1024]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tileloadd tmm7, [{b} + {s}*1 + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // high by middle
                "tileloadd tmm6, [{b} + {s}*1 + 2048]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {s}*1 + 3072]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm4, [{a} + {s}*1 + 2048]",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // middle by middle
                "tileloadd tmm5, [{a} + {s}*1 + 3072]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tileloadd tmm6, [{b} + {s}*1]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // middle by high
                "tileloadd tmm7, [{b} + {s}*1 + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm4, [{a} + {s}*1 + 4096]",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm5, [{a} + {s}*1 + 5120]",
                // low by high
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tileloadd tmm6, [{b} + {s}*1 + 4096]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm4, [{a} + {s}*1]",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "tileloadd tmm5, [{a} + {s}*1 + 1024]",
                "tileloadd tmm7, [{b} + {s}*1 + 5120]",
                // high by low
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a}, 6144",
                "add {b}, 6144",
                "dec {blocks}",
                "jnz 2b",
                "tilestored [{c} + {row}*1], tmm0",
                "tilestored [{c} + {row}*1 + 64], tmm1",
                "tilestored [{d} + {row}*1], tmm2",
                "tilestored [{d} + {row}*1 + 64], tmm3",
                a = inout(reg) left => _,
                b = inout(reg) right => _,
                blocks = inout(reg) blocks => _,
                c = in(reg) sums,
                d = in(reg) lower,
                row = in(reg) row,
                s = in(reg) 64usize,
                fresh = in(reg) fresh as u32,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: the registers were set up by this thread; nothing in them is needed.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}
