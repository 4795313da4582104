"""Golden values for layers made of layers, and for layers that PyTorch lacks, by independent formulas. Parameters carry their paths in Kiln's modules."""
import torch
import torch.nn as nn
import torch.nn.functional as F

from writer import Golden


def call(module, state, *args, **kwargs):
    return torch.func.functional_call(module.double(), state, args, kwargs)


def recurrent(g):
    """Two layers, each in both directions: what a user stacks in Kiln."""
    b, t, i, h = 2, 4, 3, 2
    kinds = {
        "bi_lstm": (nn.LSTM, ["input_gate", "forget_gate", "cell_gate", "output_gate"]),
        "bi_gru": (nn.GRU, ["reset_gate", "update_gate", "new_gate"]),
        "bi_rnn": (nn.RNN, ["gate"]),
    }
    for name, (kind, gates) in kinds.items():
        x, params, state = g.floats(b, t, i), {}, {}
        for layer, size in ((0, i), (1, 2 * h)):
            for way, suffix in (("forward", ""), ("reverse", "_reverse")):
                wi, wh, bi, bh = [], [], [], []
                for gate in gates:
                    path = f"{layer}.{way}.{gate}"
                    for part, inputs, weights, biases in (("input", size, wi, bi), ("hidden", h, wh, bh)):
                        w = params[f"{path}.{part}_transform.weight"] = g.floats(inputs, h, scale=0.5)
                        v = params[f"{path}.{part}_transform.bias"] = g.floats(h, scale=0.5)
                        weights.append(w.T)
                        biases.append(v)
                at = f"_l{layer}{suffix}"
                state.update({f"weight_ih{at}": torch.cat(wi), f"weight_hh{at}": torch.cat(wh)})
                state.update({f"bias_ih{at}": torch.cat(bi), f"bias_hh{at}": torch.cat(bh)})
        net = kind(i, h, num_layers=2, bidirectional=True, batch_first=True)
        y, _ = call(net, state, x)
        g.case(name, input=i, hidden=h)
        g.graded(y, {"x": x, **params})


def linear(g, params, path, i, o):
    w = params[f"{path}.weight"] = g.floats(i, o, scale=0.5)
    b = params[f"{path}.bias"] = g.floats(o, scale=0.5)
    return w, b


def attention(g, params, path, d):
    parts = [linear(g, params, f"{path}.{n}", d, d) for n in ("query", "key", "value", "output")]
    (q, k, v, o) = parts
    return {
        "in_proj_weight": torch.cat([p[0].T for p in (q, k, v)]),
        "in_proj_bias": torch.cat([p[1] for p in (q, k, v)]),
        "out_proj.weight": o[0].T,
        "out_proj.bias": o[1],
    }


def norm(g, params, path, d):
    return {"weight": params.setdefault(f"{path}.gamma", g.floats(d)), "bias": params.setdefault(f"{path}.beta", g.floats(d, scale=0.5))}


def transformers(g):
    d, ff, heads = 4, 6, 2
    for first in (False, True):
        # Where norms come first, Kiln names the one at the start last, as Burn's records do.
        encoder_norms = ["norm_2", "norm_1"] if first else ["norm_1", "norm_2"]
        decoder_norms = ["norm_3", "norm_1", "norm_2"] if first else ["norm_1", "norm_2", "norm_3"]
        for kind, norms in (("encoder", encoder_norms), ("decoder", decoder_norms)):
            params, state = {}, {}
            for layer in range(2):
                path, to = f"layers.{layer}", f"layers.{layer}."
                blocks = [("mha", "self_attn")] if kind == "encoder" else [("self_attn", "self_attn"), ("cross_attn", "multihead_attn")]
                for ours, theirs in blocks:
                    state.update({f"{to}{theirs}.{k}": v for k, v in attention(g, params, f"{path}.{ours}", d).items()})
                for ours, theirs, i, o in (("linear_inner", "linear1", d, ff), ("linear_outer", "linear2", ff, d)):
                    w, b = linear(g, params, f"{path}.pwff.{ours}", i, o)
                    state.update({f"{to}{theirs}.weight": w.T, f"{to}{theirs}.bias": b})
                for n, ours in enumerate(norms):
                    state.update({f"{to}norm{n + 1}.{k}": v for k, v in norm(g, params, f"{path}.{ours}", d).items()})
            x, memory = g.floats(2, 3, d), g.floats(2, 5, d)
            pad = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
            causal = torch.ones(3, 3, dtype=torch.bool).triu(1)
            make = {"encoder": nn.TransformerEncoderLayer, "decoder": nn.TransformerDecoderLayer}[kind]
            layer = make(d, heads, ff, 0.0, "gelu", batch_first=True, norm_first=first)
            stack = {"encoder": lambda: nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), "decoder": lambda: nn.TransformerDecoder(layer, 2)}[kind]()
            g.case(f"transformer_{kind}", norm_first=first)
            if kind == "encoder":
                y = call(stack, state, x, mask=causal)
                g.graded(y, {"x": x, **params})
            else:
                g.put(pad=pad)
                y = call(stack, state, x, memory, tgt_mask=causal, memory_key_padding_mask=pad)
                g.graded(y, {"x": x, "memory": memory, **params})


def feed_forward(g):
    params, x = {}, g.floats(2, 3, 4)
    (w1, b1), (w2, b2) = linear(g, params, "linear_inner", 4, 6), linear(g, params, "linear_outer", 6, 4)
    g.case("pwff")
    g.graded(F.gelu(x @ w1 + b1) @ w2 + b2, {"x": x, **params})


def cross_attention(g):
    d, context_size, heads, shared, size = 4, 3, 4, 2, 2
    for masked in (False, True):
        params, x, context = {}, g.floats(2, 3, d), g.floats(2, 5, context_size)
        w, b = linear(g, params, "query", d, heads * size)
        q = (x @ w + b).reshape(2, 3, heads, size).transpose(1, 2)
        w, b = linear(g, params, "key", context_size, shared * size)
        k = (context @ w + b).reshape(2, 5, shared, size).transpose(1, 2)
        w, b = linear(g, params, "value", context_size, shared * size)
        v = (context @ w + b).reshape(2, 5, shared, size).transpose(1, 2)
        pad = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]) if masked else None
        keep = None if pad is None else ~pad[:, None, None, :]
        # Each head of keys and values serves the heads of queries that follow each other.
        y = F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), keep)
        w, b = linear(g, params, "output", heads * size, d)
        y = y.transpose(1, 2).reshape(2, 3, heads * size) @ w + b
        g.case("cross_attention")
        g.put(pad=pad)
        g.graded(y, {"x": x, "context": context, **params})


def positions(g):
    x, start = g.floats(2, 5, 6), 2
    angle = (torch.arange(5) + start)[:, None] * 10000.0 ** (-torch.arange(0, 6, 2) / 6)
    pairs = torch.view_as_complex(x.reshape(2, 5, 3, 2)) * torch.polar(torch.ones_like(angle), angle)
    g.case("rotary_encoding", start=start)
    g.graded(torch.view_as_real(pairs).reshape(2, 5, 6), {"x": x})
    angle = torch.arange(5)[:, None] * 10000.0 ** (-torch.arange(0, 6, 2) / 6)
    table = torch.stack([angle.sin(), angle.cos()], 2).reshape(5, 6)
    g.case("positional_encoding")
    g.graded(x + table, {"x": x})


def sampled(image, y, x):
    """The bilinear value of `image` [channels, height, width] at points, where everything outside is zero."""
    height, width = image.shape[1:]
    total = 0
    for row in (y.detach().floor(), y.detach().floor() + 1):
        for column in (x.detach().floor(), x.detach().floor() + 1):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            values = image[:, row.clamp(0, height - 1).long(), column.clamp(0, width - 1).long()]
            total = total + values * ((1 - (y - row).abs()) * (1 - (x - column).abs()) * inside)
    return total


def deform_conv2d(g):
    options = [(1, 0, 1, 1, 1, False, True), (2, 1, 1, 1, 2, True, True), (1, 2, 2, 2, 1, True, False), (1, 1, 1, 2, 2, True, True)]
    for stride, padding, dilation, groups, sharing, masked, biased in options:
        n, c, o, size, kernel = 2, 4, 4, 5, 2
        out = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        x, weight = g.floats(n, c, size, size), g.floats(o, c // groups, kernel, kernel)
        offset = g.floats(n, 2 * sharing * kernel * kernel, out, out, scale=0.7)
        with torch.no_grad():
            # On a pixel's row or column the value has a bend.
            offset[(offset - offset.round()).abs() < 0.01] += 0.125
            offset.copy_(offset.float().double())
        mask = g.floats(n, sharing * kernel * kernel, out, out) if masked else None
        bias = g.floats(o) if biased else None
        rows, columns = torch.meshgrid(torch.arange(out) * stride - padding, torch.arange(out) * stride - padding, indexing="ij")
        images = []
        for b in range(n):
            taps = []
            for tap in range(kernel * kernel):
                parts = []
                for s in range(sharing):
                    at = s * kernel * kernel + tap
                    y = rows + (tap // kernel) * dilation + offset[b, 2 * at]
                    z = columns + (tap % kernel) * dilation + offset[b, 2 * at + 1]
                    part = sampled(x[b, s * c // sharing:(s + 1) * c // sharing], y, z)
                    parts.append(part if mask is None else part * mask[b, at])
                taps.append(torch.cat(parts))
            taps = torch.stack(taps, 1).reshape(groups, c // groups, kernel * kernel, out, out)
            w = weight.reshape(groups, o // groups, c // groups, kernel * kernel)
            images.append(torch.einsum("goik,gikyx->goyx", w, taps).reshape(o, out, out))
        result = torch.stack(images)
        if bias is not None:
            result = result + bias[:, None, None]
        g.case("deform_conv2d", stride=stride, padding=padding, dilation=dilation, groups=groups, sharing=sharing)
        g.graded(result, {"x": x, "offset": offset, "mask": mask, "weight": weight, "bias": bias})


def powers(g):
    for p in (1.5, 3.0):
        x, target = g.floats(3, 4), g.floats(3, 4, grad=False)
        g.case("lp", p=p)
        g.graded((x - target).abs().pow(p).mean(), {"x": x, "target": target})


def transducer(g):
    """The probability of a target is the sum over all its alignments, by the forward recursion of Graves 2012."""
    times, classes, target = 4, 4, [2, 1]
    x = g.floats(1, times, len(target) + 1, classes)
    logp = F.log_softmax(x[0], 2)
    alpha = {}
    for t in range(times):
        for u in range(len(target) + 1):
            ways = []
            if t > 0:
                ways.append(alpha[t - 1, u] + logp[t - 1, u, 0])
            if u > 0:
                ways.append(alpha[t, u - 1] + logp[t, u - 1, target[u - 1]])
            alpha[t, u] = torch.logsumexp(torch.stack(ways), 0) if ways else torch.zeros(())
    loss = -(alpha[times - 1, len(target)] + logp[times - 1, len(target), 0])
    g.case("rnnt", blank=0)
    g.put(target=torch.tensor([target]))
    g.graded(loss, {"x": x})


def run():
    g = Golden("kiln-nn", "composite", 17)
    recurrent(g)
    transformers(g)
    feed_forward(g)
    cross_attention(g)
    positions(g)
    deform_conv2d(g)
    powers(g)
    transducer(g)
    g.save()
