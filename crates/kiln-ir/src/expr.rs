//! Expressions: what a fused kernel, a prologue or an epilogue computes at each point of its iteration space.
//!
//! An expression is a list of values in single assignment form over an iteration space `dims` whose coordinates are `i[0], i[1], ...`. The same form serves every
//! backend: the CPU runs each value as a vector loop over a tile, a GPU prints it as source text.
use alloc::vec::Vec;

use smallvec::SmallVec;

use crate::{BufId, DType, Elementwise, IDims, RandomKind, ReduceOp};

/// An affine function of the coordinates: `base + sum coeffs[d] * i[d] + sum multiplier * arg`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Affine {
    /// Constant part.
    pub base: isize,
    /// One coefficient per iteration dimension.
    pub coeffs: IDims,
    /// Run-time parts: `(number of the run-time scalar, multiplier)`; the scalar's word is an `i64`.
    pub dynamic: SmallVec<[(u32, isize); 1]>,
}

impl Affine {
    /// The constant 0 over `rank` dimensions.
    pub fn zero(rank: usize) -> Self {
        Affine { base: 0, coeffs: IDims::from_elem(0, rank), dynamic: SmallVec::new() }
    }

    /// The value at coordinates `i`, with run-time scalars `args`.
    pub fn at(&self, i: &[usize], args: &[u64]) -> isize {
        let mut v = self.origin(args);
        for (c, i) in self.coeffs.iter().zip(i) {
            v += c * *i as isize;
        }
        v
    }

    /// The value at coordinates 0.
    pub fn origin(&self, args: &[u64]) -> isize {
        self.base + self.dynamic.iter().map(|&(a, m)| args[a as usize] as i64 as isize * m).sum::<isize>()
    }
}

/// A point is inside if `0 <= index < extent`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The coordinate that must be in range.
    pub index: Affine,
    /// Its range.
    pub extent: usize,
}

/// A read of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Load {
    /// The buffer.
    pub buf: BufId,
    /// Element index in the buffer. In range wherever all bounds hold.
    pub index: Affine,
    /// Where a bound fails, nothing is read and the value is 0.
    pub bounds: Vec<Bound>,
}

/// A write of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    /// The buffer; its dtype is the value's.
    pub buf: BufId,
    /// Element index in the buffer; distinct points write distinct elements. For a value that does not vary over the reduced dimensions
    /// their coefficients are 0 and it is written once.
    pub index: Affine,
    /// What is written.
    pub value: ValueId,
}

/// Number of a value in its expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a value is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Inst {
    /// Element read by load number `n`.
    Load(u32),
    /// Run-time scalar number `n`.
    Arg(u32),
    /// A constant word (see [`crate::op::word_value`]).
    Const(u64),
    /// The integer value of an affine function of the coordinates, converted to the dtype.
    Index(Affine),
    /// Random number of the element whose flat index is the affine function; the operand is the seed (a uniform `U64` value).
    Random(RandomKind, Affine, ValueId),
    /// Whether all bounds hold (`Bool`).
    Inside(Vec<Bound>),
    /// A row of the elementwise table.
    Op(Elementwise, SmallVec<[ValueId; 3]>),
    /// Conversion to the value's dtype (rounds to it: explicit casts are visible).
    Cast(ValueId),
    /// Reduction of a value over all reduced dimensions of the kernel.
    Reduce(ReduceOp, ValueId),
    /// In an epilogue: the contraction's accumulated result at the point.
    Acc,
}

/// Over which coordinates a value varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Over none: the same everywhere.
    Uniform,
    /// Over kept dimensions only.
    Kept,
    /// Over reduced dimensions too.
    Full,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// How it is computed.
    pub inst: Inst,
    /// Its dtype. Arithmetic runs in `dtype.lane()`; half types are rounded at stores and casts only.
    pub dtype: DType,
    /// Over which coordinates it varies.
    pub level: Level,
}

/// Values in single assignment form: operands come before their users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Expr {
    /// Reads.
    pub loads: Vec<Load>,
    /// Values; `ValueId(n)` is `values[n]`.
    pub values: Vec<Value>,
    /// Writes.
    pub stores: Vec<Store>,
}

impl Inst {
    /// Calls `f` for each operand.
    pub fn operands(&self, mut f: impl FnMut(ValueId)) {
        match self {
            Inst::Op(_, xs) => xs.iter().for_each(|x| f(*x)),
            Inst::Random(_, _, x) | Inst::Cast(x) | Inst::Reduce(_, x) => f(*x),
            Inst::Load(_) | Inst::Arg(_) | Inst::Const(_) | Inst::Index(_) | Inst::Inside(_) | Inst::Acc => {}
        }
    }

    /// Replaces each operand.
    pub fn map_operands(&mut self, mut f: impl FnMut(ValueId) -> ValueId) {
        match self {
            Inst::Op(_, xs) => xs.iter_mut().for_each(|x| *x = f(*x)),
            Inst::Random(_, _, x) | Inst::Cast(x) | Inst::Reduce(_, x) => *x = f(*x),
            Inst::Load(_) | Inst::Arg(_) | Inst::Const(_) | Inst::Index(_) | Inst::Inside(_) | Inst::Acc => {}
        }
    }
}

impl Expr {
    /// The value `id`.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// Appends a value.
    pub fn push(&mut self, inst: Inst, dtype: DType, level: Level) -> ValueId {
        self.values.push(Value { inst, dtype, level });
        ValueId(self.values.len() as u32 - 1)
    }

    /// For each value the number of reductions that must finish before it: loads are 0, a reduction's result is one more than its operand.
    pub fn phases(&self) -> Vec<u32> {
        let mut phase = alloc::vec![0u32; self.values.len()];
        for (k, v) in self.values.iter().enumerate() {
            let mut p = 0;
            v.inst.operands(|x| p = p.max(phase[x.index()]));
            phase[k] = p + matches!(v.inst, Inst::Reduce(..)) as u32;
        }
        phase
    }
}
