"""Eight-bit weights out of four-bit ones: they are larger, and computed with faster.

A Q4_1 block holds 32 numbers as a scale d and a minimum m (16-bit floats) and 32 four-bit
levels q, and stands for d·q + m. A Q8_0 block holds a scale d and 32 signed bytes q, and stands
for d·q. Everything that is not Q4_1 is copied as it is.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from coevolve.models.embedded.gguf import (
    UINT32,
    Entry,
    Header,
    Tensor,
    WeightsError,
    laid_out,
    read_header,
    write_header,
)

BLOCK = 32
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
_BYTES = {F32: 4 * BLOCK, F16: 2 * BLOCK, Q4_1: 20, Q8_0: 34}
_FILE_TYPE = "general.file_type"
_MOSTLY_Q8_0 = 7
_BLOCKS_AT_ONCE = 1 << 16


def requantise(source: Path, target: Path) -> None:
    """Write the weights of `source` to `target`, with Q8_0 where Q4_1 stood."""
    with source.open("rb") as old, target.open("wb") as new:
        header = read_header(old)
        facts = dict(header.facts)
        facts[_FILE_TYPE] = Entry(kind=UINT32, raw=struct.pack("<I", _MOSTLY_Q8_0))
        wanted = tuple(replace(one, kind=_new_kind(one.kind)) for one in header.tensors)
        tensors = tuple(laid_out(wanted, size, header.alignment))
        write_header(new, facts, tensors)
        start = new.tell()
        for before, after in zip(header.tensors, tensors, strict=True):
            new.write(b"\0" * (start + after.offset - new.tell()))
            for piece in _converted(old, header, before):
                new.write(piece)
        new.flush()
        os.fsync(new.fileno())


def size(tensor: Tensor) -> int:
    """The bytes a tensor takes."""
    if tensor.kind not in _BYTES or tensor.values % BLOCK:
        raise WeightsError(
            f"tensor {tensor.name!r} has type {tensor.kind}, which is not known here"
        )
    return tensor.values // BLOCK * _BYTES[tensor.kind]


def to_q8_0(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Q4_1 blocks, a row of 20 bytes each, as Q8_0 blocks, a row of 34 bytes each."""
    values = _levels(blocks)
    scale = np.abs(values).max(axis=1, keepdims=True) / np.float32(127)
    with np.errstate(divide="ignore"):
        inverse = np.where(scale > 0, np.float32(1) / scale, np.float32(0))
    out = np.empty((len(blocks), _BYTES[Q8_0]), np.uint8)
    out[:, :2] = scale.astype("<f2").view(np.uint8)
    out[:, 2:] = np.rint(values * inverse).astype(np.int8).view(np.uint8)
    return out


def _levels(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The numbers that Q4_1 blocks stand for: low halves first, then high halves."""
    scale, least = np.ascontiguousarray(blocks[:, :4]).view("<f2").astype(np.float32).T
    halves = blocks[:, 4:]
    levels = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32)
    values: NDArray[np.float32] = levels * scale[:, None] + least[:, None]
    return values


def _converted(file: BinaryIO, header: Header, tensor: Tensor) -> Iterator[bytes]:
    file.seek(header.data + tensor.offset)
    left = size(tensor)
    while left:
        raw = file.read(min(left, _BLOCKS_AT_ONCE * _BYTES[tensor.kind]))
        if not raw:
            raise WeightsError(f"the file ends within tensor {tensor.name!r}")
        left -= len(raw)
        if tensor.kind == Q4_1:
            yield to_q8_0(np.frombuffer(raw, np.uint8).reshape(-1, _BYTES[Q4_1])).tobytes()
        else:
            yield raw


def _new_kind(kind: int) -> int:
    return Q8_0 if kind == Q4_1 else kind
