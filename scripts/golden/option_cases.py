"""Golden values for options of layers and losses that the other files leave at their defaults. Where PyTorch has no such option, the formula below is first compared with PyTorch at its default."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from composite_cases import attention, call, linear, norm, sampled
from tensor_cases import lanczos3_matrix
from writer import Golden

SAME, EXPLICIT = 1, 2


def pads_of(mode, explicit, sizes, kernel, stride, dilation):
    """Before and after each axis. `same` makes `ceil(size / stride)` windows, with the odd element at the end."""
    if mode == EXPLICIT:
        return explicit
    pads = []
    for size, k, s, d in zip(sizes, kernel, stride, dilation):
        total = max((math.ceil(size / s) - 1) * s + d * (k - 1) + 1 - size, 0)
        pads.append((total // 2, total - total // 2))
    return pads


def padded(x, pads, value=0.0):
    return F.pad(x, [side for pair in reversed(pads) for side in pair], value=value)


def convolutions(g):
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
    transposed = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
    sizes = {1: [7], 2: [5, 6], 3: [3, 4, 5]}
    for rank in (1, 2, 3):
        table = [
            # Mode, kernel, stride, dilation, groups, explicit pads.
            (SAME, [4, 2, 3], [1, 1, 1], [1, 2, 1], 1, None),
            (SAME, [2, 4, 2], [2, 3, 1], [1, 1, 2], 2, None),
            (EXPLICIT, [3, 2, 2], [2, 1, 2], [1, 2, 1], 4, [(2, 1), (0, 1), (1, 2)] if rank < 3 else [(2, 2), (0, 0), (1, 1)]),
        ]
        for mode, kernel, stride, dilation, groups, explicit in table:
            kernel, stride, dilation = kernel[:rank], stride[:rank], dilation[:rank]
            pads = pads_of(mode, explicit and explicit[:rank], sizes[rank], kernel, stride, dilation)
            x, weight, b = g.floats(1, 4, *sizes[rank]), g.floats(4, 4 // groups, *kernel), g.floats(4)
            y = conv[rank](padded(x, pads), weight, b, stride, 0, dilation, groups)
            if mode == SAME and max(stride) == 1:
                assert torch.allclose(y, conv[rank](x, weight, b, 1, "same", dilation, groups))
            flat = [side for pair in pads for side in pair]
            g.case(f"conv{rank}d", mode=mode, kernel=kernel, stride=stride, dilation=dilation, groups=groups, pads=flat)
            g.graded(y, {"x": x, "weight": weight, "bias": b})
        kernel, stride, dilation, padding, out = [[3, 2, 2][:rank], [2, 3, 1][:rank], [1, 2, 3][:rank], [1, 0, 2][:rank], [1, 2, 0][:rank]]
        x, weight, b = g.floats(1, 4, *[3, 3, 2][:rank]), g.floats(4, 2, *kernel), g.floats(4)
        g.case(f"conv_transpose{rank}d", kernel=kernel, stride=stride, dilation=dilation, groups=2, padding=padding, padding_out=out)
        g.graded(transposed[rank](x, weight, b, stride, padding, out, 2, dilation), {"x": x, "weight": weight, "bias": b})


def deformed(g):
    """Steps, dilations and pads that differ by axis; sampled at each tap by the formula of `composite_cases`."""
    size, kernel, stride, dilation, pads = (4, 5), (2, 3), (2, 1), (1, 2), ((1, 0), (2, 1))
    n, c, o = 1, 2, 2
    out = [(size[a] + sum(pads[a]) - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1 for a in (0, 1)]
    taps = kernel[0] * kernel[1]
    x, weight, bias = g.floats(n, c, *size), g.floats(o, c, *kernel), g.floats(o)
    offset = g.floats(n, 2 * taps, *out, scale=0.7)
    with torch.no_grad():
        offset[(offset - offset.round()).abs() < 0.01] += 0.125
        offset.copy_(offset.float().double())
    rows, columns = torch.meshgrid(*[torch.arange(out[a]) * stride[a] - pads[a][0] for a in (0, 1)], indexing="ij")
    parts = []
    for tap in range(taps):
        y = rows + (tap // kernel[1]) * dilation[0] + offset[0, 2 * tap]
        z = columns + (tap % kernel[1]) * dilation[1] + offset[0, 2 * tap + 1]
        parts.append(sampled(x[0], y, z))
    result = torch.einsum("ock,ckyx->oyx", weight.reshape(o, c, taps), torch.stack(parts, 1)) + bias[:, None, None]
    g.case("deform_conv2d", kernel=kernel, stride=stride, dilation=dilation, pads=[p for pair in pads for p in pair])
    g.graded(result[None], {"x": x, "offset": offset, "weight": weight, "bias": bias})


def pools(g):
    high = {1: F.max_pool1d, 2: F.max_pool2d}
    mean = {1: F.avg_pool1d, 2: F.avg_pool2d}
    for rank in (1, 2):
        sizes = [9, 7][:rank] if rank == 2 else [9]
        table = [
            (SAME, [3, 2], [1, 1], [1, 1], None, False),
            (SAME, [2, 4], [2, 3], [2, 1], None, False),
            (EXPLICIT, [3, 3], [2, 1], [1, 2], [(1, 0), (0, 1)], False),
            (EXPLICIT, [3, 4], [3, 2], [1, 1], [(1, 0), (2, 1)], True),
        ]
        for mode, kernel, stride, dilation, explicit, ceil in table:
            kernel, stride, dilation = kernel[:rank], stride[:rank], dilation[:rank]
            pads = pads_of(mode, explicit and explicit[:rank], sizes, kernel, stride, dilation)
            flat = [side for pair in pads for side in pair]
            x = g.distinct(1, 2, *sizes)
            y = high[rank](padded(x, pads, -math.inf), kernel, stride, 0, dilation, ceil_mode=ceil)
            g.case(f"max_pool{rank}d", mode=mode, kernel=kernel, stride=stride, dilation=dilation, pads=flat, ceil_mode=ceil)
            g.graded(y, {"x": x})
            if ceil:
                continue
            pads = pads_of(mode, explicit and explicit[:rank], sizes, kernel, stride, [1] * rank)
            flat = [side for pair in pads for side in pair]
            for counted in (True, False):
                x = g.floats(1, 2, *sizes)
                y = mean[rank](padded(x, pads), kernel, stride)
                if not counted:
                    y = y / mean[rank](padded(torch.ones_like(x), pads), kernel, stride)
                g.case(f"avg_pool{rank}d", mode=mode, kernel=kernel, stride=stride, pads=flat, count_include_pad=counted)
                g.graded(y, {"x": x})
        x = g.distinct(1, 2, *sizes)
        g.case(f"max_pool{rank}d_default", kernel=[2, 3][:rank])
        g.graded(high[rank](x, [2, 3][:rank]), {"x": x})
        x = g.floats(1, 2, *sizes)
        g.case(f"avg_pool{rank}d_default", kernel=[2, 3][:rank])
        g.graded(mean[rank](x, [2, 3][:rank]), {"x": x})


NEAREST, EXACT, LINEAR, CUBIC, LANCZOS = range(5)


def resizes(g):
    def resized(x, size, mode, corners):
        """Two axes; one axis is resized beside one of size one."""
        if mode == LANCZOS:
            flag = corners
            rows = lanczos3_matrix(x.shape[2], size[0], flag) if x.shape[2] > 1 else torch.ones(1, 1)
            return rows @ x @ lanczos3_matrix(x.shape[3], size[1], flag).T
        if mode in (NEAREST, EXACT):
            return F.interpolate(x, size, mode=["nearest", "nearest-exact"][mode])
        return F.interpolate(x, size, mode=["bilinear", "bicubic"][mode - LINEAR], align_corners=corners)

    for mode in range(5):
        for corners in (True, False) if mode >= LINEAR else (True,):
            for size in (4, 11):
                x = g.floats(1, 2, 7)
                g.case("interpolate1d", size=size, mode=mode, corners=corners)
                g.graded(resized(x[:, :, None], [1, size], mode, corners)[:, :, 0], {"x": x})
            for scale in ((2.0, 0.5), (1.5, 2.0)):
                # Factors that give whole sizes, for which PyTorch's factors and sizes say the same.
                x = g.floats(1, 1, 4, 6)
                y = resized(x, [int(4 * scale[0]), int(6 * scale[1])], mode, corners)
                g.case("interpolate2d_scale", scale=scale, mode=mode, corners=corners)
                g.graded(y, {"x": x})
            x = g.floats(1, 2, 6)
            g.case("interpolate1d_scale", scale=1.5, mode=mode, corners=corners)
            g.graded(resized(x[:, :, None], [1, 9], mode, corners)[:, :, 0], {"x": x})
        if mode == LANCZOS:
            x = g.floats(1, 1, 4, 5)
            g.case("interpolate2d", size=[6, 3], mode=mode, corners=False)
            g.graded(resized(x, [6, 3], mode, False), {"x": x})


def windows():
    g = Golden("kiln-nn", "window_options", 31)
    convolutions(g)
    deformed(g)
    pools(g)
    resizes(g)
    g.save()


def norms(g):
    for shape, momentum, eps in (([4, 3], 0.3, 1e-2), ([1, 3, 4], 0.9, 0.5), ([2, 3, 2, 2], 1.0, 1e-1), ([2, 3, 2, 2], 0.0, 1e-3)):
        for training in (True, False):
            x, gamma, beta = g.floats(*shape), g.floats(3), g.floats(3)
            mean, var = g.floats(3, grad=False), g.floats(3, positive=True, grad=False)
            after_mean, after_var = mean.clone(), var.clone()
            y = F.batch_norm(x, after_mean, after_var, gamma, beta, training, momentum, eps)
            g.case("batch_norm", training=training, momentum=momentum, eps=eps)
            g.graded(y, {"x": x, "gamma": gamma, "beta": beta})
            g.put(mean=mean, var=var, mean_after=after_mean, var_after=after_var)
    for shape, groups, eps, affine in (([2, 6], 3, 0.1, True), ([2, 4, 5], 2, 1e-2, False), ([1, 4, 3, 2], 4, 0.1, False), ([2, 4, 1, 2, 3], 2, 0.3, True)):
        x, c = g.floats(*shape), shape[1]
        gamma, beta = (g.floats(c), g.floats(c)) if affine else (None, None)
        g.case("group_norm", groups=groups, eps=eps, affine=affine)
        g.graded(F.group_norm(x, groups, gamma, beta, eps), {"x": x, "gamma": gamma, "beta": beta})
    for shape, eps, affine in (([2, 4, 5], 0.1, False), ([2, 4, 3, 2], 0.2, True), ([1, 2, 2, 2, 3], 1e-2, False)):
        x, c = g.floats(*shape), shape[1]
        gamma, beta = (g.floats(c), g.floats(c)) if affine else (None, None)
        g.case("instance_norm", eps=eps, affine=affine)
        g.graded(F.instance_norm(x, weight=gamma, bias=beta, eps=eps), {"x": x, "gamma": gamma, "beta": beta})
    for shape, eps in (([5, 6], 0.3), ([2, 2, 3, 4], 1e-2)):
        x, gamma = g.floats(*shape), g.floats(shape[-1])
        g.case("rms_norm", eps=eps)
        g.graded(F.rms_norm(x, [shape[-1]], gamma, eps), {"x": x, "gamma": gamma})
    for shape, size, alpha, beta, k in (([2, 5, 3], 2, 0.3, 0.5, 0.7), ([1, 6, 2, 3], 5, 0.7, 1.25, 2.0), ([1, 4, 2, 1, 2], 1, 0.2, 2.0, 0.5)):
        x = g.floats(*shape)
        g.case("local_response_norm", size=size, alpha=alpha, beta=beta, k=k)
        g.graded(F.local_response_norm(x, size, alpha, beta, k), {"x": x})


def small(g):
    """Layers of few parameters."""
    for dim in (0, 1, -1, -2):
        for eps in (1e-8, 2.5):
            a, b = g.floats(3, 4), g.floats(3, 4)
            # Norms below epsilon have no slope here, as `max` says; PyTorch gives them one.
            y = (a * b).sum(dim) / (a.norm(dim=dim).clamp_min(eps) * b.norm(dim=dim).clamp_min(eps))
            assert torch.allclose(y, F.cosine_similarity(a, b, dim, eps))
            g.case("cosine_similarity", dim=dim, eps=eps)
            g.graded(y, {"a": a, "b": b})
    for p, eps in ((2.0, 0.25), (1.0, 0.5), (2.5, 0.125), (math.inf, 0.25)):
        a, b = g.floats(3, 4), g.floats(3, 4)
        g.case("pairwise_distance", p=p, eps=eps)
        g.graded(F.pairwise_distance(a, b, p, eps), {"a": a, "b": b})
    for longest in (30, 100):
        x = g.floats(1, 4, 6)
        angle = torch.arange(4)[:, None] * float(longest) ** (-torch.arange(0, 6, 2) / 6)
        g.case("positional_encoding", longest=longest)
        g.graded(x + torch.stack([angle.sin(), angle.cos()], 2).reshape(4, 6), {"x": x})
    for theta, factor, start in ((50.0, 1.0, 0), (10000.0, 0.25, 3), (7.0, 0.5, 1)):
        x = g.floats(1, 2, 3, 4)
        angle = (torch.arange(3) + start)[:, None] * theta ** (-torch.arange(0, 4, 2) / 4) * factor
        pairs = torch.view_as_complex(x.reshape(1, 2, 3, 2, 2)) * torch.polar(torch.ones_like(angle), angle)
        g.case("rotary_encoding", theta=theta, factor=factor, start=start)
        g.graded(torch.view_as_real(pairs).reshape(1, 2, 3, 4), {"x": x})
    for shape in ([4, 3], [2, 3, 4], [2, 3, 2, 2]):
        x, alpha = g.floats(*shape), g.floats(3)
        g.case("prelu")
        g.graded(F.prelu(x, alpha), {"x": x, "alpha": alpha})
    for dim in (0, 1, 2):
        x = g.floats(2, 4, 6)
        g.case("glu", dim=dim)
        g.graded(F.glu(x, dim), {"x": x})
    x, params = g.floats(3, 4), {}
    (w, b), (v, c) = linear(g, params, "linear_inner", 4, 5), linear(g, params, "linear_outer", 4, 5)
    g.case("swi_glu")
    g.graded(F.silu(x @ w + b) * (x @ v + c), {"x": x, **params})


def attend(params, path, q, k, v, heads, mask=None, quiet=False, least=-math.inf):
    """Attention of several heads; hidden positions have the score `least`, a quiet softmax has one more score of zero."""
    def mapped(name, x):
        y = x @ params[f"{path}{name}.weight"]
        return y + params[f"{path}{name}.bias"] if f"{path}{name}.bias" in params else y

    def split(x):
        return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    query, key, value = split(mapped("query", q)), split(mapped("key", k)), split(mapped("value", v))
    if key.shape[1] != query.shape[1]:
        raise ValueError("heads differ")
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, least)
    if quiet:
        scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], -1)
    weights = scores.softmax(-1)
    weights = weights[..., :-1] if quiet else weights
    y = (weights @ value).transpose(1, 2).flatten(2)
    return mapped("output", y), weights


def attentions(g):
    d, heads = 4, 2
    causal = torch.ones(3, 3, dtype=torch.bool).triu(1)
    pad = torch.tensor([[False] * 3, [False, False, True]])
    both = causal[None, None] | pad[:, None, None, :]
    x, params = g.floats(2, 3, d), {}
    state = attention(g, params, "m", d)
    theirs, _ = call(nn.MultiheadAttention(d, heads, batch_first=True), state, x, x, x, attn_mask=causal, key_padding_mask=pad)
    assert torch.allclose(theirs, attend(params, "m.", x, x, x, heads, both)[0])
    # Biases of query, key, value and output; quiet softmax; the score of hidden positions.
    table = [([], False, -1e4), (["key"], True, -1e4), (["query", "output"], False, -0.5), (["value"], True, -1.5), (["query", "key", "value", "output"], True, -1e4)]
    for biased, quiet, least in table:
        for masked in (False, True):
            x, params = g.floats(2, 3, d), {}
            for name in ("query", "key", "value", "output"):
                params[f"{name}.weight"] = g.floats(d, d, scale=0.5)
                if name in biased:
                    params[f"{name}.bias"] = g.floats(d, scale=0.5)
            y, weights = attend(params, "", x, x, x, heads, both if masked else None, quiet, least)
            g.case("multi_head_attention", quiet=quiet, least=least, **{name: name in biased for name in ("query", "key", "value", "output")})
            g.put(mask=causal[None].expand(2, 3, 3) if masked else None, pad=pad if masked else None, weights=weights)
            g.graded(y, {"x": x, **params})
    for quiet, least in ((True, -1e4), (False, -0.75)):
        x, context, params = g.floats(2, 2, d), g.floats(2, 3, 3), {}
        for name, i, o in (("query", d, 4), ("key", 3, 4), ("value", 3, 4), ("output", 4, d)):
            linear(g, params, name, i, o)
        y, _ = attend(params, "", x, context, context, heads, pad[:, None, None, :], quiet, least)
        g.case("cross_attention", quiet=quiet, least=least)
        g.put(pad=pad)
        g.graded(y, {"x": x, "context": context, **params})


def transformers(g):
    """Layers of PyTorch's with ReLU and another epsilon, and the same from parts, whose attention may be quiet."""
    d, ff, heads, eps = 4, 6, 2, 0.1
    causal = torch.ones(3, 3, dtype=torch.bool).triu(1)
    pad = torch.tensor([[False] * 3, [False, False, True]])
    hidden = torch.tensor([[False] * 4, [False, True, False, True]])
    seen = torch.tensor([[False, True, False, False], [False, False, True, False], [False, False, False, True]])
    for first in (False, True):
        for quiet in (False, True):
            for kind in ("encoder", "decoder"):
                blocks = [("mha", "self_attn")] if kind == "encoder" else [("self_attn", "self_attn"), ("cross_attn", "multihead_attn")]
                count = len(blocks) + 1
                names = [f"norm_{i + 1}" for i in range(count)]
                names = names[-1:] + names[:-1] if first else names
                params, state, path = {}, {}, "layers.0"
                for ours, theirs in blocks:
                    state.update({f"{theirs}.{k}": v for k, v in attention(g, params, f"{path}.{ours}", d).items()})
                for ours, theirs, i, o in (("linear_inner", "linear1", d, ff), ("linear_outer", "linear2", ff, d)):
                    w, b = linear(g, params, f"{path}.pwff.{ours}", i, o)
                    state.update({f"{theirs}.weight": w.T, f"{theirs}.bias": b})
                for n, ours in enumerate(names):
                    state.update({f"norm{n + 1}.{k}": v for k, v in norm(g, params, f"{path}.{ours}", d).items()})
                x, memory = g.floats(2, 3, d), g.floats(2, 4, d)
                own = causal[None, None] | pad[:, None, None, :]
                other = seen[None, None] | hidden[:, None, None, :]
                parts = [lambda y: attend(params, f"{path}.{blocks[0][0]}.", y, y, y, heads, own, quiet)[0]]
                if kind == "decoder":
                    parts.append(lambda y: attend(params, f"{path}.cross_attn.", y, memory, memory, heads, other, quiet)[0])
                inner, outer = f"{path}.pwff.linear_inner", f"{path}.pwff.linear_outer"
                parts.append(lambda y: F.relu(y @ params[f"{inner}.weight"] + params[f"{inner}.bias"]) @ params[f"{outer}.weight"] + params[f"{outer}.bias"])
                y = x
                for part, name in zip(parts, names):
                    normed = lambda z: F.layer_norm(z, [d], params[f"{path}.{name}.gamma"], params[f"{path}.{name}.beta"], eps)
                    y = y + part(normed(y)) if first else normed(y + part(y))
                if not quiet:
                    make = {"encoder": nn.TransformerEncoderLayer, "decoder": nn.TransformerDecoderLayer}[kind]
                    layer = make(d, heads, ff, 0.0, "relu", eps, batch_first=True, norm_first=first)
                    masks = dict(src_mask=causal, src_key_padding_mask=pad) if kind == "encoder" else dict(
                        tgt_mask=causal, tgt_key_padding_mask=pad, memory_mask=seen, memory_key_padding_mask=hidden)
                    theirs = call(layer, state, *([x] if kind == "encoder" else [x, memory]), **masks)
                    assert torch.allclose(theirs, y)
                g.case(f"transformer_{kind}", norm_first=first, quiet=quiet, eps=eps)
                g.put(pad=pad, causal=causal[None].expand(2, 3, 3))
                if kind == "decoder":
                    g.put(hidden=hidden, seen=seen[None].expand(2, 3, 4))
                g.graded(y, {"x": x, **({"memory": memory} if kind == "decoder" else {}), **params})
    x, params = g.floats(2, 4), {}
    (w, b), (v, c) = linear(g, params, "linear_inner", 4, 6), linear(g, params, "linear_outer", 6, 4)
    g.case("pwff")
    g.graded(torch.tanh(x @ w + b) @ v + c, {"x": x, **params})


def layers():
    g = Golden("kiln-nn", "layer_options", 32)
    norms(g)
    small(g)
    attentions(g)
    transformers(g)
    g.save()


GATES = {"rnn": ["gate"], "gru": ["reset_gate", "update_gate", "new_gate"], "lstm": ["input_gate", "forget_gate", "cell_gate", "output_gate"]}


def run_recurrent(kind, params, prefix, x, h, c, gate=torch.sigmoid, cell=torch.tanh, hidden=torch.tanh, clip=None, reset_after=True, reverse=False):
    """Hidden states `[batch, time, hidden]`, and the last states."""
    def part(name, which, value):
        at = f"{prefix}{name}.{which}_transform"
        y = value @ params[f"{at}.weight"]
        return y + params[f"{at}.bias"] if f"{at}.bias" in params else y

    def both(name, x, h):
        return part(name, "input", x) + part(name, "hidden", h)

    clipped = (lambda v: v.clamp(-clip, clip)) if clip else (lambda v: v)
    out = [None] * x.shape[1]
    for t in reversed(range(x.shape[1])) if reverse else range(x.shape[1]):
        now = x[:, t]
        if kind == "rnn":
            h = clipped(hidden(both("gate", now, h)))
        elif kind == "gru":
            r, z = gate(both("reset_gate", now, h)), gate(both("update_gate", now, h))
            if reset_after:
                n = hidden(part("new_gate", "input", now) + r * part("new_gate", "hidden", h))
            else:
                n = hidden(part("new_gate", "input", now) + part("new_gate", "hidden", r * h))
            h = clipped((1 - z) * n + z * h)
        else:
            i, o = gate(both("input_gate", now, h)), gate(both("output_gate", now, h))
            forgets = f"{prefix}forget_gate.input_transform.weight" in params
            f = gate(both("forget_gate", now, h)) if forgets else 1 - i
            c = clipped(f * c + i * cell(both("cell_gate", now, h)))
            h = o * hidden(c)
        out[t] = h
    return torch.stack(out, 1), h, c


def gates_of(g, kind, params, prefix, size, h, biased=True, forgets=True):
    for name in GATES[kind]:
        if name == "forget_gate" and not forgets:
            continue
        for which, i in (("input", size), ("hidden", h)):
            params[f"{prefix}{name}.{which}_transform.weight"] = g.floats(i, h, scale=0.7)
            if biased:
                params[f"{prefix}{name}.{which}_transform.bias"] = g.floats(h, scale=0.5)


def torch_state(kind, params, prefix, suffix, biased):
    state = {}
    for which, short in (("input", "ih"), ("hidden", "hh")):
        state[f"weight_{short}_l0{suffix}"] = torch.cat([params[f"{prefix}{n}.{which}_transform.weight"].T for n in GATES[kind]])
        if biased:
            state[f"bias_{short}_l0{suffix}"] = torch.cat([params[f"{prefix}{n}.{which}_transform.bias"] for n in GATES[kind]])
    return state


SIGMOID, HARD, TANH, RELU, SOFTSIGN = range(5)
FUNCTIONS = [torch.sigmoid, lambda x: (x * 0.2 + 0.5).clamp(0, 1), torch.tanh, torch.relu, F.softsign]


def recurrent():
    g = Golden("kiln-nn", "recurrent_options", 33)
    b, t, i, h = 2, 3, 2, 2
    # Bias, batch first, reversed or both directions (2), clip, forget gate, reset after, activations of gates, cell and hidden state.
    table = [
        (False, True, 0, 0.0, True, True, SIGMOID, TANH, TANH),
        (True, False, 0, 0.0, True, True, SIGMOID, TANH, TANH),
        (True, True, 1, 0.0, True, True, SIGMOID, TANH, RELU),
        (True, True, 0, 0.3, True, False, HARD, SOFTSIGN, SOFTSIGN),
        (False, False, 1, 0.25, False, False, HARD, RELU, TANH),
        (True, True, 2, 0.3, False, False, HARD, SOFTSIGN, RELU),
        (False, False, 2, 0.0, True, True, SIGMOID, TANH, TANH),
    ]
    for kind in ("rnn", "gru", "lstm"):
        for row in table:
            biased, first, ways, clip, forgets, after, gate, cell, hidden = row
            if kind == "gru" and (ways == 1 or (not first and ways == 0)):
                # A single gated unit has neither option.
                continue
            params = {}
            prefixes = ["forward.", "reverse."] if ways == 2 else [""]
            for prefix in prefixes:
                gates_of(g, kind, params, prefix, i, h, biased, forgets)
            x = g.floats(b, t, i)
            h0, c0 = g.floats(len(prefixes), b, h, scale=0.3), g.floats(len(prefixes), b, h, scale=0.3)
            options = dict(gate=FUNCTIONS[gate], cell=FUNCTIONS[cell], hidden=FUNCTIONS[hidden], clip=clip, reset_after=after)
            found = [run_recurrent(kind, params, prefix, x, h0[n], c0[n], reverse=ways == 1 or n == 1, **options) for n, prefix in enumerate(prefixes)]
            y = torch.cat([part[0] for part in found], 2)
            ends = torch.stack([part[1] for part in found])
            cells = torch.stack([part[2] for part in found])
            plain = not clip and forgets and after and gate == SIGMOID and cell == TANH and hidden == TANH and ways != 1
            if plain:
                net = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[kind](i, h, bias=biased, batch_first=True, bidirectional=ways == 2)
                state = {}
                for prefix, suffix in zip(prefixes, ("", "_reverse")):
                    state.update(torch_state(kind, params, prefix, suffix, biased))
                theirs, last = call(net, state, x, (h0, c0) if kind == "lstm" else h0)
                assert torch.allclose(theirs, y)
                assert torch.allclose(last[0] if kind == "lstm" else last, ends)
            if kind == "rnn" and hidden == RELU and not clip:
                net = nn.RNN(i, h, nonlinearity="relu", batch_first=True)
                theirs, _ = call(net, torch_state(kind, params, "", "", biased), x.flip(1), h0)
                assert torch.allclose(theirs.flip(1), y)
            seen = x if first else x.transpose(0, 1).detach().clone().requires_grad_(True)
            if not first:
                # The case's input has the time first; its result too.
                back = seen.transpose(0, 1)
                found = [run_recurrent(kind, params, prefix, back, h0[n], c0[n], reverse=ways == 1 or n == 1, **options) for n, prefix in enumerate(prefixes)]
                y = torch.cat([part[0] for part in found], 2).transpose(0, 1)
            g.case(kind, bias=biased, batch_first=first, ways=ways, clip=clip, forgets=forgets, reset_after=after, gate=gate, cell=cell, hidden=hidden)
            g.put(hidden_end=ends, cell_end=cells if kind == "lstm" else None)
            g.graded(y, {"x": seen, "h0": h0, **({"c0": c0} if kind == "lstm" else {}), **params})
    g.save()


def losses():
    g = Golden("kiln-nn", "loss_options", 34)
    eps = 0.3
    pairs = [
        ("mse", {}, lambda x, t, r: F.mse_loss(x, t, reduction=r)),
        ("lp", dict(p=1.0), lambda x, t, r: F.l1_loss(x, t, reduction=r)),
        ("lp", dict(p=2.0), lambda x, t, r: F.mse_loss(x, t, reduction=r)),
        ("lp", dict(p=2.5), lambda x, t, r: reduced((x - t).abs() ** 2.5, r)),
        ("smooth_l1", dict(beta=0.4), lambda x, t, r: F.smooth_l1_loss(x, t, reduction=r, beta=0.4)),
        ("smooth_l1", dict(beta=0.0), lambda x, t, r: F.smooth_l1_loss(x, t, reduction=r, beta=0.0)),
        ("huber", dict(delta=1.4), lambda x, t, r: F.huber_loss(x, t, reduction=r, delta=1.4)),
        ("kl_div", dict(log_target=0), lambda x, t, r: F.kl_div(x, t.softmax(1), reduction=r)),
        ("kl_div", dict(log_target=1), lambda x, t, r: F.kl_div(x, t.log_softmax(1), reduction=r, log_target=True)),
        ("poisson_nll", dict(log_input=0, full=0, eps=eps), lambda x, t, r: F.poisson_nll_loss(x, t.abs() * 3, False, False, eps=eps, reduction=r)),
        ("poisson_nll", dict(log_input=0, full=1, eps=eps), lambda x, t, r: F.poisson_nll_loss(x, t.abs() * 3, False, True, eps=eps, reduction=r)),
        ("poisson_nll", dict(log_input=1, full=1, eps=eps), lambda x, t, r: F.poisson_nll_loss(x, t.abs() * 3, True, True, eps=eps, reduction=r)),
        ("hinge_embedding", dict(margin=0.6), lambda x, t, r: F.hinge_embedding_loss(x, t.sign(), 0.6, reduction=r)),
        ("soft_margin", {}, lambda x, t, r: F.soft_margin_loss(x, t.sign(), reduction=r)),
    ]
    for name, attrs, loss in pairs:
        for code, reduction in enumerate(("mean", "sum", "batchmean", "none")):
            x, t = g.floats(2, 3, positive=name == "poisson_nll"), g.floats(2, 3, grad=False)
            target = {
                "kl_div": t.log_softmax(1) if attrs.get("log_target") else t.softmax(1),
                "poisson_nll": t.abs() * 3, "hinge_embedding": t.sign(), "soft_margin": t.sign(),
            }.get(name, t)
            g.case(name, reduction=code, **attrs)
            y = loss(x, t, "sum") / 2 if reduction == "batchmean" else loss(x, t, reduction)
            g.graded(y, {"x": x, "target": target})
    for code, reduction in enumerate(("mean", "sum", "batchmean", "none")):
        for full, least in ((True, 0.5), (False, 0.3)):
            x, t, var = g.floats(2, 3), g.floats(2, 3, grad=False), g.floats(2, 3, positive=True)
            # A variance below the least has no slope here, as `max` says; PyTorch gives it one.
            clamped = torch.maximum(var, torch.full_like(var, least))
            y = 0.5 * (clamped.log() + (x - t) ** 2 / clamped) + (0.5 * math.log(2 * math.pi) if full else 0.0)
            assert torch.allclose(y, F.gaussian_nll_loss(x, t, var, full, least, "none"))
            g.case("gaussian_nll", reduction=code, full=full, eps=least)
            g.graded(reduced(y, reduction), {"x": x, "target": t, "var": var})
        for margin in (0.0, 0.5):
            a, b, t = g.floats(4, 3), g.floats(4, 3), torch.tensor([1, -1, 1, -1])
            g.case("cosine_embedding", reduction=code, margin=margin)
            g.graded(reduced(F.cosine_embedding_loss(a, b, t, margin, reduction="none"), reduction), {"a": a, "b": b, "target": t})
            a, b, t = g.floats(2, 3), g.floats(2, 3), g.floats(2, 3, grad=False).sign()
            g.case("margin_ranking", reduction=code, margin=margin)
            g.graded(reduced(F.margin_ranking_loss(a, b, t, margin, reduction="none"), reduction), {"a": a, "b": b, "target": t})
        for margin, p in ((0.4, 1.0), (2.0, 3.0)):
            a, q, n = g.floats(3, 3), g.floats(3, 3), g.floats(3, 3)
            g.case("triplet_margin", reduction=code, margin=margin, p=p)
            g.graded(reduced(F.triplet_margin_loss(a, q, n, margin, p, reduction="none"), reduction), {"anchor": a, "positive": q, "negative": n})
        for margin, p in ((0.5, 1), (1.75, 2)):
            x, t = g.floats(3, 4), g.ints(3, below=4)
            g.case("multi_margin", reduction=code, margin=margin, p=p)
            g.graded(reduced(F.multi_margin_loss(x, t, p, margin, reduction="none"), reduction), {"x": x, "target": t})
    entropies(g)
    sequences(g)
    g.save()


def reduced(losses, reduction):
    return {"none": lambda: losses, "sum": losses.sum, "mean": losses.mean, "batchmean": lambda: losses.sum() / losses.shape[0]}[reduction]()


def entropies(g):
    for logits in (0, 1):
        for smoothing in (0.0, 0.2):
            for weighted in (False, True):
                for pads in ([], [1], [0, 3], [2, 7]):
                    x = g.floats(6, 4)
                    x = x if logits else F.softmax(x, 1).detach().float().double().requires_grad_(True)
                    target = torch.tensor([0, 1, 2, 3, 1, 2])
                    if 7 in pads:
                        target[4] = 7
                    weights = g.floats(4, positive=True, grad=False) if weighted else None
                    keep = torch.tensor([int(v) not in pads for v in target])
                    logp = F.log_softmax(x, 1) if logits else x.log()
                    # PyTorch with only the rows that are not padding.
                    nll = F.nll_loss(logp[keep], target[keep], weights, reduction="sum")
                    w = weights if weighted else torch.ones(4)
                    total = w[target[keep]].sum()
                    y = ((1 - smoothing) * nll - smoothing / 4 * (logp[keep] * w).sum()) / total
                    if logits:
                        assert torch.allclose(y, F.cross_entropy(x[keep], target[keep], weights, label_smoothing=smoothing))
                    g.case("cross_entropy", logits=logits, smoothing=smoothing, pads=pads or [-1])
                    g.graded(y, {"x": x, "target": target, "weights": weights})
    for logits in (0, 1):
        for shape in ([5], [3, 4], [2, 2, 3]):
            for smoothing in (0.0, 0.3):
                for weighted in (False, True):
                    x, target = g.floats(*shape), g.ints(*shape, below=2)
                    x = x if logits else torch.sigmoid(x).detach().float().double().requires_grad_(True)
                    labels = 2 if len(shape) == 1 else shape[-1]
                    weights = g.floats(labels, positive=True, grad=False) if weighted else None
                    soft = target * (1 - smoothing) + smoothing / labels
                    f = F.binary_cross_entropy_with_logits if logits else F.binary_cross_entropy
                    if len(shape) == 1 and weighted:
                        w = weights[target]
                        y = (f(x, soft, reduction="none") * w).sum() / w.sum()
                    else:
                        y = f(x, soft, weights)
                    g.case("binary_cross_entropy", logits=logits, smoothing=smoothing)
                    g.graded(y, {"x": x, "target": target, "weights": weights})


def sequences(g):
    # Another blank, empty targets, and targets too long for their time (whose loss is infinite: left out).
    for blank, lengths, times in ((4, [2, 0], [5, 3]), (2, [3, 1], [5, 5]), (1, [0, 0], [4, 1]), (3, [3, 2], [2, 4])):
        for code, reduction in enumerate(("mean", "sum", "batchmean", "none")):
            x = g.floats(5, 2, 5)
            classes = [c for c in range(5) if c != blank]
            target = torch.tensor([[classes[0], classes[1], classes[1]], [classes[2], classes[0], classes[3]]])
            inp, tgt = torch.tensor(times), torch.tensor(lengths)
            each = F.ctc_loss(F.log_softmax(x, 2), target, inp, tgt, blank, "none", zero_infinity=True)
            if reduction == "mean":
                y = F.ctc_loss(F.log_softmax(x, 2), target, inp, tgt, blank, "mean", zero_infinity=True)
            else:
                y = reduced(each, reduction)
            g.case("ctc", blank=blank, reduction=code)
            g.put(target=target, input_lengths=inp, target_lengths=tgt)
            g.graded(y, {"x": x})
    for blank, logits, target in ((2, 1, [0, 3]), (3, 0, [1, 1]), (0, 0, [2, 1])):
        for code, reduction in enumerate(("mean", "sum", "batchmean", "none")):
            times, classes = 3, 4
            x = g.floats(1, times, len(target) + 1, classes)
            logp = F.log_softmax(x, 3)
            if not logits:
                x = logp.detach().float().double().requires_grad_(True)
                logp = x
            alpha = {}
            for t in range(times):
                for u in range(len(target) + 1):
                    ways = []
                    if t > 0:
                        ways.append(alpha[t - 1, u] + logp[0, t - 1, u, blank])
                    if u > 0:
                        ways.append(alpha[t, u - 1] + logp[0, t, u - 1, target[u - 1]])
                    alpha[t, u] = torch.logsumexp(torch.stack(ways), 0) if ways else torch.zeros(())
            loss = -(alpha[times - 1, len(target)] + logp[0, times - 1, len(target), blank])
            g.case("rnnt", blank=blank, logits=logits, reduction=code)
            g.put(target=torch.tensor([target]))
            g.graded(loss, {"x": x})


def run():
    windows()
    layers()
    recurrent()
    losses()
