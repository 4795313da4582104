//! Fits a noisy curve with a small network and draws the fit in the terminal.
//!
//! `cargo run --release --example regression`. Options: `--steps N`, `--seed N`.

#[path = "../options.rs"]
mod options;
mod plot;

use indicatif::{ProgressBar, ProgressStyle};
use kiln::nn::loss::{MseLoss, Reduction};
use kiln::nn::{Linear, LinearConfig};
use kiln::optim::{AdamConfig, GradientsParams};
use kiln::prelude::*;
use kiln::tensor::Distribution;
use kiln::tensor::activation::tanh;
use std::error::Error;

/// One input, one output, two hidden layers.
#[derive(Module, Debug)]
struct Curve {
    first: Linear,
    second: Linear,
    output: Linear,
}

impl Curve {
    fn new(device: &Device) -> Self {
        Self {
            first: LinearConfig::new(1, 64).init(device),
            second: LinearConfig::new(64, 64).init(device),
            output: LinearConfig::new(64, 1).init(device),
        }
    }

    /// `[points, 1]` to `[points, 1]`.
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = tanh(self.first.forward(x));
        self.output.forward(tanh(self.second.forward(x)))
    }
}

/// The curve behind the points.
fn truth(x: Tensor<2>) -> Tensor<2> {
    (x.clone() * 2.0).sin() + x * 0.3
}

fn main() -> Result<(), Box<dyn Error>> {
    let steps: u64 = options::option("steps", 1500);
    let plain = Device::default();
    plain.seed(options::option("seed", 3));
    let device = plain.clone().autodiff();

    let x = Tensor::<2>::random([256, 1], Distribution::Uniform(-3.0, 3.0), &device);
    let noise = Tensor::<2>::random([256, 1], Distribution::Normal(0.0, 0.15), &device);
    let y = truth(x.clone()) + noise;

    let mut model = Curve::new(&device);
    let mut optimizer = AdamConfig::new().init();
    let bar = ProgressBar::new(steps).with_style(ProgressStyle::with_template("{bar:40} {pos:>5}/{len}  {msg}  {eta} left")?);
    for step in 0..steps {
        let loss = MseLoss::new().forward(model.forward(x.clone()), y.clone(), Reduction::Mean);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(5e-3 * (1.0 - step as f64 / steps as f64), model, gradients);
        bar.inc(1);
        if step % 50 == 0 {
            bar.set_message(format!("loss {:.5}", loss.into_scalar::<f32>()));
        }
    }
    bar.finish_and_clear();

    let model = model.valid();
    let places: Vec<f32> = (0..plot::COLUMNS).map(|i| -3.0 + 6.0 * i as f32 / (plot::COLUMNS - 1) as f32).collect();
    let at = Tensor::<2>::from_data(TensorData::new(places.clone(), [plot::COLUMNS, 1]), &plain);
    let fit = model.forward(at.clone());
    let error = (fit.clone() - truth(at)).square().mean().sqrt().into_scalar::<f32>();
    let values = |tensor: Tensor<2>| tensor.into_data().try_to_vec_as::<f32>();
    let points: Vec<(f32, f32)> = values(x.inner())?.into_iter().zip(values(y.inner())?).collect();
    let fit: Vec<(f32, f32)> = places.into_iter().zip(values(fit)?).collect();
    print!("{}", plot::draw(&points, &fit));
    println!("· the noisy points, █ the fit; root mean square distance to the curve behind them: {error:.4}");
    if error > 0.1 {
        return Err(format!("the fit is {error:.3} away from the curve").into());
    }
    Ok(())
}
