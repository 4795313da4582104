//! Trains a character-level GPT on Shakespeare and samples from it.
//!
//! `cargo run --release --example char_gpt`. Options: `--steps N`, `--batch N`, `--context N`, `--layers N`, `--width N`, `--heads N`, `--seed N`, `--sample N` (characters), `--prompt TEXT`.

mod model;
#[path = "../options.rs"]
mod options;
mod text;

use indicatif::{ProgressBar, ProgressStyle};
use kiln::optim::{AdamWConfig, GradientsParams};
use kiln::prelude::*;
use model::{Gpt, GptConfig};
use std::error::Error;
use std::time::Instant;
use text::Corpus;

/// Eight plays; `examples/data/README.md` says where they come from.
const PLAYS: &str = include_str!("../data/shakespeare.txt");

/// The learning rate: a short warm-up, then half a cosine down to a tenth.
fn rate(step: usize, steps: usize) -> f64 {
    let warm = ((step + 1) as f64 / 20.0).min(1.0);
    let done = step as f64 / steps.max(1) as f64;
    1e-3 * warm * (0.55 + 0.45 * (std::f64::consts::PI * done).cos())
}

/// The mean loss over a few batches of text that training does not see.
fn evaluate(model: &Gpt, corpus: &mut Corpus, batch: usize, device: &Device) -> f32 {
    let batches = 4;
    let losses = (0..batches).map(|_| {
        let (input, target) = corpus.held_out(batch, model.context(), device);
        model.loss(input, target).into_scalar::<f32>()
    });
    losses.sum::<f32>() / batches as f32
}

fn main() -> Result<(), Box<dyn Error>> {
    let steps: usize = options::option("steps", 200);
    let batch: usize = options::option("batch", 8);
    let context: usize = options::option("context", 256);
    let seed: u64 = options::option("seed", 1);
    let mut corpus = Corpus::new(PLAYS, seed);
    let plain = Device::default();
    plain.seed(seed);
    let device = plain.clone().autodiff();
    let mut model = GptConfig::new(corpus.vocabulary(), context)
        .with_layers(options::option("layers", 6))
        .with_width(options::option("width", 384))
        .with_heads(options::option("heads", 6))
        .init(&device);
    println!("{} parameters, {} characters of {} kinds", model.num_params(), PLAYS.len(), corpus.vocabulary());

    let mut optimizer = AdamWConfig::new().with_weight_decay(0.1).with_beta_2(0.99).init();
    let bar = ProgressBar::new(steps as u64).with_style(ProgressStyle::with_template("{bar:30} {pos:>5}/{len} {msg}  {eta} left")?);
    let start = Instant::now();
    for step in 0..steps {
        let (input, target) = corpus.training(batch, context, &device);
        let loss = model.loss(input, target);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(rate(step, steps), model, gradients);
        let speed = ((step + 1) * batch * context) as f64 / start.elapsed().as_secs_f64();
        bar.inc(1);
        bar.set_message(format!("loss {:.4}  {speed:.0} tokens/s", loss.into_scalar::<f32>()));
        if (step + 1) % 50 == 0 || step + 1 == steps {
            let held_out = evaluate(&model.valid(), &mut corpus, batch, &plain);
            let line = format!("step {:>5}  held-out loss {held_out:.4}  {speed:.0} tokens/s", step + 1);
            bar.suspend(|| println!("{line}"));
        }
    }
    bar.finish_and_clear();
    println!("trained in {:.1} s\n", start.elapsed().as_secs_f64());

    let model = model.valid();
    let prompt: String = options::option("prompt", "HAMLET:\n".to_string());
    let length: usize = options::option("sample", 400);
    println!("{}", model.sample(&mut corpus, &prompt, length, 0.8, &plain)?);
    Ok(())
}
