//! Pools, their gradients and folds: one thread a result, which asks the windows that it is in.
use std::fmt::Write;

use kiln_ir::dims::{numel, row_major};
use kiln_ir::kernel::{PoolKernel, PoolKind};
use kiln_ir::{Program, RuntimeError};

use super::template::{Text, blocks, element, is_wide, step};
use crate::steps::{Chip, Param, Steps};

/// The steps of a kernel.
///
/// # Errors
/// [`RuntimeError::Unsupported`] for planes of 2^31 elements or more.
pub fn render(k: &PoolKernel, _: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let (x_len, y_len) = (numel(&k.x), numel(&k.y));
    let forward = matches!(k.kind, PoolKind::Max | PoolKind::Avg);
    if (forward && y_len == 0) || (!forward && x_len == 0) {
        return Ok(Steps::default());
    }
    let text = Text::new(is_wide(&[x_len, y_len])).kind("T", element(k.dtype));
    if k.kind == PoolKind::Fold {
        let text = text.number("X_LEN", x_len as i128).define("WALK", &fold_walk(k)).body(include_str!("cuda/fold.cu"));
        let params = vec![Param::Buf(k.input), Param::Buf(k.output)];
        return Ok(Steps::one(step(text.entry("fold"), blocks(x_len, 256, chip), 256, 0, params)));
    }
    let (x_plane, y_plane) = (numel(&k.x[2..]), numel(&k.y[2..]));
    if is_wide(&[x_plane, y_plane]) {
        return Err(RuntimeError::Unsupported("pools over planes of 2^31 elements".into()));
    }
    let n = k.attrs.kernel.len();
    // Neighbouring channels share the arithmetic of places.
    let most = (16 / k.dtype.size()).min(8);
    let vector = if k.attrs.channels_last && k.x[1].is_multiple_of(most) { most } else { 1 };
    let axis = |s: usize| {
        // Missing leading axes are single.
        if s + n < 3 {
            return "{1, 1, 1, 1, 1, 0, 0}".to_string();
        }
        let s = s + n - 3;
        let (lo, hi) = k.attrs.padding[s];
        format!("{{{}, {}, {}, {}, {}, {lo}, {hi}}}", k.x[s + 2], k.y[s + 2], k.attrs.kernel[s], k.attrs.stride[s], k.attrs.dilation[s])
    };
    let text = text
        .number("PLANES", (k.x[0] * k.x[1]) as i128)
        .number("CHANNELS", k.x[1] as i128)
        .flag("LAST", k.attrs.channels_last)
        .number("V", vector as i128)
        .number("X_PLANE", x_plane as i128)
        .number("Y_PLANE", y_plane as i128)
        .flag("APART", (0..n).all(|a| k.attrs.dilation[a] == 1 && k.attrs.stride[a] >= k.attrs.kernel[a]))
        .flag("COUNT_PADDING", k.attrs.count_include_pad)
        .flag("HAS_INDICES", k.indices.is_some())
        .define("AXIS_D", &axis(0))
        .define("AXIS_H", &axis(1))
        .define("AXIS_W", &axis(2))
        .body(include_str!("cuda/pool.cu"));
    let (input, output) = (Param::Buf(k.input), Param::Buf(k.output));
    let indices = Param::Buf(k.indices.unwrap_or(k.output));
    let (name, len, params) = match k.kind {
        PoolKind::Max => ("max_pool", y_len, vec![input, output, indices]),
        PoolKind::Avg => ("avg_pool", y_len, vec![input, output]),
        PoolKind::MaxGrad => ("max_pool_grad", x_len, vec![input, indices, output, Param::Fault]),
        PoolKind::AvgGrad => ("avg_pool_grad", x_len, vec![input, output]),
        PoolKind::Fold => unreachable!("folds were rendered above"),
    };
    Ok(Steps::one(step(text.entry(name), blocks(len / vector, 256, chip), 256, 0, params)))
}

/// Statements that take a place of the result apart and add the window elements that came from it to `sum`.
fn fold_walk(k: &PoolKernel) -> String {
    let (rank, y_strides) = (k.x.len(), row_major(&k.y));
    let mut s = String::new();
    let mut loops = 0;
    for d in (0..rank).rev() {
        let _ = write!(s, "const ix i{d} = (ix)(rest % {}u); rest /= {}u; ", k.x[d], k.x[d]);
        match k.axes.iter().position(|a| *a as usize == d) {
            None => {
                let _ = write!(s, "from += i{d} * (ix){}; ", y_strides[d]);
            }
            Some(_) => loops += 1,
        }
    }
    for (n, axis) in k.axes.iter().enumerate() {
        let d = *axis as usize;
        let (size, stride, dilation) = (k.attrs.kernel[n], k.attrs.stride[n], k.attrs.dilation[n]);
        let inner = if n == 0 { "from".to_string() } else { format!("f{}", n - 1) };
        let _ = write!(
            s,
            "for (ix k{n} = {size} - 1; k{n} >= 0; k{n}--) {{ const ix p{n} = i{d} - k{n} * {dilation}, w{n} = p{n} / {stride}; \
             if (p{n} < 0 || w{n} * {stride} != p{n} || w{n} >= {}) continue; const ix f{n} = {inner} + w{n} * (ix){} + k{n} * (ix){}; ",
            k.y[d],
            y_strides[d],
            y_strides[rank + n],
        );
    }
    let last = if loops == 0 { "from".to_string() } else { format!("f{}", loops - 1) };
    let _ = write!(s, "sum = Number<W>::add(sum, widen<T>(y[{last}])); ");
    s.push_str(&"} ".repeat(loops));
    s
}
