//! Random graphs on the CPU: fused and not fused, against the interpreter.
use kiln_compiler::fuzz::random_smooth_case;
use kiln_compiler::{Options, compile_with, print::print};
use kiln_cpu::CpuRuntime;
use kiln_ir::interp::{self, Tensor};
use kiln_ir::{DType, Runtime};

use crate::oracle::run_on_cpu;

fn run_seed(seed: u64, ops: usize) -> Result<(), String> {
    let case = random_smooth_case(seed, ops);
    let Ok(expected) = interp::run(&case.graph, &case.inputs, &case.args) else { return Ok(()) };
    let cpu = CpuRuntime::global();
    for fuse in [false, true] {
        let program = compile_with(&case.graph, cpu.limits(), &Options { fuse, ..Options::default() });
        let context = |what: String| format!("seed {seed} fuse {fuse}: {what}\n{}\n{}", case.graph.print(), print(&program));
        let outputs = run_on_cpu(&program, &case.inputs, &case.args).map_err(&context)?;
        for (o, (got, want)) in outputs.iter().zip(&expected).enumerate() {
            let got = Tensor::from_bytes(want.dtype, &want.dims, got);
            let tolerance = if want.dtype == DType::F64 { 1e-9 } else { 3e-3 };
            for i in 0..want.len() {
                let (g, w) = (got.get(i).float(), want.get(i).float());
                let close = (g - w).abs() <= tolerance * (1.0 + w.abs()) || (g.is_nan() && w.is_nan()) || g == w;
                if !close {
                    return Err(context(format!("output {o}, element {i} is {g}, not {w}")));
                }
            }
        }
    }
    Ok(())
}

fn run_range(seeds: core::ops::Range<u64>, ops: fn(u64) -> usize) {
    let failed: Vec<String> = seeds
        .filter_map(|s| match std::panic::catch_unwind(|| run_seed(s, ops(s))) {
            Ok(r) => r.err(),
            Err(p) => Some(format!("seed {s} panics: {}", p.downcast_ref::<String>().cloned().unwrap_or_default())),
        })
        .take(3)
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Number of programs: `KILN_FUZZ` for a longer run.
fn programs() -> u64 {
    std::env::var("KILN_FUZZ").ok().and_then(|v| v.parse().ok()).unwrap_or(4000)
}

#[test]
fn random_programs_of_few_ops_run_as_the_interpreter_says() {
    run_range(0..programs(), |s| 3 + (s % 6) as usize);
}

#[test]
fn random_programs_of_many_ops_run_as_the_interpreter_says() {
    run_range(1_000_000..1_000_000 + programs() / 2, |s| 10 + (s % 31) as usize);
}
