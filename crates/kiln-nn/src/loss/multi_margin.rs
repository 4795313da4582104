//! The hinge loss of several classes.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Int, Tensor};

use super::Reduction;
use super::cross_entropy::{other_classes, select};

/// Configuration of a [`MultiMarginLoss`].
#[derive(Config, Debug)]
pub struct MultiMarginLossConfig {
    /// The difference that the target should have to every other class. Default: 1.
    #[config(default = 1.0)]
    pub margin: f64,
    /// The power of the hinge, 1 or 2. Default: 1.
    #[config(default = 1)]
    pub p: i32,
}

/// `Σ max(margin - x[target] + x[class], 0)ᵖ / classes`, over the classes that are not the target.
///
/// ```
/// use kiln_nn::loss::{MultiMarginLossConfig, Reduction};
/// use kiln_tensor::{Device, Int, Tensor};
///
/// let device = Device::default();
/// let loss = MultiMarginLossConfig::new().init();
/// let scores = Tensor::<2>::from_floats([[1.0, 2.0]], &device);
/// let target = Tensor::<1, Int>::from_ints([0], &device);
/// let value: f32 = loss.forward(scores, target, Reduction::Mean).into_scalar();
/// assert_eq!(value, 1.0);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct MultiMarginLoss {
    /// The difference that the target should have to every other class.
    pub margin: f64,
    /// The power of the hinge.
    pub p: i32,
}

impl MultiMarginLossConfig {
    /// The loss.
    ///
    /// # Panics
    ///
    /// When the power is neither 1 nor 2.
    #[track_caller]
    pub fn init(&self) -> MultiMarginLoss {
        assert!(self.p == 1 || self.p == 2, "multi margin loss: the power must be 1 or 2, got {}", self.p);
        MultiMarginLoss { margin: self.margin, p: self.p }
    }
}

impl MultiMarginLoss {
    /// The reduced loss `[1]` of scores `[batch, classes]` for targets `[batch]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<2>, target: Tensor<1, Int>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(input, target))
    }

    /// The loss of each row, `[batch]`.
    #[track_caller]
    pub fn forward_no_reduction(&self, input: Tensor<2>, target: Tensor<1, Int>) -> Tensor<1> {
        let [_, classes] = input.dims();
        let others = other_classes(target, classes);
        let score = select(input.clone(), others.clone());
        let hinge = (input - score + self.margin).clamp_min(0.0);
        let hinge = if self.p == 2 { hinge.square() } else { hinge };
        (hinge.mask_fill(others.bool_not(), 0.0).sum_dim(1) / classes as f64).squeeze_dim(1)
    }
}

inline_display!(MultiMarginLoss, loss, content => content
    .add("margin", &loss.margin)
    .add("p", &loss.p));
