//! Adafactor.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::grad_clipping::GradientClippingConfig;
use crate::number::exact;
use crate::{LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`Adafactor`].
#[derive(Config, Debug)]
pub struct AdafactorConfig {
    /// Added to squared gradients. Default: 1e-30.
    #[config(default = 1e-30)]
    epsilon_1: f32,
    /// The least root mean square that a parameter is taken to have. Default: 1e-3.
    #[config(default = 1e-3)]
    epsilon_2: f32,
    /// The greatest root mean square of a step. Default: 1.
    #[config(default = 1.0)]
    clip_threshold: f32,
    /// The average of squares keeps `1 - steps^decay_rate`. Default: -0.8.
    #[config(default = -0.8)]
    decay_rate: f64,
    /// Whether the learning rate is at most `1 / √steps`. Default: true.
    #[config(default = true)]
    relative_step: bool,
    /// Whether the learning rate is relative to the parameter's root mean square. Default: true.
    #[config(default = true)]
    scale_parameter: bool,
    /// The share of the parameter, times the learning rate, that a step takes away. Default: 0.
    #[config(default = 0.0)]
    weight_decay: f32,
    /// How gradients are clipped. Default: not.
    grad_clipping: Option<GradientClippingConfig>,
}

/// Adam without a first moment, and with the second moment of a matrix kept as its row and column averages.
///
/// Shazeer and Stern 2018, [arXiv:1804.04235](https://arxiv.org/abs/1804.04235).
///
/// The updates of small parameters are four launches for any number of them. A large parameter takes up to three: sums over its rows and columns,
/// and its direction, which is in memory while the norm is taken; to share them, the directions of all parameters would have to be in memory at once.
#[derive(Clone)]
pub struct Adafactor {
    epsilon_1: f64,
    epsilon_2: f64,
    clip_threshold: f64,
    decay_rate: f64,
    relative_step: bool,
    scale_parameter: bool,
    weight_decay: f64,
}

/// The state of [`Adafactor`].
#[derive(RecordState, Clone)]
pub struct AdafactorState<const D: usize> {
    /// The number of steps.
    pub time: usize,
    /// The average square: of rows (size one along the last axis) for rank two and more, else of elements.
    pub second_moment: Tensor<D>,
    /// The average square of columns (size one along the last but one axis), for rank two and more.
    pub column_second_moment: Option<Tensor<D>>,
}

impl AdafactorConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> Adafactor {
        Adafactor {
            epsilon_1: exact(self.epsilon_1),
            epsilon_2: exact(self.epsilon_2),
            clip_threshold: exact(self.clip_threshold),
            decay_rate: self.decay_rate,
            relative_step: self.relative_step,
            scale_parameter: self.scale_parameter,
            weight_decay: exact(self.weight_decay),
        }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.grad_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

fn root_mean_square<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    tensor.square().mean().sqrt().unsqueeze()
}

impl Optimizer for Adafactor {
    type State<const D: usize> = AdafactorState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<AdafactorState<D>>,
    ) -> (Tensor<D>, Option<AdafactorState<D>>) {
        let (time, rows, columns) = match state {
            Some(state) => (state.time + 1, Some(state.second_moment), state.column_second_moment),
            None => (1, None, None),
        };
        let keep = 1.0 - libm::pow(time as f64, self.decay_rate);
        let running = |average: Option<Tensor<D>>, new: Tensor<D>| match average {
            Some(average) => average * keep + new * (1.0 - keep),
            None => new,
        };
        let squares = grad.clone().square() + self.epsilon_1;
        let (step, rows, columns) = if D >= 2 {
            let rows = running(rows, squares.clone().mean_dim(D - 1));
            let columns = running(columns, squares.mean_dim(D - 2));
            let share = rows.clone() / rows.clone().mean_dim(D - 2);
            let step = grad * share.sqrt().recip() * columns.clone().sqrt().recip();
            (step, rows, Some(columns))
        } else {
            let average = running(rows, squares);
            (grad / average.clone().sqrt(), average, None)
        };
        let excess = root_mean_square(step.clone()) * (1.0 / self.clip_threshold);
        let step = step / excess.clamp_min(1.0);
        let rate = if self.relative_step { lr.min(1.0 / libm::sqrt(time as f64)) } else { lr };
        let tensor = if self.scale_parameter {
            let size = root_mean_square(tensor.clone()).clamp_min(self.epsilon_2) * rate;
            let decayed = if self.weight_decay == 0.0 { tensor } else { tensor.clone() - tensor * (size.clone() * self.weight_decay) };
            decayed - step * size
        } else {
            tensor * (1.0 - rate * self.weight_decay) - step * rate
        };
        let state = AdafactorState { time, second_moment: rows, column_second_moment: columns };
        (tensor, Some(state))
    }

    fn to_device<const D: usize>(mut state: AdafactorState<D>, device: &Device) -> AdafactorState<D> {
        state.second_moment = state.second_moment.to_device(device);
        state.column_second_moment = state.column_second_moment.map(|moment| moment.to_device(device));
        state
    }
}
