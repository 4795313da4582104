//! Quantized tensors in and out of host memory, in the layout that their scheme says.
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::{DType, Dims, dims};
use smallvec::SmallVec;

use super::codec::Codec;
use super::{Quantized, blocks_of, scales};
use crate::quantization::{QuantScheme, QuantizedBytes, ScaleDtype, global_scale_dtype, pack, quantizable, write_scales};
use crate::raw::RawTensor;
use crate::trace::{self, Slot};
use crate::{DType as ApiDType, Device, ExecutionError, Shape, TensorData};

/// Elements of `size` bytes in the order of the axes `axes` of a row-major tensor of sizes `stored`.
fn reorder(elements: &[u8], size: usize, stored: &[usize], axes: &[usize]) -> Vec<u8> {
    if axes.is_empty() {
        return elements.to_vec();
    }
    let strides = dims::row_major(stored);
    let shown: Vec<(usize, usize)> = axes.iter().map(|axis| (stored[*axis], strides[*axis] as usize)).collect();
    let mut out = Vec::with_capacity(elements.len());
    for index in 0..elements.len() / size.max(1) {
        let (mut rest, mut from) = (index, 0);
        for (len, stride) in shown.iter().rev() {
            from += rest % len * stride;
            rest /= len;
        }
        out.extend_from_slice(&elements[from * size..(from + 1) * size]);
    }
    out
}

impl Quantized {
    /// The data in the layout of the scheme.
    fn to_data(&self) -> Result<TensorData, ExecutionError> {
        let codec = Codec::of(self.scheme.value);
        let stored = self.codes.to_bytes()?;
        let count = dims::numel(&self.stored);
        let codes = match codec.planes() {
            1 => stored,
            _ => (0..count).map(|i| self.code(&codec, &stored, i)).collect(),
        };
        let shape: Vec<usize> = self.dims().to_vec();
        let mut bytes = pack::pack(&reorder(&codes, 1, &self.stored, &self.axes), &self.scheme, &shape);
        let scales = self.scales.to_bytes()?;
        match &self.block {
            None => bytes.extend_from_slice(&scales),
            Some(block) => {
                let blocks: Vec<usize> = self.stored.iter().zip(block).map(|(size, block)| size / block).collect();
                bytes.extend(reorder(&scales, scales::stored_dtype(self.scheme.scale_dtype()).size(), &blocks, &self.axes));
            }
        }
        if let Some(global) = &self.global {
            bytes.extend(global.to_bytes()?);
        }
        Ok(TensorData::from_bytes_vec(bytes, shape, ApiDType::QFloat(self.scheme)))
    }

    /// The code of an element among packed ones.
    fn code(&self, codec: &Codec, stored: &[u8], i: usize) -> u8 {
        let (byte, plane) = (stored[i % stored.len()], i / stored.len());
        let bits = self.scheme.size_bits_value();
        pack::extend((byte >> (plane * bits)).wrapping_sub(codec.bias()), &self.scheme)
    }
}

impl RawTensor {
    /// A quantized tensor of data in the layout of its scheme.
    ///
    /// Panics at the caller when the bytes are not what shape and scheme need.
    #[track_caller]
    pub(crate) fn from_quantized_data(data: TensorData, scheme: QuantScheme, device: &Device) -> RawTensor {
        let shape = data.shape().clone();
        let dims = Dims::from_slice(&shape);
        let block = blocks_of("from_data", &scheme, &dims);
        assert!(quantizable(&scheme), "from_data: no device computes with these scales of two levels: {scheme:?}");
        let (codes, decoded) = QuantizedBytes { bytes: data.into_bytes(), scheme, shape: Shape::from(&dims[..]) }.codes();
        let codec = Codec::of(scheme.value);
        let stored = codec.stored_dims(&dims);
        let codes = match codec.planes() {
            1 => codes,
            _ => {
                let mask = (1u8 << scheme.size_bits_value()) - 1;
                let mut bytes = vec![0u8; stored[0]];
                for (i, code) in codes.iter().enumerate() {
                    let (at, plane) = (i % bytes.len(), i / bytes.len());
                    bytes[at] |= (code.wrapping_add(codec.bias()) & mask) << (plane * scheme.size_bits_value());
                }
                bytes
            }
        };
        let plain = device.clone().without_autodiff();
        let mut scales = Vec::new();
        write_scales(&decoded.block, scheme.scale_dtype(), &mut scales);
        let global = global_scale_dtype(&scheme).zip(decoded.global);
        let quantized = Quantized {
            scheme,
            stored: dims,
            block,
            axes: SmallVec::new(),
            codes: RawTensor::from_bytes(&plain, &stored, codec.dtype(), &codes),
            scales: RawTensor::from_bytes(&plain, &[decoded.block.len()], scales::stored_dtype(scheme.scale_dtype()), &scales),
            global: global.map(|(dtype, scale)| {
                debug_assert_eq!(dtype, ScaleDtype::F32);
                RawTensor::from_bytes(&plain, &[1], DType::F32, &scale.to_ne_bytes())
            }),
        };
        let dtype = ApiDType::from(device.settings().float_dtype).into();
        let slot = Slot::quantized(quantized.dims(), dtype, trace::current(device.state), Arc::new(quantized));
        RawTensor { slot, context: device.context, tape: None }
    }

    /// The data of a quantized tensor, in the layout of its scheme.
    pub(crate) fn to_quantized_data(&self) -> Option<Result<TensorData, ExecutionError>> {
        self.quantized().map(Quantized::to_data)
    }
}
