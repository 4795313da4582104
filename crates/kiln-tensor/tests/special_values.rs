//! NaN, infinities, zeros of both signs, the ends of `i64` and rows without elements: values and slopes are PyTorch's.

use kiln_tensor::activation as act;
use kiln_tensor::module::{attention, attention_fallback, conv_transpose2d, conv2d};
use kiln_tensor::ops::{AttentionModuleOptions, ConvOptions, ConvTransposeOptions};
use kiln_tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::cpu;
use crate::golden::{self, Case};

fn floats<const D: usize>(case: &Case, name: &str, device: &Device) -> Tensor<D> {
    let golden = case.tensor(name);
    Tensor::from_data(TensorData::new(golden.f32(), golden.shape.clone()), device)
}

/// What differs from the stored values, a line each.
fn differences(case: &Case, name: &str, got: &[f64], device: &Device) -> Option<String> {
    // Terms of a sum cancel.
    let least = if case.get("x").or(case.get("q")).is_some_and(|x| x.shape.len() > 2) { 0.1 } else { 1e-3 };
    let want = &case.tensor(name).values;
    let same = |got: f64, want: f64| got == want || got.is_nan() && want.is_nan() || (got - want).abs() <= 2e-5 * want.abs().max(least);
    let wrong: Vec<String> = (0..want.len())
        // There is no slope at NaN.
        .filter(|i| !(name == "d_x" && case.tensor("x").values[*i].is_nan()))
        .filter(|i| i >= &got.len() || !same(got[*i], want[*i]))
        .map(|i| {
            let at = |name: &str| case.get(name).and_then(|x| x.values.get(i)).map_or(String::new(), |x| format!(" {name}={x}"));
            format!("[{i}]{}{}: {:?} for {}", at("x"), at("z"), got.get(i), want[i])
        })
        .collect();
    (got.len() != want.len() || !wrong.is_empty()).then(|| format!("{} {name} on {device:?}: {}", case.name, wrong.join("; ")))
}

fn unary(name: &str, x: Tensor<1>) -> Tensor<1> {
    match name {
        "exp" => x.exp(),
        "log" => x.log(),
        "log1p" => x.log1p(),
        "sqrt" => x.sqrt(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "asinh" => x.asinh(),
        "acosh" => x.acosh(),
        "atanh" => x.atanh(),
        "erf" => x.erf(),
        "abs" => x.abs(),
        "neg" => x.neg(),
        "sign" => x.sign(),
        "square" => x.square(),
        "recip" => x.recip(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "round" => x.round(),
        "trunc" => x.trunc(),
        "relu" => act::relu(x),
        "gelu" => act::gelu(x),
        "sigmoid" => act::sigmoid(x),
        "log_sigmoid" => act::log_sigmoid(x),
        "silu" => act::silu(x),
        "mish" => act::mish(x),
        "softplus" => act::softplus(x, 1.0),
        "elu" => act::elu(x, 1.0),
        "selu" => act::selu(x),
        "celu" => act::celu(x, 1.0),
        "hard_swish" => act::hard_swish(x),
        "relu6" => act::relu6(x),
        "softsign" => act::softsign(x),
        "leaky_relu" => act::leaky_relu(x, 0.1),
        "tanhshrink" => act::tanhshrink(x),
        "hardtanh" => act::hardtanh(x, -1.0, 1.0),
        "clamp" => x.clamp(-1.0, 1.0),
        other => panic!("no test for {other}"),
    }
}

fn binary(name: &str, a: Tensor<1>, b: Tensor<1>) -> Tensor<1> {
    match name {
        "add" => a.add(b),
        "sub" => a.sub(b),
        "mul" => a.mul(b),
        "div" => a.div(b),
        "remainder" => a.remainder(b),
        "fmod" => a.fmod(b),
        "atan2" => a.atan2(b),
        "hypot" => a.hypot(b),
        "powf" => a.powf(b),
        "max_pair" => a.max_pair(b),
        "min_pair" => a.min_pair(b),
        "equal" => a.equal(b).float(),
        "not_equal" => a.not_equal(b).float(),
        "greater" => a.greater(b).float(),
        "greater_equal" => a.greater_equal(b).float(),
        "lower" => a.lower(b).float(),
        "lower_equal" => a.lower_equal(b).float(),
        "is_close" => a.is_close(b, None, None).float(),
        other => panic!("no test for {other}"),
    }
}

fn along(name: &str, x: Tensor<2>) -> Tensor<2> {
    match name {
        "sum_dim" => x.sum_dim(1),
        "mean_dim" => x.mean_dim(1),
        "prod_dim" => x.prod_dim(1),
        "max_dim" => x.max_dim(1),
        "min_dim" => x.min_dim(1),
        "max_abs_dim" => x.max_abs_dim(1),
        "argmax" => x.argmax(1).float(),
        "argmin" => x.argmin(1).float(),
        "sort" => x.sort(1),
        "argsort" => x.argsort(1).float(),
        "sort_descending" => x.sort_descending(1),
        "topk" => x.topk(2, 1),
        "cumsum" => x.cumsum(1),
        "cumprod" => x.cumprod(1),
        "cummax" => x.cummax(1),
        "cummin" => x.cummin(1),
        "var" => x.var(1),
        "var_bias" => x.var_bias(1),
        "median" => x.median(1),
        "softmax" => act::softmax(x, 1),
        "log_softmax" => act::log_softmax(x, 1),
        "any_dim" => x.any_dim(1).float(),
        "all_dim" => x.all_dim(1).float(),
        other => panic!("no test for {other}"),
    }
}

fn integer(name: &str, a: Tensor<1, Int>, b: Option<Tensor<1, Int>>) -> Tensor<1, Int> {
    let b = || b.clone().expect("a second operand");
    match name {
        "add" => a.add(b()),
        "sub" => a.sub(b()),
        "mul" => a.mul(b()),
        "div" => a.div(b()),
        "remainder" => a.remainder(b()),
        "max_pair" => a.max_pair(b()),
        "min_pair" => a.min_pair(b()),
        "bitwise_and" => a.bitwise_and(b()),
        "bitwise_or" => a.bitwise_or(b()),
        "bitwise_xor" => a.bitwise_xor(b()),
        "bitwise_left_shift" => a.bitwise_left_shift(b()),
        "bitwise_right_shift" => a.bitwise_right_shift(b()),
        "equal" => a.equal(b()).int(),
        "lower" => a.lower(b()).int(),
        "greater_equal" => a.greater_equal(b()).int(),
        "abs" => a.abs(),
        "neg" => a.neg(),
        "sign" => a.sign(),
        "bitwise_not" => a.bitwise_not(),
        "cumsum" => a.cumsum(0),
        "cumprod" => a.cumprod(0),
        "sort" => a.sort(0),
        "sum" => a.sum(),
        "square" => a.square(),
        other => panic!("no test for {other}"),
    }
}

#[test]
fn special_values_and_their_slopes_are_pytorch_s() {
    let mut wrong = Vec::new();
    let cases = golden::read(env!("CARGO_MANIFEST_DIR"), "special.txt");
    for device in [cpu(), Device::reference()] {
        for case in &cases {
            let (kind, name) = case.name.split_once('_').expect("a kind and a name");
            let vec = |y: Tensor<1>| y.try_into_vec_as::<f64>().expect("it can be computed");
            match kind {
                "unary" => {
                    let x = floats::<1>(case, "x", &device.clone().autodiff()).require_grad();
                    let y = unary(name, x.clone());
                    wrong.extend(differences(case, "y", &vec(y.clone()), &device));
                    let dx = x.grad(&y.sum().backward()).expect("a gradient");
                    wrong.extend(differences(case, "d_x", &vec(dx), &device));
                }
                "binary" => {
                    let y = binary(name, floats(case, "x", &device), floats(case, "z", &device));
                    wrong.extend(differences(case, "y", &vec(y), &device));
                }
                "along" => {
                    let y = along(name, floats(case, "x", &device));
                    assert_eq!(y.dims().as_slice(), case.tensor("y").shape, "{}", case.name);
                    wrong.extend(differences(case, "y", &vec(y.flatten(0, 1)), &device));
                }
                "integer" => {
                    let of = |name: &str| {
                        case.get(name)
                            .map(|x| Tensor::<1, Int>::from_data(TensorData::new(x.i64(), x.shape.clone()), (&device, kiln_tensor::DType::I64)))
                    };
                    let y = integer(name, of("x").expect("an operand"), of("z")).try_into_vec_as::<i64>().expect("it can be computed");
                    let want = case.tensor("y").i64();
                    if y != want {
                        wrong.push(format!("{} on {device:?}: {y:?} for {want:?}", case.name));
                    }
                }
                other => panic!("no test for {other}"),
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn zeros_meet_what_is_not_finite_where_pytorch_s_do() {
    let mut wrong = Vec::new();
    for device in [cpu(), Device::reference()] {
        for case in golden::read(env!("CARGO_MANIFEST_DIR"), "special_products.txt") {
            let vec = |y: Tensor<4>| y.try_into_vec_as::<f64>().expect("it can be computed");
            let same = |y: Tensor<4>| differences(&case, "y", &vec(y), &device);
            if case.name.starts_with("attention") {
                let (q, k, v) = (floats(&case, "q", &device), floats(&case, "k", &device), floats(&case, "v", &device));
                let mask = case.get("mask").map(|mask| Tensor::<4, Bool>::from_data(TensorData::new(mask.bool(), mask.shape.clone()), &device));
                let options = AttentionModuleOptions { is_causal: case.flag("causal"), ..Default::default() };
                wrong.extend(same(attention(q.clone(), k.clone(), v.clone(), mask.clone(), None, options)));
                wrong.extend(same(attention_fallback(q, k, v, mask, None, options)));
                continue;
            }
            let (x, w) = (floats(&case, "x", &device), floats(&case, "w", &device));
            let (stride, padding, groups) = (case.size("stride"), case.size("padding"), case.size("groups"));
            if case.name == "conv_transpose" {
                wrong.extend(same(conv_transpose2d(x, w, None, ConvTransposeOptions::new([stride; 2], [padding; 2], [0; 2], [1; 2], groups))));
                continue;
            }
            let x = Tensor::from_inner(x).autodiff().require_grad();
            let y = conv2d(x.clone(), w.autodiff(), None, ConvOptions::new([stride; 2], [padding; 2], [1; 2], groups));
            let slopes = x.grad(&y.clone().sum().backward()).expect("a gradient");
            wrong.extend(same(y.inner()));
            if case.get("d_x").is_some() {
                wrong.extend(differences(&case, "d_x", &vec(slopes), &device));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Sizes of `(query heads, key heads, queries, keys)` for each way attention is computed: few rows, in one part and in several, and tiles of many rows.
const ATTENTIONS: [[usize; 4]; 5] = [[1, 1, 4, 70], [2, 1, 2, 1100], [1, 1, 300, 300], [4, 2, 40, 200], [2, 2, 20, 9]];

#[test]
fn every_way_of_attention_multiplies_hidden_values() {
    for [heads, groups, queries, keys] in ATTENTIONS {
        let make = |device: &Device| {
            let wave = |shape: [usize; 4]| {
                let n = shape.iter().product::<usize>() as i64;
                Tensor::<1, Int>::arange(0..n, device).float().mul_scalar(0.7).sin().reshape(shape)
            };
            let mut v = wave([1, groups, keys, 3]);
            for (key, value) in [(keys - 1, f32::INFINITY), (keys / 2, f32::NAN)] {
                let column = if key == keys - 1 { 0 } else { 2 };
                v = v.slice_fill([0..1, groups - 1..groups, key..key + 1, column..column + 1], value);
            }
            let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
            attention(wave([1, heads, queries, 8]), wave([1, groups, keys, 8]), v, None, None, options)
                .try_into_vec_as::<f64>()
                .expect("it can be computed")
        };
        let (got, want) = (make(&cpu()), make(&Device::reference()));
        let wrong = (0..got.len()).find(|i| !(got[*i] == want[*i] || got[*i].is_nan() && want[*i].is_nan() || (got[*i] - want[*i]).abs() < 1e-5));
        assert!(wrong.is_none(), "{heads} heads on {groups}, {queries} queries, {keys} keys: element {wrong:?}");
        assert!(want.iter().any(|y| y.is_finite()) && want[want.len() - queries * 3 + 2].is_nan());
    }
}
