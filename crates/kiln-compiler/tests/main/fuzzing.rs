//! Random graphs: the fused and the unfused program give what the interpreter gives, over real memory.
use kiln_compiler::fuzz::random_case;
use kiln_compiler::null::Null;
use kiln_compiler::{Options, compile_with, print::print};
use kiln_ir::interp::{self, Tensor};
use kiln_ir::{DType, Limits};

/// Runs one case both ways and says whether it had a value; the error says what differs.
fn run_seed(seed: u64, ops: usize) -> Result<bool, String> {
    let case = random_case(seed, ops);
    // A random index may be out of range of what an earlier op made: such a case has no value.
    let Ok(expected) = interp::run(&case.graph, &case.inputs, &case.args) else { return Ok(false) };
    let bytes: Vec<Vec<u8>> = case.inputs.iter().map(Tensor::to_bytes).collect();
    let plain = Null::cpu_limits();
    let last = Limits {
        channels_last: &DType::ALL,
        conv_epilogues: if seed.is_multiple_of(2) { &DType::ALL } else { &[] },
        short_conv_epilogues: seed as usize % 16,
        ..plain.clone()
    };
    for (fuse, limits) in [(false, &plain), (true, &plain), (seed.is_multiple_of(3), &last)] {
        let options = Options { fuse, ..Options::default() };
        let program = compile_with(&case.graph, limits, &options);
        let context = |what: String| format!("seed {seed} fuse {fuse} {limits:?}: {what}\n{}\n{}", case.graph.print(), print(&program));
        let outputs = interp::run_program(&program, &bytes, &case.args).map_err(&context)?;
        for (o, (got, want)) in outputs.iter().zip(&expected).enumerate() {
            let got = Tensor::from_bytes(want.dtype, &want.dims, got);
            compare(&got, want).map_err(|e| context(format!("output {o}: {e}")))?;
        }
    }
    Ok(true)
}

fn compare(got: &Tensor, want: &Tensor) -> Result<(), String> {
    let tolerance = match want.dtype {
        DType::F64 => 1e-9,
        _ => 2e-3,
    };
    for i in 0..want.len() {
        let (g, w) = (got.get(i).float(), want.get(i).float());
        let close = (g - w).abs() <= tolerance * (1.0 + w.abs()) || (g.is_nan() && w.is_nan()) || g == w;
        if !close {
            return Err(format!("element {i} is {g}, not {w}"));
        }
    }
    Ok(())
}

fn run_range(seeds: core::ops::Range<u64>, ops: fn(u64) -> usize) {
    let (all, mut ran) = (seeds.end - seeds.start, 0);
    let failed: Vec<String> = seeds
        .filter_map(|s| {
            let r = std::panic::catch_unwind(|| run_seed(s, ops(s)));
            match r {
                Ok(Ok(valued)) => {
                    ran += valued as u64;
                    None
                }
                Ok(Err(e)) => Some(e),
                Err(p) => Some(format!("seed {s} panics: {}", p.downcast_ref::<String>().cloned().unwrap_or_default())),
            }
        })
        .take(3)
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(ran * 10 > all * 9, "only {ran} of {all} random graphs had a value");
}

/// Number of programs: `KILN_FUZZ` for a longer run.
fn programs() -> u64 {
    std::env::var("KILN_FUZZ").ok().and_then(|v| v.parse().ok()).unwrap_or(4000)
}

#[test]
fn random_programs_of_few_ops_equal_the_interpreter() {
    run_range(0..programs(), |s| 3 + (s % 6) as usize);
}

#[test]
fn random_programs_of_many_ops_equal_the_interpreter() {
    run_range(1_000_000..1_000_000 + programs() / 2, |s| 10 + (s % 31) as usize);
}
