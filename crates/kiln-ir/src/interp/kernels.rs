//! The kernel families of the program interpreter other than fused ones: each is the graph interpreter's op on tensors read from memory.
use alloc::string::String;
use alloc::vec::Vec;

use super::elementwise::scatter_step;
use super::memory::{Elements, dtype, put, strided, tensor};
use super::structural::{checked_index, flat};
use super::value::Tensor;
use super::{attention, contract, expr, pool, structural};
use crate::dims::{channels_last, for_each_index, numel};
use crate::kernel::{
    AttentionKernel, AttentionOperand, ConvKernel, ConvMode, DotKernel, DotOperand, GatherKernel, HostKernel, PoolKernel, PoolKind, ScatterKernel,
    SortKernel,
};
use crate::op::WindowAxis;
use crate::{Affine, BufId, DType, Dims, Kernel};

/// Runs one kernel over the buffers of a program.
///
/// # Errors
/// A kernel that breaks the contract, an index out of range, a host function's error.
pub fn run_kernel(kernel: &Kernel, memory: &mut dyn Elements, args: &[u64]) -> Result<(), String> {
    match kernel {
        Kernel::Fused(k) => expr::fused(k, memory, args),
        Kernel::Dot(k) => dot(k, memory, args),
        Kernel::Conv(k) => conv(k, memory, args),
        Kernel::Attention(k) => attention(k, memory, args, false),
        Kernel::AttentionGrad(k) => attention(k, memory, args, true),
        Kernel::Pool(k) => pool_kernel(k, memory),
        Kernel::Gather(k) => gather(k, memory, args),
        Kernel::Scatter(k) => scatter(k, memory, args),
        Kernel::Scan(k) => {
            let x = tensor(memory, k.x, &k.dims)?;
            put(memory, k.out, &structural::scan(&x, k.op, k.dims))
        }
        Kernel::Sort(k) => sort(k, memory),
        Kernel::Host(k) => host(k, memory),
        Kernel::Copy { from, to } => {
            let x = tensor(memory, *from, &[memory.program().buf(*to).len])?;
            put(memory, *to, &x)
        }
    }
}

/// A tensor read through an affine index over its own dims.
fn affine(memory: &dyn Elements, buf: crate::BufId, index: &Affine, dims: &[usize], args: &[u64]) -> Result<Tensor, String> {
    let mut places = Vec::with_capacity(numel(dims));
    for_each_index(dims, |i| places.push(index.at(i, args)));
    strided(memory, buf, dims, |n| places[n])
}

fn operand(o: &DotOperand, dims: &[usize], dtype: DType, memory: &dyn Elements, args: &[u64]) -> Result<Tensor, String> {
    let Some(prologue) = &o.prologue else {
        return affine(memory, o.buf, &o.index, dims, args);
    };
    let mut t = Tensor::zeros(dtype, dims);
    let mut error = Ok(());
    let mut n = 0;
    for_each_index(dims, |i| {
        if error.is_ok() {
            match expr::prologue(prologue, i, memory, args, dtype) {
                Ok(v) => t.set(n, v),
                Err(e) => error = Err(e),
            }
        }
        n += 1;
    });
    error.map(|()| t)
}

fn dot(k: &DotKernel, memory: &mut dyn Elements, args: &[u64]) -> Result<(), String> {
    let space = |a: usize, b: usize| -> Dims { k.batch.iter().copied().chain([a, b]).collect() };
    let x = operand(&k.lhs, &space(k.m, k.k), k.dtype, memory, args)?;
    let y = operand(&k.rhs, &space(k.k, k.n), k.dtype, memory, args)?;
    let dims = space(k.m, k.n);
    let acc = contract::dot(&x, &y, &dims, k.dtype);
    expr::epilogue(&k.epilogue, &dims, &mut |i| acc.get(i), memory, args)
}

/// A dense tensor `[n, c, spatial...]` of a buffer that may hold its channels last.
fn plane(memory: &dyn Elements, buf: BufId, dims: &[usize], last: bool) -> Result<Tensor, String> {
    if last { Ok(structural::channels_first(&tensor(memory, buf, &channels_last(dims))?)) } else { tensor(memory, buf, dims) }
}

fn conv(k: &ConvKernel, memory: &mut dyn Elements, args: &[u64]) -> Result<(), String> {
    let last = k.attrs.channels_last;
    let (acc, dims) = match k.mode {
        ConvMode::Forward => (contract::conv(&plane(memory, k.a, &k.x, last)?, &plane(memory, k.b, &k.w, last)?, &k.attrs, &k.y), &k.y),
        ConvMode::InputGrad => (contract::conv_input_grad(&plane(memory, k.a, &k.y, last)?, &plane(memory, k.b, &k.w, last)?, &k.attrs, &k.x), &k.x),
        ConvMode::WeightGrad => {
            (contract::conv_weight_grad(&plane(memory, k.a, &k.x, last)?, &plane(memory, k.b, &k.y, last)?, &k.attrs, &k.w), &k.w)
        }
    };
    if last {
        let acc = structural::channels_last(&acc);
        return expr::epilogue(&k.epilogue, &acc.dims, &mut |i| acc.get(i), memory, args);
    }
    expr::epilogue(&k.epilogue, dims, &mut |i| acc.get(i), memory, args)
}

fn attention(k: &AttentionKernel, memory: &mut dyn Elements, args: &[u64], grad: bool) -> Result<(), String> {
    let [batch, heads, groups] = k.heads;
    let ([queries, keys], [width, value_width]) = (k.length, k.width);
    let q = [batch, heads, queries, width];
    let key = [batch, groups, keys, width];
    let value = [batch, groups, keys, value_width];
    let out = [batch, heads, queries, value_width];
    let lse = [batch, heads, queries];
    let scores = [batch, heads, queries, keys];
    let shapes: [&[usize]; 6] = [&q, &key, &value, &out, &lse, &out];
    let mut tensors = Vec::new();
    for (o, dims) in k.operands.iter().zip(shapes) {
        tensors.push(affine(memory, o.buf, &o.index, dims, args)?);
    }
    for o in k.mask.iter().chain(&k.bias) {
        tensors.push(affine(memory, o.buf, &o.index, &scores, args)?);
    }
    let x: Vec<&Tensor> = tensors.iter().collect();
    let results = if grad {
        let (dq, dk, dv) = attention::attention_grad(&k.attrs, &x);
        alloc::vec![dq, dk, dv]
    } else {
        let (out, lse) = attention::attention(&k.attrs, &x);
        alloc::vec![out, lse]
    };
    for (to, t) in k.results.iter().zip(&results) {
        if let Some(AttentionOperand { buf, index }) = to {
            let mut error = Ok(());
            let mut n = 0;
            for_each_index(&t.dims, |i| {
                if error.is_ok() {
                    error = memory.store(*buf, index.at(i, args), t.get(n));
                }
                n += 1;
            });
            error?;
        }
    }
    Ok(())
}

fn pool_kernel(k: &PoolKernel, memory: &mut dyn Elements) -> Result<(), String> {
    let last = k.attrs.channels_last;
    let tensor = |memory: &dyn Elements, buf, dims: &[usize]| plane(memory, buf, dims, last);
    let put = |memory: &mut dyn Elements, buf, t: &Tensor| if last { put(memory, buf, &structural::channels_last(t)) } else { put(memory, buf, t) };
    match k.kind {
        PoolKind::Max => {
            let (values, indices) = pool::max_pool(&tensor(memory, k.input, &k.x)?, &k.attrs, &k.y);
            if let Some(buf) = k.indices {
                put(memory, buf, &indices)?;
            }
            put(memory, k.output, &values)
        }
        PoolKind::Avg => {
            let y = pool::avg_pool(&tensor(memory, k.input, &k.x)?, &k.attrs, &k.y);
            put(memory, k.output, &y)
        }
        PoolKind::MaxGrad => {
            let indices = k.indices.ok_or("the gradient of a maximum pool has no indices")?;
            let dx = pool::max_pool_grad(&tensor(memory, k.input, &k.y)?, &tensor(memory, indices, &k.y)?, &k.x)?;
            put(memory, k.output, &dx)
        }
        PoolKind::AvgGrad => {
            let dx = pool::avg_pool_grad(&tensor(memory, k.input, &k.y)?, &k.attrs, &k.x);
            put(memory, k.output, &dx)
        }
        PoolKind::Fold => {
            let axes: Vec<WindowAxis> = (k.axes.iter().enumerate())
                .map(|(s, &axis)| WindowAxis { axis, size: k.attrs.kernel[s], stride: k.attrs.stride[s], dilation: k.attrs.dilation[s] })
                .collect();
            let x = structural::fold(&tensor(memory, k.input, &k.y)?, &axes, &k.x);
            put(memory, k.output, &x)
        }
    }
}

fn gather(k: &GatherKernel, memory: &mut dyn Elements, args: &[u64]) -> Result<(), String> {
    let mut error = Ok(());
    let mut out = Tensor::zeros(dtype(memory, k.out), &k.dims);
    let mut n = 0;
    for_each_index(&k.dims, |i| {
        if error.is_ok() {
            let found = memory.load(k.index, k.index_index.at(i, args)).and_then(|index| {
                let index = checked_index("gather", index.int(), k.axis, k.extent)?;
                memory.load(k.x, k.x_index.at(i, args) + k.x_step * index as isize)
            });
            match found {
                Ok(v) => out.set(n, v),
                Err(e) => error = Err(e),
            }
        }
        n += 1;
    });
    error?;
    put(memory, k.out, &out)
}

fn scatter(k: &ScatterKernel, memory: &mut dyn Elements, args: &[u64]) -> Result<(), String> {
    let mut out = match k.base {
        Some(base) => tensor(memory, base, &k.out_dims)?,
        None => Tensor::zeros(k.dtype, &k.out_dims),
    };
    let mut error = Ok(());
    let mut coords = Dims::from_elem(0, k.dims.len());
    for_each_index(&k.dims, |i| {
        if error.is_ok() {
            coords.copy_from_slice(i);
            error = memory.load(k.index, k.index_index.at(i, args)).and_then(|index| {
                coords[k.axis] = checked_index("scatter", index.int(), k.axis, k.out_dims[k.axis])?;
                let at = flat(&k.out_dims, &coords);
                let v = memory.load(k.values, k.values_index.at(i, args))?;
                out.set(at, scatter_step(k.op, k.dtype, out.get(at), v));
                Ok(())
            });
        }
    });
    error?;
    put(memory, k.out, &out)
}

fn sort(k: &SortKernel, memory: &mut dyn Elements) -> Result<(), String> {
    let (values, indices) = structural::sort(&tensor(memory, k.x, &k.dims)?, k.dims, k.descending);
    if let Some(buf) = k.values {
        put(memory, buf, &values)?;
    }
    k.indices.map_or(Ok(()), |buf| put(memory, buf, &indices))
}

fn host(k: &HostKernel, memory: &mut dyn Elements) -> Result<(), String> {
    let mut tensors = Vec::new();
    for (buf, dims) in &k.inputs {
        tensors.push(tensor(memory, *buf, dims)?);
    }
    let types: Vec<(&[usize], DType)> = tensors.iter().map(|t| (&t.dims[..], t.dtype)).collect();
    let shapes = (k.op.infer)(&k.op.attrs, &types)?;
    let bytes: Vec<Vec<u8>> = tensors.iter().map(Tensor::to_bytes).collect();
    let results = super::host_call(&k.op, &types, &bytes.iter().map(|b| &b[..]).collect::<Vec<_>>(), &shapes)?;
    for (buf, t) in k.outputs.iter().zip(&results) {
        put(memory, *buf, t)?;
    }
    Ok(())
}
