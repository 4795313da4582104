//! The dtypes that tensors of a device have when none is given.
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::quantization::QuantConfig;
use crate::{BoolDType, BoolStore, DType, FloatDType, IntDType};

/// The dtypes that tensors of a device have when none is given.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct DeviceSettings {
    /// Of float tensors.
    pub float_dtype: FloatDType,
    /// Of int tensors.
    pub int_dtype: IntDType,
    /// Of bool tensors.
    pub bool_dtype: BoolDType,
    /// How tensors are quantized.
    pub quantization: QuantConfig,
}

impl DeviceSettings {
    /// Settings of these dtypes and this quantization.
    pub fn new(
        float_dtype: impl Into<FloatDType>,
        int_dtype: impl Into<IntDType>,
        bool_dtype: impl Into<BoolDType>,
        quantization: QuantConfig,
    ) -> Self {
        DeviceSettings { float_dtype: float_dtype.into(), int_dtype: int_dtype.into(), bool_dtype: bool_dtype.into(), quantization }
    }

    /// Settings of these dtypes, with the usual quantization.
    pub fn with_dtypes(float_dtype: impl Into<FloatDType>, int_dtype: impl Into<IntDType>, bool_dtype: impl Into<BoolDType>) -> Self {
        Self::new(float_dtype, int_dtype, bool_dtype, QuantConfig::default())
    }
}

impl Default for DeviceSettings {
    /// 32-bit floats, 32-bit integers, native bools, as in Burn 0.22.
    fn default() -> Self {
        Self::with_dtypes(FloatDType::F32, IntDType::I32, BoolStore::Native)
    }
}

/// Changes to a device's [`DeviceSettings`]; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub struct DeviceConfig {
    /// Of float tensors.
    pub float_dtype: Option<FloatDType>,
    /// Of int tensors.
    pub int_dtype: Option<IntDType>,
    /// Of bool tensors.
    pub bool_dtype: Option<BoolDType>,
}

impl DeviceConfig {
    /// Changes to these dtypes.
    pub fn new(float_dtype: Option<FloatDType>, int_dtype: Option<IntDType>, bool_dtype: Option<BoolDType>) -> Self {
        DeviceConfig { float_dtype, int_dtype, bool_dtype }
    }

    /// Sets the dtype of float tensors.
    pub fn float_dtype(mut self, dtype: impl Into<FloatDType>) -> Self {
        self.float_dtype = Some(dtype.into());
        self
    }

    /// Sets the dtype of int tensors.
    pub fn int_dtype(mut self, dtype: impl Into<IntDType>) -> Self {
        self.int_dtype = Some(dtype.into());
        self
    }

    /// Sets the dtype of bool tensors.
    pub fn bool_dtype(mut self, dtype: impl Into<BoolDType>) -> Self {
        self.bool_dtype = Some(dtype.into());
        self
    }

    pub(super) fn dtypes(&self) -> Vec<DType> {
        let float = self.float_dtype.map(DType::from);
        let int = self.int_dtype.map(DType::from);
        let bool = self.bool_dtype.map(DType::from);
        float.into_iter().chain(int).chain(bool).collect()
    }
}

impl From<(FloatDType, IntDType)> for DeviceConfig {
    fn from((float, int): (FloatDType, IntDType)) -> Self {
        DeviceConfig::new(Some(float), Some(int), None)
    }
}

impl From<BoolStore> for DeviceConfig {
    fn from(dtype: BoolStore) -> Self {
        DeviceConfig::new(None, None, Some(dtype))
    }
}

impl From<FloatDType> for DeviceConfig {
    fn from(dtype: FloatDType) -> Self {
        DeviceConfig::new(Some(dtype), None, None)
    }
}

impl From<IntDType> for DeviceConfig {
    fn from(dtype: IntDType) -> Self {
        DeviceConfig::new(None, Some(dtype), None)
    }
}

/// Why a device could not be configured.
#[derive(Debug)]
pub enum DeviceError {
    /// The device has no such dtype.
    UnsupportedDType {
        /// The device.
        device: String,
        /// The dtype.
        dtype: DType,
    },
    /// The settings are fixed already.
    AlreadyInitialized {
        /// The device.
        device: String,
    },
}

impl DeviceError {
    /// The device has no such dtype.
    pub fn unsupported_dtype<D: fmt::Debug + ?Sized>(device: &D, dtype: DType) -> Self {
        DeviceError::UnsupportedDType { device: format!("{device:?}"), dtype }
    }

    /// The settings are fixed already.
    pub fn already_initialized<D: fmt::Debug + ?Sized>(device: &D) -> Self {
        DeviceError::AlreadyInitialized { device: format!("{device:?}") }
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::UnsupportedDType { device, dtype } => write!(f, "device {device} does not support the dtype {dtype:?}"),
            DeviceError::AlreadyInitialized { device } => {
                write!(f, "the settings of device {device} are fixed: configure it once, before its first tensor")
            }
        }
    }
}

impl core::error::Error for DeviceError {}

/// Settings and whether they are fixed.
#[derive(Default)]
pub(crate) struct SettingsState {
    settings: DeviceSettings,
    locked: bool,
}

impl SettingsState {
    pub fn current(&self) -> DeviceSettings {
        self.settings
    }

    pub fn lock(&mut self) -> DeviceSettings {
        self.locked = true;
        self.settings
    }

    /// Applies a change and fixes the settings; `false` if they were fixed before.
    pub fn set(&mut self, config: DeviceConfig) -> bool {
        if self.locked {
            return false;
        }
        let s = &mut self.settings;
        s.float_dtype = config.float_dtype.unwrap_or(s.float_dtype);
        s.int_dtype = config.int_dtype.unwrap_or(s.int_dtype);
        s.bool_dtype = config.bool_dtype.unwrap_or(s.bool_dtype);
        self.locked = true;
        true
    }
}
