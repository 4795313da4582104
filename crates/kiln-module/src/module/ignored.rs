//! A field that a module leaves alone, from before `#[module(skip)]`.

use alloc::format;
use core::fmt::{self, Debug, Display};
use core::ops::Deref;

use kiln_tensor::Device;

use super::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor};

/// Wraps a value that is no module.
#[deprecated(note = "mark the field with `#[module(skip)]` instead")]
#[derive(Clone, Debug)]
pub struct Ignored<T>(pub T);

#[allow(deprecated)]
mod impls {
    use super::*;

    impl<T> Module for Ignored<T>
    where
        T: Sync + Send + Debug + Clone,
    {
        fn collect_devices(&self, devices: Devices) -> Devices {
            devices
        }
        fn fork(self, _device: &Device) -> Self {
            self
        }
        fn to_device(self, _device: &Device) -> Self {
            self
        }
        fn train(self) -> Self {
            self
        }
        fn valid(&self) -> Self {
            self.clone()
        }
        fn materialize(self) -> Self {
            self
        }
        fn visit<Visitor: ModuleVisitor>(&self, _visitor: &mut Visitor) {}
        fn map<Mapper: ModuleMapper>(self, _mapper: &mut Mapper) -> Self {
            self
        }
    }

    impl<T> ModuleDisplayDefault for Ignored<T>
    where
        T: Sync + Send + Debug + Clone,
    {
        fn content(&self, content: Content) -> Option<Content> {
            content.with_single(format!("{:?}", self.0)).optional()
        }
    }

    impl<T> ModuleDisplay for Ignored<T> where T: Sync + Send + Debug + Clone {}

    impl<T> Display for Ignored<T>
    where
        T: Sync + Send + Debug + Clone,
    {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(formatter, "{:?}", self.0)
        }
    }

    impl<T> Deref for Ignored<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }
}
