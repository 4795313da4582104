"""Golden files: plain text, one tensor a line, read by golden.rs without any dependency.

    case NAME
    attr NAME VALUE ...
    NAME f32 SIZE ... : VALUE ...

Inputs are rounded to three decimals, so that f32 holds what PyTorch saw; results are computed in f64.
"""
import pathlib

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Golden:
    """One golden file being written."""

    def __init__(self, crate, name, seed):
        self.path = ROOT / "crates" / crate / "tests" / "golden" / (name + ".txt")
        self.lines = [f"# Made by scripts/golden/make.py with PyTorch {torch.__version__.split('+')[0]}; do not edit."]
        self.rng = np.random.default_rng(seed)

    def floats(self, *shape, scale=1.0, positive=False, grad=True):
        """A float input that f32 can hold and a short text can carry."""
        values = self.rng.standard_normal(shape) * scale
        if positive:
            values = np.abs(values) + 0.1
        values = np.round(values, 3).astype(np.float32).astype(np.float64)
        return torch.from_numpy(np.asarray(values)).requires_grad_(grad)

    def distinct(self, *shape):
        """A float input without ties, for sorting and pooling."""
        n = int(np.prod(shape))
        values = np.round((self.rng.permutation(n) - n / 2) * 0.125, 3)
        return torch.from_numpy(values.reshape(shape)).requires_grad_(True)

    def ints(self, *shape, below):
        return torch.from_numpy(self.rng.integers(0, below, shape))

    def case(self, name, **attrs):
        self.lines.append(f"case {name}")
        for key, value in attrs.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            self.lines.append(" ".join(["attr", key] + [text(v) for v in values]))

    def put(self, **tensors):
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            tensor = tensor.detach()
            tensor = tensor.reshape(1) if tensor.dim() == 0 else tensor
            kind = "bool" if tensor.dtype == torch.bool else "f32" if tensor.is_floating_point() else "i64"
            sizes = "".join(f" {s}" for s in tensor.shape)
            values = " ".join(text(v) for v in tensor.flatten().tolist())
            self.lines.append(f"{name} {kind}{sizes} : {values}".rstrip())

    def graded(self, output, inputs, y="y"):
        """Writes inputs and output, a weight `dy` for the output, and the gradient `d_NAME` of sum(y * dy) for each input that takes one."""
        output = output.reshape(1) if output.dim() == 0 else output
        dy = self.floats(*output.shape, grad=False)
        self.put(**inputs)
        self.put(**{y: output, "dy": dy})
        wanted = {k: v for k, v in inputs.items() if v is not None and v.requires_grad}
        grads = torch.autograd.grad((output * dy).sum(), list(wanted.values()))
        self.put(**{f"d_{k}": g for k, g in zip(wanted, grads)})

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = "\n".join(self.lines) + "\n"
        self.path.write_text(data)
        print(f"{len(data):8d} bytes  {self.path.relative_to(ROOT)}")


def text(value):
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return f"{value:.8g}"
    return str(value)
