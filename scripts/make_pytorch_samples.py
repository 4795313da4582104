"""Makes the samples of PyTorch files in crates/kiln-store/tests/data/pytorch.

Run with a Python that has PyTorch (2.15 was used): python scripts/make_pytorch_samples.py
"""

import io
import pathlib
import pickle
import struct
import tarfile

import torch
from torch import nn

OUT = pathlib.Path(__file__).parent.parent / "crates/kiln-store/tests/data/pytorch"


def fill(tensor, number):
    """The values of parameter `number`: ((i * 7 + number * 13) % 64) * 0.125 - 4."""
    index = torch.arange(tensor.numel())
    return (((index * 7 + number * 13) % 64) * 0.125 - 4).reshape(tensor.shape).to(tensor.dtype)


def filled(module):
    with torch.no_grad():
        for number, tensor in enumerate(module.state_dict().values()):
            tensor.copy_(fill(tensor, number))
    return module


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 2)
        self.norm = nn.BatchNorm2d(3)
        self.layers = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))
        self.rnn = nn.LSTM(2, 3, batch_first=True)
        self.gru = nn.GRU(2, 2, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)


def states():
    net = filled(Net())
    image, rows, sequence = fill(torch.zeros(1, 2, 3, 3), 1), fill(torch.zeros(2, 5, 4), 2), fill(torch.zeros(2, 5, 2), 3)
    with torch.no_grad():
        # Batch statistics of this fill are partly negative, which no variance is.
        net.norm.running_var.abs_()
        outputs = {
            "norm": net.eval().norm(net.conv(image)),
            "layers": net.layers(rows),
            "rnn": net.rnn(sequence)[0],
            "gru": net.gru(sequence)[0],
            "attention": net.attention(rows / 4, rows / 4, rows / 4)[0],
        }
    torch.save({"image": image, "rows": rows, "sequence": sequence, "outputs": outputs}, OUT / "net_outputs.pt")
    torch.save(net.state_dict(), OUT / "net.pt")
    torch.save({"epoch": 3, "state_dict": net.state_dict(), "note": "x"}, OUT / "checkpoint.pth")
    plain = {name: tensor for name, tensor in net.state_dict().items() if name.startswith("layers")}
    torch.save(plain, OUT / "plain.pt", _use_new_zipfile_serialization=False)
    torch.save(filled(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))), OUT / "module.pt")


def transformers():
    for first in (False, True):
        options = dict(dim_feedforward=6, dropout=0.0, activation="gelu", batch_first=True, norm_first=first)
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, **options), 2, enable_nested_tensor=False)
        decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, **options), 2)
        for number, module in enumerate((encoder, decoder)):
            with torch.no_grad():
                for index, parameter in enumerate(module.parameters()):
                    parameter.copy_(fill(parameter, number * 5 + index) / 4)
        x, memory = fill(torch.zeros(2, 3, 4), 1) / 4, fill(torch.zeros(2, 5, 4), 2) / 4
        causal = torch.ones(3, 3, dtype=torch.bool).triu(1)
        hidden = torch.zeros(2, 5, dtype=torch.bool)
        hidden[1, 3:] = True
        with torch.no_grad():
            saved = {
                "encoder": encoder.state_dict(),
                "decoder": decoder.state_dict(),
                "x": x,
                "memory": memory,
                "encoded": encoder(memory, src_key_padding_mask=hidden),
                "decoded": decoder(x, memory, tgt_mask=causal, memory_key_padding_mask=hidden),
            }
        torch.save(saved, OUT / f"transformer_{'pre' if first else 'post'}.pt")


def kinds():
    base = torch.arange(12.0).reshape(3, 4)
    floats = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    ints = {"i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8}
    wide = {"u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64}
    tensors = {name: torch.tensor([1, 2.5, -3.75, 0], dtype=dtype) for name, dtype in floats.items()}
    tensors |= {name: torch.tensor([1, 2, 3, 100], dtype=dtype) for name, dtype in (ints | wide).items()}
    tensors["bool"] = torch.tensor([True, False, True])
    tensors["transposed"] = base.T
    tensors["window"] = base[1:, 1:3]
    tensors["stepped"] = base[:, ::2]
    tensors["expanded"] = torch.tensor([[1.0], [2.0]]).expand(2, 3)
    tensors["row"] = base[2]
    tensors["number"] = torch.tensor(7.5)
    tensors["empty"] = torch.zeros(0, 3)
    tensors["parameter"] = nn.Parameter(torch.tensor([5.0, 6.0]))
    tensors["same"] = tensors["row"]
    nested = {"list": [torch.tensor([1.0]), torch.tensor([2.0])], "tuple": (torch.tensor([3.0]), {"deep": torch.tensor([4.0])})}
    torch.save(tensors | nested | {0: torch.tensor([8.0]), "text": "x", "none": None, "number_": 3, "flag": True}, OUT / "kinds.pt")
    torch.save({"a": torch.tensor([1.0])}, OUT / "protocol4.pt", pickle_protocol=4)


def archive():
    """The format of PyTorch before 0.2, which it no longer writes."""
    values = torch.tensor([1, 2.5, -3.7, 0, 9])
    p = lambda value: pickle.dumps(value, protocol=2)  # noqa: E731
    member = {"sys_info": p({"protocol_version": 1000, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}})}
    storages = p(1) + p((1, "cpu", torch.FloatStorage)) + struct.pack("<q", 5) + values.numpy().tobytes() + p([])
    member["storages"] = storages
    tensor = lambda key, *sizes: p((key, 1, torch.FloatTensor)) + struct.pack(f"<ii{len(sizes)}q", (len(sizes) - 1) // 2, 0, *sizes)  # noqa: E731
    member["tensors"] = p(2) + tensor(10, 4, 1, 0) + tensor(11, 2, 2, 1, 2, 1)

    class Saved:
        def __init__(self, key):
            self.key = key

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return value.key if isinstance(value, Saved) else None

    buffer = io.BytesIO()
    Pickler(buffer, protocol=2).dump({"a": Saved("10"), "b": [Saved("11")]})
    member["pickle"] = buffer.getvalue()
    with tarfile.open(OUT / "archive.tar", "w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in member.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    loaded = torch.load(OUT / "archive.tar", weights_only=False)
    assert torch.equal(loaded["a"], values[:4]) and torch.equal(loaded["b"][0], torch.tensor([[2.5, 0], [-3.7, 9]])), loaded


class Small(nn.Module):
    """A linear layer and a norm."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.norm = nn.LayerNorm(2)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(2, 1)
        self.head = nn.Linear(1, 2)


def train(name, model, make, named=False):
    """Three steps, what is saved then, and the parameters after two more. The gradient of parameter k is its fill at k + step, halved."""
    model = filled(model)
    optimizer = make(list(model.named_parameters()) if named else list(model.parameters()))
    for step in range(5):
        if step == 3:
            saved = {"model": {k: v.clone() for k, v in model.state_dict().items()}}
            buffer = io.BytesIO()
            torch.save(optimizer.state_dict(), buffer)
            buffer.seek(0)
            saved["optimizer"] = torch.load(buffer)
        for number, parameter in enumerate(model.parameters()):
            parameter.grad = fill(parameter, number + step) / 2
        optimizer.step()
    saved["after"] = model.state_dict()
    torch.save(saved, OUT / f"{name}.pt")


def optimizers():
    optim = torch.optim
    train("adam", Small(), lambda p: optim.Adam(p, lr=0.1, eps=1e-5, weight_decay=0.01))
    train("amsgrad", Small(), lambda p: optim.Adam(p, lr=0.1, eps=1e-5, amsgrad=True))
    train("adamw", Small(), lambda p: optim.AdamW(p, lr=0.1, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1))
    train("sgd", Small(), lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, nesterov=False))
    train("named", Recurrent(), lambda p: optim.AdamW(p, lr=0.1, eps=1e-5, weight_decay=1e-4), named=True)


OUT.mkdir(parents=True, exist_ok=True)
states()
transformers()
kinds()
archive()
optimizers()
