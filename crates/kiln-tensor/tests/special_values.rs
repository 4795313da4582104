//! NaN, infinities, zeros of both signs, the ends of `i64` and rows without elements: values and slopes are PyTorch's.

use kiln_tensor::activation as act;
use kiln_tensor::{Device, Int, Tensor, TensorData};

use crate::cpu;
use crate::golden::{self, Case};

fn floats<const D: usize>(case: &Case, name: &str, device: &Device) -> Tensor<D> {
    let golden = case.tensor(name);
    Tensor::from_data(TensorData::new(golden.f32(), golden.shape.clone()), device)
}

/// What differs from the stored values, a line each.
fn differences(case: &Case, name: &str, got: &[f64], device: &Device) -> Option<String> {
    let want = &case.tensor(name).values;
    let same = |got: f64, want: f64| got == want || got.is_nan() && want.is_nan() || (got - want).abs() <= 2e-5 * want.abs().max(1e-3);
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
                        case.get(name).map(|x| {
                            Tensor::<1, Int>::from_data(TensorData::new(exact(&x.values), x.shape.clone()), (&device, kiln_tensor::DType::I64))
                        })
                    };
                    let y = integer(name, of("x").expect("an operand"), of("z")).try_into_vec_as::<i64>().expect("it can be computed");
                    let want = exact(&case.tensor("y").values);
                    if y.iter().zip(&want).any(|(y, want)| (*y as f64 - *want as f64).abs() > 2048.0) || y.len() != want.len() {
                        wrong.push(format!("{} on {device:?}: {y:?} for {want:?}", case.name));
                    }
                }
                other => panic!("no test for {other}"),
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Stored numbers as integers; the largest one is stored rounded up.
fn exact(values: &[f64]) -> Vec<i64> {
    values.iter().map(|value| *value as i64).collect()
}
