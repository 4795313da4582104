//! Wants an anchor nearer to a positive than to a negative example.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

use super::Reduction;
use crate::pairwise_distance::distance;

/// Configuration of a [`TripletMarginLoss`].
#[derive(Config, Debug)]
pub struct TripletMarginLossConfig {
    /// The distance by which the negative should be farther. Default: 1.
    #[config(default = 1.0)]
    pub margin: f64,
    /// The power of the norm. Default: 2.
    #[config(default = 2.0)]
    pub p: f64,
}

/// `max(‖a - p‖ - ‖a - n‖ + margin, 0)`.
///
/// ```
/// use kiln_nn::loss::{Reduction, TripletMarginLossConfig};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = TripletMarginLossConfig::new().init();
/// let anchor = Tensor::<2>::zeros([1, 1], &device);
/// let positive = Tensor::<2>::from_floats([[1.0]], &device);
/// let negative = Tensor::<2>::from_floats([[1.5]], &device);
/// let value: f32 = loss.forward(anchor, positive, negative, Reduction::Mean).into_scalar();
/// assert!((value - 0.5).abs() < 1e-4);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct TripletMarginLoss {
    /// The distance by which the negative should be farther.
    pub margin: f64,
    /// The power of the norm.
    pub p: f64,
}

impl TripletMarginLossConfig {
    /// The loss.
    pub fn init(&self) -> TripletMarginLoss {
        TripletMarginLoss { margin: self.margin, p: self.p }
    }
}

impl TripletMarginLoss {
    /// The reduced loss, `[1]`, of vectors `[batch, size]`.
    #[track_caller]
    pub fn forward(&self, anchor: Tensor<2>, positive: Tensor<2>, negative: Tensor<2>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(anchor, positive, negative))
    }

    /// The loss of each triple, `[batch]`.
    #[track_caller]
    pub fn forward_no_reduction(&self, anchor: Tensor<2>, positive: Tensor<2>, negative: Tensor<2>) -> Tensor<1> {
        let near = distance(anchor.clone(), positive, self.p, 1e-6);
        let far = distance(anchor, negative, self.p, 1e-6);
        (near - far + self.margin).clamp_min(0.0)
    }
}

inline_display!(TripletMarginLoss, loss, content => content
    .add("margin", &loss.margin)
    .add("p", &loss.p));
