"""Golden values for layers over windows (convolutions, pools, folds, interpolation) and for activation modules."""
import torch
import torch.nn.functional as F

from writer import Golden


def convolutions():
    g = Golden("kiln-nn", "conv", 16)
    sizes = {1: [7], 2: [4, 5], 3: [3, 4, 4]}
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
    transposed = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
    for rank in (1, 2, 3):
        kernel = [3, 2, 2][:rank] if rank < 3 else [2, 2, 1]
        for stride, dilation, groups, padding, bias in ((1, 1, 1, 0, True), (2, 1, 2, 1, True), (1, 2, 1, 2, False), (3, 1, 1, 1, True)):
            x = g.floats(1, 2, *sizes[rank])
            weight, b = g.floats(4, 2 // groups, *kernel), g.floats(4) if bias else None
            g.case(f"conv{rank}d", kernel=kernel, stride=stride, dilation=dilation, groups=groups, padding=padding, bias=bias)
            g.graded(conv[rank](x, weight, b, stride, padding, dilation, groups), {"x": x, "weight": weight, "bias": b})
        for stride, dilation, groups, padding, out, bias in ((1, 1, 1, 0, 0, True), (2, 1, 2, 1, 1, True), (1, 2, 1, 1, 0, False), (3, 2, 1, 2, 2, True)):
            x = g.floats(1, 2, *[size - 1 for size in sizes[rank]])
            weight, b = g.floats(2, 4 // groups, *kernel), g.floats(4) if bias else None
            g.case(f"conv_transpose{rank}d", kernel=kernel, stride=stride, dilation=dilation, groups=groups, padding=padding, padding_out=out, bias=bias)
            g.graded(transposed[rank](x, weight, b, stride, padding, out, groups, dilation), {"x": x, "weight": weight, "bias": b})
    g.save()


def pools():
    g = Golden("kiln-nn", "pool", 17)
    for stride, padding, dilation, ceil in ((1, 0, 1, False), (2, 1, 1, False), (2, 1, 1, True), (2, 0, 2, True)):
        options = dict(stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil)
        x = g.distinct(2, 2, 9)
        g.case("max_pool1d", kernel=3, **options)
        g.graded(F.max_pool1d(x, 3, **options), {"x": x})
        x = g.distinct(1, 2, 6, 7)
        g.case("max_pool2d", kernel=[2, 3], **options)
        g.graded(F.max_pool2d(x, [2, 3], **options), {"x": x})
    for stride, padding, ceil, pad in ((1, 0, False, True), (2, 1, False, True), (2, 1, True, True), (2, 1, False, False), (2, 1, True, False)):
        options = dict(stride=stride, padding=padding, ceil_mode=ceil, count_include_pad=pad)
        x = g.floats(2, 2, 9)
        g.case("avg_pool1d", kernel=3, **options)
        g.graded(F.avg_pool1d(x, 3, **options), {"x": x})
        x = g.floats(1, 2, 6, 7)
        g.case("avg_pool2d", kernel=[2, 3], **options)
        g.graded(F.avg_pool2d(x, [2, 3], **options), {"x": x})
    for size in (1, 3, 5):
        x = g.floats(2, 2, 7)
        g.case("adaptive_avg_pool1d", size=size)
        g.graded(F.adaptive_avg_pool1d(x, size), {"x": x})
    for size in ([1, 1], [3, 2], [6, 4]):
        x = g.floats(1, 2, 6, 7)
        g.case("adaptive_avg_pool2d", size=size)
        g.graded(F.adaptive_avg_pool2d(x, size), {"x": x})
    x = g.floats(1, 2, 4, 5, 3)
    g.case("adaptive_avg_pool3d", size=[2, 3, 2])
    g.graded(F.adaptive_avg_pool3d(x, [2, 3, 2]), {"x": x})
    g.save()


def resizes():
    g = Golden("kiln-nn", "resize", 18)
    for size in (3, 5, 11):
        x = g.floats(1, 2, 5)
        g.case("interpolate1d_nearest", size=size)
        g.graded(F.interpolate(x, size, mode="nearest"), {"x": x})
        for corners in (True, False):
            x = g.floats(1, 2, 5)
            g.case("interpolate1d_linear", size=size, corners=corners)
            g.graded(F.interpolate(x, size, mode="linear", align_corners=corners), {"x": x})
    for size in ([3, 3], [5, 8]):
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
            for corners in (True, False) if mode.startswith("bi") else (None,):
                x = g.floats(1, 1, 4, 5)
                g.case("interpolate2d_" + mode.replace("-", "_"), size=size, corners=bool(corners))
                g.graded(F.interpolate(x, size, mode=mode, align_corners=corners), {"x": x})
    x = g.floats(1, 1, 4, 6)
    g.case("interpolate2d_scale", scale=[1.5, 2.0])
    g.graded(F.interpolate(x, scale_factor=(1.5, 2.0), mode="bilinear", align_corners=False), {"x": x})
    for kernel, stride, dilation, padding in (([2, 3], [1, 1], [1, 1], [0, 0]), ([2, 2], [2, 1], [1, 2], [1, 1])):
        x = g.floats(2, 2, 4, 5)
        options = dict(dilation=dilation, padding=padding, stride=stride)
        g.case("unfold", kernel=kernel, **options)
        y = F.unfold(x, kernel, **options)
        g.graded(y, {"x": x})
        x = g.floats(*y.shape)
        g.case("fold", kernel=kernel, size=[4, 5], **options)
        g.graded(F.fold(x, [4, 5], kernel, **options), {"x": x})
    g.save()


def activations():
    g = Golden("kiln-nn", "activation", 19)
    # Values on both sides of every bend, and far out; the derivative at a bend itself is a matter of taste.
    inputs = [-30.0, -6.5, -3.25, -2.0, -1.125, -0.75, -0.3, 0.05, 0.2, 0.45, 0.8, 1.25, 2.5, 3.5, 7.0, 25.0]

    def shrink(x, bound, bias):
        return torch.where(x > bound, x - bias, torch.where(x < -bound, x + bias, torch.zeros_like(x)))

    table = [
        ("celu", dict(alpha=0.7), lambda x: F.celu(x, 0.7)),
        ("elu", dict(alpha=0.7), lambda x: F.elu(x, 0.7)),
        ("gelu", {}, F.gelu),
        ("gelu_approximate", {}, lambda x: F.gelu(x, approximate="tanh")),
        ("glu", {}, lambda x: F.glu(x.reshape(4, 4), 1)),
        ("hard_shrink", dict(bound=0.4), lambda x: F.hardshrink(x, 0.4)),
        ("hard_sigmoid", dict(alpha=1 / 6, beta=0.5), F.hardsigmoid),
        ("hard_swish", {}, F.hardswish),
        ("hardtanh", dict(low=-1.0, high=2.0), lambda x: F.hardtanh(x, -1.0, 2.0)),
        ("leaky_relu", dict(slope=0.1), lambda x: F.leaky_relu(x, 0.1)),
        ("log_sigmoid", {}, F.logsigmoid),
        ("mish", {}, F.mish),
        ("prelu", dict(alpha=0.2), lambda x: F.prelu(x, torch.tensor([0.2]))),
        ("relu", {}, F.relu),
        ("relu6", {}, F.relu6),
        ("rrelu", dict(low=0.1, high=0.3), lambda x: F.rrelu(x, 0.1, 0.3, training=False)),
        ("selu", {}, F.selu),
        ("shrink", dict(bound=0.6, bias=0.25), lambda x: shrink(x, 0.6, 0.25)),
        ("sigmoid", {}, torch.sigmoid),
        ("silu", {}, F.silu),
        ("soft_shrink", dict(bound=0.4), lambda x: F.softshrink(x, 0.4)),
        ("softplus", dict(beta=2.0, threshold=5.0), lambda x: F.softplus(x, 2.0, 5.0)),
        ("softsign", {}, F.softsign),
        ("tanh", {}, torch.tanh),
        ("tanhshrink", {}, F.tanhshrink),
        ("threshold", dict(threshold=0.5, value=-2.0), lambda x: F.threshold(x, 0.5, -2.0)),
        ("thresholded_relu", dict(alpha=0.5), lambda x: torch.where(x > 0.5, x, torch.zeros_like(x))),
    ]
    for name, attrs, function in table:
        x = torch.tensor(inputs, requires_grad=True)
        g.case(name, **attrs)
        g.graded(function(x), {"x": x})
    x, inner, outer = g.floats(3, 4), g.floats(4, 5), g.floats(4, 5)
    g.case("swi_glu")
    g.graded(F.silu(x @ inner) * (x @ outer), {"x": x, "inner": inner, "outer": outer})
    g.save()


def run():
    convolutions()
    pools()
    resizes()
    activations()
