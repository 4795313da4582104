"""Golden values at special points: NaN, infinities, zeros of both signs, the ends of types, rows without elements. Computed in 32 bits, as the tests compute."""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from writer import Golden

POINTS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 20.0, -20.0, 90.0, -110.0, 1e30, -1e30]


def gelu(x):
    """In 64 bits: PyTorch's own 32-bit form is off by 1e-4 of its value at -3, and NaN at infinity, where the limit is infinity."""
    wide = F.gelu(x.double())
    return torch.where(x == math.inf, torch.full_like(wide, math.inf), wide)


def sign(x):
    """As NumPy: the sign of NaN is NaN."""
    return torch.where(x.isnan(), x.detach(), torch.sign(x))


UNARY = {
    "exp": torch.exp, "log": torch.log, "log1p": torch.log1p, "sqrt": torch.sqrt, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "sinh": torch.sinh,
    "cosh": torch.cosh, "tanh": torch.tanh, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "asinh": torch.asinh, "acosh": torch.acosh,
    "atanh": torch.atanh, "erf": torch.erf, "abs": torch.abs, "neg": torch.neg, "sign": sign, "square": torch.square, "recip": torch.reciprocal,
    "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc, "relu": F.relu, "gelu": gelu, "sigmoid": torch.sigmoid,
    "log_sigmoid": F.logsigmoid, "silu": F.silu, "mish": F.mish, "softplus": F.softplus, "elu": F.elu, "selu": F.selu, "celu": F.celu,
    "hard_swish": F.hardswish, "relu6": F.relu6, "softsign": F.softsign, "leaky_relu": lambda x: F.leaky_relu(x, 0.1), "tanhshrink": F.tanhshrink,
    "hardtanh": F.hardtanh, "clamp": lambda x: x.clamp(-1.0, 1.0),
}

BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "remainder": torch.remainder, "fmod": torch.fmod, "atan2": torch.atan2,
    "hypot": torch.hypot, "powf": torch.pow, "max_pair": torch.maximum, "min_pair": torch.minimum, "equal": torch.eq, "not_equal": torch.ne,
    "greater": torch.gt, "greater_equal": torch.ge, "lower": torch.lt, "lower_equal": torch.le, "is_close": lambda a, b: torch.isclose(a, b),
}

ROWS = [
    [math.nan, 1.0, 2.0, 0.0], [1.0, math.nan, 2.0, math.nan], [1.0, 2.0, 3.0, math.nan], [math.nan] * 4, [math.inf, 1.0, math.inf, -1.0],
    [-math.inf] * 4, [math.inf, -math.inf, 0.0, 1.0], [0.0, -0.0, 0.0, -0.0], [3.0, 1.0, 3.0, 1.0], [1e30, 1e30, -1e30, 1.0], [0.0, 2.0, 0.0, 3.0],
]

ALONG = {
    "sum_dim": lambda x: x.sum(1, True), "mean_dim": lambda x: x.mean(1, True), "prod_dim": lambda x: x.prod(1, True), "max_dim": lambda x: x.amax(1, True),
    "min_dim": lambda x: x.amin(1, True), "max_abs_dim": lambda x: x.abs().amax(1, True), "argmax": lambda x: x.argmax(1, True),
    "argmin": lambda x: x.argmin(1, True), "sort": lambda x: x.sort(stable=True, dim=1)[0], "argsort": lambda x: x.sort(stable=True, dim=1)[1],
    "sort_descending": lambda x: x.sort(1, True)[0], "topk": lambda x: x.topk(2, 1)[0], "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(1)[0], "cummin": lambda x: x.cummin(1)[0], "var": lambda x: x.var(1, keepdim=True),
    "var_bias": lambda x: x.var(1, correction=0, keepdim=True), "median": lambda x: x.median(1, True)[0], "softmax": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1), "any_dim": lambda x: x.bool().any(1, True), "all_dim": lambda x: x.bool().all(1, True),
}

#: Without the product's and the mean's answers: sizes only matter where there is no element.
EMPTY = ["sum_dim", "mean_dim", "prod_dim", "sort", "argsort", "sort_descending", "cumsum", "cumprod", "softmax", "log_softmax", "any_dim", "all_dim"]

INTEGERS = [-(2**63), 2**63 - 1, 0, 1, -1, 7, -7, 2**32, -(2**31)]


def attend(q, k, v, mask, causal):
    """The composed form: its fused forms leave out blocks of hidden keys, depending on sizes."""
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=None if mask is None else ~mask, is_causal=causal)


def grouped(x, w, stride, padding, groups):
    """Group by group: PyTorch's kernels for one channel a group leave out the zeros of padding, all others multiply them."""
    return torch.cat([F.conv2d(x, w, stride=stride, padding=padding) for x, w in zip(x.chunk(groups, 1), w.chunk(groups, 0))], 1)


def products():
    """Where weights of zero and the zeros of padding meet what is not finite."""
    g = Golden("kiln-tensor", "special_products", 41)
    ordinary = lambda *shape: g.floats(*shape, grad=False).float()

    def planted(x, at, value):
        x = x.clone()
        x[at] = value
        return x

    mask = torch.zeros(1, 1, 5, 5, dtype=torch.bool)
    mask[..., 0, :], mask[..., 2, 1:3], mask[..., 4, 4] = True, True, True
    for name, hidden, causal in (("mask", mask, False), ("causal", None, True), ("none", None, False)):
        for value in (-math.inf, math.nan):
            for key in (1, 4):
                q, k, v = ordinary(1, 2, 5, 2), ordinary(1, 2, 5, 2), ordinary(1, 2, 5, 3)
                v = planted(v, (0, 1, key, 2), value)
                g.case("attention_" + name, causal=causal)
                g.put(q=q, k=k, v=v, mask=hidden, y=attend(q, k, v, hidden, causal))
                q = planted(q, (0, 0, 3, 0), value)
                g.case("attention_" + name, causal=causal)
                g.put(q=q, k=k, v=v, mask=hidden, y=attend(q, k, v, hidden, causal))
    for value in (math.inf, math.nan):
        for stride, padding, groups in ((1, 1, 1), (2, 0, 1), (2, 1, 2)):
            x, w = ordinary(1, 2, 4, 5), ordinary(2, 2 // groups, 3, 2)
            w = planted(w, (1, 0, 0, 1), value)
            options = dict(stride=stride, padding=padding, groups=groups)
            y = grouped(x, w, **options)
            g.case("conv", **options)
            g.put(x=x, w=w, y=y, d_x=torch.nn.grad.conv2d_input(x.shape, w, torch.ones_like(y), **options))
            g.case("conv_transpose", **options)
            g.put(x=x, w=w, y=F.conv_transpose2d(x, w, **options))
            x, w = planted(x, (0, 1, 3, 4), value), ordinary(2, 2 // groups, 3, 2)
            g.case("conv", **options)
            g.put(x=x, w=w, y=grouped(x, w, **options))
            g.case("conv_transpose", **options)
            g.put(x=x, w=w, y=F.conv_transpose2d(x, w, **options))
    g.save()


def slopes(f, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    y = f(*inputs)
    if not y.requires_grad:
        return y, []
    return y, torch.autograd.grad(y.sum(), inputs)


def run():
    g = Golden("kiln-tensor", "special", 40)
    x = torch.tensor(POINTS, dtype=torch.float32)
    for name, f in UNARY.items():
        y, (dx,) = slopes(f, x)
        g.case("unary_" + name)
        g.put(x=x, y=y, d_x=dx)
    few = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -2.0, 2.5], dtype=torch.float32)
    a, b = few.repeat_interleave(len(few)), few.repeat(len(few))
    for name, f in BINARY.items():
        g.case("binary_" + name)
        g.put(x=a, z=b, y=f(a, b))
    rows = torch.tensor(ROWS, dtype=torch.float32)
    for name, f in ALONG.items():
        g.case("along_" + name)
        g.put(x=rows, y=f(rows))
    for name in EMPTY:
        for shape in ((3, 0), (0, 4), (0, 0)):
            g.case("along_" + name)
            g.put(x=torch.zeros(shape, dtype=torch.float32), y=ALONG[name](torch.zeros(shape, dtype=torch.float32)))
    n = torch.tensor(INTEGERS)
    a, b = n.repeat_interleave(len(n)), n.repeat(len(n))
    safe = torch.where((b == 0) | (b == -1), torch.full_like(b, 3), b)
    shift = b.remainder(64)
    for name, f, z in (
        ("add", torch.add, b), ("sub", torch.sub, b), ("mul", torch.mul, b), ("div", lambda a, b: torch.div(a, b, rounding_mode="trunc"), safe),
        ("remainder", torch.remainder, safe), ("max_pair", torch.maximum, b), ("min_pair", torch.minimum, b), ("bitwise_and", torch.bitwise_and, b),
        ("bitwise_or", torch.bitwise_or, b), ("bitwise_xor", torch.bitwise_xor, b), ("bitwise_left_shift", torch.bitwise_left_shift, shift),
        ("bitwise_right_shift", torch.bitwise_right_shift, shift), ("equal", torch.eq, b), ("lower", torch.lt, b), ("greater_equal", torch.ge, b),
    ):
        g.case("integer_" + name)
        g.put(x=a, z=z, y=f(a, z))
    for name, f in (("abs", torch.abs), ("neg", torch.neg), ("sign", torch.sign), ("bitwise_not", torch.bitwise_not), ("cumsum", lambda n: n.cumsum(0)),
                    ("cumprod", lambda n: n.cumprod(0)), ("sort", lambda n: n.sort(0)[0]), ("sum", lambda n: n.sum()), ("square", torch.square)):
        g.case("integer_" + name)
        g.put(x=n, y=f(n))
    g.save()
    products()
