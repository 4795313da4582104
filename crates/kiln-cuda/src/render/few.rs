//! Convolutions of few channels, such as the first one of a network: what a place meets stays in registers for all outputs, so that memory is read and written once.
use std::fmt::Write;

use kiln_ir::dims::numel;
use kiln_ir::kernel::{ConvKernel, ConvMode};
use kiln_ir::{DType, Program, RuntimeError};

use super::conv::{Product, accumulator_size, definitions, finish, part, result, sum, with_store};
use super::signature::Signature;
use super::template::step;
use super::text::is_wide;
use crate::steps::{Chip, Steps};

/// Most elements that a place may meet: a group's channels times the kernel's elements.
pub const MOST_TAPS: usize = 32;

/// Whether a convolution is one of these. Half floats of eight channels, or of single elements, are for the tensor cores.
pub fn suits(k: &ConvKernel) -> bool {
    let some = ![&k.x, &k.w, &k.y].iter().any(|d| d.contains(&0));
    let cores = matches!(k.dtype, DType::F16 | DType::BF16) && (k.w[1] >= 8 || numel(&k.w[2..]) == 1);
    k.dtype.is_float() && k.mode != ConvMode::InputGrad && some && !cores && numel(&k.w[1..]) <= MOST_TAPS
}

/// The steps of such a convolution, in either order of channels.
///
/// # Errors
/// [`RuntimeError::Unsupported`] for launches of 2^31 blocks.
pub fn render(k: &ConvKernel, program: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let p = Product::new(k);
    let taps = numel(&k.w[1..]);
    let mut sig = Signature::new(program);
    let points = numel(if k.mode == ConvMode::Forward { &k.y } else { &k.w });
    sig.wide = [k.a, k.b].iter().any(|b| program.buf(*b).len >= 1 << 30) || is_wide(program, &k.epilogue, points);
    let (x, left) = (sig.read(k.a), sig.read(k.b));
    let mut head = definitions(k, &p, &sig);
    let _ = writeln!(head, "#define LEFT {left}\n#define RIGHT {x}\n#define TAPS {taps}\n#define LAST {}", k.attrs.channels_last as u8);
    let plain = "const ix column = n;\n";
    let machine = 2 * chip.multiprocessors as usize;
    let size = accumulator_size(k.dtype);
    if k.mode == ConvMode::Forward {
        // Neighbouring threads write neighbouring elements: outputs where channels are last, places else.
        let shares = if k.attrs.channels_last { p.rows.div_ceil(4).next_power_of_two().min(8) } else { 1 };
        let tiles = p.columns.div_ceil(256 / shares) * p.groups;
        let mut per = p.rows.div_ceil(shares).next_multiple_of(4).min(if shares == 1 { 32 } else { 16 });
        while shares == 1 && per > 8 && tiles * p.rows.div_ceil(per) < machine {
            per = (per / 2).next_multiple_of(4);
        }
        let chunks = p.rows.div_ceil(shares * per);
        let _ = writeln!(head, "#define SHARES {shares}\n#define PER {per}\n#define CHUNKS {chunks}");
        let store = plain.to_string() + &result(&mut sig, k);
        let body = with_store(include_str!("cuda/conv_few_forward.cu"), &store);
        let (source, params) = finish(sig, "conv_few_forward", 256, &head, &[include_str!("cuda/conv_few.cu")], &body);
        return Ok(Steps::one(step(source, grid(tiles * chunks)?, 256, taps * shares * per * size, params)));
    }
    let most = if k.dtype == DType::F64 { 48 } else { 96 };
    let outputs = (most / taps).clamp(1, 8).min(p.rows);
    let chunks = p.rows.div_ceil(outputs);
    // Every thread visits a few places, so that what a block adds up at its end is paid for.
    let wanted = (2 * machine / (chunks * p.groups)).clamp(1, p.depth.div_ceil(1024));
    let split = p.depth.div_ceil(wanted).next_multiple_of(256);
    let splits = p.depth.div_ceil(split);
    let _ = writeln!(head, "#define OUTPUTS {outputs}\n#define CHUNKS {chunks}\n#define SPLIT {split}");
    let store = if splits > 1 { part(&mut sig, k, &p, 0) } else { result(&mut sig, k) };
    let body = with_store(include_str!("cuda/conv_few_grad.cu"), &(plain.to_string() + &store));
    let (source, params) = finish(sig, "conv_few_grad", 256, &head, &[include_str!("cuda/conv_few.cu")], &body);
    let shared = 8 * (outputs * taps).next_multiple_of(32) * size;
    let mut steps = vec![step(source, grid(chunks * p.groups * splits)?, 256, shared, params)];
    let scratch = if splits > 1 { splits * points * size } else { 0 };
    if splits > 1 {
        steps.push(sum(k, program, chip, &p, splits, 0));
    }
    Ok(Steps { steps, scratch })
}

fn grid(blocks: usize) -> Result<u32, RuntimeError> {
    let grid = u32::try_from(blocks).ok().filter(|n| *n < 1 << 31);
    grid.ok_or_else(|| RuntimeError::Unsupported("a convolution of too many blocks".into()))
}
