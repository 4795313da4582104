//! Fields and defaults of every configuration are Burn 0.22's: the figures are those of its public API.
use kiln::lr_scheduler::LrSchedulerConfig;
use kiln::lr_scheduler::composed::*;
use kiln::lr_scheduler::cosine::*;
use kiln::lr_scheduler::exponential::*;
use kiln::lr_scheduler::linear::*;
use kiln::lr_scheduler::module_lr_scheduler::*;
use kiln::lr_scheduler::noam::*;
use kiln::lr_scheduler::sequential::*;
use kiln::lr_scheduler::step::*;
use kiln::nn::activation::*;
use kiln::nn::attention::*;
use kiln::nn::conv::*;
use kiln::nn::interpolate::*;
use kiln::nn::loss::*;
use kiln::nn::pool::*;
use kiln::nn::transformer::*;
use kiln::nn::*;
use kiln::optim::decay::*;
use kiln::optim::momentum::*;
use kiln::optim::*;
use serde_json::Value;

/// Whether both are the same; floats up to the rounding of `f32`.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64().zip(y.as_f64()).is_some_and(|(x, y)| (x - y).abs() <= 1e-6 * y.abs()),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| same(v, w))),
        _ => a == b,
    }
}

/// Collects what differs.
fn check(name: &str, got: Value, expected: &str, wrong: &mut Vec<String>) {
    let expected: Value = serde_json::from_str(expected).expect("the table is JSON");
    if !same(&got, &expected) {
        wrong.push(format!("{name}: {got} is not {expected}"));
    }
}

/// A configuration made from its required arguments alone, and all its fields as they are written to files.
macro_rules! table {
    ($(($name:literal, $config:expr, $json:literal);)*) => {{
        let mut wrong = Vec::new();
        $(check($name, serde_json::to_value($config).expect("a configuration is data"), $json, &mut wrong);)*
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }};
}

#[test]
fn configurations_have_the_fields_and_defaults_of_burn() {
    table! {
    ("CeluConfig", CeluConfig::new(), r#"{"alpha": 1.0}"#);
        ("EluConfig", EluConfig::new(), r#"{"alpha": 1.0}"#);
        ("HardShrinkConfig", HardShrinkConfig::new(), r#"{"lambda": 0.5}"#);
        ("HardSigmoidConfig", HardSigmoidConfig::new(), r#"{"alpha": 0.2, "beta": 0.5}"#);
        ("HardtanhConfig", HardtanhConfig::new(), r#"{"min_val": -1.0, "max_val": 1.0}"#);
        ("LeakyReluConfig", LeakyReluConfig::new(), r#"{"negative_slope": 0.01}"#);
        ("PReluConfig", PReluConfig::new(), r#"{"num_parameters": 1, "alpha": 0.25}"#);
        ("RReluConfig", RReluConfig::new(), r#"{"lower": 0.125, "upper": 0.3333333333333333}"#);
        ("ShrinkConfig", ShrinkConfig::new(), r#"{"lambda": 0.5, "bias": 0.5}"#);
        ("SoftShrinkConfig", SoftShrinkConfig::new(), r#"{"lambda": 0.5}"#);
        ("SoftplusConfig", SoftplusConfig::new(), r#"{"beta": 1.0, "threshold": 20.0}"#);
        ("SwiGluConfig", SwiGluConfig::new(3, 4), r#"{"d_input": 3, "d_output": 4, "bias": false, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}, "layout": "Row"}"#);
        ("ThresholdConfig", ThresholdConfig::new(3.5, 4.5), r#"{"threshold": 3.5, "value": 4.5}"#);
        ("ThresholdedReluConfig", ThresholdedReluConfig::new(), r#"{"alpha": 1.0}"#);
        ("BinaryCrossEntropyLossConfig", BinaryCrossEntropyLossConfig::new(), r#"{"weights": null, "smoothing": null, "logits": false}"#);
        ("CosineEmbeddingLossConfig", CosineEmbeddingLossConfig::new(), r#"{"margin": 0.0, "reduction": "Mean"}"#);
        ("CrossEntropyLossConfig", CrossEntropyLossConfig::new(), r#"{"pad_tokens": null, "weights": null, "smoothing": null, "logits": true}"#);
        ("CTCLossConfig", CTCLossConfig::new(), r#"{"blank": 0, "zero_infinity": false}"#);
        ("GaussianNLLLossConfig", GaussianNLLLossConfig::new(), r#"{"eps": 1e-6, "full": false}"#);
        ("HingeEmbeddingLossConfig", HingeEmbeddingLossConfig::new(), r#"{"margin": 1.0}"#);
        ("HuberLossConfig", HuberLossConfig::new(3.5), r#"{"delta": 3.5}"#);
        ("KLDivLossConfig", KLDivLossConfig::new(), r#"{"log_target": false}"#);
        ("LpLossConfig", LpLossConfig::new(3.5), r#"{"p": 3.5}"#);
        ("MarginRankingLossConfig", MarginRankingLossConfig::new(), r#"{"margin": 0.0}"#);
        ("MultiMarginLossConfig", MultiMarginLossConfig::new(), r#"{"margin": 1.0, "p": 1}"#);
        ("PoissonNllLossConfig", PoissonNllLossConfig::new(), r#"{"log_input": true, "full": false, "eps": 1e-8}"#);
        ("RNNTLossConfig", RNNTLossConfig::new(), r#"{"blank": 0, "logits": true}"#);
        ("SmoothL1LossConfig", SmoothL1LossConfig::new(), r#"{"beta": 1.0}"#);
        ("TripletMarginLossConfig", TripletMarginLossConfig::new(), r#"{"margin": 1.0, "p": 2.0}"#);
        ("CosineSimilarityConfig", CosineSimilarityConfig::new(), r#"{"dim": 1, "eps": 1e-8}"#);
        ("DropoutConfig", DropoutConfig::new(3.5), r#"{"prob": 3.5}"#);
        ("EmbeddingConfig", EmbeddingConfig::new(3, 4), r#"{"n_embedding": 3, "d_model": 4, "initializer": {"Normal":{"mean":0.0,"std":1.0}}}"#);
        ("Fold4dConfig", Fold4dConfig::new([3,4], [6,7]), r#"{"output_size": [3,4], "kernel_size": [6,7], "stride": [1, 1], "dilation": [1, 1], "padding": [0, 0]}"#);
        ("LinearConfig", LinearConfig::new(3, 4), r#"{"d_input": 3, "d_output": 4, "bias": true, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}, "layout": "Row"}"#);
        ("GaussianNoiseConfig", GaussianNoiseConfig::new(3.5), r#"{"std": 3.5}"#);
        ("PairwiseDistanceConfig", PairwiseDistanceConfig::new(), r#"{"p": 2.0, "eps": 1e-6}"#);
        ("PixelShuffleConfig", PixelShuffleConfig::new(3), r#"{"upscale_factor": 3}"#);
        ("PixelUnshuffleConfig", PixelUnshuffleConfig::new(3), r#"{"downscale_factor": 3}"#);
        ("PositionalEncodingConfig", PositionalEncodingConfig::new(3), r#"{"max_sequence_size": 5000, "d_model": 3, "max_timescale": 10000}"#);
        ("RotaryEncodingConfig", RotaryEncodingConfig::new(3, 4), r#"{"max_sequence_length": 3, "d_model": 4, "theta": 10000.0}"#);
        ("Unfold4dConfig", Unfold4dConfig::new([3,4]), r#"{"kernel_size": [3,4], "stride": [1, 1], "dilation": [1, 1], "padding": [0, 0]}"#);
        ("CrossAttentionConfig", CrossAttentionConfig::new(3, 4, 5, 6, 7), r#"{"d_model": 3, "d_context": 4, "n_heads": 5, "n_heads_kv": 6, "d_head": 7, "dropout": 0.1, "min_float": -1.0e4, "quiet_softmax": false}"#);
        ("MultiHeadAttentionConfig", MultiHeadAttentionConfig::new(3, 4), r#"{"d_model": 3, "n_heads": 4, "dropout": 0.1, "min_float": -1.0e4, "quiet_softmax": false, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}, "key_bias": true, "value_bias": true, "query_bias": true, "output_bias": true}"#);
        ("Conv1dConfig", Conv1dConfig::new(3, 4, 5), r#"{"channels_in": 3, "channels_out": 4, "kernel_size": 5, "stride": 1, "dilation": 1, "groups": 1, "padding": "Valid", "bias": true, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}}"#);
        ("Conv2dConfig", Conv2dConfig::new([3,4], [6,7]), r#"{"channels": [3,4], "kernel_size": [6,7], "stride": [1, 1], "dilation": [1, 1], "groups": 1, "padding": "Valid", "bias": true, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}}"#);
        ("Conv3dConfig", Conv3dConfig::new([3,4], [6,7,8]), r#"{"channels": [3,4], "kernel_size": [6,7,8], "stride": [1, 1, 1], "dilation": [1, 1, 1], "groups": 1, "padding": "Valid", "bias": true, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}}"#);
        ("ConvTranspose1dConfig", ConvTranspose1dConfig::new([3,4], 6), r#"{"channels": [3,4], "kernel_size": 6, "stride": 1, "dilation": 1, "groups": 1, "padding": 0, "padding_out": 0, "bias": true, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}}"#);
        ("ConvTranspose2dConfig", ConvTranspose2dConfig::new([3,4], [6,7]), r#"{"channels": [3,4], "kernel_size": [6,7], "stride": [1, 1], "dilation": [1, 1], "groups": 1, "padding": [0, 0], "padding_out": [0, 0], "bias": true, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}}"#);
        ("ConvTranspose3dConfig", ConvTranspose3dConfig::new([3,4], [6,7,8]), r#"{"channels": [3,4], "kernel_size": [6,7,8], "stride": [1, 1, 1], "dilation": [1, 1, 1], "groups": 1, "padding": [0, 0, 0], "padding_out": [0, 0, 0], "bias": true, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}}"#);
        ("DeformConv2dConfig", DeformConv2dConfig::new([3,4], [6,7]), r#"{"channels": [3,4], "kernel_size": [6,7], "stride": [1, 1], "dilation": [1, 1], "weight_groups": 1, "offset_groups": 1, "padding": "Valid", "bias": true, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}}"#);
        ("Interpolate1dConfig", Interpolate1dConfig::new(), r#"{"output_size": null, "scale_factor": null, "mode": "Nearest", "align_corners": true}"#);
        ("Interpolate2dConfig", Interpolate2dConfig::new(), r#"{"output_size": null, "scale_factor": null, "mode": "Nearest", "align_corners": true}"#);
        ("BatchNormConfig", BatchNormConfig::new(3), r#"{"num_features": 3, "epsilon": 1e-5, "momentum": 0.1}"#);
        ("GroupNormConfig", GroupNormConfig::new(3, 4), r#"{"num_groups": 3, "num_channels": 4, "epsilon": 1e-5, "affine": true}"#);
        ("InstanceNormConfig", InstanceNormConfig::new(3), r#"{"num_channels": 3, "epsilon": 1e-5, "affine": true}"#);
        ("LayerNormConfig", LayerNormConfig::new(3), r#"{"d_model": 3, "epsilon": 1e-5, "bias": true}"#);
        ("LocalResponseNormConfig", LocalResponseNormConfig::new(3), r#"{"size": 3, "alpha": 0.0001, "beta": 0.75, "k": 1.0}"#);
        ("RmsNormConfig", RmsNormConfig::new(3), r#"{"d_model": 3, "epsilon": 1e-5}"#);
        ("AdaptiveAvgPool1dConfig", AdaptiveAvgPool1dConfig::new(3), r#"{"output_size": 3}"#);
        ("AdaptiveAvgPool2dConfig", AdaptiveAvgPool2dConfig::new([3,4]), r#"{"output_size": [3,4]}"#);
        ("AdaptiveAvgPool3dConfig", AdaptiveAvgPool3dConfig::new([3,4,5]), r#"{"output_size": [3,4,5]}"#);
        ("AvgPool1dConfig", AvgPool1dConfig::new(3), r#"{"kernel_size": 3, "stride": 3, "padding": "Valid", "count_include_pad": true, "ceil_mode": false}"#);
        ("AvgPool2dConfig", AvgPool2dConfig::new([3,4]), r#"{"kernel_size": [3,4], "strides": [3,4], "padding": "Valid", "count_include_pad": true, "ceil_mode": false}"#);
        ("MaxPool1dConfig", MaxPool1dConfig::new(3), r#"{"kernel_size": 3, "stride": 3, "padding": "Valid", "dilation": 1, "ceil_mode": false}"#);
        ("MaxPool2dConfig", MaxPool2dConfig::new([3,4]), r#"{"kernel_size": [3,4], "strides": [3,4], "padding": "Valid", "dilation": [1, 1], "ceil_mode": false}"#);
        ("RnnConfig", RnnConfig::new(3, 4, true), r#"{"d_input": 3, "d_hidden": 4, "bias": true, "initializer": {"XavierNormal":{"gain":1.0}}, "batch_first": true, "reverse": false, "clip": null, "hidden_activation": "Tanh"}"#);
        ("BiRnnConfig", BiRnnConfig::new(3, 4, true), r#"{"d_input": 3, "d_hidden": 4, "bias": true, "initializer": {"XavierNormal":{"gain":1.0}}, "batch_first": true, "clip": null, "hidden_activation": "Tanh"}"#);
        ("GruConfig", GruConfig::new(3, 4, true), r#"{"d_input": 3, "d_hidden": 4, "bias": true, "reset_after": true, "initializer": {"XavierNormal":{"gain":1.0}}, "gate_activation": "Sigmoid", "hidden_activation": "Tanh", "clip": null}"#);
        ("BiGruConfig", BiGruConfig::new(3, 4, true), r#"{"d_input": 3, "d_hidden": 4, "bias": true, "reset_after": true, "initializer": {"XavierNormal":{"gain":1.0}}, "batch_first": true, "gate_activation": "Sigmoid", "hidden_activation": "Tanh", "clip": null}"#);
        ("BiLstmConfig", BiLstmConfig::new(3, 4, true), r#"{"d_input": 3, "d_hidden": 4, "bias": true, "initializer": {"XavierNormal":{"gain":1.0}}, "batch_first": true, "clip": null, "input_forget": false, "gate_activation": "Sigmoid", "cell_activation": "Tanh", "hidden_activation": "Tanh"}"#);
        ("LstmConfig", LstmConfig::new(3, 4, true), r#"{"d_input": 3, "d_hidden": 4, "bias": true, "initializer": {"XavierNormal":{"gain":1.0}}, "batch_first": true, "reverse": false, "clip": null, "input_forget": false, "gate_activation": "Sigmoid", "cell_activation": "Tanh", "hidden_activation": "Tanh"}"#);
        ("TransformerDecoderConfig", TransformerDecoderConfig::new(3, 4, 5, 6), r#"{"d_model": 3, "d_ff": 4, "n_heads": 5, "n_layers": 6, "dropout": 0.1, "norm_first": false, "quiet_softmax": false, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}, "activation": "Gelu", "layer_norm_eps": 1e-5}"#);
        ("TransformerEncoderConfig", TransformerEncoderConfig::new(3, 4, 5, 6), r#"{"d_model": 3, "d_ff": 4, "n_heads": 5, "n_layers": 6, "dropout": 0.1, "norm_first": false, "quiet_softmax": false, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}, "activation": "Gelu", "layer_norm_eps": 1e-5}"#);
        ("PositionWiseFeedForwardConfig", PositionWiseFeedForwardConfig::new(3, 4), r#"{"d_model": 3, "d_ff": 4, "dropout": 0.1, "initializer": {"KaimingUniform":{"gain":0.5773502691896258,"fan_out_only":false}}, "activation": "Gelu"}"#);
        ("ComposedLrSchedulerConfig", ComposedLrSchedulerConfig::new(), r#"{"schedulers": [], "reduction": "Prod"}"#);
        ("CosineAnnealingLrSchedulerConfig", CosineAnnealingLrSchedulerConfig::new(3.5, 4), r#"{"initial_lr": 3.5, "min_lr": 0.0, "num_iters": 4}"#);
        ("ExponentialLrSchedulerConfig", ExponentialLrSchedulerConfig::new(3.5, 4.5), r#"{"initial_lr": 3.5, "gamma": 4.5}"#);
        ("LinearLrSchedulerConfig", LinearLrSchedulerConfig::new(3.5, 4.5, 5), r#"{"initial_lr": 3.5, "final_lr": 4.5, "num_iters": 5}"#);
        ("ModuleLrSchedulerConfig", ModuleLrSchedulerConfig::new(LrSchedulerConfig::Constant(3.5)), r#"{"base": {"Constant": 3.5}, "scheduler_groups": []}"#);
        ("NoamLrSchedulerConfig", NoamLrSchedulerConfig::new(3.5), r#"{"factor": 3.5, "warmup_steps": 4000, "model_size": 512}"#);
        ("SequentialLrSchedulerConfig", SequentialLrSchedulerConfig::new(vec![LrSchedulerConfig::Constant(3.5)], vec![4]), r#"{"schedulers": [{"Constant": 3.5}], "milestones": [4]}"#);
        ("StepLrSchedulerConfig", StepLrSchedulerConfig::new(3.5, 4), r#"{"initial_lr": 3.5, "step_size": 4, "gamma": 0.1}"#);
        ("AdafactorConfig", AdafactorConfig::new(), r#"{"epsilon_1": 1e-30, "epsilon_2": 1e-3, "clip_threshold": 1.0, "decay_rate": -0.8, "relative_step": true, "scale_parameter": true, "weight_decay": 0.0, "grad_clipping": null}"#);
        ("AdaGradConfig", AdaGradConfig::new(), r#"{"lr_decay": 0, "epsilon": 1e-5, "weight_decay": null, "grad_clipping": null}"#);
        ("AdamConfig", AdamConfig::new(), r#"{"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-5, "amsgrad": false, "weight_decay": null, "grad_clipping": null}"#);
        ("AdamWConfig", AdamWConfig::new(), r#"{"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-5, "weight_decay": 1e-4, "cautious_weight_decay": false, "amsgrad": false, "grad_clipping": null}"#);
        ("AdanConfig", AdanConfig::new(), r#"{"beta_1": 0.98, "beta_2": 0.92, "beta_3": 0.99, "epsilon": 1e-8, "weight_decay": 0.0, "no_prox": false, "grad_clipping": null}"#);
        ("WeightDecayConfig", WeightDecayConfig::new(3.5), r#"{"penalty": 3.5}"#);
        ("LambConfig", LambConfig::new(), r#"{"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6, "weight_decay": 0.0, "use_trust_ratio": true, "grad_clipping": null}"#);
        ("LBFGSConfig", LBFGSConfig::new(), r#"{"max_iter": 20, "history_size": 100, "tolerance_grad": 1e-7, "tolerance_change": 1e-9, "max_eval": null, "line_search_fn": "None"}"#);
        ("LionConfig", LionConfig::new(), r#"{"beta_1": 0.9, "beta_2": 0.99, "weight_decay": 0.0, "grad_clipping": null}"#);
        ("MomentumConfig", MomentumConfig::new(), r#"{"momentum": 0.9, "dampening": 0.1, "nesterov": false}"#);
        ("MuonConfig", MuonConfig::new(), r#"{"weight_decay": null, "momentum": {"momentum":0.95,"dampening":0.0,"nesterov":true}, "epsilon": 1e-7, "ns_coefficients": [3.4445, -4.775, 2.0315], "ns_steps": 5, "adjust_lr_fn": "Original"}"#);
        ("RmsPropConfig", RmsPropConfig::new(), r#"{"alpha": 0.99, "momentum": 0.9, "epsilon": 1e-5, "centered": false, "weight_decay": null, "grad_clipping": null}"#);
        ("SgdConfig", SgdConfig::new(), r#"{"weight_decay": null, "momentum": null, "gradient_clipping": null}"#);
    }
}
