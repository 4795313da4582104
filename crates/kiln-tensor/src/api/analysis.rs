//! The functions of analysis on floats.

use super::Tensor;
use super::kind::FloatMath;

impl<const D: usize, K: FloatMath> Tensor<D, K> {
    /// Each element times itself.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([2.0, -3.0], &Device::default());
    /// assert_eq!(x.square().try_to_vec_as::<f32>().unwrap(), [4.0, 9.0]);
    /// ```
    #[track_caller]
    pub fn square(self) -> Self {
        Self::from_raw(self.raw.square())
    }

    /// The exponential of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([1.0, 2.7182817]);
    /// x.exp().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn exp(self) -> Self {
        Self::from_raw(self.raw.exp())
    }

    /// `ln(1 + x)` of each element, accurate near zero.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([0.0, 0.6931472]);
    /// x.log1p().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn log1p(self) -> Self {
        Self::from_raw(self.raw.log1p())
    }

    /// The natural logarithm of each element; NaN below zero.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([1.0, 10.0], &Device::default());
    /// let expected = TensorData::from([0.0, 2.3025851]);
    /// x.log().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn log(self) -> Self {
        Self::from_raw(self.raw.log())
    }

    /// The square root of each element; NaN below zero.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([4.0, 2.0], &Device::default());
    /// let expected = TensorData::from([2.0, 1.4142135]);
    /// x.sqrt().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn sqrt(self) -> Self {
        Self::from_raw(self.raw.sqrt())
    }

    /// The cosine of each element, in radians.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([1.0, 0.5403023]);
    /// x.cos().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn cos(self) -> Self {
        Self::from_raw(self.raw.cos())
    }

    /// The sine of each element, in radians.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([0.0, 0.841471]);
    /// x.sin().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn sin(self) -> Self {
        Self::from_raw(self.raw.sin())
    }

    /// The tangent of each element, in radians.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([0.0, 1.5574077]);
    /// x.tan().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn tan(self) -> Self {
        Self::from_raw(self.raw.tan())
    }

    /// The hyperbolic cosine of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([1.0, 1.5430807]);
    /// x.cosh().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn cosh(self) -> Self {
        Self::from_raw(self.raw.cosh())
    }

    /// The hyperbolic sine of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([0.0, 1.1752012]);
    /// x.sinh().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn sinh(self) -> Self {
        Self::from_raw(self.raw.sinh())
    }

    /// The hyperbolic tangent of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([0.0, 0.7615942]);
    /// x.tanh().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn tanh(self) -> Self {
        Self::from_raw(self.raw.tanh())
    }

    /// The inverse cosine of each element; NaN outside of `-1..=1`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([1.0, 0.5], &Device::default());
    /// let expected = TensorData::from([0.0, 1.0471976]);
    /// x.acos().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn acos(self) -> Self {
        Self::from_raw(self.raw.acos())
    }

    /// The inverse hyperbolic cosine of each element; NaN below 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// let expected = TensorData::from([0.0, 1.316958]);
    /// x.acosh().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn acosh(self) -> Self {
        Self::from_raw(self.raw.acosh())
    }

    /// The inverse sine of each element; NaN outside of `-1..=1`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 0.5], &Device::default());
    /// let expected = TensorData::from([0.0, 0.5235988]);
    /// x.asin().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn asin(self) -> Self {
        Self::from_raw(self.raw.asin())
    }

    /// The inverse hyperbolic sine of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([0.0, 0.8813736]);
    /// x.asinh().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn asinh(self) -> Self {
        Self::from_raw(self.raw.asinh())
    }

    /// The inverse tangent of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([0.0, 0.7853982]);
    /// x.atan().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn atan(self) -> Self {
        Self::from_raw(self.raw.atan())
    }

    /// The inverse hyperbolic tangent of each element; NaN outside of `-1..=1`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 0.5], &Device::default());
    /// let expected = TensorData::from([0.0, 0.5493061]);
    /// x.atanh().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn atanh(self) -> Self {
        Self::from_raw(self.raw.atanh())
    }

    /// The angle of the point `(x = other, y = self)`, in radians, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let device = Device::default();
    /// let y = Tensor::<1>::from_data([1.0, -1.0], &device);
    /// let x = Tensor::<1>::from_data([1.0, -1.0], &device);
    /// let expected = TensorData::from([0.7853982, -2.3561945]);
    /// y.atan2(x).into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn atan2(self, other: Self) -> Self {
        Self::from_raw(self.raw.atan2(&other.raw))
    }
}
