//! What kernels become: entries, grids and the constants of their text.
use kiln_cuda::render::render;
use kiln_cuda::steps::Chip;
use kiln_ir::op::{AttentionAttrs, ConvAttrs, PoolAttrs};
use kiln_ir::{DType, Graph, Op, ScanOp, ScatterOp};
use smallvec::smallvec;

use crate::oracle::program;

/// One line a step: entry, grid, block, shared memory, parameters; then the lines of its text that name the listed constants.
pub fn describe(graph: &Graph, chip: &Chip, constants: &[&str]) -> String {
    let program = program(graph, true);
    let mut s = String::new();
    for kernel in program.kernels() {
        let steps = render(kernel, &program, chip).unwrap();
        for step in &steps.steps {
            let params: Vec<String> = step.params.iter().map(|p| format!("{p:?}")).collect();
            s += &format!("{} {:?} x {} +{} ({})\n", step.source.entry, step.grid, step.block[0], step.shared, params.join(", "));
        }
        if let Some(first) = steps.steps.first() {
            for line in first.source.code.lines().filter(|l| constants.iter().any(|c| l.split_whitespace().nth(1) == Some(c))) {
                s += &format!("    {line}\n");
            }
        }
        s += &format!("  scratch {}\n", steps.scratch);
    }
    s
}

#[track_caller]
fn snapshot(got: &str, expected: &str) {
    assert_eq!(got.trim(), expected.trim(), "\n{got}");
}

#[test]
fn rows_of_an_embedding_are_copied_in_wide_accesses() {
    let mut g = Graph::new();
    let x = g.input(&[1000, 96], DType::BF16);
    let i = g.input(&[500, 1], DType::I32);
    let i = g.add_as(Op::Expand, &[i], &[500, 96], DType::I32).unwrap();
    let y = g.add(Op::Gather { axis: 0 }, &[x, i]).unwrap();
    g.outputs = vec![y];
    snapshot(
        &describe(&g, &Chip::of(90), &["POINTS", "CHUNKS", "X_STEP", "WALK"]),
        "gather [24, 1, 1] x 256 +0 (Buf(BufId(0)), Buf(BufId(1)), Buf(BufId(2)), Args, Fault)
    #define POINTS (500)
    #define CHUNKS (12)
    #define X_STEP (12)
    #define WALK { const ix i = (ix)rest; which += i; }
  scratch 0",
    );
}

#[test]
fn long_scans_take_three_steps() {
    let mut g = Graph::new();
    let x = g.input(&[100_000], DType::F32);
    let y = g.add(Op::Scan { op: ScanOp::Sum, axis: 0 }, &[x]).unwrap();
    g.outputs = vec![y];
    snapshot(
        &describe(&g, &Chip::of(90), &["CHUNK", "CHUNKS"]),
        "row_totals [20, 1, 1] x 256 +32 (Buf(BufId(0)), Scratch(0))
lead [1, 1, 1] x 128 +0 (Scratch(0))
row_scan [20, 1, 1] x 256 +32 (Buf(BufId(0)), Buf(BufId(1)), Scratch(0))
    #define CHUNK (5120)
    #define CHUNKS (20)
  scratch 80",
    );
}

#[test]
fn float_sums_are_scattered_by_lines_and_integers_atomically() {
    for (dtype, expected) in [
        (
            DType::F32,
            "start [250, 1, 1] x 256 +0 (Buf(BufId(0)), Buf(BufId(3)))\nlines [4, 1, 1] x 256 +0 (Buf(BufId(1)), Buf(BufId(2)), Buf(BufId(3)), Args, Fault)\n  scratch 0",
        ),
        (
            DType::I32,
            "start [250, 1, 1] x 256 +0 (Buf(BufId(0)), Buf(BufId(3)))\natomics [47, 1, 1] x 256 +0 (Buf(BufId(1)), Buf(BufId(2)), Buf(BufId(3)), Args, Fault)\n  scratch 0",
        ),
    ] {
        let mut g = Graph::new();
        let (x, i, v) = (g.input(&[64, 1000], dtype), g.input(&[12, 1000], DType::I64), g.input(&[12, 1000], dtype));
        let y = g.add(Op::Scatter { axis: 0, op: ScatterOp::Add }, &[x, i, v]).unwrap();
        g.outputs = vec![y];
        snapshot(&describe(&g, &Chip::of(80), &[]), expected);
    }
}

#[test]
fn sorts_merge_after_tiles() {
    let mut g = Graph::new();
    let x = g.input(&[3, 5000], DType::F32);
    let y = g.add(Op::Sort { axis: 1, descending: false }, &[x]).unwrap();
    g.outputs = vec![y];
    snapshot(
        &describe(&g, &Chip::of(90), &[]),
        "tiles [9, 1, 1] x 256 +16384 (Buf(BufId(0)), Buf(BufId(1)), Buf(BufId(0)), Scratch(0))
merge [8, 1, 1] x 256 +0 (Scratch(0), Scratch(120064), Buf(BufId(0)), Buf(BufId(1)), Buf(BufId(0)), U64(2048))
merge [8, 1, 1] x 256 +0 (Scratch(120064), Scratch(0), Buf(BufId(0)), Buf(BufId(1)), Buf(BufId(0)), U64(4096))
  scratch 240128",
    );
}

#[test]
fn pools_know_their_axes() {
    let attrs = PoolAttrs {
        kernel: smallvec![3, 2],
        stride: smallvec![2, 2],
        dilation: smallvec![1, 1],
        padding: smallvec![(1, 1), (0, 1)],
        count_include_pad: false,
        ceil_mode: false,
        channels_last: false,
    };
    let mut g = Graph::new();
    let x = g.input(&[2, 3, 9, 9], DType::F32);
    let y = g.add(Op::AvgPool(attrs), &[x]).unwrap();
    g.outputs = vec![y];
    snapshot(
        &describe(&g, &Chip::of(90), &["AXIS_D", "AXIS_H", "AXIS_W", "COUNT_PADDING"]),
        "avg_pool [1, 1, 1] x 256 +0 (Buf(BufId(0)), Buf(BufId(1)))
    #define COUNT_PADDING (0)
    #define AXIS_D {1, 1, 1, 1, 1, 0, 0}
    #define AXIS_H {9, 5, 3, 2, 1, 1, 1}
    #define AXIS_W {9, 5, 2, 2, 1, 0, 1}
  scratch 0",
    );
}

fn attention(dtype: DType, [b, h, g, t, s, d]: [usize; 6]) -> Graph {
    let attrs = AttentionAttrs { scale: 0.125f64.to_bits(), softcap: 0, causal: t > 1, has_mask: false, has_bias: false };
    let mut graph = Graph::new();
    let (q, k, v) = (graph.input(&[b, h, t, d], dtype), graph.input(&[b, g, s, d], dtype), graph.input(&[b, g, s, d], dtype));
    graph.outputs = vec![graph.add(Op::Attention(attrs), &[q, k, v]).unwrap()];
    graph
}

#[test]
fn attention_goes_to_the_units_that_fit() {
    let half = attention(DType::BF16, [2, 4, 2, 256, 256, 64]);
    let operands = "Buf(BufId(0)), Buf(BufId(1)), Buf(BufId(2)), Buf(BufId(0)), Buf(BufId(0))";
    let rest = "Buf(BufId(3)), Buf(BufId(3)), Args)\n  scratch 0";
    snapshot(&describe(&half, &Chip::of(80), &[]), &format!("attention_mma [16, 1, 1] x 256 +55296 ({operands}, {rest}"));
    snapshot(&describe(&half, &Chip::of(90), &[]), &format!("attention_wgmma [16, 1, 1] x 384 +83968 ({operands}, {rest}"));
    snapshot(&describe(&half, &Chip::of(100), &[]), &format!("attention_mma [16, 1, 1] x 256 +55296 ({operands}, {rest}"));
    let full = attention(DType::F32, [2, 4, 2, 256, 256, 64]);
    snapshot(&describe(&full, &Chip::of(90), &[]), &format!("attention_plain [32, 1, 1] x 256 +26112 ({operands}, {rest}"));
    let one = attention(DType::BF16, [1, 8, 2, 1, 4096, 128]);
    snapshot(
        &describe(&one, &Chip::of(90), &["ROWS", "SPLITS", "RUN"]),
        &format!(
            "attention_decode [64, 1, 1] x 128 +10368 ({operands}, Scratch(0), Buf(BufId(3)), Buf(BufId(3)), Args)
attention_parts [8, 1, 1] x 128 +0 (Scratch(0), Buf(BufId(3)), Buf(BufId(3)), Args)
    #define RUN (32)
    #define ROWS (4)
    #define SPLITS (32)
  scratch 133120"
        ),
    );
}

#[test]
fn convolutions_of_half_floats_are_put_channels_last() {
    let attrs = ConvAttrs { stride: smallvec![1, 1], dilation: smallvec![1, 1], padding: smallvec![(1, 1), (1, 1)], groups: 1, channels_last: false };
    for (dtype, expected) in [
        (
            DType::BF16,
            "conv_last [2, 1, 1] x 256 +8448 (Buf(BufId(0)), Scratch(0))
conv_weights [18, 1, 1] x 256 +0 (Buf(BufId(1)), Scratch(4096))
conv_stream [1, 1, 1] x 256 +102400 (Scratch(0), Scratch(4096), Buf(BufId(2)))
  scratch 13312",
        ),
        (DType::F32, "conv_tf32 [1, 1, 1] x 256 +46080 (Buf(BufId(0)), Buf(BufId(1)), Buf(BufId(2)))\n  scratch 0"),
    ] {
        let mut g = Graph::new();
        let (x, w) = (g.input(&[2, 16, 8, 8], dtype), g.input(&[32, 16, 3, 3], dtype));
        g.outputs = vec![g.add(Op::Conv(attrs.clone()), &[x, w]).unwrap()];
        snapshot(&describe(&g, &Chip::of(80), &[]), expected);
    }
}
