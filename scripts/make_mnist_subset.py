#!/usr/bin/env python3
"""Make the MNIST subset that `kiln-data` embeds.

    scripts/make_mnist_subset.py DIR [OUT]

DIR holds the four original IDX files (`train-images-idx3-ubyte.gz`, ...). OUT defaults to
`crates/kiln-data/data/mnist`. The choice is deterministic and class-balanced: of each class, evenly
spaced examples in file order. The files written are IDX files again, gzip-compressed without a time
stamp, so a second run gives the same bytes.
"""

import gzip
import pathlib
import struct
import sys

PER_CLASS = {"train": 1000, "t10k": 100}
PIXELS = 28 * 28


def read(path, magic):
    raw = gzip.decompress(path.read_bytes())
    found, count = struct.unpack(">II", raw[:8])
    if found != magic:
        sys.exit(f"{path}: magic {found:#010x}, expected {magic:#010x}")
    return raw, count


def evenly(positions, wanted):
    return [positions[i * len(positions) // wanted] for i in range(wanted)]


def write(path, raw):
    path.write_bytes(gzip.compress(raw, compresslevel=9, mtime=0))
    print(f"{path}: {path.stat().st_size} bytes")


def main():
    source = pathlib.Path(sys.argv[1])
    out = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "crates/kiln-data/data/mnist")
    for split, per_class in PER_CLASS.items():
        images, count = read(source / f"{split}-images-idx3-ubyte.gz", 0x803)
        labels, labelled = read(source / f"{split}-labels-idx1-ubyte.gz", 0x801)
        assert count == labelled, (count, labelled)
        labels, images = labels[8:], images[16:]
        by_class = [[] for _ in range(10)]
        for position, label in enumerate(labels):
            by_class[label].append(position)
        chosen = sorted(i for positions in by_class for i in evenly(positions, per_class))
        pixels = b"".join(images[i * PIXELS : (i + 1) * PIXELS] for i in chosen)
        header = struct.pack(">IIII", 0x803, len(chosen), 28, 28)
        write(out / f"{split}-images-idx3-ubyte.gz", header + pixels)
        header = struct.pack(">II", 0x801, len(chosen))
        write(out / f"{split}-labels-idx1-ubyte.gz", header + bytes(labels[i] for i in chosen))


if __name__ == "__main__":
    main()
