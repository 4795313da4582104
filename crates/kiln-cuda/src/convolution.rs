//! Convolutions of cuDNN: which kernels it takes, and what runs around it. Without it, channels-last convolutions run on the kernels for the other order.
use kiln_ir::dims::{channels_last, numel, row_major};
use kiln_ir::expr::Level;
use kiln_ir::kernel::{ConvKernel, ConvMode, Fused};
use kiln_ir::op::ConvAttrs;
use kiln_ir::{Affine, BufId, DType, Dims, Expr, Inst, Load, MatmulPrecision, RuntimeError, Store, ValueId};

use crate::lowered::{Scratch, Work};
use crate::render;
use crate::steps::Chip;

/// What the library must know to choose an engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Which product.
    pub mode: ConvMode,
    /// Attributes.
    pub attrs: ConvAttrs,
    /// Sizes of x.
    pub x: Dims,
    /// Sizes of the weight.
    pub w: Dims,
    /// Sizes of y.
    pub y: Dims,
    /// Dtype of operands and result.
    pub dtype: DType,
    /// How 32-bit floats are multiplied.
    pub precision: MatmulPrecision,
}

/// A convolution of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// The shape.
    pub shape: Shape,
    /// First operand of the kernel.
    pub a: BufId,
    /// Second operand of the kernel.
    pub b: BufId,
    /// Result.
    pub out: BufId,
    /// Workspace, if it needs one.
    pub workspace: Option<BufId>,
}

/// Says how many bytes of workspace a shape takes, or that the library cannot do it.
pub type Probe<'a> = dyn FnMut(&Shape) -> Option<usize> + 'a;

/// The sizes of a kernel's result as it lies in memory.
fn result(k: &ConvKernel) -> Dims {
    in_memory(
        match k.mode {
            ConvMode::Forward => &k.y,
            ConvMode::InputGrad => &k.x,
            ConvMode::WeightGrad => &k.w,
        },
        k.attrs.channels_last,
    )
}

fn in_memory(dims: &[usize], last: bool) -> Dims {
    if last { channels_last(dims) } else { dims.into() }
}

/// The buffer that takes the result as it is, if that is all the epilogue does.
fn direct(k: &ConvKernel, dims: &[usize], dtype_of: impl Fn(BufId) -> DType) -> Option<BufId> {
    let [store] = &k.epilogue.stores[..] else { return None };
    let acc = k.epilogue.value(store.value);
    let strides = row_major(dims);
    let dense = store.index.base == 0
        && store.index.dynamic.is_empty()
        && dims.iter().zip(&store.index.coeffs).zip(&strides).all(|((d, c), s)| *d == 1 || c == s);
    (acc.inst == Inst::Acc && acc.dtype == k.dtype && dtype_of(store.buf) == k.dtype && dense).then_some(store.buf)
}

/// The works of a convolution. `probe`: the library, where there is one.
///
/// # Errors
/// As [`render::conv::render`].
pub fn lower(k: &ConvKernel, scratch: &mut Scratch<'_>, chip: &Chip, probe: Option<&mut Probe<'_>>) -> Result<Vec<Work>, RuntimeError> {
    // The library's engines take ten times as long as the memory where a place meets few elements; its depthwise ones are left to it.
    if render::few::suits(k) && (probe.is_none() || k.w[0] / k.attrs.groups.max(1) >= 8) {
        return Ok(scratch.works(&render::conv::render(k, scratch.program(), chip)?));
    }
    // In full precision the library multiplies outside of the tensor cores.
    let cores = chip.precision_of(k.dtype) == MatmulPrecision::Highest && render::conv::on_cores(k, chip).is_some();
    let full = [&k.x, &k.w, &k.y].iter().all(|d| (1..1 << 31).contains(&numel(d))) && (3..=5).contains(&k.x.len());
    // Its gradients of weights are wrong for many shapes whose axes are padded differently at their ends (seen with cuDNN 9.19); no other product of such shapes is trusted to it either.
    let even = k.attrs.padding.iter().all(|(lo, hi)| lo == hi);
    if full
        && even
        && !cores
        && k.dtype.is_float()
        && let Some(probe) = probe
    {
        let (x, w, y) = (k.x.clone(), k.w.clone(), k.y.clone());
        let shape = Shape { mode: k.mode, attrs: k.attrs.clone(), x, w, y, dtype: k.dtype, precision: chip.precision_of(k.dtype) };
        if let Some(bytes) = probe(&shape) {
            return with_library(k, shape, bytes, scratch, chip);
        }
    }
    if k.attrs.channels_last {
        return turned(k, scratch, chip);
    }
    Ok(scratch.works(&render::conv::render(k, scratch.program(), chip)?))
}

fn with_library(k: &ConvKernel, shape: Shape, bytes: usize, scratch: &mut Scratch<'_>, chip: &Chip) -> Result<Vec<Work>, RuntimeError> {
    let dims = result(k);
    let direct = direct(k, &dims, |b| scratch.program().buf(b).dtype);
    let out = direct.unwrap_or_else(|| scratch.buffer(k.dtype, numel(&dims)));
    let workspace = (bytes > 0).then(|| scratch.buffer(DType::U8, bytes));
    let padding = render::padding::render(&shape, k.b, out, chip);
    let mut works = vec![Work::Convolution(Box::new(Convolution { shape, a: k.a, b: k.b, out, workspace }))];
    works.extend(scratch.works(&padding));
    if direct.is_none() {
        works.extend(epilogue(k, &dims, out, row_major(&dims).into_iter().collect(), scratch, chip));
    }
    Ok(works)
}

/// The epilogue as a kernel of its own, over a result with these strides.
fn epilogue(k: &ConvKernel, dims: &[usize], from: BufId, strides: Vec<isize>, scratch: &mut Scratch<'_>, chip: &Chip) -> Vec<Work> {
    let mut expr = k.epilogue.clone();
    let index = Affine { base: 0, coeffs: strides.into_iter().collect(), dynamic: Default::default() };
    expr.loads.push(Load { buf: from, index, bounds: Vec::new() });
    let load = Inst::Load(expr.loads.len() as u32 - 1);
    expr.values.iter_mut().filter(|v| v.inst == Inst::Acc).for_each(|v| v.inst = load.clone());
    pointwise(dims, expr, scratch, chip)
}

fn pointwise(dims: &[usize], expr: Expr, scratch: &mut Scratch<'_>, chip: &Chip) -> Vec<Work> {
    let nest = render::nest::Nest::new(&Fused { dims: dims.into(), kept: dims.len(), expr }).merged();
    let steps = render::fused::render_nest(nest, scratch.program(), chip);
    scratch.works(&steps)
}

/// Strides over `[n, spatial..., c]` of a dense `[n, c, spatial...]`.
fn first_strides(dims: &[usize]) -> Vec<isize> {
    let mut strides = row_major(dims);
    strides[1..].rotate_left(1);
    strides.into_iter().collect()
}

/// A channels-last convolution on the kernels for channels in the second place: operands and result are turned.
fn turned(k: &ConvKernel, scratch: &mut Scratch<'_>, chip: &Chip) -> Result<Vec<Work>, RuntimeError> {
    let (a_dims, b_dims, out_dims) = match k.mode {
        ConvMode::Forward => (&k.x, &k.w, &k.y),
        ConvMode::InputGrad => (&k.y, &k.w, &k.x),
        ConvMode::WeightGrad => (&k.x, &k.y, &k.w),
    };
    let mut works = Vec::new();
    let mut operand = |buf: BufId, dims: &[usize], scratch: &mut Scratch<'_>| {
        let to = scratch.buffer(k.dtype, numel(dims));
        let memory = channels_last(dims);
        let index = |coeffs: Vec<isize>| Affine { base: 0, coeffs: coeffs.into_iter().collect(), dynamic: Default::default() };
        let mut expr = Expr::default();
        expr.loads.push(Load { buf, index: index(row_major(&memory).into_iter().collect()), bounds: Vec::new() });
        let value = expr.push(Inst::Load(0), k.dtype, Level::Kept);
        expr.stores.push(Store { buf: to, index: index(first_strides(dims)), value });
        works.extend(pointwise(&memory, expr, scratch, chip));
        to
    };
    let (a, b) = (operand(k.a, a_dims, scratch), operand(k.b, b_dims, scratch));
    let out = scratch.buffer(k.dtype, numel(out_dims));
    let mut plain = ConvKernel { attrs: ConvAttrs { channels_last: false, ..k.attrs.clone() }, a, b, epilogue: Expr::default(), ..k.clone() };
    let acc = plain.epilogue.push(Inst::Acc, k.dtype, Level::Kept);
    debug_assert_eq!(acc, ValueId(0), "the first value of an expression");
    let dense = Affine { base: 0, coeffs: row_major(out_dims), dynamic: Default::default() };
    plain.epilogue.stores.push(Store { buf: out, index: dense, value: acc });
    let steps = render::conv::render(&plain, scratch.program(), chip)?;
    works.extend(scratch.works(&steps));
    works.extend(epilogue(k, &channels_last(out_dims), out, first_strides(out_dims), scratch, chip));
    Ok(works)
}
