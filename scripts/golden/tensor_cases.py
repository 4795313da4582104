"""Golden values for functions on tensors: activations, convolutions, pools, attention, sampling, order."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from writer import Golden


def activations():
    g = Golden("kiln-tensor", "activation", 1)
    table = {
        "relu": F.relu,
        "relu6": F.relu6,
        "tanhshrink": F.tanhshrink,
        "gelu": F.gelu,
        "gelu_approximate": lambda x: F.gelu(x, approximate="tanh"),
        "sigmoid": torch.sigmoid,
        "log_sigmoid": F.logsigmoid,
        "silu": F.silu,
        "hard_swish": F.hardswish,
        "mish": F.mish,
        "tanh": torch.tanh,
        "selu": F.selu,
        "softsign": F.softsign,
    }
    for name, f in table.items():
        x = g.floats(3, 8, scale=3.0)
        g.case(name)
        g.graded(f(x), {"x": x})
    with_numbers = [
        ("hardtanh", {"min": -0.5, "max": 1.5}, lambda x, a: F.hardtanh(x, a["min"], a["max"])),
        ("leaky_relu", {"slope": 0.1}, lambda x, a: F.leaky_relu(x, a["slope"])),
        ("softplus", {"beta": 1.0}, lambda x, a: F.softplus(x, a["beta"])),
        ("softplus", {"beta": 2.5}, lambda x, a: F.softplus(x, a["beta"])),
        ("elu", {"alpha": 1.3}, lambda x, a: F.elu(x, a["alpha"])),
        ("celu", {"alpha": 1.7}, lambda x, a: F.celu(x, a["alpha"])),
        ("threshold", {"threshold": 0.4, "value": -2.0}, lambda x, a: F.threshold(x, a["threshold"], a["value"])),
        ("hard_shrink", {"lambda": 0.7}, lambda x, a: F.hardshrink(x, a["lambda"])),
        ("soft_shrink", {"lambda": 0.7}, lambda x, a: F.softshrink(x, a["lambda"])),
        ("hard_sigmoid", {"alpha": 1 / 6, "beta": 0.5}, lambda x, a: F.hardsigmoid(x)),
    ]
    for name, attrs, f in with_numbers:
        x = g.floats(3, 8, scale=3.0)
        g.case(name, **attrs)
        g.graded(f(x, attrs), {"x": x})
    for name, f in (("softmax", F.softmax), ("log_softmax", F.log_softmax), ("softmin", F.softmin), ("glu", F.glu)):
        for dim in (0, 1, 2):
            x = g.floats(2, 4, 6, scale=2.0)
            g.case(name, dim=dim)
            g.graded(f(x, dim), {"x": x})
    for n in (1, 3):
        x, alpha = g.floats(2, 3, 4), g.floats(n, scale=0.3)
        g.case("prelu")
        g.graded(F.prelu(x, alpha), {"x": x, "alpha": alpha})
    g.save()


def convolutions():
    g = Golden("kiln-tensor", "conv", 2)
    functions = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
    # n, input sizes, kernel, channels in/out, stride, padding, dilation, groups, bias
    forward = [
        (1, [9], [3], 2, 3, [1], [0], [1], 1, True),
        (1, [10], [3], 4, 6, [2], [1], [1], 2, True),
        (1, [11], [3], 3, 3, [1], [2], [2], 3, False),
        (2, [6, 7], [3, 3], 2, 3, [1, 1], [0, 0], [1, 1], 1, True),
        (2, [6, 7], [3, 2], 2, 3, [2, 1], [1, 0], [1, 1], 1, True),
        (2, [8, 7], [3, 3], 2, 2, [2, 2], [1, 1], [1, 1], 1, False),
        (2, [8, 9], [2, 3], 2, 4, [1, 2], [2, 1], [2, 1], 2, True),
        (2, [5, 6], [3, 3], 4, 4, [1, 1], [1, 1], [1, 1], 4, True),
        (2, [5, 6], [3, 3], 2, 4, [2, 1], [1, 1], [1, 1], 2, False),
        (2, [4, 5], [1, 1], 3, 5, [1, 1], [0, 0], [1, 1], 1, True),
        (2, [4, 4], [1, 1], 3, 2, [2, 2], [0, 0], [1, 1], 1, False),
        (2, [3, 3], [3, 3], 2, 2, [1, 1], [0, 0], [1, 1], 1, True),
        (3, [4, 4, 5], [2, 2, 3], 2, 2, [1, 1, 1], [0, 0, 0], [1, 1, 1], 1, True),
        (3, [4, 5, 4], [3, 2, 2], 2, 4, [2, 1, 2], [1, 0, 1], [1, 2, 1], 2, False),
    ]
    for n, sizes, kernel, cin, cout, stride, padding, dilation, groups, bias in forward:
        x = g.floats(2, cin, *sizes)
        weight = g.floats(cout, cin // groups, *kernel)
        b = g.floats(cout) if bias else None
        g.case(f"conv{n}d", stride=stride, padding=padding, padding_end=padding, dilation=dilation, groups=groups)
        y = functions[n](x, weight, b, stride, padding, dilation, groups)
        g.graded(y, {"x": x, "weight": weight, "bias": b})
    for begin, end in (([0, 1], [1, 0]), ([2, 0], [1, 3])):
        x, weight, b = g.floats(1, 2, 5, 5), g.floats(3, 2, 3, 3), g.floats(3)
        g.case("conv2d", stride=[1, 2], padding=begin, padding_end=end, dilation=[1, 1], groups=1)
        padded = F.pad(x, (begin[1], end[1], begin[0], end[0]))
        g.graded(F.conv2d(padded, weight, b, [1, 2]), {"x": x, "weight": weight, "bias": b})

    functions = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
    transposed = [
        (1, [5], [3], 2, 3, [1], [0], [0], [1], 1, True),
        (1, [5], [3], 4, 2, [2], [1], [1], [2], 2, True),
        (2, [4, 3], [3, 2], 2, 3, [1, 1], [0, 0], [0, 0], [1, 1], 1, True),
        (2, [3, 4], [3, 3], 2, 2, [2, 2], [1, 1], [1, 0], [1, 1], 1, False),
        (2, [3, 3], [2, 3], 4, 4, [2, 1], [0, 1], [1, 0], [2, 1], 2, True),
        (3, [2, 3, 2], [2, 2, 3], 2, 2, [2, 1, 1], [0, 1, 0], [1, 0, 0], [1, 1, 2], 1, True),
        (3, [2, 2, 3], [2, 1, 2], 2, 4, [1, 2, 2], [0, 0, 1], [0, 1, 1], [1, 1, 1], 2, False),
    ]
    for n, sizes, kernel, cin, cout, stride, padding, out, dilation, groups, bias in transposed:
        x = g.floats(2, cin, *sizes)
        weight = g.floats(cin, cout // groups, *kernel)
        b = g.floats(cout) if bias else None
        g.case(f"conv_transpose{n}d", stride=stride, padding=padding, padding_out=out, dilation=dilation, groups=groups)
        y = functions[n](x, weight, b, stride, padding, out, groups, dilation)
        g.graded(y, {"x": x, "weight": weight, "bias": b})

    for stride, padding, dilation in (([1, 1], [0, 0], [1, 1]), ([2, 1], [1, 0], [1, 2])):
        x = g.floats(2, 2, 5, 6)
        g.case("unfold4d", kernel=[2, 3], stride=stride, padding=padding, dilation=dilation)
        columns = F.unfold(x, [2, 3], dilation, padding, stride)
        g.graded(columns, {"x": x})
        c = columns.detach().clone().requires_grad_(True)
        g.case("fold4d", output=[5, 6], kernel=[2, 3], stride=stride, padding=padding, dilation=dilation)
        g.graded(F.fold(c, [5, 6], [2, 3], dilation, padding, stride), {"x": c})
    g.save()


def pools():
    g = Golden("kiln-tensor", "pool", 3)
    for size, kernel, stride, padding, dilation, ceil in (
        ([10], [3], [2], [1], [1], False),
        ([10], [3], [3], [0], [2], False),
        ([10], [3], [2], [0], [1], True),
    ):
        x = g.distinct(2, 2, *size)
        g.case("max_pool1d", kernel=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil)
        y, at = F.max_pool1d(x, kernel, stride, padding, dilation, ceil, return_indices=True)
        g.graded(y, {"x": x})
        g.put(indices=at)
    for size, kernel, stride, padding, dilation, ceil in (
        ([6, 6], [2, 2], [2, 2], [0, 0], [1, 1], False),
        ([7, 6], [3, 2], [2, 1], [1, 0], [1, 1], False),
        ([7, 7], [3, 3], [2, 2], [1, 1], [1, 1], False),
        ([7, 8], [2, 2], [1, 2], [1, 1], [2, 3], False),
        ([7, 8], [3, 3], [2, 2], [0, 0], [1, 1], True),
        ([6, 7], [3, 2], [2, 3], [1, 1], [1, 1], True),
    ):
        x = g.distinct(2, 2, *size)
        g.case("max_pool2d", kernel=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil)
        y, at = F.max_pool2d(x, kernel, stride, padding, dilation, ceil, return_indices=True)
        g.graded(y, {"x": x})
        g.put(indices=at)
    for count in (True, False):
        for ceil in (True, False):
            x = g.floats(2, 2, 10)
            g.case("avg_pool1d", kernel=[3], stride=[2], padding=[1], count_include_pad=count, ceil_mode=ceil)
            g.graded(F.avg_pool1d(x, 3, 2, 1, ceil, count), {"x": x})
            for size, kernel, stride, padding in (([6, 7], [2, 3], [2, 2], [1, 1]), ([7, 8], [3, 2], [2, 3], [0, 1])):
                x = g.floats(2, 2, *size)
                g.case("avg_pool2d", kernel=kernel, stride=stride, padding=padding, count_include_pad=count, ceil_mode=ceil)
                g.graded(F.avg_pool2d(x, kernel, stride, padding, ceil, count), {"x": x})
    for n, f in ((1, F.adaptive_avg_pool1d), (2, F.adaptive_avg_pool2d), (3, F.adaptive_avg_pool3d)):
        for out in (1, 2, 3):
            x = g.floats(2, 2, *[5, 7, 4][:n])
            output = [out, min(out + 1, 4), out][:n]
            g.case(f"adaptive_avg_pool{n}d", output=output)
            g.graded(f(x, output if n > 1 else output[0]), {"x": x})
    g.save()


def attention():
    g = Golden("kiln-tensor", "attention", 4)
    for causal, mask, bias, scale, tq, tk in (
        (False, False, False, None, 4, 4),
        (True, False, False, None, 5, 5),
        (False, True, False, None, 3, 5),
        (False, False, True, None, 4, 5),
        (False, True, True, 0.3, 4, 4),
        (False, False, False, None, 1, 6),
    ):
        q, k, v = g.floats(2, 2, tq, 4), g.floats(2, 2, tk, 4), g.floats(2, 2, tk, 3)
        hidden = (g.floats(2, 2, tq, tk, grad=False) > 0.5) if mask else None
        if hidden is not None:
            hidden[..., 0] = False
        added = g.floats(2, 2, tq, tk) if bias else None
        g.case("attention", is_causal=causal, scale=scale if scale is not None else 1 / math.sqrt(4))
        scores = q @ k.transpose(-1, -2) * (scale if scale is not None else 0.5)
        if added is not None:
            scores = scores + added
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        if causal:
            scores = scores.masked_fill(torch.ones(tq, tk, dtype=torch.bool).triu(1), -math.inf)
        y = torch.softmax(scores, -1) @ v
        allowed = None if hidden is None else ~hidden
        if allowed is not None and added is not None:
            allowed = added.masked_fill(hidden, -math.inf)
        reference = F.scaled_dot_product_attention(q, k, v, allowed if allowed is not None else added, is_causal=causal, scale=scale)
        assert torch.allclose(y, reference)
        # In `mask`, 1 hides the position.
        g.graded(y, {"q": q, "k": k, "v": v, "mask": hidden, "bias": added})
    g.save()


def sampling():
    g = Golden("kiln-tensor", "sampling", 5)
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        for output in ([7, 5], [2, 3], [4, 6]):
            for corners in (False, True) if mode in ("bilinear", "bicubic") else (False,):
                x = g.floats(1, 2, 4, 6)
                g.case(f"interpolate_{mode}", output=output, align_corners=corners)
                y = F.interpolate(x, output, mode=mode, align_corners=corners if mode in ("bilinear", "bicubic") else None)
                g.graded(y, {"x": x})
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (False, True):
                x, at = g.floats(2, 2, 4, 5), g.floats(2, 3, 3, 2, scale=0.8)
                g.case(f"grid_sample_{mode}_{padding}", align_corners=corners)
                y = F.grid_sample(x, at, mode, padding, corners)
                g.graded(y, {"x": x, "grid": at} if mode == "bilinear" else {"x": x, "grid": at.detach()})
    for corners in (False, True):
        theta = g.floats(2, 2, 3)
        g.case("affine_grid", size=[3, 4], align_corners=corners)
        g.graded(F.affine_grid(theta, [2, 1, 3, 4], align_corners=corners), {"theta": theta})
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            x, at = g.floats(2, 2, 4, 5), g.floats(2, 3, 3, 2, scale=0.8)
            g.case(f"grid_sample_bicubic_{padding}", align_corners=corners)
            g.graded(F.grid_sample(x, at, "bicubic", padding, corners), {"x": x, "grid": at})
    for output in ([9, 8], [2, 5], [6, 13]):
        for corners in (False, True):
            x = g.floats(1, 2, 6, 8)
            g.case("interpolate_lanczos3", output=output, align_corners=corners)
            y = lanczos3_matrix(6, output[0], corners) @ x @ lanczos3_matrix(8, output[1], corners).T
            g.graded(y, {"x": x})
    # PyTorch cuts the kernel off at the border, where this repeats the last pixel: in the middle they are the same.
    x = g.floats(1, 1, 12, 12)
    theirs = F.interpolate(x, [24, 30], mode="lanczos", antialias=True, align_corners=False)
    ours = lanczos3_matrix(12, 24, False) @ x @ lanczos3_matrix(12, 30, False).T
    assert torch.allclose(ours[..., 8:-8, 10:-10], theirs[..., 8:-8, 10:-10])
    g.save()


def lanczos3_matrix(size, output, corners):
    """The weights of `size` pixels in each of `output` ones: a windowed sinc over three pixels to each side (C. Duchon, 1979), divided by its sum; the last pixel is repeated."""
    weights = np.zeros((output, size))
    for i in range(output):
        place = i * (size - 1) / (output - 1) if corners else (i + 0.5) * size / output - 0.5
        for k in range(int(np.floor(place)) - 4, int(np.ceil(place)) + 5):
            if abs(place - k) < 3:
                weights[i, min(max(k, 0), size - 1)] += np.sinc(place - k) * np.sinc((place - k) / 3)
    return torch.from_numpy(weights / weights.sum(1, keepdims=True))


def order():
    g = Golden("kiln-tensor", "order", 6)
    for dim in (0, 1, 2):
        for descending in (False, True):
            x = g.distinct(3, 4, 5)
            y, at = torch.sort(x, dim, descending)
            g.case("sort", dim=dim, descending=descending)
            g.graded(y, {"x": x})
            g.put(indices=at)
        x = g.distinct(3, 4, 5)
        y, at = torch.topk(x, 2, dim)
        g.case("topk", dim=dim, k=2)
        g.graded(y, {"x": x})
        g.put(indices=at)
        for name, f in (("cumsum", torch.cumsum), ("cumprod", torch.cumprod)):
            x = g.floats(3, 4, 5)
            g.case(name, dim=dim)
            g.graded(f(x, dim), {"x": x})
        for name, f in (("cummax", torch.cummax), ("cummin", torch.cummin)):
            x = g.distinct(3, 4, 5)
            g.case(name, dim=dim)
            g.graded(f(x, dim)[0], {"x": x})
        for name, f in (("max_dim", torch.max), ("min_dim", torch.min)):
            x = g.distinct(3, 4, 5)
            y, at = f(x, dim, True)
            g.case(name, dim=dim)
            g.graded(y, {"x": x})
            g.put(indices=at)
        for correction in (0, 1):
            x = g.floats(3, 4, 5)
            g.case("var", dim=dim, correction=correction)
            g.graded(x.var(dim, correction=correction, keepdim=True), {"x": x})
        x = g.floats(3, 4, 5)
        with torch.no_grad():
            x[1, 2, 3] = 0.0
        g.case("prod", dim=dim)
        g.graded(x.prod(dim, keepdim=True), {"x": x})
    for dim in (0, 1):
        x, at = g.floats(3, 4), g.ints(2, 3, below=3)
        g.case("gather", dim=dim)
        g.graded(torch.gather(x, dim, at), {"x": x, "indices": at})
        x, at, v = g.floats(3, 4), g.ints(2, 3, below=3), g.floats(2, 3)
        g.case("scatter_add", dim=dim)
        g.graded(x.scatter_add(dim, at, v), {"x": x, "indices": at, "values": v})
        x, at = g.floats(3, 4), g.ints(5, below=3)
        g.case("select", dim=dim)
        g.graded(torch.index_select(x, dim, at), {"x": x, "indices": at})
        v = g.floats(*([5, 4] if dim == 0 else [3, 5]))
        g.case("select_assign_add", dim=dim)
        g.graded(x.index_add(dim, at, v), {"x": x, "indices": at, "values": v})
    for lhs, rhs in (([3, 4], [4, 2]), ([2, 3, 4], [2, 4, 2]), ([2, 1, 3, 4], [1, 3, 4, 2]), ([1, 5], [5, 1])):
        a, b = g.floats(*lhs), g.floats(*rhs)
        g.case("matmul")
        g.graded(a @ b, {"a": a, "b": b})
    g.save()


def run():
    activations()
    convolutions()
    pools()
    attention()
    sampling()
    order()
