//! Cross entropy with truth values.

use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Device, Int, Tensor, activation};

/// Configuration of a [`BinaryCrossEntropyLoss`].
#[derive(Config, Debug)]
pub struct BinaryCrossEntropyLossConfig {
    /// Weights: of the classes 0 and 1 for targets of rank one, else of the labels along the last axis. Default: one.
    #[config(default = None)]
    pub weights: Option<Vec<f32>>,
    /// The share of a target that is spread evenly, in `[0, 1]`. Default: none.
    #[config(default = None)]
    pub smoothing: Option<f32>,
    /// Whether the predictions are logits, and not probabilities. Default: false.
    #[config(default = false)]
    pub logits: bool,
}

/// `-(y · ln p + (1 - y) · ln(1 - p))`, averaged.
///
/// Logarithms are bounded by -100, so that a certain and wrong prediction costs 100. For targets of rank one, weights
/// are those of the classes 0 and 1 and the mean is the weighted one; for higher ranks they scale the labels.
///
/// ```
/// use kiln_nn::loss::BinaryCrossEntropyLossConfig;
/// use kiln_tensor::{Device, Int, Tensor};
///
/// let device = Device::default();
/// let loss = BinaryCrossEntropyLossConfig::new().with_logits(true).init(&device);
/// let logits = Tensor::<1>::zeros([2], &device);
/// let targets = Tensor::<1, Int>::from_ints([0, 1], &device);
/// let value: f32 = loss.forward(logits, targets).into_scalar();
/// assert!((value - 2f32.ln()).abs() < 1e-6);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct BinaryCrossEntropyLoss {
    /// The weights.
    pub weights: Option<Tensor<1>>,
    /// The share of a target that is spread evenly.
    pub smoothing: Option<f32>,
    /// Whether the predictions are logits.
    pub logits: bool,
}

impl BinaryCrossEntropyLossConfig {
    /// The loss, with its weights on `device`.
    ///
    /// # Panics
    ///
    /// When the smoothing is not in `[0, 1]` or a weight is not positive.
    #[track_caller]
    pub fn init(&self, device: &Device) -> BinaryCrossEntropyLoss {
        if let Some(smoothing) = self.smoothing {
            assert!((0.0..=1.0).contains(&smoothing), "binary cross entropy: the smoothing must be in [0, 1], got {smoothing}");
        }
        if let Some(weights) = &self.weights {
            assert!(weights.iter().all(|weight| *weight > 0.0), "binary cross entropy: the weights must be positive, got {weights:?}");
        }
        BinaryCrossEntropyLoss {
            weights: self.weights.as_ref().map(|weights| Tensor::from_data(weights.as_slice(), device)),
            smoothing: self.smoothing,
            logits: self.logits,
        }
    }
}

impl BinaryCrossEntropyLoss {
    /// The loss `[1]` of predictions for targets (0 or 1) of the same shape.
    ///
    /// # Panics
    ///
    /// When the shapes don't agree.
    #[track_caller]
    pub fn forward<const D: usize>(&self, logits: Tensor<D>, targets: Tensor<D, Int>) -> Tensor<1> {
        let (shape, found) = (logits.dims(), targets.dims());
        assert!(shape == found, "binary cross entropy: predictions have shape {shape:?}, targets {found:?}");
        let hard = targets.float().cast(logits.dtype());
        let target = match self.smoothing {
            Some(smoothing) => {
                let smoothing = f64::from(smoothing);
                let labels = if D > 1 { shape[D - 1] } else { 2 };
                hard.clone() * (1.0 - smoothing) + smoothing / labels as f64
            }
            None => hard.clone(),
        };
        let losses = if self.logits {
            // -y ln σ(x) - (1 - y) ln σ(-x), where ln σ(-x) = ln σ(x) - x.
            (1.0 - target) * logits.clone() - activation::log_sigmoid(logits)
        } else {
            let hit = target.clone() * bounded_log(logits.clone());
            let miss: Tensor<D> = (1.0 - target) * bounded_log(1.0 - logits);
            (hit + miss).neg()
        };
        let Some(weights) = &self.weights else {
            return losses.mean();
        };
        let count = weights.dims()[0];
        let weights = weights.clone().cast(losses.dtype());
        if D == 1 {
            assert!(count == 2, "binary cross entropy: targets of rank one have two classes, got {count} weights");
            let [absent, present] = [0, 1].map(|class| weights.clone().narrow(0, class, 1));
            // The weight of each element's class.
            let shape: [usize; D] = [1; D];
            let (absent, present) = (absent.reshape(shape), present.reshape(shape));
            let weights: Tensor<D> = hard.clone() * present + (1.0 - hard) * absent;
            (losses * weights.clone()).sum() / weights.sum()
        } else {
            assert!(count == shape[D - 1], "binary cross entropy: there are {count} weights for {} labels", shape[D - 1]);
            (losses * weights.unsqueeze::<D>()).mean()
        }
    }
}

/// `max(ln x, -100)`, with a gradient of zero where `x` is zero.
fn bounded_log<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let zero = x.clone().lower_equal_elem(0.0);
    let log = x.mask_fill(zero.clone(), 1.0).log();
    log.mask_fill(zero, -100.0).clamp_min(-100.0)
}

inline_display!(BinaryCrossEntropyLoss, loss, content => content
    .add_debug_attribute("weights", &loss.weights.as_ref().map(Tensor::dims))
    .add_debug_attribute("smoothing", &loss.smoothing)
    .add("logits", &loss.logits));
