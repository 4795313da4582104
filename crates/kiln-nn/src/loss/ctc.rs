//! Connectionist temporal classification.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Int, Tensor, module};

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
    #[track_caller]
    pub fn forward(&self, log_probs: Tensor<3>, targets: Tensor<2, Int>, input_lengths: Tensor<1, Int>, target_lengths: Tensor<1, Int>) -> Tensor<1> {
        let losses = module::ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank);
        if self.zero_infinity {
            let infinite = losses.clone().is_inf();
            losses.mask_fill(infinite, 0.0)
        } else {
            losses
        }
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

inline_display!(CTCLoss, loss, content => content
    .add("blank", &loss.blank)
    .add("zero_infinity", &loss.zero_infinity));
