//! Options, vectors and arrays of modules.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

use kiln_tensor::Device;

use super::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor};

impl<T: Module> Module for Option<T> {
    fn collect_devices(&self, devices: Devices) -> Devices {
        match self {
            Some(module) => module.collect_devices(devices),
            None => devices,
        }
    }

    fn fork(self, device: &Device) -> Self {
        self.map(|module| module.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.map(|module| module.to_device(device))
    }

    fn train(self) -> Self {
        self.map(Module::train)
    }

    fn valid(&self) -> Self {
        self.as_ref().map(Module::valid)
    }

    fn materialize(self) -> Self {
        self.map(Module::materialize)
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        if let Some(module) = self {
            module.visit(visitor);
        }
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        self.map(|module| Module::map(module, mapper))
    }
}

impl<T: ModuleDisplay> ModuleDisplayDefault for Option<T> {
    fn content(&self, content: Content) -> Option<Content> {
        match self {
            Some(module) => content.add_single(module).optional(),
            None => content.with_single("None".into()).optional(),
        }
    }

    fn num_params(&self) -> usize {
        self.as_ref().map_or(0, ModuleDisplayDefault::num_params)
    }
}

impl<T: ModuleDisplay> ModuleDisplay for Option<T> {}

/// Shows the items of a sequence under their positions.
fn visit_items<'a, T: Module + 'a, V: ModuleVisitor>(items: impl Iterator<Item = &'a T>, container: &str, visitor: &mut V) {
    let mut name = String::new();
    for (index, item) in items.enumerate() {
        name.clear();
        write!(name, "{index}").expect("writing to a string never fails");
        visitor.enter_module(&name, container);
        item.visit(visitor);
        visitor.exit_module(&name, container);
    }
}

fn map_item<T: Module, M: ModuleMapper>(index: usize, item: T, container: &str, mapper: &mut M) -> T {
    let name = index.to_string();
    mapper.enter_module(&name, container);
    let mapped = item.map(mapper);
    mapper.exit_module(&name, container);
    mapped
}

impl<T: Module> Module for Vec<T> {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.iter().fold(devices, |devices, module| module.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        self.into_iter().map(|module| module.fork(device)).collect()
    }

    fn to_device(self, device: &Device) -> Self {
        self.into_iter().map(|module| module.to_device(device)).collect()
    }

    fn train(self) -> Self {
        self.into_iter().map(Module::train).collect()
    }

    fn valid(&self) -> Self {
        self.iter().map(Module::valid).collect()
    }

    fn materialize(self) -> Self {
        self.into_iter().map(Module::materialize).collect()
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        visit_items(self.iter(), "Vec", visitor);
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        self.into_iter().enumerate().map(|(index, module)| map_item(index, module, "Vec", mapper)).collect()
    }
}

impl<T: ModuleDisplay> ModuleDisplayDefault for Vec<T> {
    fn content(&self, content: Content) -> Option<Content> {
        self.iter()
            .enumerate()
            .fold(content, |content, (index, module)| content.add(&index.to_string(), module))
            .set_top_level_type(&alloc::format!("Vec<0..{}>", self.len()))
            .optional()
    }

    fn num_params(&self) -> usize {
        self.iter().map(ModuleDisplayDefault::num_params).sum()
    }
}

impl<T: ModuleDisplay> ModuleDisplay for Vec<T> {}

impl<const N: usize, T: Module> Module for [T; N] {
    fn collect_devices(&self, devices: Devices) -> Devices {
        self.iter().fold(devices, |devices, module| module.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        self.map(|module| module.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.map(|module| module.to_device(device))
    }

    fn train(self) -> Self {
        self.map(Module::train)
    }

    fn valid(&self) -> Self {
        self.each_ref().map(Module::valid)
    }

    fn materialize(self) -> Self {
        self.map(Module::materialize)
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        visit_items(self.iter(), "Array", visitor);
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        let mut index = 0;
        self.map(|module| {
            let mapped = map_item(index, module, "Array", mapper);
            index += 1;
            mapped
        })
    }
}

impl<const N: usize, T: ModuleDisplay> ModuleDisplayDefault for [T; N] {
    fn content(&self, content: Content) -> Option<Content> {
        self.iter()
            .enumerate()
            .fold(content, |content, (index, module)| content.add(&index.to_string(), module))
            .set_top_level_type(&alloc::format!("[0..{N}]"))
            .optional()
    }

    fn num_params(&self) -> usize {
        self.iter().map(ModuleDisplayDefault::num_params).sum()
    }
}

impl<const N: usize, T: ModuleDisplay> ModuleDisplay for [T; N] {}
