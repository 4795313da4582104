//! Averages that give a sequence a fixed size.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, module};

/// Configuration of [`AdaptiveAvgPool1d`].
#[derive(Config, Debug)]
pub struct AdaptiveAvgPool1dConfig {
    /// The size of the output.
    pub output_size: usize,
}

/// Averages windows that divide the input as evenly as possible.
///
/// ```
/// use kiln_nn::pool::AdaptiveAvgPool1dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let pool = AdaptiveAvgPool1dConfig::new(4).init();
/// let input = Tensor::ones([1, 3, 10], &Device::default());
/// assert_eq!(pool.forward(input).dims(), [1, 3, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct AdaptiveAvgPool1d {
    /// The size of the output.
    pub output_size: usize,
}

impl AdaptiveAvgPool1dConfig {
    /// The layer.
    pub fn init(&self) -> AdaptiveAvgPool1d {
        AdaptiveAvgPool1d { output_size: self.output_size }
    }
}

impl AdaptiveAvgPool1d {
    /// Pools `[batch, channels, length]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<3> {
        module::adaptive_avg_pool1d(input, self.output_size)
    }
}

inline_display!(AdaptiveAvgPool1d, layer, content => content
    .add_debug_attribute("output_size", &layer.output_size));
