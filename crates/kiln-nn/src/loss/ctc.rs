//! Connectionist temporal classification.

use alloc::vec;

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::ops::PadMode;
use kiln_tensor::{Int, Tensor};

use super::Reduction;

/// Configuration of a [`CTCLoss`].
#[derive(Config, Debug)]
pub struct CTCLossConfig {
    /// The class that stands for no symbol. Default: 0.
    #[config(default = 0)]
    pub blank: usize,
    /// Whether an infinite loss (a target that is too long for its input) counts as zero. Default: false.
    #[config(default = false)]
    pub zero_infinity: bool,
}

/// The negative log probability that a sequence of predictions reads as its target, over all alignments.
///
/// Graves et al. 2006, "Connectionist Temporal Classification".
///
/// ```
/// use kiln_nn::loss::CTCLossConfig;
/// use kiln_tensor::{Device, Int, Tensor, activation};
///
/// let device = Device::default();
/// let log_probs = activation::log_softmax(Tensor::<3>::zeros([1, 1, 2], &device), 2);
/// let loss = CTCLossConfig::new().init().forward(
///     log_probs,
///     Tensor::<2, Int>::from_ints([[1]], &device),
///     Tensor::<1, Int>::from_ints([1], &device),
///     Tensor::<1, Int>::from_ints([1], &device),
/// );
/// assert!((loss.into_scalar::<f32>() - 2f32.ln()).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct CTCLoss {
    blank: usize,
    zero_infinity: bool,
}

impl CTCLossConfig {
    /// The loss.
    pub fn init(&self) -> CTCLoss {
        CTCLoss { blank: self.blank, zero_infinity: self.zero_infinity }
    }
}

impl CTCLoss {
    /// The loss of each sequence, `[batch]`, from log probabilities `[time, batch, classes]`, targets
    /// `[batch, target length]` and the lengths that count of both, `[batch]`.
    ///
    /// # Panics
    ///
    /// When the shapes don't agree or the blank is no class.
    #[track_caller]
    pub fn forward(&self, log_probs: Tensor<3>, targets: Tensor<2, Int>, input_lengths: Tensor<1, Int>, target_lengths: Tensor<1, Int>) -> Tensor<1> {
        let [time, batch, classes] = log_probs.dims();
        let [count, _] = targets.dims();
        assert!(count == batch && time > 0, "ctc loss: predictions have shape [{time}, {batch}, {classes}], targets are {count} sequences");
        assert!(self.blank < classes, "ctc loss: the blank {} is no class of {classes}", self.blank);
        let symbols = self.with_blanks(targets.clamp(0, classes as i64 - 1));
        let losses = alignments(log_probs, symbols, self.blank, input_lengths, target_lengths).neg();
        // Beyond any sum of logarithms: there is no alignment.
        let impossible = losses.clone().greater_elem(-NEVER * 0.1);
        losses.mask_fill(impossible, if self.zero_infinity { 0.0 } else { f64::INFINITY })
    }

    /// The reduced loss, `[1]`. The mean divides each sequence's loss by the length of its target first.
    #[track_caller]
    pub fn forward_with_reduction(
        &self,
        log_probs: Tensor<3>,
        targets: Tensor<2, Int>,
        input_lengths: Tensor<1, Int>,
        target_lengths: Tensor<1, Int>,
        reduction: Reduction,
    ) -> Tensor<1> {
        let lengths = target_lengths.clone();
        let losses = self.forward(log_probs, targets, input_lengths, target_lengths);
        match reduction {
            Reduction::Mean | Reduction::Auto => {
                let lengths = lengths.clamp_min(1).float().cast(losses.dtype());
                (losses / lengths).mean()
            }
            Reduction::Sum | Reduction::BatchMean => reduction.apply(losses),
        }
    }
}

impl CTCLoss {
    /// The targets with blanks before, between and after: `[batch, 2 · length + 1]`.
    fn with_blanks(&self, targets: Tensor<2, Int>) -> Tensor<2, Int> {
        let [batch, length] = targets.dims();
        let options = (&targets.device(), targets.dtype());
        let last = Tensor::<2, Int>::full([batch, 1], self.blank as i64, options);
        if length == 0 {
            return last;
        }
        let blanks = targets.full_like(self.blank as i64);
        let pairs = Tensor::stack::<3>(vec![blanks, targets], 2).reshape([batch, 2 * length]);
        Tensor::cat(vec![pairs, last], 1)
    }
}

/// Stands for the logarithm of zero: finite, so that differences of it are no NaN.
const NEVER: f64 = -1e30;

/// The log probability of all alignments of predictions `[time, batch, classes]` with symbols `[batch, states]`.
fn alignments(
    log_probs: Tensor<3>,
    symbols: Tensor<2, Int>,
    blank: usize,
    input_lengths: Tensor<1, Int>,
    target_lengths: Tensor<1, Int>,
) -> Tensor<1> {
    let [time, batch, _] = log_probs.dims();
    let [_, states] = symbols.dims();
    let index = symbols.clone().unsqueeze_dim::<3>(0).expand([time, batch, states]);
    let emitted = log_probs.gather(2, index);
    let row = |t: usize| emitted.clone().narrow(0, t, 1).reshape([batch, states]);
    let never = PadMode::Constant(NEVER as f32);
    // The sum over the first states, moved up by some, with nothing coming in.
    let moved = |x: &Tensor<2>, by: usize| {
        let by = by.min(states);
        x.clone().narrow(1, 0, states - by).pad([(0, 0), (by, 0)], never)
    };
    // A blank between two symbols may be left out unless the symbols are the same.
    let barred = if states < 3 {
        symbols.clone().equal(symbols.clone())
    } else {
        let before = symbols.clone().narrow(1, 0, states - 2);
        let before = Tensor::cat(vec![symbols.clone().narrow(1, 0, 2), before], 1);
        symbols.clone().equal(before).bool_or(symbols.equal_elem(blank as i64))
    };
    let start = row(0);
    let mut alpha = start.clone().narrow(1, 0, states.min(2));
    if states > 2 {
        alpha = alpha.pad([(0, 0), (0, states - 2)], never);
    }
    for t in 1..time {
        let skipped = moved(&alpha, 2).mask_fill(barred.clone(), NEVER);
        let next = log_sum([alpha.clone(), moved(&alpha, 1), skipped]) + row(t);
        // A sequence that has ended keeps its sums.
        let ended = input_lengths.clone().lower_equal_elem(t as i64);
        let ended = ended.unsqueeze_dim::<2>(1).expand([batch, states]);
        alpha = next.clamp_min(NEVER).mask_where(ended, alpha);
    }
    let last = (target_lengths.clone() * 2).unsqueeze_dim::<2>(1);
    let blank_end = alpha.clone().gather(1, last.clone());
    let symbol_end = alpha.gather(1, (last - 1).clamp_min(0));
    let empty = target_lengths.lower_elem(1).unsqueeze_dim::<2>(1);
    let symbol_end = symbol_end.mask_fill(empty, NEVER);
    log_sum([blank_end, symbol_end]).clamp_min(NEVER).squeeze_dim(1)
}

/// `ln Σ eˣ`. The largest is taken out as a constant, which leaves the gradient exact.
fn log_sum<const N: usize>(terms: [Tensor<2>; N]) -> Tensor<2> {
    let mut most = terms[0].clone();
    for term in &terms[1..] {
        most = most.max_pair(term.clone());
    }
    let most = most.detach();
    let mut sum = (terms[0].clone() - most.clone()).exp();
    for term in &terms[1..] {
        sum = sum + (term.clone() - most.clone()).exp();
    }
    sum.log() + most
}

inline_display!(CTCLoss, loss, content => content
    .add("blank", &loss.blank)
    .add("zero_infinity", &loss.zero_infinity));
