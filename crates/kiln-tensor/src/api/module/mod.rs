//! The operations of neural network layers.

mod attention;
mod conv;
mod ctc;
mod deform;
mod fold;
mod grid_sample;
mod interpolate;
mod linear;
mod norm;
mod pool;

pub use attention::{attention, attention_fallback};
pub use conv::{conv_transpose1d, conv_transpose2d, conv_transpose3d, conv1d, conv2d, conv2d_weight_backward, conv3d};
pub use ctc::ctc_loss;
pub use deform::deform_conv2d;
pub use fold::{fold4d, unfold4d};
pub use interpolate::interpolate;
pub use linear::{embedding, linear};
pub use norm::{BatchNormTrainOutput, batch_norm, batch_norm_train, layer_norm};
pub use pool::{
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool1d, avg_pool2d, avg_pool2d_backward, max_pool1d, max_pool1d_with_indices,
    max_pool2d, max_pool2d_with_indices, max_pool2d_with_indices_backward,
};
