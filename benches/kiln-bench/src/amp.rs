//! A GPT whose weights are kept in f32 and used in bf16, of any size.

use kiln::module::Module;
use kiln::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use kiln::tensor::activation::gelu_approximate;
use kiln::tensor::module::attention;
use kiln::tensor::ops::AttentionModuleOptions;
use kiln::tensor::{DType, Device, Int, Tensor};

/// Sizes of a model.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Tokens known.
    pub vocab: usize,
    /// Longest sequence.
    pub length: usize,
}

#[derive(Module, Debug)]
struct Block {
    n1: LayerNorm,
    n2: LayerNorm,
    qkv: Linear,
    proj: Linear,
    up: Linear,
    down: Linear,
}

/// `x w + b` in bf16.
fn linear(layer: &Linear, x: Tensor<3>) -> Tensor<3> {
    let y = x.matmul(layer.weight.val().cast(DType::BF16).unsqueeze());
    match &layer.bias {
        Some(bias) => y + bias.val().cast(DType::BF16).unsqueeze(),
        None => y,
    }
}

/// A norm computed in f32.
fn norm(layer: &LayerNorm, x: Tensor<3>) -> Tensor<3> {
    layer.forward(x.cast(DType::F32)).cast(DType::BF16)
}

impl Block {
    fn new(sizes: Sizes, device: &Device) -> Self {
        let d = sizes.width;
        let linear = |i, o| LinearConfig::new(i, o).init(device);
        let norm = || LayerNormConfig::new(d).init(device);
        Self { n1: norm(), n2: norm(), qkv: linear(d, 3 * d), proj: linear(d, d), up: linear(d, 4 * d), down: linear(4 * d, d) }
    }

    fn forward(&self, x: Tensor<3>, heads: usize) -> Tensor<3> {
        let [b, t, d] = x.dims();
        let qkv = linear(&self.qkv, norm(&self.n1, x.clone()));
        let [q, k, v] = [0, 1, 2].map(|i| qkv.clone().narrow(2, i * d, d).reshape([b, t, heads, d / heads]).swap_dims(1, 2));
        let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
        let y = attention(q, k, v, None, None, options).swap_dims(1, 2).reshape([b, t, d]);
        let x = x + linear(&self.proj, y);
        let h = linear(&self.down, gelu_approximate(linear(&self.up, norm(&self.n2, x.clone()))));
        x + h
    }
}

/// The model; the last layer is the embedding's transpose.
#[derive(Module, Debug)]
pub struct Gpt {
    tok: Embedding,
    pos: Embedding,
    blocks: Vec<Block>,
    last: LayerNorm,
    heads: usize,
}

impl Gpt {
    /// A model with random weights.
    pub fn new(sizes: Sizes, device: &Device) -> Self {
        Self {
            tok: EmbeddingConfig::new(sizes.vocab, sizes.width).init(device),
            pos: EmbeddingConfig::new(sizes.length, sizes.width).init(device),
            blocks: (0..sizes.layers).map(|_| Block::new(sizes, device)).collect(),
            last: LayerNormConfig::new(sizes.width).init(device),
            heads: sizes.heads,
        }
    }

    /// `[batch, time]` tokens to `[batch * time, vocab]` logits in f32.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<2> {
        let [b, t] = tokens.dims();
        let positions = Tensor::<1, Int>::arange(0..t as i64, &tokens.device()).unsqueeze::<2>();
        let mut x = (self.tok.forward(tokens) + self.pos.forward(positions)).cast(DType::BF16);
        for block in &self.blocks {
            x = block.forward(x, self.heads);
        }
        let [_, _, d] = x.dims();
        let x = norm(&self.last, x).reshape([b * t, d]);
        x.matmul(self.tok.weight.val().cast(DType::BF16).transpose()).cast(DType::F32)
    }
}
