//! The structural ops: what a node of a graph can be, its attributes and its class.
#![deny(clippy::wildcard_enum_match_arm)]

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::{DType, Dims, Elementwise, NodeId};

/// Operands of a node. Inline up to 4.
pub type OpInputs = SmallVec<[NodeId; 4]>;

/// What a node computes. Operands are written `x`, `y` in their order.
///
/// Ops hold structure only. Numbers a user may vary from step to step (learning rate, seed, slice start) are [`Op::Arg`] operands, so
/// they never enter a program's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Leaf: a dense buffer given from outside, number `n` of the graph.
    Input(u32),
    /// Leaf of shape `[]`: run-time scalar number `n`: a word read as [`word_value`] says.
    Arg(u32),
    /// Leaf of shape `[]`: a structural constant: `f64` bits for float dtypes, an `i64` for others.
    Const(u64),
    /// Leaf: `0, 1, 2, ...` along `axis`, constant along the others. Number dtypes.
    Iota {
        /// Axis that counts.
        axis: usize,
    },
    /// Leaf-like: counter-based random numbers ([`crate::philox`]); operand: seed, an `Arg` of dtype `U64`. Equal seeds give equal numbers
    /// on every device.
    Random(RandomKind),
    /// One row of the elementwise table. Operands have equal shapes; an operand of shape `[]` is a broadcast scalar.
    Elementwise(Elementwise),
    /// Converts `x` to the node's dtype. Float to int truncates and saturates, NaN becomes 0; to bool is `x != 0`; to a narrower float rounds to even.
    Cast,
    /// View: the same elements in row-major order under the node's shape.
    Reshape,
    /// View: axis `i` of the result is axis `perm[i]` of `x`.
    Permute(SmallVec<[u8; 8]>),
    /// View: NumPy broadcast of `x` to the node's shape (aligned at the last axis).
    Expand,
    /// View: along each listed axis, elements `start, start + step, ...`; the node's shape says how many. Operands: `x`, then one start (an
    /// `Arg` or `Const`, dtype `I64`, already non-negative and in range) for each listed axis. A flip is a step of -1.
    Slice(SmallVec<[SliceAxis; 4]>),
    /// View: sliding windows along the listed axes. The axis becomes the number of windows; one axis of the window's size per listed axis is
    /// appended, in order.
    Window(SmallVec<[WindowAxis; 3]>),
    /// Puts `x` into a larger tensor filled with the scalar `y`; `(before, after)` counts per axis.
    Pad(SmallVec<[(usize, usize); 6]>),
    /// Joins the operands along `axis`.
    Concat {
        /// Axis of joining.
        axis: usize,
    },
    /// `x` with the region that [`Op::Slice`] of the same attributes would read replaced by `y`. Operands: `x`, `y`, starts.
    Update(SmallVec<[SliceAxis; 4]>),
    /// Reduces the axes of the bit mask `axes`, which stay as size 1.
    Reduce {
        /// The operation.
        op: ReduceOp,
        /// Bit `i` set: axis `i` is reduced.
        axes: u32,
    },
    /// Inclusive running reduction along `axis`.
    Scan {
        /// The operation.
        op: ScanOp,
        /// Axis of the scan.
        axis: usize,
    },
    /// Batched matrix product `[..., m, k] x [..., k, n] -> [..., m, n]`; batch axes are equal or 1. Accumulates half types in f32.
    Dot,
    /// Convolution: `x [n, c, spatial...]`, weight `y [o, c / groups, kernel...]` -> `[n, o, spatial...]`.
    Conv(ConvAttrs),
    /// Gradient of [`Op::Conv`] for its input, also the transposed convolution: `dy [n, o, spatial...]`, weight -> the node's shape. Only what a tap reaches is
    /// multiplied: there is no padding whose zeros meet an infinite weight.
    ConvInputGrad(ConvAttrs),
    /// Gradient of [`Op::Conv`] for its weight: `x`, `dy` -> the node's shape.
    ConvWeightGrad(ConvAttrs),
    /// Maximum over windows of the trailing axes of `x [n, c, spatial...]`. Results: values; flat index in the input plane (`I64`). Padding never wins.
    MaxPool(PoolAttrs),
    /// Mean over windows of the trailing axes.
    AvgPool(PoolAttrs),
    /// Gradient of [`Op::MaxPool`]: `dy`, indices -> the node's shape.
    MaxPoolGrad(PoolAttrs),
    /// Gradient of [`Op::AvgPool`]: `dy` -> the node's shape.
    AvgPoolGrad(PoolAttrs),
    /// Adjoint of [`Op::Window`]: adds every window element of `x` back to the place it came from. The node's shape is the unwindowed one.
    Fold(SmallVec<[WindowAxis; 3]>),
    /// `out[.., i, ..] = x[.., y[.., i, ..], ..]` along `axis`; the result has the index's shape; `x` agrees with it on the other axes. An index out
    /// of range is an error of the program's run.
    Gather {
        /// Indexed axis.
        axis: usize,
    },
    /// `x` with `x[.., i[..], ..] op= v` along `axis`. Operands: `x`, indices `i`, values `v` of the index's shape. Elements are applied in row-major order of `v`.
    Scatter {
        /// Indexed axis.
        axis: usize,
        /// How a value meets the old one.
        op: ScatterOp,
    },
    /// Stable sort along `axis`, NaN last (first when descending). Results: values; indices (`I64`).
    Sort {
        /// Sorted axis.
        axis: usize,
        /// Largest first.
        descending: bool,
    },
    /// Scaled-dot-product attention without materialised scores: `q [b, h, t, d]`, `k [b, g, s, d]`, `v [b, g, s, e]` (`g` divides `h`), then the bool mask (true:
    /// masked) and the additive bias if the attributes say so, each broadcastable to `[b, h, t, s]`. Results: output `[b, h, t, e]`; log of the
    /// row sums of exponentials `[b, h, t]` (F32, or F64 for F64). A fully masked row has weights of 0. A hidden score is minus infinity whatever q and k hold, but
    /// its weight of 0 is a factor of its value: an infinity or NaN in `v` gives NaN in every row, as in the product of the weights and `v`.
    Attention(AttentionAttrs),
    /// Gradients of [`Op::Attention`]. Operands: `q, k, v, out, lse, dout`, then mask and bias. Results: `dq`, `dk`, `dv`.
    AttentionGrad(AttentionAttrs),
    /// Computed by a function on the host (linear algebra, FFT, user code).
    Host(HostOp),
    /// Result `i` (from 1 on) of a node with several results.
    Get(u32),
}

/// Which random numbers [`Op::Random`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RandomKind {
    /// Uniform in `[0, 1)`; float dtypes.
    Uniform,
    /// Standard normal; float dtypes.
    Normal,
    /// 32 uniform bits as a non-negative number; `I64`, `U64` or `U32`.
    Bits,
}

/// Reductions. The dtype stays, except where noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Sum; 0 over nothing. Half floats accumulate in f32.
    Sum,
    /// Product; 1 over nothing.
    Prod,
    /// Maximum, NaN if any is NaN.
    Max,
    /// Minimum, NaN if any is NaN.
    Min,
    /// Index of the first NaN, else of the first maximum, in the row-major order of the reduced axes (`I64`).
    ArgMax,
    /// Index of the first NaN, else of the first minimum (`I64`).
    ArgMin,
    /// Whether any bool is true.
    Any,
    /// Whether all bools are true.
    All,
}

/// Running reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanOp {
    /// Running sum.
    Sum,
    /// Running product.
    Prod,
    /// Running maximum, NaN from the first NaN on.
    Max,
    /// Running minimum, NaN from the first NaN on.
    Min,
}

/// How [`Op::Scatter`] combines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScatterOp {
    /// The last value in row-major order wins.
    Assign,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Larger.
    Max,
    /// Smaller.
    Min,
}

/// One axis of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceAxis {
    /// The axis.
    pub axis: u8,
    /// Distance between elements, not zero; negative walks backwards.
    pub step: i32,
}

/// One axis of sliding windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowAxis {
    /// The axis.
    pub axis: u8,
    /// Elements in a window.
    pub size: usize,
    /// Distance between windows.
    pub stride: usize,
    /// Distance between the elements of a window.
    pub dilation: usize,
}

/// Attributes of a convolution, one entry per spatial axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvAttrs {
    /// Distance between outputs.
    pub stride: SmallVec<[usize; 3]>,
    /// Distance between kernel elements.
    pub dilation: SmallVec<[usize; 3]>,
    /// Zeros before and after.
    pub padding: SmallVec<[(usize, usize); 3]>,
    /// Number of independent channel groups.
    pub groups: usize,
    /// Whether every operand and result has its second axis last: `x [n, spatial..., c]`, weight `[o, kernel..., c / groups]`, `y [n, spatial..., o]`.
    pub channels_last: bool,
}

/// Attributes of a pool, one entry per spatial axis. The node's shape carries the output sizes (floor or ceil mode).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PoolAttrs {
    /// Window sizes.
    pub kernel: SmallVec<[usize; 3]>,
    /// Distance between windows.
    pub stride: SmallVec<[usize; 3]>,
    /// Distance between window elements.
    pub dilation: SmallVec<[usize; 3]>,
    /// Padding before and after.
    pub padding: SmallVec<[(usize, usize); 3]>,
    /// Whether padding counts in a mean's denominator (ceil-mode overhang beyond the padding never does).
    pub count_include_pad: bool,
    /// Whether the output size rounds up (a window that would start in the padding after is dropped).
    pub ceil_mode: bool,
    /// Whether every operand and result is `[n, spatial..., c]`. Indices still count the elements of a plane.
    pub channels_last: bool,
}

/// Attributes of attention. Floats are kept as bits so that programs compare exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttentionAttrs {
    /// `f64` bits of the factor on the scores.
    pub scale: u64,
    /// `f64` bits of the soft cap `c · tanh(score / c)`, 0.0 for none.
    pub softcap: u64,
    /// Query `i` sees keys `0 ..= i + (s - t)`.
    pub causal: bool,
    /// A bool mask operand is present.
    pub has_mask: bool,
    /// An additive bias operand is present.
    pub has_bias: bool,
}

/// Dense host data given to a [`HostOp`].
pub struct HostTensor<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: &'a [usize],
    /// Row-major elements, native endian.
    pub bytes: &'a [u8],
}

/// Results of a host op: shape and dtype of each.
pub type HostShapes = Vec<(Dims, DType)>;

/// Shapes and dtypes of a host op's results from its attributes and operand types, or what is wrong with them.
pub type HostInfer = fn(&[u64], &[(&[usize], DType)]) -> Result<HostShapes, alloc::string::String>;
/// Computes a host op's results into dense buffers of the inferred sizes.
pub type HostRun = fn(&[u64], &[HostTensor<'_>], &mut [&mut [u8]]) -> Result<(), alloc::string::String>;

/// An op computed by a function on the host. Identity is the name and the attributes.
#[derive(Clone)]
pub struct HostOp {
    /// Name, unique for the pair of functions.
    pub name: &'static str,
    /// Attribute words, given to both functions.
    pub attrs: SmallVec<[u64; 4]>,
    /// Shapes and dtypes of the results, or what is wrong with the operands.
    pub infer: HostInfer,
    /// Computes the results into buffers of the inferred sizes.
    pub run: HostRun,
}

impl core::fmt::Debug for HostOp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}{:?}", self.name, self.attrs)
    }
}

impl PartialEq for HostOp {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.attrs == other.attrs
    }
}

impl Eq for HostOp {}

impl Hash for HostOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.attrs.hash(state);
    }
}

/// The classes of ops, and so of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Input, scalar, constant, iota, random.
    Leaf,
    /// Elementwise table rows and casts.
    Elementwise,
    /// Moves no data: reshape, permute, expand, slice, window.
    View,
    /// Writes regions: pad, concat, update.
    Region,
    /// Reductions.
    Reduce,
    /// Running reductions.
    Scan,
    /// Dots and convolutions.
    Contract,
    /// Pools, their gradients and folds.
    Pool,
    /// Gather and scatter.
    Index,
    /// Sort.
    Sort,
    /// Attention and its gradient.
    Attention,
    /// Host functions.
    Host,
    /// Names another result of a node.
    Get,
}

impl Op {
    /// The class.
    pub fn class(&self) -> Class {
        match self {
            Op::Input(_) | Op::Arg(_) | Op::Const(_) | Op::Iota { .. } | Op::Random(_) => Class::Leaf,
            Op::Elementwise(_) | Op::Cast => Class::Elementwise,
            Op::Reshape | Op::Permute(_) | Op::Expand | Op::Slice(_) | Op::Window(_) => Class::View,
            Op::Pad(_) | Op::Concat { .. } | Op::Update(_) => Class::Region,
            Op::Reduce { .. } => Class::Reduce,
            Op::Scan { .. } => Class::Scan,
            Op::Dot | Op::Conv(_) | Op::ConvInputGrad(_) | Op::ConvWeightGrad(_) => Class::Contract,
            Op::MaxPool(_) | Op::AvgPool(_) | Op::MaxPoolGrad(_) | Op::AvgPoolGrad(_) | Op::Fold(_) => Class::Pool,
            Op::Gather { .. } | Op::Scatter { .. } => Class::Index,
            Op::Sort { .. } => Class::Sort,
            Op::Attention(_) | Op::AttentionGrad(_) => Class::Attention,
            Op::Host(_) => Class::Host,
            Op::Get(_) => Class::Get,
        }
    }

    /// This convolution or pool with its channels last, or with its channels second; `None` for other ops.
    pub fn with_channels_last(&self, last: bool) -> Option<Op> {
        let mut op = self.clone();
        if let Op::Conv(a) | Op::ConvInputGrad(a) | Op::ConvWeightGrad(a) = &mut op {
            a.channels_last = last;
            return Some(op);
        }
        if let Op::MaxPool(p) | Op::AvgPool(p) | Op::MaxPoolGrad(p) | Op::AvgPoolGrad(p) = &mut op {
            p.channels_last = last;
            return Some(op);
        }
        None
    }

    /// Whether this is a convolution or a pool with its channels last.
    pub fn is_channels_last(&self) -> bool {
        if let Op::Conv(a) | Op::ConvInputGrad(a) | Op::ConvWeightGrad(a) = self {
            return a.channels_last;
        }
        matches!(self, Op::MaxPool(p) | Op::AvgPool(p) | Op::MaxPoolGrad(p) | Op::AvgPoolGrad(p) if p.channels_last)
    }

    /// Lower-case name, as in messages and printed graphs.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Input(_) => "input",
            Op::Arg(_) => "arg",
            Op::Const(_) => "const",
            Op::Iota { .. } => "iota",
            Op::Random(_) => "random",
            Op::Elementwise(e) => e.name(),
            Op::Cast => "cast",
            Op::Reshape => "reshape",
            Op::Permute(_) => "permute",
            Op::Expand => "expand",
            Op::Slice(_) => "slice",
            Op::Window(_) => "window",
            Op::Pad(_) => "pad",
            Op::Concat { .. } => "concat",
            Op::Update(_) => "update",
            Op::Reduce { op, .. } => op.name(),
            Op::Scan { op, .. } => op.name(),
            Op::Dot => "dot",
            Op::Conv(_) => "conv",
            Op::ConvInputGrad(_) => "conv_input_grad",
            Op::ConvWeightGrad(_) => "conv_weight_grad",
            Op::MaxPool(_) => "max_pool",
            Op::AvgPool(_) => "avg_pool",
            Op::MaxPoolGrad(_) => "max_pool_grad",
            Op::AvgPoolGrad(_) => "avg_pool_grad",
            Op::Fold(_) => "fold",
            Op::Gather { .. } => "gather",
            Op::Scatter { .. } => "scatter",
            Op::Sort { .. } => "sort",
            Op::Attention(_) => "attention",
            Op::AttentionGrad(_) => "attention_grad",
            Op::Host(h) => h.name,
            Op::Get(_) => "get",
        }
    }

    /// Whether this is a row of the elementwise table or a cast.
    pub fn is_elementwise(&self) -> bool {
        self.class() == Class::Elementwise
    }

    /// Whether this op only renames elements.
    pub fn is_view(&self) -> bool {
        self.class() == Class::View
    }
}

impl ReduceOp {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::ArgMax => "argmax",
            ReduceOp::ArgMin => "argmin",
            ReduceOp::Any => "any",
            ReduceOp::All => "all",
        }
    }

    /// Whether the result is an index (`I64`).
    pub fn is_arg(self) -> bool {
        matches!(self, ReduceOp::ArgMax | ReduceOp::ArgMin)
    }

    /// Whether a reduction over nothing has a value.
    pub fn has_identity(self) -> bool {
        matches!(self, ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Any | ReduceOp::All)
    }
}

impl ScanOp {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            ScanOp::Sum => "cumsum",
            ScanOp::Prod => "cumprod",
            ScanOp::Max => "cummax",
            ScanOp::Min => "cummin",
        }
    }
}

/// A run-time scalar or constant word for a value of `dtype`: `f64` bits for floats, the integer as `i64` (`u64` for U64) otherwise.
pub fn word_from_f64(dtype: DType, v: f64) -> u64 {
    if dtype.is_float() {
        v.to_bits()
    } else if dtype == DType::Bool {
        (v != 0.0) as u64
    } else if dtype == DType::U64 {
        v as u64
    } else {
        v as i64 as u64
    }
}

/// A run-time scalar or constant word from an integer; wraps to the dtype's width.
pub fn word_from_int(dtype: DType, v: i128) -> u64 {
    if dtype.is_float() { (v as f64).to_bits() } else { dtype.wrap(v) as u64 }
}

/// The number a word means for `dtype`: floats in the first place, integers and bool in the second.
pub fn word_value(dtype: DType, word: u64) -> (f64, i128) {
    if dtype.is_float() {
        let v = f64::from_bits(word);
        (v, 0)
    } else {
        let v = if dtype == DType::U64 { word as i128 } else { word as i64 as i128 };
        (v as f64, dtype.wrap(v))
    }
}
