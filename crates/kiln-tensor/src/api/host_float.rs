//! Floats of every type as `f64`, for operations that the host computes.

use half::{bf16, f16};
use kiln_ir::DType;

/// One float; other types are refused when the operation is recorded.
pub(super) fn read(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::F64 => bytemuck::pod_read_unaligned(bytes),
        DType::F16 => bytemuck::pod_read_unaligned::<f16>(bytes).to_f64(),
        DType::BF16 => bytemuck::pod_read_unaligned::<bf16>(bytes).to_f64(),
        _ => f64::from(bytemuck::pod_read_unaligned::<f32>(bytes)),
    }
}

/// Writes one float, rounded once.
pub(super) fn write(dtype: DType, bytes: &mut [u8], value: f64) {
    use crate::element::ToElement;
    match dtype {
        DType::F64 => bytes.copy_from_slice(&value.to_ne_bytes()),
        DType::F16 => bytes.copy_from_slice(&ToElement::to_f16(&value).to_ne_bytes()),
        DType::BF16 => bytes.copy_from_slice(&ToElement::to_bf16(&value).to_ne_bytes()),
        _ => bytes.copy_from_slice(&(value as f32).to_ne_bytes()),
    }
}
