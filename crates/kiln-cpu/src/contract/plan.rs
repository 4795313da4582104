//! `Plan`, the blocking of one contraction, chosen from its sizes and the caches.
//!
//! The order in which the terms of one sum are added depends on the sizes alone (`kc`, `k_step`, `splits`), never on the number
//! of threads; the cut of rows and columns into units may depend on it.

use super::cache::second_level;

/// What a plan is made from.
pub(crate) struct Sizes {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub batch: usize,
    /// Adjacent batch entries that share the left operand.
    pub run: usize,
    /// Rows of a tile.
    pub mr: usize,
    /// Columns of a tile.
    pub nr: usize,
    /// Elements of a register.
    pub lanes: usize,
    /// Bytes of an element.
    pub size: usize,
    pub threads: usize,
    /// The left operand can be read where it lies, by rows.
    pub a_rows: bool,
    /// The right operand can be read where it lies, by rows.
    pub b_view: bool,
    /// Steps of the contraction after which views must be asked for again.
    pub period: usize,
    /// Its rows start at cache lines and are less than half a page apart.
    pub b_aligned: bool,
    /// Micro-kernels may write the result themselves.
    pub direct: bool,
}

/// How an operand reaches the micro-kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Read where it lies.
    Direct,
    /// Packed by each unit for itself.
    Private,
    /// Packed once, for all units.
    Shared,
}

/// Sizes of the blocks.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub a: Mode,
    pub b: Mode,
    /// Steps of the contraction between two visits of a tile.
    pub kc: usize,
    /// Steps of the contraction packed at once.
    pub k_step: usize,
    /// Steps after which a block of the contraction must end.
    pub period: usize,
    /// Independent parts of the contraction, summed at the end.
    pub splits: usize,
    /// Steps of one part.
    pub split_step: usize,
    /// Rows of a block of the left operand that stays in the second-level cache.
    pub mc: usize,
    /// Rows of a unit.
    pub m_unit: usize,
    /// Columns of a unit, counted over folded batch entries.
    pub n_unit: usize,
    /// Batch entries whose columns are put side by side.
    pub fold: usize,
}

impl Plan {
    pub fn new(s: &Sizes) -> Plan {
        let l2 = second_level() / s.size;
        let splits = splits(s);
        // Operands whose views restart are read where they lie only if a restart is rare.
        let restarts = s.period < s.k;
        let (a_rows, b_view) = (s.a_rows && (!restarts || s.period >= 128), s.b_view && !restarts);
        let period = if restarts && a_rows { s.period } else { usize::MAX };
        let k = s.k.div_ceil(splits).max(1);
        let split_step = if period == usize::MAX { k } else { k.next_multiple_of(period) };
        let k = k.min(period);
        let fold = if splits > 1 { 1 } else { fold(s) };
        let cols = s.n * fold;
        let kc_most = (24 << 10) / (s.mr * s.size);
        let budget = l2 / 2;
        let wide = if splits > 1 { cols.min(512) } else { cols.min(4 * s.nr) };
        let steps = (k * wide).div_ceil(budget).max(1);
        let k_step = k.div_ceil(steps).next_multiple_of(8).min(k);
        let kc = k_step.div_ceil(k_step.div_ceil(kc_most));
        let mc = ((l2 / 4 / kc) / s.mr * s.mr).clamp(s.mr, 64 * s.mr).min(s.m.next_multiple_of(s.mr));

        // Columns: as many as keep the right operand in the second-level cache, cut further to feed the threads.
        let most = (budget / k_step / s.nr * s.nr).clamp(s.nr, 512);
        let mut n_unit = even(cols, most, s.nr);
        let mut m_unit = s.m;
        if k_step < split_step && !s.direct {
            m_unit = even(s.m, (l2 / 4 / n_unit).max(s.mr), s.mr);
        }
        let flops = 2.0 * s.m as f64 * s.n as f64 * s.k as f64 * s.batch as f64;
        let wanted = if s.threads == 1 { 1 } else { (4 * s.threads).min((flops / 5e5) as usize + 1) };
        let others = splits * s.batch.div_ceil(fold);
        // Reading rows where they lie costs more than packing once they are spread over many pages.
        let near = s.b_aligned && s.k * s.n * s.size <= 512 << 10;
        let b = if b_view && fold == 1 && (s.m <= 5 * s.mr || near) { Mode::Direct } else { Mode::Private };
        let units = |m_unit: usize, n_unit: usize| others * s.m.div_ceil(m_unit) * cols.div_ceil(n_unit);
        loop {
            let have = units(m_unit, n_unit);
            // Rows are cut last where every unit packs the right operand for itself, and only for want of units.
            let (columns, rows) = match b {
                Mode::Private => (2 * s.nr, 16 * s.mr),
                Mode::Direct | Mode::Shared => (usize::MAX, 4 * s.mr),
            };
            let enough = if b == Mode::Private && n_unit <= columns { wanted.min(2 * s.threads) } else { wanted };
            if have >= enough {
                break;
            }
            if n_unit > columns {
                n_unit = even(cols, (n_unit / 2).max(columns), s.nr);
            } else if m_unit > rows {
                m_unit = even(s.m, m_unit / 2, s.mr);
            } else if n_unit > s.nr {
                n_unit = even(cols, n_unit / 2, s.nr);
            } else if m_unit > s.mr {
                m_unit = even(s.m, m_unit / 2, s.mr);
            } else {
                break;
            }
        }
        let uses = s.run.div_ceil(fold) * cols.div_ceil(n_unit);
        let a = if a_rows {
            Mode::Direct
        } else if splits > 1 || uses == 1 || s.m * s.k * s.batch / s.run * s.size > 1 << 30 {
            m_unit = m_unit.min(((budget / k_step) / s.mr * s.mr).max(s.mr));
            Mode::Private
        } else {
            Mode::Shared
        };
        Plan { a, b, kc, k_step, period, splits, split_step, mc: mc.min(m_unit.next_multiple_of(s.mr)), m_unit, n_unit, fold }
    }
}

/// Cuts `total` into pieces of at most `most`, equal up to rounding to multiples of `unit`.
fn even(total: usize, most: usize, unit: usize) -> usize {
    let pieces = total.div_ceil(most.max(unit));
    total.div_ceil(pieces).next_multiple_of(unit)
}

/// Parts of the contraction: more than one if the result has too few tiles to share out and each sum is long.
fn splits(s: &Sizes) -> usize {
    let tiles = s.batch * s.m.div_ceil(4 * s.mr) * s.n.div_ceil(4 * s.nr);
    if tiles >= 16 || s.k < 2048 || s.batch * s.m * s.n > 1 << 20 {
        return 1;
    }
    (16 / tiles).clamp(1, s.k / 1024)
}

/// Batch entries put side by side, so that few columns do not end in a half-empty tile.
fn fold(s: &Sizes) -> usize {
    if s.run == 1 || s.n >= 16 * s.nr || s.n.is_multiple_of(s.nr) {
        return 1;
    }
    // Narrow tiles are slower by the broadcasts they share among fewer columns.
    let cost = |fold: usize| {
        let cols = fold * s.n;
        let rest = (cols % s.nr).div_ceil(s.lanes);
        let tail = if rest == 0 { 0 } else { rest * s.lanes + s.lanes };
        (cols / s.nr * s.nr + tail) as f64 / cols as f64
    };
    if cost(1) < 1.04 {
        return 1;
    }
    let most = (16 * s.nr / s.n).clamp(1, s.run);
    (1..=most).min_by(|x, y| cost(*x).total_cmp(&cost(*y))).unwrap_or(1)
}
