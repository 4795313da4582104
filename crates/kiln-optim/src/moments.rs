//! Running averages of gradients and their squares, as Adam and AdamW keep them.

use kiln_tensor::{Device, Tensor};

use crate::number::power;
use crate::values::Values;
use crate::{LearningRate, RecordState};

/// Running averages of the gradient and its square.
#[derive(RecordState, Clone)]
pub struct AdaptiveMomentumState<const D: usize> {
    /// The number of steps.
    pub time: usize,
    /// The average of gradients.
    pub moment_1: Tensor<D>,
    /// The average of their squares.
    pub moment_2: Tensor<D>,
    /// The greatest average of squares so far, for AMSGrad.
    pub max_moment_2: Option<Tensor<D>>,
}

impl<const D: usize> AdaptiveMomentumState<D> {
    /// A state.
    pub fn new(time: usize, moment_1: Tensor<D>, moment_2: Tensor<D>) -> Self {
        Self { time, moment_1, moment_2, max_moment_2: None }
    }

    /// The state on another device.
    #[must_use]
    pub fn to_device(mut self, device: &Device) -> Self {
        self.moment_1 = self.moment_1.to_device(device);
        self.moment_2 = self.moment_2.to_device(device);
        self.max_moment_2 = self.max_moment_2.map(|moment| moment.to_device(device));
        self
    }
}

/// The step of Adam: `lr · m̂ / (√v̂ + ε)`.
#[derive(Clone, Debug)]
pub(crate) struct AdaptiveMomentum {
    pub(crate) beta_1: f64,
    pub(crate) beta_2: f64,
    pub(crate) epsilon: f64,
    pub(crate) amsgrad: bool,
}

impl AdaptiveMomentum {
    pub(crate) fn transform<const D: usize>(
        &self,
        lr: LearningRate,
        grad: Tensor<D>,
        state: Option<AdaptiveMomentumState<D>>,
    ) -> (Tensor<D>, AdaptiveMomentumState<D>) {
        let averages = state.map(|state| Averages {
            time: state.time,
            moment_1: state.moment_1.into(),
            moment_2: state.moment_2.into(),
            most: state.max_moment_2.map(Values::from),
        });
        let (step, averages) = self.step(lr, grad.into(), averages);
        let state = AdaptiveMomentumState {
            time: averages.time,
            moment_1: averages.moment_1.typed(),
            moment_2: averages.moment_2.typed(),
            max_moment_2: averages.most.map(Values::typed),
        };
        (step.typed(), state)
    }

    fn step(&self, lr: LearningRate, grad: Values, state: Option<Averages>) -> (Values, Averages) {
        let (first, second) = (1.0 - self.beta_1, 1.0 - self.beta_2);
        let mut state = match state {
            Some(state) => Averages {
                time: state.time + 1,
                moment_1: towards(state.moment_1, grad.clone(), first),
                moment_2: state.moment_2 * self.beta_2 + grad.square() * second,
                most: state.most,
            },
            None => Averages { time: 1, moment_1: grad.clone() * first, moment_2: grad.square() * second, most: None },
        };
        let squares = if self.amsgrad {
            let most = match state.most.take() {
                Some(most) => most.max_pair(&state.moment_2),
                None => state.moment_2.clone(),
            };
            state.most = Some(most.clone());
            most
        } else {
            state.moment_2.clone()
        };
        // Both averages start at zero and so are too small by a known factor.
        let correction_1 = 1.0 - power(self.beta_1, state.time);
        let correction_2 = 1.0 - power(self.beta_2, state.time);
        let scale = squares.sqrt() * (1.0 / libm::sqrt(correction_2)) + self.epsilon;
        let step = state.moment_1.clone() * (lr / correction_1) / scale;
        (step, state)
    }
}

/// [`AdaptiveMomentumState`] for a tensor of any rank.
struct Averages {
    time: usize,
    moment_1: Values,
    moment_2: Values,
    most: Option<Values>,
}

/// `average + share · (new - average)`: what `average · (1 - share) + new · share` is, with one number less.
fn towards(average: Values, new: Values, share: f64) -> Values {
    average.clone() + (new - average) * share
}
