//! Values of the interpreter: scalars and dense tensors held wide (`f64`, `i128`), and their conversion from and to bytes.
use alloc::vec;
use alloc::vec::Vec;

use half::{bf16, f16};

use crate::dims::numel;
use crate::{DType, Dims};

/// One element. Bools are the integers 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An element of a float dtype.
    Float(f64),
    /// An element of an integer dtype or a bool.
    Int(i128),
}

impl Scalar {
    /// The zero of a dtype.
    pub fn zero(dtype: DType) -> Self {
        if dtype.is_float() { Scalar::Float(0.0) } else { Scalar::Int(0) }
    }

    /// The number as a float.
    pub fn float(self) -> f64 {
        match self {
            Scalar::Float(v) => v,
            Scalar::Int(v) => v as f64,
        }
    }

    /// The number as an integer; a float is truncated and saturated.
    pub fn int(self) -> i128 {
        match self {
            Scalar::Float(v) => v as i128,
            Scalar::Int(v) => v,
        }
    }

    /// What a run-time scalar's or constant's word means for `dtype` (see [`crate::op::word_value`]).
    pub fn from_word(dtype: DType, word: u64) -> Self {
        let (float, int) = crate::op::word_value(dtype, word);
        if dtype.is_float() { Scalar::Float(round(dtype, float)) } else { Scalar::Int(int) }
    }
}

/// The float of `dtype` nearest to `v` (ties to even).
pub fn round(dtype: DType, v: f64) -> f64 {
    match dtype {
        DType::F32 => v as f32 as f64,
        DType::F16 => f16::from_f64(v).to_f64(),
        DType::BF16 => bf16::from_f64(v).to_f64(),
        DType::F64 | DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U64 | DType::U32 | DType::U16 | DType::U8 | DType::Bool => v,
    }
}

/// Converts an element to another dtype, as [`crate::Op::Cast`] says.
pub fn cast(v: Scalar, to: DType) -> Scalar {
    match v {
        Scalar::Float(v) if to.is_float() => Scalar::Float(round(to, v)),
        Scalar::Float(v) if to == DType::Bool => Scalar::Int((v != 0.0) as i128),
        Scalar::Float(v) => {
            let (lo, hi) = to.int_range();
            Scalar::Int((v as i128).clamp(lo, hi))
        }
        Scalar::Int(v) if to == DType::F32 => Scalar::Float(v as f32 as f64),
        Scalar::Int(v) if to.is_float() => Scalar::Float(round(to, v as f64)),
        Scalar::Int(v) => Scalar::Int(to.wrap(v)),
    }
}

/// Element `i` of a dense buffer. Panics when the buffer ends before it.
pub fn read(dtype: DType, bytes: &[u8], i: usize) -> Scalar {
    fn at<const N: usize>(bytes: &[u8], i: usize) -> [u8; N] {
        let mut a = [0; N];
        a.copy_from_slice(&bytes[i * N..(i + 1) * N]);
        a
    }
    match dtype {
        DType::F64 => Scalar::Float(f64::from_ne_bytes(at(bytes, i))),
        DType::F32 => Scalar::Float(f32::from_ne_bytes(at(bytes, i)) as f64),
        DType::F16 => Scalar::Float(f16::from_ne_bytes(at(bytes, i)).to_f64()),
        DType::BF16 => Scalar::Float(bf16::from_ne_bytes(at(bytes, i)).to_f64()),
        DType::I64 => Scalar::Int(i64::from_ne_bytes(at(bytes, i)) as i128),
        DType::I32 => Scalar::Int(i32::from_ne_bytes(at(bytes, i)) as i128),
        DType::I16 => Scalar::Int(i16::from_ne_bytes(at(bytes, i)) as i128),
        DType::I8 => Scalar::Int(i8::from_ne_bytes(at(bytes, i)) as i128),
        DType::U64 => Scalar::Int(u64::from_ne_bytes(at(bytes, i)) as i128),
        DType::U32 => Scalar::Int(u32::from_ne_bytes(at(bytes, i)) as i128),
        DType::U16 => Scalar::Int(u16::from_ne_bytes(at(bytes, i)) as i128),
        DType::U8 => Scalar::Int(bytes[i] as i128),
        DType::Bool => Scalar::Int((bytes[i] != 0) as i128),
    }
}

/// Writes element `i` of a dense buffer, rounding floats and wrapping integers to `dtype`. Panics when the buffer ends before it.
pub fn write(dtype: DType, bytes: &mut [u8], i: usize, v: Scalar) {
    let size = dtype.size();
    let to = &mut bytes[i * size..(i + 1) * size];
    match dtype {
        DType::F64 => to.copy_from_slice(&v.float().to_ne_bytes()),
        DType::F32 => to.copy_from_slice(&(v.float() as f32).to_ne_bytes()),
        DType::F16 => to.copy_from_slice(&f16::from_f64(v.float()).to_ne_bytes()),
        DType::BF16 => to.copy_from_slice(&bf16::from_f64(v.float()).to_ne_bytes()),
        DType::I64 | DType::U64 => to.copy_from_slice(&(v.int() as u64).to_ne_bytes()),
        DType::I32 | DType::U32 => to.copy_from_slice(&(v.int() as u32).to_ne_bytes()),
        DType::I16 | DType::U16 => to.copy_from_slice(&(v.int() as u16).to_ne_bytes()),
        DType::I8 | DType::U8 => to[0] = v.int() as u8,
        DType::Bool => to[0] = (v.int() != 0) as u8,
    }
}

/// The elements of a [`Tensor`] in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Elements of a float dtype.
    Float(Vec<f64>),
    /// Elements of an integer dtype, or bools as 0 and 1.
    Int(Vec<i128>),
}

/// A dense tensor of the interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: Dims,
    /// Elements.
    pub data: Data,
}

impl Tensor {
    /// A tensor of zeros (or `false`).
    pub fn zeros(dtype: DType, dims: &[usize]) -> Self {
        Self::filled(dtype, dims, Scalar::zero(dtype))
    }

    /// A tensor of equal elements.
    pub fn filled(dtype: DType, dims: &[usize], v: Scalar) -> Self {
        let n = numel(dims);
        let data = if dtype.is_float() { Data::Float(vec![v.float(); n]) } else { Data::Int(vec![v.int(); n]) };
        Tensor { dtype, dims: dims.into(), data }
    }

    /// A tensor from numbers: rounded for float dtypes, converted as a cast does for others. Panics when their count is not that of `dims`.
    #[track_caller]
    pub fn from_f64(dtype: DType, dims: &[usize], values: &[f64]) -> Self {
        assert_eq!(numel(dims), values.len(), "interpreter tensor: {dims:?} has another number of elements");
        let mut t = Self::zeros(dtype, dims);
        values.iter().enumerate().for_each(|(i, v)| t.set(i, cast(Scalar::Float(*v), dtype)));
        t
    }

    /// A tensor from integers, converted as a cast does. Panics when their count is not that of `dims`.
    #[track_caller]
    pub fn from_ints(dtype: DType, dims: &[usize], values: &[i128]) -> Self {
        assert_eq!(numel(dims), values.len(), "interpreter tensor: {dims:?} has another number of elements");
        let mut t = Self::zeros(dtype, dims);
        values.iter().enumerate().for_each(|(i, v)| t.set(i, cast(Scalar::Int(*v), dtype)));
        t
    }

    /// A tensor from the dense row-major bytes of a buffer, native endian. Panics when there are too few.
    #[track_caller]
    pub fn from_bytes(dtype: DType, dims: &[usize], bytes: &[u8]) -> Self {
        let mut t = Self::zeros(dtype, dims);
        for i in 0..t.len() {
            t.set(i, read(dtype, bytes, i));
        }
        t
    }

    /// The dense row-major bytes of a buffer, native endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len() * self.dtype.size()];
        for i in 0..self.len() {
            write(self.dtype, &mut bytes, i, self.get(i));
        }
        bytes
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.data {
            Data::Float(v) => v.len(),
            Data::Int(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `i` in row-major order.
    pub fn get(&self, i: usize) -> Scalar {
        match &self.data {
            Data::Float(v) => Scalar::Float(v[i]),
            Data::Int(v) => Scalar::Int(v[i]),
        }
    }

    /// Replaces element `i` in row-major order.
    pub fn set(&mut self, i: usize, v: Scalar) {
        match &mut self.data {
            Data::Float(x) => x[i] = v.float(),
            Data::Int(x) => x[i] = v.int(),
        }
    }

    /// The elements as floats.
    pub fn floats(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.get(i).float()).collect()
    }

    /// The elements as integers.
    pub fn ints(&self) -> Vec<i128> {
        (0..self.len()).map(|i| self.get(i).int()).collect()
    }

    /// Rounds every float to the dtype.
    pub fn rounded(mut self) -> Self {
        let dtype = self.dtype;
        if let Data::Float(v) = &mut self.data {
            v.iter_mut().for_each(|v| *v = round(dtype, *v));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_for_every_dtype() {
        for dtype in DType::ALL {
            let t = Tensor::from_f64(dtype, &[2, 2], &[0.0, 1.0, 2.5, 100.0]);
            assert_eq!(Tensor::from_bytes(dtype, &[2, 2], &t.to_bytes()), t, "{dtype}");
        }
    }

    #[test]
    fn casts_truncate_saturate_and_wrap() {
        let f = Scalar::Float;
        let i = Scalar::Int;
        assert_eq!(cast(f(-2.9), DType::I32), i(-2));
        assert_eq!(cast(f(1e30), DType::I8), i(127));
        assert_eq!(cast(f(-1.0), DType::U8), i(0));
        assert_eq!(cast(f(f64::NAN), DType::I64), i(0));
        assert_eq!(cast(f(f64::INFINITY), DType::U64), i(u64::MAX as i128));
        assert_eq!(cast(f(f64::NAN), DType::Bool), i(1));
        assert_eq!(cast(f(0.5), DType::Bool), i(1));
        assert_eq!(cast(i(300), DType::U8), i(44));
        assert_eq!(cast(i(16_777_217), DType::F32), f(16_777_216.0));
        assert_eq!(cast(f(1.0 + 1.0 / 256.0), DType::BF16), f(1.0));
        assert_eq!(cast(f(65520.0), DType::F16), f(f64::INFINITY));
    }
}
