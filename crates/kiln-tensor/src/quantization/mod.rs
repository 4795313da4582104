//! Quantization: the schemes by which floats are stored in a few bits, and how a tensor's scales are found.
//!
//! Start reading at [`QuantScheme`] for how a quantized tensor is represented and at [`compute_range`] for how a tensor becomes one; what a device keeps
//! and computes is in `raw/quantized`.

mod bytes;
mod calibration;
mod config;
mod layout;
pub(crate) mod pack;
mod params;
mod scale;
mod scheme;

pub use bytes::{DecodedScales, QuantizedBytes};
pub use calibration::{Calibration, CalibrationRange, compute_q_params, compute_range};
pub use config::{QuantAcc, QuantConfig, QuantPropagation};
pub use layout::{BlockLayout, global_scale_dtype, global_scale_size, params_shape, quantizable, quantized_data_len};
pub use pack::pack_i8s_to_u32s;
pub use params::{Metadata, QParamTensor, QParams, QuantizationParameters};
pub(crate) use scale::write_scales;
pub use scale::{F32Grid, SubnormalRange, scale_size, scale_to_dtype};
pub use scheme::{BlockScale, BlockSize, QPARAM_ALIGN, QuantMode, QuantScheme, QuantStore, QuantValue, ScaleDtype};
