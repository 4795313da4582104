//! Attention writes its results where the kernels behind it would only have copied them: heads side by side, gradients next to each other.
use kiln_ir::kernel::{AttentionKernel, AttentionOperand, Fused};
use kiln_ir::{Affine, BufId, Inst, Kernel, Place, Program};

use crate::render::signature::overlap;

/// Bytes from which a copy is worth avoiding.
const WORTH: usize = 1 << 14;

/// A kernel that only copies: from where, to where.
struct Copied<'a> {
    f: &'a Fused,
    load: &'a kiln_ir::Load,
    store: &'a kiln_ir::Store,
}

/// A kernel as a copy of a whole buffer, if it is one.
fn as_copy<'a>(kernel: &'a Kernel, program: &Program) -> Option<Copied<'a>> {
    let Kernel::Fused(f) = kernel else { return None };
    let (Some(load), Some(store)) = (f.expr.loads.first(), f.expr.stores.first()) else { return None };
    let points: usize = f.dims.iter().product();
    let plain = f.expr.values.len() == 1
        && f.expr.loads.len() == 1
        && f.expr.stores.len() == 1
        && matches!(f.expr.values[0].inst, Inst::Load(0))
        && load.bounds.is_empty()
        && load.index.dynamic.is_empty()
        && store.index.dynamic.is_empty()
        && load.index.base == 0
        && program.buf(load.buf).dtype == program.buf(store.buf).dtype
        && program.buf(load.buf).len == points;
    plain.then_some(Copied { f, load, store })
}

/// Where an operand's elements are after the copy: the same axes with the steps of the store.
fn moved(index: &Affine, sizes: [usize; 4], copied: &Copied<'_>) -> Option<Affine> {
    if index.base != 0 || !index.dynamic.is_empty() {
        return None;
    }
    let mut out = Affine { base: copied.store.index.base, coeffs: index.coeffs.clone(), dynamic: Default::default() };
    let mut used = vec![false; copied.f.dims.len()];
    for (axis, size) in sizes.into_iter().enumerate() {
        if size == 1 {
            out.coeffs[axis] = 0;
            continue;
        }
        let fits = |d: &usize| !used[*d] && copied.f.dims[*d] == size && copied.load.index.coeffs[*d] == index.coeffs[axis];
        let d = (0..used.len()).find(fits)?;
        used[d] = true;
        out.coeffs[axis] = copied.store.index.coeffs[d];
    }
    (0..used.len()).all(|d| used[d] || copied.f.dims[d] == 1).then_some(out)
}

/// Sizes of a result of attention (`grad`: of its gradient).
fn sizes(k: &AttentionKernel, grad: bool, result: usize) -> [usize; 4] {
    let [b, h, g] = k.heads;
    let [t, s] = k.length;
    let [d, e] = k.width;
    match (grad, result) {
        (false, _) => [b, h, t, e],
        (true, 0) => [b, h, t, d],
        (true, 1) => [b, g, s, d],
        (true, _) => [b, g, s, e],
    }
}

/// A result that can be written to its copy's place.
struct Fold {
    attention: usize,
    result: usize,
    copy: usize,
    from: BufId,
    to: BufId,
    index: Affine,
}

/// First and last kernel that touches each buffer.
fn lives(program: &Program) -> Vec<(usize, usize)> {
    let mut lives = vec![(usize::MAX, 0); program.bufs.len()];
    for (n, kernel) in program.kernels().enumerate() {
        let mut all = Vec::new();
        kernel.accesses(|b| all.push(b), |_| ());
        kernel.accesses(|_| (), |b| all.push(b));
        for b in all {
            let life = &mut lives[b.0 as usize];
            *life = (life.0.min(n), life.1.max(n));
        }
    }
    lives
}

fn find(program: &Program) -> Vec<Fold> {
    let kernels: Vec<&Kernel> = program.kernels().collect();
    let is_arena = |b: BufId| matches!(program.buf(b).place, Place::Arena(_)) && program.buf(b).bytes() >= WORTH;
    let mut folds = Vec::new();
    for (n, kernel) in kernels.iter().enumerate() {
        let (k, grad) = match kernel {
            Kernel::Attention(k) => (k, false),
            Kernel::AttentionGrad(k) => (k, true),
            _ => continue,
        };
        for (r, result) in k.results.iter().enumerate().filter(|(r, _)| grad || *r == 0) {
            let Some(result) = result.as_ref().filter(|o| is_arena(o.buf)) else { continue };
            // One copy; others that read it are gradients that can read it elsewhere.
            let readers: Vec<usize> = (0..kernels.len())
                .filter(|m| {
                    let mut reads = false;
                    kernels[*m].accesses(|b| reads |= b == result.buf, |_| ());
                    reads
                })
                .collect();
            let copies: Vec<usize> = readers.iter().copied().filter(|m| as_copy(kernels[*m], program).is_some()).collect();
            let movable = |m: &usize| match kernels[*m] {
                Kernel::AttentionGrad(k) => k.operands.iter().all(|o| o.buf != result.buf || o.index == result.index),
                _ => copies.contains(m),
            };
            let ([copy], true) = (&copies[..], readers.iter().all(|m| *m > n && movable(m))) else { continue };
            let Some(copied) = as_copy(kernels[*copy], program) else { continue };
            let index = if is_arena(copied.store.buf) { moved(&result.index, sizes(k, grad, r), &copied) } else { None };
            if let Some(index) = index {
                folds.push(Fold { attention: n, result: r, copy: *copy, from: result.buf, to: copied.store.buf, index });
            }
        }
    }
    // A buffer of several copies is written by attention as a whole or not at all.
    let writers = |to: BufId| {
        let mut count = 0;
        kernels.iter().for_each(|k| k.accesses(|_| (), |b| count += (b == to) as usize));
        count
    };
    let whole: Vec<bool> = folds.iter().map(|f| folds.iter().filter(|g| g.to == f.to).count() == writers(f.to)).collect();
    // Nor is one whose memory another buffer takes over as it is.
    let partly = crate::merge::partly_written(program);
    let free = |to: BufId| partly.iter().all(|b| !overlap(program, *b, to));
    let mut wanted = whole.iter().zip(&folds).map(|(whole, f)| *whole && free(f.to)).collect::<Vec<_>>().into_iter();
    folds.retain(|_| wanted.next().unwrap_or(false));
    folds
}

/// Makes attention write to the copies' places, and drops the copies.
pub fn fold(program: &mut Program) {
    let folds = find(program);
    if folds.is_empty() {
        return;
    }
    let before = lives(program);
    let mut number = 0;
    for launch in &mut program.launches {
        let mut kept = Vec::with_capacity(launch.kernels.len());
        for mut kernel in std::mem::take(&mut launch.kernels) {
            let n = number;
            number += 1;
            if folds.iter().any(|f| f.copy == n) {
                continue;
            }
            if let Kernel::Attention(k) | Kernel::AttentionGrad(k) = &mut kernel {
                for f in &folds {
                    let there = || AttentionOperand { buf: f.to, index: f.index.clone() };
                    if f.attention == n {
                        k.results[f.result] = Some(there());
                    }
                    k.operands.iter_mut().filter(|o| o.buf == f.from).for_each(|o| *o = there());
                }
            }
            kept.push(kernel);
        }
        launch.kernels = kept;
    }
    // Places: that of the result where it lives long enough, else fresh memory that buffers of other times share.
    let mut fresh: Vec<(usize, usize, (usize, usize))> = Vec::new();
    let start = program.arena.next_multiple_of(256);
    let mut done: Vec<BufId> = Vec::new();
    for f in &folds {
        if done.contains(&f.to) {
            continue;
        }
        done.push(f.to);
        let all: Vec<&Fold> = folds.iter().filter(|g| g.to == f.to).collect();
        let first = all.iter().map(|g| g.attention).min().unwrap_or(0);
        let last = all.iter().map(|g| before[g.from.0 as usize].1).max().unwrap_or(0).max(before[f.to.0 as usize].1);
        let bytes = program.buf(f.to).bytes();
        let own = before[f.from.0 as usize];
        if all.len() == 1 && program.buf(f.from).bytes() == bytes && own.0 == first && own.1 >= last {
            program.bufs[f.to.0 as usize].place = program.buf(f.from).place;
            continue;
        }
        let mut at = start;
        let clashes = |at: usize, fresh: &[(usize, usize, (usize, usize))]| {
            fresh.iter().find(|(a, n, life)| *a < at + bytes && at < a + n && life.0 <= last && first <= life.1).map(|(a, n, _)| a + n)
        };
        while let Some(next) = clashes(at, &fresh) {
            at = next.next_multiple_of(256);
        }
        fresh.push((at, bytes, (first, last)));
        program.bufs[f.to.0 as usize].place = Place::Arena(at);
        program.arena = program.arena.max(at + bytes);
    }
}
