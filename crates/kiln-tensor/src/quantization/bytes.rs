//! `QuantizedBytes`: the values and scales of a quantized tensor on the host.

use alloc::vec::Vec;
use core::fmt;

use bytemuck::{CheckedBitPattern, NoUninit};

use super::layout::values_len;
use super::scale::{read_scales, write_scales};
use super::{QuantScheme, global_scale_dtype, global_scale_size, pack, params_shape, quantized_data_len, scale_size};
use crate::{Bytes, Shape};

/// The scales of a quantized tensor as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedScales {
    /// One scale a block in row-major order, or one of the tensor.
    pub block: Vec<f32>,
    /// The second scale, by which all others are multiplied.
    pub global: Option<f32>,
}

/// The bytes of a quantized tensor: packed values, scales, second scale.
///
/// ```
/// use kiln_tensor::quantization::{DecodedScales, QuantScheme, QuantValue, QuantizedBytes, ScaleDtype};
/// let scheme = QuantScheme::default().with_value(QuantValue::Q4S).per_tensor(ScaleDtype::F16);
/// let bytes = QuantizedBytes::new(vec![-7i8, 1, 2, 3, 4, 5, 6, 7], [2, 4], scheme, &[0.25], None);
/// assert_eq!(bytes.bytes.len(), 2 * 4 + 2); // Each row fills a word, then the scale.
/// let (values, scales) = bytes.into_vec_i8();
/// assert_eq!(values, [-7, 1, 2, 3, 4, 5, 6, 7]);
/// assert_eq!(scales, DecodedScales { block: vec![0.25], global: None });
/// ```
pub struct QuantizedBytes {
    /// Packed values, then scales, then the second scale.
    pub bytes: Bytes,
    /// How they are represented.
    pub scheme: QuantScheme,
    /// The shape of the tensor.
    pub shape: Shape,
}

impl QuantizedBytes {
    /// The bytes of quantized values: one 8-bit code a value, or the packed bytes or words themselves. Scales are rounded up to the scheme's types.
    ///
    /// # Panics
    /// When the number of values is not that of the shape, or the number of scales not that of its blocks.
    #[track_caller]
    pub fn new<E: CheckedBitPattern + NoUninit>(
        value: Vec<E>,
        shape: impl Into<Shape>,
        scheme: QuantScheme,
        scales: &[f32],
        global: Option<f32>,
    ) -> Self {
        let shape = shape.into();
        let (needed, given) = (values_len(&scheme, &shape), bytemuck::cast_slice::<E, u8>(&value));
        // As many bytes as values are codes, though packs that are not full may take as many.
        let mut bytes = if size_of::<E>() == 1 && value.len() == shape.num_elements() {
            pack::pack(given, &scheme, &shape)
        } else if given.len() == needed {
            given.to_vec()
        } else {
            panic!(
                "quantized bytes: shape {shape} needs {} values, or {needed} bytes of packed ones, found {} of {} bytes each: {scheme:?}",
                shape.num_elements(),
                value.len(),
                size_of::<E>()
            );
        };
        let blocks = params_shape(&shape, &scheme).num_elements();
        assert!(scales.len() == blocks, "quantized bytes: shape {shape} needs {blocks} scales, found {}: {scheme:?}", scales.len());
        let two_levels = global_scale_dtype(&scheme);
        assert!(two_levels.is_some() == global.is_some(), "quantized bytes: a second scale goes with scales of two levels: {global:?}, {scheme:?}");
        write_scales(scales, scheme.scale_dtype(), &mut bytes);
        if let (Some(dtype), Some(global)) = (two_levels, global) {
            write_scales(&[global], dtype, &mut bytes);
        }
        Self { bytes: Bytes::from_bytes_vec(bytes), scheme, shape }
    }

    /// The number of values.
    pub fn num_elements(&self) -> usize {
        self.shape.num_elements()
    }

    /// One code a value, and the scales. Of small floats the code is their bits.
    ///
    /// # Panics
    /// When the number of bytes is not what shape and scheme need.
    #[track_caller]
    pub fn into_vec_i8(self) -> (Vec<i8>, DecodedScales) {
        let (codes, scales) = self.codes();
        (codes.into_iter().map(|code| code as i8).collect(), scales)
    }

    #[track_caller]
    pub(crate) fn codes(&self) -> (Vec<u8>, DecodedScales) {
        let needed = quantized_data_len(&self.scheme, &self.shape);
        assert!(
            self.bytes.len() == needed,
            "quantized bytes: shape {} needs {needed} bytes, found {}: {:?}",
            self.shape,
            self.bytes.len(),
            self.scheme
        );
        let (values, scales) = self.bytes.split_at(values_len(&self.scheme, &self.shape));
        let (block, global) = scales.split_at(scales.len() - global_scale_size(&self.scheme));
        let global = global_scale_dtype(&self.scheme).and_then(|dtype| read_scales(global, dtype).pop());
        debug_assert_eq!(block.len() % scale_size(self.scheme.scale_dtype()), 0);
        (pack::unpack(values, &self.scheme, &self.shape), DecodedScales { block: read_scales(block, self.scheme.scale_dtype()), global })
    }
}

impl fmt::Debug for QuantizedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuantizedBytes({} bytes, {}, {:?})", self.bytes.len(), self.shape, self.scheme)
    }
}
