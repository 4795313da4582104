//! Batch normalisation.

use kiln_module::config::Config;
use kiln_module::module::{Flag, Initializer, Module, Param, RunningState};
use kiln_tensor::{Device, Tensor, module};

/// Configuration of [`BatchNorm`].
#[derive(Config, Debug)]
pub struct BatchNormConfig {
    /// The number of channels.
    pub num_features: usize,
    /// Added to the variance. Default: 1e-5.
    #[config(default = 1e-5)]
    pub epsilon: f64,
    /// The weight of a batch in the running statistics. Default: 0.1.
    #[config(default = 0.1)]
    pub momentum: f64,
}

/// Normalises each channel over the batch: `(x - mean) / √(var + ε) · γ + β`.
///
/// While training (its flag is on, and its parameters or its input take part in autodiff), mean and variance are those of
/// the batch, and the running statistics move towards them by `momentum`; otherwise the running statistics are used. The running variance is the unbiased
/// one (divided by `n - 1`), as in PyTorch, so that weights can be exchanged.
/// Ioffe and Szegedy 2015, [arXiv:1502.03167](https://arxiv.org/abs/1502.03167).
///
/// ```
/// use kiln_nn::BatchNormConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let norm = BatchNormConfig::new(3).init(&device);
/// assert_eq!(norm.forward(Tensor::<4>::ones([2, 3, 4, 4], &device)).dims(), [2, 3, 4, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct BatchNorm {
    /// The scale γ, `[num_features]`.
    pub gamma: Param<Tensor<1>>,
    /// The offset β, `[num_features]`.
    pub beta: Param<Tensor<1>>,
    /// On while training.
    pub training: Param<Flag>,
    /// The running mean, `[num_features]`.
    pub running_mean: RunningState<Tensor<1>>,
    /// The running variance, `[num_features]`.
    pub running_var: RunningState<Tensor<1>>,
    /// The weight of a batch in the running statistics.
    pub momentum: f64,
    /// Added to the variance.
    pub epsilon: f64,
}

impl BatchNormConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> BatchNorm {
        let shape = [self.num_features];
        BatchNorm {
            gamma: Initializer::Ones.init(shape, device),
            beta: Initializer::Zeros.init(shape, device),
            training: Param::from_bool(true),
            running_mean: RunningState::new(Tensor::zeros(shape, device)),
            running_var: RunningState::new(Tensor::ones(shape, device)),
            momentum: self.momentum,
            epsilon: self.epsilon,
        }
    }
}

impl BatchNorm {
    /// Normalises `[batch, channels, ..]`.
    ///
    /// # Panics
    ///
    /// When the rank is below two or the channels are not `num_features`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        assert!(D >= 2, "batch norm: needs rank 2 or more, got {D}");
        let features = self.gamma.lazy_shape()[0];
        let shape = input.dims();
        assert!(shape[1] == features, "batch norm: the input has {} channels (shape {shape:?}), the layer {features}", shape[1]);
        let trains = self.training.is_enabled() && (self.gamma.lazy_device().is_autodiff() || input.is_autodiff());
        if trains {
            self.forward_train(input)
        } else {
            module::batch_norm(input, self.gamma.val(), self.beta.val(), self.running_mean.value(), self.running_var.value(), self.epsilon)
        }
    }

    fn forward_train<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let count = input.shape().num_elements() / input.dims()[1].max(1);
        let batch = module::batch_norm_train(input, self.gamma.val(), self.beta.val(), self.epsilon);
        let factor = if count > 1 { count as f64 / (count - 1) as f64 } else { 1.0 };
        let keep = 1.0 - self.momentum;
        // Statistics of half floats are worked out in single precision; what is kept has the dtype that it has.
        let (mean, variance) = (self.running_mean.value(), self.running_var.value());
        let of_batch = batch.mean.detach().cast(mean.dtype());
        self.running_mean.update(of_batch * self.momentum + mean * keep);
        let of_batch = batch.variance.detach().cast(variance.dtype());
        self.running_var.update(of_batch * (self.momentum * factor) + variance * keep);
        batch.output
    }
}

inline_display!(BatchNorm, layer, content => content
    .add("num_features", &layer.gamma.lazy_shape()[0])
    .add("momentum", &layer.momentum)
    .add("epsilon", &layer.epsilon));
