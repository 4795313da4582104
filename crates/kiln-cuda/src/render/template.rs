//! Source text of the families that come from templates: element types, constants and an entry function in front of a `.cu` file.
use std::fmt::Write;
use std::sync::Arc;

use kiln_ir::{Affine, DType};

use crate::steps::{Chip, Param, Source, Step};

/// Name of a dtype's element type in the templates.
pub(crate) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 => "float",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::I64 => "i64",
        DType::I32 => "i32",
        DType::I16 => "i16",
        DType::I8 => "i8",
        DType::U64 => "u64",
        DType::U32 => "u32",
        DType::U16 => "u16",
        DType::U8 => "u8",
        DType::Bool => "bit",
    }
}

/// Name of the type that arithmetic on a dtype runs in.
pub(crate) fn arith(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 | DType::BF16 => "float",
        _ => element(dtype),
    }
}

/// Bytes of the type that arithmetic on a dtype runs in.
pub(crate) fn arith_size(dtype: DType) -> usize {
    match dtype {
        DType::F16 | DType::BF16 => 4,
        _ => dtype.size(),
    }
}

/// The text of one translation unit in the making.
#[derive(Clone)]
pub(crate) struct Text(String);

impl Text {
    /// The element types. `wide`: index arithmetic in 64 bits.
    pub fn new(wide: bool) -> Self {
        let mut text = String::from(include_str!("cuda/element.cu"));
        text.push_str(if wide { "typedef i64 ix;\ntypedef u64 count;\n" } else { "typedef i32 ix;\ntypedef u32 count;\n" });
        Text(text)
    }

    /// A type of its own name.
    pub fn kind(mut self, name: &str, element: &str) -> Self {
        let _ = writeln!(self.0, "typedef {element} {name};");
        self
    }

    /// A whole number.
    pub fn number(mut self, name: &str, v: impl TryInto<i128>) -> Self {
        let v: i128 = v.try_into().unwrap_or(0);
        let suffix = if i32::try_from(v).is_ok() { "" } else { "ll" };
        let _ = writeln!(self.0, "#define {name} ({v}{suffix})");
        self
    }

    /// A switch.
    pub fn flag(self, name: &str, v: bool) -> Self {
        self.number(name, v as i32)
    }

    /// Any text.
    pub fn define(mut self, name: &str, v: &str) -> Self {
        let _ = writeln!(self.0, "#define {name} {v}");
        self
    }

    /// Appends a template.
    pub fn body(mut self, template: &str) -> Self {
        self.0.push_str(template);
        self
    }

    /// The unit with its entry function `ENTRY_name` switched on: the switch comes first.
    pub fn entry(&self, name: &str) -> Arc<Source> {
        Arc::new(Source { entry: name.into(), code: format!("#define ENTRY_{name}\n{}", self.0) })
    }
}

/// A launch along one dimension.
pub(crate) fn step(source: Arc<Source>, blocks: u32, threads: u32, shared: usize, params: Vec<Param>) -> Step {
    Step { source, grid: [blocks, 1, 1], block: [threads, 1, 1], shared: shared as u32, params }
}

/// Blocks for a loop over `total` points that strides by the grid.
pub(crate) fn blocks(total: usize, threads: usize, chip: &Chip) -> u32 {
    total.div_ceil(threads).clamp(1, chip.multiprocessors as usize * 32) as u32
}

/// Whether index arithmetic over this many elements needs 64 bits.
pub(crate) fn is_wide(lens: &[usize]) -> bool {
    lens.iter().any(|n| *n >= 1 << 31)
}

/// An affine function at coordinates 0; run-time parts are read from `args`.
pub(crate) fn origin(affine: &Affine, divisor: isize) -> String {
    let mut s = format!("((ix){}", affine.base / divisor);
    for (arg, by) in &affine.dynamic {
        let _ = write!(s, " + (ix)((i64)args[{arg}] * ({by}))");
    }
    s.push(')');
    s
}
