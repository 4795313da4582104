//! Shape and dtype rules: what each op accepts and what it gives, with messages for people.
#![deny(clippy::wildcard_enum_match_arm)]

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::dims::{broadcast, channels_first, channels_last, numel};
use crate::op::{ConvAttrs, PoolAttrs, SliceAxis, WindowAxis};
use crate::table::Gives;
use crate::{DType, Dims, Op, RandomKind, ReduceOp};

/// What is wrong with an op's operands: names the op, the rule and all operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferError(pub String);

impl core::fmt::Display for InferError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for InferError {}

/// A shape and dtype of an operand.
pub type Type<'a> = (&'a [usize], DType);

fn fail<T>(op: &Op, rule: impl core::fmt::Display, inputs: &[Type<'_>]) -> Result<T, InferError> {
    let mut s = format!("{}: {rule}:", op.name());
    for (k, (dims, dtype)) in inputs.iter().enumerate() {
        s += &format!("{} {dtype}{dims:?}", if k == 0 { "" } else { "," });
    }
    Err(InferError(s))
}

fn expect_operands(op: &Op, inputs: &[Type<'_>], n: usize) -> Result<(), InferError> {
    if inputs.len() != n { fail(op, format_args!("needs {n} operands, has {}", inputs.len()), inputs) } else { Ok(()) }
}

/// Shape and dtype of the first result, for ops that the operands determine.
pub fn infer(op: &Op, inputs: &[Type<'_>]) -> Result<(Dims, DType), InferError> {
    if op.is_channels_last() {
        let (op, dims) = second(op, inputs);
        let (d, dtype) = infer(&op, &types(dims.iter().zip(inputs).map(|(d, t)| (&d[..], t.1))))?;
        return Ok((channels_last(&d), dtype));
    }
    match op {
        Op::Elementwise(e) => {
            let row = e.row();
            expect_operands(op, inputs, row.arity)?;
            let selects = row.arity == 3;
            let rest = if selects { &inputs[1..] } else { inputs };
            if selects && inputs[0].1 != DType::Bool {
                return fail(op, "the condition must be bool", inputs);
            }
            let dtype = rest[0].1;
            if rest.iter().any(|t| t.1 != dtype) {
                return fail(op, "dtypes differ", inputs);
            }
            if !row.accepts.contains(dtype) {
                return fail(op, format_args!("does not take {dtype}"), inputs);
            }
            let dims = inputs.iter().map(|t| t.0).max_by_key(|d| d.len()).unwrap_or(&[]);
            if inputs.iter().any(|t| !t.0.is_empty() && t.0 != dims) {
                return fail(op, "shapes differ", inputs);
            }
            Ok((dims.into(), if row.gives == Gives::Bool { DType::Bool } else { dtype }))
        }
        Op::Permute(perm) => {
            expect_operands(op, inputs, 1)?;
            let dims = inputs[0].0;
            let mut seen = 0u64;
            for &p in perm {
                seen |= 1 << p;
            }
            if perm.len() != dims.len() || seen != (1u64 << dims.len()) - 1 {
                return fail(op, format_args!("{:?} is not a permutation of the axes", &perm[..]), inputs);
            }
            Ok((perm.iter().map(|&p| dims[p as usize]).collect(), inputs[0].1))
        }
        Op::Window(axes) => {
            expect_operands(op, inputs, 1)?;
            let mut dims = Dims::from_slice(inputs[0].0);
            for w in axes {
                let a = w.axis as usize;
                if a >= inputs[0].0.len() || w.size == 0 || w.stride == 0 || w.dilation == 0 {
                    return fail(op, format_args!("bad window {w:?}"), inputs);
                }
                dims[a] = window_count(dims[a], w);
                dims.push(w.size);
            }
            Ok((dims, inputs[0].1))
        }
        Op::Pad(pads) => {
            expect_operands(op, inputs, 2)?;
            if pads.len() != inputs[0].0.len() || !inputs[1].0.is_empty() || inputs[1].1 != inputs[0].1 {
                return fail(op, "needs one (before, after) pair an axis and a fill scalar of the same dtype", inputs);
            }
            Ok((inputs[0].0.iter().zip(pads).map(|(d, (lo, hi))| d.saturating_add(*lo).saturating_add(*hi)).collect(), inputs[0].1))
        }
        Op::Concat { axis } => {
            let Some(first) = inputs.first() else {
                return fail(op, "needs at least one operand", inputs);
            };
            if *axis >= first.0.len() {
                return fail(op, format_args!("axis {axis} is out of range"), inputs);
            }
            let mut dims = Dims::from_slice(first.0);
            dims[*axis] = 0;
            for t in inputs {
                if t.1 != first.1 {
                    return fail(op, "dtypes differ", inputs);
                }
                let fits = t.0.len() == dims.len() && (0..dims.len()).all(|a| a == *axis || t.0[a] == dims[a]);
                if !fits {
                    return fail(op, format_args!("shapes must agree on every axis but {axis}"), inputs);
                }
                dims[*axis] += t.0[*axis];
            }
            Ok((dims, first.1))
        }
        Op::Update(axes) => {
            expect_operands(op, inputs, 2 + axes.len())?;
            check_slice(op, axes, inputs, inputs[0].0, inputs[1].0)?;
            if inputs[0].1 != inputs[1].1 {
                return fail(op, "dtypes differ", inputs);
            }
            Ok((inputs[0].0.into(), inputs[0].1))
        }
        Op::Reduce { op: r, axes } => {
            expect_operands(op, inputs, 1)?;
            let (dims, dtype) = inputs[0];
            if (*axes as u64) >= 1u64 << dims.len() {
                return fail(op, "axis out of range", inputs);
            }
            let ok = match r {
                ReduceOp::Any | ReduceOp::All => dtype == DType::Bool,
                ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min | ReduceOp::ArgMax | ReduceOp::ArgMin => dtype != DType::Bool,
            };
            if !ok {
                return fail(op, format_args!("does not take {dtype}"), inputs);
            }
            let empty = (0..dims.len()).any(|a| axes >> a & 1 == 1 && dims[a] == 0);
            let out: Dims = (0..dims.len()).map(|a| if axes >> a & 1 == 1 { 1 } else { dims[a] }).collect();
            if empty && !r.has_identity() && numel(&out) > 0 {
                return fail(op, "an empty axis has no such element", inputs);
            }
            Ok((out, if r.is_arg() { DType::I64 } else { dtype }))
        }
        Op::Scan { axis, .. } => {
            expect_operands(op, inputs, 1)?;
            if *axis >= inputs[0].0.len() || inputs[0].1 == DType::Bool {
                return fail(op, format_args!("axis {axis} of a number tensor"), inputs);
            }
            Ok((inputs[0].0.into(), inputs[0].1))
        }
        Op::Dot => {
            expect_operands(op, inputs, 2)?;
            let (a, b) = (inputs[0].0, inputs[1].0);
            let r = a.len();
            if r < 2 || b.len() != r {
                return fail(op, "needs two operands of one rank, at least 2", inputs);
            }
            if inputs[0].1 != inputs[1].1 || inputs[0].1 == DType::Bool {
                return fail(op, "needs number operands of one dtype", inputs);
            }
            if a[r - 1] != b[r - 2] {
                return fail(op, "inner sizes differ", inputs);
            }
            let Some(mut dims) = broadcast(&a[..r - 2], &b[..r - 2]) else {
                return fail(op, "batch sizes differ", inputs);
            };
            dims.push(a[r - 2]);
            dims.push(b[r - 1]);
            Ok((dims, inputs[0].1))
        }
        Op::Conv(attrs) => {
            expect_operands(op, inputs, 2)?;
            let (x, w) = (inputs[0].0, inputs[1].0);
            check_conv(op, attrs, inputs, x, w)?;
            let mut dims = Dims::from_slice(&[x[0], w[0]]);
            for s in 0..attrs.stride.len() {
                let (lo, hi) = attrs.padding[s];
                let span = span(w[s + 2], attrs.dilation[s]);
                let padded = x[s + 2].saturating_add(lo).saturating_add(hi);
                if padded < span {
                    return fail(op, format_args!("the kernel spans {span} of {padded} padded elements on spatial axis {s}"), inputs);
                }
                dims.push((padded - span) / attrs.stride[s] + 1);
            }
            Ok((dims, inputs[0].1))
        }
        Op::MaxPool(p) | Op::AvgPool(p) => {
            expect_operands(op, inputs, 1)?;
            let x = inputs[0].0;
            let n = p.kernel.len();
            if x.len() != n + 2 || p.stride.contains(&0) || p.dilation.contains(&0) || p.kernel.contains(&0) {
                return fail(op, format_args!("needs [batch, channels, {n} spatial axes] and positive sizes"), inputs);
            }
            let mut dims = Dims::from_slice(&x[..2]);
            for s in 0..n {
                match pool_size(x[s + 2], p, s) {
                    Some(d) => dims.push(d),
                    None => {
                        return fail(op, format_args!("the window is larger than the padded input on spatial axis {s}"), inputs);
                    }
                }
            }
            Ok((dims, inputs[0].1))
        }
        Op::Gather { axis } => {
            expect_operands(op, inputs, 2)?;
            check_index(op, *axis, inputs, inputs[0].0, inputs[1])?;
            if inputs[0].0[*axis] == 0 && !inputs[1].0.contains(&0) {
                return fail(op, format_args!("axis {axis} has nothing to gather"), inputs);
            }
            Ok((inputs[1].0.into(), inputs[0].1))
        }
        Op::Scatter { axis, .. } => {
            expect_operands(op, inputs, 3)?;
            check_index(op, *axis, inputs, inputs[0].0, inputs[1])?;
            if inputs[2].0 != inputs[1].0 || inputs[2].1 != inputs[0].1 {
                return fail(op, "values need the index's shape and the tensor's dtype", inputs);
            }
            if inputs[0].0[*axis] == 0 && !inputs[1].0.contains(&0) {
                return fail(op, format_args!("axis {axis} has no place for values"), inputs);
            }
            Ok((inputs[0].0.into(), inputs[0].1))
        }
        Op::Sort { axis, .. } => {
            expect_operands(op, inputs, 1)?;
            if *axis >= inputs[0].0.len() {
                return fail(op, format_args!("axis {axis} is out of range"), inputs);
            }
            Ok((inputs[0].0.into(), inputs[0].1))
        }
        Op::Attention(a) => {
            let extra = a.has_mask as usize + a.has_bias as usize;
            expect_operands(op, inputs, 3 + extra)?;
            let (q, k, v) = (inputs[0].0, inputs[1].0, inputs[2].0);
            let fits = q.len() == 4
                && k.len() == 4
                && v.len() == 4
                && q[0] == k[0]
                && k[..3] == v[..3]
                && q[3] == k[3]
                && k[1] > 0
                && q[1].is_multiple_of(k[1]);
            if !fits {
                return fail(op, "needs q [b, h, t, d], k [b, g, s, d], v [b, g, s, e] with g dividing h", inputs);
            }
            let dtype = inputs[0].1;
            if !dtype.is_float() || inputs[1].1 != dtype || inputs[2].1 != dtype {
                return fail(op, "needs float operands of one dtype", inputs);
            }
            for (n, t) in inputs[3..].iter().enumerate() {
                let want = if n == 0 && a.has_mask { DType::Bool } else { dtype };
                let full = [q[0], q[1], q[2], k[2]];
                if t.1 != want || broadcast(t.0, &full).as_deref() != Some(&full[..]) {
                    return fail(op, "mask and bias must broadcast to [b, h, t, s]", inputs);
                }
            }
            Ok((Dims::from_slice(&[q[0], q[1], q[2], v[3]]), dtype))
        }
        Op::AttentionGrad(a) => {
            expect_operands(op, inputs, 6 + a.has_mask as usize + a.has_bias as usize)?;
            Ok((inputs[0].0.into(), inputs[0].1))
        }
        Op::Host(h) => match (h.infer)(&h.attrs, inputs) {
            Ok(mut r) if !r.is_empty() => Ok(r.swap_remove(0)),
            Ok(_) => fail(op, "has no result", inputs),
            Err(e) => fail(op, e, inputs),
        },
        Op::Input(_)
        | Op::Arg(_)
        | Op::Const(_)
        | Op::Iota { .. }
        | Op::Random(_)
        | Op::Cast
        | Op::Reshape
        | Op::Expand
        | Op::Slice(_)
        | Op::ConvInputGrad(_)
        | Op::ConvWeightGrad(_)
        | Op::MaxPoolGrad(_)
        | Op::AvgPoolGrad(_)
        | Op::Fold(_)
        | Op::Get(_) => fail(op, "the result's shape and dtype must be stated", inputs),
    }
}

/// An op with its channels last as the op with its channels second, and its operands' sizes in that order.
fn second(op: &Op, inputs: &[Type<'_>]) -> (Op, Vec<Dims>) {
    (op.with_channels_last(false).unwrap_or_else(|| op.clone()), inputs.iter().map(|t| channels_first(t.0)).collect())
}

/// Checks a stated shape and dtype against the operands.
pub fn check(op: &Op, inputs: &[Type<'_>], dims: &[usize], dtype: DType) -> Result<(), InferError> {
    if op.is_channels_last() {
        let (op, sizes) = second(op, inputs);
        return check(&op, &types(sizes.iter().zip(inputs).map(|(d, t)| (&d[..], t.1))), &channels_first(dims), dtype);
    }
    let same_dtype = |k: usize| {
        if inputs[k].1 == dtype { Ok(()) } else { fail(op, format_args!("cannot give {dtype}"), inputs) }
    };
    match op {
        Op::Input(_) => expect_operands(op, inputs, 0),
        Op::Arg(_) | Op::Const(_) => {
            expect_operands(op, inputs, 0)?;
            if dims.is_empty() { Ok(()) } else { fail(op, "is a scalar", inputs) }
        }
        Op::Iota { axis } => {
            expect_operands(op, inputs, 0)?;
            if *axis < dims.len() && dtype != DType::Bool { Ok(()) } else { fail(op, format_args!("axis {axis} of {dtype}{dims:?}"), inputs) }
        }
        Op::Random(kind) => {
            expect_operands(op, inputs, 1)?;
            if inputs[0] != (&[], DType::U64) {
                return fail(op, "the seed must be a u64 scalar", inputs);
            }
            let ok = match kind {
                RandomKind::Uniform | RandomKind::Normal => dtype.is_float(),
                RandomKind::Bits => matches!(dtype, DType::I64 | DType::U64 | DType::U32),
            };
            if ok { Ok(()) } else { fail(op, format_args!("cannot draw {dtype}"), inputs) }
        }
        Op::Cast => {
            expect_operands(op, inputs, 1)?;
            if inputs[0].0 == dims { Ok(()) } else { fail(op, format_args!("cannot change the shape to {dims:?}"), inputs) }
        }
        Op::Reshape => {
            expect_operands(op, inputs, 1)?;
            same_dtype(0)?;
            if numel(dims) == numel(inputs[0].0) {
                Ok(())
            } else {
                fail(op, format_args!("{dims:?} has {} elements, the tensor has {}", numel(dims), numel(inputs[0].0)), inputs)
            }
        }
        Op::Expand => {
            expect_operands(op, inputs, 1)?;
            same_dtype(0)?;
            if inputs[0].0.len() <= dims.len() && broadcast(inputs[0].0, dims).as_deref() == Some(dims) {
                Ok(())
            } else {
                fail(op, format_args!("does not broadcast to {dims:?}"), inputs)
            }
        }
        Op::Slice(axes) => {
            expect_operands(op, inputs, 1 + axes.len())?;
            same_dtype(0)?;
            check_slice(op, axes, inputs, inputs[0].0, dims)
        }
        Op::ConvInputGrad(attrs) => {
            expect_operands(op, inputs, 2)?;
            same_dtype(0)?;
            same_dtype(1)?;
            check_conv_gives(op, attrs, inputs, dims, inputs[1].0, inputs[0].0)
        }
        Op::ConvWeightGrad(attrs) => {
            expect_operands(op, inputs, 2)?;
            same_dtype(0)?;
            same_dtype(1)?;
            check_conv_gives(op, attrs, inputs, inputs[0].0, dims, inputs[1].0)
        }
        Op::MaxPoolGrad(p) | Op::AvgPoolGrad(p) => {
            let indexed = matches!(op, Op::MaxPoolGrad(_));
            expect_operands(op, inputs, 1 + indexed as usize)?;
            same_dtype(0)?;
            if indexed && inputs[1] != (inputs[0].0, DType::I64) {
                return fail(op, "indices need dy's shape and i64", inputs);
            }
            match infer(&Op::AvgPool(p.clone()), &[(dims, dtype)]) {
                Ok((d, _)) if d[..] == *inputs[0].0 => Ok(()),
                _ => fail(op, format_args!("dy does not fit an input of {dims:?}"), inputs),
            }
        }
        Op::Fold(axes) => {
            expect_operands(op, inputs, 1)?;
            same_dtype(0)?;
            match infer(&Op::Window(axes.clone()), &[(dims, dtype)]) {
                Ok((d, _)) if d[..] == *inputs[0].0 => Ok(()),
                _ => fail(op, format_args!("windows do not fit {dims:?}"), inputs),
            }
        }
        Op::Get(_) => expect_operands(op, inputs, 1),
        Op::Elementwise(_)
        | Op::Permute(_)
        | Op::Window(_)
        | Op::Pad(_)
        | Op::Concat { .. }
        | Op::Update(_)
        | Op::Reduce { .. }
        | Op::Scan { .. }
        | Op::Dot
        | Op::Conv(_)
        | Op::MaxPool(_)
        | Op::AvgPool(_)
        | Op::Gather { .. }
        | Op::Scatter { .. }
        | Op::Sort { .. }
        | Op::Attention(_)
        | Op::AttentionGrad(_)
        | Op::Host(_) => {
            let (d, t) = infer(op, inputs)?;
            if d[..] == *dims && t == dtype { Ok(()) } else { fail(op, format_args!("gives {t}{:?}, not {dtype}{dims:?}", &d[..]), inputs) }
        }
    }
}

/// Shape and dtype of result `i` (from 1 on) of an op with several results whose first has type `first`.
pub fn infer_result(op: &Op, inputs: &[Type<'_>], first: Type<'_>, i: u32) -> Result<(Dims, DType), InferError> {
    match (op, i) {
        (Op::MaxPool(_) | Op::Sort { .. }, 1) => Ok((first.0.into(), DType::I64)),
        (Op::Attention(_), 1) => {
            let acc = if first.1 == DType::F64 { DType::F64 } else { DType::F32 };
            Ok((first.0[..3].into(), acc))
        }
        (Op::AttentionGrad(_), 1 | 2) => Ok((inputs[i as usize].0.into(), inputs[i as usize].1)),
        (Op::Host(h), _) => {
            let r = match (h.infer)(&h.attrs, inputs) {
                Ok(r) => r,
                Err(e) => return fail(op, e, inputs),
            };
            match r.into_iter().nth(i as usize) {
                Some(t) => Ok(t),
                None => fail(op, format_args!("has no result {i}"), inputs),
            }
        }
        _ => fail(op, format_args!("has no result {i}"), inputs),
    }
}

/// Number of results of an op.
pub fn result_count(op: &Op, inputs: &[Type<'_>]) -> usize {
    match op {
        Op::MaxPool(_) | Op::Sort { .. } | Op::Attention(_) => 2,
        Op::AttentionGrad(_) => 3,
        Op::Host(h) => (h.infer)(&h.attrs, inputs).map_or(1, |r| r.len()),
        Op::Input(_) | Op::Arg(_) | Op::Const(_) | Op::Iota { .. } | Op::Random(_) => 1,
        Op::Elementwise(_) | Op::Cast | Op::Reduce { .. } | Op::Scan { .. } | Op::Get(_) => 1,
        Op::Reshape | Op::Permute(_) | Op::Expand | Op::Slice(_) | Op::Window(_) => 1,
        Op::Pad(_) | Op::Concat { .. } | Op::Update(_) | Op::Gather { .. } | Op::Scatter { .. } => 1,
        Op::Dot | Op::Conv(_) | Op::ConvInputGrad(_) | Op::ConvWeightGrad(_) => 1,
        Op::AvgPool(_) | Op::MaxPoolGrad(_) | Op::AvgPoolGrad(_) | Op::Fold(_) => 1,
    }
}

/// Elements from the first to the last of `size` elements at this distance.
pub fn span(size: usize, dilation: usize) -> usize {
    dilation.saturating_mul(size.saturating_sub(1)).saturating_add(1)
}

/// Number of windows of `w` that fit into `size` elements.
pub fn window_count(size: usize, w: &WindowAxis) -> usize {
    let span = span(w.size, w.dilation);
    if size < span { 0 } else { (size - span) / w.stride + 1 }
}

/// Output size of a pool on spatial axis `s`, or `None` if no window fits.
pub fn pool_size(size: usize, p: &PoolAttrs, s: usize) -> Option<usize> {
    let (lo, hi) = p.padding[s];
    let span = span(p.kernel[s], p.dilation[s]);
    let padded = size.saturating_add(lo).saturating_add(hi);
    if padded < span {
        return None;
    }
    let room = padded - span;
    let mut n = room / p.stride[s] + 1;
    if p.ceil_mode && !room.is_multiple_of(p.stride[s]) && n.saturating_mul(p.stride[s]) < size.saturating_add(lo) {
        // One more window, unless it would start in the padding after the input.
        n += 1;
    }
    Some(n)
}

fn check_slice(op: &Op, axes: &[SliceAxis], inputs: &[Type<'_>], whole: &[usize], part: &[usize]) -> Result<(), InferError> {
    let starts = &inputs[inputs.len() - axes.len()..];
    if starts.iter().any(|s| *s != (&[], DType::I64)) {
        return fail(op, "starts must be i64 scalars", inputs);
    }
    if whole.len() != part.len() {
        return fail(op, format_args!("ranks differ: {whole:?} and {part:?}"), inputs);
    }
    for a in 0..whole.len() {
        let fits = match axes.iter().find(|s| s.axis as usize == a) {
            Some(s) if s.step == 0 => false,
            Some(s) => part[a] == 0 || (part[a] - 1) * (s.step.unsigned_abs() as usize) < whole[a],
            None => part[a] == whole[a],
        };
        if !fits {
            return fail(op, format_args!("{part:?} is not a slice of {whole:?} on axis {a}"), inputs);
        }
    }
    Ok(())
}

fn check_conv(op: &Op, attrs: &ConvAttrs, inputs: &[Type<'_>], x: &[usize], w: &[usize]) -> Result<(), InferError> {
    let n = attrs.stride.len();
    if x.len() != n + 2 || w.len() != n + 2 || attrs.dilation.len() != n || attrs.padding.len() != n {
        return fail(op, format_args!("needs x [batch, channels, {n} spatial axes] and a weight of the same rank"), inputs);
    }
    if inputs.iter().any(|t| t.1 != inputs[0].1) || !inputs[0].1.is_float() {
        return fail(op, "needs float operands of one dtype", inputs);
    }
    let g = attrs.groups;
    if g == 0 || Some(x[1]) != w[1].checked_mul(g) || !w[0].is_multiple_of(g) {
        return fail(
            op,
            format_args!("channels must match: x has {}, the weight takes {} in each of {g} groups and gives {}", x[1], w[1], w[0]),
            inputs,
        );
    }
    if attrs.stride.contains(&0) || attrs.dilation.contains(&0) || w[2..].contains(&0) {
        return fail(op, "stride, dilation and kernel sizes must be positive", inputs);
    }
    Ok(())
}

fn check_conv_gives(op: &Op, attrs: &ConvAttrs, inputs: &[Type<'_>], x: &[usize], w: &[usize], y: &[usize]) -> Result<(), InferError> {
    let dtype = inputs[0].1;
    match infer(&Op::Conv(attrs.clone()), &[(x, dtype), (w, dtype)]) {
        Ok((d, _)) if d[..] == *y => Ok(()),
        Ok((d, _)) => fail(op, format_args!("x {x:?} and weight {w:?} give {:?}", &d[..]), inputs),
        Err(e) => Err(e),
    }
}

fn check_index(op: &Op, axis: usize, inputs: &[Type<'_>], x: &[usize], idx: Type<'_>) -> Result<(), InferError> {
    let fits = idx.0.len() == x.len() && axis < x.len() && (0..x.len()).all(|a| a == axis || idx.0[a] == x[a]);
    if !fits {
        return fail(op, format_args!("indices must have the tensor's shape but for axis {axis}"), inputs);
    }
    if !idx.1.is_int() {
        return fail(op, "indices must be integers", inputs);
    }
    Ok(())
}

/// The operand types of a node list, for callers that hold shapes elsewhere.
pub fn types<'a>(parts: impl IntoIterator<Item = (&'a [usize], DType)>) -> Vec<Type<'a>> {
    parts.into_iter().collect()
}
