//! Cross entropy with class labels.

use alloc::vec;
use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Bool, Device, Int, Tensor, activation};

/// Configuration of a [`CrossEntropyLoss`].
#[derive(Config, Debug)]
pub struct CrossEntropyLossConfig {
    /// The targets that are left out. Default: none.
    #[config(default = None)]
    pub pad_tokens: Option<Vec<usize>>,
    /// The weight of each class. Default: one.
    #[config(default = None)]
    pub weights: Option<Vec<f32>>,
    /// The share of the target's probability that is spread over all classes, in `[0, 1]`. Default: none.
    #[config(default = None)]
    pub smoothing: Option<f32>,
    /// Whether the predictions are logits, and not probabilities. Default: true.
    #[config(default = true)]
    pub logits: bool,
}

/// `-log softmax(x)[target]`, averaged over the targets that are not padding.
///
/// With weights, it is the weighted mean. With smoothing `s`, a target is `(1 - s)` of its class and `s / classes` of
/// every class. If all targets are padding, the loss is NaN.
///
/// ```
/// use kiln_nn::loss::CrossEntropyLossConfig;
/// use kiln_tensor::{Device, Int, Tensor};
///
/// let device = Device::default();
/// let loss = CrossEntropyLossConfig::new().init(&device);
/// let logits = Tensor::<2>::zeros([2, 4], &device);
/// let targets = Tensor::<1, Int>::from_ints([1, 3], &device);
/// let value: f32 = loss.forward(logits, targets).into_scalar();
/// assert!((value - 4f32.ln()).abs() < 1e-6);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct CrossEntropyLoss {
    /// The targets that are left out.
    pub pad_tokens: Option<Vec<usize>>,
    /// The weight of each class, `[classes]`.
    pub weights: Option<Tensor<1>>,
    /// The share of the target's probability that is spread over all classes.
    pub smoothing: Option<f32>,
    /// Whether the predictions are logits.
    pub logits: bool,
}

impl CrossEntropyLossConfig {
    /// The loss, with its weights on `device`.
    ///
    /// # Panics
    ///
    /// When the smoothing is not in `[0, 1]` or a weight is not positive.
    #[track_caller]
    pub fn init(&self, device: &Device) -> CrossEntropyLoss {
        if let Some(smoothing) = self.smoothing {
            assert!((0.0..=1.0).contains(&smoothing), "cross entropy: the smoothing must be in [0, 1], got {smoothing}");
        }
        if let Some(weights) = &self.weights {
            assert!(weights.iter().all(|weight| *weight > 0.0), "cross entropy: the weights must be positive, got {weights:?}");
        }
        CrossEntropyLoss {
            pad_tokens: self.pad_tokens.clone(),
            weights: self.weights.as_ref().map(|weights| Tensor::from_data(weights.as_slice(), device)),
            smoothing: self.smoothing,
            logits: self.logits,
        }
    }
}

impl CrossEntropyLoss {
    /// The loss of logits, leaving out the target `pad_index` if there is one.
    pub fn new(pad_index: Option<usize>, device: &Device) -> Self {
        CrossEntropyLossConfig::new().with_pad_tokens(pad_index.map(|token| vec![token])).init(device)
    }

    /// The loss `[1]` of predictions `[batch, classes]` for targets `[batch]`.
    ///
    /// # Panics
    ///
    /// When the shapes don't agree.
    #[track_caller]
    pub fn forward(&self, logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
        let [batch, classes] = logits.dims();
        let [count] = targets.dims();
        assert!(batch == count, "cross entropy: predictions have shape [{batch}, {classes}], targets [{count}]");
        let padding = self.padding(&targets);
        let log_probs = if self.logits { activation::log_softmax(logits, 1) } else { logits.log() };
        let others = other_classes(targets, classes);
        let mut losses = select(log_probs.clone(), others.clone()).neg();
        let weights = self.weights.as_ref().map(|weights| {
            let [size] = weights.dims();
            assert!(size == classes, "cross entropy: there are {size} weights for {classes} classes");
            weights.clone().cast(log_probs.dtype()).unsqueeze_dim::<2>(0)
        });
        let weight_of_target = weights.clone().map(|weights| select(weights.expand([batch, classes]), others));
        if let Some(weight) = &weight_of_target {
            losses = losses * weight.clone();
        }
        if let Some(smoothing) = self.smoothing {
            let smoothing = f64::from(smoothing);
            let all = match weights {
                Some(weights) => (log_probs * weights).sum_dim(1),
                None => log_probs.sum_dim(1),
            };
            losses = losses * (1.0 - smoothing) - all * (smoothing / classes as f64);
        }
        match (padding, weight_of_target) {
            (None, None) => losses.mean(),
            (None, Some(shares)) => losses.sum() / shares.sum(),
            (Some(padding), shares) => {
                let options = (&losses.device(), losses.dtype());
                let shares = shares.unwrap_or_else(|| Tensor::ones([batch, 1], options));
                let losses = losses.mask_fill(padding.clone(), 0.0);
                losses.sum() / shares.mask_fill(padding, 0.0).sum()
            }
        }
    }

    /// True where the target is left out, `[batch, 1]`.
    fn padding(&self, targets: &Tensor<1, Int>) -> Option<Tensor<2, Bool>> {
        let tokens = self.pad_tokens.as_ref()?;
        tokens.iter().map(|token| targets.clone().equal_elem(*token as i64)).reduce(Tensor::bool_or).map(|mask| mask.unsqueeze_dim(1))
    }
}

/// True at all classes but the target's, `[batch, classes]`. Compared with a count instead of gathered, so that the loss and its
/// gradient are one row kernel.
pub(super) fn other_classes(targets: Tensor<1, Int>, classes: usize) -> Tensor<2, Bool> {
    let device = targets.device();
    let numbers = Tensor::<1, Int>::arange(0..classes as i64, (&device, targets.dtype()));
    let [batch] = targets.dims();
    let targets = targets.unsqueeze_dim::<2>(1).expand([batch, classes]);
    targets.not_equal(numbers.unsqueeze_dim::<2>(0).expand([batch, classes]))
}

/// The value of each row at the target's class, `[batch, 1]`.
pub(super) fn select(values: Tensor<2>, others: Tensor<2, Bool>) -> Tensor<2> {
    values.mask_fill(others, 0.0).sum_dim(1)
}

inline_display!(CrossEntropyLoss, loss, content => content
    .add_debug_attribute("pad_tokens", &loss.pad_tokens)
    .add_debug_attribute("weights", &loss.weights.as_ref().map(Tensor::dims))
    .add_debug_attribute("smoothing", &loss.smoothing)
    .add("logits", &loss.logits));
