//! From space to channels.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

/// Configuration of [`PixelUnshuffle`].
#[derive(Config, Debug)]
pub struct PixelUnshuffleConfig {
    /// The factor `r` by which height and width shrink.
    pub downscale_factor: usize,
}

/// Rearranges `[batch, channels, height · r, width · r]` to `[batch, channels · r², height, width]`: the inverse of
/// [`PixelShuffle`](crate::PixelShuffle).
///
/// ```
/// use kiln_nn::PixelUnshuffleConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let unshuffle = PixelUnshuffleConfig::new(2).init();
/// let input = Tensor::<4>::ones([1, 2, 6, 10], &Device::default());
/// assert_eq!(unshuffle.forward(input).dims(), [1, 8, 3, 5]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct PixelUnshuffle {
    /// The factor by which height and width shrink.
    pub downscale_factor: usize,
}

impl PixelUnshuffleConfig {
    /// The layer.
    ///
    /// # Panics
    ///
    /// When the factor is zero.
    #[track_caller]
    pub fn init(&self) -> PixelUnshuffle {
        assert!(self.downscale_factor > 0, "pixel unshuffle: the factor must be positive");
        PixelUnshuffle { downscale_factor: self.downscale_factor }
    }
}

impl PixelUnshuffle {
    /// Rearranges `input`.
    ///
    /// # Panics
    ///
    /// When height or width are no multiples of the factor.
    #[track_caller]
    pub fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        let factor = self.downscale_factor;
        let [batch, channels, height, width] = input.dims();
        assert!(height % factor == 0 && width % factor == 0, "pixel unshuffle: {height} by {width} are no multiples of the factor {factor}");
        let (height, width) = (height / factor, width / factor);
        input.reshape([batch, channels, height, factor, width, factor]).permute([0, 1, 3, 5, 2, 4]).reshape([
            batch,
            channels * factor * factor,
            height,
            width,
        ])
    }
}

inline_display!(PixelUnshuffle, layer, content => content
    .add("downscale_factor", &layer.downscale_factor));
