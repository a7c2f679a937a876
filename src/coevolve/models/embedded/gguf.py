"""The GGUF format: reading it, writing it, and converting four-bit weights to eight-bit.

A Q4_1 block has 32 numbers d·q + m: a scale d and a minimum m (16-bit floats) and 32 four-bit
levels q. A Q8_0 block has 32 numbers d·q: a scale d and 32 signed bytes q. Everything that is not
Q4_1 is copied.
"""

import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from coevolve.errors import InputError

MAGIC = b"GGUF"
VERSION = 3
UINT32, STRING, ARRAY = 4, 8, 9
_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_ALIGNMENT = "general.alignment"
_MOST_ALIGNMENT = 1 << 16
_MOST_DIMENSIONS = 8
_MOST_NESTED = 8
_MOST_BYTES = 1 << 48
_LARGE = 1 << 20


class WeightsError(InputError):
    """The file has no usable weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the header: its type and its bytes in the file."""

    kind: int
    raw: bytes

    @property
    def number(self) -> int:
        """The value of an unsigned 32-bit entry."""
        if self.kind != UINT32:
            raise WeightsError(f"a GGUF entry must be a number, but has type {self.kind}.")
        return int(struct.unpack("<I", self.raw)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """The place of a tensor; `offset` counts from the beginning of the data."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int

    @property
    def values(self) -> int:
        """The number of its values."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Everything before the data of a GGUF file."""

    facts: Mapping[str, Entry]
    tensors: tuple[Tensor, ...]
    data: int
    """The position of the data in the file."""

    @property
    def alignment(self) -> int:
        """Tensors begin at multiples of this many bytes."""
        found = self.facts[_ALIGNMENT].number if _ALIGNMENT in self.facts else 32
        if not 1 <= found <= _MOST_ALIGNMENT:
            raise WeightsError(f"the alignment of a GGUF file cannot be {found}.")
        return found


def read_header(file: BinaryIO) -> Header:
    """The header of a GGUF file that is open at its beginning."""
    magic, version, tensors, facts = struct.unpack("<4sIQQ", _take(file, 24))
    if magic != MAGIC or version != VERSION:
        raise WeightsError(f"not a GGUF file of version {VERSION}: it begins with {magic!r}.")
    known = {_string(file): _entry(file) for _ in range(facts)}
    header = Header(facts=known, tensors=tuple(_tensor(file) for _ in range(tensors)), data=0)
    data = round_up(file.tell(), header.alignment)
    return Header(facts=known, tensors=header.tensors, data=data)


def write_header(file: BinaryIO, facts: Mapping[str, Entry], tensors: tuple[Tensor, ...]) -> None:
    """Write a header, padded to where the data begins."""
    file.write(struct.pack("<4sIQQ", MAGIC, VERSION, len(tensors), len(facts)))
    for name, entry in facts.items():
        file.write(_packed(name) + struct.pack("<I", entry.kind) + entry.raw)
    for tensor in tensors:
        shape = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *tensor.shape)
        file.write(_packed(tensor.name) + shape + struct.pack("<IQ", tensor.kind, tensor.offset))
    alignment = Header(facts=facts, tensors=tensors, data=0).alignment
    file.write(b"\0" * (round_up(file.tell(), alignment) - file.tell()))


def laid_out(
    tensors: tuple[Tensor, ...], size: Callable[[Tensor], int], alignment: int
) -> Iterator[Tensor]:
    """The tensors in a row, each at the next aligned offset."""
    offset = 0
    for tensor in tensors:
        yield Tensor(name=tensor.name, shape=tensor.shape, kind=tensor.kind, offset=offset)
        offset = round_up(offset + size(tensor), alignment)


def round_up(number: int, step: int) -> int:
    """The next multiple of a step.

    >>> round_up(33, 32), round_up(64, 32)
    (64, 64)
    """
    return -(-number // step) * step


def _entry(file: BinaryIO) -> Entry:
    (kind,) = struct.unpack("<I", _take(file, 4))
    start = file.tell()
    _skip(file, kind, _MOST_NESTED)
    end = file.tell()
    file.seek(start)
    return Entry(kind=kind, raw=_take(file, end - start))


def _skip(file: BinaryIO, kind: int, deeper: int) -> None:
    if kind in _NUMBERS:
        _take(file, struct.calcsize("<" + _NUMBERS[kind]))
    elif kind == STRING:
        _string(file)
    elif kind == ARRAY and deeper:
        inner, count = struct.unpack("<IQ", _take(file, 12))
        if inner in _NUMBERS:
            _take(file, count * struct.calcsize("<" + _NUMBERS[inner]))
            return
        for _ in range(count):
            _skip(file, inner, deeper - 1)
    else:
        raise WeightsError(f"a GGUF entry has the unknown type {kind}.")


def _tensor(file: BinaryIO) -> Tensor:
    name = _string(file)
    (dimensions,) = struct.unpack("<I", _take(file, 4))
    if dimensions > _MOST_DIMENSIONS:
        raise WeightsError(f"tensor {name!r:.80} has {dimensions} dimensions.")
    shape = struct.unpack(f"<{dimensions}Q", _take(file, 8 * dimensions))
    kind, offset = struct.unpack("<IQ", _take(file, 12))
    if offset > _MOST_BYTES:
        raise WeightsError(f"tensor {name!r:.80} is at byte {offset:,}.")
    return Tensor(name=name, shape=shape, kind=kind, offset=offset)


def _string(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _take(file, 8))
    return _take(file, length).decode(errors="surrogateescape")


def _packed(text: str) -> bytes:
    raw = text.encode(errors="surrogateescape")
    return struct.pack("<Q", len(raw)) + raw


def _take(file: BinaryIO, count: int) -> bytes:
    # Memory for all of a large count would be reserved before the file is found to be shorter.
    taken = file.read(count if count < _LARGE else min(count, _left(file)))
    if len(taken) != count:
        raise WeightsError(f"the GGUF file ends early: {count} bytes needed, {len(taken)} left.")
    return taken


def _left(file: BinaryIO) -> int:
    here = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(here)
    return end - here


BLOCK = 32
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
_BYTES = {F32: 4 * BLOCK, F16: 2 * BLOCK, Q4_1: 20, Q8_0: 34}
_FILE_TYPE = "general.file_type"
_MOSTLY_Q8_0 = 7
_BLOCKS_AT_ONCE = 1 << 16


def requantise(source: Path, target: Path) -> None:
    """Write the weights of `source` to `target`, with Q8_0 in place of Q4_1."""
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
    """The bytes of a tensor."""
    if tensor.kind not in _BYTES or tensor.values % BLOCK:
        raise WeightsError(f"tensor {tensor.name!r} has the unsupported type {tensor.kind}.")
    return tensor.values // BLOCK * _BYTES[tensor.kind]


def to_q8_0(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Q4_1 blocks, a row of 20 bytes each, as Q8_0 blocks, a row of 34 bytes each."""
    values = _levels(blocks)
    if not np.isfinite(values).all():
        raise WeightsError("a tensor has numbers that are not finite.")
    scale = np.abs(values).max(axis=1, keepdims=True) / np.float32(127)
    with np.errstate(divide="ignore"):
        inverse = np.where(scale > 0, np.float32(1) / scale, np.float32(0))
    out = np.empty((len(blocks), _BYTES[Q8_0]), np.uint8)
    out[:, :2] = scale.astype("<f2").view(np.uint8)
    out[:, 2:] = np.rint(values * inverse).astype(np.int8).view(np.uint8)
    return out


def _levels(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The numbers of Q4_1 blocks: low halves first, then high halves."""
    scale, least = np.ascontiguousarray(blocks[:, :4]).view("<f2").astype(np.float32).T
    halves = blocks[:, 4:]
    levels = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        values: NDArray[np.float32] = levels * scale[:, None] + least[:, None]
    return values


def _converted(file: BinaryIO, header: Header, tensor: Tensor) -> Iterator[bytes]:
    file.seek(header.data + tensor.offset)
    left = size(tensor)
    while left:
        raw = file.read(min(left, _BLOCKS_AT_ONCE * _BYTES[tensor.kind]))
        if len(raw) % _BYTES[tensor.kind] or not raw:
            raise WeightsError(f"the file ends within tensor {tensor.name!r}.")
        left -= len(raw)
        if tensor.kind == Q4_1:
            yield to_q8_0(np.frombuffer(raw, np.uint8).reshape(-1, _BYTES[Q4_1])).tobytes()
        else:
            yield raw


def _new_kind(kind: int) -> int:
    return Q8_0 if kind == Q4_1 else kind


def numbers(file: BinaryIO, header: Header, tensor: Tensor) -> NDArray[np.float32]:
    """The values of a tensor as 32-bit floats, the last dimension of the file first."""
    file.seek(header.data + tensor.offset)
    raw = np.frombuffer(_take(file, size(tensor)), np.uint8)
    if tensor.kind == F32:
        values = raw.view("<f4").astype(np.float32)
    elif tensor.kind == F16:
        values = raw.view("<f2").astype(np.float32)
    else:
        blocks = raw.reshape(-1, _BYTES[tensor.kind])
        values = _levels(blocks) if tensor.kind == Q4_1 else _eight_bit(blocks)
    return values.reshape(tensor.shape[::-1])


def _eight_bit(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The numbers of Q8_0 blocks."""
    scale = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    values: NDArray[np.float32] = scale * blocks[:, 2:].view(np.int8).astype(np.float32)
    return values
