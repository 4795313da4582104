//! How the losses of elements become one number.

use kiln_module::config::Config;
use kiln_tensor::Tensor;

/// How the losses of elements become one number.
#[derive(Config, Debug)]
pub enum Reduction {
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
    /// Their sum, divided by the size of the first axis.
    BatchMean,
    /// What is usual for the loss: the mean, for all losses here.
    Auto,
}

impl Reduction {
    pub(super) fn apply<const D: usize>(&self, losses: Tensor<D>) -> Tensor<1> {
        match self {
            Self::Mean | Self::Auto => losses.mean(),
            Self::Sum => losses.sum(),
            Self::BatchMean => {
                let batch = losses.dims()[0];
                losses.sum() / batch as f64
            }
        }
    }
}
