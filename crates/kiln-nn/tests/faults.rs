//! Faults that users of other frameworks met in layers and losses, as whole kinds. The values were worked out by hand or with PyTorch's documented rules.

use std::sync::Arc;

use kiln_module::module::{Module, Param};
use kiln_nn::conv::{Conv2d, DeformConv2d, DeformConv2dConfig};
use kiln_nn::loss::{BinaryCrossEntropyLossConfig, CrossEntropyLossConfig};
use kiln_nn::{
    BatchNormConfig, GroupNormConfig, GruConfig, InstanceNormConfig, LayerNormConfig, LinearConfig, LstmConfig, LstmState, RmsNormConfig,
    RotaryEncodingConfig,
};
use kiln_tensor::activation::quiet_softmax;
use kiln_tensor::{DType, Device, Distribution, FloatDType, HostRuntime, Int, Tensor};

use crate::graded::device;

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.cast(FloatDType::F32).try_to_vec_as().unwrap()
}

#[track_caller]
fn close<const D: usize>(found: Tensor<D>, expected: &[f32], tolerance: f32) {
    let found = values(found);
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "value {at}: {found}, expected {expected}");
    }
}

/// `(x - mean) / √(variance + ε)`.
fn normalised(x: &[f32], epsilon: f64) -> Vec<f32> {
    let count = x.len() as f64;
    let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
    let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
    x.iter().map(|x| ((f64::from(*x) - mean) / (variance + epsilon).sqrt()) as f32).collect()
}

/// E01, E02: epsilon belongs under the root, in every norm.
#[test]
fn epsilon_is_added_to_the_variance_in_every_norm() {
    let plain = Device::default();
    let x = [-0.6897, -2.7106, 2.2222, -1.0330, -0.8933, 1.1765, 0.0601, 1.5252, -0.3630, 0.6728];
    let published = [-0.4863, -1.9180, 1.5766, -0.7295, -0.6305, 0.8358, 0.0449, 1.0828, -0.2548, 0.4790];
    let row = Tensor::<2>::from_floats([x], &plain);
    close(LayerNormConfig::new(10).with_epsilon(0.1).init(&plain).forward(row.clone()), &published, 1e-3);
    for epsilon in [0.1, 1.0] {
        let expected = normalised(&x, epsilon);
        close(LayerNormConfig::new(10).with_epsilon(epsilon).init(&plain).forward(row.clone()), &expected, 1e-5);
        let planes = row.clone().reshape([1, 2, 5]);
        close(GroupNormConfig::new(1, 2).with_epsilon(epsilon).init(&plain).forward(planes.clone()), &expected, 1e-5);
        let halves = [normalised(&x[..5], epsilon), normalised(&x[5..], epsilon)].concat();
        close(GroupNormConfig::new(2, 2).with_epsilon(epsilon).init(&plain).forward(planes.clone()), &halves, 1e-5);
        close(InstanceNormConfig::new(2).with_epsilon(epsilon).init(&plain).forward(planes.clone()), &halves, 1e-5);
        let batch = BatchNormConfig::new(2).with_epsilon(epsilon).init(&device());
        close(batch.forward(Tensor::<2>::from_floats([x], &device()).reshape([1, 2, 5])), &halves, 1e-5);
        let square = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 10.0;
        let scaled: Vec<f32> = x.iter().map(|x| (f64::from(*x) / (square + epsilon).sqrt()) as f32).collect();
        close(RmsNormConfig::new(10).with_epsilon(epsilon).init(&plain).forward(row.clone()), &scaled, 1e-5);
    }
}

/// E04: the running variance is the unbiased one. `[4, 3, 4]`: of twelve values a channel, from a variance of 1 and a batch variance of 2.66667 (unbiased).
#[test]
fn running_variances_are_unbiased() {
    let layer = BatchNormConfig::new(1).init(&device());
    layer.forward(Tensor::<2>::from_floats([[1.0], [2.0], [3.0], [4.0]], &device()));
    close(layer.running_mean.value(), &[0.25], 1e-6);
    close(layer.running_var.value(), &[0.9 + 0.1 * 5.0 / 3.0], 1e-6);
    // One value has no spread to estimate; the variance then counts as it is.
    let single = BatchNormConfig::new(1).init(&device());
    single.forward(Tensor::<2>::from_floats([[3.0]], &device()));
    close(single.running_var.value(), &[0.9], 1e-6);
    let twelve: Vec<f32> = (0..4).flat_map(|_| [0.0, 2.0, 4.0]).collect();
    let channels = BatchNormConfig::new(3).init(&device());
    // Each channel holds 0, 2 and 4 four times: variance 32 / 11.
    let input = Tensor::<1>::from_floats(twelve.as_slice(), &device()).reshape([4, 1, 3]).repeat(&[1, 3, 1]);
    channels.forward(input);
    close(channels.running_var.value(), &[0.9 + 0.1 * 32.0 / 11.0; 3], 1e-6);
}

fn fixed<const D: usize>(param: &Param<Tensor<D>>, scale: f32) -> Param<Tensor<D>> {
    let shape = param.lazy_shape();
    let count = shape.num_elements();
    let values: Vec<f32> = (0..count).map(|i| ((i * 7 + 3) % 11) as f32 * 0.1 * scale - 0.4).collect();
    Param::from_tensor(Tensor::<1>::from_floats(values.as_slice(), &param.lazy_device()).reshape(shape))
}

/// E05: the reset gate multiplies the product and its bias, and the state goes from step to step.
#[test]
fn a_gru_resets_the_product_and_carries_its_state() {
    let plain = Device::default();
    let mut gru = GruConfig::new(2, 3, true).init(&plain);
    for (gate, scale) in [(&mut gru.update_gate, 1.0), (&mut gru.reset_gate, -1.0), (&mut gru.new_gate, 0.7)] {
        for linear in [&mut gate.input_transform, &mut gate.hidden_transform] {
            linear.weight = fixed(&linear.weight, scale);
            linear.bias = linear.bias.as_ref().map(|bias| fixed(bias, scale));
        }
    }
    let input = Tensor::<3>::from_floats([[[1.0, -2.0], [0.5, 0.25], [-1.0, 3.0]]], &plain);
    let whole = gru.forward(input.clone(), None);
    let mut state = Tensor::<2>::zeros([1, 3], &plain);
    for step in 0..3 {
        let x: Tensor<2> = input.clone().narrow(1, step, 1).squeeze_dim(1);
        let sigmoid = |x: Tensor<2>| ((-x).exp() + 1.0).recip();
        let gate = |gate: &kiln_nn::GateController| (gate.input_transform.forward(x.clone()), gate.hidden_transform.forward(state.clone()));
        let (update, reset, new) = (gate(&gru.update_gate), gate(&gru.reset_gate), gate(&gru.new_gate));
        let (z, r) = (sigmoid(update.0 + update.1), sigmoid(reset.0 + reset.1));
        let n = (new.0 + r * new.1).tanh();
        state = n * (-z.clone() + 1.0) + z * state;
        close(whole.clone().narrow(1, step, 1), &values(state.clone()), 1e-5);
    }
}

/// E07: the state of an LSTM is told by name, so that cell and hidden part can't be mixed up, and its biases are trained.
#[test]
fn an_lstms_state_has_names_and_its_biases_gradients() {
    let lstm = LstmConfig::new(2, 3, true).init(&device());
    let input = Tensor::<3>::from_floats([[[1.0, -2.0], [0.5, 0.25]]], &device());
    let (output, state) = lstm.forward(input.clone(), None);
    let last: Tensor<2> = output.clone().narrow(1, 1, 1).squeeze_dim(1);
    close(state.hidden.clone(), &values(last), 1e-6);
    assert!(values(state.cell.clone()) != values(state.hidden.clone()));
    let (first, middle) = lstm.forward(input.clone().narrow(1, 0, 1), None);
    let (second, _) = lstm.forward(input.narrow(1, 1, 1), Some(LstmState::new(middle.cell, middle.hidden)));
    close(Tensor::cat(vec![first, second], 1), &values(output.clone()), 1e-6);
    let gradients = output.sum().backward();
    let gates = [Some(&lstm.input_gate), lstm.forget_gate.as_ref(), Some(&lstm.cell_gate), Some(&lstm.output_gate)];
    for gate in gates.into_iter().flatten() {
        for linear in [&gate.input_transform, &gate.hidden_transform] {
            let bias = linear.bias.as_ref().unwrap();
            assert!(values(bias.grad(&gradients).expect("a bias is trained")).iter().all(|value| *value != 0.0));
        }
    }
}

/// E08: `[batch, sequence, size]` is encoded as `[batch, 1, sequence, size]` is.
#[test]
fn rotary_encodings_take_three_axes() {
    let plain = Device::default();
    let rope = RotaryEncodingConfig::new(8, 4).init(&plain);
    let x = Tensor::<1, Int>::arange(0..16, &plain).float().reshape([2, 2, 4]);
    let three = rope.forward(x.clone());
    assert_eq!(three.dims(), [2, 2, 4]);
    let four = rope.forward(x.reshape([2, 1, 2, 4]));
    close(three, &values(four), 0.0);
}

/// E10: the weight that quiet softmax leaves unused follows the greatest logit.
#[test]
fn quiet_softmax_is_exact_for_any_size_of_logit() {
    let plain = Device::default();
    let check = |logits: [f32; 2], expected: [f32; 2]| {
        close(quiet_softmax(Tensor::<2>::from_floats([logits], &plain), 1), &expected, 1e-6);
    };
    check([1.0, 7.0], [0.002_470_4, 0.996_620_8]);
    check([-3.0, -3.0], [0.045_278_5, 0.045_278_5]);
    check([1000.0, 1000.0], [0.5, 0.5]);
    check([-1000.0, -1000.0], [0.0, 0.0]);
    let small = values(quiet_softmax(Tensor::<2>::from_floats([[-10.0, -20.0]], &plain), 1));
    assert!((small[0] / 4.539_6e-5 - 1.0).abs() < 1e-3 && (small[1] / 2.061e-9 - 1.0).abs() < 1e-3, "{small:?}");
}

/// E11: groups of offsets and groups of weights are set apart.
#[test]
fn deformable_convolutions_have_their_own_groups_of_offsets() {
    let plain = Device::default();
    let make = |weight_groups: usize, offset_groups: usize| {
        let config = DeformConv2dConfig::new([4, 2], [2, 2]).with_weight_groups(weight_groups).with_offset_groups(offset_groups);
        let layer = config.init(&plain);
        DeformConv2d { weight: fixed(&layer.weight, 1.0), bias: None, ..layer }
    };
    let image = Tensor::<1, Int>::arange(0..64, &plain).float().reshape([1, 4, 4, 4]) * 0.1;
    for weight_groups in [1, 2] {
        let (one, two) = (make(weight_groups, 1), make(weight_groups, 2));
        // Equal offsets for both groups are the same as one group.
        let offsets = Tensor::<1, Int>::arange(0..72, &plain).float().reshape([1, 8, 3, 3]) * 0.01;
        let twice = Tensor::cat(vec![offsets.clone(), offsets.clone()], 1);
        let expected = values(one.forward(image.clone(), offsets.clone(), None));
        close(two.forward(image.clone(), twice, None), &expected, 1e-5);
        // Moving the second group by a whole row moves its channels, and those only.
        let shift: Vec<f32> = (0..8).flat_map(|axis| [if axis % 2 == 0 { 1.0 } else { 0.0 }; 9]).collect();
        let down = Tensor::<1>::from_floats(shift.as_slice(), &plain).reshape([1, 8, 3, 3]);
        let moved = Tensor::cat(vec![Tensor::zeros([1, 8, 3, 3], &plain), down], 1);
        let rows = |channels: std::ops::Range<usize>, from: usize| {
            let part = image.clone().slice([0..1, channels, from..4, 0..4]);
            let below = Tensor::zeros([1, 2, from, 4], &plain);
            Tensor::cat(vec![part, below], 2)
        };
        let by_hand = Tensor::cat(vec![rows(0..2, 0), rows(2..4, 1)], 1);
        let still = one.forward(by_hand, Tensor::zeros([1, 8, 3, 3], &plain), None);
        close(two.forward(image.clone(), moved, None), &values(still), 1e-5);
    }
    // Without offsets it is a convolution.
    let plain_conv = make(2, 2);
    let conv =
        Conv2d { weight: plain_conv.weight.clone(), bias: None, ..kiln_nn::conv::Conv2dConfig::new([4, 2], [2, 2]).with_groups(2).init(&plain) };
    close(plain_conv.forward(image.clone(), Tensor::zeros([1, 16, 3, 3], &plain), None), &values(conv.forward(image)), 1e-5);
}

#[derive(Module, Debug)]
struct Mixed {
    linear: kiln_nn::Linear,
    norm: kiln_nn::BatchNorm,
    drop: kiln_nn::Dropout,
}

/// E16: copies on several devices train on parts of a batch; what they saw is merged in the model that they are copies of.
#[test]
fn running_statistics_of_several_devices_are_merged() {
    let places = ["first", "second"].map(|name| Device::with_runtime(name, Arc::new(HostRuntime::new())).autodiff());
    let main = BatchNormConfig::new(1).with_momentum(0.1).init(&device());
    let untouched = main.clone();
    let parts = [[1.0f32, 2.0, 3.0, 6.0], [-1.0, 0.0, 5.0, 8.0]];
    let (mut mean, mut variance) = (0.0, 1.0);
    for _ in 0..3 {
        std::thread::scope(|scope| {
            for (place, part) in places.iter().zip(parts) {
                let copy = main.clone();
                scope.spawn(move || {
                    let copy = copy.fork(place);
                    let x = Tensor::<1>::from_floats(part, place).reshape([4, 1]);
                    values(copy.forward(x))
                });
            }
        });
        let of_batch = parts.map(|part| {
            let mean = part.iter().sum::<f32>() / 4.0;
            (mean, part.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 3.0)
        });
        mean = 0.9 * mean + 0.1 * (of_batch[0].0 + of_batch[1].0) / 2.0;
        variance = 0.9 * variance + 0.1 * (of_batch[0].1 + of_batch[1].1) / 2.0;
        close(main.running_mean.value(), &[mean], 1e-5);
        close(main.running_var.value(), &[variance], 1e-5);
    }
    // The merged values are what inference, snapshots and records have, on the device of the model.
    let x = Tensor::<2>::from_floats([[1.0], [4.0]], &Device::default());
    let expected = [1.0, 4.0].map(|x| (x - mean) / (variance + 1e-5).sqrt());
    close(main.valid().forward(x), &expected, 1e-5);
    assert_eq!(main.running_mean.value().device(), main.gamma.val().device());
    close(untouched.running_mean.value(), &[0.0], 0.0);
    // One that trains beside its copies is part of the mean; a copy that was not forked is on its own.
    let main = BatchNormConfig::new(1).with_momentum(0.5).init(&device());
    let (fork, alone) = (main.clone().fork(&places[0]), main.clone());
    let on = |place: &Device, value: f32| Tensor::<2>::from_floats([[value], [value + 2.0]], place);
    fork.forward(on(&places[0], 3.0));
    main.forward(on(&device(), 1.0));
    alone.forward(on(&device(), 99.0));
    // Reading the model for its own step took what the fork had become until then: 0.5 · 4, and then 0.5 · 2 + 0.5 · 2.
    close(main.running_mean.value(), &[2.0], 1e-6);
    close(alone.running_mean.value(), &[50.0], 1e-6);
}

/// E13, E14: clones share what is drawn later; taking a snapshot of a snapshot changes nothing.
#[test]
fn snapshots_of_snapshots_are_the_same() {
    for device in [Device::default(), device()] {
        let mixed = Mixed {
            linear: LinearConfig::new(3, 2).init(&device),
            norm: BatchNormConfig::new(2).init(&device),
            drop: kiln_nn::DropoutConfig::new(0.5).init(),
        };
        let copy = mixed.clone();
        let once = mixed.valid();
        let twice = once.valid();
        let input = Tensor::<2>::ones([4, 3], &Device::default());
        let run = |model: &Mixed| values(model.drop.forward(model.norm.forward(model.linear.forward(input.clone()))));
        assert_eq!(run(&once), run(&twice));
        assert_eq!(values(copy.linear.weight.val()), values(twice.linear.weight.val()));
        let still = twice.no_grad().no_grad();
        assert_eq!(run(&once), run(&still));
        let again = still.train();
        assert!(again.linear.weight.is_autodiff());
    }
}

/// E17: norms of half floats accumulate in single precision: these sums of squares are beyond half precision.
#[test]
fn norms_of_half_floats_accumulate_in_single_precision() {
    let plain = Device::default();
    let x = Tensor::<2>::random([2, 4096], Distribution::Normal(200.0, 20.0), &plain);
    for dtype in [FloatDType::F16, FloatDType::BF16] {
        let tolerance = if dtype == FloatDType::F16 { 4e-3 } else { 3e-2 };
        let half = x.clone().cast(dtype);
        let whole = half.clone().cast(FloatDType::F32);
        let norm = LayerNormConfig::new(4096).init(&plain);
        let mut cast = norm.clone();
        cast.gamma = cast.gamma.map(|gamma| gamma.cast(dtype));
        cast.beta = cast.beta.map(|beta| beta.map(|beta| beta.cast(dtype)));
        let found = cast.forward(half.clone());
        assert_eq!(found.dtype(), DType::from(dtype));
        close(found, &values(norm.forward(whole.clone())), tolerance);
        let rms = RmsNormConfig::new(4096).init(&plain);
        let mut cast = rms.clone();
        cast.gamma = cast.gamma.map(|gamma| gamma.cast(dtype));
        close(cast.forward(half), &values(rms.forward(whole)), tolerance);
    }
}

/// F01, F02: certain predictions cost 0 or 100 and have a finite gradient; weights are those of the labels.
#[test]
fn binary_cross_entropy_is_bounded_and_weighted_by_label() {
    let loss = BinaryCrossEntropyLossConfig::new().init(&device());
    let certain = |p: [f32; 4]| {
        let predicted = Tensor::<1>::from_floats(p, &device()).require_grad();
        let cost = loss.forward(predicted.clone(), Tensor::<1, Int>::from_ints([1, 0, 1, 0], &device()));
        let gradient = predicted.grad(&cost.backward()).expect("it is tracked");
        assert!(values(gradient).iter().all(|value| value.is_finite()));
        values(cost)[0]
    };
    assert_eq!(certain([1.0, 0.0, 1.0, 0.0]), 0.0);
    assert!((certain([0.0, 1.0, 0.0, 1.0]) - 100.0).abs() < 1e-3);
    let weighted = BinaryCrossEntropyLossConfig::new().with_weights(Some(vec![3.0, 7.0])).init(&device());
    let predicted = [0.2f32, 0.7, 0.6, 0.9];
    let cost = weighted.forward(Tensor::<1>::from_floats(predicted, &device()), Tensor::<1, Int>::from_ints([0, 1, 0, 1], &device()));
    let nll = [-(0.8f32.ln()) * 3.0, -(0.7f32.ln()) * 7.0, -(0.4f32.ln()) * 3.0, -(0.9f32.ln()) * 7.0];
    close(cost, &[nll.iter().sum::<f32>() / 20.0], 1e-6);
}

/// F04, F05: rows that are left out count in no part of the loss, with weights, with smoothing and with both, for every reduction.
#[test]
fn rows_left_out_count_in_no_part_of_cross_entropy() {
    let logits = [[0.3, -1.2, 0.8], [1.1, 0.4, -0.7], [0.2, 0.2, 2.0], [-0.5, 0.9, 0.1]];
    let targets = [2, 0, 1, 0];
    let cost = |config: CrossEntropyLossConfig, rows: &[usize]| {
        let kept: Vec<[f32; 3]> = rows.iter().map(|row| logits[*row]).collect();
        let labels: Vec<i64> = rows.iter().map(|row| targets[*row]).collect();
        let flat: Vec<f32> = kept.into_iter().flatten().collect();
        let logits = Tensor::<1>::from_floats(flat.as_slice(), &device()).reshape([rows.len(), 3]).require_grad();
        let loss = config.init(&device()).forward(logits.clone(), Tensor::<1, Int>::from_data(kiln_tensor::TensorData::from(&labels[..]), &device()));
        let gradient = values(logits.grad(&loss.backward()).unwrap());
        (values(loss)[0], gradient)
    };
    for weights in [None, Some(vec![1.0, 3.0, 0.5])] {
        for smoothing in [None, Some(0.1)] {
            let config = || CrossEntropyLossConfig::new().with_weights(weights.clone()).with_smoothing(smoothing);
            // Label 0 is padding: rows 1 and 3 are out.
            let (padded, gradient) = cost(config().with_pad_tokens(Some(vec![0])), &[0, 1, 2, 3]);
            let (alone, expected) = cost(config(), &[0, 2]);
            assert!((padded - alone).abs() < 1e-6, "{weights:?} {smoothing:?}: {padded}, without the rows {alone}");
            assert_eq!(gradient[3..6], [0.0; 3]);
            assert_eq!(gradient[9..], [0.0; 3]);
            for (found, expected) in gradient[..3].iter().chain(&gradient[6..9]).zip(&expected) {
                assert!((found - expected).abs() < 1e-6);
            }
        }
    }
    let zeros = |config: CrossEntropyLossConfig| {
        let loss = config.with_pad_tokens(Some(vec![1])).init(&device());
        values(loss.forward(Tensor::<2>::zeros([2, 2], &device()), Tensor::<1, Int>::from_ints([0, 1], &device())))[0]
    };
    assert!((zeros(CrossEntropyLossConfig::new()) - std::f32::consts::LN_2).abs() < 1e-5);
    assert!((zeros(CrossEntropyLossConfig::new().with_weights(Some(vec![1.0, 3.0]))) - std::f32::consts::LN_2).abs() < 1e-5);
}

/// The rows of the list beside this file name its tests.
#[test]
fn every_fault_of_the_list_has_a_test() {
    let rows: Vec<&str> = include_str!("faults.md").lines().filter(|line| line.starts_with("| E") || line.starts_with("| F")).collect();
    assert_eq!(rows.len(), 16);
    for row in rows {
        let test = row.split('`').nth(1).unwrap_or_default();
        assert!(include_str!("faults.rs").contains(&format!("#[test]\nfn {test}()")), "{row} names no test");
    }
}
