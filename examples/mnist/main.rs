//! Trains a small CNN on handwritten digits, saves it, loads it back and shows what it reads.
//!
//! `cargo run --release --example mnist` uses the 10,000 digits that the repository carries. Options: `--data DIR` (the full IDX files), `--epochs N`, `--batch N`, `--seed N`, `--save FILE`.

mod digits;
mod model;
#[path = "../options.rs"]
mod options;

use indicatif::{ProgressBar, ProgressStyle};
use kiln::data::dataloader::{DataLoader, DataLoaderBuilder, batcher::Batcher};
use kiln::data::dataset::Dataset;
use kiln::data::dataset::vision::{MnistDataset, MnistItem};
use kiln::nn::loss::CrossEntropyLossConfig;
use kiln::optim::{AdamConfig, GradientsParams};
use kiln::prelude::*;
use model::Model;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Images, normalised, `[batch, 1, 28, 28]`, and their digits, `[batch]`.
#[derive(Clone, Debug)]
struct Batch {
    images: Tensor<4>,
    digits: Tensor<1, Int>,
}

#[derive(Clone, Debug)]
struct ToTensors;

impl Batcher<MnistItem, Batch> for ToTensors {
    fn batch(&self, items: Vec<MnistItem>, device: &Device) -> Batch {
        let n = items.len();
        // Mean and deviation of the training pixels.
        let pixels = items.iter().flat_map(|item| item.image.iter().flatten());
        let pixels: Vec<f32> = pixels.map(|pixel| (pixel / 255.0 - 0.1307) / 0.3081).collect();
        let digits: Vec<i64> = items.iter().map(|item| i64::from(item.label)).collect();
        Batch {
            images: Tensor::from_data(TensorData::new(pixels, [n, 1, 28, 28]), device),
            digits: Tensor::from_data(TensorData::new(digits, [n]), device),
        }
    }
}

/// How many of the batch the model reads right, as a tensor: nothing is computed until it is read.
fn correct(logits: Tensor<2>, digits: Tensor<1, Int>) -> Tensor<1, Int> {
    logits.argmax(1).flatten::<1>(0, 1).equal(digits).int().sum()
}

/// The share of images that the model reads right.
fn accuracy(model: &Model, loader: &Arc<dyn DataLoader<Batch>>) -> Result<f64, Box<dyn Error>> {
    let (mut right, mut seen) = (0, 0);
    for batch in loader.iter() {
        let batch = batch?;
        seen += batch.digits.dims()[0];
        right += correct(model.forward(batch.images), batch.digits).into_scalar::<i64>();
    }
    Ok(right as f64 / seen as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let epochs: usize = options::option("epochs", 3);
    let batch_size: usize = options::option("batch", 64);
    let seed: u64 = options::option("seed", 7);
    let save: PathBuf = options::option("save", std::env::temp_dir().join("kiln-mnist.bpk"));
    let (train, test) = match options::given::<PathBuf>("data") {
        Some(folder) => (MnistDataset::train_from(&folder)?, MnistDataset::test_from(&folder)?),
        None => (MnistDataset::train(), MnistDataset::test()),
    };
    let shown: Vec<MnistItem> = (0..8).map(|i| test.get(i * (test.len() / 8))).collect::<Result<_, _>>()?;

    let plain = Device::default();
    plain.seed(seed);
    let device = plain.clone().autodiff();
    let mut model = Model::new(&device);
    println!("{model}");

    let images = train.len();
    let steps = epochs * images.div_ceil(batch_size);
    let train = DataLoaderBuilder::new(ToTensors).batch_size(batch_size).shuffle(seed).num_workers(1).set_device(device.clone()).build(train);
    let test = DataLoaderBuilder::new(ToTensors).batch_size(250).set_device(plain.clone()).build(test);

    let mut optimizer = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let style = ProgressStyle::with_template("{prefix} {bar:28} {pos:>6}/{len} {msg}  {eta} left")?;
    let mut step = 0;
    let mut training = Duration::ZERO;
    for epoch in 1..=epochs {
        let bar = ProgressBar::new(images as u64).with_style(style.clone());
        bar.set_prefix(format!("epoch {epoch}/{epochs}"));
        let start = Instant::now();
        let (mut mean_loss, mut right, mut seen) = (0.0f64, 0, 0);
        for batch in train.iter() {
            let batch = batch?;
            let n = batch.digits.dims()[0];
            let logits = model.forward(batch.images);
            let value = loss.forward(logits.clone(), batch.digits.clone());
            let hits = correct(logits, batch.digits);
            let gradients = GradientsParams::from_grads(value.backward(), &model);
            // From 2e-3 down to zero along half a cosine.
            let rate = 1e-3 * (1.0 + (std::f64::consts::PI * step as f64 / steps as f64).cos());
            model = optimizer.step(rate, model, gradients);
            step += 1;
            seen += n;
            right += hits.into_scalar::<i64>();
            mean_loss += (f64::from(value.into_scalar::<f32>()) - mean_loss) * n as f64 / seen as f64;
            bar.inc(n as u64);
            bar.set_message(format!(
                "loss {mean_loss:.4}  accuracy {:.2} %  {:.0} images/s",
                100.0 * right as f64 / seen as f64,
                seen as f64 / start.elapsed().as_secs_f64()
            ));
        }
        training += start.elapsed();
        bar.finish_and_clear();
        println!(
            "epoch {epoch}/{epochs}  loss {mean_loss:.4}  accuracy {:.2} %  test {:.2} %  {:.0} images/s",
            100.0 * right as f64 / seen as f64,
            100.0 * accuracy(&model.valid(), &test)?,
            seen as f64 / start.elapsed().as_secs_f64()
        );
    }
    println!("trained in {:.1} s", training.as_secs_f64());

    let trained = model.valid();
    let before = accuracy(&trained, &test)?;
    trained.save_file(&save)?;
    // A fresh model has other weights until the file is loaded.
    let loaded = Model::new(&plain).try_load_file(&save)?.valid();
    let after = accuracy(&loaded, &test)?;
    println!("test accuracy {:.2} % trained, {:.2} % loaded from {}", 100.0 * before, 100.0 * after, save.display());
    if before != after {
        return Err("the loaded model reads the digits differently".into());
    }

    let batch = ToTensors.batch(shown.clone(), &plain);
    let read = loaded.forward(batch.images).argmax(1).into_data().try_to_vec_as::<i64>()?;
    print!("{}", digits::draw(&shown, &read));
    Ok(())
}
