//! Gradients against central differences, for every differentiable op.
use kiln_ir::table::{Accepts, Gives};
use kiln_ir::{DType, Elementwise, ScatterOp};
use kiln_tensor::raw::{AttentionOptions, ConvOptions, ConvTransposeOptions, PoolOptions, RawTensor, SliceRange};
use kiln_tensor::{Device, Scalar};

use crate::{cpu, devices};

/// Evenly spread, unordered numbers in a range: the same on every call.
fn numbers(n: usize, (low, high): (f64, f64), salt: usize) -> Vec<f64> {
    // Multiples of the golden ratio modulo 1 (Weyl) are spread evenly and never close to each other.
    (0..n).map(|i| low + (high - low) * ((i * 7 + salt * 31 + 1) as f64 * 0.618_033_988_749_895).fract()).collect()
}

/// An operand: sizes and range of its elements.
struct Operand<'a>(&'a [usize], (f64, f64));

fn tensor(device: &Device, dims: &[usize], values: &[f64]) -> RawTensor {
    RawTensor::from_slice(device, dims, DType::F64, values)
}

/// A weighted sum of the elements, so that each has a slope of its own.
fn loss(y: &RawTensor) -> RawTensor {
    let w = tensor(&y.device().without_autodiff(), y.dims(), &numbers(y.numel(), (0.5, 1.5), 9));
    y.mul(&w).sum_all()
}

/// Compares gradients of `f` with central differences, on every device.
#[track_caller]
fn check(name: &str, operands: &[Operand<'_>], f: impl Fn(&[RawTensor]) -> RawTensor) {
    let values: Vec<Vec<f64>> = operands.iter().enumerate().map(|(k, o)| numbers(o.0.iter().product(), o.1, k)).collect();
    let plain = cpu();
    let at = |values: &[Vec<f64>]| -> f64 {
        let xs: Vec<RawTensor> = operands.iter().zip(values).map(|(o, v)| tensor(&plain, o.0, v)).collect();
        let l = loss(&f(&xs));
        drop(xs);
        l.to_f64s().unwrap()[0]
    };
    let h = 1e-5;
    let mut expected = Vec::new();
    for k in 0..values.len() {
        for i in 0..values[k].len() {
            let mut moved = values.clone();
            moved[k][i] += h;
            let up = at(&moved);
            moved[k][i] -= 2.0 * h;
            expected.push((up - at(&moved)) / (2.0 * h));
        }
    }
    for device in devices() {
        let tracking = device.autodiff();
        let xs: Vec<RawTensor> = operands.iter().zip(&values).map(|(o, v)| tensor(&tracking, o.0, v).require_grad()).collect();
        let grads = loss(&f(&xs)).backward();
        let mut got = Vec::new();
        for (x, o) in xs.iter().zip(operands) {
            let g = grads.get(x).unwrap_or_else(|| panic!("{name}: no gradient for {o:?}", o = o.0));
            assert_eq!((g.dims(), g.dtype()), (o.0, DType::F64), "{name}");
            got.extend(g.to_f64s().unwrap());
        }
        for (i, (g, e)) in got.iter().zip(&expected).enumerate() {
            let tolerance = 1e-6 * e.abs().max(1.0) * 10.0;
            assert!((g - e).abs() <= tolerance, "{name} on {tracking:?}: element {i}: {g}, difference quotient {e}");
        }
    }
}

/// The rows of the table that give floats.
fn float_rows() -> impl Iterator<Item = Elementwise> {
    let gives_float = |e: &Elementwise| e.row().gives == Gives::Same && !matches!(e.row().accepts, Accepts::Int | Accepts::IntBool);
    Elementwise::ALL.iter().copied().filter(gives_float).filter(|e| e.arity() < 3)
}

/// Rows that jump or are flat: the difference quotient holds between the steps.
fn is_step(e: Elementwise) -> bool {
    matches!(e, Elementwise::Floor | Elementwise::Ceil | Elementwise::Round | Elementwise::Trunc | Elementwise::Sign)
}

#[test]
fn rows_of_the_table() {
    for e in float_rows() {
        let domain = e.row().domain;
        if e.arity() == 1 {
            let domain = if is_step(e) { (0.55, 0.95) } else { domain };
            check(e.name(), &[Operand(&[2, 3], domain)], |x| x[0].unary(e));
        } else {
            check(e.name(), &[Operand(&[2, 3], domain), Operand(&[2, 3], domain)], |x| x[0].binary(e, &x[1]));
        }
    }
}

#[test]
fn rows_of_the_table_on_views() {
    for e in float_rows().filter(|e| !is_step(*e)) {
        let domain = e.row().domain;
        let view = |x: &RawTensor| {
            let slice = x.slice(&[SliceRange { axis: 0, start: 3, len: 2, step: -2 }, SliceRange::new(1, 1, 2)]);
            slice.transpose().unsqueeze(0).expand(&[2, 2, 2])
        };
        if e.arity() == 1 {
            check(e.name(), &[Operand(&[4, 3], domain)], |x| view(&x[0]).unary(e));
        } else {
            check(e.name(), &[Operand(&[4, 3], domain), Operand(&[2], domain)], |x| view(&x[0]).binary(e, &x[1]));
        }
    }
}

#[test]
fn rows_of_the_table_with_scalars() {
    for e in float_rows().filter(|e| e.arity() == 2) {
        let domain = e.row().domain;
        let s = Scalar::Float(domain.0 * 0.3 + domain.1 * 0.7);
        check(e.name(), &[Operand(&[5], domain)], |x| x[0].with_scalar(e, s));
        check(e.name(), &[Operand(&[5], domain)], |x| x[0].scalar_with(e, s));
    }
}

#[test]
fn selections() {
    let mask = |x: &RawTensor| RawTensor::iota(&x.device(), x.dims(), DType::I64, 1).gt_scalar(Scalar::Int(0));
    let two = [Operand(&[2, 3], (-1.0, 1.0)), Operand(&[2, 3], (-1.0, 1.0))];
    check("mask_where", &two, |x| x[0].mask_where(&mask(&x[0]), &x[1]));
    check("mask_where, broadcast value", &[Operand(&[2, 3], (-1.0, 1.0)), Operand(&[1, 1], (-1.0, 1.0))], |x| x[0].mask_where(&mask(&x[0]), &x[1]));
    check("mask_fill", &two[..1], |x| x[0].mask_fill(&mask(&x[0]), Scalar::Float(7.0)).mul(&x[0]));
    check("clamp", &[Operand(&[9], (-2.0, 2.0))], |x| x[0].clamp(Some(Scalar::Float(-1.0)), Some(Scalar::Float(0.7))).mul(&x[0]));
}

#[test]
fn broadcasting() {
    for (a, b) in [(&[2usize, 1][..], &[1usize, 3][..]), (&[3], &[2, 3]), (&[2, 1, 2], &[3, 1]), (&[1], &[4]), (&[1, 1], &[2, 2])] {
        check("add", &[Operand(a, (-1.0, 1.0)), Operand(b, (-1.0, 1.0))], |x| x[0].add(&x[1]));
        check("div", &[Operand(a, (0.5, 1.0)), Operand(b, (0.5, 1.0))], |x| x[0].div(&x[1]));
    }
}

#[test]
fn views() {
    let x = [Operand(&[2, 3, 4], (-1.0, 1.0))];
    check("reshape", &x, |x| x[0].reshape(&[4, 6]).square());
    check("permute", &x, |x| x[0].permute(&[2, 0, 1]).square());
    check("expand", &[Operand(&[2, 1, 4], (-1.0, 1.0))], |x| x[0].expand(&[3, 2, 3, 4]).square());
    check("slice", &x, |x| x[0].slice(&[SliceRange::new(1, 1, 2), SliceRange { axis: 2, start: 3, len: 2, step: -3 }]).square());
    check("flip", &x, |x| x[0].flip(&[0, 2]).square());
    check("unfold", &[Operand(&[2, 7], (-1.0, 1.0))], |x| x[0].unfold(1, 3, 2).square());
    check("roll", &x, |x| x[0].roll(2, -1).square());
    check("repeat", &x, |x| x[0].repeat(1, 3).square());
    check("pad_constant", &x, |x| x[0].pad_constant(&[(1, 0), (0, 2), (0, 0)], Scalar::Float(3.0)).square());
    check("pad_reflect", &x, |x| x[0].pad_reflect(&[(1, 0), (0, 2), (1, 1)]).square());
    check("pad_edge", &x, |x| x[0].pad_edge(&[(1, 0), (0, 2), (1, 1)]).square());
    check("triu", &x, |x| x[0].triu(1).square());
    check("cast", &[Operand(&[3], (-1.0, 1.0))], |x| x[0].square().cast(DType::F64).exp());
}

#[test]
fn regions() {
    let x = Operand(&[2, 3], (-1.0, 1.0));
    check("cat", &[Operand(&[2, 1], (-1.0, 1.0)), Operand(&[2, 3], (-1.0, 1.0))], |x| {
        RawTensor::cat(&[x[0].clone(), x[1].clone(), x[0].clone()], 1).square()
    });
    let value = Operand(&[1, 2], (-1.0, 1.0));
    check("slice_assign", &[x, value], |x| {
        x[0].slice_assign(&[SliceRange::new(0, 1, 1), SliceRange { axis: 1, start: 2, len: 2, step: -2 }], &x[1]).square()
    });
}

#[test]
fn reductions() {
    let x = [Operand(&[2, 3, 2], (0.3, 1.7))];
    for axes in [&[0usize][..], &[1], &[2], &[0, 2], &[1, 0], &[0, 1, 2], &[]] {
        check("sum", &x, |x| x[0].sum(axes).square());
        check("prod", &x, |x| x[0].prod(axes).square());
        check("max", &x, |x| x[0].max(axes).square());
        check("min", &x, |x| x[0].min(axes).square());
        check("mean", &x, |x| x[0].mean(axes).square());
        check("var", &x, |x| x[0].var(axes, 0).square());
        check("log_sum_exp", &x, |x| x[0].log_sum_exp(axes).square());
        check("norm2", &x, |x| x[0].norm2(axes));
    }
    check("cumsum", &x, |x| x[0].cumsum(1).square());
    check("cumprod", &x, |x| x[0].cumprod(1).square());
    check("cummax", &x, |x| x[0].cummax(1).square());
    check("cummin", &x, |x| x[0].cummin(1).square());
}

#[test]
fn products_with_zeros() {
    for device in devices() {
        let device = device.autodiff();
        let grad = |values: &[f64], f: &dyn Fn(&RawTensor) -> RawTensor| {
            let x = tensor(&device, &[values.len()], values).require_grad();
            f(&x).sum_all().backward().get(&x).unwrap().to_f64s().unwrap()
        };
        let prod = |x: &RawTensor| x.prod(&[0]);
        assert_eq!(grad(&[2.0, 0.0, 3.0, 4.0], &prod), [0.0, 24.0, 0.0, 0.0]);
        assert_eq!(grad(&[2.0, 0.0, 3.0, 0.0, 5.0], &prod), [0.0; 5]);
        assert_eq!(grad(&[3.0], &prod), [1.0]);
        let cumprod = |x: &RawTensor| x.cumprod(0);
        assert_eq!(grad(&[2.0, 0.0, 3.0, 4.0], &cumprod), [1.0, 32.0, 0.0, 0.0]);
        assert_eq!(grad(&[0.0, 0.0, 3.0], &cumprod), [1.0, 0.0, 0.0]);
        assert_eq!(grad(&[1.0, 2.0, 3.0], &cumprod), [9.0, 4.0, 2.0]);
    }
}

#[test]
fn special_points() {
    for device in devices() {
        let device = device.autodiff();
        let grad = |v: f64, f: &dyn Fn(&RawTensor) -> RawTensor| {
            let x = tensor(&device, &[1], &[v]).require_grad();
            f(&x).backward().get(&x).unwrap().to_f64s().unwrap()[0]
        };
        assert_eq!(grad(0.0, &|x| x.abs()), 0.0);
        assert_eq!(grad(0.0, &|x| x.powf_scalar(2.0)), 0.0);
        assert_eq!(grad(0.0, &|x| x.powi_scalar(2)), 0.0);
        assert_eq!(grad(1000.0, &|x| x.sigmoid()), 0.0);
        assert_eq!(grad(-1000.0, &|x| x.sigmoid()), 0.0);
        assert_eq!(grad(0.0, &|x| x.silu()), 0.5);
        assert_eq!(grad(0.0, &|x| x.relu()), 0.0);
        assert_eq!(grad(0.0, &|x| x.softplus(1.0, 20.0)), 0.5);
        assert_eq!(grad(1000.0, &|x| x.softplus(1.0, 20.0)), 1.0);
        assert_eq!(grad(-1000.0, &|x| x.log_sigmoid()), 1.0);
        assert_eq!(grad(0.0, &|x| x.norm2(&[0])), 0.0);
        assert_eq!(grad(0.0, &|x| x.sqrt()), f64::INFINITY);
        assert_eq!(grad(1000.0, &|x| x.log_sum_exp(&[0])), 1.0);
        let exponent = RawTensor::zeros(&device, &[1], DType::F64);
        assert_eq!(grad(0.0, &|x| x.pow(&exponent)), 0.0);
    }
}

#[test]
fn activations() {
    let x = [Operand(&[3, 4], (-2.0, 2.0))];
    check("relu", &x, |x| x[0].relu().mul(&x[0]));
    check("sigmoid", &x, |x| x[0].sigmoid());
    check("silu", &x, |x| x[0].silu());
    check("gelu", &x, |x| x[0].gelu());
    check("gelu_tanh", &x, |x| x[0].gelu_tanh());
    check("softplus", &x, |x| x[0].softplus(1.5, 20.0));
    check("log_sigmoid", &x, |x| x[0].log_sigmoid());
    for axis in 0..2 {
        check("softmax", &x, |x| x[0].softmax(axis));
        check("quiet_softmax", &x, |x| x[0].quiet_softmax(axis));
        check("masked_softmax", &x, |x| x[0].masked_softmax(axis));
        check("log_softmax", &x, |x| x[0].log_softmax(axis));
    }
    check("powf", &[Operand(&[4], (0.5, 2.0))], |x| x[0].powf_scalar(2.7));
    check("powi", &x, |x| x[0].powi_scalar(5));
    check("powi negative", &[Operand(&[4], (0.5, 2.0))], |x| x[0].powi_scalar(-3));
    check("powi large", &[Operand(&[4], (0.5, 1.2))], |x| x[0].powi_scalar(21));
    check("hypot", &[Operand(&[4], (0.5, 2.0)), Operand(&[4], (0.5, 2.0))], |x| x[0].hypot(&x[1]));
}

#[test]
fn normalisations() {
    let x = Operand(&[3, 4], (-2.0, 2.0));
    let w = || Operand(&[4], (0.5, 1.5));
    check("layer_norm", &[x, w(), w()], |x| x[0].layer_norm(&x[1], Some(&x[2]), 1e-5));
    check("rms_norm", &[Operand(&[3, 4], (-2.0, 2.0)), w()], |x| x[0].rms_norm(&x[1], 1e-5));
    let c = || Operand(&[3], (0.5, 1.5));
    let image = || Operand(&[2, 3, 2, 2], (-2.0, 2.0));
    check("batch_norm_train", &[image(), c(), c()], |x| x[0].batch_norm_train(&x[1], &x[2], 1e-5).output);
    check("batch_norm", &[image(), c(), c(), c(), c()], |x| x[0].batch_norm(&x[1], &x[2], &x[3], &x[4], 1e-5));
}

#[test]
fn matrix_products() {
    let shapes: [(&[usize], &[usize]); 8] = [
        (&[2, 3], &[3, 4]),
        (&[1, 3], &[3, 1]),
        (&[2, 2, 3], &[3, 2]),
        (&[2, 2, 3], &[1, 3, 2]),
        (&[2, 2, 3], &[2, 3, 2]),
        (&[1, 2, 3], &[2, 3, 2]),
        (&[2, 1, 2, 3], &[3, 3, 2]),
        (&[2, 3], &[2, 3, 2]),
    ];
    for (a, b) in shapes {
        check("matmul", &[Operand(a, (-1.0, 1.0)), Operand(b, (-1.0, 1.0))], |x| x[0].matmul(&x[1]).square());
    }
    check("matmul of views", &[Operand(&[3, 2], (-1.0, 1.0)), Operand(&[4, 3], (-1.0, 1.0))], |x| {
        x[0].transpose().matmul(&x[1].transpose()).square()
    });
    check("linear", &[Operand(&[2, 2, 3], (-1.0, 1.0)), Operand(&[3, 2], (-1.0, 1.0)), Operand(&[2], (-1.0, 1.0))], |x| {
        x[0].linear(&x[1], Some(&x[2])).square()
    });
}

#[test]
fn products_of_nothing_have_gradients() {
    for device in devices() {
        let device = device.autodiff();
        let a = RawTensor::zeros(&device, &[2, 0], DType::F64).require_grad();
        let b = RawTensor::zeros(&device, &[0, 3], DType::F64).require_grad();
        let y = a.matmul(&b);
        assert_eq!(y.to_f64s().unwrap(), [0.0; 6]);
        let grads = y.backward();
        assert_eq!(grads.get(&a).unwrap().dims(), [2, 0]);
        assert_eq!(grads.get(&b).unwrap().dims(), [0, 3]);
        assert!(grads.get(&b).unwrap().to_f64s().unwrap().is_empty());
    }
}

#[test]
fn convolutions() {
    let cases: [(&[usize], &[usize], ConvOptions<'_>); 6] = [
        (&[2, 2, 5], &[3, 2, 3], ConvOptions { stride: &[1], padding: &[(1, 1)], dilation: &[1], groups: 1 }),
        (&[1, 1, 11], &[1, 1, 4], ConvOptions { stride: &[4], padding: &[(0, 0)], dilation: &[1], groups: 1 }),
        (&[1, 2, 4, 5], &[2, 2, 2, 3], ConvOptions { stride: &[2, 1], padding: &[(1, 0), (0, 2)], dilation: &[1, 2], groups: 1 }),
        (&[1, 4, 4, 4], &[2, 2, 3, 3], ConvOptions { stride: &[2, 2], padding: &[(1, 1), (1, 1)], dilation: &[1, 1], groups: 2 }),
        (&[1, 3, 4, 4], &[3, 1, 2, 2], ConvOptions { stride: &[1, 1], padding: &[(0, 0), (0, 0)], dilation: &[1, 1], groups: 3 }),
        (&[1, 2, 3, 3, 3], &[2, 1, 2, 2, 2], ConvOptions { stride: &[1, 2, 1], padding: &[(0, 1), (1, 0), (0, 0)], dilation: &[1, 1, 2], groups: 2 }),
    ];
    for (x, w, o) in cases {
        let bias = [w[0]];
        let operands = [Operand(x, (-1.0, 1.0)), Operand(w, (-1.0, 1.0)), Operand(&bias, (-1.0, 1.0))];
        check("conv", &operands, |x| x[0].conv(&x[1], Some(&x[2]), &o).square());
    }
}

#[test]
fn transposed_convolutions() {
    let cases: [(&[usize], &[usize], ConvTransposeOptions<'_>); 4] = [
        (&[2, 2, 4], &[2, 2, 3], ConvTransposeOptions { stride: &[1], padding: &[0], padding_out: &[1], dilation: &[1], groups: 1 }),
        (&[1, 2, 3], &[2, 1, 3], ConvTransposeOptions { stride: &[2], padding: &[1], padding_out: &[1], dilation: &[2], groups: 2 }),
        (
            &[1, 2, 3, 2],
            &[2, 3, 2, 3],
            ConvTransposeOptions { stride: &[2, 2], padding: &[0, 1], padding_out: &[0, 1], dilation: &[1, 1], groups: 1 },
        ),
        (
            &[1, 1, 2, 2, 2],
            &[1, 1, 2, 2, 2],
            ConvTransposeOptions { stride: &[1, 2, 1], padding: &[0, 0, 0], padding_out: &[0, 0, 0], dilation: &[1, 1, 1], groups: 1 },
        ),
    ];
    for (x, w, o) in cases {
        check("conv_transpose", &[Operand(x, (-1.0, 1.0)), Operand(w, (-1.0, 1.0))], |x| x[0].conv_transpose(&x[1], None, &o).square());
    }
}

#[test]
fn pools() {
    let one = PoolOptions { kernel: &[3], stride: &[2], dilation: &[1], padding: &[(1, 1)], count_include_pad: true, ceil_mode: false };
    let two =
        PoolOptions { kernel: &[2, 2], stride: &[1, 2], dilation: &[2, 1], padding: &[(0, 1), (1, 0)], count_include_pad: false, ceil_mode: true };
    let plain =
        PoolOptions { kernel: &[2, 2], stride: &[2, 2], dilation: &[1, 1], padding: &[(0, 0), (0, 0)], count_include_pad: false, ceil_mode: true };
    check("max_pool", &[Operand(&[1, 2, 7], (-1.0, 1.0))], |x| x[0].max_pool(&one).square());
    check("max_pool", &[Operand(&[1, 2, 5, 4], (-1.0, 1.0))], |x| x[0].max_pool(&two).square());
    check("avg_pool", &[Operand(&[1, 2, 7], (-1.0, 1.0))], |x| x[0].avg_pool(&one).square());
    check("avg_pool", &[Operand(&[1, 2, 5, 5], (-1.0, 1.0))], |x| x[0].avg_pool(&plain).square());
}

#[test]
fn reads_and_writes_by_index() {
    let index = |x: &RawTensor, dims: &[usize], values: &[i64]| RawTensor::from_slice(&x.device().without_autodiff(), dims, DType::I64, values);
    check("gather", &[Operand(&[3, 2], (-1.0, 1.0))], |x| x[0].gather(0, &index(&x[0], &[4, 2], &[0, 2, 1, 1, 0, 0, 2, 1])).square());
    check("gather one a row", &[Operand(&[3, 4], (-1.0, 1.0))], |x| x[0].gather(1, &index(&x[0], &[3, 1], &[3, 0, 2]).cast(DType::I32)).square());
    check("select", &[Operand(&[3, 2], (-1.0, 1.0))], |x| x[0].select(0, &index(&x[0], &[4], &[2, 0, 2, 1])).square());
    check("embedding", &[Operand(&[3, 2], (-1.0, 1.0))], |x| x[0].embedding(&index(&x[0], &[2, 2], &[2, 0, 2, 1])).square());
    check("gather_nd", &[Operand(&[3, 2, 2], (-1.0, 1.0))], |x| x[0].gather_nd(&index(&x[0], &[2, 2], &[2, 0, 1, 1])).square());
    for op in [ScatterOp::Add, ScatterOp::Assign, ScatterOp::Mul, ScatterOp::Max, ScatterOp::Min] {
        let operands = [Operand(&[4, 2], (0.5, 1.5)), Operand(&[3, 2], (0.5, 1.5))];
        check("scatter", &operands, |x| x[0].scatter(0, &index(&x[0], &[3, 2], &[0, 3, 0, 1, 2, 3]), &x[1], op).square());
        check("select_assign", &operands, |x| x[0].select_assign(0, &index(&x[0], &[3], &[1, 3, 1]), &x[1], op).square());
        check("scatter_nd", &[Operand(&[2, 3], (0.5, 1.5)), Operand(&[3], (0.5, 1.5))], |x| {
            x[0].scatter_nd(&index(&x[0], &[3, 2], &[0, 2, 1, 0, 0, 2]), &x[1], op).square()
        });
    }
}

#[test]
fn scattered_products_with_zeros() {
    for device in devices() {
        let device = device.autodiff();
        let x = tensor(&device, &[2], &[2.0, 3.0]).require_grad();
        let v = tensor(&device, &[5], &[0.0, 5.0, 0.0, 0.0, 7.0]).require_grad();
        let index = RawTensor::from_slice(&device, &[5], DType::I64, &[0i64, 0, 1, 1, 1]);
        let grads = x.scatter(0, &index, &v, ScatterOp::Mul).backward();
        assert_eq!(grads.get(&x).unwrap().to_f64s().unwrap(), [0.0, 0.0]);
        assert_eq!(grads.get(&v).unwrap().to_f64s().unwrap(), [10.0, 0.0, 0.0, 0.0, 0.0]);
    }
}

#[test]
fn sorts() {
    check("sort", &[Operand(&[2, 4], (-1.0, 1.0))], |x| x[0].sort(1, false).0.square());
    check("sort descending", &[Operand(&[3, 2], (-1.0, 1.0))], |x| x[0].sort(0, true).0.square());
    check("topk", &[Operand(&[2, 4], (-1.0, 1.0))], |x| x[0].topk(1, 2, true).0.square());
}

#[test]
fn attention() {
    let operands = |g: usize| {
        let q: &'static [usize] = &[1, 2, 3, 2];
        let (k, v): (&'static [usize], &'static [usize]) = if g == 2 { (&[1, 2, 4, 2], &[1, 2, 4, 3]) } else { (&[1, 1, 4, 2], &[1, 1, 4, 3]) };
        [Operand(q, (-1.0, 1.0)), Operand(k, (-1.0, 1.0)), Operand(v, (-1.0, 1.0))]
    };
    let plain = AttentionOptions::default();
    let capped = AttentionOptions { scale: Some(0.9), softcap: Some(1.5), causal: true };
    let mask = |x: &RawTensor| {
        let bits = [0u8, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        RawTensor::from_bytes(&x.device().without_autodiff(), &[1, 1, 3, 4], DType::Bool, &bits)
    };
    for g in [1, 2] {
        for o in [plain, capped] {
            check("attention", &operands(g), |x| x[0].attention(&x[1], &x[2], None, None, o).square());
            check("attention, composed", &operands(g), |x| x[0].attention_composed(&x[1], &x[2], None, None, o).square());
            check("masked attention", &operands(g), |x| x[0].attention(&x[1], &x[2], Some(&mask(&x[0])), None, o).square());
        }
    }
    let [q, k, v] = operands(2);
    let bias = Operand(&[1, 1, 3, 4], (-1.0, 1.0));
    check("biased attention", &[q, k, v, bias], |x| x[0].attention(&x[1], &x[2], None, Some(&x[3]), plain).square());
}

/// Compares second derivatives with central differences of first ones.
#[track_caller]
fn check_twice(name: &str, dims: &[usize], range: (f64, f64), f: impl Fn(&RawTensor) -> RawTensor) {
    check_twice_at(name, dims, &numbers(dims.iter().product(), range, 3), f);
}

/// The same at given elements.
#[track_caller]
pub fn check_twice_at(name: &str, dims: &[usize], values: &[f64], f: impl Fn(&RawTensor) -> RawTensor) {
    let device = cpu().autodiff();
    let slope = |values: &[f64]| -> f64 {
        let x = tensor(&device, dims, values).require_grad();
        let grads = loss(&f(&x)).backward();
        loss(grads.get(&x).unwrap()).to_f64s().unwrap()[0]
    };
    let x = tensor(&device, dims, values).require_grad();
    let first = loss(&f(&x)).backward_keeping_graph();
    let second = loss(first.get(&x).unwrap()).backward();
    let got = second.get(&x).unwrap().to_f64s().unwrap();
    for (i, g) in got.iter().enumerate() {
        let mut moved = values.to_vec();
        moved[i] += 1e-5;
        let up = slope(&moved);
        moved[i] -= 2e-5;
        let e = (up - slope(&moved)) / 2e-5;
        assert!((g - e).abs() <= 1e-5 * e.abs().max(1.0), "{name}: element {i}: {g}, difference quotient {e}");
    }
}

#[test]
fn second_derivatives() {
    for e in float_rows().filter(|e| e.arity() == 1 && !is_step(*e) && *e != Elementwise::Neg && *e != Elementwise::Abs) {
        check_twice(e.name(), &[4], e.row().domain, |x| x.unary(e).square());
    }
    check_twice("softmax", &[2, 3], (-1.0, 1.0), |x| x.softmax(1).square());
    check_twice("log_softmax", &[2, 3], (-1.0, 1.0), |x| x.log_softmax(1).square());
    check_twice("gelu", &[4], (-1.0, 1.0), RawTensor::gelu);
    check_twice("silu", &[4], (-1.0, 1.0), RawTensor::silu);
    check_twice("sigmoid", &[4], (-1.0, 1.0), RawTensor::sigmoid);
    check_twice("layer norm", &[2, 3], (-1.0, 1.0), |x| x.normalize(&[1], 1e-3).output.square());
    check_twice("matmul", &[2, 2], (-1.0, 1.0), |x| x.matmul(&x.matmul(x)));
    check_twice("prod", &[4], (0.5, 1.5), |x| x.prod(&[0]));
    check_twice("cumprod", &[4], (0.5, 1.5), |x| x.cumprod(0));
    check_twice("pow", &[4], (0.5, 1.5), |x| x.pow(x));
    check_twice("max_pool", &[1, 1, 6], (-1.0, 1.0), |x| {
        let o = PoolOptions { kernel: &[2], stride: &[2], dilation: &[1], padding: &[(0, 0)], count_include_pad: true, ceil_mode: false };
        x.max_pool(&o).powi_scalar(3)
    });
    check_twice("conv", &[1, 2, 4], (-1.0, 1.0), |x| {
        let w = x.narrow(2, 0, 2).reshape(&[2, 1, 2]).cast(DType::F64);
        x.conv(&w, None, &ConvOptions { stride: &[1], padding: &[(1, 0)], dilation: &[1], groups: 2 }).square()
    });
}

#[test]
fn second_derivatives_of_attention() {
    let masked = |x: &RawTensor| {
        // The last query sees no key.
        let bits = [0u8, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1];
        RawTensor::from_bytes(&x.device().without_autodiff(), &[1, 1, 3, 4], DType::Bool, &bits)
    };
    let capped = AttentionOptions { scale: Some(0.9), softcap: Some(1.5), causal: true };
    for groups in [1, 2] {
        for (o, mask) in [(AttentionOptions::default(), false), (AttentionOptions::default(), true), (capped, false)] {
            // Queries, keys and values are parts of one tensor, so that mixed derivatives count too.
            let (q, k, v) = (12, 8 * groups, 12 * groups);
            check_twice("attention", &[q + k + v], (-1.0, 1.0), |x| {
                let part = |start: usize, dims: &[usize]| x.narrow(0, start, dims.iter().product()).reshape(dims);
                let (q, k, v) = (part(0, &[1, 2, 3, 2]), part(q, &[1, groups, 4, 2]), part(q + k, &[1, groups, 4, 3]));
                q.attention(&k, &v, mask.then(|| masked(x)).as_ref(), None, o).square()
            });
        }
    }
}
