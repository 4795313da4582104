//! What a library's convolution leaves out: zeros of the padding times factors that aren't finite are NaN.
use kiln_ir::BufId;
use kiln_ir::dims::numel;
use kiln_ir::kernel::ConvMode;

use super::template::{Text, blocks, element, is_wide, step};
use crate::convolution::Shape;
use crate::steps::{Chip, Param, Steps};

/// The step behind a convolution whose result is in `out` and whose second factor (the weight, or y's gradient) is in `factor`; nothing where no product meets the padding.
pub fn render(s: &Shape, factor: BufId, out: BufId, chip: &Chip) -> Steps {
    // A gradient of x has no products with the padding.
    if s.mode == ConvMode::InputGrad || s.attrs.padding.iter().all(|p| *p == (0, 0)) {
        return Steps::default();
    }
    let n = s.attrs.stride.len();
    let axis = |a: usize| {
        if a + n < 3 {
            return "{1, 1, 1, 1, 1, 0}".to_string();
        }
        let a = a + n - 3;
        format!("{{{}, {}, {}, {}, {}, {}}}", s.x[a + 2], s.y[a + 2], s.w[a + 2], s.attrs.stride[a], s.attrs.dilation[a], s.attrs.padding[a].0)
    };
    let text = Text::new(is_wide(&[numel(&s.x), numel(&s.w), numel(&s.y)]))
        .kind("T", element(s.dtype))
        .number("IMAGES", s.y[0] as i128)
        .number("OUTPUTS", s.w[0] as i128)
        .number("INPUTS", s.w[1] as i128)
        .number("TAPS", numel(&s.w[2..]) as i128)
        .number("PLANE", numel(&s.y[2..]) as i128)
        .flag("LAST", s.attrs.channels_last)
        .define("AXIS_D", &axis(0))
        .define("AXIS_H", &axis(1))
        .define("AXIS_W", &axis(2))
        .body(include_str!("cuda/padding.cu"));
    let (name, total) = match s.mode {
        ConvMode::Forward => ("padding_of_result", numel(&s.w)),
        _ => ("padding_of_weight", numel(&s.y) / s.y[n + 1].max(1)),
    };
    Steps::one(step(text.entry(name), blocks(total, 256, chip), 256, 0, vec![Param::Buf(factor), Param::Buf(out)]))
}
