//! A model of many layers, written for Burn 0.22: the same file was compiled against the published crate (`compat/layers`) to make the samples in `data/burn`.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::attention::{CrossAttention, CrossAttentionConfig, MhaInput, MultiHeadAttention, MultiHeadAttentionConfig};
use burn::nn::conv::{Conv1d, Conv1dConfig, Conv2d, Conv2dConfig, ConvTranspose2d, ConvTranspose2dConfig};
use burn::nn::transformer::{
    TransformerDecoder, TransformerDecoderConfig, TransformerDecoderInput, TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::nn::{
    BatchNorm, BatchNormConfig, BiLstm, BiLstmConfig, Embedding, EmbeddingConfig, GroupNorm, GroupNormConfig, Gru, GruConfig, InstanceNorm,
    InstanceNormConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, LinearLayout, Lstm, LstmConfig, PaddingConfig1d, PaddingConfig2d, RmsNorm,
    RmsNormConfig, Rnn, RnnConfig, RotaryEncoding, RotaryEncodingConfig,
};
use burn::tensor::{Device, Int, Tensor};

/// Layers whose records and results are compared.
#[derive(Module, Debug)]
pub struct Zoo {
    row: Linear,
    column: Linear,
    embedding: Embedding,
    conv1: Conv1d,
    conv2: Conv2d,
    back: ConvTranspose2d,
    batch: BatchNorm,
    group: GroupNorm,
    instance: InstanceNorm,
    layer: LayerNorm,
    rms: RmsNorm,
    rnn: Rnn,
    gru: Gru,
    lstm: Lstm,
    both: BiLstm,
    attention: MultiHeadAttention,
    cross: CrossAttention,
    rope: RotaryEncoding,
    post: TransformerEncoder,
    pre: TransformerEncoder,
    decoder_post: TransformerDecoder,
    decoder_pre: TransformerDecoder,
}

/// Gives every parameter numbers that are its own, in the order of visits.
struct Fill(i64);

impl ModuleMapper for Fill {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let number = self.0;
        self.0 += 1;
        param.map(|tensor| {
            let shape = tensor.shape();
            let count = shape.num_elements() as i64;
            // All positive, as variances have to be.
            let values: Vec<f32> = (0..count).map(|i| ((i * 7 + number * 13) % 61) as f32 / 64.0 + 0.0625).collect();
            Tensor::<1>::from_floats(values.as_slice(), &tensor.device()).reshape(shape) - 0.375 * (number % 2) as f32
        })
    }
}

/// The variances must stay positive: the fill of odd numbers is not.
struct Positive;

impl ModuleMapper for Positive {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(Tensor::abs)
    }
}

impl Zoo {
    /// The model, with parameters that depend on nothing.
    pub fn new(device: &Device) -> Self {
        let mut zoo = Self::blank(device).map(&mut Fill(0));
        zoo.batch = zoo.batch.map(&mut Positive);
        zoo
    }

    /// The model, its parameters drawn.
    pub fn blank(device: &Device) -> Self {
        let encoder = |first| TransformerEncoderConfig::new(4, 6, 2, 1).with_dropout(0.0).with_norm_first(first).init(device);
        let decoder = |first| TransformerDecoderConfig::new(4, 6, 2, 1).with_dropout(0.0).with_norm_first(first).init(device);
        Self {
            row: LinearConfig::new(4, 3).init(device),
            column: LinearConfig::new(4, 3).with_layout(LinearLayout::Col).init(device),
            embedding: EmbeddingConfig::new(5, 4).init(device),
            conv1: Conv1dConfig::new(4, 2, 3).with_padding(PaddingConfig1d::Same).init(device),
            conv2: Conv2dConfig::new([2, 4], [2, 3]).with_groups(2).with_padding(PaddingConfig2d::Explicit(1, 0, 0, 2)).init(device),
            back: ConvTranspose2dConfig::new([4, 2], [2, 2]).with_stride([2, 1]).with_padding_out([1, 0]).init(device),
            batch: BatchNormConfig::new(4).init(device),
            group: GroupNormConfig::new(2, 4).with_epsilon(0.1).init(device),
            instance: InstanceNormConfig::new(4).init(device),
            layer: LayerNormConfig::new(4).with_epsilon(0.1).init(device),
            rms: RmsNormConfig::new(4).with_epsilon(0.1).init(device),
            rnn: RnnConfig::new(4, 2, true).init(device),
            gru: GruConfig::new(4, 2, true).init(device),
            lstm: LstmConfig::new(4, 2, true).init(device),
            both: BiLstmConfig::new(4, 2, true).init(device),
            attention: MultiHeadAttentionConfig::new(4, 2).with_dropout(0.0).init(device),
            cross: CrossAttentionConfig::new(4, 4, 2, 1, 2).with_dropout(0.0).init(device),
            rope: RotaryEncodingConfig::new(8, 4).init(device),
            post: encoder(false),
            pre: encoder(true),
            decoder_post: decoder(false),
            decoder_pre: decoder(true),
        }
    }

    /// What each layer computes, by name.
    pub fn outputs(&self, device: &Device) -> Vec<(&'static str, Vec<f32>)> {
        let numbers = |count: i64| Tensor::<1, Int>::arange(0..count, device).float().sin();
        let rows = numbers(24).reshape([2, 3, 4]);
        let memory = numbers(40).reshape([2, 5, 4]) * 0.5;
        let image = numbers(72).reshape([1, 2, 6, 6]);
        let channels = numbers(48).reshape([2, 4, 6]);
        let three = |tensor: Tensor<3>| tensor.into_data().try_to_vec::<f32>().unwrap();
        let four = |tensor: Tensor<4>| tensor.into_data().try_to_vec::<f32>().unwrap();
        let convolved = self.conv2.forward(image);
        vec![
            ("row", three(self.row.forward(rows.clone()))),
            ("column", three(self.column.forward(rows.clone()))),
            ("embedding", three(self.embedding.forward(Tensor::from_ints([[0, 4, 2], [1, 1, 3]], device)))),
            ("conv1", three(self.conv1.forward(channels.clone()))),
            ("conv2", four(convolved.clone())),
            ("back", four(self.back.forward(convolved))),
            ("batch", three(self.batch.forward(channels.clone()))),
            ("group", three(self.group.forward(channels.clone()))),
            ("instance", three(self.instance.forward(channels))),
            ("layer", three(self.layer.forward(rows.clone()))),
            ("rms", three(self.rms.forward(rows.clone()))),
            ("rnn", three(self.rnn.forward(rows.clone(), None).0)),
            ("gru", three(self.gru.forward(rows.clone(), None))),
            ("lstm", three(self.lstm.forward(rows.clone(), None).0)),
            ("both", three(self.both.forward(rows.clone(), None).0)),
            ("attention", three(self.attention.forward(MhaInput::self_attn(rows.clone())).context)),
            ("cross", three(self.cross.forward(rows.clone(), memory.clone(), None))),
            ("rope", three(self.rope.forward(rows.clone()))),
            ("post", three(self.post.forward(TransformerEncoderInput::new(rows.clone())))),
            ("pre", three(self.pre.forward(TransformerEncoderInput::new(rows.clone())))),
            ("decoder_post", three(self.decoder_post.forward(TransformerDecoderInput::new(rows.clone(), memory.clone())))),
            ("decoder_pre", three(self.decoder_pre.forward(TransformerDecoderInput::new(rows, memory)))),
        ]
    }
}
