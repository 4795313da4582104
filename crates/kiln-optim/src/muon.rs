//! Muon.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::decay::WeightDecayConfig;
use crate::momentum::{Momentum, MomentumConfig, MomentumState};
use crate::number::exact;
use crate::{LearningRate, ModuleOptimizer, Optimizer, RecordState};

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

impl Muon {
    /// A matrix near the orthogonal one nearest to `x`, by an iteration that moves all singular values towards one.
    fn orthogonalized<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let shape = x.dims();
        let wide = shape[0] <= shape[1];
        // The iteration multiplies with the square of the shorter side.
        let mut x = if wide { x } else { x.transpose() };
        let norm = x.clone().square().sum().sqrt() + self.epsilon;
        x = x / norm.unsqueeze();
        let (a, b, c) = self.coefficients;
        for _ in 0..self.steps {
            let gram = x.clone().matmul(x.clone().transpose());
            let quintic = gram.clone() * b + gram.clone().matmul(gram) * c;
            x = x.clone() * a + quintic.matmul(x);
        }
        if wide { x } else { x.transpose() }
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
        let shape = tensor.dims();
        assert!(D == 2, "muon: steps matrices only, got a parameter of shape {shape:?}; give it another optimizer with `with_group`");
        let (step, velocity) = self.momentum.transform(grad, state.map(|state| state.momentum));
        let step = self.orthogonalized(step);
        let rate = lr * self.adjust.factor(shape[0], shape[1]);
        let decayed = if self.weight_decay == 0.0 { tensor } else { tensor * (1.0 - lr * self.weight_decay) };
        (decayed - step * rate, Some(MuonState::new(velocity)))
    }

    fn to_device<const D: usize>(mut state: MuonState<D>, device: &Device) -> MuonState<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}
