//! Muon.

use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::decay::WeightDecayConfig;
use crate::momentum::{Momentum, MomentumConfig, MomentumState};
use crate::number::exact;
use crate::{DynState, LearningRate, MatrixStep, ModuleOptimizer, Optimizer, RecordState, Together};

/// How [`Muon`] scales the learning rate by the shape of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdjustLrFn {
    /// By `√max(1, rows / columns)`.
    #[default]
    Original,
    /// By `0.2 · √max(rows, columns)`, which gives steps the size of AdamW's.
    MatchRmsAdamW,
}

impl AdjustLrFn {
    fn factor(self, rows: usize, columns: usize) -> f64 {
        let (rows, columns) = (rows as f64, columns as f64);
        match self {
            Self::Original => libm::sqrt((rows / columns).max(1.0)),
            Self::MatchRmsAdamW => 0.2 * libm::sqrt(rows.max(columns)),
        }
    }
}

/// Configuration of [`Muon`].
#[derive(Config, Debug)]
pub struct MuonConfig {
    /// Decoupled weight decay. Default: none.
    weight_decay: Option<WeightDecayConfig>,
    /// Momentum. Default: 0.95, without dampening, looking ahead.
    #[config(default = MomentumConfig { momentum: 0.95, dampening: 0.0, nesterov: true })]
    momentum: MomentumConfig,
    /// The coefficients of the Newton-Schulz iteration. Default: (3.4445, -4.775, 2.0315).
    #[config(default = (3.4445, -4.775, 2.0315))]
    ns_coefficients: (f32, f32, f32),
    /// Added to the norm that the iteration starts with. Default: 1e-7.
    #[config(default = 1e-7)]
    epsilon: f32,
    /// The number of iterations. Default: 5.
    #[config(default = 5)]
    ns_steps: usize,
    /// How the learning rate is scaled by the shape of a matrix. Default: as in the original.
    #[config(default = AdjustLrFn::Original)]
    adjust_lr_fn: AdjustLrFn,
}

/// Steps by orthogonalised momentum. For matrices only: give other parameters another optimizer with
/// [`ModuleOptimizer::with_group`].
///
/// Jordan et al. 2024, <https://kellerjordan.github.io/posts/muon/>.
///
/// The iteration is three products a round. Matrices of one shape go through it as one stack, so that a step of any number of small ones takes
/// as many kernels as a step of one; a stack holds up to four million elements, beyond which a product keeps the machine busy by itself.
#[derive(Clone)]
pub struct Muon {
    momentum: Momentum,
    coefficients: (f64, f64, f64),
    epsilon: f64,
    steps: usize,
    adjust: AdjustLrFn,
    weight_decay: f64,
}

/// The state of [`Muon`].
#[derive(RecordState, Clone)]
pub struct MuonState<const D: usize> {
    /// The velocity.
    pub momentum: MomentumState<D>,
}

impl<const D: usize> MuonState<D> {
    /// A state.
    pub fn new(momentum: MomentumState<D>) -> Self {
        Self { momentum }
    }
}

impl MuonConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> Muon {
        let (a, b, c) = self.ns_coefficients;
        Muon {
            momentum: Momentum::new(&self.momentum),
            coefficients: (exact(a), exact(b), exact(c)),
            epsilon: exact(self.epsilon),
            steps: self.ns_steps,
            adjust: self.adjust_lr_fn,
            weight_decay: self.weight_decay.as_ref().map_or(0.0, |decay| exact(decay.penalty)),
        }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        self.build().into()
    }
}

/// The most elements that are stacked, for the memory that the iteration's results take.
const STACKED: usize = 1 << 22;

impl Muon {
    /// Matrices `[.., rows, columns]` near the orthogonal ones nearest to `x`, by an iteration that moves all singular values towards one.
    fn orthogonalized<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let shape = x.dims();
        let wide = shape[D - 2] <= shape[D - 1];
        // The iteration multiplies with the square of the shorter side.
        let mut x = if wide { x } else { x.transpose() };
        let norm = x.clone().square().sum_dims(&[D - 2, D - 1]).sqrt() + self.epsilon;
        x = x / norm;
        let (a, b, c) = self.coefficients;
        for _ in 0..self.steps {
            let gram = x.clone().matmul(x.clone().transpose());
            let quintic = gram.clone() * b + gram.clone().matmul(gram) * c;
            x = x.clone() * a + quintic.matmul(x);
        }
        if wide { x } else { x.transpose() }
    }

    /// The parameter moved along an orthogonalised step.
    fn moved<const D: usize>(&self, lr: LearningRate, tensor: Tensor<D>, step: Tensor<D>) -> Tensor<D> {
        let [rows, columns] = [D - 2, D - 1].map(|axis| tensor.dims()[axis]);
        let rate = lr * self.adjust.factor(rows, columns);
        let decayed = if self.weight_decay == 0.0 { tensor } else { tensor * (1.0 - lr * self.weight_decay) };
        decayed - step * rate
    }

    /// The orthogonalised steps of matrices of one shape.
    fn stacked(&self, mut steps: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        let size = steps[0].shape().num_elements().max(1);
        let most = (STACKED / size).max(1);
        let mut all = Vec::with_capacity(steps.len());
        while !steps.is_empty() {
            let rest = steps.split_off(most.min(steps.len()));
            match <[Tensor<2>; 1]>::try_from(steps) {
                Ok([single]) => all.push(self.orthogonalized(single)),
                Err(several) => {
                    let count = several.len();
                    let stack = self.orthogonalized(Tensor::stack::<3>(several, 0));
                    all.extend((0..count).map(|at| stack.clone().narrow(0, at, 1).squeeze_dim::<2>(0)));
                }
            }
            steps = rest;
        }
        all
    }
}

impl Together for Muon {
    fn step_matrices(&self, steps: Vec<MatrixStep>) -> Vec<(Tensor<2>, DynState)> {
        let (mut directions, mut rest) = (Vec::with_capacity(steps.len()), Vec::with_capacity(steps.len()));
        for step in steps {
            let state = step.state.map(|state| state.downcast::<MuonState<2>>().momentum);
            let (direction, velocity) = self.momentum.transform(step.grad, state);
            directions.push(direction);
            rest.push((step.lr, step.tensor, velocity));
        }
        let moved = |((lr, tensor, velocity), step)| (self.moved(lr, tensor, step), DynState::create(MuonState::new(velocity), 2));
        rest.into_iter().zip(self.stacked(directions)).map(moved).collect()
    }
}

impl Optimizer for Muon {
    type State<const D: usize> = MuonState<D>;

    #[track_caller]
    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<MuonState<D>>,
    ) -> (Tensor<D>, Option<MuonState<D>>) {
        assert!(D == 2, "muon: steps matrices only, got a parameter of shape {:?}; give it another optimizer with `with_group`", tensor.dims());
        let (step, velocity) = self.momentum.transform(grad, state.map(|state| state.momentum));
        let step = self.orthogonalized(step);
        (self.moved(lr, tensor, step), Some(MuonState::new(velocity)))
    }

    fn together(&self) -> Option<&dyn Together> {
        Some(self)
    }

    fn to_device<const D: usize>(mut state: MuonState<D>, device: &Device) -> MuonState<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}
