//! A GPT of 10.8 million parameters: six layers, width 384, six heads, context 256.

use kiln::module::Module;
use kiln::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use kiln::tensor::activation::gelu;
use kiln::tensor::module::attention;
use kiln::tensor::ops::AttentionModuleOptions;
use kiln::tensor::{Bool, Device, Int, Tensor};

/// Width of the residual stream.
pub const WIDTH: usize = 384;
/// Attention heads.
pub const HEADS: usize = 6;
/// Blocks.
pub const LAYERS: usize = 6;
/// Longest sequence.
pub const SEQ: usize = 256;
/// Tokens known.
pub const VOCAB: usize = 65;

const HEAD: usize = WIDTH / HEADS;

/// Keys and values of one layer so far: `[1, heads, capacity, head]` each.
#[derive(Clone)]
pub struct Cache {
    keys: Tensor<4>,
    values: Tensor<4>,
}

impl Cache {
    /// An empty cache for `capacity` tokens.
    pub fn new(capacity: usize, device: &Device) -> Self {
        let empty = || Tensor::zeros([1, HEADS, capacity, HEAD], device);
        Self { keys: empty(), values: empty() }
    }

    /// Writes keys and values at `pos` and returns all.
    fn push(&mut self, k: Tensor<4>, v: Tensor<4>, pos: usize) -> (Tensor<4>, Tensor<4>) {
        let t = k.dims()[2];
        let at = [0..1, 0..HEADS, pos..pos + t, 0..HEAD];
        self.keys = self.keys.clone().slice_assign(at.clone(), k);
        self.values = self.values.clone().slice_assign(at, v);
        (self.keys.clone(), self.values.clone())
    }
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

impl Block {
    fn new(device: &Device) -> Self {
        let linear = |i, o| LinearConfig::new(i, o).with_bias(false).init(device);
        Self {
            n1: LayerNormConfig::new(WIDTH).init(device),
            n2: LayerNormConfig::new(WIDTH).init(device),
            qkv: linear(WIDTH, 3 * WIDTH),
            proj: linear(WIDTH, WIDTH),
            up: linear(WIDTH, 4 * WIDTH),
            down: linear(4 * WIDTH, WIDTH),
        }
    }

    /// Query, key and value heads of `x`: `[batch, heads, time, head]` each.
    fn heads(&self, x: Tensor<3>) -> [Tensor<4>; 3] {
        let [b, t, _] = x.dims();
        let qkv = self.qkv.forward(self.n1.forward(x));
        [0, 1, 2].map(|i| qkv.clone().narrow(2, i * WIDTH, WIDTH).reshape([b, t, HEADS, HEAD]).swap_dims(1, 2))
    }

    /// The rest of the block after attention gave `y`.
    fn finish(&self, x: Tensor<3>, y: Tensor<4>) -> Tensor<3> {
        let [b, t, _] = x.dims();
        let x = x + self.proj.forward(y.swap_dims(1, 2).reshape([b, t, WIDTH]));
        let h = self.down.forward(gelu(self.up.forward(self.n2.forward(x.clone()))));
        x + h
    }

    fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [q, k, v] = self.heads(x.clone());
        let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
        self.finish(x, attention(q, k, v, None, None, options))
    }

    fn decode(&self, x: Tensor<3>, pos: usize, hidden: Tensor<4, Bool>, cache: &mut Cache) -> Tensor<3> {
        let [q, k, v] = self.heads(x.clone());
        let (k, v) = cache.push(k, v, pos);
        self.finish(x, attention(q, k, v, Some(hidden), None, AttentionModuleOptions::default()))
    }
}

/// The model.
#[derive(Module, Debug)]
pub struct Gpt {
    tok: Embedding,
    pos: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    head: Linear,
}

impl Gpt {
    /// A model with random weights.
    pub fn new(device: &Device) -> Self {
        Self {
            tok: EmbeddingConfig::new(VOCAB, WIDTH).init(device),
            pos: EmbeddingConfig::new(SEQ, WIDTH).init(device),
            blocks: (0..LAYERS).map(|_| Block::new(device)).collect(),
            norm: LayerNormConfig::new(WIDTH).init(device),
            head: LinearConfig::new(WIDTH, VOCAB).with_bias(false).init(device),
        }
    }

    /// `[batch, time]` tokens to `[batch, time, vocab]` logits.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let t = tokens.dims()[1] as i64;
        let positions = Tensor::<1, Int>::arange(0..t, &tokens.device()).unsqueeze::<2>();
        let mut x = self.tok.forward(tokens) + self.pos.forward(positions);
        for block in &self.blocks {
            x = block.forward(x);
        }
        self.head.forward(self.norm.forward(x))
    }

    /// The most likely token after `token` at `pos`: `[1, 1]` to `[1, 1]`.
    pub fn decode(&self, token: Tensor<2, Int>, pos: usize, caches: &mut [Cache]) -> Tensor<2, Int> {
        let device = token.device();
        let capacity = caches[0].keys.dims()[2];
        // Positions after this one hold nothing yet.
        let hidden = Tensor::<1, Int>::arange(0..capacity as i64, &device).greater_elem(pos as i64);
        let hidden = hidden.reshape([1, 1, 1, capacity]);
        let place = self.pos.weight.val().narrow(0, pos, 1).unsqueeze::<3>();
        let mut x = self.tok.forward(token) + place;
        for (block, cache) in self.blocks.iter().zip(caches) {
            x = block.decode(x, pos, hidden.clone(), cache);
        }
        let logits = self.head.forward(self.norm.forward(x)).reshape([1, VOCAB]);
        logits.argmax(1)
    }
}
