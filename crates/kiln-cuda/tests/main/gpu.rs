//! On a machine with a GPU: programs run there, repeatedly, and compared with the interpreter. Elsewhere each test prints what is missing.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use kiln_compiler::fuzz::random_smooth_case;
use kiln_compiler::{Options, compile_with, print::print};
use kiln_cuda::CudaRuntime;
use kiln_ir::interp::{self, Tensor};
use kiln_ir::op::OpInputs;
use kiln_ir::{Buffer, DType, Dims, Elementwise, Graph, Op, OutputSpec, Program, ReduceOp, Runtime, RuntimeError};

use crate::oracle::Draw;

/// The machine's first GPU, or `None` after one printed line.
pub fn device() -> Option<&'static Arc<CudaRuntime>> {
    static DEVICE: OnceLock<Option<Arc<CudaRuntime>>> = OnceLock::new();
    (DEVICE.get_or_init(|| match CudaRuntime::open(0) {
        Ok(gpu) => {
            println!("on {}", gpu.info().name);
            Some(gpu)
        }
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }))
    .as_ref()
}

/// Runs a program several times and returns the outputs of the last run; the first runs launch kernel by kernel, the last ones replay a captured graph.
pub fn run(gpu: &CudaRuntime, program: &Program, inputs: &[Tensor], args: &[u64], times: usize) -> Result<Vec<Vec<u8>>, RuntimeError> {
    let executable = gpu.compile(Arc::new(program.clone()))?;
    let mut results = Vec::new();
    for _ in 0..times {
        let mut buffers = Vec::new();
        for t in inputs {
            buffers.push(gpu.upload(&t.to_bytes())?);
        }
        let mut outputs: Vec<Buffer> = Vec::new();
        for spec in &program.outputs {
            outputs.push(match spec {
                // Fresh memory is poisoned, so that an element nobody writes shows.
                OutputSpec::New(bytes) => gpu.upload(&vec![0xa5; *bytes])?,
                OutputSpec::Donated(i) | OutputSpec::SameAs(i) => buffers[*i as usize].clone(),
                OutputSpec::SameAsOutput(o) => outputs[*o as usize].clone(),
            });
        }
        gpu.run(&*executable, &buffers, &outputs, args)?;
        results.clear();
        for (b, spec) in outputs.iter().zip(&program.outputs) {
            let _ = spec;
            let mut bytes = vec![0; b.bytes()];
            gpu.download(b, &mut bytes)?;
            results.push(bytes);
        }
    }
    Ok(results)
}

/// One random graph: the error says what differs.
fn random_graph(gpu: &CudaRuntime, seed: u64) -> Result<(), String> {
    let case = random_smooth_case(seed, 3 + (seed % 14) as usize);
    let Ok(expected) = interp::run(&case.graph, &case.inputs, &case.args) else { return Ok(()) };
    let program = compile_with(&case.graph, gpu.limits(), &Options { fuse: !seed.is_multiple_of(4), ..Options::default() });
    let context = |what: String| format!("seed {seed}: {what}\n{}\n{}", case.graph.print(), print(&program));
    let outputs = run(gpu, &program, &case.inputs, &case.args, 5).map_err(|e| context(e.to_string()))?;
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
    Ok(())
}

#[test]
fn random_graphs_run_on_the_gpu_as_the_interpreter_says() {
    let Some(gpu) = device() else { return };
    let most: u64 = std::env::var("KILN_FUZZ").ok().and_then(|v| v.parse().ok()).unwrap_or(200);
    let (next, failed) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= most || failed.lock().unwrap().len() >= 3 {
                        break;
                    }
                    if let Err(e) = random_graph(gpu, seed) {
                        failed.lock().unwrap().push(e);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn large_products_are_right_in_every_layout() {
    let Some(gpu) = device() else { return };
    let mut draw = Draw(9);
    for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
        for turned in 0..8usize {
            let (m, k, n) = (96, 160, 72);
            let mut g = Graph::new();
            let side = |g: &mut Graph, a: usize, b: usize, turned: bool| {
                let dims = if turned { [2, b, a] } else { [2, a, b] };
                let x = g.input(&dims, dtype);
                let y = if turned {
                    g.push(Op::Permute([0, 2, 1].into_iter().collect()), OpInputs::from_slice(&[x]), Dims::from_slice(&[2, a, b]), dtype)
                } else {
                    x
                };
                (y, dims)
            };
            let (x, xd) = side(&mut g, m, k, turned & 1 != 0);
            let (y, yd) = side(&mut g, k, n, turned & 2 != 0);
            let mut d = g.push(Op::Dot, OpInputs::from_slice(&[x, y]), Dims::from_slice(&[2, m, n]), dtype);
            let bias = g.input(&[1, 1, n], dtype);
            if turned & 4 != 0 {
                let b = g.push(Op::Expand, OpInputs::from_slice(&[bias]), Dims::from_slice(&[2, m, n]), dtype);
                d = g.push(Op::Elementwise(Elementwise::Add), OpInputs::from_slice(&[d, b]), Dims::from_slice(&[2, m, n]), dtype);
            }
            g.outputs.push(d);
            let inputs = [draw.tensor(dtype, &xd, (-1.0, 1.0)), draw.tensor(dtype, &yd, (-1.0, 1.0)), draw.tensor(dtype, &[1, 1, n], (-1.0, 1.0))];
            let want = &interp::run_with(&g, &inputs, &[], interp::Options { round_every_op: false }).unwrap()[0];
            let program = compile_with(&g, gpu.limits(), &Options::default());
            let got = run(gpu, &program, &inputs, &[], 2).unwrap_or_else(|e| panic!("{dtype} {turned}: {e}"));
            let got = Tensor::from_bytes(dtype, &want.dims, &got[0]);
            let (mut off, mut all) = (0.0, 0.0);
            for i in 0..want.len() {
                off += (got.get(i).float() - want.get(i).float()).powi(2);
                all += want.get(i).float().powi(2);
            }
            let error = (off / all).sqrt();
            let most = match dtype {
                DType::F64 => 1e-12,
                DType::F32 => 1e-5,
                _ => 1e-2,
            };
            assert!(error <= most, "{dtype}, layout {turned}: relative error {error}\n{}", print(&program));
        }
    }
}

#[test]
fn a_matrix_times_a_vector_is_right_in_both_layouts() {
    let Some(gpu) = device() else { return };
    let mut draw = Draw(10);
    for dtype in [DType::BF16, DType::F32, DType::F64] {
        for turned in [false, true] {
            let (k, n) = (515, 1030);
            let mut g = Graph::new();
            let x = g.input(&[1, k], dtype);
            let dims = if turned { [n, k] } else { [k, n] };
            let w = g.input(&dims, dtype);
            let y = if turned {
                g.push(Op::Permute([1, 0].into_iter().collect()), OpInputs::from_slice(&[w]), Dims::from_slice(&[k, n]), dtype)
            } else {
                w
            };
            let d = g.push(Op::Dot, OpInputs::from_slice(&[x, y]), Dims::from_slice(&[1, n]), dtype);
            let b = g.input(&[1, n], dtype);
            let z = g.push(Op::Elementwise(Elementwise::Add), OpInputs::from_slice(&[d, b]), Dims::from_slice(&[1, n]), dtype);
            g.outputs.push(z);
            let inputs = [draw.tensor(dtype, &[1, k], (-1.0, 1.0)), draw.tensor(dtype, &dims, (-1.0, 1.0)), draw.tensor(dtype, &[1, n], (-1.0, 1.0))];
            let want = &interp::run_with(&g, &inputs, &[], interp::Options { round_every_op: false }).unwrap()[0];
            let program = compile_with(&g, gpu.limits(), &Options::default());
            let got = run(gpu, &program, &inputs, &[], 1).unwrap_or_else(|e| panic!("{dtype}: {e}"));
            let got = Tensor::from_bytes(dtype, &want.dims, &got[0]);
            for i in 0..want.len() {
                let (a, b) = (got.get(i).float(), want.get(i).float());
                assert!((a - b).abs() <= crate::oracle::tolerance(dtype) * 4.0 * b.abs().max(4.0), "{dtype} {turned}: element {i} is {a}, not {b}");
            }
        }
    }
}

#[test]
fn elements_beyond_31_bits_are_found() {
    let Some(gpu) = device() else { return };
    // 229,379 elements more than 2^31, each of which depends on all bits of its place.
    let (rows, columns) = (65_537usize, 32_771usize);
    let at = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
    let mut g = Graph::new();
    let x = g.input(&[rows, columns], DType::U8);
    let twice = g.add(Op::Elementwise(Elementwise::Add), &[x, x]).unwrap();
    let turned = g.add(Op::Permute([1, 0].into_iter().collect()), &[x]).unwrap();
    let turned = g.add(Op::Elementwise(Elementwise::Not), &[turned]).unwrap();
    let most = g.add_as(Op::Reduce { op: ReduceOp::Max, axes: 2 }, &[x], &[rows, 1], DType::U8).unwrap();
    let least = g.add_as(Op::Reduce { op: ReduceOp::Min, axes: 1 }, &[x], &[1, columns], DType::U8).unwrap();
    g.outputs = vec![twice, turned, most, least];
    let program = compile_with(&g, gpu.limits(), &Options::default());
    let executable = gpu.compile(Arc::new(program.clone())).unwrap();
    let mut bytes: Vec<u8> = (0..rows * columns).map(at).collect();
    let (mut row_most, mut column_least) = (vec![0u8; rows], vec![255u8; columns]);
    for (row, most) in bytes.chunks(columns).zip(&mut row_most) {
        for (v, least) in row.iter().zip(&mut column_least) {
            (*most, *least) = ((*most).max(*v), (*least).min(*v));
        }
    }
    let x = gpu.upload(&bytes).unwrap();
    let size = |spec: &OutputSpec| if let OutputSpec::New(bytes) = spec { *bytes } else { panic!("an output of its own is expected: {spec:?}") };
    let outputs: Vec<Buffer> = program.outputs.iter().map(|o| gpu.alloc(size(o)).unwrap()).collect();
    gpu.run(&*executable, std::slice::from_ref(&x), &outputs, &[]).unwrap();
    gpu.download(&outputs[0], &mut bytes).unwrap();
    assert_eq!(bytes.iter().enumerate().position(|(i, v)| *v != at(i).wrapping_add(at(i))), None);
    gpu.download(&outputs[1], &mut bytes).unwrap();
    assert_eq!(bytes.iter().enumerate().position(|(i, v)| *v != !at(i % rows * columns + i / rows)), None);
    for (output, want) in [(2, row_most), (3, column_least)] {
        let mut got = vec![0; want.len()];
        gpu.download(&outputs[output], &mut got).unwrap();
        assert!(got == want, "output {output}");
    }
}

#[test]
fn an_impossible_allocation_is_reported_and_survived() {
    let Some(gpu) = device() else { return };
    match gpu.alloc(1 << 46) {
        Err(RuntimeError::OutOfMemory { requested, .. }) => assert!(requested >= 1 << 46),
        other => panic!("{other:?}"),
    }
    let b = gpu.upload(&[1, 2, 3]).expect("the device still works");
    let mut out = [0; 3];
    gpu.download(&b, &mut out).expect("the device still works");
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn large_uploads_arrive_whole() {
    let Some(gpu) = device() else { return };
    let bytes: Vec<u8> = (0..(20 << 20) + 17usize).map(|i| (i * 7 + i / 251) as u8).collect();
    let b = gpu.upload(&bytes).expect("there is room");
    let mut out = vec![0; bytes.len()];
    gpu.download(&b, &mut out).expect("the copy works");
    assert!(out == bytes);
}

#[test]
fn a_missing_gpu_is_named() {
    let Some(_) = device() else { return };
    let e = CudaRuntime::open(1000).expect_err("no machine has so many");
    assert!(e.to_string().contains("there is no GPU 1000"), "{e}");
}

#[test]
fn a_machine_without_a_gpu_is_told_what_is_missing() {
    if device().is_some() {
        return;
    }
    let e = CudaRuntime::open(0).expect_err("there is no GPU here").to_string();
    assert!(["libcuda", "GPU", "libnvrtc"].iter().any(|part| e.contains(part)), "{e}");
}
