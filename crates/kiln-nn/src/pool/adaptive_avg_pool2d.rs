//! Averages that give an image a fixed size.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, module};

/// Configuration of [`AdaptiveAvgPool2d`].
#[derive(Config, Debug)]
pub struct AdaptiveAvgPool2dConfig {
    /// The size of the output.
    pub output_size: [usize; 2],
}

/// Averages windows that divide the input as evenly as possible.
///
/// ```
/// use kiln_nn::pool::AdaptiveAvgPool2dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let pool = AdaptiveAvgPool2dConfig::new([4, 4]).init();
/// let input = Tensor::ones([1, 3, 10, 10], &Device::default());
/// assert_eq!(pool.forward(input).dims(), [1, 3, 4, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct AdaptiveAvgPool2d {
    /// The size of the output.
    pub output_size: [usize; 2],
}

impl AdaptiveAvgPool2dConfig {
    /// The layer.
    pub fn init(&self) -> AdaptiveAvgPool2d {
        AdaptiveAvgPool2d { output_size: self.output_size }
    }
}

impl AdaptiveAvgPool2d {
    /// Pools `[batch, channels, height, width]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        module::adaptive_avg_pool2d(input, self.output_size)
    }
}

inline_display!(AdaptiveAvgPool2d, layer, content => content
    .add_debug_attribute("output_size", &layer.output_size));
