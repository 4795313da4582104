//! Quantization of tensors: floats to codes and scales, and back.

use super::Tensor;
use super::kind::Float;
use crate::quantization::{Calibration, QuantScheme, QuantizationParameters, compute_q_params, compute_range};

impl<const D: usize> Tensor<D, Float> {
    /// The tensor in few bits: codes of the scheme's values, and scales. It stays a float tensor to all operations, which compute with the values that its codes
    /// stand for; its [`dtype`](Tensor::dtype) is [`DType::QFloat`](crate::DType::QFloat). It is untracked: no gradient flows through rounding.
    ///
    /// Each value is divided by its block's scale and rounded to the nearest of the scheme's values: integers with halves away from zero, small floats with
    /// halves to even. NaN becomes 0. Scales are rounded up to their type.
    ///
    /// Reshaped, permuted, sliced by whole blocks, flipped along axes without blocks, and selected from, it stays quantized; other operations, and views that cut
    /// blocks, give floats: of the type of the float operand, or of the device's default type.
    ///
    /// ```
    /// use kiln_tensor::quantization::{QParams, QuantScheme, QuantValue};
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([-1.0, 0.1, 0.26, 2.0], &device);
    /// let params = QParams { scales: Tensor::<1>::from_data([0.25], &device), global: None };
    /// let q = x.quantize(&QuantScheme::default().with_value(QuantValue::Q4S), params);
    /// assert_eq!(q.dtype().name(), "qfloat");
    /// assert_eq!(q.dequantize().try_to_vec_as::<f32>().unwrap(), [-1.0, 0.0, 0.25, 1.75]);
    /// ```
    ///
    /// # Panics
    /// When the scheme's blocks do not divide the tensor, the number of scales is not that of the blocks, or
    /// [`quantizable`](crate::quantization::quantizable) is false for the scheme.
    #[track_caller]
    pub fn quantize(self, scheme: &QuantScheme, qparams: QuantizationParameters) -> Self {
        Self::from_raw(self.raw.quantize(scheme, qparams.scales.as_raw(), qparams.global.as_ref().map(Tensor::as_raw)))
    }

    /// The tensor quantized by scales that cover its own range, found by [`Calibration::MinMax`].
    ///
    /// ```
    /// use kiln_tensor::quantization::{QuantScheme, QuantValue, ScaleDtype};
    /// use kiln_tensor::{Device, Tensor, Tolerance};
    /// let x = Tensor::<2>::from_data([[0.5, -1.0, 0.25, 0.0], [70.0, 10.0, -30.0, 20.0]], &Device::default());
    /// let scheme = QuantScheme::default().with_value(QuantValue::Q8S).per_block([4], ScaleDtype::F32);
    /// let q = x.clone().quantize_dynamic(&scheme);
    /// q.dequantize().into_data().assert_approx_eq::<f32>(&x.into_data(), Tolerance::absolute(70.0 / 254.0));
    /// ```
    ///
    /// # Panics
    /// As [`quantize`](Self::quantize), and for a tensor without elements.
    #[track_caller]
    pub fn quantize_dynamic(self, scheme: &QuantScheme) -> Self {
        let range = compute_range(scheme, &self, &Calibration::MinMax);
        let params = compute_q_params(scheme, range);
        self.quantize(scheme, params)
    }

    /// The floats that a quantized tensor's codes stand for, in the device's float type; a tensor that is not quantized stays as it is.
    ///
    /// ```
    /// use kiln_tensor::quantization::QuantScheme;
    /// use kiln_tensor::{DType, Device, Tensor};
    /// let x = Tensor::<1>::from_data([-1.0, 1.0], &Device::default());
    /// let y = x.quantize_dynamic(&QuantScheme::default()).dequantize();
    /// assert_eq!(y.dtype(), DType::F32);
    /// ```
    #[track_caller]
    pub fn dequantize(self) -> Self {
        Self::from_raw(self.raw.dequantize())
    }
}
