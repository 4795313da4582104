//! Making tensors: from values, constants, ranges and random numbers.

use core::ops::Range;

use super::Tensor;
use super::kind::{Basic, Bool, Float, Int, Kind, Numeric};
use crate::data::TensorData;
use crate::device::Device;
use crate::distribution::Distribution;
use crate::dtype::DType;
use crate::element::{ElementConversion, Scalar};
use crate::raw::{RawTensor, check_size};
use crate::shape::Shape;

/// Where a tensor is made, and of which type: `&device`, or `(&device, dtype)`.
#[derive(Clone, Debug, Default)]
pub struct TensorCreationOptions {
    /// Where the tensor lives.
    pub device: Device,
    /// The type of its elements; the device's default for the kind without.
    pub dtype: Option<DType>,
}

impl TensorCreationOptions {
    /// On a device, with its default types.
    pub fn new(device: Device) -> Self {
        Self { device, dtype: None }
    }

    /// Sets the type of the elements.
    #[must_use]
    pub fn with_dtype(self, dtype: DType) -> Self {
        Self { dtype: Some(dtype), ..self }
    }

    /// Sets the device.
    #[must_use]
    pub fn with_device(self, device: Device) -> Self {
        Self { device, ..self }
    }

    /// The type of the elements, or the given one.
    ///
    /// ```
    /// use kiln_tensor::{DType, Device, TensorCreationOptions};
    /// let options = TensorCreationOptions::from((&Device::default(), DType::F64));
    /// assert_eq!(options.dtype_or(DType::F32), DType::F64);
    /// ```
    pub fn dtype_or(&self, dtype: DType) -> DType {
        self.dtype.unwrap_or(dtype)
    }

    /// The type of a tensor of the given kind. It fixes the defaults of the device.
    #[track_caller]
    fn resolve(&self, op: &str, kind: Kind, shape: &[usize]) -> DType {
        let settings = self.device.locked_settings();
        let dtype = self.dtype.unwrap_or_else(|| kind.default_dtype(&settings));
        assert!(kind.contains(dtype), "{op}: {} is no element type of {} tensors: shape {shape:?}", dtype.name(), kind.as_str());
        check_size(op, shape, dtype.into(), &[]);
        dtype
    }
}

impl From<&Device> for TensorCreationOptions {
    fn from(device: &Device) -> Self {
        Self::new(device.clone())
    }
}

impl From<(&Device, DType)> for TensorCreationOptions {
    fn from((device, dtype): (&Device, DType)) -> Self {
        Self { device: device.clone(), dtype: Some(dtype) }
    }
}

#[track_caller]
fn full_impl(kind: Kind, rank: usize, shape: Shape, value: impl FnOnce(&DType) -> Scalar, options: TensorCreationOptions) -> RawTensor {
    check_rank("full", rank, &shape);
    let dtype = options.resolve("full", kind, &shape);
    RawTensor::full(&options.device, &shape, dtype.into(), value(&dtype)).labelled(dtype)
}

/// Zeros and ones are part of the program, so that the compiler can simplify with them.
#[track_caller]
fn constant_impl(op: &str, kind: Kind, rank: usize, shape: Shape, value: f64, options: TensorCreationOptions) -> RawTensor {
    check_rank(op, rank, &shape);
    let dtype = options.resolve(op, kind, &shape);
    RawTensor::constant(&options.device, &shape, dtype.into(), value).labelled(dtype)
}

#[track_caller]
fn check_rank(op: &str, rank: usize, shape: &Shape) {
    assert!(shape.rank() == rank, "{op}: the shape {shape} is not of rank {rank}");
}

#[track_caller]
fn random_impl(kind: Kind, rank: usize, shape: Shape, distribution: Distribution, options: TensorCreationOptions) -> RawTensor {
    check_rank("random", rank, &shape);
    if let Err(why) = distribution.checked() {
        panic!("random: {why}: shape {shape}");
    }
    let stated = options.resolve("random", kind, &shape);
    let (device, dtype) = (&options.device, kiln_ir::DType::from(stated));
    let real = |draw: fn(&Device, &[usize], kiln_ir::DType, f64, f64) -> RawTensor, a: f64, b: f64| {
        if dtype.is_float() {
            return draw(device, &shape, dtype, a, b);
        }
        // Integers are the rounded values of the real distribution.
        draw(device, &shape, kiln_ir::DType::F64, a, b).round().cast(dtype)
    };
    let drawn = match distribution {
        Distribution::Default if dtype.is_float() => real(RawTensor::random_uniform, 0.0, 1.0),
        Distribution::Default => {
            // Every value of the type, by its bits; a range of all 64 bits has no upper end.
            let wide = RawTensor::random_int(device, &shape, kiln_ir::DType::I64, i64::MIN, i64::MAX);
            wide.cast(dtype)
        }
        Distribution::Bernoulli(p) => RawTensor::random_bernoulli(device, &shape, p).cast(dtype),
        Distribution::Uniform(low, high) if dtype.is_float() => real(RawTensor::random_uniform, low, high),
        Distribution::Uniform(low, high) => RawTensor::random_int(device, &shape, dtype, libm::floor(low) as i64, libm::ceil(high) as i64),
        Distribution::Normal(mean, std) => real(RawTensor::random_normal, mean, std),
    };
    drawn.labelled(stated)
}

#[track_caller]
fn from_data_impl(kind: Kind, rank: usize, data: TensorData, options: TensorCreationOptions) -> RawTensor {
    check_rank("from_data", rank, data.shape());
    if matches!(data.dtype(), DType::QFloat(_)) && kind == Kind::Float {
        let quantized = RawTensor::from_data(data, &options.device);
        return match options.dtype {
            Some(dtype) if dtype != quantized.api_dtype() => quantized.cast_to(options.resolve("from_data", kind, quantized.dims())),
            _ => quantized,
        };
    }
    let dtype = options.resolve("from_data", kind, data.shape());
    RawTensor::from_data(data.convert_dtype(dtype), &options.device)
}

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// A tensor whose elements have no particular value. They are zeros here, so that programs stay reproducible.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// assert_eq!(Tensor::<2>::empty([2, 3], &Device::default()).dims(), [2, 3]);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, or the type is not of the tensor's kind.
    #[track_caller]
    pub fn empty<S: Into<Shape>>(shape: S, options: impl Into<TensorCreationOptions>) -> Self {
        Self::zeros(shape, options)
    }

    /// A tensor of the same shape, type and device whose elements have no particular value.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.empty_like().dims(), [2]);
    /// ```
    pub fn empty_like(&self) -> Self {
        self.zeros_like()
    }

    /// Zeros (`false` for booleans).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::zeros([2, 3], &Device::default());
    /// assert_eq!(x.dims(), [2, 3]);
    /// assert_eq!(x.try_to_vec_as::<f32>().unwrap(), [0.0; 6]);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, or the type is not of the tensor's kind.
    #[track_caller]
    pub fn zeros<S: Into<Shape>>(shape: S, options: impl Into<TensorCreationOptions>) -> Self {
        Self::from_raw(constant_impl("zeros", K::KIND, D, shape.into(), 0.0, options.into()))
    }

    /// Zeros of the same shape, type and device.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.zeros_like().try_to_vec_as::<f32>().unwrap(), [0.0, 0.0]);
    /// ```
    pub fn zeros_like(&self) -> Self {
        Self::from_raw(RawTensor::zeros(&self.device(), self.raw.dims(), self.raw.dtype()).labelled(self.dtype()))
    }

    /// Ones (`true` for booleans).
    ///
    /// ```
    /// use kiln_tensor::{DType, Device, Tensor};
    /// let x = Tensor::<1>::ones([2], (&Device::default(), DType::F64));
    /// assert_eq!(x.dtype(), DType::F64);
    /// assert_eq!(x.try_to_vec_as::<f64>().unwrap(), [1.0, 1.0]);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, or the type is not of the tensor's kind.
    #[track_caller]
    pub fn ones<S: Into<Shape>>(shape: S, options: impl Into<TensorCreationOptions>) -> Self {
        Self::from_raw(constant_impl("ones", K::KIND, D, shape.into(), 1.0, options.into()))
    }

    /// Ones of the same shape, type and device.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.ones_like().try_to_vec_as::<f32>().unwrap(), [1.0, 1.0]);
    /// ```
    pub fn ones_like(&self) -> Self {
        Self::from_raw(RawTensor::ones(&self.device(), self.raw.dims(), self.raw.dtype()).labelled(self.dtype()))
    }

    /// One value everywhere.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::full([2], 7, &Device::default());
    /// assert_eq!(x.try_to_vec_as::<i64>().unwrap(), [7, 7]);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, or the type is not of the tensor's kind.
    #[track_caller]
    pub fn full<S: Into<Shape>, E: ElementConversion>(shape: S, fill_value: E, options: impl Into<TensorCreationOptions>) -> Self {
        let value = |dtype: &DType| Scalar::new(fill_value, dtype);
        Self::from_raw(full_impl(K::KIND, D, shape.into(), value, options.into()))
    }

    /// One value everywhere, with the same shape, type and device.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.full_like(3).try_to_vec_as::<f32>().unwrap(), [3.0, 3.0]);
    /// ```
    pub fn full_like<E: ElementConversion>(&self, fill_value: E) -> Self {
        let value = Scalar::new(fill_value, &self.dtype());
        Self::from_raw(RawTensor::full(&self.device(), self.raw.dims(), self.raw.dtype(), value).labelled(self.dtype()))
    }

    /// The given values, converted to the type of the options or the device's default for the kind.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &device);
    /// assert_eq!(x.dims(), [2, 2]);
    /// let mask = Tensor::<1, Bool>::from_data([true, false], &device);
    /// assert_eq!(mask.try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    ///
    /// # Panics
    /// When the data is not of rank `D`, or the type is not of the tensor's kind.
    #[track_caller]
    pub fn from_data<T>(data: T, options: impl Into<TensorCreationOptions>) -> Self
    where
        T: Into<TensorData>,
    {
        Self::from_raw(from_data_impl(K::KIND, D, data.into(), options.into()))
    }
}

impl<const D: usize, K, T> From<T> for Tensor<D, K>
where
    K: Basic,
    T: Into<TensorData>,
{
    /// The values on the default device.
    #[track_caller]
    fn from(data: T) -> Self {
        Self::from_data(data, TensorCreationOptions::default())
    }
}

impl<const D: usize> Tensor<D, Float> {
    /// The given floats, in the device's float type.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_floats([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_to_vec_as::<f32>().unwrap(), [1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    /// When the data is not of rank `D`.
    #[track_caller]
    pub fn from_floats<A: Into<TensorData>>(floats: A, device: &Device) -> Self {
        Self::from_data(floats, device)
    }

    /// Random numbers of the same shape, type and device.
    ///
    /// ```
    /// use kiln_tensor::{Device, Distribution, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// let y = x.random_like(Distribution::Uniform(5.0, 6.0));
    /// assert!(y.dims() == [2] && y.try_to_vec_as::<f32>().unwrap().iter().all(|v| (5.0..6.0).contains(v)));
    /// ```
    #[track_caller]
    pub fn random_like(&self, distribution: Distribution) -> Self {
        Self::random(self.shape(), distribution, (&self.device(), self.dtype()))
    }
}

impl<const D: usize> Tensor<D, Int> {
    /// The given integers, in the device's integer type.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_ints([1, 2], &Device::default());
    /// assert_eq!(x.try_to_vec_as::<i32>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Panics
    /// When the data is not of rank `D`.
    #[track_caller]
    pub fn from_ints<A: Into<TensorData>>(ints: A, device: &Device) -> Self {
        Self::from_data(ints, device)
    }
}

impl<const D: usize> Tensor<D, Bool> {
    /// The given booleans.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor, TensorData};
    /// let x = Tensor::<1, Bool>::from_bool(TensorData::from([true, false]), &Device::default());
    /// assert_eq!(x.int().try_to_vec_as::<i32>().unwrap(), [1, 0]);
    /// ```
    ///
    /// # Panics
    /// When the data is not of rank `D`.
    #[track_caller]
    pub fn from_bool<A: Into<TensorData>>(data: A, device: &Device) -> Self {
        Self::from_data(data, device)
    }
}

impl Tensor<1, Int> {
    /// The integers of a range.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::arange(2..5, &Device::default());
    /// assert_eq!(x.try_to_vec_as::<i64>().unwrap(), [2, 3, 4]);
    /// ```
    #[track_caller]
    pub fn arange(range: Range<i64>, options: impl Into<TensorCreationOptions>) -> Self {
        Self::arange_step(range, 1, options)
    }

    /// Every `step`-th integer of a range.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::arange_step(0..5, 2, &Device::default());
    /// assert_eq!(x.try_to_vec_as::<i64>().unwrap(), [0, 2, 4]);
    /// ```
    ///
    /// # Panics
    /// When the step is 0.
    #[track_caller]
    pub fn arange_step(range: Range<i64>, step: usize, options: impl Into<TensorCreationOptions>) -> Self {
        assert!(step > 0, "arange: the step must not be 0: range {range:?}");
        let options = options.into();
        let count = usize::try_from((i128::from(range.end) - i128::from(range.start)).max(0)).unwrap_or(usize::MAX).div_ceil(step);
        let dtype = options.resolve("arange", Kind::Int, &[count]);
        Self::from_raw(RawTensor::arange(&options.device, range.start, step as i64, count, dtype.into()))
    }
}

impl<const D: usize, K: Numeric> Tensor<D, K> {
    /// Random numbers. The seed of the device determines them; see [`Device::seed`].
    ///
    /// ```
    /// use kiln_tensor::{Device, Distribution, Tensor};
    /// let x = Tensor::<2>::random([10, 10], Distribution::Uniform(-1.0, 1.0), &Device::default());
    /// x.into_data().assert_within_range(-1.0f32..1.0);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, the type is not of the tensor's kind, or a parameter of the distribution is not valid.
    #[track_caller]
    pub fn random<S: Into<Shape>>(shape: S, distribution: Distribution, options: impl Into<TensorCreationOptions>) -> Self {
        Self::from_raw(random_impl(K::KIND, D, shape.into(), distribution, options.into()))
    }
}

impl<K: Numeric> Tensor<2, K> {
    /// The identity matrix.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::eye(2, &Device::default());
    /// assert_eq!(x.try_to_vec_as::<f32>().unwrap(), [1.0, 0.0, 0.0, 1.0]);
    /// ```
    pub fn eye(size: usize, device: &Device) -> Self {
        let dtype = TensorCreationOptions::from(device).resolve("eye", K::KIND, &[size, size]);
        Self::from_raw(RawTensor::eye(device, size, dtype.into()).labelled(dtype))
    }
}
