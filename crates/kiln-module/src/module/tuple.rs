//! Tuples of two to ten modules.

use alloc::format;

use kiln_tensor::Device;

use super::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor};

macro_rules! tuple_module {
    ($count:literal: $($name:ident $index:tt),*) => {
        impl<$($name: Module),*> Module for ($($name,)*) {
            fn collect_devices(&self, devices: Devices) -> Devices {
                $(let devices = self.$index.collect_devices(devices);)*
                devices
            }
            fn fork(self, device: &Device) -> Self {
                ($(self.$index.fork(device),)*)
            }
            fn to_device(self, device: &Device) -> Self {
                ($(self.$index.to_device(device),)*)
            }
            fn train(self) -> Self {
                ($(self.$index.train(),)*)
            }
            fn valid(&self) -> Self {
                ($(self.$index.valid(),)*)
            }
            fn materialize(self) -> Self {
                ($(self.$index.materialize(),)*)
            }
            fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
                $(
                    visitor.enter_module(stringify!($index), "Tuple");
                    self.$index.visit(visitor);
                    visitor.exit_module(stringify!($index), "Tuple");
                )*
            }
            fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
                ($({
                    mapper.enter_module(stringify!($index), "Tuple");
                    let mapped = self.$index.map(mapper);
                    mapper.exit_module(stringify!($index), "Tuple");
                    mapped
                },)*)
            }
        }

        impl<$($name: ModuleDisplay),*> ModuleDisplayDefault for ($($name,)*) {
            fn content(&self, content: Content) -> Option<Content> {
                content
                    .set_top_level_type(&format!("(0..{})", $count))
                    $(.add(stringify!($index), &self.$index))*
                    .optional()
            }
            fn num_params(&self) -> usize {
                0 $(+ ModuleDisplayDefault::num_params(&self.$index))*
            }
        }

        impl<$($name: ModuleDisplay),*> ModuleDisplay for ($($name,)*) {}
    };
}

tuple_module!(2: L0 0, L1 1);
tuple_module!(3: L0 0, L1 1, L2 2);
tuple_module!(4: L0 0, L1 1, L2 2, L3 3);
tuple_module!(5: L0 0, L1 1, L2 2, L3 3, L4 4);
tuple_module!(6: L0 0, L1 1, L2 2, L3 3, L4 4, L5 5);
tuple_module!(7: L0 0, L1 1, L2 2, L3 3, L4 4, L5 5, L6 6);
tuple_module!(8: L0 0, L1 1, L2 2, L3 3, L4 4, L5 5, L6 6, L7 7);
tuple_module!(9: L0 0, L1 1, L2 2, L3 3, L4 4, L5 5, L6 6, L7 7, L8 8);
tuple_module!(10: L0 0, L1 1, L2 2, L3 3, L4 4, L5 5, L6 6, L7 7, L8 8, L9 9);
