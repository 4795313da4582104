//! Weights that contractions keep packed: results follow the weights, whoever writes them and however often they are used.
use std::sync::Arc;

use kiln_compiler::compile;
use kiln_cpu::CpuRuntime;
use kiln_ir::interp::{self, Tensor};
use kiln_ir::op::ConvAttrs;
use kiln_ir::{Buffer, DType, Elementwise, Graph, Op, Runtime};
use smallvec::smallvec;

use crate::oracle::{Draw, tolerance};

/// Runs a graph on buffers; donated inputs are written in place.
fn run(graph: &Graph, inputs: &[Buffer]) -> Vec<Buffer> {
    let cpu = CpuRuntime::global();
    let program = compile(graph, cpu.limits());
    let mut outputs: Vec<Buffer> = Vec::new();
    for spec in &program.outputs {
        outputs.push(match spec {
            kiln_ir::OutputSpec::New(bytes) => cpu.alloc(*bytes).unwrap(),
            kiln_ir::OutputSpec::Donated(i) | kiln_ir::OutputSpec::SameAs(i) => inputs[*i as usize].clone(),
            kiln_ir::OutputSpec::SameAsOutput(o) => outputs[*o as usize].clone(),
        });
    }
    let executable = cpu.compile(Arc::new(program)).unwrap();
    cpu.run(&*executable, inputs, &outputs, &[]).unwrap();
    outputs
}

fn read(buffer: &Buffer, like: &Tensor) -> Tensor {
    let mut bytes = vec![0; buffer.bytes()];
    CpuRuntime::global().download(buffer, &mut bytes).unwrap();
    Tensor::from_bytes(like.dtype, &like.dims, &bytes)
}

/// A convolution of `x` and `w`, and the tensors it is defined on.
fn convolution(x: &Tensor, w: &Tensor, groups: usize) -> Graph {
    let mut g = Graph::new();
    let (a, b) = (g.input(&x.dims, x.dtype), g.input(&w.dims, w.dtype));
    let attrs = ConvAttrs { stride: smallvec![1, 1], dilation: smallvec![1, 1], padding: smallvec![(1, 1), (1, 1)], groups, channels_last: false };
    let y = g.add(Op::Conv(attrs), &[a, b]).unwrap();
    g.outputs = vec![y];
    g
}

#[track_caller]
fn agree(got: &Tensor, expected: &Tensor) {
    for i in 0..expected.len() {
        let (a, b) = (got.get(i).float(), expected.get(i).float());
        assert!((a - b).abs() <= 10.0 * tolerance(expected.dtype) * b.abs().max(1.0), "element {i}: {a} is not {b}");
    }
}

#[test]
fn convolutions_follow_weights_that_are_written_in_place() {
    let cpu = CpuRuntime::global();
    let mut draw = Draw(11);
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for (groups, channels, outputs, size) in [(1, 16, 48, 6), (1, 20, 40, 30), (2, 32, 64, 9)] {
            let x = draw.tensor(dtype, &[2, channels, size, size], (-1.0, 1.0));
            let mut w = draw.tensor(dtype, &[outputs, channels / groups, 3, 3], (-0.3, 0.3));
            let forward = convolution(&x, &w, groups);
            // w + w, over w itself.
            let mut double = Graph::new();
            let input = double.input(&w.dims, dtype);
            double.donated = vec![true];
            let sum = double.add(Op::Elementwise(Elementwise::Add), &[input, input]).unwrap();
            double.outputs = vec![sum];
            let (xs, ws) = (cpu.upload(&x.to_bytes()).unwrap(), cpu.upload(&w.to_bytes()).unwrap());
            for _ in 0..3 {
                let expected = interp::run(&forward, &[x.clone(), w.clone()], &[]).unwrap();
                // The first run packs for itself, the second keeps the packed weights, the others use them.
                for _ in 0..4 {
                    let y = run(&forward, &[xs.clone(), ws.clone()]);
                    agree(&read(&y[0], &expected[0]), &expected[0]);
                }
                let written = run(&double, std::slice::from_ref(&ws));
                assert!(written[0].same_as(&ws), "the sum is written over its operand");
                w = interp::run(&double, &[w], &[]).unwrap().remove(0);
            }
        }
    }
}

#[test]
fn one_block_of_weights_serves_convolutions_of_different_shapes() {
    let cpu = CpuRuntime::global();
    let mut draw = Draw(12);
    let w = draw.tensor(DType::F32, &[32, 16, 3, 3], (-0.3, 0.3));
    let ws = cpu.upload(&w.to_bytes()).unwrap();
    // The same memory as 32 x 16, as 64 x 8, and as two groups.
    let shapes: [(usize, usize, &[usize]); 3] = [(1, 16, &[32, 16, 3, 3]), (1, 8, &[64, 8, 3, 3]), (2, 32, &[32, 16, 3, 3])];
    for _ in 0..3 {
        for (groups, channels, dims) in shapes {
            let x = draw.tensor(DType::F32, &[1, channels, 11, 11], (-1.0, 1.0));
            let w = Tensor::from_bytes(DType::F32, dims, &w.to_bytes());
            let forward = convolution(&x, &w, groups);
            let y = run(&forward, &[cpu.upload(&x.to_bytes()).unwrap(), ws.clone()]);
            let expected = interp::run(&forward, &[x, w], &[]).unwrap();
            agree(&read(&y[0], &expected[0]), &expected[0]);
        }
    }
}
