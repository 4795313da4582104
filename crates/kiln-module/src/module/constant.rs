//! Plain values as parts of a module: they have no parameters.

use alloc::format;
use alloc::string::String;

use kiln_tensor::{Device, bf16, f16};

use super::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor};

macro_rules! constant_module {
    ($($ty:ty),*) => {$(
        impl Module for $ty {
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
    )*};
}

macro_rules! constant_display {
    ($($ty:ty),*) => {$(
        impl ModuleDisplayDefault for $ty {
            fn content(&self, content: Content) -> Option<Content> {
                content.with_single(format!("{self}")).optional()
            }
        }

        impl ModuleDisplay for $ty {}
    )*};
}

constant_module!(bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, f16, bf16, String);
constant_display!(bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, f16, bf16, String, str);
