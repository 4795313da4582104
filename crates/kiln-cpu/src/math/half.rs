//! Conversions between f32 and the two 16-bit formats, in integer arithmetic that vectorises everywhere.

/// f16 to f32; exact.
#[inline(always)]
pub fn f16_to_f32(h: u16) -> f32 {
    let h = h as u32;
    // The multiplication re-biases the exponent and normalises subnormal numbers in one go.
    let scaled = (f32::from_bits((h & 0x7fff) << 13) * f32::from_bits(0x7780_0000)).to_bits();
    let special = if h & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled | special | (h & 0x8000) << 16)
}

/// f32 to f16, nearest, ties to even.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let a = bits & 0x7fff_ffff;
    let normal = a.wrapping_sub(0x3800_0000 - 0xfff).wrapping_add((a >> 13) & 1) >> 13;
    // Adding 0.5 lets the float unit round at the place where a subnormal f16 ends.
    let subnormal = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if a < 0x3880_0000 { subnormal } else { normal };
    let special = if a > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let h = if a >= 0x4780_0000 { special } else { finite };
    (h | (bits >> 16) & 0x8000) as u16
}

/// bf16 to f32; exact.
#[inline(always)]
pub fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits((h as u32) << 16)
}

/// f32 to bf16, nearest, ties to even.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = bits >> 16 | 0x40;
    (if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded }) as u16
}
