//! The transducer loss.

use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::ops::PadMode;
use kiln_tensor::{Bool, Int, Tensor, TensorData, activation};

use super::Reduction;

/// Configuration of an [`RNNTLoss`].
#[derive(Config, Debug)]
pub struct RNNTLossConfig {
    /// The class that stands for no symbol. Default: 0.
    #[config(default = 0)]
    pub blank: usize,
    /// Whether the predictions are logits, and not log probabilities. Default: true.
    #[config(default = true)]
    pub logits: bool,
}

/// The negative log probability that a transducer emits its target, over all alignments.
///
/// Graves 2012, [arXiv:1211.3711](https://arxiv.org/abs/1211.3711).
///
/// ```
/// use kiln_nn::loss::RNNTLossConfig;
/// use kiln_tensor::{Device, Int, Tensor};
///
/// let device = Device::default();
/// // One time step and one symbol: emit it, then the blank.
/// let loss = RNNTLossConfig::new().init().forward(
///     Tensor::zeros([1, 1, 2, 2], &device),
///     Tensor::<2, Int>::from_ints([[1]], &device),
///     Tensor::<1, Int>::from_ints([1], &device),
///     Tensor::<1, Int>::from_ints([1], &device),
/// );
/// assert!((loss.into_scalar::<f32>() - 4f32.ln()).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct RNNTLoss {
    blank: usize,
    logits: bool,
}

impl RNNTLossConfig {
    /// The loss.
    pub fn init(&self) -> RNNTLoss {
        RNNTLoss { blank: self.blank, logits: self.logits }
    }
}

/// Stands for the logarithm of zero: finite, so that differences of it are no NaN.
const NEVER: f64 = -1e30;

impl RNNTLoss {
    /// The loss of each sequence, `[batch]`, from predictions `[batch, time, target length + 1, classes]`, targets
    /// `[batch, target length]` and the lengths that count of both, `[batch]`.
    ///
    /// # Panics
    ///
    /// When the shapes don't agree, or a length is beyond its axis.
    #[track_caller]
    pub fn forward(&self, logits: Tensor<4>, targets: Tensor<2, Int>, logit_lengths: Tensor<1, Int>, target_lengths: Tensor<1, Int>) -> Tensor<1> {
        let [batch, time, states, classes] = logits.dims();
        let [count, symbols] = targets.dims();
        assert!(
            count == batch && symbols + 1 == states,
            "rnnt loss: predictions of shape [{batch}, {time}, {states}, {classes}] need targets of shape \
             [{batch}, {}], got [{count}, {symbols}]",
            states.saturating_sub(1)
        );
        assert!(self.blank < classes, "rnnt loss: the blank {} is no class of {classes}", self.blank);
        let log_probs = if self.logits { activation::log_softmax(logits, 3) } else { logits };
        let device = log_probs.device();
        let int = targets.dtype();
        let blank = log_probs.clone().narrow(3, self.blank, 1).reshape([batch, time, states]);
        // The probability of emitting the next symbol; none follows the last state.
        let emit = if symbols == 0 {
            blank.full_like(NEVER)
        } else {
            let index = targets.reshape([batch, 1, symbols, 1]).expand([batch, time, symbols, 1]);
            let emit = log_probs.narrow(2, 0, symbols).gather(3, index).reshape([batch, time, symbols]);
            emit.pad([(0, 0), (0, 0), (0, 1)], PadMode::Constant(NEVER as f32))
        };
        // On the diagonal n = t + u all values follow from those on n - 1.
        let diagonals = time + symbols;
        let mut places = Vec::with_capacity(diagonals * states);
        let mut outside = Vec::with_capacity(diagonals * states);
        for diagonal in 0..diagonals {
            for state in 0..states {
                let inside = state <= diagonal && diagonal - state < time;
                places.push(if inside { (diagonal - state) as i64 } else { 0 });
                outside.push(!inside);
            }
        }
        let shape = [1, diagonals, states];
        let places = Tensor::<3, Int>::from_data(TensorData::new(places, shape), (&device, int)).expand([batch, diagonals, states]);
        let outside = Tensor::<3, Bool>::from_data(TensorData::new(outside, shape), &device).expand([batch, diagonals, states]);
        let skew = |x: Tensor<3>| x.gather(1, places.clone()).mask_fill(outside.clone(), NEVER);
        let (blank, emit) = (skew(blank), skew(emit));
        let row = |x: &Tensor<3>, diagonal: usize| x.clone().narrow(1, diagonal, 1).reshape([batch, states]);
        // At the start, only the first state of the first time step is reached.
        let start = blank.clone().narrow(1, 0, 1).reshape([batch, states]).full_like(NEVER);
        let mut alpha = start.slice_fill([0..batch, 0..1], 0.0f32);
        let mut alphas = Vec::with_capacity(diagonals);
        alphas.push(alpha.clone());
        for diagonal in 1..diagonals {
            let stay = alpha.clone() + row(&blank, diagonal - 1);
            let step = (alpha + row(&emit, diagonal - 1)).narrow(1, 0, symbols).pad([(0, 0), (1, 0)], PadMode::Constant(NEVER as f32));
            alpha = log_add(stay, step).clamp_min(NEVER);
            alphas.push(alpha.clone());
        }
        // The last blank, from the last state of the last time step.
        let ends: Tensor<3> = Tensor::stack::<3>(alphas, 1) + blank;
        let last = (logit_lengths + target_lengths.clone() - 1).reshape([batch, 1, 1]).expand([batch, 1, states]);
        let ends = ends.gather(1, last).reshape([batch, states]);
        ends.gather(1, target_lengths.reshape([batch, 1])).reshape([batch]).neg()
    }

    /// The reduced loss, `[1]`.
    #[track_caller]
    pub fn forward_with_reduction(
        &self,
        logits: Tensor<4>,
        targets: Tensor<2, Int>,
        logit_lengths: Tensor<1, Int>,
        target_lengths: Tensor<1, Int>,
        reduction: Reduction,
    ) -> Tensor<1> {
        reduction.apply(self.forward(logits, targets, logit_lengths, target_lengths))
    }
}

/// `ln(eᵃ + eᵇ)`. The larger is taken out as a constant, which leaves the gradient exact.
fn log_add(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let most = a.clone().max_pair(b.clone()).detach();
    ((a - most.clone()).exp() + (b - most.clone()).exp()).log() + most
}

inline_display!(RNNTLoss, loss, content => content
    .add("blank", &loss.blank)
    .add("logits", &loss.logits));
