//! Reads by index.
use kiln_ir::dims::numel;
use kiln_ir::kernel::GatherKernel;
use kiln_ir::{DType, Program, RuntimeError};

use super::template::{Text, blocks, element, is_wide, origin, step};
use super::walk::Walk;
use crate::steps::{Chip, Param, Steps};

/// Type that moves this many bytes at once.
fn vector(bytes: usize) -> &'static str {
    match bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "uint4",
    }
}

/// The steps of a kernel: points are those where the index changes; at each a run of adjacent elements is copied in accesses of up to 16 bytes.
///
/// # Errors
/// None: every gather has a rendering.
pub fn render(k: &GatherKernel, program: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let len = numel(&k.dims);
    if len == 0 {
        return Ok(Steps::default());
    }
    let size = program.buf(k.x).dtype.size();
    // Trailing dimensions over which the index is constant and x is dense are copied as one run.
    let (mut rank, mut run) = (k.dims.len(), 1usize);
    while rank > 0 {
        let d = rank - 1;
        if k.dims[d] != 1 && (k.index_index.coeffs[d] != 0 || k.x_index.coeffs[d] != run as isize) {
            break;
        }
        run *= k.dims[d];
        rank = d;
    }
    // The widest access that divides everything.
    let mut bytes = 16;
    let divides = |bytes: usize| {
        let steps = k.x_index.coeffs[..rank].iter().zip(&k.dims).filter(|(_, n)| **n != 1).map(|(c, _)| *c);
        let all = steps.chain([run as isize, k.x_step, k.x_index.base]).chain(k.x_index.dynamic.iter().map(|d| d.1));
        all.into_iter().all(|n| (n * size as isize) % bytes as isize == 0)
    };
    while bytes > size && !divides(bytes) {
        bytes /= 2;
    }
    let by = (bytes / size) as isize;
    let shrink = |c: &[isize]| -> Vec<isize> { c.iter().map(|c| c / by).collect() };
    let walk = Walk::new(&k.dims[..rank], [&shrink(&k.x_index.coeffs[..rank]), &k.index_index.coeffs[..rank]]);
    let mut x_index = k.x_index.clone();
    x_index.dynamic.iter_mut().for_each(|d| d.1 /= by);
    let chunks = run / by as usize;
    let index = program.buf(k.index).dtype;
    let wide = is_wide(&[len, program.buf(k.x).len, program.buf(k.index).len]);
    let source = Text::new(wide)
        .kind("V", vector(bytes))
        .kind("I", if index == DType::Bool { "u8" } else { element(index) })
        .number("POINTS", walk.len() as i128)
        .number("CHUNKS", chunks as i128)
        .number("EXTENT", k.extent as i128)
        .number("AXIS", k.axis as i128)
        .number("X_STEP", (k.x_step / by) as i128)
        .define("X_ORIGIN", &origin(&x_index, by))
        .define("INDEX_ORIGIN", &origin(&k.index_index, 1))
        .define("WALK", &walk.print(["from", "which"]))
        .body(include_str!("cuda/gather.cu"))
        .entry("gather");
    let params = vec![Param::Buf(k.x), Param::Buf(k.index), Param::Buf(k.out), Param::Args, Param::Fault];
    Ok(Steps::one(step(source, blocks(walk.len() * chunks, 256, chip), 256, 0, params)))
}
