//! How a contraction on the matrix unit is cut: into units of rows and columns, and each unit's steps into layers.

use super::{BLOCK, STEPS, WIDTH};

/// Most blocks of the contraction between two visits of a sum; fewer with an epilogue, whose operands need room in the caches.
const DEEP: [usize; 2] = [12, 4];
/// Bytes of the second-level cache that a unit's right panels of a layer may take,
const RIGHT: usize = 900 << 10;
/// and its sums, where several layers visit them.
const SUMS: usize = 900 << 10;
/// Panels of a unit's columns and rows that are tried.
const WIDTHS: [usize; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48];
const HEIGHTS: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Time of splitting a number, in multiply-adds of the unit: 0.2 ns of one core that does 250 of them in a nanosecond.
const SPLIT: usize = 50;
/// Time of visiting a sum between layers or at the end, in the same measure.
const VISIT: usize = 40;

/// What parts of rows cost an epilogue, as a part of the whole.
const PARTS: usize = 5;

/// Units of a result, in panels of 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    /// Rows and columns of a unit.
    pub size: [usize; 2],
    /// Units down and across.
    pub count: [usize; 2],
    /// Blocks of a layer.
    pub deep: usize,
    /// Layers.
    pub layers: usize,
}

impl Units {
    /// The units of `entries` results of `m` by `n` sums of `k` terms that are done first on so many threads, with or without an epilogue.
    pub fn new(entries: usize, [m, n, k]: [usize; 3], epilogue: bool, threads: usize) -> Units {
        let blocks = k.div_ceil(STEPS);
        let [down, across] = [m.div_ceil(WIDTH), n.div_ceil(WIDTH)];
        let mut best = (usize::MAX, None);
        for width in WIDTHS {
            let columns = across.div_ceil(width);
            let width = across.div_ceil(columns);
            let layers = blocks.div_ceil(DEEP[epilogue as usize].min(RIGHT / (width * BLOCK)).max(1));
            for height in HEIGHTS {
                let rows = down.div_ceil(height);
                let height = down.div_ceil(rows);
                if layers > 1 && width * height * WIDTH * WIDTH * size_of::<f32>() > SUMS && width * height > 1 {
                    break;
                }
                let numbers = (width + height) * WIDTH * blocks * STEPS;
                let sums = width * height * WIDTH * WIDTH;
                let each = sums * (blocks * STEPS + VISIT * layers) + SPLIT * numbers;
                // A last round that is not full is as long as a full one, though a little of it can be stolen.
                let units = entries * rows * columns;
                let cost = units.div_ceil(threads) * each;
                // Parts of rows are read and written slowly: the memory unit fetches beyond their ends, from another core's caches.
                let cost = if epilogue && columns > 1 { cost + cost / PARTS } else { cost };
                if cost < best.0 {
                    best = (cost, Some(Units { size: [height, width], count: [rows, columns], deep: blocks.div_ceil(layers), layers }));
                }
            }
        }
        best.1.expect("the least height is always tried")
    }
}

/// Whether splitting the operands costs less than the unit saves; sizes alone decide.
pub(super) fn pays([m, n, k]: [usize; 3]) -> bool {
    let [down, across, blocks] = [m.div_ceil(WIDTH), n.div_ceil(WIDTH), k.div_ceil(STEPS)];
    if m * n * k < 1 << 20 || k < STEPS {
        return false;
    }
    let padded = down * across * blocks * WIDTH * WIDTH * STEPS;
    // Rows are split for every twelve panels of columns, columns for every 32 panels of rows, and both once more for another thread.
    let numbers = blocks * STEPS * WIDTH * (down * (across.div_ceil(12) + 1) + across * (down.div_ceil(32) + 1));
    // Register tiles do a third of the unit's multiply-adds.
    padded + SPLIT * numbers + VISIT * down * across * WIDTH * WIDTH < 3 * m * n * k
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_cover_the_result_and_fit_the_cache() {
        for sizes in [[64, 784, 512], [512, 512, 784], [2048, 1152, 384], [384, 1536, 2048], [33, 1, 1], [4096, 4096, 4096], [5000, 31, 100_000]] {
            for (threads, epilogue) in [(1, false), (2, true), (7, false), (64, true)] {
                let units = Units::new(1, sizes, epilogue, threads);
                let [m, n, k] = sizes.map(|size: usize| size.div_ceil(WIDTH));
                assert!(units.size[0] * units.count[0] >= m && units.size[0] * (units.count[0] - 1) < m, "{sizes:?}: {units:?}");
                assert!(units.size[1] * units.count[1] >= n && units.size[1] * (units.count[1] - 1) < n, "{sizes:?}: {units:?}");
                assert!(units.deep * units.layers >= k && units.deep * (units.layers - 1) < k, "{sizes:?}: {units:?}");
                assert!(units.size[1] * units.deep * BLOCK <= RIGHT, "{sizes:?}: {units:?}");
            }
        }
    }

    #[test]
    fn a_unit_for_each_thread_where_there_are_enough_tiles() {
        let epilogue = false;
        for (sizes, threads) in [([64, 512, 784], 2), ([512, 512, 784], 2), ([2048, 1152, 384], 2), ([1024, 1024, 1024], 8)] {
            let units = Units::new(1, sizes, epilogue, threads);
            assert!(units.count[0] * units.count[1] >= threads, "{sizes:?}: {units:?}");
        }
    }
}
