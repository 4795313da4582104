//! Preparation of a kernel: its expression becomes sections of steps over slots, with scratch memory for each.
mod fusion;
mod section;

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::expr::Level;
use kiln_ir::kernel::Fused;
use kiln_ir::{Affine, Bound, BufSpec, DType, Elementwise, Expr, Inst, ValueId};
use smallvec::SmallVec;

use super::elementwise::{self, Kind};
use super::geometry::{Geometry, Mode, choose, region};
use super::pair::Pair;
use super::step::*;
use super::stored::moves_of;
use super::word::{element_bits, word_form};
use super::{cast, random, reduction};
use crate::simd::Level as Simd;

/// Bytes of scratch a task's tiles should stay within, so that they and the streams of the loads share the first-level cache.
const TILE_BYTES: usize = 28 << 10;
/// Bytes of the rows of one block that should stay close.
const ROW_BYTES: usize = 16 << 10;
/// Rows up to this size keep values that several passes need; longer ones compute them again.
const CACHE_BYTES: usize = 256 << 10;
/// Results of this size are written past the caches: nobody would find them there.
const STREAM_BYTES: usize = 32 << 20;
/// Kernels that read this many bytes ask for the next tile while they compute,
const PREFETCH_BYTES: usize = 8 << 20;
/// if an element costs as much as this many additions; otherwise the hardware foresees enough.
const PREFETCH_COST: usize = 8;
/// Largest and smallest tile.
const TILE: usize = 1024;
const SMALL_TILE: usize = 256;

/// A prepared kernel or expression.
pub(super) struct Plan {
    pub geometry: Geometry,
    pub accesses: Vec<Affine>,
    /// One coefficient for each access and axis of the geometry.
    pub coeffs: Vec<isize>,
    pub bounds: Vec<Bounds>,
    pub loads: Vec<LoadPlan>,
    pub stores: Vec<StorePlan>,
    pub reduces: Vec<ReducePlan>,
    pub homes: Vec<Home>,
    /// Slots that move with the kept point, and with the reduced point.
    pub moving: Vec<Slot>,
    pub constants: Vec<(usize, u64)>,
    pub scratch: usize,
    /// Once a task, on single elements.
    pub uniform: Vec<Step>,
    /// `Map`: the tile. Otherwise: kept values known before the first pass.
    pub first: Vec<Step>,
    pub passes: Vec<Pass>,
    /// Stores of kept values, after the last pass.
    pub last: Vec<Step>,
    /// Whether loads ask for their next tile in advance.
    pub prefetch: bool,
    /// Bytes moved (or their equivalent in arithmetic) by one point of the iteration space.
    pub cost: usize,
}

/// What an expression is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Kernel,
    /// Reads accumulated tiles of this kind.
    Epilogue(Kind),
    /// Hands its last value over.
    Prologue,
}

/// How a value is held in a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// One element.
    Scalar,
    /// An element per point of the tile.
    Vector,
}

/// Where a section's tiles lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Kept,
    Full,
}

/// Operands of a value.
type Operands = SmallVec<[ValueId; 3]>;

struct Builder<'a> {
    expr: &'a Expr,
    bufs: &'a [BufSpec],
    role: Role,
    simd: Simd,
    fused_kept: usize,
    plan: Plan,
    /// Level of each value by what it really depends on.
    levels: Vec<Level>,
    phases: Vec<u32>,
    /// Slots of values in the uniform section, among kept values, and as seen by tiles.
    uniform: Vec<Option<Slot>>,
    kept: Vec<Option<Slot>>,
    full: Vec<Option<(Slot, Form)>>,
    /// Registers given back, by element size.
    free: Vec<(usize, Vec<usize>)>,
    /// Slots of registers.
    plain: Vec<(usize, Slot)>,
    /// Values computed together with their first operand, and on which operands.
    pairs: Vec<Option<(Pair, Operands)>>,
    /// Sums of products computed without the products, by the number of the reduction.
    products: Vec<Option<Products>>,
}

/// What a sum of products that are not computed by themselves sums.
#[derive(Clone, Copy)]
enum Products {
    /// The products of two values.
    Of([ValueId; 2]),
    /// The squares of the differences of a value and one that is the same for the whole row.
    Deviations([ValueId; 2]),
}

/// Kind in which a value is held.
fn kind_of(expr: &Expr, id: ValueId) -> Kind {
    Kind::of(expr.value(id).dtype)
}

/// The kernel, prepared.
///
/// # Errors
/// An op that is not defined on its dtype.
pub(super) fn prepare(fused: &Fused, bufs: &[BufSpec], role: Role, simd: Simd) -> Result<Plan, String> {
    let mut tile = TILE;
    loop {
        let plan = Builder::new(fused, bufs, role, simd, tile)?.build()?;
        if plan.scratch <= TILE_BYTES || tile <= SMALL_TILE || plan.geometry.rows * plan.geometry.columns < tile / 2 {
            return Ok(plan);
        }
        tile /= 2;
    }
}

impl Plan {
    /// Bytes of an element of the tiles that a contraction exchanges with the expression.
    pub fn foreign_size(&self) -> usize {
        let size = |step: &Step| match *step {
            Step::Acc { size, .. } | Step::Out { size, .. } => Some(size as usize),
            _ => None,
        };
        self.first.iter().find_map(size).unwrap_or(0)
    }
}

impl<'a> Builder<'a> {
    fn new(fused: &'a Fused, bufs: &'a [BufSpec], role: Role, simd: Simd, tile: usize) -> Result<Self, String> {
        let expr = &fused.expr;
        let size = |l: &kiln_ir::Load| bufs[l.buf.index()].dtype.size();
        let full_loads: usize =
            expr.loads.iter().filter(|l| l.index.coeffs[fused.kept.min(l.index.coeffs.len())..].iter().any(|&c| c != 0)).map(size).sum();
        let geometry = if role == Role::Kernel { choose(fused, tile, ROW_BYTES, full_loads.max(4)) } else { region(&fused.dims, tile) };
        let arithmetic: usize = expr.values.iter().map(|v| if let Inst::Op(op, _) = &v.inst { op.cost() as usize } else { 0 }).sum();
        let cost =
            expr.loads.iter().map(size).sum::<usize>() + expr.stores.iter().map(|s| bufs[s.buf.index()].dtype.size()).sum::<usize>() + arithmetic / 2;
        let read: usize = expr.loads.iter().map(|l| bufs[l.buf.index()].bytes()).sum();
        let ahead = geometry.mode != Mode::Across;
        let count = expr.values.len();
        let plan = Plan {
            geometry,
            accesses: Vec::new(),
            coeffs: Vec::new(),
            bounds: Vec::new(),
            loads: Vec::new(),
            stores: Vec::new(),
            reduces: Vec::new(),
            homes: Vec::new(),
            moving: Vec::new(),
            constants: Vec::new(),
            scratch: 0,
            uniform: Vec::new(),
            first: Vec::new(),
            passes: Vec::new(),
            last: Vec::new(),
            prefetch: arithmetic >= PREFETCH_COST && read >= PREFETCH_BYTES && ahead,
            cost: cost.max(1),
        };
        let mut builder = Builder {
            expr,
            bufs,
            role,
            simd,
            fused_kept: fused.kept,
            plan,
            levels: Vec::with_capacity(count),
            phases: expr.phases(),
            uniform: vec![None; count],
            kept: vec![None; count],
            full: vec![None; count],
            free: Vec::new(),
            plain: Vec::new(),
            pairs: vec![None; count],
            products: vec![None; count],
        };
        builder.find_levels();
        builder.find_pairs();
        Ok(builder)
    }

    fn find_levels(&mut self) {
        let kept = self.fused_kept;
        let level_of = |affine: &Affine| {
            let split = kept.min(affine.coeffs.len());
            if affine.coeffs[split..].iter().any(|&c| c != 0) {
                Level::Full
            } else if affine.coeffs[..split].iter().any(|&c| c != 0) {
                Level::Kept
            } else {
                Level::Uniform
            }
        };
        let of_bounds = |bounds: &[Bound]| bounds.iter().map(|b| level_of(&b.index)).max().unwrap_or(Level::Uniform);
        for value in &self.expr.values {
            let mut level = Level::Uniform;
            value.inst.operands(|x| level = level.max(self.levels[x.index()]));
            let own = match &value.inst {
                Inst::Load(n) => {
                    let load = &self.expr.loads[*n as usize];
                    // Uniform loads are kept values too: the uniform section reads no memory.
                    level_of(&load.index).max(of_bounds(&load.bounds)).max(Level::Kept)
                }
                Inst::Index(affine) => level_of(affine).max(Level::Kept),
                Inst::Random(_, affine, _) => level_of(affine).max(Level::Kept),
                Inst::Inside(bounds) => of_bounds(bounds).max(Level::Kept),
                Inst::Reduce(..) | Inst::Acc => Level::Kept,
                Inst::Arg(_) | Inst::Const(_) | Inst::Op(..) | Inst::Cast(_) => Level::Uniform,
            };
            let level = if matches!(value.inst, Inst::Reduce(..)) { Level::Kept } else { level.max(own) };
            self.levels.push(level);
        }
    }

    fn is_map(&self) -> bool {
        self.plan.geometry.mode == Mode::Map
    }

    /// Level with respect to tiles: in `Map` mode kept values make up the tiles.
    fn level(&self, id: ValueId) -> Level {
        let level = self.levels[id.index()];
        if self.is_map() && level == Level::Kept { Level::Full } else { level }
    }

    /// Whether a store is done for every reduced point.
    fn is_full_store(&self, store: &kiln_ir::Store) -> bool {
        let split = self.fused_kept.min(store.index.coeffs.len());
        self.is_map() || self.level(store.value) == Level::Full || store.index.coeffs[split..].iter().any(|&c| c != 0)
    }

    fn access(&mut self, affine: &Affine) -> AccessId {
        if let Some(found) = self.plan.accesses.iter().position(|a| a == affine) {
            return found as AccessId;
        }
        let geometry = &self.plan.geometry;
        let coeffs = (0..geometry.dims.len()).map(|a| geometry.coefficient(&affine.coeffs, a, self.fused_kept));
        self.plan.coeffs.extend(coeffs);
        self.plan.accesses.push(affine.clone());
        self.plan.accesses.len() as AccessId - 1
    }

    /// Bytes from a row of a row kernel to the same row of the next block.
    fn next_block(&self, affine: &Affine, spec: &BufSpec) -> isize {
        let geometry = &self.plan.geometry;
        let by_lane = geometry.coefficient(&affine.coeffs, geometry.lane, self.fused_kept);
        by_lane * (geometry.lanes * spec.dtype.size()) as isize
    }

    fn bounds(&mut self, bounds: &[Bound]) -> Bounds {
        bounds.iter().map(|b| (self.access(&b.index), b.extent)).collect()
    }

    /// New scratch memory of `bytes` bytes. Buffers are staggered, so that equal positions of neighbours never share the low 12 bits of their addresses.
    fn memory(&mut self, bytes: usize) -> usize {
        let at = self.plan.scratch;
        self.plan.scratch += bytes.next_multiple_of(64) + 64;
        at
    }

    fn slot_at(&mut self, offset: usize, motion: Motion) -> Slot {
        self.plan.homes.push(Home { offset, motion });
        let slot = self.plan.homes.len() as Slot - 1;
        if motion != Motion::Fixed {
            self.plan.moving.push(slot);
        }
        slot
    }

    /// A slot that always points to its home; registers share theirs.
    fn plain_slot(&mut self, offset: usize) -> Slot {
        if let Some(&(_, slot)) = self.plain.iter().find(|(o, _)| *o == offset) {
            return slot;
        }
        let slot = self.slot_at(offset, Motion::Fixed);
        self.plain.push((offset, slot));
        slot
    }

    fn slot(&mut self, bytes: usize) -> Slot {
        let offset = self.memory(bytes);
        self.slot_at(offset, Motion::Fixed)
    }

    /// Elements a register holds: a tile, or the kept points of a block.
    fn tile_elements(&self) -> usize {
        (self.plan.geometry.rows * self.plan.geometry.columns).max(self.plan.geometry.lanes)
    }

    /// A tile register: memory that was given back, or new.
    fn register(&mut self, size: usize) -> usize {
        if let Some((_, free)) = self.free.iter_mut().find(|(s, _)| *s == size)
            && let Some(offset) = free.pop()
        {
            return offset;
        }
        self.memory(size * self.tile_elements())
    }

    fn release(&mut self, size: usize, offset: usize) {
        match self.free.iter_mut().find(|(s, _)| *s == size) {
            Some((_, free)) => free.push(offset),
            None => self.free.push((size, vec![offset])),
        }
    }

    fn build(mut self) -> Result<Plan, String> {
        let expr = self.expr;
        self.uniform_section()?;
        let stores: Vec<usize> = (0..expr.stores.len()).collect();
        let (full, kept): (Vec<usize>, Vec<usize>) = stores.into_iter().partition(|&n| self.is_full_store(&expr.stores[n]));
        if self.is_map() {
            let (targets, out) = match self.role {
                Role::Prologue => (Vec::new(), expr.values.len().checked_sub(1).map(|v| ValueId(v as u32))),
                Role::Kernel | Role::Epilogue(_) => (full, None),
            };
            let mut steps = Vec::new();
            self.section(u32::MAX, &[], &targets, out, &mut steps)?;
            self.plan.first = steps;
            return Ok(self.plan);
        }
        let last_reduce =
            self.phases.iter().zip(&expr.values).filter(|(_, v)| matches!(v.inst, Inst::Reduce(..))).map(|(&p, _)| p).max().unwrap_or(0);
        let store_phase = full.iter().map(|&n| self.phases[expr.stores[n].value.index()]).max();
        let passes = last_reduce.max(store_phase.map_or(0, |p| p + 1));
        self.keep_reductions()?;
        let mut first = Vec::new();
        self.kept_section(0, &kept, &mut first)?;
        self.plan.first = first;
        for phase in 0..passes {
            let reduces: Vec<usize> =
                (0..expr.values.len()).filter(|&k| matches!(expr.values[k].inst, Inst::Reduce(..)) && self.phases[k] == phase + 1).collect();
            let from = self.plan.reduces.len();
            self.plan_reductions(&reduces)?;
            let mut pass = Pass { reduces: from..self.plan.reduces.len(), ..Pass::default() };
            let targets = if phase + 1 == passes { full.as_slice() } else { &[] };
            self.section(phase, &reduces, targets, None, &mut pass.steps)?;
            let mut after = Vec::new();
            self.kept_section(phase + 1, &kept, &mut after)?;
            pass.after = after;
            self.plan.passes.push(pass);
        }
        let mut last = Vec::new();
        for n in kept {
            self.store_kept(n, &mut last)?;
        }
        // What is stored as it was loaded goes first, before a store can overwrite it.
        self.plan.last = last;
        Ok(self.plan)
    }

    /// Values that are the same everywhere: constants, arguments and arithmetic on them.
    fn uniform_section(&mut self) -> Result<(), String> {
        let expr = self.expr;
        let mut steps = Vec::new();
        for (k, value) in expr.values.iter().enumerate() {
            if self.levels[k] != Level::Uniform {
                continue;
            }
            let slot = self.slot(8);
            self.uniform[k] = Some(slot);
            match &value.inst {
                Inst::Const(word) => {
                    let bits = element_bits(value.dtype, *word);
                    let offset = self.plan.homes[slot as usize].offset;
                    self.plan.constants.push((offset, bits));
                }
                Inst::Arg(number) => steps.push(Step::Arg { number: *number, dst: slot, form: word_form(value.dtype) }),
                Inst::Op(..) | Inst::Cast(_) => {
                    let mut sources = [slot; 3];
                    let mut n = 0;
                    value.inst.operands(|x| {
                        sources[n] = self.uniform[x.index()].unwrap_or(slot);
                        n += 1;
                    });
                    self.compute(k, slot, sources, 0, true, &mut steps)?;
                }
                Inst::Load(_) | Inst::Index(_) | Inst::Random(..) | Inst::Inside(_) | Inst::Reduce(..) | Inst::Acc => {
                    return Err("uniform value with coordinates".to_string());
                }
            }
        }
        self.plan.uniform = steps;
        Ok(())
    }

    /// Emits the loop of an op or cast: `dst` from `sources`, of which those in the mask `scalars` are single elements.
    fn compute(&mut self, k: usize, dst: Slot, sources: [Slot; 3], scalars: usize, one: bool, steps: &mut Vec<Step>) -> Result<(), String> {
        let value = &self.expr.values[k];
        match &value.inst {
            Inst::Op(op, xs) => {
                let dtype = xs.last().map_or(value.dtype, |x| self.expr.value(*x).dtype);
                let run = elementwise::select(*op, Kind::of(dtype), scalars, self.simd)
                    .ok_or_else(|| alloc::format!("{} is not defined on {dtype}", op.name()))?;
                let narrow = dtype.is_int() && dtype.size() < 8 && !op.is_comparison();
                if !narrow {
                    steps.push(Step::Map { run, dst, sources, one });
                    return Ok(());
                }
                let size = Kind::of(dtype).size();
                let offset = if one { self.memory(8) } else { self.register(size) };
                let raw = self.plain_slot(offset);
                steps.push(Step::Map { run, dst: raw, sources, one });
                steps.push(Step::Map { run: cast::select(Kind::of(dtype), dtype, self.simd), dst, sources: [raw; 3], one });
                if !one {
                    self.release(size, offset);
                }
            }
            Inst::Cast(x) => {
                let run = cast::select(kind_of(self.expr, *x), value.dtype, self.simd);
                steps.push(Step::Map { run, dst, sources, one });
            }
            Inst::Load(_) | Inst::Arg(_) | Inst::Const(_) | Inst::Index(_) | Inst::Random(..) | Inst::Inside(_) | Inst::Reduce(..) | Inst::Acc => {
                return Err("not an op".to_string());
            }
        }
        Ok(())
    }

    /// Room for the results of all reductions among the kept values.
    fn keep_reductions(&mut self) -> Result<(), String> {
        for (k, value) in self.expr.values.iter().enumerate() {
            if matches!(value.inst, Inst::Reduce(..)) {
                let slot = self.slot(Kind::of(value.dtype).size() * self.plan.geometry.lanes);
                self.kept[k] = Some(slot);
                self.show_kept(k, slot);
            }
        }
        Ok(())
    }

    /// Makes a kept value visible to tiles.
    fn show_kept(&mut self, k: usize, slot: Slot) {
        let offset = self.plan.homes[slot as usize].offset;
        let size = Kind::of(self.expr.values[k].dtype).size();
        let geometry = &self.plan.geometry;
        self.full[k] = Some(match geometry.mode {
            Mode::Along => (self.slot_at(offset, Motion::Lane(size as u8)), Form::Scalar),
            Mode::Across | Mode::Map if geometry.rows == 1 => (slot, Form::Vector),
            // Repeated over the rows by a step after the value is known.
            Mode::Across | Mode::Map => (self.slot(size * self.tile_elements()), Form::Vector),
        });
    }

    fn plan_reductions(&mut self, reduces: &[usize]) -> Result<(), String> {
        for &k in reduces {
            let value = &self.expr.values[k];
            let Inst::Reduce(op, x) = value.inst else { return Err("not a reduction".to_string()) };
            let kind = kind_of(self.expr, x);
            let loops = reduction::select(op, kind, self.simd)
                .ok_or_else(|| alloc::format!("reduction {op:?} is not defined on {}", self.expr.value(x).dtype))?;
            let lanes = self.plan.geometry.lanes;
            let result = self.kept[k].ok_or("a reduction without a result")?;
            let narrow = value.dtype.is_int() && value.dtype.size() < 8 && !loops.search;
            let add = loops.staged.then(|| elementwise::select(Elementwise::Add, kind, 0, self.simd)).flatten();
            let (cell, aside) = match self.plan.geometry.mode {
                Mode::Along => (self.slot(reduction::CELL), self.slot(8)),
                Mode::Across | Mode::Map => (self.slot(8 * lanes), self.slot(8 * lanes)),
            };
            self.plan.reduces.push(ReducePlan {
                loops,
                aside,
                cell,
                result,
                size: Kind::of(value.dtype).size() as u8,
                wrap: narrow.then(|| cast::select(Kind::of(value.dtype), value.dtype, self.simd)),
                add,
            });
        }
        Ok(())
    }

    /// Kept values whose reductions are complete with `phase`; only those that tiles, stores or later kept values need.
    fn kept_section(&mut self, phase: u32, stores: &[usize], steps: &mut Vec<Step>) -> Result<(), String> {
        let expr = self.expr;
        let stored: Vec<usize> = stores.iter().map(|&n| expr.stores[n].value.index()).collect();
        let mut used = vec![false; expr.values.len()];
        for v in &expr.values {
            v.inst.operands(|x| used[x.index()] = true);
        }
        expr.stores.iter().for_each(|s| used[s.value.index()] = true);
        stored.iter().for_each(|&k| used[k] = true);
        for (k, value) in expr.values.iter().enumerate() {
            if self.levels[k] != Level::Kept || self.phases[k] != phase || !used[k] {
                continue;
            }
            let size = Kind::of(value.dtype).size();
            if self.kept[k].is_none() {
                let slot = self.slot(size * self.plan.geometry.lanes);
                self.kept[k] = Some(slot);
                self.emit(Section::Kept, k, slot, Form::Vector, steps)?;
                self.show_kept(k, slot);
            }
            let slot = self.kept[k].ok_or("a kept value without a slot")?;
            if let Some((shown, Form::Vector)) = self.full[k]
                && shown != slot
            {
                steps.push(Step::Expand { src: slot, dst: shown, size: size as u8 });
            }
        }
        Ok(())
    }

    fn store_kept(&mut self, n: usize, steps: &mut Vec<Step>) -> Result<(), String> {
        let store = &self.expr.stores[n];
        let k = store.value.index();
        let src = match self.kept[k] {
            Some(slot) => slot,
            None => {
                let uniform = self.uniform[k].ok_or("a stored value was not computed")?;
                let size = kind_of(self.expr, store.value).size();
                let slot = self.slot(size * self.plan.geometry.lanes);
                steps.push(Step::Splat { src: uniform, dst: slot, size: size as u8 });
                slot
            }
        };
        let plan = self.plan_store(n);
        steps.push(Step::Store { store: plan, src });
        Ok(())
    }

    fn plan_store(&mut self, n: usize) -> u16 {
        let store = &self.expr.stores[n];
        let spec = &self.bufs[store.buf.index()];
        let streamed = spec.bytes() >= STREAM_BYTES;
        let geometry = &self.plan.geometry;
        let ahead = match geometry.mode {
            Mode::Along if self.plan.prefetch && !streamed => self.next_block(&store.index, spec),
            Mode::Along | Mode::Map | Mode::Across => 0,
        };
        let plan = StorePlan {
            ahead,
            buf: store.buf,
            access: self.access(&store.index),
            moves: moves_of(spec.dtype, self.simd),
            stored: spec.dtype.size() as u8,
            held: Kind::of(spec.dtype).size() as u8,
            len: spec.len,
            stream: streamed,
        };
        self.plan.stores.push(plan);
        self.plan.stores.len() as u16 - 1
    }
}
