//! Programs as text: for `KILN_LOG=schedule`, snapshot tests and curious users.
use alloc::format;
use alloc::string::String;
use core::fmt::Write;

use kiln_ir::kernel::{ConvMode, Fused};
use kiln_ir::op::word_value;
use kiln_ir::{Affine, Bound, BufId, Expr, Inst, Kernel, OutputSpec, Place, Program};

/// The program: one block a launch, with bytes moved and floating-point operations.
pub fn print(p: &Program) -> String {
    let mut s = String::new();
    let (mut bytes, mut flops) = (0, 0);
    for k in p.kernels() {
        bytes += traffic(p, k);
        flops += work(k);
    }
    let kernels = p.kernels().count();
    let _ = writeln!(
        s,
        "program: {kernels} kernels in {} launches, {} moved, {} flop, arena {}",
        p.launches.len(),
        size(bytes),
        count(flops),
        size(p.arena)
    );
    for (n, l) in p.launches.iter().enumerate() {
        if l.kernels.len() > 1 {
            let _ = writeln!(s, "launch {n}: {} kernels", l.kernels.len());
        }
        for k in &l.kernels {
            let _ = write!(s, "[{n}] {}", kernel(p, k));
        }
    }
    for (o, spec) in p.outputs.iter().enumerate() {
        let _ = match spec {
            OutputSpec::New(b) => writeln!(s, "out{o}: new, {}", size(*b)),
            OutputSpec::Donated(i) => writeln!(s, "out{o}: over in{i}"),
            OutputSpec::SameAs(i) => writeln!(s, "out{o}: is in{i}"),
            OutputSpec::SameAsOutput(i) => writeln!(s, "out{o}: is out{i}"),
        };
    }
    s
}

/// Bytes a kernel moves if every buffer it touches is read or written once.
pub fn traffic(p: &Program, k: &Kernel) -> usize {
    let (mut read, mut written) = (alloc::vec::Vec::new(), 0);
    k.accesses(
        |b| {
            if !read.contains(&b) {
                read.push(b);
            }
        },
        |b| written += p.buf(b).bytes(),
    );
    written + read.iter().map(|b| p.buf(*b).bytes()).sum::<usize>()
}

/// Multiply-adds of contractions, counted as two operations, and elementwise costs.
pub fn work(k: &Kernel) -> usize {
    let expr = |e: &Expr, points: usize| e.values.iter().filter(|v| matches!(v.inst, Inst::Op(..) | Inst::Reduce(..))).count() * points;
    match k {
        Kernel::Fused(f) => expr(&f.expr, f.dims.iter().product()),
        Kernel::Dot(d) => {
            let points = d.batch.iter().product::<usize>() * d.m * d.n;
            2 * points * d.k + expr(&d.epilogue, points)
        }
        Kernel::Conv(c) => 2 * c.y.iter().product::<usize>() * c.w[1..].iter().product::<usize>(),
        Kernel::Attention(a) => 2 * a.heads[0] * a.heads[1] * a.length[0] * a.length[1] * (a.width[0] + a.width[1]),
        Kernel::AttentionGrad(a) => 2 * a.heads[0] * a.heads[1] * a.length[0] * a.length[1] * (3 * a.width[0] + 2 * a.width[1]),
        Kernel::Pool(_) | Kernel::Gather(_) | Kernel::Scatter(_) | Kernel::Scan(_) | Kernel::Sort(_) | Kernel::Host(_) | Kernel::Copy { .. } => 0,
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

fn count(n: usize) -> String {
    match n {
        0..1000 => format!("{n}"),
        1000..1_000_000 => format!("{:.1} k", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} M", n as f64 / 1e6),
        _ => format!("{:.2} G", n as f64 / 1e9),
    }
}

fn buf(p: &Program, b: BufId) -> String {
    let spec = p.buf(b);
    match spec.place {
        Place::Input(i) => format!("in{i}:{}", spec.dtype),
        Place::Output(o) => format!("out{o}:{}", spec.dtype),
        Place::Arena(at) => format!("b{}@{at}:{}", b.0, spec.dtype),
        Place::Unused => format!("b{}:{}", b.0, spec.dtype),
    }
}

fn affine(a: &Affine) -> String {
    let mut s = String::new();
    for (d, c) in a.coeffs.iter().enumerate() {
        if *c != 0 {
            let _ = if *c == 1 { write!(s, "+i{d}") } else { write!(s, "{c:+}*i{d}") };
        }
    }
    for (arg, m) in &a.dynamic {
        let _ = write!(s, "{m:+}*arg{arg}");
    }
    if a.base != 0 || s.is_empty() {
        let _ = write!(s, "{:+}", a.base);
    }
    s.strip_prefix('+').map(String::from).unwrap_or(s)
}

fn bounds(bs: &[Bound]) -> String {
    let mut s = String::new();
    for b in bs {
        let _ = write!(s, " if 0 <= {} < {}", affine(&b.index), b.extent);
    }
    s
}

fn expr(p: &Program, e: &Expr) -> String {
    let mut s = String::new();
    for (k, v) in e.values.iter().enumerate() {
        let _ = write!(s, "    v{k} = ");
        let _ = match &v.inst {
            Inst::Load(l) => {
                let l = &e.loads[*l as usize];
                write!(s, "{}[{}]{}", buf(p, l.buf), affine(&l.index), bounds(&l.bounds))
            }
            Inst::Arg(a) => write!(s, "arg{a}"),
            Inst::Const(w) => {
                let (f, i) = word_value(v.dtype, *w);
                if v.dtype.is_float() { write!(s, "{f:?}") } else { write!(s, "{i}") }
            }
            Inst::Index(a) => write!(s, "index {}", affine(a)),
            Inst::Random(kind, a, seed) => write!(s, "random {kind:?} [{}] seed v{}", affine(a), seed.0),
            Inst::Inside(b) => write!(s, "inside{}", bounds(b)),
            Inst::Op(op, args) => {
                let _ = write!(s, "{}", op.name());
                args.iter().try_for_each(|a| write!(s, " v{}", a.0))
            }
            Inst::Cast(x) => write!(s, "cast v{}", x.0),
            Inst::Reduce(op, x) => write!(s, "reduce {} v{}", op.name(), x.0),
            Inst::Acc => write!(s, "acc"),
        };
        let _ = writeln!(s, " : {}", v.dtype);
    }
    for st in &e.stores {
        let _ = writeln!(s, "    {}[{}] <- v{}", buf(p, st.buf), affine(&st.index), st.value.0);
    }
    s
}

fn fused(p: &Program, f: &Fused) -> String {
    format!("fused {:?} over {:?}\n{}", &f.dims[..f.kept], &f.dims[f.kept..], expr(p, &f.expr))
}

/// One kernel.
pub fn kernel(p: &Program, k: &Kernel) -> String {
    match k {
        Kernel::Fused(f) => fused(p, f),
        Kernel::Dot(d) => {
            let mut s = format!("dot {:?} {}x{}x{} {}\n", &d.batch[..], d.m, d.k, d.n, d.dtype);
            for (name, side) in [("lhs", &d.lhs), ("rhs", &d.rhs)] {
                let _ = match &side.prologue {
                    Some(e) => write!(s, "    {name} computed:\n{}", expr(p, e)),
                    None => writeln!(s, "    {name} {}[{}]", buf(p, side.buf), affine(&side.index)),
                };
            }
            s + &expr(p, &d.epilogue)
        }
        Kernel::Conv(c) => {
            let mode = match c.mode {
                ConvMode::Forward => "forward",
                ConvMode::InputGrad => "input gradient",
                ConvMode::WeightGrad => "weight gradient",
            };
            format!(
                "conv {mode} x {:?} w {:?} y {:?} stride {:?} dilation {:?} padding {:?} groups {} {}{}\n    {} {}\n{}",
                &c.x[..],
                &c.w[..],
                &c.y[..],
                &c.attrs.stride[..],
                &c.attrs.dilation[..],
                &c.attrs.padding[..],
                c.attrs.groups,
                c.dtype,
                if c.attrs.channels_last { ", channels last" } else { "" },
                buf(p, c.a),
                buf(p, c.b),
                expr(p, &c.epilogue)
            )
        }
        Kernel::Attention(a) | Kernel::AttentionGrad(a) => {
            let mut s = format!(
                "{} heads {:?} length {:?} width {:?}{} {}\n",
                k.family(),
                a.heads,
                a.length,
                a.width,
                if a.attrs.causal { " causal" } else { "" },
                a.dtype
            );
            for o in a.operands.iter().chain(&a.mask).chain(&a.bias) {
                let _ = writeln!(s, "    {}[{}]", buf(p, o.buf), affine(&o.index));
            }
            for o in a.results.iter().flatten() {
                let _ = writeln!(s, "    {}[{}] <-", buf(p, o.buf), affine(&o.index));
            }
            s
        }
        Kernel::Pool(_) | Kernel::Gather(_) | Kernel::Scatter(_) | Kernel::Scan(_) | Kernel::Sort(_) | Kernel::Host(_) | Kernel::Copy { .. } => {
            let mut s = String::from(k.family());
            let mut written = String::new();
            k.accesses(
                |b| {
                    let _ = write!(s, " {}", buf(p, b));
                },
                |b| {
                    let _ = write!(written, " {}", buf(p, b));
                },
            );
            format!("{s} ->{written}\n")
        }
    }
}
