//! Factorisations, transforms, sequence losses, deformable convolutions and slopes at bends against values that PyTorch computed.

use kiln_tensor::module::*;
use kiln_tensor::ops::*;
use kiln_tensor::{Device, Int, Tensor, TensorData, activation as act};

use crate::golden::{self, Case};

/// Computed in f32; factorisations lose a few digits.
const TOLERANCE: f64 = 5e-5;

fn cases(file: &str) -> Vec<Case> {
    golden::read(env!("CARGO_MANIFEST_DIR"), file)
}

fn input<const D: usize>(case: &Case, name: &str) -> Tensor<D> {
    let golden = case.tensor(name);
    let device = Device::default().autodiff();
    Tensor::from_data(TensorData::new(golden.f32(), golden.shape.clone()), &device).require_grad()
}

fn indices<const D: usize>(case: &Case, name: &str) -> Tensor<D, Int> {
    let golden = case.tensor(name);
    Tensor::from_data(TensorData::new(golden.i64(), golden.shape.clone()), &Device::default())
}

#[track_caller]
fn check<const D: usize>(case: &Case, name: &str, got: Tensor<D>) {
    let what = format!("{} {name}", case.name);
    let shape = got.dims();
    case.tensor(name).assert_close(&what, &shape, &got.try_into_vec_as::<f32>().unwrap(), TOLERANCE);
}

/// A result, and the gradient that it leads back to each input.
struct Graded<'a> {
    case: &'a Case,
    gradients: kiln_tensor::Gradients,
}

impl<'a> Graded<'a> {
    #[track_caller]
    fn new<const D: usize>(case: &'a Case, y: Tensor<D>) -> Self {
        check(case, "y", y.clone());
        let dy = case.tensor("dy");
        let weights = Tensor::<D>::from_data(TensorData::new(dy.f32(), dy.shape.clone()), &Device::default());
        Graded { case, gradients: (y * weights).sum().backward() }
    }

    #[track_caller]
    fn of<const D: usize>(self, name: &str, x: &Tensor<D>) -> Self {
        let grad = x.grad(&self.gradients).unwrap_or_else(|| panic!("{} has no gradient for {name}", self.case.name));
        check(self.case, &format!("d_{name}"), grad);
        self
    }
}

#[cfg(feature = "linalg")]
mod factors {
    use super::*;
    use kiln_tensor::linalg::*;

    #[test]
    fn linear_algebra() {
        for case in &cases("linalg.txt") {
            match (case.name.as_str(), case.tensor(if case.get("x").is_some() { "x" } else { "a" }).shape.len()) {
                ("det", 2) => graded(case, |x: Tensor<2>| det::<2, 1, 1>(x)),
                ("det", _) => graded(case, |x: Tensor<3>| det::<3, 2, 1>(x)),
                ("lu", 2) => factors_lu::<2, 1>(case),
                ("lu", _) => factors_lu::<3, 2>(case),
                ("qr", 2) => graded(case, |x: Tensor<2>| signed_qr(x)),
                ("qr", _) => graded(case, |x: Tensor<3>| signed_qr(x)),
                ("singular_values", 2) => graded(case, |x: Tensor<2>| svd::<2, 1>(x, 32).1),
                ("singular_values", _) => graded(case, |x: Tensor<3>| svd::<3, 2>(x, 32).1),
                ("rank_two", 2) => graded(case, |x: Tensor<2>| rank_two::<2, 1>(x)),
                ("rank_two", _) => graded(case, |x: Tensor<3>| rank_two::<3, 2>(x)),
                ("l0_norm", _) => check(case, "y", l0_norm(input::<2>(case, "x").inner(), 1)),
                ("l1_norm", _) => graded(case, |x: Tensor<2>| l1_norm(x, case.size("dim"))),
                ("l2_norm", _) => graded(case, |x: Tensor<2>| l2_norm(x, case.size("dim"))),
                ("max_abs_norm", _) => graded(case, |x: Tensor<2>| max_abs_norm(x, case.size("dim"))),
                ("min_abs_norm", _) => graded(case, |x: Tensor<2>| min_abs_norm(x, case.size("dim"))),
                ("lp_norm", _) => graded(case, |x: Tensor<2>| lp_norm(x, case.number("p"), case.size("dim"))),
                ("vector_normalize", _) => graded(case, |x: Tensor<2>| vector_normalize(x, Norm::L2, 1, 1e-12)),
                ("cosine_similarity", _) => {
                    let (a, b) = (input::<2>(case, "a"), input::<2>(case, "b"));
                    Graded::new(case, cosine_similarity(a.clone(), b.clone(), case.size("dim"), None)).of("a", &a).of("b", &b);
                }
                ("trace", _) => graded(case, |x: Tensor<3>| trace::<3, 1>(x)),
                ("diag", _) => graded(case, |x: Tensor<3>| diag::<3, 2, _>(x)),
                ("outer", _) => {
                    let (a, b) = (input::<1>(case, "a"), input::<1>(case, "b"));
                    Graded::new(case, outer::<1, 2, _>(a.clone(), b.clone())).of("a", &a).of("b", &b);
                }
                ("matvec", _) => {
                    let (a, b) = (input::<3>(case, "a"), input::<2>(case, "b"));
                    Graded::new(case, matvec(a.clone(), b.clone())).of("a", &a).of("b", &b);
                }
                (other, _) => panic!("no test for {other}"),
            }
        }
    }

    #[track_caller]
    fn graded<const D: usize, const DO: usize>(case: &Case, f: impl Fn(Tensor<D>) -> Tensor<DO>) {
        let x = input::<D>(case, "x");
        Graded::new(case, f(x.clone())).of("x", &x);
    }

    fn factors_lu<const D: usize, const D1: usize>(case: &Case) {
        let x = input::<D>(case, "x");
        let (p, l, u) = lu::<D, D1>(x.clone());
        check(case, "p", p);
        Graded::new(case, Tensor::cat(vec![l, u], D - 1)).of("x", &x);
    }

    /// The factors with a diagonal of `R` that isn't negative.
    fn signed_qr<const D: usize>(x: Tensor<D>) -> Tensor<D> {
        let (q, r) = qr(x, true);
        let n = r.dims()[D - 1];
        let eye = Tensor::<2>::eye(n, &Device::default()).unsqueeze::<D>();
        let diagonal = (r.clone().detach().inner() * eye).sum_dim(D - 2);
        let signs = diagonal.sign();
        Tensor::cat(vec![q * signs.clone(), r * signs.swap_dims(D - 2, D - 1)], D - 2)
    }

    fn rank_two<const D: usize, const D1: usize>(x: Tensor<D>) -> Tensor<D> {
        let (u, s, vt) = svd::<D, D1>(x, 32);
        let s: Tensor<D> = s.unsqueeze_dim(D - 2);
        (u.narrow(D - 1, 0, 2) * s.narrow(D - 1, 0, 2)).matmul(vt.narrow(D - 2, 0, 2))
    }
}

#[cfg(feature = "signal")]
#[test]
fn fourier_transforms() {
    use kiln_tensor::signal::*;
    for case in &cases("fft.txt") {
        let length = || Some(case.size("n")).filter(|n| *n > 0);
        match case.name.as_str() {
            "rfft" => {
                let x = input::<2>(case, "x");
                let (re, im) = rfft(x.clone(), case.size("dim"), length());
                Graded::new(case, Tensor::stack::<3>(vec![re, im], 0)).of("x", &x);
            }
            "irfft" => {
                let (re, im) = (input::<2>(case, "re"), input::<2>(case, "im"));
                Graded::new(case, irfft(re.clone(), im.clone(), 1, length())).of("re", &re).of("im", &im);
            }
            "cfft" => {
                let (re, im) = (input::<2>(case, "re"), input::<2>(case, "im"));
                let (y, z) = cfft(re.clone(), im.clone(), 1, length());
                Graded::new(case, Tensor::stack::<3>(vec![y, z], 0)).of("re", &re).of("im", &im);
            }
            "hann_window" => check(case, "y", hann_window(case.size("size"), case.flag("periodic"), &Device::default())),
            "hamming_window" => check(case, "y", hamming_window(case.size("size"), case.flag("periodic"), &Device::default())),
            "blackman_window" => check(case, "y", blackman_window(case.size("size"), case.flag("periodic"), &Device::default())),
            "stft" => {
                let x = input::<2>(case, "x");
                let n_fft = case.size("n_fft");
                let window = case.flag("window").then(|| hann_window(n_fft, true, &Device::default()));
                let options = StftOptions {
                    n_fft,
                    hop_length: case.size("hop"),
                    win_length: None,
                    center: case.flag("center"),
                    onesided: case.flag("onesided"),
                };
                Graded::new(case, stft(x.clone(), window, options)).of("x", &x);
            }
            other => panic!("no test for {other}"),
        }
    }
}

#[test]
fn sequence_losses() {
    for case in &cases("ctc.txt") {
        let x = input::<3>(case, "x");
        let log_probs = act::log_softmax(x.clone(), 2);
        let (targets, steps, labels) = (indices::<2>(case, "targets"), indices::<1>(case, "input_lengths"), indices::<1>(case, "target_lengths"));
        Graded::new(case, ctc_loss(log_probs, targets, steps, labels, case.size("blank"))).of("x", &x);
    }
}

#[test]
fn deformable_convolutions() {
    for case in &cases("deform.txt") {
        let (x, offset, weight) = (input::<4>(case, "x"), input::<4>(case, "offset"), input::<4>(case, "weight"));
        let mask = case.get("mask").map(|_| input::<4>(case, "mask"));
        let bias = case.get("bias").map(|_| input::<1>(case, "bias"));
        let options = DeformConvOptions::new(
            case.sizes("stride"),
            case.sizes("padding"),
            case.sizes("dilation"),
            case.size("weight_groups"),
            case.size("offset_groups"),
        );
        let y = deform_conv2d(x.clone(), offset.clone(), weight.clone(), mask.clone(), bias.clone(), options);
        let mut graded = Graded::new(case, y).of("x", &x).of("offset", &offset).of("weight", &weight);
        if let Some(mask) = &mask {
            graded = graded.of("mask", mask);
        }
        if let Some(bias) = &bias {
            graded.of("bias", bias);
        }
    }
}

#[test]
fn attention_with_grouped_heads_and_soft_caps() {
    for case in &cases("attention_options.txt") {
        for f in [attention, attention_fallback] {
            let [q, k, v] = ["q", "k", "v"].map(|name| input::<4>(case, name));
            let softcap = Some(case.number("softcap")).filter(|cap| *cap > 0.0);
            let options = AttentionModuleOptions { scale: None, softcap, is_causal: case.flag("is_causal") };
            let y = f(q.clone(), k.clone(), v.clone(), None, None, options);
            Graded::new(case, y).of("q", &q).of("k", &k).of("v", &v);
        }
    }
}

#[test]
fn slopes_where_functions_bend() {
    for case in &cases("bend.txt") {
        let x = input::<1>(case, "x");
        let y = match case.name.as_str() {
            "relu" => act::relu(x.clone()),
            "relu6" => act::relu6(x.clone()),
            "hardtanh" => act::hardtanh(x.clone(), -1.0, 1.0),
            "hard_sigmoid" => act::hard_sigmoid(x.clone(), 1.0 / 6.0, 0.5),
            "hard_swish" => act::hard_swish(x.clone()),
            "leaky_relu" => act::leaky_relu(x.clone(), 0.1),
            "elu" => act::elu(x.clone(), 2.0),
            "celu" => act::celu(x.clone(), 2.0),
            "selu" => act::selu(x.clone()),
            "threshold" => act::threshold(x.clone(), 0.5, 2.0),
            "soft_shrink" => act::soft_shrink(x.clone(), 0.5),
            "hard_shrink" => act::hard_shrink(x.clone(), 0.5),
            "softsign" => act::softsign(x.clone()),
            "abs" => x.clone().abs(),
            "prelu" => act::prelu(x.clone(), Tensor::from_data([0.25], &Device::default())),
            "clamp" => x.clone().clamp(-1.0, 1.0),
            "clamp_min" => x.clone().clamp_min(0.5),
            "clamp_max" => x.clone().clamp_max(0.5),
            other => panic!("no test for {other}"),
        };
        Graded::new(case, y).of("x", &x);
    }
}
