//! Element types in buffers, and the loops that bring them into tiles and back.
use core::marker::PhantomData;

use kiln_ir::DType;

use crate::math::{Arith, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::simd::{Level, Loop, LoopFn, compiled};

/// A type as buffers hold it.
trait Stored: Copy + 'static {
    /// The type tiles hold.
    type Tile: Copy + 'static;

    fn load(self) -> Self::Tile;
    fn store(value: Self::Tile) -> Self;
}

macro_rules! stored {
    ($($stored:ty => $tile:ty;)*) => {
        $(
            impl Stored for $stored {
                type Tile = $tile;

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
    f32 => f32;
    f64 => f64;
    i64 => i64;
    i32 => i64;
    i16 => i64;
    i8 => i64;
    u64 => u64;
    u32 => i64;
    u16 => i64;
    u8 => i64;
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
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable, and writable at the destination, apart from each other.
        let (dst, src) = unsafe { (core::slice::from_raw_parts_mut(dst as *mut S::Tile, n), core::slice::from_raw_parts(a as *const S, n)) };
        dst.iter_mut().zip(src).for_each(|(d, s)| *d = s.load());
    }
}

/// Loads `n` elements of `a`, `b` elements apart.
struct LoadStrided<S>(PhantomData<S>);

impl<S: Stored> Loop for LoadStrided<S> {
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
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable, and writable at the destination, apart from each other.
        let (dst, src) = unsafe { (core::slice::from_raw_parts_mut(dst as *mut S, n), core::slice::from_raw_parts(a as *const S::Tile, n)) };
        dst.iter_mut().zip(src).for_each(|(d, &s)| *d = S::store(s));
    }
}

/// Stores the tile `a` to `n` elements, `b` elements apart.
struct StoreStrided<S>(PhantomData<S>);

impl<S: Stored> Loop for StoreStrided<S> {
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        let (step, src, dst) = (as_number(b), a as *const S::Tile, dst as *mut S);
        for k in 0..n {
            // SAFETY: the strided elements are writable.
            unsafe { *dst.offset(k as isize * step) = S::store(*src.add(k)) };
        }
    }
}

/// Edge of the blocks that [`LoadTransposed`] works in: one cache line of f32 in each direction.
const EDGE: usize = 16;

/// Sizes of a transposed load.
pub(super) struct Transposed {
    /// Rows of the tile; neighbours in memory.
    pub rows: usize,
    /// Elements between columns in memory.
    pub step: isize,
}

/// Loads a tile of `n` columns whose columns are contiguous in memory; `b` refers to a [`Transposed`].
struct LoadTransposed<S>(PhantomData<S>);

impl<S: Stored> Loop for LoadTransposed<S> {
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: the caller passes a `Transposed`.
        let &Transposed { rows, step } = unsafe { &*(b as *const Transposed) };
        let (src, dst) = (a as *const S, dst as *mut S::Tile);
        let mut row = 0;
        while row < rows {
            let high = EDGE.min(rows - row);
            let mut column = 0;
            while column < n {
                let wide = EDGE.min(n - column);
                // SAFETY: the block lies inside the tile and its elements are readable.
                unsafe {
                    let from = src.offset(column as isize * step).add(row);
                    let to = dst.add(row * n + column);
                    if high == EDGE && wide == EDGE {
                        // Whole cache lines are read first, so that lines of one cache set don't push each other out.
                        let mut lines = [[(*from).load(); EDGE]; EDGE];
                        for (k, line) in lines.iter_mut().enumerate() {
                            let from = from.offset(k as isize * step);
                            for (j, element) in line.iter_mut().enumerate() {
                                *element = (*from.add(j)).load();
                            }
                        }
                        for j in 0..EDGE {
                            for (k, line) in lines.iter().enumerate() {
                                *to.add(j * n + k) = line[j];
                            }
                        }
                    } else {
                        for k in 0..wide {
                            let from = from.offset(k as isize * step);
                            for j in 0..high {
                                *to.add(j * n + k) = (*from.add(j)).load();
                            }
                        }
                    }
                }
                column += wide;
            }
            row += high;
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
        store_strided: compiled::<StoreStrided<S>>(level),
        native,
    }
}

/// The loops that move elements of a dtype.
pub(super) fn moves_of(dtype: DType, level: Level) -> Moves {
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
