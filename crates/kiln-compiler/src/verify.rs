//! The verifier: what must hold of a program whatever the passes do. Runs in debug builds and tests.
use alloc::format;
use alloc::string::String;
use alloc::vec;

use kiln_ir::kernel::Fused;
use kiln_ir::{Affine, BufId, Expr, Inst, Kernel, OutputSpec, Place, Program};

/// Checks a program; the error says which rule is broken where.
pub fn verify(p: &Program) -> Result<(), String> {
    let mut written = vec![false; p.bufs.len()];
    for (b, spec) in p.bufs.iter().enumerate() {
        match spec.place {
            Place::Input(i) if i as usize >= p.inputs => return Err(format!("buffer {b}: no input {i}")),
            Place::Output(o) if o as usize >= p.outputs.len() => return Err(format!("buffer {b}: no output {o}")),
            Place::Arena(at) if at % 64 != 0 || at + spec.bytes() > p.arena => return Err(format!("buffer {b}: outside the arena")),
            _ => {}
        }
        written[b] = matches!(spec.place, Place::Input(_));
    }
    for (n, launch) in p.launches.iter().enumerate() {
        for k in &launch.kernels {
            let mut problem = None;
            k.accesses(
                |b| {
                    if p.buf(b).len > 0 && !written[b.index()] {
                        problem = Some(format!("launch {n}: {} reads buffer {} before it is written", k.family(), b.0));
                    }
                },
                |_| (),
            );
            if let Some(e) = problem {
                return Err(e);
            }
            expressions(p, k).map_err(|e| format!("launch {n}: {e}"))?;
        }
        for k in &launch.kernels {
            k.accesses(|_| (), |b| written[b.index()] = true);
        }
    }
    for (o, spec) in p.outputs.iter().enumerate() {
        let wrote = p.bufs.iter().enumerate().any(|(b, s)| s.place == Place::Output(o as u32) && (written[b] || s.len == 0));
        let ok = match spec {
            OutputSpec::New(_) | OutputSpec::Donated(_) => wrote,
            OutputSpec::SameAs(i) => (*i as usize) < p.inputs,
            OutputSpec::SameAsOutput(other) => (*other as usize) < o,
        };
        if !ok {
            return Err(format!("output {o} is never written"));
        }
    }
    Ok(())
}

fn expressions(p: &Program, k: &Kernel) -> Result<(), String> {
    match k {
        Kernel::Fused(f) => fused(p, f),
        Kernel::Dot(d) => {
            let mut dims = d.batch.to_vec();
            dims.extend([d.m, d.n]);
            expr(p, &d.epilogue, &dims)
        }
        Kernel::Conv(c) => {
            let dims = match c.mode {
                kiln_ir::kernel::ConvMode::Forward => &c.y,
                kiln_ir::kernel::ConvMode::InputGrad => &c.x,
                kiln_ir::kernel::ConvMode::WeightGrad => &c.w,
            };
            if c.attrs.channels_last { expr(p, &c.epilogue, &kiln_ir::dims::channels_last(dims)) } else { expr(p, &c.epilogue, dims) }
        }
        Kernel::Attention(_)
        | Kernel::AttentionGrad(_)
        | Kernel::Pool(_)
        | Kernel::Gather(_)
        | Kernel::Scatter(_)
        | Kernel::Scan(_)
        | Kernel::Sort(_)
        | Kernel::Host(_)
        | Kernel::Copy { .. } => Ok(()),
    }
}

fn fused(p: &Program, f: &Fused) -> Result<(), String> {
    if f.kept > f.dims.len() {
        return Err(format!("{} kept of {} dimensions", f.kept, f.dims.len()));
    }
    expr(p, &f.expr, &f.dims)?;
    for s in &f.expr.stores {
        let reduced = s.index.coeffs[f.kept..].iter().any(|c| *c != 0);
        let full = f.expr.value(s.value).level == kiln_ir::expr::Level::Full;
        let empty = f.dims.contains(&0);
        if full && !reduced && !empty && f.dims[f.kept..].iter().any(|d| *d > 1) {
            return Err(format!("value {} varies over the reduced dimensions but is stored once", s.value.0));
        }
    }
    Ok(())
}

fn expr(p: &Program, e: &Expr, dims: &[usize]) -> Result<(), String> {
    for (k, v) in e.values.iter().enumerate() {
        let mut ok = true;
        v.inst.operands(|x| ok &= x.index() < k);
        if !ok {
            return Err(format!("value {k} uses a later value"));
        }
        if let Inst::Load(l) = v.inst
            && p.buf(e.loads[l as usize].buf).dtype != v.dtype
        {
            return Err(format!("value {k} reads another dtype"));
        }
    }
    for l in &e.loads {
        if l.bounds.is_empty() {
            inside(p, l.buf, &l.index, dims, "load")?;
        }
    }
    for s in &e.stores {
        if p.buf(s.buf).dtype != e.value(s.value).dtype {
            return Err(format!("a {} value is stored in a {} buffer", e.value(s.value).dtype, p.buf(s.buf).dtype));
        }
        inside(p, s.buf, &s.index, dims, "store")?;
    }
    Ok(())
}

/// All points of the space index inside the buffer. Run-time parts are checked by who records them.
fn inside(p: &Program, b: BufId, index: &Affine, dims: &[usize], what: &str) -> Result<(), String> {
    if index.coeffs.len() != dims.len() {
        return Err(format!("{what}: {} coefficients for {} dimensions", index.coeffs.len(), dims.len()));
    }
    if dims.contains(&0) || !index.dynamic.is_empty() {
        return Ok(());
    }
    let (mut lo, mut hi) = (index.base, index.base);
    for (c, d) in index.coeffs.iter().zip(dims) {
        let reach = c * (*d as isize - 1);
        if reach < 0 { lo += reach } else { hi += reach }
    }
    let len = p.buf(b).len as isize;
    if lo < 0 || hi >= len { Err(format!("{what} of buffer {}: {lo}..={hi} is outside 0..{len}", b.0)) } else { Ok(()) }
}
