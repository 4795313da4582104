//! Snapshots of schedules: the fusion shapes that must not get lost. `UPDATE_EXPECT=1` rewrites them.
use expect_test::{Expect, expect};
use kiln_compiler::null::Null;
use kiln_compiler::{compile, print::print};
use kiln_ir::op::{OpInputs, word_from_f64};
use kiln_ir::{DType, Elementwise, Graph, NodeId, Op, ReduceOp};

/// A graph with shorthand for the ops of the tests.
#[derive(Default)]
pub struct Build(pub Graph);

impl Build {
    pub fn input(&mut self, dims: &[usize]) -> NodeId {
        self.0.input(dims, DType::F32)
    }

    pub fn ew(&mut self, e: Elementwise, inputs: &[NodeId]) -> NodeId {
        self.0.add(Op::Elementwise(e), inputs).unwrap()
    }

    pub fn constant(&mut self, v: f64) -> NodeId {
        self.0.constant(DType::F32, word_from_f64(DType::F32, v))
    }

    pub fn sum(&mut self, x: NodeId, axis: usize) -> NodeId {
        self.reduce(ReduceOp::Sum, x, axis)
    }

    pub fn reduce(&mut self, op: ReduceOp, x: NodeId, axis: usize) -> NodeId {
        self.0.add(Op::Reduce { op, axes: 1 << axis }, &[x]).unwrap()
    }

    pub fn expand(&mut self, x: NodeId, dims: &[usize]) -> NodeId {
        let dtype = self.0.node(x).dtype;
        self.0.add_as(Op::Expand, &[x], dims, dtype).unwrap()
    }

    pub fn reshape(&mut self, x: NodeId, dims: &[usize]) -> NodeId {
        let dtype = self.0.node(x).dtype;
        self.0.add_as(Op::Reshape, &[x], dims, dtype).unwrap()
    }

    pub fn permute(&mut self, x: NodeId, perm: &[u8]) -> NodeId {
        self.0.add(Op::Permute(perm.into()), &[x]).unwrap()
    }

    pub fn output(&mut self, x: NodeId) {
        self.0.outputs.push(x);
    }

    pub fn softmax(&mut self, x: NodeId) -> NodeId {
        let dims = self.0.node(x).dims.clone();
        let axis = dims.len() - 1;
        let max = self.reduce(ReduceOp::Max, x, axis);
        let max = self.expand(max, &dims);
        let shifted = self.ew(Elementwise::Sub, &[x, max]);
        let e = self.ew(Elementwise::Exp, &[shifted]);
        let sum = self.sum(e, axis);
        let sum = self.expand(sum, &dims);
        self.ew(Elementwise::Div, &[e, sum])
    }
}

fn check(b: Build, expected: Expect) {
    let program = compile(&b.0, &Null::cpu_limits());
    expected.assert_eq(&print(&program));
}

#[test]
fn elementwise_chain_is_one_kernel_over_one_merged_axis() {
    let mut b = Build::default();
    let x = b.input(&[64, 32]);
    let y = b.input(&[64, 32]);
    let c = b.constant(2.0);
    let s = b.ew(Elementwise::Mul, &[x, c]);
    let s = b.ew(Elementwise::Add, &[s, y]);
    let s = b.ew(Elementwise::Tanh, &[s]);
    b.output(s);
    check(
        b,
        expect![[r#"
        program: 1 kernels in 1 launches, 24.0 KiB moved, 6.1 k flop, arena 0 B
        [0] fused [2048] over []
            v0 = in0:f32[i0] : f32
            v1 = 2.0 : f32
            v2 = mul v0 v1 : f32
            v3 = in1:f32[i0] : f32
            v4 = add v3 v2 : f32
            v5 = tanh v4 : f32
            out0:f32[i0] <- v5
        out0: new, 8.0 KiB
    "#]],
    );
}

#[test]
fn softmax_is_one_row_kernel() {
    let mut b = Build::default();
    let x = b.input(&[8, 4, 100]);
    let y = b.softmax(x);
    b.output(y);
    check(
        b,
        expect![[r#"
        program: 1 kernels in 1 launches, 25.0 KiB moved, 16.0 k flop, arena 0 B
        [0] fused [32] over [100]
            v0 = in0:f32[100*i0+i1] : f32
            v1 = reduce max v0 : f32
            v2 = sub v0 v1 : f32
            v3 = exp v2 : f32
            v4 = reduce sum v3 : f32
            v5 = div v3 v4 : f32
            out0:f32[100*i0+i1] <- v5
        out0: new, 12.5 KiB
    "#]],
    );
}

#[test]
fn dot_takes_bias_and_activation_as_epilogue() {
    let mut b = Build::default();
    let x = b.input(&[16, 8]);
    let w = b.input(&[8, 32]);
    let bias = b.input(&[32]);
    let y = b.0.add(Op::Dot, &[x, w]).unwrap();
    let bias = b.expand(bias, &[16, 32]);
    let y = b.ew(Elementwise::Add, &[y, bias]);
    let zero = b.constant(0.0);
    let y = b.ew(Elementwise::Max, &[y, zero]);
    b.output(y);
    check(
        b,
        expect![[r#"
        program: 1 kernels in 1 launches, 3.6 KiB moved, 9.2 k flop, arena 0 B
        [0] dot [] 16x8x32 f32
            lhs in0:f32[8*i0+i1]
            rhs in1:f32[32*i0+i1]
            v0 = acc : f32
            v1 = in2:f32[i1] : f32
            v2 = add v0 v1 : f32
            v3 = 0.0 : f32
            v4 = max v2 v3 : f32
            out0:f32[32*i0+i1] <- v4
        out0: new, 2.0 KiB
    "#]],
    );
}

#[test]
fn heads_are_strided_views_of_one_projection() {
    let mut b = Build::default();
    let qkv = b.input(&[2, 5, 12]);
    let mut heads = Vec::new();
    for i in 0..2 {
        let start = b.0.constant(DType::I64, i * 6);
        let axes = [kiln_ir::op::SliceAxis { axis: 2, step: 1 }];
        let h = b.0.add_as(Op::Slice(axes[..].into()), &[qkv, start], &[2, 5, 6], DType::F32).unwrap();
        let h = b.reshape(h, &[2, 5, 2, 3]);
        heads.push(b.permute(h, &[0, 2, 1, 3]));
    }
    let kt = b.permute(heads[1], &[0, 1, 3, 2]);
    let y = b.0.add(Op::Dot, &[heads[0], kt]).unwrap();
    let y = b.softmax(y);
    b.output(y);
    check(
        b,
        expect![[r#"
        program: 2 kernels in 2 launches, 1.6 KiB moved, 1.1 k flop, arena 448 B
        [0] dot [2, 2] 5x3x5 f32
            lhs in0:f32[60*i0+3*i1+12*i2+i3]
            rhs in0:f32[60*i0+3*i1+i2+12*i3+6]
            v0 = acc : f32
            b1@0:f32[50*i0+25*i1+5*i2+i3] <- v0
        [1] fused [20] over [5]
            v0 = b1@0:f32[5*i0+i1] : f32
            v1 = reduce max v0 : f32
            v2 = sub v0 v1 : f32
            v3 = exp v2 : f32
            v4 = reduce sum v3 : f32
            v5 = div v3 v4 : f32
            out0:f32[5*i0+i1] <- v5
        out0: new, 400 B
    "#]],
    );
}

#[test]
fn optimizer_update_is_the_epilogue_of_the_weight_gradient_and_overwrites_donated_state() {
    let mut b = Build::default();
    let x = b.input(&[64, 8]);
    let dy = b.input(&[64, 4]);
    let w = b.input(&[8, 4]);
    let m = b.input(&[8, 4]);
    let xt = b.permute(x, &[1, 0]);
    let dw = b.0.add(Op::Dot, &[xt, dy]).unwrap();
    let beta = b.0.arg(DType::F32);
    let lr = b.0.arg(DType::F32);
    let m2 = b.ew(Elementwise::Mul, &[m, beta]);
    let m2 = b.ew(Elementwise::Add, &[m2, dw]);
    let step = b.ew(Elementwise::Mul, &[m2, lr]);
    let w2 = b.ew(Elementwise::Sub, &[w, step]);
    b.output(w2);
    b.output(m2);
    b.0.donated = vec![false, false, true, true];
    check(
        b,
        expect![[r#"
        program: 1 kernels in 1 launches, 3.5 KiB moved, 4.2 k flop, arena 0 B
        [0] dot [] 8x64x4 f32
            lhs in0:f32[i0+8*i1]
            rhs in1:f32[4*i0+i1]
            v0 = acc : f32
            v1 = in3:f32[4*i0+i1] : f32
            v2 = arg0 : f32
            v3 = mul v1 v2 : f32
            v4 = add v0 v3 : f32
            v5 = arg1 : f32
            v6 = mul v5 v4 : f32
            v7 = in2:f32[4*i0+i1] : f32
            v8 = sub v7 v6 : f32
            out1:f32[4*i0+i1] <- v4
            out0:f32[4*i0+i1] <- v8
        out0: over in2
        out1: over in3
    "#]],
    );
}

#[test]
fn final_small_updates_share_one_launch() {
    let mut b = Build::default();
    let lr = b.0.arg(DType::F32);
    for n in [3usize, 5, 7] {
        let w = b.input(&[n]);
        let g = b.input(&[n]);
        let s = b.ew(Elementwise::Mul, &[g, lr]);
        let w2 = b.ew(Elementwise::Sub, &[w, s]);
        b.output(w2);
    }
    check(
        b,
        expect![[r#"
        program: 3 kernels in 1 launches, 180 B moved, 30 flop, arena 0 B
        launch 0: 3 kernels
        [0] fused [3] over []
            v0 = arg0 : f32
            v1 = in1:f32[i0] : f32
            v2 = mul v0 v1 : f32
            v3 = in0:f32[i0] : f32
            v4 = sub v3 v2 : f32
            out0:f32[i0] <- v4
        [0] fused [5] over []
            v0 = arg0 : f32
            v1 = in3:f32[i0] : f32
            v2 = mul v0 v1 : f32
            v3 = in2:f32[i0] : f32
            v4 = sub v3 v2 : f32
            out1:f32[i0] <- v4
        [0] fused [7] over []
            v0 = arg0 : f32
            v1 = in5:f32[i0] : f32
            v2 = mul v0 v1 : f32
            v3 = in4:f32[i0] : f32
            v4 = sub v3 v2 : f32
            out2:f32[i0] <- v4
        out0: new, 12 B
        out1: new, 20 B
        out2: new, 28 B
    "#]],
    );
}

#[test]
fn padding_is_a_bounded_load_and_other_fills_select() {
    let mut b = Build::default();
    let x = b.input(&[3, 4]);
    let zero = b.constant(0.0);
    let one = b.constant(1.0);
    let p = b.0.add(Op::Pad([(0, 0), (1, 2)][..].into()), &[x, zero]).unwrap();
    let q = b.0.add(Op::Pad([(0, 0), (2, 1)][..].into()), &[x, one]).unwrap();
    let y = b.ew(Elementwise::Add, &[p, q]);
    b.output(y);
    check(
        b,
        expect![[r#"
            program: 1 kernels in 1 launches, 132 B moved, 42 flop, arena 0 B
            [0] fused [3, 7] over []
                v0 = in0:f32[4*i0+i1-1] if 0 <= i1-1 < 4 : f32
                v1 = in0:f32[4*i0+i1-2] if 0 <= i1-2 < 4 : f32
                v2 = 1.0 : f32
                v3 = inside if 0 <= i1-2 < 4 : bool
                v4 = where v3 v1 v2 : f32
                v5 = add v0 v4 : f32
                out0:f32[7*i0+i1] <- v5
            out0: new, 84 B
        "#]],
    );
}

#[test]
fn concatenation_writes_parts_into_one_buffer_in_one_launch() {
    let mut b = Build::default();
    let x = b.input(&[2, 3]);
    let y = b.input(&[2, 4]);
    let x = b.ew(Elementwise::Neg, &[x]);
    let c = b.0.add(Op::Concat { axis: 1 }, &[x, y]).unwrap();
    b.output(c);
    check(
        b,
        expect![[r#"
        program: 2 kernels in 1 launches, 168 B moved, 6 flop, arena 0 B
        launch 0: 2 kernels
        [0] fused [2, 3] over []
            v0 = in0:f32[3*i0+i1] : f32
            v1 = neg v0 : f32
            out0:f32[7*i0+i1] <- v1
        [0] fused [2, 4] over []
            v0 = in1:f32[4*i0+i1] : f32
            out0:f32[7*i0+i1+3] <- v0
        out0: new, 56 B
    "#]],
    );
}

#[test]
fn reshape_of_an_input_is_the_input() {
    let mut b = Build::default();
    let x = b.input(&[2, 3]);
    let y = b.reshape(x, &[6]);
    b.output(y);
    b.output(x);
    check(
        b,
        expect![[r#"
        program: 0 kernels in 0 launches, 0 B moved, 0 flop, arena 0 B
        out0: is in0
        out1: is in0
    "#]],
    );
}

#[test]
fn update_of_a_donated_tensor_writes_the_region_only() {
    let mut b = Build::default();
    let x = b.input(&[8, 3]);
    let v = b.input(&[2, 3]);
    let start = b.0.arg(DType::I64);
    let axes = [kiln_ir::op::SliceAxis { axis: 0, step: 1 }];
    let y = b.0.push(Op::Update(axes[..].into()), OpInputs::from_slice(&[x, v, start]), [8, 3][..].into(), DType::F32);
    b.output(y);
    b.0.donated = vec![true, false];
    check(
        b,
        expect![[r#"
        program: 1 kernels in 1 launches, 120 B moved, 0 flop, arena 0 B
        [0] fused [6] over []
            v0 = in1:f32[i0] : f32
            out0:f32[i0+3*arg0] <- v0
        out0: over in0
    "#]],
    );
}

#[test]
fn a_long_sum_is_taken_in_two_stages_with_its_operand_fused() {
    let mut b = Build::default();
    let x = b.input(&[1 << 10, 1 << 10]);
    let y = b.ew(Elementwise::Mul, &[x, x]);
    let s = b.0.add(Op::Reduce { op: ReduceOp::Sum, axes: 3 }, &[y]).unwrap();
    b.output(s);
    check(
        b,
        expect![[r#"
            program: 2 kernels in 2 launches, 4.0 MiB moved, 2.1 M flop, arena 1.0 KiB
            [0] fused [256] over [4096]
                v0 = in0:f32[4096*i0+i1] : f32
                v1 = mul v0 v0 : f32
                v2 = reduce sum v1 : f32
                b1@0:f32[i0] <- v2
            [1] fused [] over [256]
                v0 = b1@0:f32[i0] : f32
                v1 = reduce sum v0 : f32
                out0:f32[0] <- v1
            out0: new, 4 B
        "#]],
    );
}

#[test]
fn updates_of_a_reduced_gradient_stay_in_the_reducing_kernel() {
    let mut b = Build::default();
    let dy = b.input(&[64, 128]);
    let (w, m) = (b.input(&[128]), b.input(&[128]));
    let lr = b.0.arg(DType::F32);
    let m1 = b.ew(Elementwise::Mul, &[m, lr]);
    let dw = b.sum(dy, 0);
    let dw = b.reshape(dw, &[128]);
    let m1 = b.ew(Elementwise::Add, &[m1, dw]);
    let w1 = b.ew(Elementwise::Sub, &[w, m1]);
    b.output(w1);
    b.output(m1);
    b.0.donated = vec![false, true, true];
    check(
        b,
        expect![[r#"
        program: 1 kernels in 1 launches, 34.0 KiB moved, 32.8 k flop, arena 0 B
        [0] fused [128] over [64]
            v0 = in2:f32[i0] : f32
            v1 = arg0 : f32
            v2 = mul v0 v1 : f32
            v3 = in0:f32[i0+128*i1] : f32
            v4 = reduce sum v3 : f32
            v5 = add v2 v4 : f32
            v6 = in1:f32[i0] : f32
            v7 = sub v6 v5 : f32
            out1:f32[i0] <- v5
            out0:f32[i0] <- v7
        out0: over in1
        out1: over in2
    "#]],
    );
}

#[test]
fn a_cheap_operand_is_computed_while_it_is_packed() {
    let mut b = Build::default();
    let x = b.input(&[16, 8]);
    let w = b.input(&[8, 32]);
    let two = b.constant(2.0);
    let x = b.ew(Elementwise::Mul, &[x, two]);
    let y = b.0.add(Op::Dot, &[x, w]).unwrap();
    b.output(y);
    check(
        b,
        expect![[r#"
        program: 1 kernels in 1 launches, 3.5 KiB moved, 8.2 k flop, arena 0 B
        [0] dot [] 16x8x32 f32
            lhs computed:
            v0 = in0:f32[8*i0+i1] : f32
            v1 = 2.0 : f32
            v2 = mul v0 v1 : f32
            rhs in1:f32[32*i0+i1]
            v0 = acc : f32
            out0:f32[32*i0+i1] <- v0
        out0: new, 2.0 KiB
    "#]],
    );
}

#[test]
fn the_gradient_of_slices_of_one_tensor_is_written_as_a_concatenation() {
    let mut b = Build::default();
    let zero = b.constant(0.0);
    let mut parts = Vec::new();
    for k in 0..3u64 {
        let g = b.input(&[2, 4]);
        let base = b.expand(zero, &[2, 12]);
        let start = b.0.constant(DType::I64, k * 4);
        let axes = [kiln_ir::op::SliceAxis { axis: 1, step: 1 }];
        parts.push(b.0.add(Op::Update(axes[..].into()), &[base, g, start]).unwrap());
    }
    let s = b.ew(Elementwise::Add, &[parts[0], parts[1]]);
    let s = b.ew(Elementwise::Add, &[s, parts[2]]);
    b.output(s);
    check(
        b,
        expect![[r#"
            program: 3 kernels in 1 launches, 384 B moved, 0 flop, arena 0 B
            launch 0: 3 kernels
            [0] fused [2, 4] over []
                v0 = in0:f32[4*i0+i1] : f32
                out0:f32[12*i0+i1] <- v0
            [0] fused [2, 4] over []
                v0 = in1:f32[4*i0+i1] : f32
                out0:f32[12*i0+i1+4] <- v0
            [0] fused [2, 4] over []
                v0 = in2:f32[4*i0+i1] : f32
                out0:f32[12*i0+i1+8] <- v0
            out0: new, 96 B
        "#]],
    );
}
