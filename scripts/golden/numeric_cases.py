"""Golden values for factorisations, norms, Fourier transforms, sequence losses, deformable convolutions, and slopes where functions bend."""
import math

import torch
import torch.nn.functional as F

from writer import Golden


def linear_algebra():
    g = Golden("kiln-tensor", "linalg", 30)
    for shape in ([3, 3], [4, 4], [2, 3, 3]):
        x = g.floats(*shape)
        g.case("det")
        g.graded(torch.linalg.det(x), {"x": x})
        x = g.floats(*shape)
        p, l, u = torch.linalg.lu(x)
        g.case("lu")
        g.graded(torch.cat([l, u], -1), {"x": x})
        g.put(p=p)
    for shape in ([3, 3], [5, 3], [2, 4, 3]):
        x = g.floats(*shape)
        q, r = torch.linalg.qr(x)
        # The signs are free: here the diagonal of R is not negative.
        signs = torch.sign(torch.diagonal(r, dim1=-2, dim2=-1)).detach()
        q, r = q * signs.unsqueeze(-2), r * signs.unsqueeze(-1)
        g.case("qr")
        g.graded(torch.cat([q, r], -2), {"x": x})
    for shape in ([3, 3], [5, 3], [3, 5], [2, 4, 3]):
        x = g.floats(*shape)
        u, s, vt = torch.linalg.svd(x, full_matrices=False)
        g.case("singular_values")
        g.graded(s, {"x": x})
        # The best approximation of rank two: free of the factors' signs.
        x = g.floats(*shape)
        u, s, vt = torch.linalg.svd(x, full_matrices=False)
        g.case("rank_two")
        g.graded((u[..., :2] * s[..., None, :2]) @ vt[..., :2, :], {"x": x})
    for name, order in (("l1_norm", 1), ("l2_norm", 2), ("max_abs_norm", math.inf), ("min_abs_norm", -math.inf), ("lp_norm", 3), ("lp_norm", 0.5)):
        for dim in (0, 1):
            x = g.floats(3, 4)
            g.case(name, dim=dim, p=float(order) if math.isfinite(order) else 0.0)
            g.graded(torch.linalg.vector_norm(x, order, dim, keepdim=True), {"x": x})
    x = g.floats(3, 4)
    with torch.no_grad():
        x[0, 1] = x[2, 2] = 0.0
    g.case("l0_norm", dim=1)
    g.put(x=x, y=torch.linalg.vector_norm(x, 0, 1, keepdim=True))
    x = g.floats(3, 4)
    g.case("vector_normalize", dim=1)
    g.graded(F.normalize(x, 2.0, 1, 1e-12), {"x": x})
    for dim in (0, 1):
        a, b = g.floats(3, 4), g.floats(3, 4)
        g.case("cosine_similarity", dim=dim)
        g.graded(F.cosine_similarity(a, b, dim).unsqueeze(dim), {"a": a, "b": b})
    x = g.floats(2, 3, 3)
    g.case("trace")
    g.graded(torch.diagonal(x, dim1=-2, dim2=-1).sum(-1), {"x": x})
    x = g.floats(2, 3, 4)
    g.case("diag")
    g.graded(torch.diagonal(x, dim1=-2, dim2=-1), {"x": x})
    a, b = g.floats(3), g.floats(4)
    g.case("outer")
    g.graded(torch.outer(a, b), {"a": a, "b": b})
    a, b = g.floats(2, 3, 4), g.floats(2, 4)
    g.case("matvec")
    g.graded((a @ b.unsqueeze(-1)).squeeze(-1), {"a": a, "b": b})
    g.save()


def transforms():
    g = Golden("kiln-tensor", "fft", 31)
    for size in (1, 2, 5, 8, 12):
        for n in (None, 6, 9):
            x = g.floats(2, size)
            z = torch.fft.rfft(x, n, 1)
            g.case("rfft", n=n or 0, dim=1)
            g.graded(torch.stack([z.real, z.imag]), {"x": x})
    x = g.floats(4, 3)
    z = torch.fft.rfft(x, None, 0)
    g.case("rfft", n=0, dim=0)
    g.graded(torch.stack([z.real, z.imag]), {"x": x})
    for size, n in ((2, None), (5, None), (5, 9), (5, 7), (4, 12)):
        re, im = g.floats(2, size), g.floats(2, size)
        g.case("irfft", n=n or 0)
        g.graded(torch.fft.irfft(torch.complex(re, im), n, 1), {"re": re, "im": im})
    for size, n in ((1, None), (5, None), (8, None), (6, 4), (3, 7)):
        re, im = g.floats(2, size), g.floats(2, size)
        z = torch.fft.fft(torch.complex(re, im), n, 1)
        g.case("cfft", n=n or 0)
        g.graded(torch.stack([z.real, z.imag]), {"re": re, "im": im})
    for size in (1, 2, 7, 8):
        for periodic in (False, True):
            for name, f in (("hann", torch.hann_window), ("hamming", torch.hamming_window), ("blackman", torch.blackman_window)):
                g.case(f"{name}_window", size=size, periodic=periodic)
                g.put(y=f(size, periodic=periodic))
    for n_fft, hop, center, onesided, window in ((8, 2, True, True, True), (8, 4, False, True, True), (6, 3, True, False, False), (5, 2, True, True, False)):
        x = g.floats(2, 24)
        w = torch.hann_window(n_fft) if window else None
        z = torch.stft(x, n_fft, hop, n_fft, w, center, "reflect", False, onesided, return_complex=True)
        g.case("stft", n_fft=n_fft, hop=hop, center=center, onesided=onesided, window=window)
        g.graded(torch.view_as_real(z), {"x": x})
    g.save()


def sequences():
    g = Golden("kiln-tensor", "ctc", 32)
    for steps, classes, targets, inputs, lengths, blank in (
        (5, 4, [[1, 2], [3, 0]], [5, 4], [2, 1], 0),
        (6, 3, [[1, 1, 2], [2, 1, 0]], [6, 5], [3, 2], 0),
        (4, 4, [[0, 1], [2, 2]], [4, 3], [2, 2], 3),
    ):
        x = g.floats(steps, 2, classes)
        at = torch.tensor(targets)
        input_lengths, target_lengths = torch.tensor(inputs), torch.tensor(lengths)
        y = F.ctc_loss(torch.log_softmax(x, -1), at, input_lengths, target_lengths, blank, "none")
        g.case("ctc_loss", blank=blank)
        g.graded(y, {"x": x, "targets": at, "input_lengths": input_lengths, "target_lengths": target_lengths})
    g.save()


def sampled(x, y_at, x_at):
    """Bilinear samples of `x` [c, h, w] at rows and columns of one shape; zero outside."""
    h, w = x.shape[1:]
    top, left = torch.floor(y_at), torch.floor(x_at)
    total = 0
    for i in (0, 1):
        for j in (0, 1):
            row, col = top + i, left + j
            down, right = y_at - top, x_at - left
            weight = (down if i else 1 - down) * (right if j else 1 - right)
            inside = (row >= 0) & (row < h) & (col >= 0) & (col < w)
            value = x[:, row.clamp(0, h - 1).long(), col.clamp(0, w - 1).long()]
            total = total + torch.where(inside, weight, torch.zeros_like(weight)) * value
    return total


def deform(x, offset, weight, mask, bias, stride, padding, dilation, weight_groups, offset_groups):
    """Deformable convolution by its definition (X. Zhu et al., 2018), one kernel element after the other."""
    n, c, h, w = x.shape
    out, inner, kh, kw = weight.shape
    oh = (h + 2 * padding[0] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (w + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    rows = torch.arange(oh).reshape(-1, 1) * stride[0] - padding[0]
    cols = torch.arange(ow).reshape(1, -1) * stride[1] - padding[1]
    images = []
    for b in range(n):
        result = torch.zeros(out, oh, ow, dtype=x.dtype)
        for group in range(offset_groups):
            channels = slice(group * c // offset_groups, (group + 1) * c // offset_groups)
            for k in range(kh * kw):
                at = group * kh * kw + k
                y_at = rows + (k // kw) * dilation[0] + offset[b, 2 * at]
                x_at = cols + (k % kw) * dilation[1] + offset[b, 2 * at + 1]
                column = sampled(x[b, channels], y_at, x_at)
                if mask is not None:
                    column = column * mask[b, at]
                for i, channel in enumerate(range(*channels.indices(c))):
                    wgroup = channel // inner
                    outs = slice(wgroup * out // weight_groups, (wgroup + 1) * out // weight_groups)
                    add = torch.zeros_like(result)
                    add[outs] = weight[outs, channel % inner, k // kw, k % kw].reshape(-1, 1, 1) * column[i]
                    result = result + add
        images.append(result if bias is None else result + bias.reshape(-1, 1, 1))
    return torch.stack(images)


def deformable():
    g = Golden("kiln-tensor", "deform", 33)
    for stride, padding, dilation, wg, og, masked, biased in (
        ([1, 1], [0, 0], [1, 1], 1, 1, True, True),
        ([2, 1], [1, 0], [1, 1], 1, 2, True, False),
        ([1, 1], [1, 1], [1, 2], 2, 1, False, True),
        ([1, 2], [1, 1], [2, 1], 2, 2, True, True),
    ):
        x, weight = g.floats(1, 4, 5, 6), g.floats(2, 4 // wg, 2, 3)
        oh = (5 + 2 * padding[0] - dilation[0] - 1) // stride[0] + 1
        ow = (6 + 2 * padding[1] - 2 * dilation[1] - 1) // stride[1] + 1
        offset = g.floats(1, 2 * og * 6, oh, ow, scale=0.7)
        mask = g.floats(1, og * 6, oh, ow) if masked else None
        bias = g.floats(2) if biased else None
        g.case("deform_conv2d", stride=stride, padding=padding, dilation=dilation, weight_groups=wg, offset_groups=og)
        y = deform(x, offset, weight, mask, bias, stride, padding, dilation, wg, og)
        g.graded(y, {"x": x, "offset": offset, "weight": weight, "mask": mask, "bias": bias})
    g.save()


def attention_options():
    g = Golden("kiln-tensor", "attention_options", 34)
    for heads, groups, softcap, causal in ((4, 2, None, False), (4, 1, None, True), (2, 2, 1.5, False), (4, 2, 0.8, True)):
        q, k, v = g.floats(2, heads, 3, 4), g.floats(2, groups, 3, 4), g.floats(2, groups, 3, 2)
        keys, values = (t.repeat_interleave(heads // groups, 1) for t in (k, v))
        scores = q @ keys.transpose(-1, -2) * 0.5
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if causal:
            scores = scores.masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), -math.inf)
        g.case("attention", softcap=softcap or 0.0, is_causal=causal)
        g.graded(torch.softmax(scores, -1) @ values, {"q": q, "k": k, "v": v})
    g.save()


def bends():
    g = Golden("kiln-tensor", "bend", 35)
    table = {
        "relu": (F.relu, [0.0, -1.0, 1.0]),
        "relu6": (F.relu6, [0.0, 6.0, -1.0, 3.0, 7.0]),
        "hardtanh": (F.hardtanh, [-1.0, 1.0, 0.0, 2.0]),
        "hard_sigmoid": (F.hardsigmoid, [-3.0, 3.0, 0.0]),
        "hard_swish": (F.hardswish, [-3.0, 3.0, 0.0, 4.0]),
        "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), [0.0, -1.0, 1.0]),
        "elu": (lambda x: F.elu(x, 2.0), [0.0, -1.0, 1.0]),
        "celu": (lambda x: F.celu(x, 2.0), [0.0, -1.0, 1.0]),
        "selu": (F.selu, [0.0, -1.0, 1.0]),
        "threshold": (lambda x: F.threshold(x, 0.5, 2.0), [0.5, 1.0, 0.0]),
        "soft_shrink": (lambda x: F.softshrink(x, 0.5), [-0.5, 0.5, 0.0, 1.0]),
        "hard_shrink": (lambda x: F.hardshrink(x, 0.5), [-0.5, 0.5, 0.0, 1.0]),
        "softsign": (F.softsign, [0.0, 1.0, -1.0]),
        "abs": (torch.abs, [0.0, -1.0, 1.0]),
        "prelu": (lambda x: F.prelu(x, torch.tensor([0.25])), [0.0, -1.0, 1.0]),
        "clamp": (lambda x: x.clamp(-1.0, 1.0), [-1.0, 1.0, 0.0, 2.0, -2.0]),
        "clamp_min": (lambda x: x.clamp(min=0.5), [0.5, 1.0, 0.0]),
        "clamp_max": (lambda x: x.clamp(max=0.5), [0.5, 1.0, 0.0]),
    }
    for name, (f, values) in table.items():
        x = torch.tensor(values, requires_grad=True)
        g.case(name)
        g.graded(f(x), {"x": x})
    g.save()


def run():
    linear_algebra()
    transforms()
    sequences()
    deformable()
    attention_options()
    bends()
