//! Element types in buffers, and the loops that bring them into tiles and back.
use core::marker::PhantomData;
use core::ops::Range;

use kiln_ir::DType;

use super::transpose::{EDGE, block32_plain};
use crate::math::{Arith, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::simd::{Level, Loop, LoopFn, compiled};

#[cfg(target_arch = "x86_64")]
use super::transpose::block32_avx;

/// A type as buffers hold it.
trait Stored: Copy + 'static {
    /// The type tiles hold.
    type Tile: Copy + 'static;

    /// Whether both are the same 32-bit words.
    const WORDS: bool = false;
    /// Whether moves are compiled once: integers that models have few of.
    const RARE: bool = false;

    fn load(self) -> Self::Tile;
    fn store(value: Self::Tile) -> Self;
}

macro_rules! stored {
    ($($stored:ty => $tile:ty, $words:literal, $rare:literal;)*) => {
        $(
            impl Stored for $stored {
                type Tile = $tile;
                const WORDS: bool = $words;
                const RARE: bool = $rare;

                #[inline(always)]
                fn load(self) -> $tile {
                    self as $tile
                }

                #[inline(always)]
                fn store(value: $tile) -> Self {
                    value as $stored
                }
            }
        )*
    };
}

stored! {
    f32 => f32, true, false;
    f64 => f64, false, false;
    i64 => i64, false, false;
    i32 => i64, false, false;
    i16 => i64, false, true;
    i8 => i64, false, true;
    u64 => u64, false, true;
    u32 => i64, false, true;
    u16 => i64, false, true;
    u8 => i64, false, false;
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct F16(u16);

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Bf16(u16);

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Bool(u8);

impl Stored for F16 {
    type Tile = f32;

    #[inline(always)]
    fn load(self) -> f32 {
        f16_to_f32(self.0)
    }

    #[inline(always)]
    fn store(value: f32) -> Self {
        F16(f32_to_f16(value))
    }
}

impl Stored for Bf16 {
    type Tile = f32;

    #[inline(always)]
    fn load(self) -> f32 {
        bf16_to_f32(self.0)
    }

    #[inline(always)]
    fn store(value: f32) -> Self {
        Bf16(f32_to_bf16(value))
    }
}

impl Stored for Bool {
    type Tile = u8;

    #[inline(always)]
    fn load(self) -> u8 {
        self.0
    }

    #[inline(always)]
    fn store(value: u8) -> Self {
        Bool(value)
    }
}

/// A signed number passed in a pointer argument of a loop.
pub(super) fn number(value: isize) -> *const u8 {
    core::ptr::without_provenance(value as usize)
}

#[inline(always)]
fn as_number(pointer: *const u8) -> isize {
    pointer.addr() as isize
}

/// Loads `n` neighbouring elements of `a`.
struct LoadRow<S>(PhantomData<S>);

impl<S: Stored> Loop for LoadRow<S> {
    const ONCE: bool = S::RARE;
    const NARROW: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable, and writable at the destination, apart from each other.
        unsafe {
            let (dst, src) = (dst as *mut S::Tile, a as *const S);
            let mut at = 0;
            while at < n {
                *dst.add(at) = (*src.add(at)).load();
                at += 1;
            }
        }
    }
}

/// Loads `n` elements of `a`, `b` elements apart.
struct LoadStrided<S>(PhantomData<S>);

impl<S: Stored> Loop for LoadStrided<S> {
    const ONCE: bool = S::RARE;
    const NARROW: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        let (step, src, dst) = (as_number(b), a as *const S, dst as *mut S::Tile);
        if step == 0 && n > 0 {
            // SAFETY: the destination is writable for `n` elements and the source readable for one.
            let (dst, value) = unsafe { (core::slice::from_raw_parts_mut(dst, n), (*src).load()) };
            dst.fill(value);
            return;
        }
        for k in 0..n {
            // SAFETY: the strided elements are readable.
            unsafe { *dst.add(k) = (*src.offset(k as isize * step)).load() };
        }
    }
}

/// Stores the tile `a` to `n` neighbouring elements.
struct StoreRow<S>(PhantomData<S>);

impl<S: Stored> Loop for StoreRow<S> {
    const ONCE: bool = S::RARE;
    // AVX-512 alone narrows words of 64 bits to 32 in one instruction.
    const NARROW: bool = S::WORDS || size_of::<S>() != 4;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable, and writable at the destination, apart from each other.
        unsafe {
            let (dst, src) = (dst as *mut S, a as *const S::Tile);
            let mut at = 0;
            while at < n {
                *dst.add(at) = S::store(*src.add(at));
                at += 1;
            }
        }
    }
}

/// Stores the tile `a` to `n` elements, `b` elements apart.
struct StoreStrided<S>(PhantomData<S>);

impl<S: Stored> Loop for StoreStrided<S> {
    const ONCE: bool = S::RARE;
    const NARROW: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        let (step, src, dst) = (as_number(b), a as *const S::Tile, dst as *mut S);
        for k in 0..n {
            // SAFETY: the strided elements are writable.
            unsafe { *dst.offset(k as isize * step) = S::store(*src.add(k)) };
        }
    }
}

/// Sizes of a transposed load.
pub(super) struct Transposed {
    /// Rows of the tile; neighbours in memory.
    pub rows: usize,
    /// Elements between columns in memory.
    pub step: isize,
}

/// Loads a tile of `n` columns whose columns are contiguous in memory; `b` refers to a [`Transposed`].
struct LoadTransposed<S>(PhantomData<S>);

impl<S: Stored> LoadTransposed<S> {
    /// Part of the tile, element by element.
    ///
    /// # Safety
    /// The part lies inside the tile, whose elements are readable.
    #[inline(always)]
    unsafe fn elements(dst: *mut S::Tile, src: *const S, step: isize, n: usize, rows: Range<usize>, columns: Range<usize>) {
        for column in columns {
            for row in rows.clone() {
                // SAFETY: the caller's promise.
                unsafe { *dst.add(row * n + column) = (*src.offset(column as isize * step + row as isize)).load() };
            }
        }
    }

    /// The tile by blocks that `block` transposes, and element by element where it must.
    ///
    /// # Safety
    /// As [`Loop::run`].
    #[inline(always)]
    unsafe fn blocks(dst: *mut u8, a: *const u8, b: *const u8, n: usize, block: impl Fn(*const u32, isize, *mut u32, usize)) {
        // SAFETY: the caller passes a `Transposed`, and a tile whose elements are readable.
        unsafe {
            let &Transposed { rows, step } = &*(b as *const Transposed);
            let (src, dst) = (a as *const S, dst as *mut S::Tile);
            if !S::WORDS {
                return Self::elements(dst, src, step, n, 0..rows, 0..n);
            }
            let (whole_rows, whole_columns) = (rows - rows % EDGE, n - n % EDGE);
            for column in (0..whole_columns).step_by(EDGE) {
                for row in (0..whole_rows).step_by(EDGE) {
                    block(src.offset(column as isize * step + row as isize).cast(), step, dst.add(row * n + column).cast(), n);
                }
            }
            Self::elements(dst, src, step, n, whole_rows..rows, 0..n);
            Self::elements(dst, src, step, n, 0..whole_rows, whole_columns..n);
        }
    }
}

impl<S: Stored> Loop for LoadTransposed<S> {
    const ONCE: bool = S::RARE;
    const NARROW: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: the caller's promise; blocks lie inside the tile.
        unsafe { Self::blocks(dst, a, b, n, |from, from_step, to, to_step| block32_plain(from, from_step, to, to_step)) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn run_avx2<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: as above.
        unsafe { Self::blocks(dst, a, b, n, |from, from_step, to, to_step| block32_avx(from, from_step, to, to_step)) }
    }
}

/// Stores the tile `a` to `n` neighbouring elements past the caches: for results too large to be found there again.
struct StoreStream<S>(PhantomData<S>);

impl<S: Stored> Loop for StoreStream<S> {
    const NARROW: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        // SAFETY: the caller's promise.
        unsafe { StoreRow::<S>::run::<A>(dst, a, b, c, n) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn run_avx2<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        use core::arch::x86_64::{__m256i, _mm256_stream_si256};
        // Elements until the destination is at a cache line, then whole lines, then the rest.
        const LINE: usize = 64;
        let size = size_of::<S>();
        let head = (dst.align_offset(LINE) / size).min(n);
        let lines = (n - head) * size / LINE;
        let per_line = LINE / size;
        // SAFETY: all parts lie inside the `n` elements; lines are aligned.
        unsafe {
            StoreRow::<S>::run::<A>(dst, a, b, c, head);
            let (mut to, mut from) = (dst.add(head * size), (a as *const S::Tile).add(head));
            for _ in 0..lines {
                let mut line = core::mem::MaybeUninit::<[__m256i; 2]>::uninit();
                for k in 0..per_line {
                    *(line.as_mut_ptr() as *mut S).add(k) = S::store(*from.add(k));
                }
                let [low, high] = line.assume_init();
                _mm256_stream_si256(to.cast(), low);
                _mm256_stream_si256(to.add(32).cast(), high);
                to = to.add(LINE);
                from = from.add(per_line);
            }
            StoreRow::<S>::run::<A>(to, from.cast(), b, c, n - head - lines * per_line);
        }
    }
}

/// The loops of a dtype.
#[derive(Clone, Copy)]
pub(super) struct Moves {
    /// `dst[k] = a[k]`.
    pub load: LoopFn,
    /// `dst[k] = a[k * b]`.
    pub load_strided: LoopFn,
    /// `dst[row * n + k] = a[row + k * b.step]` for the rows of the [`Transposed`] `b`.
    pub load_transposed: LoopFn,
    /// `dst[k] = a[k]`.
    pub store: LoopFn,
    /// The same past the caches.
    pub stream: LoopFn,
    /// `dst[k * b] = a[k]`.
    pub store_strided: LoopFn,
    /// Whether tiles hold the elements as buffers do.
    pub native: bool,
}

fn moves<S: Stored>(level: Level, native: bool) -> Moves {
    Moves {
        load: compiled::<LoadRow<S>>(level),
        load_strided: compiled::<LoadStrided<S>>(level),
        load_transposed: compiled::<LoadTransposed<S>>(level),
        store: compiled::<StoreRow<S>>(level),
        stream: compiled::<StoreStream<S>>(level),
        store_strided: compiled::<StoreStrided<S>>(level),
        native,
    }
}

/// The loops that move elements of a dtype.
pub(super) fn moves_of(dtype: DType, level: Level) -> Moves {
    // Moves are bound by memory: wider vectors than these don't pay.
    let level = level.min(Level::Avx2);
    match dtype {
        DType::F32 => moves::<f32>(level, true),
        DType::F64 => moves::<f64>(level, true),
        DType::F16 => moves::<F16>(level, false),
        DType::BF16 => moves::<Bf16>(level, false),
        DType::I64 => moves::<i64>(level, true),
        DType::I32 => moves::<i32>(level, false),
        DType::I16 => moves::<i16>(level, false),
        DType::I8 => moves::<i8>(level, false),
        DType::U64 => moves::<u64>(level, true),
        DType::U32 => moves::<u32>(level, false),
        DType::U16 => moves::<u16>(level, false),
        DType::U8 => moves::<u8>(level, false),
        DType::Bool => moves::<Bool>(level, true),
    }
}
