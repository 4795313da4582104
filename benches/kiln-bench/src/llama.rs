//! A Llama-shaped decoder of 1.2 billion parameters in bf16, one token at a time with a cache of keys and values.

use kiln::tensor::module::attention;
use kiln::tensor::ops::AttentionModuleOptions;
use kiln::tensor::{Bool, DType, Device, Distribution, Int, Tensor};

/// Blocks, width, query heads, key heads, width of the feed-forward part, tokens known, length of the cache.
const LAYERS: usize = 16;
const WIDTH: usize = 2048;
const HEADS: usize = 32;
const KEYS: usize = 8;
const INNER: usize = 8192;
const VOCAB: usize = 128_256;
const LENGTH: usize = 1024;
const HEAD: usize = 64;
/// Blocks after which the device is told to start.
const STARTED: usize = 4;

struct Block {
    qkv: Tensor<2>,
    out: Tensor<2>,
    up: Tensor<2>,
    down: Tensor<2>,
    n1: Tensor<2>,
    n2: Tensor<2>,
    keys: Tensor<4>,
    values: Tensor<4>,
}

/// The model with its caches.
pub struct Llama {
    blocks: Vec<Block>,
    words: Tensor<2>,
    cos: Tensor<2>,
    sin: Tensor<2>,
}

fn norm(x: Tensor<2>, scale: &Tensor<2>) -> Tensor<2> {
    let x = x.cast(DType::F32);
    let size = x.clone().powf_scalar(2.0).mean_dim(1).add_scalar(1e-6).sqrt();
    (x / size).cast(DType::BF16) * scale.clone()
}

/// Turns pairs of each head by the position's angles.
fn rotate(x: Tensor<4>, cos: &Tensor<4>, sin: &Tensor<4>) -> Tensor<4> {
    let (a, b) = (x.clone().narrow(3, 0, HEAD / 2), x.narrow(3, HEAD / 2, HEAD / 2));
    Tensor::cat(vec![a.clone() * cos.clone() - b.clone() * sin.clone(), b * cos.clone() + a * sin.clone()], 3)
}

impl Llama {
    /// Random weights.
    pub fn new(device: &Device) -> Self {
        fn random<const D: usize>(dims: [usize; D], device: &Device) -> Tensor<D> {
            let x: Tensor<D> = Tensor::<D>::random(dims, Distribution::Normal(0.0, 0.02), device).cast(DType::BF16);
            device.sync().unwrap_or_else(|e| panic!("{e}"));
            x
        }
        let block = || Block {
            qkv: random([WIDTH, (HEADS + 2 * KEYS) * HEAD], device),
            out: random([WIDTH, WIDTH], device),
            up: random([WIDTH, 2 * INNER], device),
            down: random([INNER, WIDTH], device),
            n1: random([1, WIDTH], device),
            n2: random([1, WIDTH], device),
            keys: random([1, KEYS, LENGTH, HEAD], device),
            values: random([1, KEYS, LENGTH, HEAD], device),
        };
        Self {
            blocks: (0..LAYERS).map(|_| block()).collect(),
            words: random([VOCAB, WIDTH], device),
            cos: random([LENGTH, HEAD / 2], device),
            sin: random([LENGTH, HEAD / 2], device),
        }
    }

    /// Bytes that every token must read.
    pub fn bytes() -> f64 {
        let block = WIDTH * (HEADS + 2 * KEYS) * HEAD + WIDTH * WIDTH + 3 * WIDTH * INNER + 2 * WIDTH + 2 * KEYS * LENGTH * HEAD;
        2.0 * (LAYERS * block + VOCAB * WIDTH) as f64
    }

    /// The most likely token after `token` at `pos`: `[1]` to `[1, 1]`.
    pub fn decode(&mut self, token: Tensor<1, Int>, pos: usize) -> Tensor<2, Int> {
        let device = token.device();
        let mut x = self.words.clone().select(0, token);
        let [cos, sin] = [&self.cos, &self.sin].map(|t| t.clone().narrow(0, pos, 1).reshape([1, 1, 1, HEAD / 2]));
        let hidden: Tensor<4, Bool> = Tensor::<1, Int>::arange(0..LENGTH as i64, &device).greater_elem(pos as i64).reshape([1, 1, 1, LENGTH]);
        for (n, b) in self.blocks.iter_mut().enumerate() {
            if n > 0 && n % STARTED == 0 {
                // The device starts on the first blocks while the others are recorded.
                device.flush().unwrap_or_else(|e| panic!("{e}"));
            }
            let qkv = norm(x.clone(), &b.n1).matmul(b.qkv.clone());
            let part = |from: usize, heads: usize| qkv.clone().narrow(1, from * HEAD, heads * HEAD).reshape([1, heads, 1, HEAD]);
            let (q, k, v) = (rotate(part(0, HEADS), &cos, &sin), rotate(part(HEADS, KEYS), &cos, &sin), part(HEADS + KEYS, KEYS));
            let at = [0..1, 0..KEYS, pos..pos + 1, 0..HEAD];
            b.keys = b.keys.clone().slice_assign(at.clone(), k);
            b.values = b.values.clone().slice_assign(at, v);
            let y = attention(q, b.keys.clone(), b.values.clone(), Some(hidden.clone()), None, AttentionModuleOptions::default());
            x = x + y.reshape([1, WIDTH]).matmul(b.out.clone());
            let h = norm(x.clone(), &b.n2).matmul(b.up.clone());
            let (gate, up) = (h.clone().narrow(1, 0, INNER), h.narrow(1, INNER, INNER));
            x = x + (kiln::tensor::activation::silu(gate) * up).matmul(b.down.clone());
        }
        x.matmul(self.words.clone().transpose()).argmax(1)
    }
}
