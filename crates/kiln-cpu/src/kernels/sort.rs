//! Stable sorts along one axis, by order-preserving integer keys.
//!
//! A key and the element's position make one word, so that an unstable sort of words is a stable sort of elements and needs no memory of its own.
use core::ops::Range;

use kiln_ir::kernel::SortKernel;

use super::element::{BF16, Bit, Element, F16, with_element, with_size};
use super::{Frame, Prepared};
use crate::contract::scratch::Scratch;

/// Lines from this length on are sorted by digits.
const RADIX_FROM: usize = 512;
/// Lines beside each other that are read and written together: as many as share cache lines.
const SIDE: usize = 16;

/// A prepared sort.
pub(crate) struct Sort {
    kernel: SortKernel,
}

impl Sort {
    /// Prepares a sort.
    pub fn new(kernel: &SortKernel) -> Self {
        Sort { kernel: kernel.clone() }
    }

    /// Makes the words of every block of lines, and sorts them.
    unsafe fn typed<T: Element + Key>(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let x = frame.ptr::<T>(self.kernel.x).cast_const();
        // SAFETY: as the caller's.
        unsafe {
            if T::SHORT && self.kernel.dims[1] <= u32::MAX as usize {
                self.lines::<u64>(frame, pieces, &|block, words| self.words(x, block, words), &radix);
            } else {
                self.lines::<u128>(frame, pieces, &|block, words| self.words(x, block, words), &|words, _| words.sort_unstable());
            }
        }
    }

    /// The words of the lines of a block.
    unsafe fn words<T: Element + Key, W: Word>(&self, x: *const T, block: Block, words: &mut [W]) {
        let [_, n, inner] = self.kernel.dims;
        let descending = self.kernel.descending;
        for i in 0..n {
            for l in 0..block.lines {
                // SAFETY: lines lie in the buffer.
                let key = unsafe { (*x.add(block.first + i * inner + l)).key() };
                words[l * n + i] = W::new(if descending { !key } else { key }, T::SHORT, i);
            }
        }
    }

    /// Everything but the making of words, which alone knows the type of the elements.
    unsafe fn lines<W: Word>(&self, frame: &Frame<'_>, pieces: Range<usize>, make: &dyn Fn(Block, &mut [W]), sort: &dyn Fn(&mut [W], &mut [W])) {
        let k = &self.kernel;
        let [_, n, inner] = k.dims;
        if n == 0 {
            return;
        }
        let side = SIDE.min(inner);
        let held = Scratch::take((side + 1) * n * core::mem::size_of::<W>());
        // SAFETY: the scratch has room for the lines of words and is initialised; lines lie in the buffers.
        unsafe {
            let words = core::slice::from_raw_parts_mut(held.ptr::<W>(), (side + 1) * n);
            let (words, spare) = words.split_at_mut(side * n);
            let blocks = inner.div_ceil(SIDE);
            for piece in pieces {
                let first = piece / blocks * n * inner + piece % blocks * SIDE;
                let lines = SIDE.min(inner - piece % blocks * SIDE);
                let block = Block { first, lines };
                make(block, words);
                for line in words.chunks_exact_mut(n).take(lines) {
                    if !line.is_sorted() {
                        sort(line, spare);
                    }
                }
                if let Some(indices) = k.indices {
                    let to = frame.ptr::<i64>(indices);
                    for i in 0..n {
                        for l in 0..lines {
                            *to.add(first + i * inner + l) = words[l * n + i].position() as i64;
                        }
                    }
                }
                if let Some(values) = k.values {
                    with_size!(k.dtype.size(), S => self.values(frame.ptr::<S>(k.x).cast_const(), frame.ptr::<S>(values), block, words));
                }
            }
        }
    }

    /// Moves the elements of a block to where the words say.
    unsafe fn values<S: Copy, W: Word>(&self, x: *const S, to: *mut S, block: Block, words: &[W]) {
        let [_, n, inner] = self.kernel.dims;
        for i in 0..n {
            for l in 0..block.lines {
                // SAFETY: lines lie in the buffers, and positions in the lines.
                unsafe { *to.add(block.first + i * inner + l) = *x.add(block.first + words[l * n + i].position() * inner + l) };
            }
        }
    }
}

/// Lines beside each other: where the first begins, and how many.
#[derive(Clone, Copy)]
struct Block {
    first: usize,
    lines: usize,
}

/// A key and a position in one number.
trait Word: Copy + Ord {
    fn new(key: u64, short: bool, position: usize) -> Self;
    fn position(self) -> usize;
}

impl Word for u64 {
    #[inline(always)]
    fn new(key: u64, _: bool, position: usize) -> Self {
        key << 32 | position as u64
    }
    #[inline(always)]
    fn position(self) -> usize {
        self as u32 as usize
    }
}

impl Word for u128 {
    #[inline(always)]
    fn new(key: u64, short: bool, position: usize) -> Self {
        (if short { key as u32 as u128 } else { key as u128 }) << 64 | position as u128
    }
    #[inline(always)]
    fn position(self) -> usize {
        self as u64 as usize
    }
}

/// Sorts words by their upper halves, which is stable because the lower halves are rising.
fn radix(words: &mut [u64], spare: &mut [u64]) {
    if words.len() < RADIX_FROM {
        return words.sort_unstable();
    }
    let mut counts = [[0u32; 256]; 4];
    for w in words.iter() {
        for (d, counts) in counts.iter_mut().enumerate() {
            counts[(w >> (32 + 8 * d)) as usize & 255] += 1;
        }
    }
    let (mut from, mut to) = (&mut *words, &mut *spare);
    let mut moved = false;
    for (d, counts) in counts.iter_mut().enumerate() {
        // A digit that all words share moves nothing.
        if counts.iter().any(|c| *c as usize == from.len()) {
            continue;
        }
        let mut at = 0;
        for c in counts.iter_mut() {
            at += core::mem::replace(c, at);
        }
        for w in from.iter() {
            let place = &mut counts[(w >> (32 + 8 * d)) as usize & 255];
            to[*place as usize] = *w;
            *place += 1;
        }
        core::mem::swap(&mut from, &mut to);
        moved = !moved;
    }
    if moved {
        to.copy_from_slice(from);
    }
}

/// An unsigned number in the order of the elements: NaN above everything, zeros of both signs equal.
trait Key {
    /// Whether the key fits into 32 bits (its complement is then taken in 32 bits too).
    const SHORT: bool;
    fn key(self) -> u64;
}

impl Key for f32 {
    const SHORT: bool = true;
    #[inline(always)]
    fn key(self) -> u64 {
        let bits = if self.is_nan() { 0x7fff_ffff } else { (self + 0.0).to_bits() };
        (if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }) as u64
    }
}

impl Key for f64 {
    const SHORT: bool = false;
    #[inline(always)]
    fn key(self) -> u64 {
        let bits = if self.is_nan() { i64::MAX as u64 } else { (self + 0.0).to_bits() };
        if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
    }
}

impl Key for F16 {
    const SHORT: bool = true;
    #[inline(always)]
    fn key(self) -> u64 {
        self.widen().key()
    }
}

impl Key for BF16 {
    const SHORT: bool = true;
    #[inline(always)]
    fn key(self) -> u64 {
        self.widen().key()
    }
}

impl Key for Bit {
    const SHORT: bool = true;
    #[inline(always)]
    fn key(self) -> u64 {
        self.0 as u64
    }
}

macro_rules! int_key {
    ($($t:ty, $short:literal, $flip:expr;)*) => { $(
        impl Key for $t {
            const SHORT: bool = $short;
            #[inline(always)]
            fn key(self) -> u64 {
                (self as i64 as u64).wrapping_add($flip)
            }
        }
    )* };
}

int_key! {
    i64, false, 1 << 63;
    u64, false, 0;
    i32, true, 1 << 31;
    u32, true, 0;
    i16, true, 1 << 31;
    u16, true, 0;
    i8, true, 1 << 31;
    u8, true, 0;
}

impl Prepared for Sort {
    fn pieces(&self) -> usize {
        self.kernel.dims[0] * self.kernel.dims[2].div_ceil(SIDE)
    }

    fn work(&self) -> usize {
        let [outer, n, inner] = self.kernel.dims;
        // A word is moved about once for each doubling of the line.
        outer * inner * n * (n.max(2).ilog2() as usize + 1) * 8
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        // SAFETY: as the caller's.
        unsafe { with_element!(self.kernel.dtype, T => self.typed::<T>(frame, pieces)) }
    }
}
