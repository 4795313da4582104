//! The micro-kernel: one register tile of `C (+)= A · B`, written once for every register width.

use super::engine::Contraction;
use super::lane::{Element, Lane, first_bits};
use super::parallel::ParallelFor;

/// What one call of a micro-kernel works on; strides in elements.
pub(crate) struct Tile<E> {
    /// Length of the contraction.
    pub k: usize,
    /// First element of the left operand: row `i`, step `p` is at `i * a_row + p * a_k`.
    pub a: *const E,
    pub a_row: isize,
    pub a_k: isize,
    /// First element of the right operand: step `p` begins at `p * b_k`, its columns are adjacent and all readable.
    pub b: *const E,
    pub b_k: isize,
    /// Partial sums to start from, or null for zeros.
    pub from: *const E,
    pub from_row: isize,
    /// Where the sums go.
    pub to: *mut E,
    pub to_row: isize,
    /// Columns that `from` and `to` have.
    pub cols: usize,
}

/// A tile whose left operand is read through pointers: row `i` begins at `rows[i]`, and its step `p` is `offsets[p]` elements from
/// there. The left operand of `tile` is not used.
pub(crate) struct Indirect<E> {
    pub tile: Tile<E>,
    pub rows: *const *const E,
    pub offsets: *const i32,
}

/// A micro-kernel for a fixed number of rows and registers a row.
pub(crate) type Micro<E> = unsafe fn(&Tile<E>);

/// Runs one register tile of `R` rows and `C` registers a row; with `PANEL` the left operand is a packed panel of `MR` rows.
///
/// # Safety
/// All pointers of `tile` must be valid for the tile's extents, and the register's target features enabled.
#[inline(always)]
pub(crate) unsafe fn tile<V: Lane, const R: usize, const C: usize, const PANEL: bool, const MR: isize>(tile: &Tile<V::E>) {
    // SAFETY: as the caller's; a masked access never leaves the `cols` columns of the tile.
    unsafe {
        let (mut a, mut b) = (tile.a, tile.b);
        let (a_row, a_k) = if PANEL { (1, MR) } else { (tile.a_row, tile.a_k) };
        let b_k = tile.b_k;
        for r in 0..R {
            let row = tile.to.offset(r as isize * tile.to_row);
            for c in 0..C {
                V::prefetch(row.wrapping_add(c * V::N));
            }
        }
        let mut acc = [[V::zero(); C]; R];
        for _ in 0..tile.k {
            let mut bs = [V::zero(); C];
            for c in 0..C {
                bs[c] = V::load(b.add(c * V::N));
            }
            for r in 0..R {
                let x = V::splat(*a.offset(r as isize * a_row));
                for c in 0..C {
                    acc[r][c] = x.fma(bs[c], acc[r][c]);
                }
            }
            a = a.wrapping_offset(a_k);
            b = b.wrapping_offset(b_k);
        }
        finish(tile, &acc);
    }
}

/// Runs one register tile whose left operand is read through pointers: windows of an image, where they lie.
///
/// # Safety
/// As for [`tile`], with `rows` and `offsets` in the place of `a`.
#[inline(always)]
pub(crate) unsafe fn indirect<V: Lane, const R: usize, const C: usize>(job: &Indirect<V::E>) {
    let tile = &job.tile;
    // SAFETY: as the caller's.
    unsafe {
        let mut rows = [core::ptr::null(); R];
        for r in 0..R {
            rows[r] = *job.rows.add(r);
        }
        let mut b = tile.b;
        let mut acc = [[V::zero(); C]; R];
        for p in 0..tile.k {
            let at = *job.offsets.add(p) as isize;
            let mut bs = [V::zero(); C];
            for c in 0..C {
                bs[c] = V::load(b.add(c * V::N));
            }
            for r in 0..R {
                let x = V::splat(*rows[r].wrapping_offset(at));
                for c in 0..C {
                    acc[r][c] = x.fma(bs[c], acc[r][c]);
                }
            }
            b = b.wrapping_offset(tile.b_k);
        }
        finish(tile, &acc);
    }
}

/// Adds the partial sums to start from and stores the tile.
#[inline(always)]
unsafe fn finish<V: Lane, const R: usize, const C: usize>(tile: &Tile<V::E>, acc: &[[V; C]; R]) {
    let full = tile.cols == C * V::N;
    // SAFETY: as the caller's of `tile`.
    unsafe {
        if full && tile.from.is_null() {
            for r in 0..R {
                let to = tile.to.offset(r as isize * tile.to_row);
                for c in 0..C {
                    acc[r][c].store(to.add(c * V::N));
                }
            }
        } else if full {
            for r in 0..R {
                let to = tile.to.offset(r as isize * tile.to_row);
                let from = tile.from.offset(r as isize * tile.from_row);
                for c in 0..C {
                    V::load(from.add(c * V::N)).add(acc[r][c]).store(to.add(c * V::N));
                }
            }
        } else {
            let mask = V::mask(first_bits(tile.cols - (C - 1) * V::N));
            for r in 0..R {
                let to = tile.to.offset(r as isize * tile.to_row);
                for c in 0..C {
                    let at = c * V::N;
                    let mut x = acc[r][c];
                    if c + 1 < C {
                        if !tile.from.is_null() {
                            let from = tile.from.offset(r as isize * tile.from_row);
                            x = V::load(from.add(at)).add(x);
                        }
                        x.store(to.add(at));
                    } else {
                        if !tile.from.is_null() {
                            let from = tile.from.offset(r as isize * tile.from_row);
                            x = V::load_mask(from.add(at), mask).add(x);
                        }
                        x.store_mask(to.add(at), mask);
                    }
                }
            }
        }
    }
}

/// Table of micro-kernels: `[rows - 1][registers - 1][packed]`.
pub(crate) type Table<E> = &'static [[[Micro<E>; 2]; MAX_REGISTERS]];

/// Table of indirect micro-kernels: `[rows - 1][registers - 1]`.
pub(crate) type IndirectTable<E> = &'static [[unsafe fn(&Indirect<E>); MAX_REGISTERS]];

/// Most registers a row of a tile has.
pub(crate) const MAX_REGISTERS: usize = 4;

/// The kernels of one instruction set for one element type.
pub(crate) struct Kernels<E: Element> {
    /// Name of the instruction set, for benches.
    pub name: &'static str,
    /// Rows of a full tile.
    pub mr: usize,
    /// Elements of a register.
    pub lanes: usize,
    /// Registers a row of a full tile has.
    pub registers: usize,
    /// Micro-kernels.
    pub table: Table<E>,
    /// Micro-kernels that read the left operand through pointers.
    pub indirect: IndirectTable<E>,
    /// Packs a block whose elements are adjacent along the outer axis.
    pub pack_outer: unsafe fn(&super::pack::Copy<E>),
    /// Packs a block whose elements are adjacent along the contraction.
    pub pack_inner: unsafe fn(&super::pack::Copy<E>),
    /// Packs windows whose positions are the outer axis.
    pub window_outer: unsafe fn(&super::window::Job<'_, E>),
    /// Packs windows whose positions are the contraction; the distance between images follows.
    pub window_inner: unsafe fn(&super::window::Job<'_, E>, isize),
    /// Copies a box of an image with its padding.
    pub pad: unsafe fn(&super::region::Pad<E>),
    /// Convolves with few result channels.
    pub lines: unsafe fn(&super::narrow::Lines<E>),
    /// Sums the products of a weight gradient with few output channels.
    pub products: unsafe fn(&super::narrow::Lines<E>),
    /// Transforms weights, inputs and sums of Winograd's convolution; the last tells whether all results are finite.
    pub winograd_weights: unsafe fn(&super::winograd::Weights<E>),
    pub winograd_inputs: unsafe fn(&super::winograd::Inputs<E>),
    pub winograd_results: unsafe fn(&super::winograd::Results<E>) -> bool,
    /// `y[j] += sum_p x[p] w[p][j]` over adjacent `j`.
    pub axpy: unsafe fn(&super::skinny::Job<E>),
    /// `y[j] = sum_p x[p] w[j][p]` over adjacent `p`.
    pub dot: unsafe fn(&super::skinny::Job<E>),
}

impl<E: Element> Kernels<E> {
    /// Columns of a full tile.
    pub fn nr(&self) -> usize {
        self.lanes * self.registers
    }

    /// The indirect kernel for a tile of `rows <= mr` rows and `cols <= nr` columns.
    #[inline]
    pub fn pick_indirect(&self, rows: usize, cols: usize) -> unsafe fn(&Indirect<E>) {
        self.indirect[rows - 1][cols.div_ceil(self.lanes) - 1]
    }

    /// The kernel for a tile of `rows <= mr` rows and `cols <= nr` columns.
    #[inline]
    pub fn pick(&self, rows: usize, cols: usize, packed: bool) -> Micro<E> {
        self.table[rows - 1][cols.div_ceil(self.lanes) - 1][packed as usize]
    }
}

/// An element type with kernels.
pub trait Scalar: Element {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn kernels() -> &'static Kernels<Self>;

    /// Computes a contraction on a unit for products of matrices, where the machine has one for this type and it pays.
    ///
    /// # Safety
    /// As for [`super::contract`].
    #[doc(hidden)]
    unsafe fn on_matrix_unit(_job: &Contraction<'_, Self>, _pool: &dyn ParallelFor) -> bool {
        false
    }
}
