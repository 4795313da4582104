//! Scales: the numbers that each type of scale has, and their bytes.

use alloc::vec::Vec;

use half::{bf16, f16};

use super::ScaleDtype;

/// The positive numbers of a type as those `f32` that lie on its grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct F32Grid {
    /// Distance of the bit patterns of neighbours, as `f32`, among the normal numbers.
    pub bit_step: u32,
    /// The numbers below the normal ones, if they are evenly spaced and not those of `f32`.
    pub subnormals: Option<SubnormalRange>,
}

/// The numbers of a type below its normal ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SubnormalRange {
    /// The smallest normal number.
    pub min_normal: f32,
    /// Distance of neighbours below it.
    pub spacing: f32,
}

impl F32Grid {
    /// The smallest number of the grid that is not below the positive `x`.
    pub(super) fn round_up(&self, x: f32) -> f32 {
        match self.subnormals {
            Some(range) if x < range.min_normal => libm::ceilf(x / range.spacing) * range.spacing,
            _ => {
                let mask = self.bit_step - 1;
                f32::from_bits((x.to_bits() + mask) & !mask)
            }
        }
    }
}

impl ScaleDtype {
    /// Which numbers the type has.
    ///
    /// ```
    /// use kiln_tensor::quantization::ScaleDtype;
    /// let grid = ScaleDtype::UE4M3.f32_grid();
    /// assert_eq!(f32::from_bits(1.0f32.to_bits() + grid.bit_step), 1.125);
    /// assert_eq!(grid.subnormals.unwrap().min_normal, 1.0 / 64.0);
    /// ```
    pub fn f32_grid(&self) -> F32Grid {
        let subnormals = |min_normal, spacing| Some(SubnormalRange { min_normal, spacing });
        match self {
            Self::F32 => F32Grid { bit_step: 1, subnormals: None },
            Self::F16 => F32Grid { bit_step: 1 << 13, subnormals: subnormals(1.0 / 16384.0, 1.0 / 16_777_216.0) },
            Self::BF16 => F32Grid { bit_step: 1 << 16, subnormals: None },
            Self::UE8M0 => F32Grid { bit_step: 1 << 23, subnormals: None },
            Self::UE4M3 => F32Grid { bit_step: 1 << 20, subnormals: subnormals(1.0 / 64.0, 1.0 / 512.0) },
        }
    }
}

/// The scale as it is stored: the smallest of the type that is not below it, so that the largest values are not clipped; see [`ScaleDtype::round_up`].
///
/// ```
/// use kiln_tensor::quantization::{ScaleDtype, scale_to_dtype};
/// assert_eq!(scale_to_dtype(0.1, ScaleDtype::UE8M0), 0.125);
/// assert_eq!(scale_to_dtype(70000.0, ScaleDtype::F16), 65504.0);
/// ```
pub fn scale_to_dtype(scale: f32, dtype: ScaleDtype) -> f32 {
    dtype.round_up(scale)
}

/// Bytes of a stored scale.
///
/// ```
/// use kiln_tensor::quantization::{ScaleDtype, scale_size};
/// assert_eq!((scale_size(ScaleDtype::F32), scale_size(ScaleDtype::UE4M3)), (4, 1));
/// ```
pub fn scale_size(dtype: ScaleDtype) -> usize {
    match dtype {
        ScaleDtype::F32 => 4,
        ScaleDtype::F16 | ScaleDtype::BF16 => 2,
        ScaleDtype::UE8M0 | ScaleDtype::UE4M3 => 1,
    }
}

/// Exponent bias of `f32` less that of `UE4M3`, in units of the latter's last bit.
const UE4M3_OFFSET: u32 = (127 - 7) << 3;
/// The NaN of `UE4M3` and of `UE8M0`.
const UE4M3_NAN: u8 = 0x7F;
const UE8M0_NAN: u8 = 0xFF;

/// Appends the bytes of scales, rounded up to the type.
pub(crate) fn write_scales(scales: &[f32], dtype: ScaleDtype, to: &mut Vec<u8>) {
    for scale in scales {
        let scale = dtype.round_up(*scale);
        match dtype {
            ScaleDtype::F32 => to.extend_from_slice(&scale.to_ne_bytes()),
            ScaleDtype::F16 => to.extend_from_slice(&f16::from_f32(scale).to_ne_bytes()),
            ScaleDtype::BF16 => to.extend_from_slice(&bf16::from_f32(scale).to_ne_bytes()),
            ScaleDtype::UE8M0 if scale.is_nan() => to.push(UE8M0_NAN),
            ScaleDtype::UE8M0 => to.push((scale.to_bits() >> 23) as u8),
            ScaleDtype::UE4M3 if scale.is_nan() => to.push(UE4M3_NAN),
            ScaleDtype::UE4M3 if scale < 1.0 / 64.0 => to.push((scale.max(0.0) * 512.0) as u8),
            ScaleDtype::UE4M3 => to.push(((scale.to_bits() >> 20) - UE4M3_OFFSET) as u8),
        }
    }
}

/// The scales of bytes that hold whole ones.
pub(crate) fn read_scales(bytes: &[u8], dtype: ScaleDtype) -> Vec<f32> {
    let wide = |read: fn([u8; 2]) -> f32| bytes.as_chunks::<2>().0.iter().map(|b| read(*b)).collect();
    match dtype {
        ScaleDtype::F32 => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b)).collect(),
        ScaleDtype::F16 => wide(|b| f16::from_ne_bytes(b).to_f32()),
        ScaleDtype::BF16 => wide(|b| bf16::from_ne_bytes(b).to_f32()),
        ScaleDtype::UE8M0 => bytes.iter().map(|b| read_ue8m0(*b)).collect(),
        ScaleDtype::UE4M3 => bytes.iter().map(|b| read_ue4m3(*b)).collect(),
    }
}

fn read_ue8m0(code: u8) -> f32 {
    match code {
        0 => ScaleDtype::UE8M0_MIN,
        UE8M0_NAN => f32::NAN,
        _ => f32::from_bits(u32::from(code) << 23),
    }
}

fn read_ue4m3(code: u8) -> f32 {
    match code & 0x7F {
        UE4M3_NAN => f32::NAN,
        code if code < 8 => f32::from(code) / 512.0,
        code => f32::from_bits((u32::from(code) + UE4M3_OFFSET) << 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_scale_reads_back_as_itself_and_the_next_number_above_it_is_stored_as_the_next() {
        for dtype in [ScaleDtype::UE8M0, ScaleDtype::UE4M3] {
            let last = if dtype == ScaleDtype::UE8M0 { 254 } else { 126 };
            let scales = read_scales(&(0..=last).collect::<Vec<u8>>(), dtype);
            let mut stored = Vec::new();
            write_scales(&scales, dtype, &mut stored);
            assert_eq!(stored, (0..=last).collect::<Vec<u8>>());
            let above: Vec<f32> = scales.iter().map(|s| s.next_up()).collect();
            stored.clear();
            write_scales(&above, dtype, &mut stored);
            assert_eq!(stored, (0..=last).map(|code| (code + 1).min(last)).collect::<Vec<u8>>());
        }
    }
}
