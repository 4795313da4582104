//! The model of the `char_gpt` example at a small size learns.

use crate::model::GptConfig;
use crate::text::Corpus;
use kiln::optim::{AdamWConfig, GradientsParams};
use kiln::prelude::*;

const PLAYS: &str = include_str!("../../../examples/data/shakespeare.txt");

#[test]
fn a_small_gpt_learns_shakespeare_in_200_steps() {
    let plain = Device::default();
    plain.seed(1);
    let device = plain.clone().autodiff();
    let mut corpus = Corpus::new(PLAYS, 1);
    let config = GptConfig::new(corpus.vocabulary(), 32).with_layers(2).with_width(64).with_heads(4);
    let mut model = config.init(&device);
    let mut optimizer = AdamWConfig::new().init();
    let mut first = 0.0;
    let mut last = Vec::new();
    for step in 0..200 {
        let (input, target) = corpus.training(8, 32, &device);
        let loss = model.loss(input, target);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(3e-3, model, gradients);
        let loss = loss.into_scalar::<f32>();
        if step == 0 {
            first = loss;
        }
        if step >= 180 {
            last.push(loss);
        }
    }
    // A model that knows nothing has the loss ln(vocabulary); one that knows only the frequencies of characters about 3.2.
    let knows_nothing = (corpus.vocabulary() as f32).ln();
    assert!((first - knows_nothing).abs() < 0.3, "the first loss is {first}, not near {knows_nothing}");
    let last = last.iter().sum::<f32>() / last.len() as f32;
    assert!(last < 2.8, "the loss after 200 steps is {last}");

    let model = model.valid();
    let (input, target) = corpus.held_out(16, model.context(), &plain);
    let held_out = model.loss(input, target).into_scalar::<f32>();
    assert!(held_out < 2.8, "the held-out loss after 200 steps is {held_out}");
    let sample = model.sample(&mut corpus, "HAMLET:\n", 20, 0.8, &plain).expect("the prompt is of the text");
    assert_eq!(sample.chars().count(), 28);
    assert!(sample.starts_with("HAMLET:\n"));
}
