//! The model: token and position embeddings, pre-norm transformer blocks, a linear head.

use crate::text::Corpus;
use kiln::nn::loss::CrossEntropyLossConfig;
use kiln::nn::{Embedding, EmbeddingConfig, Initializer, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use kiln::prelude::*;
use kiln::tensor::activation::{gelu, softmax};
use kiln::tensor::module::attention;
use kiln::tensor::ops::AttentionModuleOptions;
use std::error::Error;

/// The sizes of a [`Gpt`].
#[derive(Config, Debug)]
pub struct GptConfig {
    /// How many different tokens there are.
    pub vocabulary: usize,
    /// The longest sequence.
    pub context: usize,
    /// Blocks.
    #[config(default = 6)]
    pub layers: usize,
    /// Width of the residual stream.
    #[config(default = 384)]
    pub width: usize,
    /// Attention heads.
    #[config(default = 6)]
    pub heads: usize,
}

/// What all weight matrices start from.
const NORMAL: Initializer = Initializer::Normal { mean: 0.0, std: 0.02 };

impl GptConfig {
    /// A model with random weights.
    pub fn init(&self, device: &Device) -> Gpt {
        Gpt {
            tokens: EmbeddingConfig::new(self.vocabulary, self.width).with_initializer(NORMAL).init(device),
            places: EmbeddingConfig::new(self.context, self.width).with_initializer(NORMAL).init(device),
            blocks: (0..self.layers).map(|_| Block::new(self, device)).collect(),
            norm: LayerNormConfig::new(self.width).init(device),
            head: self.linear(self.width, self.vocabulary, device),
            context: self.context,
        }
    }

    fn linear(&self, inputs: usize, outputs: usize, device: &Device) -> Linear {
        LinearConfig::new(inputs, outputs).with_bias(false).with_initializer(NORMAL).init(device)
    }
}

/// One transformer block.
#[derive(Module, Debug)]
struct Block {
    norm1: LayerNorm,
    qkv: Linear,
    project: Linear,
    norm2: LayerNorm,
    up: Linear,
    down: Linear,
    heads: usize,
}

impl Block {
    fn new(config: &GptConfig, device: &Device) -> Self {
        let width = config.width;
        Self {
            norm1: LayerNormConfig::new(width).init(device),
            qkv: config.linear(width, 3 * width, device),
            project: config.linear(width, width, device),
            norm2: LayerNormConfig::new(width).init(device),
            up: config.linear(width, 4 * width, device),
            down: config.linear(4 * width, width, device),
            heads: config.heads,
        }
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [batch, time, width] = x.dims();
        let qkv = self.qkv.forward(self.norm1.forward(x.clone()));
        let [q, k, v] = [0, 1, 2].map(|i| {
            let part = qkv.clone().narrow(2, i * width, width);
            part.reshape([batch, time, self.heads, width / self.heads]).swap_dims(1, 2)
        });
        let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
        let y = attention(q, k, v, None, None, options);
        let x = x + self.project.forward(y.swap_dims(1, 2).reshape([batch, time, width]));
        let y = self.down.forward(gelu(self.up.forward(self.norm2.forward(x.clone()))));
        x + y
    }
}

/// A character-level GPT.
#[derive(Module, Debug)]
pub struct Gpt {
    tokens: Embedding,
    places: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
    context: usize,
}

impl Gpt {
    /// The longest sequence.
    pub fn context(&self) -> usize {
        self.context
    }

    /// `[batch, time]` tokens to `[batch, time, vocabulary]` logits.
    pub fn forward(&self, input: Tensor<2, Int>) -> Tensor<3> {
        let time = input.dims()[1] as i64;
        let places = Tensor::<1, Int>::arange(0..time, &input.device()).unsqueeze::<2>();
        let mut x = self.tokens.forward(input) + self.places.forward(places);
        for block in &self.blocks {
            x = block.forward(x);
        }
        self.head.forward(self.norm.forward(x))
    }

    /// The mean cross-entropy of predicting each next token.
    pub fn loss(&self, input: Tensor<2, Int>, target: Tensor<2, Int>) -> Tensor<1> {
        let logits = self.forward(input).flatten::<2>(0, 1);
        let entropy = CrossEntropyLossConfig::new().init(&logits.device());
        entropy.forward(logits, target.flatten::<1>(0, 1))
    }

    /// Continues `prompt` by `length` characters. The window always has the full context, so every step replays one program; what lies after the last character is
    /// hidden from it by causality.
    pub fn sample(&self, corpus: &mut Corpus, prompt: &str, length: usize, temperature: f64, device: &Device) -> Result<String, Box<dyn Error>> {
        let mut tokens = corpus.encode(prompt);
        if tokens.is_empty() {
            return Err("the prompt has no character of the text".into());
        }
        for _ in 0..length {
            let seen = &tokens[tokens.len().saturating_sub(self.context)..];
            let mut window = seen.to_vec();
            window.resize(self.context, 0);
            let input = Tensor::from_data(TensorData::new(window, [1, self.context]), device);
            let logits = self.forward(input).narrow(1, seen.len() - 1, 1).flatten::<2>(0, 1);
            let chances = softmax(logits / temperature, 1).into_data().try_to_vec_as::<f32>()?;
            let mut left = corpus.uniform() as f32;
            let next = chances.iter().position(|chance| {
                left -= chance;
                left <= 0.0
            });
            tokens.push(next.unwrap_or(chances.len() - 1) as i64);
        }
        Ok(corpus.decode(&tokens))
    }
}
