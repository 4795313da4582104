//! Writes the CUDA C++ of typical kernels to a folder, to read them or to look at what a compiler makes of them.
//!
//! `cargo run -p kiln-cuda --example sources -- FOLDER [SM]`
use std::path::PathBuf;

use kiln_compiler::compile;
use kiln_cuda::render::render;
use kiln_cuda::steps::Chip;
use kiln_ir::op::{AttentionAttrs, ConvAttrs};
use kiln_ir::{DType, Graph, Limits, Op, ScanOp, ScatterOp};

fn attention(dtype: DType, [b, h, g, t, s, d]: [usize; 6], causal: bool, grad: bool) -> Graph {
    let attrs = AttentionAttrs { scale: (1.0 / (d as f64).sqrt()).to_bits(), softcap: 0, causal, has_mask: false, has_bias: false };
    let mut graph = Graph::new();
    let q = graph.input(&[b, h, t, d], dtype);
    let (k, v) = (graph.input(&[b, g, s, d], dtype), graph.input(&[b, g, s, d], dtype));
    if !grad {
        let y = graph.add(Op::Attention(attrs), &[q, k, v]).expect("attention takes these shapes");
        let lse = graph.get(y, 1).expect("attention has two results");
        graph.outputs = vec![y, lse];
        return graph;
    }
    let out = graph.input(&[b, h, t, d], dtype);
    let lse = graph.input(&[b, h, t], if dtype == DType::F64 { dtype } else { DType::F32 });
    let dout = graph.input(&[b, h, t, d], dtype);
    let dq = graph.add(Op::AttentionGrad(attrs), &[q, k, v, out, lse, dout]).expect("its gradient takes these shapes");
    let (dk, dv) = (graph.get(dq, 1).expect("dk"), graph.get(dq, 2).expect("dv"));
    graph.outputs = vec![dq, dk, dv];
    graph
}

fn conv(dtype: DType, x: [usize; 4], w: [usize; 4], stride: usize, padding: usize, which: usize) -> Graph {
    let attrs = ConvAttrs {
        stride: [stride; 2].into_iter().collect(),
        dilation: [1; 2].into_iter().collect(),
        padding: [(padding, padding); 2].into_iter().collect(),
        groups: x[1] / w[1],
        channels_last: false,
    };
    let out = |a: usize| (x[a] + 2 * padding - w[a]) / stride + 1;
    let y = [x[0], w[0], out(2), out(3)];
    let mut g = Graph::new();
    let (op, a, b, dims) = match which {
        0 => (Op::Conv(attrs), x, w, y),
        1 => (Op::ConvInputGrad(attrs), y, w, x),
        _ => (Op::ConvWeightGrad(attrs), x, y, w),
    };
    let (a, b) = (g.input(&a, dtype), g.input(&b, dtype));
    g.outputs = vec![g.add_as(op, &[a, b], &dims, dtype).expect("the convolution takes these shapes")];
    g
}

fn scatter(dtype: DType, rows: usize, count: usize, width: usize) -> Graph {
    let mut g = Graph::new();
    let (x, i, v) = (g.input(&[rows, width], dtype), g.input(&[count, 1], DType::I64), g.input(&[count, width], dtype));
    let i = g.add_as(Op::Expand, &[i], &[count, width], DType::I64).expect("the index expands");
    g.outputs = vec![g.add(Op::Scatter { axis: 0, op: ScatterOp::Add }, &[x, i, v]).expect("the scatter takes these shapes")];
    g
}

fn sort(dtype: DType, n: usize) -> Graph {
    let mut g = Graph::new();
    let x = g.input(&[n], dtype);
    let y = g.add(Op::Sort { axis: 0, descending: false }, &[x]).expect("the sort takes this shape");
    let i = g.get(y, 1).expect("sorts have indices");
    g.outputs = vec![y, i];
    g
}

fn scan(dtype: DType, dims: &[usize], axis: usize) -> Graph {
    let mut g = Graph::new();
    let x = g.input(dims, dtype);
    g.outputs = vec![g.add(Op::Scan { op: ScanOp::Sum, axis }, &[x]).expect("the scan takes this shape")];
    g
}

/// The typical kernels by name. A name's second part is what a checker takes it for.
fn graphs() -> Vec<(String, Graph)> {
    let mut graphs: Vec<(String, Graph)> = Vec::new();
    for (d, s, b) in [(64, 4096, 4), (128, 1024, 16), (128, 4096, 4), (128, 16384, 1), (256, 4096, 2)] {
        for causal in [true, false] {
            if causal || s == 4096 {
                let name = format!("d{d}_s{s}_{}", if causal { "causal" } else { "full" });
                graphs.push((format!("{name}-attention"), attention(DType::BF16, [b, 16, 16, s, s, d], causal, false)));
                graphs.push((format!("{name}-attention_grad"), attention(DType::BF16, [b, 16, 16, s, s, d], causal, true)));
            }
        }
    }
    for (b, s) in [(1, 4096), (16, 8192)] {
        graphs.push((format!("decode_b{b}_s{s}-attention"), attention(DType::BF16, [b, 32, 8, 1, s, 128], false, false)));
    }
    graphs.push(("f32_d64_s512-attention".into(), attention(DType::F32, [4, 8, 8, 512, 512, 64], true, false)));
    graphs.push(("f32_d64_s512-attention_grad".into(), attention(DType::F32, [4, 8, 8, 512, 512, 64], true, true)));
    for (x, w, stride, padding) in [
        ([256, 64, 56, 56], [64, 64, 3, 3], 1, 1),
        ([256, 256, 14, 14], [256, 256, 3, 3], 1, 1),
        ([256, 256, 56, 56], [64, 256, 1, 1], 1, 0),
        ([256, 128, 56, 56], [128, 128, 3, 3], 2, 1),
    ] {
        for (which, name) in ["conv", "conv_input_grad", "conv_weight_grad"].into_iter().enumerate() {
            for dtype in [DType::BF16, DType::F32] {
                if dtype == DType::BF16 || x[2] == 14 {
                    graphs.push((format!("{dtype}_c{}_{}_k{}_s{stride}-{name}", x[1], x[2], w[2]), conv(dtype, x, w, stride, padding, which)));
                }
            }
        }
    }
    graphs.push(("embedding-scatter".into(), scatter(DType::BF16, 50257, 32768, 768)));
    graphs.push(("f32_4m-sort".into(), sort(DType::F32, 4 << 20)));
    graphs.push(("f32_16m-scan".into(), scan(DType::F32, &[16 << 20], 0)));
    graphs.push(("f32_columns-scan".into(), scan(DType::F32, &[4096, 4096], 0)));
    graphs
}

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("the folder to write to"));
    let sm = args.next().map_or(90, |v| v.parse().expect("a compute capability such as 90"));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    for (name, graph) in graphs() {
        let program =
            compile(&graph, &Limits { parallelism: 132, epilogues: true, conv_epilogues: &DType::ALL, short_conv_epilogues: 0, channels_last: &[] });
        // A line a buffer and a line a step, for scripts that launch them.
        let mut list = String::new();
        for (n, b) in program.bufs.iter().enumerate() {
            list += &format!("buffer {n} {} {} {:?}\n", b.dtype, b.len, b.place);
        }
        for kernel in program.kernels() {
            match render(kernel, &program, &Chip::of(sm)) {
                Ok(steps) => {
                    list += &format!("scratch {}\n", steps.scratch);
                    for (n, s) in steps.steps.iter().enumerate() {
                        let file = format!("{name}-{n}.cu");
                        list += &format!("step {file} {} {} {} {} {:?}\n", s.source.entry, s.grid[0], s.block[0], s.shared, s.params);
                        std::fs::write(folder.join(file), &s.source.code).expect("the file can be written");
                    }
                }
                Err(e) => list += &format!("none {e}\n"),
            }
        }
        println!("{name}\n{list}");
        std::fs::write(folder.join(format!("{name}.txt")), list).expect("the file can be written");
    }
}
