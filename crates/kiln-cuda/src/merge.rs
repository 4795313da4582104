//! Fewer launches: small intermediates that don't share memory, kernels that become the prologue of the products that read them, and kernels that share a launch.
use std::collections::HashMap;

use kiln_ir::kernel::Fused;
use kiln_ir::{Affine, BufId, DType, Inst, Kernel, Place, Program};

use crate::render::fused::Piece;
use crate::render::matvec::{self, Prologue};
use crate::render::signature::overlap;
use crate::steps::Chip;

/// Most bytes of intermediates that are kept apart from each other.
const APART: usize = 32 << 20;
/// Most pieces of a launch.
const MOST_PIECES: usize = 24;

/// Most bytes of shared memory of all pieces of a launch: each has its own.
const MOST_SHARED: usize = 32 << 10;
/// Most blocks of a kernel that shares a launch.
const MOST_BLOCKS: usize = 2048;

/// Sizes of a convolution's result.
fn result_dims(c: &kiln_ir::kernel::ConvKernel) -> &[usize] {
    match c.mode {
        kiln_ir::kernel::ConvMode::Forward => &c.y,
        kiln_ir::kernel::ConvMode::InputGrad => &c.x,
        kiln_ir::kernel::ConvMode::WeightGrad => &c.w,
    }
}

/// Points that a kernel stores into a buffer, `None` if it writes it in another way than all at once.
fn stored_points(kernel: &Kernel, buf: BufId, program: &Program) -> Option<usize> {
    let len = program.buf(buf).len;
    let of = |stores: &[kiln_ir::Store], dims: &[usize]| {
        let points = |index: &Affine| -> usize { dims.iter().zip(&index.coeffs).filter(|(_, c)| **c != 0).map(|(n, _)| *n).product() };
        stores.iter().filter(|s| s.buf == buf).map(|s| points(&s.index)).sum()
    };
    match kernel {
        Kernel::Fused(f) => Some(of(&f.expr.stores, &f.dims)),
        Kernel::Dot(d) => {
            let dims: Vec<usize> = d.batch.iter().copied().chain([d.m, d.n]).collect();
            Some(of(&d.epilogue.stores, &dims))
        }
        Kernel::Attention(_)
        | Kernel::AttentionGrad(_)
        | Kernel::Gather(_)
        | Kernel::Scan(_)
        | Kernel::Sort(_)
        | Kernel::Pool(_)
        | Kernel::Host(_) => Some(len),
        Kernel::Conv(c) => Some(of(&c.epilogue.stores, result_dims(c))),
        Kernel::Copy { .. } => Some(len),
        // One that starts from what its memory holds writes a part of it.
        Kernel::Scatter(s) => (s.base.is_none_or(|b| !overlap(program, b, s.out))).then_some(len),
    }
}

/// Intermediates of which kernels write parts only: the rest is what lay in their memory before.
pub fn partly_written(program: &Program) -> Vec<BufId> {
    let mut points: HashMap<BufId, Option<usize>> = HashMap::new();
    for kernel in program.kernels() {
        let mut written = Vec::new();
        kernel.accesses(|_| (), |b| written.push(b));
        written.dedup();
        for b in written.into_iter().filter(|b| matches!(program.buf(*b).place, Place::Arena(_))) {
            let more = stored_points(kernel, b, program);
            let so_far = points.entry(b).or_insert(Some(0));
            *so_far = so_far.zip(more).map(|(a, b)| a + b);
        }
    }
    points.into_iter().filter(|(b, n)| *n != Some(program.buf(*b).len)).map(|(b, _)| b).collect()
}

/// Gives intermediates that kernels write as a whole a place of their own, where they are small together: kernels then wait only for what they read.
pub fn separate(program: &mut Program) {
    let arena: Vec<BufId> = (0..program.bufs.len() as u32).map(BufId).filter(|b| matches!(program.buf(*b).place, Place::Arena(_))).collect();
    let bytes: usize = arena.iter().map(|b| program.buf(*b).bytes().next_multiple_of(256)).sum();
    if bytes > APART {
        return;
    }
    // What is updated in place may hold what another buffer left there.
    let kept = partly_written(program);
    let whole = |b: &BufId| !kept.contains(b);
    let free: Vec<BufId> = arena.iter().copied().filter(|b| whole(b) && kept.iter().all(|k| !overlap(program, *k, *b))).collect();
    let mut end = program.arena.next_multiple_of(256);
    for b in free {
        let spec = &mut program.bufs[b.0 as usize];
        spec.place = Place::Arena(end);
        end += spec.bytes().next_multiple_of(256);
    }
    program.arena = end;
}

/// Elements from which a result is kept in the dtype that it is rounded to.
const LARGE: usize = 1 << 22;

/// Large products of half floats that are widened when they are stored are stored as they are instead: whoever reads them widens them again.
pub fn narrow(program: &mut Program) {
    let mut found = Vec::new();
    for kernel in program.kernels() {
        let Kernel::Dot(d) = kernel else { continue };
        let [store] = &d.epilogue.stores[..] else { continue };
        let spec = program.buf(store.buf);
        let is_half = matches!(d.dtype, DType::F16 | DType::BF16);
        let only_widened = match &d.epilogue.value(store.value).inst {
            Inst::Cast(x) => matches!(d.epilogue.value(*x).inst, Inst::Acc) && d.epilogue.value(*x).dtype == d.dtype,
            _ => false,
        };
        if is_half && only_widened && spec.dtype == DType::F32 && spec.len >= LARGE && matches!(spec.place, Place::Arena(_)) {
            found.push((store.buf, d.dtype));
        }
    }
    for (buf, dtype) in found {
        let (mut writers, mut others) = (0, false);
        for kernel in program.kernels() {
            let mut reads = false;
            kernel.accesses(|b| reads |= b == buf, |b| writers += (b == buf) as usize);
            others |= reads && !matches!(kernel, Kernel::Fused(_));
        }
        let shared =
            program.bufs.iter().enumerate().any(|(n, b)| n as u32 != buf.0 && b.place == program.buf(buf).place && b.len == program.buf(buf).len);
        if writers == 1 && !others && !shared {
            program.bufs[buf.0 as usize].dtype = dtype;
        }
    }
}

/// What a kernel reads and writes.
struct Touched {
    reads: Vec<BufId>,
    writes: Vec<BufId>,
}

impl Touched {
    fn of(kernel: &Kernel) -> Self {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        kernel.accesses(|b| reads.push(b), |b| writes.push(b));
        Touched { reads, writes }
    }

    /// Whether the two must run in their order.
    fn conflicts(&self, other: &Touched, program: &Program) -> bool {
        let meet = |a: &[BufId], b: &[BufId]| a.iter().any(|x| b.iter().any(|y| x == y || overlap(program, *x, *y)));
        meet(&self.writes, &other.writes) || meet(&self.writes, &other.reads) || meet(&self.reads, &other.writes)
    }
}

/// What becomes of a program's kernels, which are numbered in order.
pub struct Merged {
    /// Prologues of products, by the product's number.
    pub prologues: HashMap<usize, Prologue>,
    /// Kernels that run only as prologues.
    pub gone: Vec<bool>,
}

/// Finds kernels whose only result is the vector of products with a matrix.
pub fn absorb(program: &Program, chip: &Chip) -> Merged {
    let kernels: Vec<&Kernel> = program.kernels().collect();
    let touched: Vec<Touched> = kernels.iter().map(|k| Touched::of(k)).collect();
    let mut merged = Merged { prologues: HashMap::new(), gone: vec![false; kernels.len()] };
    let product = |k: &Kernel| -> Option<BufId> {
        let Kernel::Dot(d) = k else { return None };
        if matvec::fits(d, chip) { matvec::whole_vector(d, program) } else { None }
    };
    let wanted: Vec<Option<BufId>> = kernels.iter().map(|k| product(k)).collect();
    for (p, kernel) in kernels.iter().enumerate() {
        let Kernel::Fused(f) = kernel else { continue };
        let [store] = &f.expr.stores[..] else { continue };
        if !matches!(program.buf(store.buf).place, Place::Arena(_)) {
            continue;
        }
        let users: Vec<usize> = (0..kernels.len()).filter(|n| *n != p && touched[*n].reads.contains(&store.buf)).collect();
        let alone = touched.iter().enumerate().all(|(n, t)| n == p || !t.writes.contains(&store.buf));
        if users.is_empty() || users.len() > 3 || !alone || !users.iter().all(|u| *u > p && wanted[*u] == Some(store.buf)) {
            continue;
        }
        // Nobody may write what the kernel reads until the products are done.
        let last = users[users.len() - 1];
        let reads = Touched { reads: touched[p].reads.clone(), writes: Vec::new() };
        if (p + 1..=last).any(|n| reads.conflicts(&Touched { reads: Vec::new(), writes: touched[n].writes.clone() }, program)) {
            continue;
        }
        let found: Vec<Option<Prologue>> = users.iter().map(|_| Prologue::of(f, program)).collect();
        if found.iter().all(Option::is_some) {
            merged.gone[p] = true;
            merged.prologues.extend(users.into_iter().zip(found.into_iter().flatten()));
        }
    }
    merged
}

/// Kernels of one launch: tasks side by side, each of kernels that follow each other in one block.
#[derive(Default)]
pub struct Group<'a> {
    tasks: Vec<Task<'a>>,
}

struct Task<'a> {
    kernels: Vec<&'a Fused>,
    pieces: Vec<Piece>,
    touched: Touched,
}

impl<'a> Group<'a> {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Adds a kernel, or gives it back if it cannot be part of this launch.
    pub fn add(&mut self, f: &'a Fused, kernel: &Kernel, program: &Program, chip: &Chip) -> bool {
        let Some(piece) = Piece::of(f, program, chip).filter(|p| !p.is_wide(program)) else { return false };
        // Large kernels gain nothing, and a launch takes the registers of its greediest piece.
        if !self.tasks.is_empty() && (piece.blocks() > MOST_BLOCKS || self.tasks.iter().any(|t| t.pieces.iter().any(|p| p.blocks() > MOST_BLOCKS))) {
            return false;
        }
        let count: usize = self.tasks.iter().map(|t| t.pieces.len()).sum();
        let size: usize = self.tasks.iter().flat_map(|t| &t.kernels).map(|k| k.expr.values.len()).sum();
        let shared: usize = self.tasks.iter().flat_map(|t| &t.pieces).map(Piece::shared).sum();
        if count >= MOST_PIECES || (count > 0 && shared + piece.shared() > MOST_SHARED) || (count > 0 && size + f.expr.values.len() > 800) {
            return false;
        }
        let mut touched = Touched::of(kernel);
        let waits: Vec<usize> = (0..self.tasks.len()).filter(|n| self.tasks[*n].touched.conflicts(&touched, program)).collect();
        let single = |t: &Task<'_>| t.pieces.iter().all(|p| p.blocks() == 1);
        if waits.is_empty() {
            self.tasks.push(Task { kernels: vec![f], pieces: vec![piece], touched });
            return true;
        }
        let pieces: usize = waits.iter().map(|n| self.tasks[*n].pieces.len()).sum();
        if piece.blocks() != 1 || pieces >= 6 || !waits.iter().all(|n| single(&self.tasks[*n])) {
            return false;
        }
        let mut joined = Task { kernels: Vec::new(), pieces: Vec::new(), touched: Touched { reads: Vec::new(), writes: Vec::new() } };
        for n in waits.iter().rev() {
            let mut earlier = self.tasks.remove(*n);
            earlier.kernels.append(&mut joined.kernels);
            earlier.pieces.append(&mut joined.pieces);
            earlier.touched.reads.append(&mut joined.touched.reads);
            earlier.touched.writes.append(&mut joined.touched.writes);
            joined = earlier;
        }
        joined.kernels.push(f);
        joined.pieces.push(piece);
        joined.touched.reads.append(&mut touched.reads);
        joined.touched.writes.append(&mut touched.writes);
        self.tasks.push(joined);
        true
    }

    /// The kernels, if there is only one.
    pub fn single(&self) -> Option<&'a Fused> {
        match &self.tasks[..] {
            [task] if task.kernels.len() == 1 => Some(task.kernels[0]),
            _ => None,
        }
    }

    /// The pieces of each task.
    pub fn pieces(&self) -> Vec<Vec<&Piece>> {
        self.tasks.iter().map(|t| t.pieces.iter().collect()).collect()
    }
}
