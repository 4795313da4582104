//! Printing of tensors: nested brackets, summarised when there are many values.

use core::fmt::{self, Write};

use crate::data::TensorData;
use crate::dtype::DType;
use crate::element::Element;
use crate::raw::RawTensor;
use half::{bf16, f16};

/// How tensors are printed.
///
/// ```
/// use kiln_tensor::{PrintOptions, set_print_options};
/// set_print_options(PrintOptions { precision: Some(2), ..Default::default() });
/// ```
#[derive(Clone, Debug)]
pub struct PrintOptions {
    /// Tensors with more values than this are summarised.
    pub threshold: usize,
    /// Number of values shown at each end of an axis in a summary.
    pub edge_items: usize,
    /// Number of decimals of floats; `None` shows what is needed to tell a float from its neighbours. `{:.2}` overrides it.
    pub precision: Option<usize>,
}

impl PrintOptions {
    /// The default: summaries above 1000 values, with 3 at each end.
    pub const fn const_default() -> Self {
        Self { threshold: 1000, edge_items: 3, precision: None }
    }
}

impl Default for PrintOptions {
    fn default() -> Self {
        Self::const_default()
    }
}

static OPTIONS: spin::RwLock<PrintOptions> = spin::RwLock::new(PrintOptions::const_default());

/// Sets how tensors are printed from now on, on every thread.
pub fn set_print_options(options: PrintOptions) {
    *OPTIONS.write() = options;
}

/// Prints the values as nested brackets.
pub(crate) fn format_values(data: &TensorData, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    format_part(data, data.shape(), &OPTIONS.read().clone(), f)
}

/// Prints the values of a tensor of sizes `shape`; of a summary, `data` may hold only the ends of the axes that are shown.
fn format_part(data: &TensorData, shape: &[usize], options: &PrintOptions, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let printer = Printer { shape, held: data.shape(), edge_items: summarised(shape, options), precision: f.precision().or(options.precision) };
    match data.dtype() {
        DType::F64 => printer.floats::<f64>(data, f),
        DType::F32 => printer.floats::<f32>(data, f),
        DType::Flex32 => printer.values(data, f, |f, x: crate::element::flex32, precision| float(f, x.to_f32(), precision)),
        DType::F16 => printer.floats::<f16>(data, f),
        DType::BF16 => printer.floats::<bf16>(data, f),
        DType::I64 => printer.integers::<i64>(data, f),
        DType::I32 => printer.integers::<i32>(data, f),
        DType::I16 => printer.integers::<i16>(data, f),
        DType::I8 => printer.integers::<i8>(data, f),
        DType::U64 => printer.integers::<u64>(data, f),
        DType::U32 => printer.integers::<u32>(data, f),
        DType::U16 => printer.integers::<u16>(data, f),
        DType::U8 => printer.integers::<u8>(data, f),
        DType::Bool(_) => printer.integers::<bool>(data, f),
        DType::QFloat(scheme) => write!(f, "{scheme:?}"),
    }
}

/// The number of values shown at each end of an axis, for a shape that is not shown whole.
fn summarised(shape: &[usize], options: &PrintOptions) -> Option<usize> {
    (shape.iter().product::<usize>() > options.threshold).then_some(options.edge_items)
}

/// What is shown of a tensor: of a large one the ends of its axes, cut out on its device, so that the rest is not read.
fn shown(raw: &RawTensor, options: &PrintOptions) -> RawTensor {
    let Some(edge) = summarised(raw.dims(), options) else {
        return raw.untracked();
    };
    (0..raw.rank()).fold(raw.untracked(), |part, axis| match part.dims()[axis] {
        size if size <= 2 * edge => part,
        _ if edge == 0 => part.narrow(axis, 0, 0),
        size => RawTensor::cat(&[part.narrow(axis, 0, edge), part.narrow(axis, size - edge, edge)], axis),
    })
}

/// Prints a tensor: its values, shape, device, kind and type.
///
/// ```text
/// Tensor {
///   data:
/// [[1.0, 2.0],
///  [3.0, 4.0]],
///   shape:  [2, 2],
///   device:  Cpu,
///   kind:  "Float",
///   dtype:  "f32",
/// }
/// ```
pub(crate) fn format_tensor(raw: &RawTensor, kind: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let options = OPTIONS.read().clone();
    if let crate::DType::QFloat(scheme) = raw.api_dtype() {
        writeln!(f, "Tensor {{\n  data:  <quantized, use .dequantize() to view values>,")?;
        writeln!(f, "  shape:  {},\n  device:  {:?},", crate::Shape::from(raw.dims()), raw.device())?;
        return write!(f, "  kind:  {kind:?},\n  dtype:  \"qfloat\",\n  scheme:  {scheme:?},\n}}");
    }
    let data = match shown(raw, &options).to_data() {
        Ok(data) => data,
        Err(error) => return write!(f, "Tensor {{ {error} }}"),
    };
    writeln!(f, "Tensor {{")?;
    writeln!(f, "  data:")?;
    format_part(&data, raw.dims(), &options, f)?;
    writeln!(f, ",")?;
    writeln!(f, "  shape:  {},", crate::Shape::from(raw.dims()))?;
    writeln!(f, "  device:  {:?},", raw.device())?;
    writeln!(f, "  kind:  {kind:?},")?;
    writeln!(f, "  dtype:  {:?},", data.dtype().name())?;
    write!(f, "}}")
}

fn float<F: fmt::Debug + fmt::Display>(f: &mut dyn Write, x: F, precision: Option<usize>) -> fmt::Result {
    match precision {
        Some(precision) => write!(f, "{x:.precision$}"),
        None => write!(f, "{x:?}"),
    }
}

/// What is the same for every value of a print.
struct Printer<'a> {
    shape: &'a [usize],
    /// The sizes of what is held: those of `shape`, or of the ends of its axes.
    held: &'a [usize],
    /// The number of values shown at each end of an axis; all of them without.
    edge_items: Option<usize>,
    precision: Option<usize>,
}

impl Printer<'_> {
    fn floats<E: Element>(&self, data: &TensorData, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values::<E>(data, f, float)
    }

    fn integers<E: Element>(&self, data: &TensorData, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.values::<E>(data, f, |f, x, _| write!(f, "{x}"))
    }

    fn values<E: Element>(
        &self,
        data: &TensorData,
        f: &mut fmt::Formatter<'_>,
        print: fn(&mut dyn Write, E, Option<usize>) -> fmt::Result,
    ) -> fmt::Result {
        let values = data.try_to_vec_as::<E>().map_err(|_| fmt::Error)?;
        self.axis(0, 0, f, &|position, f| print(f, values[position], self.precision))
    }

    /// Prints the part below `axis` that starts at position `start` of the values.
    fn axis(&self, axis: usize, start: usize, f: &mut dyn Write, print: &dyn Fn(usize, &mut dyn Write) -> fmt::Result) -> fmt::Result {
        let Some(&size) = self.shape.get(axis) else {
            return print(start, f);
        };
        let stride: usize = self.held[axis + 1..].iter().product();
        let left_out = size - self.held[axis];
        let innermost = axis + 1 == self.shape.len();
        let separate = |f: &mut dyn Write| {
            if innermost { f.write_str(", ") } else { write!(f, ",\n{:indent$}", "", indent = axis + 1) }
        };
        let hidden = match self.edge_items {
            Some(edge) if size > 2 * edge => edge..size - edge,
            _ => size..size,
        };
        f.write_char('[')?;
        let mut first = true;
        for index in (0..hidden.start).chain(hidden.end..size) {
            if !first {
                separate(f)?;
            }
            if index == hidden.end {
                f.write_str("...")?;
                separate(f)?;
            }
            first = false;
            let place = if index < hidden.start { index } else { index - left_out };
            self.axis(axis + 1, start + place * stride, f, print)?;
        }
        if hidden.end == size && !hidden.is_empty() {
            f.write_str("...")?;
        }
        f.write_char(']')
    }
}
