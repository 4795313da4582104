//! Optimizers and their states behind one type.

use alloc::sync::Arc;
use core::any::Any;

use kiln_tensor::kind::BridgeTensor;
use kiln_tensor::{Device, Tensor};

use crate::{LearningRate, Optimizer, RecordState, StateSink, StateSource, Together};

/// A state of some optimizer for a tensor of some rank.
#[derive(Clone)]
pub struct DynState {
    /// An `Option` of the state, so that it can be taken out where it lies: code that knows nothing of its type does all the rest.
    state: Arc<dyn Any + Send + Sync>,
    rank: usize,
}

impl DynState {
    /// Holds a state.
    pub fn create<T: Send + Sync + 'static>(state: T, rank: usize) -> Self {
        Self { state: Arc::new(Some(state)), rank }
    }

    /// The state; moved out where no clone shares it, so that its buffers can be reused.
    ///
    /// # Panics
    ///
    /// When it is of another type.
    #[track_caller]
    pub fn downcast<T: Clone + Send + Sync + 'static>(mut self) -> T {
        if let Some(own) = self.own() {
            if let Some(slot) = own.downcast_mut::<Option<T>>()
                && let Some(state) = slot.take()
            {
                return state;
            }
        } else if let Some(Some(state)) = self.state.downcast_ref::<Option<T>>() {
            return state.clone();
        }
        misfit()
    }

    /// What is held, if no clone shares it.
    fn own(&mut self) -> Option<&mut (dyn Any + Send + Sync)> {
        Arc::get_mut(&mut self.state)
    }

    /// A reference to the state.
    ///
    /// # Panics
    ///
    /// When it is of another type.
    #[track_caller]
    pub fn downcast_ref<T: 'static>(&self) -> &T {
        match self.state.downcast_ref::<Option<T>>() {
            Some(Some(state)) => state,
            _ => misfit(),
        }
    }

    /// The rank of the tensor.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }
}

#[cold]
#[track_caller]
fn misfit() -> ! {
    panic!("optimizer state: it belongs to another optimizer or rank")
}

/// An [`Optimizer`] for tensors whose rank is a value; implemented for all optimizers.
pub trait DynOptimizer: Send + Sync {
    /// One step of a tensor of rank `rank`.
    fn step_dyn(
        &self,
        rank: usize,
        lr: LearningRate,
        tensor: BridgeTensor,
        grad: BridgeTensor,
        state: Option<DynState>,
    ) -> (BridgeTensor, Option<DynState>);

    /// The state on another device.
    fn to_device_dyn(&self, state: DynState, device: &Device) -> DynState;

    /// Puts the parts of the state into `out`.
    fn state_flatten(&self, prefix: &str, state: &DynState, out: &mut StateSink);

    /// Takes a state for a tensor of rank `rank` out of `src`.
    fn state_unflatten(&self, rank: usize, prefix: &str, src: &mut StateSource, device: &Device) -> Option<DynState>;

    /// How matrices of one shape are stepped together, if they are.
    fn together(&self) -> Option<&dyn Together> {
        None
    }
}

/// Runs an expression with the constant `D` equal to a rank.
macro_rules! with_rank {
    ($rank:expr, $body:expr) => {
        with_rank!(@arms $rank, $body, 0 1 2 3 4 5 6 7 8 9 10)
    };
    (@arms $rank:expr, $body:expr, $($n:literal)*) => {
        match $rank {
            $($n => {
                const D: usize = $n;
                $body
            })*
            rank => panic!("optimizer: tensors of rank {rank} are not supported, at most 10 are"),
        }
    };
}

impl<O: Optimizer> DynOptimizer for O {
    fn step_dyn(
        &self,
        rank: usize,
        lr: LearningRate,
        tensor: BridgeTensor,
        grad: BridgeTensor,
        state: Option<DynState>,
    ) -> (BridgeTensor, Option<DynState>) {
        with_rank!(rank, {
            let state = state.map(DynState::downcast::<O::State<D>>);
            let (tensor, grad) = (Tensor::<D>::from_bridge(tensor), Tensor::from_bridge(grad));
            let (tensor, state) = self.step(lr, tensor, grad, state);
            (tensor.into_bridge(), state.map(|state| DynState::create(state, D)))
        })
    }

    fn to_device_dyn(&self, state: DynState, device: &Device) -> DynState {
        with_rank!(state.rank, {
            let state = state.downcast::<O::State<D>>();
            DynState::create(O::to_device(state, device), D)
        })
    }

    fn state_flatten(&self, prefix: &str, state: &DynState, out: &mut StateSink) {
        with_rank!(state.rank, {
            state.downcast_ref::<O::State<D>>().state_flatten(prefix, out);
        });
    }

    fn state_unflatten(&self, rank: usize, prefix: &str, src: &mut StateSource, device: &Device) -> Option<DynState> {
        with_rank!(rank, {
            let state = <O::State<D> as RecordState>::state_unflatten(prefix, src, device)?;
            Some(DynState::create(state, D))
        })
    }

    fn together(&self) -> Option<&dyn Together> {
        Optimizer::together(self)
    }
}
