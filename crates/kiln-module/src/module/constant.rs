//! Plain values as parts of a module: they have no parameters.

use alloc::string::String;

use kiln_tensor::{bf16, f16};

/// Makes a type a module without parameters: a [`Module`](crate::module::Module) that shows its own `Display` in the display of the modules that hold it. The type is
/// `Clone`, `Debug`, `Send` and `Display`.
///
/// ```
/// use kiln_module::module::Module;
///
/// #[derive(Clone, Debug)]
/// struct Seconds(f32);
///
/// impl std::fmt::Display for Seconds {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         write!(f, "{} s", self.0)
///     }
/// }
///
/// kiln_module::empty!(Seconds);
///
/// #[derive(Module, Debug)]
/// struct Delay {
///     by: Seconds,
/// }
///
/// let delay = Delay { by: Seconds(0.5) };
/// assert_eq!(delay.num_params(), 0);
/// assert!(delay.to_string().contains("by: 0.5 s"));
/// ```
#[macro_export]
macro_rules! empty {
    (module $ty:ty) => {
        impl $crate::module::Module for $ty {
            fn collect_devices(&self, devices: $crate::module::Devices) -> $crate::module::Devices {
                devices
            }
            fn fork(self, _device: &$crate::tensor::Device) -> Self {
                self
            }
            fn to_device(self, _device: &$crate::tensor::Device) -> Self {
                self
            }
            fn train(self) -> Self {
                self
            }
            fn valid(&self) -> Self {
                ::core::clone::Clone::clone(self)
            }
            fn materialize(self) -> Self {
                self
            }
            fn visit<Visitor: $crate::module::ModuleVisitor>(&self, _visitor: &mut Visitor) {}
            fn map<Mapper: $crate::module::ModuleMapper>(self, _mapper: &mut Mapper) -> Self {
                self
            }
        }
    };
    (display $ty:ty) => {
        impl $crate::module::ModuleDisplayDefault for $ty {
            fn content(&self, content: $crate::module::Content) -> ::core::option::Option<$crate::module::Content> {
                content.add_formatted(&self).optional()
            }
        }

        impl $crate::module::ModuleDisplay for $ty {}
    };
    ($($ty:ty),+ $(,)?) => {$(
        $crate::empty!(module $ty);
        $crate::empty!(display $ty);
    )+};
}

empty!(bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, f16, bf16, String);
empty!(display str);
