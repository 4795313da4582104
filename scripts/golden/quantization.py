"""Codes that PyTorch gives numbers: casts to 8-bit floats, and `quantize_per_tensor` with a scale of 0.05. Writes crates/kiln-tensor/tests/data/quantized_torch.txt."""

import pathlib
import struct

import torch

torch.manual_seed(0)
few = torch.tensor([0.0, 448.0, -448.0, 2**-9, 2**-10, 1.5 * 2**-9, 0.5 * 2**-9, 2**-6, 17.0, 19.0, 21.0, 23.0, -17.0, -19.0])
x = torch.cat([torch.randn(300) * 10, torch.randn(150) * 0.01, torch.randn(100) * 200, few]).clamp(-448, 448)
y = torch.cat([x, torch.tensor([57344.0, -57344.0, 2.0**-16, 2.0**-17, 3 * 2.0**-17])])
z = torch.randn(40) * 3
rows = {
    "E4M3": (x, x.to(torch.float8_e4m3fn).view(torch.uint8)),
    "E5M2": (y, y.to(torch.float8_e5m2).view(torch.uint8)),
    "Q8F": (z, torch.quantize_per_tensor(z, 0.05, 0, torch.qint8).int_repr()),
}
path = pathlib.Path(__file__).parents[2] / "crates/kiln-tensor/tests/data/quantized_torch.txt"
with path.open("w") as file:
    for kind, (values, codes) in rows.items():
        pairs = (f"{struct.pack('>f', value).hex()}:{code & 255:02x}" for value, code in zip(values.tolist(), codes.tolist()))
        print(kind, *pairs, file=file)
