//! Channels last: what lies between convolutions is computed in their order, and nothing is turned but what comes in and goes out.
use kiln_compiler::null::Null;
use kiln_compiler::{compile, print::print};
use kiln_ir::op::{ConvAttrs, PoolAttrs, word_from_f64};
use kiln_ir::{DType, Elementwise, Graph, Kernel, Limits, NodeId, Op, ReduceOp};
use smallvec::smallvec;

fn conv(g: &mut Graph, x: NodeId, outputs: usize, stride: usize) -> NodeId {
    let w = g.input(&[outputs, g.node(x).dims[1], 3, 3], DType::BF16);
    let attrs = ConvAttrs {
        stride: smallvec![stride, stride],
        dilation: smallvec![1, 1],
        padding: smallvec![(1, 1), (1, 1)],
        groups: 1,
        channels_last: false,
    };
    g.add(Op::Conv(attrs), &[x, w]).unwrap()
}

/// Two convolutions with a normalisation by channel, a pool, a padding and a concatenation between them.
fn chain() -> Graph {
    let mut g = Graph::new();
    let x = g.input(&[2, 8, 12, 12], DType::BF16);
    let y = conv(&mut g, x, 16, 1);
    let dims = g.node(y).dims.clone();
    let wide = g.add_as(Op::Cast, &[y], &dims, DType::F32).unwrap();
    let sum = g.add(Op::Reduce { op: ReduceOp::Sum, axes: 0b1101 }, &[wide]).unwrap();
    let sum = g.add_as(Op::Expand, &[sum], &dims, DType::F32).unwrap();
    let y = g.add(Op::Elementwise(Elementwise::Sub), &[wide, sum]).unwrap();
    let y = g.add_as(Op::Cast, &[y], &dims, DType::BF16).unwrap();
    let pool = PoolAttrs {
        kernel: smallvec![2, 2],
        stride: smallvec![2, 2],
        dilation: smallvec![1, 1],
        padding: smallvec![(0, 0), (0, 0)],
        count_include_pad: true,
        ceil_mode: false,
        channels_last: false,
    };
    let y = g.add(Op::MaxPool(pool), &[y]).unwrap();
    let zero = g.constant(DType::BF16, word_from_f64(DType::BF16, 0.0));
    let y = g.add(Op::Pad(smallvec![(0, 0), (0, 0), (1, 0), (0, 1)]), &[y, zero]).unwrap();
    let y = g.add(Op::Concat { axis: 1 }, &[y, y]).unwrap();
    let y = conv(&mut g, y, 8, 2);
    g.outputs = vec![y];
    g
}

#[test]
fn values_between_convolutions_keep_their_channels_last() {
    let limits = Limits { channels_last: &[DType::BF16], ..Null::cpu_limits() };
    let program = compile(&chain(), &limits);
    for k in program.kernels() {
        match k {
            Kernel::Conv(c) => assert!(c.attrs.channels_last, "{}", print(&program)),
            Kernel::Pool(p) => assert!(p.attrs.channels_last, "{}", print(&program)),
            _ => {}
        }
    }
    // x and both weights are turned once, the result at the end; the norm is one kernel, the concatenation one for each part.
    let families: Vec<&str> = program.kernels().map(Kernel::family).collect();
    let count = |family: &str| families.iter().filter(|f| **f == family).count();
    assert_eq!((count("conv"), count("pool"), count("fused")), (2, 1, 3 + 1 + 2 + 1), "{}", print(&program));
}

#[test]
fn a_convolution_of_few_channels_with_strides_runs_over_blocks() {
    let mut g = Graph::new();
    let x = g.input(&[2, 3, 16, 16], DType::BF16);
    let y = conv(&mut g, x, 8, 2);
    g.outputs = vec![y];
    let program = compile(&g, &Limits { channels_last: &[DType::BF16], ..Null::cpu_limits() });
    let Some(Kernel::Conv(c)) = program.kernels().find(|k| matches!(k, Kernel::Conv(_))) else { panic!("{}", print(&program)) };
    // Blocks of 2 by 2 places and 4 channels; a kernel of 3 by 3 spans 2 by 2 of them.
    assert_eq!((&c.x[..], &c.w[..], &c.attrs.stride[..]), (&[2, 16, 9, 9][..], &[8, 16, 2, 2][..], &[1, 1][..]), "{}", print(&program));
}

#[test]
fn other_dtypes_keep_their_order() {
    let limits = Limits { channels_last: &[DType::F16], ..Null::cpu_limits() };
    assert_eq!(print(&compile(&chain(), &limits)), print(&compile(&chain(), &Null::cpu_limits())));
}

#[test]
fn epilogues_stay_out_of_convolutions_where_the_device_says_so() {
    let mut g = Graph::new();
    let x = g.input(&[1, 4, 8, 8], DType::BF16);
    let y = conv(&mut g, x, 4, 1);
    let y = g.add(Op::Elementwise(Elementwise::Tanh), &[y]).unwrap();
    g.outputs = vec![y];
    let kernels = |conv_epilogues, short_conv_epilogues| {
        let limits = Limits { conv_epilogues, short_conv_epilogues, ..Null::cpu_limits() };
        compile(&g, &limits).kernels().count()
    };
    // Its sums are 4 channels times 9 elements long.
    assert_eq!([kernels(&[DType::BF16], 0), kernels(&[DType::F32], 0), kernels(&[], 36), kernels(&[], 35)], [1, 2, 1, 2]);
}
