//! The interpreter: executes graphs and programs in plain scalar code. It is the oracle every runtime and every compiler pass is tested against.
//!
//! [`run`] executes a [`Graph`] node by node; [`run_program`] executes a compiled [`Program`](crate::Program) over real byte memory, so that a wrong kernel or a
//! wrong memory plan shows without any device. Floats are computed in `f64`, integers in `i128`.
#![deny(clippy::wildcard_enum_match_arm)]

mod attention;
mod contract;
pub mod elementwise;
mod expr;
mod kernels;
mod memory;
mod pool;
mod program;
mod structural;
pub mod value;

#[cfg(test)]
mod tests;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

pub use contract::for_each_product;
pub use expr::{Point, run_expr};
pub use kernels::run_kernel;
pub use memory::Elements;
pub use program::run_program;
pub use structural::order;
pub use value::{Data, Scalar, Tensor};

use crate::op::HostTensor;
use crate::{DType, Dims, Graph, Node, Op, RandomKind, philox};

/// How a graph is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether every node's floats are rounded to its dtype, as when each op is a kernel of its own. Otherwise they stay `f64` up to the outputs and
    /// explicit casts: the exact result.
    pub round_every_op: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { round_every_op: true }
    }
}

/// Executes a graph, rounding after every op. `inputs` are the dense input buffers, `args` the words of the run-time scalars.
///
/// # Errors
/// Wrong inputs, an index or slice out of range, a host function's error.
pub fn run(graph: &Graph, inputs: &[Tensor], args: &[u64]) -> Result<Vec<Tensor>, String> {
    run_with(graph, inputs, args, Options::default())
}

/// Executes a graph.
///
/// # Errors
/// As for [`run`].
pub fn run_with(graph: &Graph, inputs: &[Tensor], args: &[u64], options: Options) -> Result<Vec<Tensor>, String> {
    if inputs.len() != graph.inputs || args.len() != graph.args {
        return Err(format!("the graph takes {} inputs and {} scalars, not {} and {}", graph.inputs, graph.args, inputs.len(), args.len()));
    }
    let mut results: Vec<Vec<Tensor>> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let value = {
            let x: Vec<&Tensor> = node.inputs.iter().map(|i| &results[i.index()][0]).collect();
            if let Op::Get(i) = node.op {
                let of = node.inputs[0].index();
                vec![results[of].get(i as usize).cloned().ok_or_else(|| format!("get: node {of} has no result {i}"))?]
            } else {
                evaluate(node, &x, inputs, args)?
            }
        };
        let value = if options.round_every_op { value.into_iter().map(Tensor::rounded).collect() } else { value };
        debug_assert!(value[0].dims == node.dims && value[0].dtype == node.dtype, "{} gives {:?}", node.op.name(), value[0].dims);
        results.push(value);
    }
    Ok(graph.outputs.iter().map(|o| results[o.index()][0].clone().rounded()).collect())
}

/// The results of one node from its operands.
fn evaluate(node: &Node, x: &[&Tensor], inputs: &[Tensor], args: &[u64]) -> Result<Vec<Tensor>, String> {
    let (dims, dtype) = (&node.dims[..], node.dtype);
    let starts = |from: usize| -> Vec<i64> { x[from..].iter().map(|s| s.get(0).int() as i64).collect() };
    let pair = |(a, b): (Tensor, Tensor)| vec![a, b];
    if node.op.is_channels_last()
        && let Some(op) = node.op.with_channels_last(false)
    {
        let operands: Vec<Tensor> = x.iter().map(|t| structural::channels_first(t)).collect();
        let node = Node { op, dims: crate::dims::channels_first(dims), ..node.clone() };
        let results = evaluate(&node, &operands.iter().collect::<Vec<_>>(), inputs, args)?;
        return Ok(results.iter().map(structural::channels_last).collect());
    }
    let one = match &node.op {
        Op::Input(n) => {
            let t = &inputs[*n as usize];
            if t.dims != node.dims || t.dtype != dtype {
                return Err(format!("input {n} is {}{:?}, not {dtype}{dims:?}", t.dtype, &t.dims[..]));
            }
            t.clone()
        }
        Op::Arg(n) => Tensor::filled(dtype, dims, Scalar::from_word(dtype, args[*n as usize])),
        Op::Const(word) => Tensor::filled(dtype, dims, Scalar::from_word(dtype, *word)),
        Op::Iota { axis } => structural::iota(dtype, dims, *axis),
        Op::Random(kind) => {
            let mut out = Tensor::zeros(dtype, dims);
            let seed = x[0].get(0).int() as u64;
            (0..out.len()).for_each(|i| out.set(i, random(*kind, dtype, seed, i as u64)));
            out
        }
        Op::Elementwise(e) => elementwise::elementwise(*e, x, dims, dtype),
        Op::Cast => {
            let mut out = Tensor::zeros(dtype, dims);
            (0..out.len()).for_each(|i| out.set(i, value::cast(x[0].get(i), dtype)));
            out
        }
        Op::Reshape => Tensor { dims: node.dims.clone(), ..x[0].clone() },
        Op::Permute(perm) => structural::permute(x[0], perm, dims),
        Op::Expand => structural::expand(x[0], dims),
        Op::Slice(axes) => structural::slice(x[0], axes, &starts(1), dims)?,
        Op::Window(axes) => structural::window(x[0], axes, dims),
        Op::Pad(pads) => structural::pad(x[0], x[1].get(0), pads, dims),
        Op::Concat { axis } => structural::concat(x, *axis, dims, dtype),
        Op::Update(axes) => structural::update(x[0], x[1], axes, &starts(2))?,
        Op::Reduce { op, axes } => structural::reduce(x[0], *op, *axes, dims, dtype)?,
        Op::Scan { op, axis } => structural::scan(x[0], *op, structural::around(dims, *axis)),
        Op::Dot => contract::dot(x[0], x[1], dims, dtype),
        Op::Conv(attrs) => contract::conv(x[0], x[1], attrs, dims),
        Op::ConvInputGrad(attrs) => contract::conv_input_grad(x[0], x[1], attrs, dims),
        Op::ConvWeightGrad(attrs) => contract::conv_weight_grad(x[0], x[1], attrs, dims),
        Op::MaxPool(attrs) => return Ok(pair(pool::max_pool(x[0], attrs, dims))),
        Op::AvgPool(attrs) => pool::avg_pool(x[0], attrs, dims),
        Op::MaxPoolGrad(_) => pool::max_pool_grad(x[0], x[1], dims)?,
        Op::AvgPoolGrad(attrs) => pool::avg_pool_grad(x[0], attrs, dims),
        Op::Fold(axes) => structural::fold(x[0], axes, dims),
        Op::Gather { axis } => structural::gather(x[0], x[1], *axis)?,
        Op::Scatter { axis, op } => structural::scatter(x[0], x[1], x[2], *axis, *op)?,
        Op::Sort { axis, descending } => return Ok(pair(structural::sort(x[0], structural::around(dims, *axis), *descending))),
        Op::Attention(attrs) => return Ok(pair(attention::attention(attrs, x))),
        Op::AttentionGrad(attrs) => {
            let (dq, dk, dv) = attention::attention_grad(attrs, x);
            return Ok(vec![dq, dk, dv]);
        }
        Op::Host(host) => {
            let types: Vec<(&[usize], DType)> = x.iter().map(|t| (&t.dims[..], t.dtype)).collect();
            let shapes = (host.infer)(&host.attrs, &types)?;
            let bytes: Vec<Vec<u8>> = x.iter().map(|t| t.to_bytes()).collect();
            return host_call(host, &types, &bytes.iter().map(|b| &b[..]).collect::<Vec<_>>(), &shapes);
        }
        Op::Get(i) => return Err(format!("get: result {i} has no node")),
    };
    Ok(vec![one])
}

/// Calls a host function on dense buffers.
fn host_call(host: &crate::op::HostOp, types: &[(&[usize], DType)], bytes: &[&[u8]], shapes: &[(Dims, DType)]) -> Result<Vec<Tensor>, String> {
    let inputs: Vec<HostTensor<'_>> = types.iter().zip(bytes).map(|((dims, dtype), bytes)| HostTensor { dtype: *dtype, dims, bytes }).collect();
    let mut outputs: Vec<Vec<u8>> = shapes.iter().map(|(dims, dtype)| vec![0; crate::dims::numel(dims) * dtype.size()]).collect();
    let mut parts: Vec<&mut [u8]> = outputs.iter_mut().map(|o| &mut o[..]).collect();
    (host.run)(&host.attrs, &inputs, &mut parts).map_err(|e| format!("{}: {e}", host.name))?;
    Ok(shapes.iter().zip(&outputs).map(|((dims, dtype), bytes)| Tensor::from_bytes(*dtype, dims, bytes)).collect())
}

/// Element `i` of a random tensor.
fn random(kind: RandomKind, dtype: DType, seed: u64, i: u64) -> Scalar {
    match (kind, dtype) {
        (RandomKind::Uniform, DType::F64) => Scalar::Float(philox::uniform_f64(seed, i)),
        (RandomKind::Uniform, _) => Scalar::Float(philox::uniform_f32(seed, i) as f64),
        (RandomKind::Normal, DType::F64) => Scalar::Float(philox::normal_f64(seed, i)),
        (RandomKind::Normal, _) => Scalar::Float(philox::normal_f32(seed, i) as f64),
        (RandomKind::Bits, _) => Scalar::Int(philox::word(seed, i, 0) as i128),
    }
}
