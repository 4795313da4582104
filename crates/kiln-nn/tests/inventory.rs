//! Every layer, activation, loss and initializer: that it has its file with configuration and example, and golden values with gradients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::golden;

/// Where a module's values are compared.
enum Proof {
    /// Cases of a golden file whose names begin so; each has a gradient of an input.
    Golden(&'static str, &'static str),
    /// A test, for what draws random numbers or computes nothing of its own.
    Test(&'static str, &'static str),
}
use Proof::{Golden, Test};

/// Type, file below `src`, whether there is a `TYPEConfig`, and proofs.
type Row = (&'static str, &'static str, bool, &'static [Proof]);

const LAYERS: [Row; 50] = [
    ("Linear", "linear", true, &[Golden("linear.txt", "linear")]),
    ("Embedding", "embedding", true, &[Golden("linear.txt", "embedding")]),
    ("Dropout", "dropout", true, &[Golden("layer.txt", "dropout_eval"), Test("layers.rs", "dropout_drops_its_share_and_scales_the_rest")]),
    ("GaussianNoise", "noise", true, &[Test("layers.rs", "noise_has_its_standard_deviation")]),
    ("Identity", "identity", false, &[Test("inventory.rs", "the_identity_changes_nothing")]),
    ("CosineSimilarity", "cosine_similarity", true, &[Golden("layer.txt", "cosine_similarity")]),
    ("PairwiseDistance", "pairwise_distance", true, &[Golden("layer.txt", "pairwise_distance")]),
    ("PixelShuffle", "pixel_shuffle", true, &[Golden("layer.txt", "pixel_shuffle")]),
    ("PixelUnshuffle", "pixel_unshuffle", true, &[Golden("layer.txt", "pixel_unshuffle")]),
    ("Fold4d", "fold", true, &[Golden("resize.txt", "fold")]),
    ("Unfold4d", "unfold", true, &[Golden("resize.txt", "unfold")]),
    ("PositionalEncoding", "pos_encoding", true, &[Golden("composite.txt", "positional_encoding")]),
    ("RotaryEncoding", "rope", true, &[Golden("composite.txt", "rotary_encoding")]),
    ("BatchNorm", "norm/batch", true, &[Golden("norm.txt", "batch_norm")]),
    ("GroupNorm", "norm/group", true, &[Golden("norm.txt", "group_norm")]),
    ("InstanceNorm", "norm/instance", true, &[Golden("norm.txt", "instance_norm")]),
    ("LayerNorm", "norm/layer", true, &[Golden("norm.txt", "layer_norm")]),
    ("LocalResponseNorm", "norm/local_response", true, &[Golden("norm.txt", "local_response_norm")]),
    ("RmsNorm", "norm/rms", true, &[Golden("norm.txt", "rms_norm")]),
    ("Normalization", "norm/normalization", true, &[Test("inventory.rs", "a_choice_of_norms_is_the_chosen_norm")]),
    ("Conv1d", "conv/conv1d", true, &[Golden("conv.txt", "conv1d")]),
    ("Conv2d", "conv/conv2d", true, &[Golden("conv.txt", "conv2d")]),
    ("Conv3d", "conv/conv3d", true, &[Golden("conv.txt", "conv3d")]),
    ("ConvTranspose1d", "conv/conv_transpose1d", true, &[Golden("conv.txt", "conv_transpose1d")]),
    ("ConvTranspose2d", "conv/conv_transpose2d", true, &[Golden("conv.txt", "conv_transpose2d")]),
    ("ConvTranspose3d", "conv/conv_transpose3d", true, &[Golden("conv.txt", "conv_transpose3d")]),
    ("DeformConv2d", "conv/deform_conv2d", true, &[Golden("composite.txt", "deform_conv2d")]),
    ("AdaptiveAvgPool1d", "pool/adaptive_avg_pool1d", true, &[Golden("pool.txt", "adaptive_avg_pool1d")]),
    ("AdaptiveAvgPool2d", "pool/adaptive_avg_pool2d", true, &[Golden("pool.txt", "adaptive_avg_pool2d")]),
    ("AdaptiveAvgPool3d", "pool/adaptive_avg_pool3d", true, &[Golden("pool.txt", "adaptive_avg_pool3d")]),
    ("AvgPool1d", "pool/avg_pool1d", true, &[Golden("pool.txt", "avg_pool1d")]),
    ("AvgPool2d", "pool/avg_pool2d", true, &[Golden("pool.txt", "avg_pool2d")]),
    ("MaxPool1d", "pool/max_pool1d", true, &[Golden("pool.txt", "max_pool1d")]),
    ("MaxPool2d", "pool/max_pool2d", true, &[Golden("pool.txt", "max_pool2d")]),
    (
        "Interpolate1d",
        "interpolate/interpolate1d",
        true,
        &[Golden("resize.txt", "interpolate1d_nearest"), Golden("resize.txt", "interpolate1d_linear")],
    ),
    (
        "Interpolate2d",
        "interpolate/interpolate2d",
        true,
        &[
            Golden("resize.txt", "interpolate2d_bilinear"),
            Golden("resize.txt", "interpolate2d_bicubic"),
            Golden("resize.txt", "interpolate2d_nearest"),
        ],
    ),
    ("Rnn", "rnn/basic", true, &[Golden("recurrent.txt", "rnn")]),
    ("BiRnn", "rnn/basic", true, &[Golden("composite.txt", "bi_rnn")]),
    ("Gru", "rnn/gru", true, &[Golden("recurrent.txt", "gru")]),
    ("BiGru", "rnn/gru", true, &[Golden("composite.txt", "bi_gru")]),
    ("Lstm", "rnn/lstm", true, &[Golden("recurrent.txt", "lstm")]),
    ("BiLstm", "rnn/lstm", true, &[Golden("composite.txt", "bi_lstm")]),
    ("GateController", "rnn/gate", false, &[Golden("recurrent.txt", "lstm"), Golden("recurrent.txt", "gru")]),
    ("MultiHeadAttention", "attention/multi_head", true, &[Golden("attention.txt", "multi_head_attention")]),
    ("CrossAttention", "attention/cross", true, &[Golden("composite.txt", "cross_attention")]),
    ("TransformerEncoder", "transformer/encoder", true, &[Golden("composite.txt", "transformer_encoder")]),
    ("TransformerEncoderLayer", "transformer/encoder", false, &[Golden("composite.txt", "transformer_encoder")]),
    ("TransformerDecoder", "transformer/decoder", true, &[Golden("composite.txt", "transformer_decoder")]),
    ("TransformerDecoderLayer", "transformer/decoder", false, &[Golden("composite.txt", "transformer_decoder")]),
    ("PositionWiseFeedForward", "transformer/pwff", true, &[Golden("composite.txt", "pwff")]),
];

/// Type, file below `src/activation`, whether it is configured; the golden case has the file's name.
const ACTIVATIONS: [(&str, &str, bool); 27] = [
    ("Celu", "celu", true),
    ("Elu", "elu", true),
    ("Gelu", "gelu", false),
    ("GLU", "glu", false),
    ("HardShrink", "hard_shrink", true),
    ("HardSigmoid", "hard_sigmoid", true),
    ("HardSwish", "hard_swish", false),
    ("Hardtanh", "hardtanh", true),
    ("LeakyRelu", "leaky_relu", true),
    ("LogSigmoid", "log_sigmoid", false),
    ("Mish", "mish", false),
    ("PRelu", "prelu", true),
    ("Relu", "relu", false),
    ("Relu6", "relu6", false),
    ("RRelu", "rrelu", true),
    ("Selu", "selu", false),
    ("Shrink", "shrink", true),
    ("Sigmoid", "sigmoid", false),
    ("SiLU", "silu", false),
    ("SoftShrink", "soft_shrink", true),
    ("Softplus", "softplus", true),
    ("Softsign", "softsign", false),
    ("SwiGlu", "swi_glu", true),
    ("Tanh", "tanh", false),
    ("Tanhshrink", "tanhshrink", false),
    ("Threshold", "threshold", true),
    ("ThresholdedRelu", "thresholded_relu", true),
];

const LOSSES: [Row; 17] = [
    ("BinaryCrossEntropyLoss", "loss/binary_cross_entropy", true, &[Golden("loss.txt", "binary_cross_entropy")]),
    ("CosineEmbeddingLoss", "loss/cosine_embedding", true, &[Golden("loss.txt", "cosine_embedding")]),
    ("CrossEntropyLoss", "loss/cross_entropy", true, &[Golden("loss.txt", "cross_entropy")]),
    ("CTCLoss", "loss/ctc", true, &[Golden("loss.txt", "ctc")]),
    ("GaussianNLLLoss", "loss/gaussian_nll", true, &[Golden("loss.txt", "gaussian_nll")]),
    ("HingeEmbeddingLoss", "loss/hinge_embedding", true, &[Golden("loss.txt", "hinge_embedding")]),
    ("HuberLoss", "loss/huber", true, &[Golden("loss.txt", "huber")]),
    ("KLDivLoss", "loss/kl_div", true, &[Golden("loss.txt", "kl_div")]),
    ("LpLoss", "loss/lp", true, &[Golden("loss.txt", "l1"), Golden("composite.txt", "lp")]),
    ("MarginRankingLoss", "loss/margin_ranking", true, &[Golden("loss.txt", "margin_ranking")]),
    ("MseLoss", "loss/mse", false, &[Golden("loss.txt", "mse")]),
    ("MultiMarginLoss", "loss/multi_margin", true, &[Golden("loss.txt", "multi_margin")]),
    ("PoissonNllLoss", "loss/poisson_nll", true, &[Golden("loss.txt", "poisson_nll")]),
    ("RNNTLoss", "loss/rnnt", true, &[Golden("composite.txt", "rnnt"), Test("transducer.rs", "the_loss_sums_over_all_alignments")]),
    ("SmoothL1Loss", "loss/smooth_l1", true, &[Golden("loss.txt", "smooth_l1")]),
    ("SoftMarginLoss", "loss/soft_margin", false, &[Golden("loss.txt", "soft_margin")]),
    ("TripletMarginLoss", "loss/triplet_margin", true, &[Golden("loss.txt", "triplet_margin")]),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documentation right above the definition of a type.
fn documentation<'a>(source: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let lines: Vec<&str> = source.lines().collect();
    let heads = ["struct", "enum"].map(|kind| format!("pub {kind} {name}"));
    let defines = |line: &str| heads.iter().any(|head| line.strip_prefix(head.as_str()).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)));
    let at = lines.iter().position(|line| defines(line))?;
    Some(lines[..at].iter().rev().take_while(|line| line.starts_with("///") || line.starts_with('#')).copied().collect())
}

fn has_example(lines: &[&str]) -> bool {
    lines.iter().any(|line| line.starts_with("/// ```"))
}

/// What a row lacks.
fn lacks((name, file, config, proofs): &Row, sources: &mut BTreeMap<String, String>) -> Vec<String> {
    let source = read(folder().join("src").join(format!("{file}.rs")));
    let mut lacking = Vec::new();
    match documentation(&source, name) {
        None => lacking.push(format!("{name}: {file}.rs does not define it")),
        Some(lines) if !lines.iter().any(|line| line.starts_with("/// ")) => lacking.push(format!("{name}: has no documentation")),
        // A part of another layer has its example there.
        Some(lines)
            if *config && !has_example(&lines) && !documentation(&source, &format!("{name}Config")).is_some_and(|lines| has_example(&lines)) =>
        {
            lacking.push(format!("{name}: has no example"));
        }
        Some(_) => {}
    }
    if *config && documentation(&source, &format!("{name}Config")).is_none() {
        lacking.push(format!("{name}: has no configuration"));
    }
    for proof in *proofs {
        match proof {
            Golden(file, case) => {
                let cases = golden::read(env!("CARGO_MANIFEST_DIR"), file);
                let found: Vec<_> = cases.iter().filter(|found| found.name.starts_with(case)).collect();
                // Inputs are called x, a and b, anchor; queries are q.
                let graded = |case: &golden::Case| ["d_x", "d_a", "d_anchor", "d_q", "d_weight"].iter().any(|name| case.get(name).is_some());
                if found.is_empty() || !found.iter().all(|case| graded(case)) {
                    lacking.push(format!("{name}: {file} has no case {case} with gradients"));
                }
                let tests = sources.entry("*".into()).or_insert_with(tests);
                if ![format!("\"{case}\""), format!("\"{case}_")].iter().any(|quoted| tests.contains(quoted.as_str())) {
                    lacking.push(format!("{name}: no test reads the case {case}"));
                }
            }
            Test(file, test) => {
                let source = sources.entry((*file).into()).or_insert_with(|| read(folder().join("tests").join(file)));
                if !source.contains(&format!("#[test]\nfn {test}()")) {
                    lacking.push(format!("{name}: {file} has no test {test}"));
                }
            }
        }
    }
    lacking
}

/// All test sources but this one.
fn tests() -> String {
    let entries = std::fs::read_dir(folder().join("tests")).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("readable").path());
    paths.filter(|path| path.extension().is_some_and(|e| e == "rs") && path.file_stem().is_some_and(|s| s != "inventory")).map(read).collect()
}

#[test]
fn every_layer_and_loss_has_its_file_example_and_golden_values() {
    let mut sources = BTreeMap::new();
    let lacking: Vec<String> = LAYERS.iter().chain(&LOSSES).flat_map(|row| lacks(row, &mut sources)).collect();
    assert!(lacking.is_empty(), "{lacking:#?}");
}

#[test]
fn every_activation_has_its_file_example_and_golden_values() {
    let tests = read(folder().join("tests/activations.rs"));
    let cases = golden::read(env!("CARGO_MANIFEST_DIR"), "activation.txt");
    for (name, file, config) in ACTIVATIONS {
        let source = read(folder().join(format!("src/activation/{}.rs", file.replace("swi_glu", "swiglu"))));
        let documentation_of = |name: &str| documentation(&source, name).unwrap_or_else(|| panic!("{file}.rs does not define {name}"));
        assert!(has_example(&documentation_of(name)), "{name} has no example");
        if config {
            documentation_of(&format!("{name}Config"));
        }
        assert!(cases.iter().any(|case| case.name == file && case.get("d_x").is_some()), "{file} has no golden case with a gradient");
        assert!(tests.contains(&format!("\"{file}\"")), "no test reads the case {file}");
    }
    assert_eq!(std::fs::read_dir(folder().join("src/activation")).expect("is there").count(), ACTIVATIONS.len() + 2, "a file is not in the table");
}

#[test]
fn every_loss_file_is_in_the_table() {
    // Besides the losses: the module's root and the reduction.
    assert_eq!(std::fs::read_dir(folder().join("src/loss")).expect("is there").count(), LOSSES.len() + 2);
}

#[test]
fn the_identity_changes_nothing() {
    use kiln_tensor::{Device, Tensor};
    let x = Tensor::<2>::from_floats([[1.0, -2.0]], &Device::default().autodiff()).require_grad();
    let y = kiln_nn::Identity::new().forward(x.clone());
    y.to_data().assert_eq(&x.to_data(), true);
    let gradients = (y * 3).sum().backward();
    assert_eq!(x.grad(&gradients).expect("a leaf").into_data().try_to_vec::<f32>().expect("floats"), [3.0, 3.0]);
}

#[test]
fn a_choice_of_norms_is_the_chosen_norm() {
    use kiln_nn::{BatchNormConfig, GroupNormConfig, InstanceNormConfig, LayerNormConfig, RmsNormConfig, norm::NormalizationConfig};
    use kiln_tensor::{Device, Distribution, Tensor};
    let device = Device::default();
    let x = Tensor::<3>::random([2, 4, 4], Distribution::Normal(1.0, 2.0), &device);
    let (batch, group, instance) = (BatchNormConfig::new(4), GroupNormConfig::new(2, 4), InstanceNormConfig::new(4));
    let (layer, rms) = (LayerNormConfig::new(4), RmsNormConfig::new(4));
    let expected = [
        batch.init(&device).forward(x.clone()),
        group.init(&device).forward(x.clone()),
        instance.init(&device).forward(x.clone()),
        layer.init(&device).forward(x.clone()),
        rms.init(&device).forward(x.clone()),
    ];
    let chosen = [
        NormalizationConfig::from(batch),
        NormalizationConfig::from(group),
        NormalizationConfig::from(instance),
        NormalizationConfig::from(layer),
        NormalizationConfig::from(rms),
    ];
    for (config, expected) in chosen.into_iter().zip(expected) {
        config.init(&device).forward(x.clone()).into_data().assert_eq(&expected.into_data(), true);
    }
}
