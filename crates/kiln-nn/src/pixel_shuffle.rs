//! From channels to space.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

/// Configuration of [`PixelShuffle`].
#[derive(Config, Debug)]
pub struct PixelShuffleConfig {
    /// The factor `r` by which height and width grow.
    pub upscale_factor: usize,
}

/// Rearranges `[batch, channels · r², height, width]` to `[batch, channels, height · r, width · r]`.
///
/// Shi et al. 2016, [arXiv:1609.05158](https://arxiv.org/abs/1609.05158).
///
/// ```
/// use kiln_nn::PixelShuffleConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let shuffle = PixelShuffleConfig::new(2).init();
/// let input = Tensor::<4>::ones([1, 8, 3, 5], &Device::default());
/// assert_eq!(shuffle.forward(input).dims(), [1, 2, 6, 10]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct PixelShuffle {
    /// The factor by which height and width grow.
    pub upscale_factor: usize,
}

impl PixelShuffleConfig {
    /// The layer.
    ///
    /// # Panics
    ///
    /// When the factor is zero.
    #[track_caller]
    pub fn init(&self) -> PixelShuffle {
        assert!(self.upscale_factor > 0, "pixel shuffle: the factor must be positive");
        PixelShuffle { upscale_factor: self.upscale_factor }
    }
}

impl PixelShuffle {
    /// Rearranges `input`.
    ///
    /// # Panics
    ///
    /// When the channels are no multiple of the squared factor.
    #[track_caller]
    pub fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        let factor = self.upscale_factor;
        let [batch, channels, height, width] = input.dims();
        assert!(channels % (factor * factor) == 0, "pixel shuffle: {channels} channels are no multiple of the squared factor {}", factor * factor);
        let channels = channels / (factor * factor);
        input.reshape([batch, channels, factor, factor, height, width]).permute([0, 1, 4, 2, 5, 3]).reshape([
            batch,
            channels,
            height * factor,
            width * factor,
        ])
    }
}

inline_display!(PixelShuffle, layer, content => content
    .add("upscale_factor", &layer.upscale_factor));
