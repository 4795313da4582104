//! Checks graphs on the CPU against the interpreter.
use std::sync::Arc;

use kiln_compiler::{Options, compile_with};
use kiln_cpu::CpuRuntime;
use kiln_ir::interp::{self, Tensor};
use kiln_ir::{Buffer, DType, Graph, OutputSpec, Program, Runtime};

/// A small generator of numbers for tests.
pub struct Draw(pub u64);

impl Draw {
    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
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

/// A buffer of the bytes; one that is not to be written lies in borrowed memory which shows any write and any read past its end.
fn input(bytes: &[u8], written: bool) -> Buffer {
    let cpu = CpuRuntime::global();
    #[cfg(target_os = "linux")]
    if !written {
        return cpu.adopt(Arc::new(crate::borrowed::Guarded::new(bytes))).unwrap();
    }
    let _ = written;
    cpu.upload(bytes).unwrap()
}

/// Runs a program on the CPU runtime. Where the system offers it, operands lie at the end of guarded memory.
pub fn run_on_cpu(program: &Program, inputs: &[Tensor], args: &[u64]) -> Result<Vec<Vec<u8>>, String> {
    let cpu = CpuRuntime::global();
    let executable = cpu.compile(Arc::new(program.clone())).map_err(|e| e.to_string())?;
    let donated = |n: usize| program.outputs.iter().any(|spec| matches!(spec, OutputSpec::Donated(i) if *i as usize == n));
    let inputs: Vec<Buffer> = inputs.iter().enumerate().map(|(n, t)| input(&t.to_bytes(), donated(n))).collect();
    let mut outputs: Vec<Buffer> = Vec::new();
    for spec in &program.outputs {
        let buffer = match spec {
            OutputSpec::New(bytes) => cpu.alloc(*bytes).unwrap(),
            OutputSpec::Donated(i) | OutputSpec::SameAs(i) => inputs[*i as usize].clone(),
            OutputSpec::SameAsOutput(o) => outputs[*o as usize].clone(),
        };
        outputs.push(buffer);
    }
    cpu.run(&*executable, &inputs, &outputs, args).map_err(|e| e.to_string())?;
    let read = |b: &Buffer| {
        let mut bytes = vec![0; b.bytes()];
        cpu.download(b, &mut bytes).unwrap();
        bytes
    };
    Ok(outputs.iter().map(read).collect())
}

#[track_caller]
fn compare(what: &str, program: &Program, got: &[Vec<u8>], expected: &[Tensor], slack: f64) {
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

/// Compiles a graph fused and not fused, runs it by the interpreter and on the CPU, and compares everything with the exact result.
#[track_caller]
pub fn check(graph: &Graph, inputs: &[Tensor], args: &[u64]) {
    check_within(graph, inputs, args, 1.0);
}

/// The same with a wider tolerance.
#[track_caller]
pub fn check_within(graph: &Graph, inputs: &[Tensor], args: &[u64], slack: f64) {
    let expected = interp::run_with(graph, inputs, args, interp::Options { round_every_op: false }).unwrap();
    let cpu = CpuRuntime::global();
    for fuse in [true, false] {
        let program = compile_with(graph, cpu.limits(), &Options { fuse, ..Options::default() });
        let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
        let scalar = interp::run_program(&program, &bytes, args).unwrap_or_else(|e| panic!("{e}\n{}", kiln_compiler::print::print(&program)));
        let way = if fuse { "fused" } else { "unfused" };
        compare(&format!("{way}, interpreted"), &program, &scalar, &expected, slack);
        let got = run_on_cpu(&program, inputs, args).unwrap_or_else(|e| panic!("{way}: {e}\n{}", kiln_compiler::print::print(&program)));
        compare(&format!("{way}, on the CPU"), &program, &got, &expected, slack);
    }
}

/// The error that a run of the graph ends with, the same by interpreter and CPU.
#[track_caller]
pub fn check_fails(graph: &Graph, inputs: &[Tensor], args: &[u64], message: &str) {
    let e = interp::run(graph, inputs, args).unwrap_err();
    assert_eq!(e, message);
    let program = compile_with(graph, CpuRuntime::global().limits(), &Options::default());
    assert_eq!(run_on_cpu(&program, inputs, args).unwrap_err(), message);
}
