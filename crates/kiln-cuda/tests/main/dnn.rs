//! Which convolutions the library takes, and what runs around them.
use kiln_compiler::{Options, compile_with};
use kiln_cuda::lowered::{Lowered, Work};
use kiln_cuda::steps::Chip;
use kiln_ir::op::ConvAttrs;
use kiln_ir::{DType, Elementwise, Graph, Limits, Op, Program};
use smallvec::SmallVec;

/// A convolution of bf16 with an activation.
fn program(conv_epilogues: bool) -> Program {
    let mut g = Graph::new();
    let (x, w) = (g.input(&[2, 8, 6, 6], DType::BF16), g.input(&[16, 8, 3, 3], DType::BF16));
    let attrs = ConvAttrs {
        stride: SmallVec::from_slice(&[1, 1]),
        dilation: SmallVec::from_slice(&[1, 1]),
        padding: SmallVec::from_slice(&[(1, 1), (1, 1)]),
        groups: 1,
        channels_last: false,
    };
    let y = g.add(Op::Conv(attrs), &[x, w]).unwrap();
    let y = g.add(Op::Elementwise(Elementwise::Tanh), &[y]).unwrap();
    g.outputs = vec![y];
    let limits = Limits { parallelism: 264, epilogues: true, conv_epilogues, channels_last: &[DType::BF16] };
    compile_with(&g, &limits, &Options::default())
}

fn families(lowered: &Lowered) -> Vec<String> {
    let name = |w: &Work| match w {
        Work::Convolution(c) => format!("library, workspace {}", c.workspace.is_some()),
        Work::Launch { source, .. } => source.entry.clone(),
        _ => "other".into(),
    };
    lowered.works().map(name).filter(|n| n.starts_with("library") || n.starts_with("conv")).collect()
}

#[test]
fn the_library_takes_a_convolution_and_its_epilogue_follows() {
    for conv_epilogues in [false, true] {
        let program = program(conv_epilogues);
        let mut asked = 0;
        let mut probe = |shape: &kiln_cuda::convolution::Shape| {
            asked += 1;
            assert!(shape.attrs.channels_last && shape.dtype == DType::BF16);
            assert_eq!((&shape.x[..], &shape.y[..]), (&[2, 8, 6, 6][..], &[2, 16, 6, 6][..]));
            Some(1000)
        };
        let lowered = Lowered::new(&program, &Chip::of(90), false, Some(&mut probe)).unwrap();
        assert_eq!(families(&lowered), ["library, workspace true"]);
        assert_eq!(asked, 1);
    }
}

#[test]
fn what_the_library_cannot_do_runs_on_own_kernels() {
    let lowered = Lowered::new(&program(true), &Chip::of(90), false, Some(&mut |_| None)).unwrap();
    assert!(lowered.works().all(|w| matches!(w, Work::Launch { .. })), "{:?}", families(&lowered));
    assert!(families(&lowered).iter().any(|f| f.starts_with("conv")), "{:?}", families(&lowered));
}
