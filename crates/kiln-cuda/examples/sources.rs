//! Writes the CUDA C++ of typical kernels to a folder, to read them or to look at what a compiler makes of them.
//!
//! `cargo run -p kiln-cuda --example sources -- FOLDER [SM]`
use std::path::PathBuf;

use kiln_compiler::compile;
use kiln_cuda::render::render;
use kiln_cuda::steps::Chip;
use kiln_ir::op::{AttentionAttrs, ConvAttrs};
use kiln_ir::{DType, Graph, Limits, Op, ScatterOp};

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

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("the folder to write to"));
    let sm = args.next().map_or(90, |v| v.parse().expect("a compute capability such as 90"));
    let mut graphs: Vec<(String, Graph)> = Vec::new();
    for d in [64, 128, 256] {
        for causal in [false, true] {
            graphs.push((format!("forward{d}{}", if causal { "c" } else { "" }), attention(DType::BF16, [4, 16, 16, 4096, 4096, d], causal, false)));
            graphs.push((format!("backward{d}{}", if causal { "c" } else { "" }), attention(DType::BF16, [4, 16, 16, 4096, 4096, d], causal, true)));
        }
    }
    graphs.push(("decode".into(), attention(DType::BF16, [1, 32, 8, 1, 4096, 128], false, false)));
    graphs.push(("forward_f32".into(), attention(DType::F32, [4, 8, 8, 512, 512, 64], true, false)));
    graphs.push(("backward_f32".into(), attention(DType::F32, [4, 8, 8, 512, 512, 64], true, true)));
    for (which, name) in ["conv", "conv_input_grad", "conv_weight_grad"].into_iter().enumerate() {
        for dtype in [DType::BF16, DType::F32] {
            graphs.push((format!("{name}_{dtype}"), conv(dtype, [64, 256, 28, 28], [256, 256, 3, 3], 1, 1, which)));
        }
    }
    graphs.push(("embedding_grad".into(), scatter(DType::BF16, 50257, 32768, 768)));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    for (name, graph) in graphs {
        let program = compile(&graph, &Limits { parallelism: 132, epilogues: true });
        for kernel in program.kernels() {
            match render(kernel, &program, &Chip::of(sm)) {
                Ok(steps) => {
                    for (n, s) in steps.steps.iter().enumerate() {
                        let path = folder.join(format!("{name}-{n}-{}.cu", s.source.entry));
                        println!("{}: {:?} x {:?}, {} bytes shared", path.display(), s.grid, s.block, s.shared);
                        std::fs::write(path, &s.source.code).expect("the file can be written");
                    }
                }
                Err(e) => println!("{name}: {e}"),
            }
        }
    }
}
