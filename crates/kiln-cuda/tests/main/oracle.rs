//! Checks graphs against the interpreter: on the emulated GPU, and on a real one where there is one.
use kiln_compiler::{Options, compile_with};
use kiln_cuda::steps::Chip;
use kiln_ir::interp::{self, Tensor};
use kiln_ir::{DType, Graph, Limits, Program};

use crate::emulator;

/// A small generator of numbers for tests.
pub struct Draw(pub u64);

impl Draw {
    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// Whether this row of a large table is left out. Without a GPU a kernel costs a run of the C++ compiler, so that a sixth of the rows must do;
    /// `KILN_EMULATE=all` takes them all.
    pub fn leaves_out(&mut self) -> bool {
        self.below(6) != 0 && crate::gpu::device().is_none() && std::env::var("KILN_EMULATE").as_deref() != Ok("all")
    }

    /// Uniform between `lo` and `hi`.
    pub fn uniform(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.bits() as f64 / 4_294_967_296.0
    }

    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.bits() as usize % n.max(1)
    }

    /// A tensor of numbers in a range (integers are rounded down, bools are `x > middle`).
    pub fn tensor(&mut self, dtype: DType, dims: &[usize], (lo, hi): (f64, f64)) -> Tensor {
        let n = dims.iter().product();
        let values: Vec<f64> = (0..n)
            .map(|_| {
                let v = self.uniform(lo, hi);
                match dtype {
                    DType::Bool => (v > (lo + hi) / 2.0) as u8 as f64,
                    d if d.is_unsigned() => v.abs().floor(),
                    d if d.is_int() => v.floor(),
                    _ => v,
                }
            })
            .collect();
        Tensor::from_f64(dtype, dims, &values)
    }

    /// Indices below `n`.
    pub fn indices(&mut self, dtype: DType, dims: &[usize], n: usize) -> Tensor {
        let values: Vec<i128> = (0..dims.iter().product()).map(|_| self.below(n) as i128).collect();
        Tensor::from_ints(dtype, dims, &values)
    }
}

/// How far results may be off, relative to their size (and to 1).
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-10,
        DType::F32 => 2e-5,
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        _ => 0.0,
    }
}

/// Compares results with the interpreter's.
#[track_caller]
pub fn compare(what: &str, program: &Program, got: &[Vec<u8>], expected: &[Tensor], slack: f64) {
    for (n, (bytes, e)) in got.iter().zip(expected).enumerate() {
        let t = Tensor::from_bytes(e.dtype, &e.dims, bytes);
        let tol = tolerance(e.dtype) * slack;
        for i in 0..e.len() {
            let (a, b) = (t.get(i).float(), e.get(i).float());
            let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tol * b.abs().max(1.0);
            assert!(same, "{what}: output {n} ({}{:?}), element {i}: {a} is not {b}\n{}", e.dtype, &e.dims[..], kiln_compiler::print::print(program));
        }
    }
}

/// The program of a graph. Nothing is fused, so that a family's kernel stands alone.
pub fn program(graph: &Graph, fuse: bool) -> Program {
    compile_with(
        graph,
        &Limits { parallelism: 132, epilogues: true, conv_epilogues: &DType::ALL, short_conv_epilogues: 0, channels_last: &[] },
        &Options { fuse, ..Options::default() },
    )
}

/// Runs a graph and compares every output with the interpreter's exact result.
#[track_caller]
pub fn check(graph: &Graph, inputs: &[Tensor], args: &[u64]) {
    check_within(graph, inputs, args, 1.0);
}

/// The same with a wider tolerance.
#[track_caller]
pub fn check_within(graph: &Graph, inputs: &[Tensor], args: &[u64], slack: f64) {
    check_on(&Chip::of(80), graph, inputs, args, slack);
}

/// The same for the kernels of one chip.
#[track_caller]
pub fn check_on(chip: &Chip, graph: &Graph, inputs: &[Tensor], args: &[u64], slack: f64) {
    check_program(chip, (graph, &program(graph, true)), inputs, args, slack);
}

/// The same for a graph and its program.
#[track_caller]
pub fn check_program(chip: &Chip, (graph, program): (&Graph, &Program), inputs: &[Tensor], args: &[u64], slack: f64) {
    let expected = interp::run_with(graph, inputs, args, interp::Options { round_every_op: false }).unwrap();
    if let Some(gpu) = crate::gpu::device() {
        let got = crate::gpu::run(gpu, program, inputs, args, 1).unwrap_or_else(|e| panic!("{e}\n{}", kiln_compiler::print::print(program)));
        compare("on the GPU", program, &got, &expected, slack);
    } else if emulator::available() {
        let got = emulator::run(program, inputs, args, chip).unwrap_or_else(|e| panic!("{e}\n{}", kiln_compiler::print::print(program)));
        compare("on the emulated GPU", program, &got, &expected, slack);
    }
}

/// A graph that must fail with a message.
#[track_caller]
pub fn check_fails(graph: &Graph, inputs: &[Tensor], args: &[u64], message: &str) {
    let program = program(graph, true);
    if let Some(gpu) = crate::gpu::device() {
        let e = crate::gpu::run(gpu, &program, inputs, args, 1).expect_err("the run must fail");
        assert_eq!(e.to_string(), message);
    } else if emulator::available() {
        let e = emulator::run(&program, inputs, args, &Chip::of(80)).expect_err("the run must fail");
        assert_eq!(e, message);
    }
}
