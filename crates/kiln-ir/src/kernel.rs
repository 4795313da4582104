//! Kernels as data: one enum by family, the same for every backend.
use alloc::boxed::Box;

use smallvec::SmallVec;

use crate::op::{AttentionAttrs, ConvAttrs, HostOp, PoolAttrs};
use crate::{Affine, BufId, Dims, Expr, ScanOp, ScatterOp};

/// One kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Loops over an expression with reductions.
    Fused(Fused),
    /// Matrix products.
    Dot(Box<DotKernel>),
    /// Convolutions and their gradients.
    Conv(Box<ConvKernel>),
    /// Scaled-dot-product attention.
    Attention(Box<AttentionKernel>),
    /// Its gradient.
    AttentionGrad(Box<AttentionKernel>),
    /// Pools.
    Pool(PoolKernel),
    /// Reads by index.
    Gather(GatherKernel),
    /// Writes by index.
    Scatter(ScatterKernel),
    /// Running reductions.
    Scan(ScanKernel),
    /// Sorts.
    Sort(SortKernel),
    /// Host functions.
    Host(HostKernel),
    /// Copies a dense buffer to another of the same dtype and length.
    Copy {
        /// Source.
        from: BufId,
        /// Destination.
        to: BufId,
    },
}

/// Loops over `dims`, of which the first `kept` are kept and the others reduced. A `Reduce` value reduces over all reduced dimensions. Without
/// reduced dimensions this is a plain elementwise kernel. Dimensions of size 1 are left out, neighbouring dimensions that every access walks
/// as one are merged; an empty list is a single point.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fused {
    /// Sizes, outermost first.
    pub dims: Dims,
    /// Number of kept dimensions.
    pub kept: usize,
    /// What is computed.
    pub expr: Expr,
}

/// An operand of a dot: an affine read of a buffer over `[batch..., rows, columns]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DotOperand {
    /// The buffer, when the operand is a plain view; ignored if there is a prologue.
    pub buf: BufId,
    /// Element index over `[batch..., m, k]` for the left operand, `[batch..., k, n]` for the right one.
    pub index: Affine,
    /// Expression over the same space that computes the operand; its last value is the result.
    pub prologue: Option<Expr>,
}

/// `acc[b, m, n] = sum_k lhs[b, m, k] * rhs[b, k, n]`, then the epilogue at each point of `[batch..., m, n]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DotKernel {
    /// Batch sizes.
    pub batch: Dims,
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Summed size.
    pub k: usize,
    /// Left operand.
    pub lhs: DotOperand,
    /// Right operand.
    pub rhs: DotOperand,
    /// The operands' dtype (of the values, when there are prologues).
    pub dtype: crate::DType,
    /// Stores the result: an expression over `[batch..., m, n]` with [`crate::Inst::Acc`] values and no reductions.
    pub epilogue: Expr,
}

/// Which of a convolution's three products a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvMode {
    /// `a` = x, `b` = weight, result y.
    Forward,
    /// `a` = dy, `b` = weight, result dx.
    InputGrad,
    /// `a` = x, `b` = dy, result dw.
    WeightGrad,
}

/// A convolution over dense buffers `x [n, c, spatial...]`, `w [o, c/g, kernel...]`, `y [n, o, spatial...]`. With channels last the sizes are in this order
/// all the same; the buffers and the epilogue's coordinates are `[n, spatial..., c]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvKernel {
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
    /// First operand.
    pub a: BufId,
    /// Second operand.
    pub b: BufId,
    /// The operands' dtype.
    pub dtype: crate::DType,
    /// Stores the result: an expression over the result's dims with [`crate::Inst::Acc`] values and no reductions.
    pub epilogue: Expr,
}

/// A strided read of a 4-axis operand of attention.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttentionOperand {
    /// The buffer.
    pub buf: BufId,
    /// Element index over the operand's own axes (`[b, h, t, d]` and so on; broadcast axes have coefficient 0).
    pub index: Affine,
}

/// Attention ([`crate::Op::Attention`]) or its gradient. Results are dense except where an index is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttentionKernel {
    /// Attributes.
    pub attrs: AttentionAttrs,
    /// Batch, query heads, key heads.
    pub heads: [usize; 3],
    /// Queries, keys.
    pub length: [usize; 2],
    /// Sizes of a query/key vector and of a value vector.
    pub width: [usize; 2],
    /// Dtype of all floats.
    pub dtype: crate::DType,
    /// q, k, v; for the gradient also out, lse, dout.
    pub operands: SmallVec<[AttentionOperand; 6]>,
    /// The bool mask over `[b, h, t, s]`.
    pub mask: Option<AttentionOperand>,
    /// The additive bias over `[b, h, t, s]`.
    pub bias: Option<AttentionOperand>,
    /// Results: out and lse (`lse` may be absent when nobody needs it); dq, dk, dv for the gradient.
    pub results: SmallVec<[Option<AttentionOperand>; 3]>,
}

/// Which pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// Values (and indices).
    Max,
    /// Values.
    Avg,
    /// Input gradient from indices.
    MaxGrad,
    /// Input gradient.
    AvgGrad,
    /// Adjoint of windows.
    Fold,
}

/// A pool over dense buffers. Sizes are `[n, c, spatial...]`; with channels last the buffers are `[n, spatial..., c]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolKernel {
    /// Which.
    pub kind: PoolKind,
    /// Attributes. For `Fold`, entry `i` describes window axis `axes[i]`.
    pub attrs: PoolAttrs,
    /// For `Fold`: the axes of the windows in the unwindowed shape.
    pub axes: SmallVec<[u8; 3]>,
    /// Sizes of the unpooled side.
    pub x: Dims,
    /// Sizes of the pooled side.
    pub y: Dims,
    /// Dtype of the values.
    pub dtype: crate::DType,
    /// Operand: x, or dy for gradients.
    pub input: BufId,
    /// Indices: read by `MaxGrad`, written by `Max` when wanted.
    pub indices: Option<BufId>,
    /// Result.
    pub output: BufId,
}

/// `out[.., i, ..] = x[.., index[.., i, ..], ..]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatherKernel {
    /// Sizes of the result.
    pub dims: Dims,
    /// Indexed axis.
    pub axis: usize,
    /// Elements on that axis of x.
    pub extent: usize,
    /// Source.
    pub x: BufId,
    /// Element index of x over `dims` with coordinate 0 on the indexed axis.
    pub x_index: Affine,
    /// Step in x of one index.
    pub x_step: isize,
    /// Indices.
    pub index: BufId,
    /// Element index of the index buffer over `dims` (coefficient 0 where the index is broadcast).
    pub index_index: Affine,
    /// Dense result.
    pub out: BufId,
}

/// `out = x`, then `out[.., index[.., i, ..], ..] op= values[.., i, ..]` in row-major order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScatterKernel {
    /// Sizes of the indices and values.
    pub dims: Dims,
    /// Sizes of the result.
    pub out_dims: Dims,
    /// Indexed axis.
    pub axis: usize,
    /// How values combine.
    pub op: ScatterOp,
    /// Dtype of the values.
    pub dtype: crate::DType,
    /// The starting tensor: dense, or `None` for zeros. May share the result's place.
    pub base: Option<BufId>,
    /// Indices.
    pub index: BufId,
    /// Element index of the index buffer over `dims`.
    pub index_index: Affine,
    /// Values.
    pub values: BufId,
    /// Element index of the values over `dims`.
    pub values_index: Affine,
    /// Dense result.
    pub out: BufId,
}

/// Running reduction over the middle of `[outer, n, inner]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScanKernel {
    /// The operation.
    pub op: ScanOp,
    /// Dtype.
    pub dtype: crate::DType,
    /// Sizes before, along and after the axis.
    pub dims: [usize; 3],
    /// Dense operand.
    pub x: BufId,
    /// Dense result.
    pub out: BufId,
}

/// Stable sort over the middle of `[outer, n, inner]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortKernel {
    /// Largest first.
    pub descending: bool,
    /// Dtype.
    pub dtype: crate::DType,
    /// Sizes before, along and after the axis.
    pub dims: [usize; 3],
    /// Dense operand.
    pub x: BufId,
    /// Sorted values, if wanted.
    pub values: Option<BufId>,
    /// Indices (`I64`), if wanted.
    pub indices: Option<BufId>,
}

/// A host function over dense buffers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostKernel {
    /// The op.
    pub op: HostOp,
    /// Operands with their sizes.
    pub inputs: SmallVec<[(BufId, Dims); 3]>,
    /// Results.
    pub outputs: SmallVec<[BufId; 3]>,
}

impl Kernel {
    /// Lower-case family name.
    pub fn family(&self) -> &'static str {
        match self {
            Kernel::Fused(_) => "fused",
            Kernel::Dot(_) => "dot",
            Kernel::Conv(_) => "conv",
            Kernel::Attention(_) => "attention",
            Kernel::AttentionGrad(_) => "attention_grad",
            Kernel::Pool(_) => "pool",
            Kernel::Gather(_) => "gather",
            Kernel::Scatter(_) => "scatter",
            Kernel::Scan(_) => "scan",
            Kernel::Sort(_) => "sort",
            Kernel::Host(_) => "host",
            Kernel::Copy { .. } => "copy",
        }
    }

    /// Calls `read` for each buffer the kernel reads and `write` for each it writes.
    pub fn accesses(&self, mut read: impl FnMut(BufId), mut write: impl FnMut(BufId)) {
        self.each_access(&mut read, &mut write);
    }

    /// [`Kernel::accesses`], compiled once.
    fn each_access(&self, read: &mut dyn FnMut(BufId), write: &mut dyn FnMut(BufId)) {
        let mut expr = |e: &Expr, read: &mut dyn FnMut(BufId)| {
            e.loads.iter().for_each(|l| read(l.buf));
            e.stores.iter().for_each(|s| write(s.buf));
        };
        match self {
            Kernel::Fused(f) => expr(&f.expr, read),
            Kernel::Dot(d) => {
                for side in [&d.lhs, &d.rhs] {
                    match &side.prologue {
                        Some(p) => p.loads.iter().for_each(|l| read(l.buf)),
                        None => read(side.buf),
                    }
                }
                expr(&d.epilogue, read);
            }
            Kernel::Conv(c) => {
                read(c.a);
                read(c.b);
                expr(&c.epilogue, read);
            }
            Kernel::Attention(a) | Kernel::AttentionGrad(a) => {
                a.operands.iter().chain(&a.mask).chain(&a.bias).for_each(|o| read(o.buf));
                a.results.iter().flatten().for_each(|o| write(o.buf));
            }
            Kernel::Pool(p) => {
                read(p.input);
                if let Some(i) = p.indices {
                    if p.kind == PoolKind::Max { write(i) } else { read(i) }
                }
                write(p.output);
            }
            Kernel::Gather(g) => {
                read(g.x);
                read(g.index);
                write(g.out);
            }
            Kernel::Scatter(s) => {
                if let Some(b) = s.base {
                    read(b);
                }
                read(s.index);
                read(s.values);
                write(s.out);
            }
            Kernel::Scan(s) => {
                read(s.x);
                write(s.out);
            }
            Kernel::Sort(s) => {
                read(s.x);
                s.values.into_iter().chain(s.indices).for_each(&mut *write);
            }
            Kernel::Host(h) => {
                h.inputs.iter().for_each(|i| read(i.0));
                h.outputs.iter().for_each(|o| write(*o));
            }
            Kernel::Copy { from, to } => {
                read(*from);
                write(*to);
            }
        }
    }
}
