//! Averages that give a volume a fixed size.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, module};

/// Configuration of [`AdaptiveAvgPool3d`].
#[derive(Config, Debug)]
pub struct AdaptiveAvgPool3dConfig {
    /// The size of the output.
    pub output_size: [usize; 3],
}

/// Averages windows that divide the input as evenly as possible.
///
/// ```
/// use kiln_nn::pool::AdaptiveAvgPool3dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let pool = AdaptiveAvgPool3dConfig::new([4, 4, 4]).init();
/// let input = Tensor::ones([1, 3, 10, 10, 10], &Device::default());
/// assert_eq!(pool.forward(input).dims(), [1, 3, 4, 4, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct AdaptiveAvgPool3d {
    /// The size of the output.
    pub output_size: [usize; 3],
}

impl AdaptiveAvgPool3dConfig {
    /// The layer.
    pub fn init(&self) -> AdaptiveAvgPool3d {
        AdaptiveAvgPool3d { output_size: self.output_size }
    }
}

impl AdaptiveAvgPool3d {
    /// Pools `[batch, channels, depth, height, width]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<5>) -> Tensor<5> {
        module::adaptive_avg_pool3d(input, self.output_size)
    }
}

inline_display!(AdaptiveAvgPool3d, layer, content => content
    .add_debug_attribute("output_size", &layer.output_size));
