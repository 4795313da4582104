//! The language of Kiln: dtypes, shapes, the op table, graphs, kernels and programs.
//!
//! This crate is the contract between the parts of Kiln. It contains no device code, no thread and no `unsafe`:
//!
//! * [`Graph`] is what a trace records: nodes of [`Op`]s with inferred shapes and dtypes ([`infer`]).
//! * [`table`] is the only list of elementwise ops; everything about an op (its meaning, domain, spelling) is one row there.
//! * [`interp`] executes graphs and programs in plain scalar code: the oracle every backend and every fusion is tested against.
//! * [`Program`] is what the compiler makes of a graph: [`Kernel`]s over buffers with a memory plan.
//! * [`Runtime`] is what a device implements to execute programs.
//!
//! Start reading at [`op`].
#![cfg_attr(not(feature = "std"), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod dims;
pub mod dtype;
pub mod expr;
pub mod graph;
pub mod infer;
pub mod interp;
pub mod kernel;
pub mod op;
pub mod philox;
pub mod program;
pub mod runtime;
pub mod table;

pub use dims::{Dims, IDims};
pub use dtype::{DType, Lane};
pub use expr::{Affine, Bound, Expr, Inst, Load, Store, Value, ValueId};
pub use graph::{Graph, Node, NodeId};
pub use kernel::Kernel;
pub use op::{Class, Op, OpInputs, RandomKind, ReduceOp, ScanOp, ScatterOp};
pub use program::{BufId, BufSpec, Launch, OutputSpec, Place, Program};
pub use runtime::{Buffer, DeviceInfo, Executable, HostMemory, Limits, MatmulPrecision, MemoryUse, Runtime, RuntimeError};
pub use table::Elementwise;
