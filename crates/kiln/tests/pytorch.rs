//! Modules and optimizers that go on from what PyTorch saved.

use kiln::module::{Module, ModuleMapper, Param};
use kiln::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig, generate_autoregressive_mask};
use kiln::nn::conv::{Conv2d, Conv2dConfig};
use kiln::nn::transformer::{TransformerDecoderConfig, TransformerDecoderInput, TransformerEncoderConfig, TransformerEncoderInput};
use kiln::nn::{BatchNorm, BatchNormConfig, Gru, GruConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, Lstm, LstmConfig};
use kiln::optim::decay::WeightDecayConfig;
use kiln::optim::momentum::MomentumConfig;
use kiln::optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer, SgdConfig};
use kiln::store::pytorch::{PytorchOptimizer, PytorchReader};
use kiln::store::{ModuleSnapshot, PytorchStore, bridge};
use kiln::tensor::{Device, Tensor, Tolerance};

fn sample(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kiln-store/tests/data/pytorch").join(name)
}

#[derive(Module, Debug)]
struct Net {
    conv: Conv2d,
    norm: BatchNorm,
    layers: Vec<Linear>,
    rnn: Lstm,
    gru: Gru,
    attention: MultiHeadAttention,
}

fn tensor<const D: usize>(reader: &PytorchReader, name: &str, device: &Device) -> Tensor<D> {
    let stored = reader.get(name).unwrap_or_else(|| panic!("no `{name}`"));
    Tensor::from_data(bridge::into_data(bridge::from_pytorch(stored.clone())).unwrap(), device)
}

#[test]
fn a_state_dict_computes_what_pytorch_computes() {
    let device = Device::default();
    let mut net = Net {
        conv: Conv2dConfig::new([2, 3], [2, 2]).init(&device),
        norm: BatchNormConfig::new(3).init(&device),
        layers: vec![LinearConfig::new(4, 3).init(&device), LinearConfig::new(3, 2).with_bias(false).init(&device)],
        rnn: LstmConfig::new(2, 3, true).init(&device),
        gru: GruConfig::new(2, 2, true).init(&device),
        attention: MultiHeadAttentionConfig::new(4, 2).init(&device),
    };
    let result = net.load_from(&mut PytorchStore::from_file(sample("net.pt"))).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.unused, ["norm.num_batches_tracked"]);
    let saved = PytorchReader::new(sample("net_outputs.pt")).unwrap();
    let image = tensor::<4>(&saved, "image", &device);
    let (rows, sequence) = (tensor::<3>(&saved, "rows", &device), tensor::<3>(&saved, "sequence", &device));
    let same = |found: kiln::tensor::TensorData, name: &str| {
        let expected = tensor_data(&saved, name);
        found.assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-4, 1e-5));
    };
    same(net.norm.forward(net.conv.forward(image)).into_data(), "outputs.norm");
    let hidden = net.layers[0].forward(rows.clone()).clamp_min(0.0);
    same(net.layers[1].forward(hidden).into_data(), "outputs.layers");
    same(net.rnn.forward(sequence.clone(), None).0.into_data(), "outputs.rnn");
    same(net.gru.forward(sequence, None).into_data(), "outputs.gru");
    same(net.attention.forward(MhaInput::self_attn(rows / 4.0)).context.into_data(), "outputs.attention");
}

fn tensor_data(reader: &PytorchReader, name: &str) -> kiln::tensor::TensorData {
    bridge::into_data(bridge::from_pytorch(reader.get(name).unwrap().clone())).unwrap()
}

#[derive(Module, Debug)]
struct Small {
    linear: Linear,
    norm: LayerNorm,
}

#[derive(Module, Debug)]
struct Recurrent {
    rnn: Lstm,
    head: Linear,
}

/// The values of parameter `number` in the samples, in PyTorch's order and form.
fn fill(count: usize, number: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + number * 13) % 64) as f32 * 0.125 - 4.0).collect()
}

/// Takes two steps from the third and compares with the parameters that PyTorch had after the fifth.
fn go_on<M: Module>(name: &str, mut model: M, optimizer: ModuleOptimizer, lr: f64, gradients: impl Fn(&M, usize) -> GradientsParams) {
    let file = sample(name);
    let load = |model: &mut M, key: &str| {
        model.load_from(&mut PytorchStore::from_file(&file).with_top_level_key(key)).unwrap_or_else(|error| panic!("{name}: {error}"));
    };
    load(&mut model, "model");
    let mut expected = model.clone();
    load(&mut expected, "after");
    let record = PytorchOptimizer::with_top_level_key(&file, "optimizer").and_then(|saved| saved.record(&model));
    let mut optimizer = optimizer.from_bytes(record.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    for step in 3..5 {
        let gradients = gradients(&model, step);
        model = optimizer.step(lr, model, gradients);
    }
    for (found, expected) in model.collect(None, None, false).iter().zip(expected.collect(None, None, false)) {
        let (found, expected) = (bridge::to_data(found).unwrap(), bridge::into_data(expected).unwrap());
        found.assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(2e-6, 2e-6));
    }
}

fn halved<const D: usize>(shape: [usize; D], number: usize) -> Tensor<D> {
    let values = fill(shape.iter().product(), number);
    Tensor::<1>::from_floats(values.as_slice(), &Device::default()).reshape(shape) * 0.5
}

fn small_gradients(model: &Small, step: usize) -> GradientsParams {
    let mut gradients = GradientsParams::new();
    gradients.register(model.linear.weight.id, halved([2, 3], step).transpose());
    gradients.register(model.linear.bias.as_ref().unwrap().id, halved([2], step + 1));
    gradients.register(model.norm.gamma.id, halved([2], step + 2));
    gradients.register(model.norm.beta.as_ref().unwrap().id, halved([2], step + 3));
    gradients
}

#[test]
fn optimizers_go_on_where_pytorch_ended() {
    let device = Device::default().autodiff();
    let small = || Small { linear: LinearConfig::new(3, 2).init(&device), norm: LayerNormConfig::new(2).init(&device) };
    let adam = AdamConfig::new().with_weight_decay(Some(WeightDecayConfig::new(0.01))).init();
    go_on("adam.pt", small(), adam, 0.1, small_gradients);
    go_on("amsgrad.pt", small(), AdamConfig::new().with_amsgrad(true).init(), 0.1, small_gradients);
    let adamw = AdamWConfig::new().with_beta_1(0.8).with_beta_2(0.95).with_epsilon(1e-6).with_weight_decay(0.1).init();
    go_on("adamw.pt", small(), adamw, 0.1, small_gradients);
    let sgd = SgdConfig::new().with_momentum(Some(MomentumConfig::new())).init();
    go_on("sgd.pt", small(), sgd, 0.1, small_gradients);
}

/// Registers the gradients of a packed parameter part by part.
struct Parts<'a> {
    gradients: &'a mut GradientsParams,
    step: usize,
}

impl Parts<'_> {
    fn gate(&mut self, gate: &kiln::nn::GateController, part: usize) {
        let sides = [(&gate.input_transform, 0, 2), (&gate.hidden_transform, 1, 1)];
        for (linear, number, width) in sides {
            let weight = halved([4, width], self.step + number).slice([part..part + 1, 0..width]);
            self.gradients.register(linear.weight.id, weight.transpose());
            let bias = halved([4], self.step + number + 2).narrow(0, part, 1);
            self.gradients.register(linear.bias.as_ref().unwrap().id, bias);
        }
    }
}

#[test]
fn packed_parameters_go_on_by_name() {
    let device = Device::default().autodiff();
    let model = Recurrent { rnn: LstmConfig::new(2, 1, true).init(&device), head: LinearConfig::new(1, 2).init(&device) };
    go_on("named.pt", model, AdamWConfig::new().init(), 0.1, |model, step| {
        let mut gradients = GradientsParams::new();
        let mut parts = Parts { gradients: &mut gradients, step };
        let gates = [Some(&model.rnn.input_gate), model.rnn.forget_gate.as_ref(), Some(&model.rnn.cell_gate), Some(&model.rnn.output_gate)];
        gates.into_iter().flatten().enumerate().for_each(|(part, gate)| parts.gate(gate, part));
        gradients.register(model.head.weight.id, halved([2, 1], step + 4).transpose());
        gradients.register(model.head.bias.as_ref().unwrap().id, halved([2], step + 5));
        gradients
    });
}

/// Makes every parameter another one.
struct Shift;

impl ModuleMapper for Shift {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor + 1.0)
    }
}

#[test]
fn a_file_that_does_not_fit_leaves_the_module_as_it_was() {
    let device = Device::default();
    let mut small = Small { linear: LinearConfig::new(2, 2).init(&device), norm: LayerNormConfig::new(2).init(&device) }.map(&mut Shift);
    let before = small.linear.weight.val().into_data();
    let error = small.load_from(&mut PytorchStore::from_file(sample("adam.pt")).with_top_level_key("model")).unwrap_err().to_string();
    assert!(error.contains("`linear.weight`: the module has shape [2, 2], the file [3, 2]"), "{error}");
    assert_eq!(small.linear.weight.val().into_data(), before);
}

fn transformer<M: Module>(file: &std::path::Path, key: &str, mut module: M, names: &[(&str, &str)]) -> M {
    let store = PytorchStore::from_file(file).with_top_level_key(key);
    let mut store = names.iter().fold(store, |store, (from, to)| store.with_key_remapping(from, *to));
    let result = module.load_from(&mut store).unwrap_or_else(|error| panic!("{error}"));
    assert!(result.unused.is_empty(), "{result}");
    module
}

#[test]
fn transformers_compute_what_pytorchs_compute() {
    let device = Device::default();
    for (name, first) in [("transformer_post.pt", false), ("transformer_pre.pt", true)] {
        let file = sample(name);
        let encoder = TransformerEncoderConfig::new(4, 6, 2, 2).with_dropout(0.0).with_norm_first(first).init(&device);
        let decoder = TransformerDecoderConfig::new(4, 6, 2, 2).with_dropout(0.0).with_norm_first(first).init(&device);
        let common = [(r"linear1\.", "pwff.linear_inner."), (r"linear2\.", "pwff.linear_outer.")];
        // Where norms come first, the one at the start is the last by name, as in Burn's records.
        let encoder_names = [(r"self_attn\.", "mha."), (r"\.norm1\.", ".norm_a."), (r"\.norm2\.", ".norm_b.")];
        let decoder_names =
            [(r"multihead_attn\.", "cross_attn."), (r"\.norm1\.", ".norm_a."), (r"\.norm2\.", ".norm_b."), (r"\.norm3\.", ".norm_c.")];
        let (encoder_order, decoder_order) = match first {
            true => (["norm_2", "norm_1"], ["norm_3", "norm_1", "norm_2"]),
            false => (["norm_1", "norm_2"], ["norm_1", "norm_2", "norm_3"]),
        };
        let places = ["norm_a", "norm_b", "norm_c"];
        let named = |names: &[(&'static str, &'static str)], order: &[&'static str]| {
            let order = places.into_iter().zip(order.iter().copied());
            common.iter().chain(names).copied().chain(order).collect::<Vec<_>>()
        };
        let encoder = transformer(&file, "encoder", encoder, &named(&encoder_names, &encoder_order));
        let decoder = transformer(&file, "decoder", decoder, &named(&decoder_names, &decoder_order));
        let saved = PytorchReader::new(&file).unwrap();
        let (x, memory) = (tensor::<3>(&saved, "x", &device), tensor::<3>(&saved, "memory", &device));
        let hidden = Tensor::<2, kiln::tensor::Bool>::from_data([[false; 5], [false, false, false, true, true]], &device);
        let same = |found: Tensor<3>, name: &str| {
            let expected = tensor_data(&saved, name);
            found.into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-4, 1e-4));
        };
        // What is computed for hidden positions of the memory themselves is no one's concern.
        let encoded = encoder.forward(TransformerEncoderInput::new(memory.clone()).mask_pad(hidden.clone()));
        let expected = Tensor::<3>::from_data(tensor_data(&saved, "encoded"), &device);
        let kept = |tensor: Tensor<3>| tensor.slice([1..2, 0..3, 0..4]).into_data();
        kept(encoded.clone()).assert_approx_eq::<f32>(&kept(expected.clone()), Tolerance::rel_abs(1e-4, 1e-4));
        let whole = |tensor: Tensor<3>| tensor.slice([0..1, 0..5, 0..4]).into_data();
        whole(encoded).assert_approx_eq::<f32>(&whole(expected), Tolerance::rel_abs(1e-4, 1e-4));
        let causal = generate_autoregressive_mask(2, 3, &device);
        let input = TransformerDecoderInput::new(x, memory).target_mask_attn(causal).memory_mask_pad(hidden);
        same(decoder.forward(input), "decoded");
    }
}
