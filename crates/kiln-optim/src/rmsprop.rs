//! RMSProp.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::decay::{WeightDecay, WeightDecayConfig, decayed, optional};
use crate::grad_clipping::GradientClippingConfig;
use crate::number::exact;
use crate::values::Values;
use crate::{LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`RmsProp`].
#[derive(Config, Debug)]
pub struct RmsPropConfig {
    /// The share of the average square that is kept. Default: 0.99.
    #[config(default = 0.99)]
    alpha: f32,
    /// The share of the last step that is kept. Default: 0.9.
    #[config(default = 0.9)]
    momentum: f32,
    /// Added to the root of the average square. Default: 1e-5.
    #[config(default = 1e-5)]
    epsilon: f32,
    /// Whether the squared average gradient is taken from the average square. Default: false.
    #[config(default = false)]
    centered: bool,
    /// Weight decay as a part of the gradient. Default: none.
    weight_decay: Option<WeightDecayConfig>,
    /// How gradients are clipped. Default: not.
    grad_clipping: Option<GradientClippingConfig>,
}

/// Steps by the gradient over the root of the running average of its square.
///
/// Hinton 2012, lecture 6 of "Neural Networks for Machine Learning".
#[derive(Clone)]
pub struct RmsProp {
    alpha: f64,
    epsilon: f64,
    centered: bool,
    momentum: RmsPropMomentum,
    weight_decay: Option<WeightDecay>,
}

/// The state of [`RmsProp`].
#[derive(RecordState, Clone)]
pub struct RmsPropState<const D: usize> {
    /// The average square.
    pub square_avg: SquareAvgState<D>,
    /// What the step is divided by.
    pub centered: CenteredState<D>,
    /// The last step, with momentum.
    pub momentum: Option<RmsPropMomentumState<D>>,
}

impl<const D: usize> RmsPropState<D> {
    /// A state.
    pub fn new(square_avg: SquareAvgState<D>, centered: CenteredState<D>, momentum: Option<RmsPropMomentumState<D>>) -> Self {
        Self { square_avg, centered, momentum }
    }
}

/// The running average of squared gradients.
#[derive(RecordState, Clone)]
pub struct SquareAvgState<const D: usize> {
    /// The average.
    pub square_avg: Tensor<D>,
}

impl<const D: usize> SquareAvgState<D> {
    /// A state.
    pub fn new(square_avg: Tensor<D>) -> Self {
        Self { square_avg }
    }

    /// The state on another device.
    #[must_use]
    pub fn to_device(mut self, device: &Device) -> Self {
        self.square_avg = self.square_avg.to_device(device);
        self
    }
}

/// The variance of gradients, or their average square if it is not centred.
#[derive(RecordState, Clone)]
pub struct CenteredState<const D: usize> {
    /// The average gradient, if centred.
    pub grad_avg: Option<Tensor<D>>,
    /// The variance or average square.
    pub avg: Tensor<D>,
}

impl<const D: usize> CenteredState<D> {
    /// A state.
    pub fn new(grad_avg: Option<Tensor<D>>, avg: Tensor<D>) -> Self {
        Self { grad_avg, avg }
    }

    /// The state on another device.
    #[must_use]
    pub fn to_device(mut self, device: &Device) -> Self {
        self.grad_avg = self.grad_avg.map(|average| average.to_device(device));
        self.avg = self.avg.to_device(device);
        self
    }
}

/// Momentum of steps.
#[derive(Clone, Debug)]
pub struct RmsPropMomentum {
    momentum: f64,
}

/// The last step.
#[derive(RecordState, Clone)]
pub struct RmsPropMomentumState<const D: usize> {
    buf: Tensor<D>,
}

impl<const D: usize> RmsPropMomentumState<D> {
    /// A state.
    pub fn new(buf: Tensor<D>) -> Self {
        Self { buf }
    }

    /// The state on another device.
    #[must_use]
    pub fn to_device(mut self, device: &Device) -> Self {
        self.buf = self.buf.to_device(device);
        self
    }
}

impl RmsPropMomentum {
    fn transform<const D: usize>(&self, step: Tensor<D>, state: Option<RmsPropMomentumState<D>>) -> (Tensor<D>, Option<RmsPropMomentumState<D>>) {
        if self.momentum == 0.0 {
            return (step, None);
        }
        let step = match state {
            Some(state) => state.buf * self.momentum + step,
            None => step,
        };
        (step.clone(), Some(RmsPropMomentumState::new(step)))
    }
}

impl RmsPropConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> RmsProp {
        RmsProp {
            alpha: exact(self.alpha),
            epsilon: exact(self.epsilon),
            centered: self.centered,
            momentum: RmsPropMomentum { momentum: exact(self.momentum) },
            weight_decay: optional(&self.weight_decay),
        }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.grad_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

impl Optimizer for RmsProp {
    type State<const D: usize> = RmsPropState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<RmsPropState<D>>,
    ) -> (Tensor<D>, Option<RmsPropState<D>>) {
        let grad = decayed(&self.weight_decay, grad, &tensor);
        let (square, average, momentum) = match state {
            Some(state) => (Some(state.square_avg.square_avg), state.centered.grad_avg, state.momentum),
            None => (None, None, None),
        };
        let averages = self.averages(grad.into(), square.map(Values::from), average.map(Values::from));
        let (step, momentum) = self.momentum.transform(averages.step.typed(), momentum);
        let centered = CenteredState::new(averages.grad.map(Values::typed), averages.spread.typed());
        let state = RmsPropState::new(SquareAvgState::new(averages.square.typed()), centered, momentum);
        (tensor - step * lr, Some(state))
    }

    fn to_device<const D: usize>(state: RmsPropState<D>, device: &Device) -> RmsPropState<D> {
        RmsPropState::new(
            state.square_avg.to_device(device),
            state.centered.to_device(device),
            state.momentum.map(|momentum| momentum.to_device(device)),
        )
    }
}

/// What a step computes before momentum.
struct Averages {
    square: Values,
    grad: Option<Values>,
    spread: Values,
    step: Values,
}

impl RmsProp {
    fn averages(&self, grad: Values, square: Option<Values>, average: Option<Values>) -> Averages {
        let share = 1.0 - self.alpha;
        let running = |average: Option<Values>, new: Values| match average {
            Some(average) => average * self.alpha + new * share,
            None => new * share,
        };
        let square = running(square, grad.square());
        let (average, spread) = if self.centered {
            let average = running(average, grad.clone());
            let spread = square.clone() - average.square();
            (Some(average), spread)
        } else {
            (None, square.clone())
        };
        let step = grad / (spread.sqrt() + self.epsilon);
        Averages { square, grad: average, spread, step }
    }
}
