"""Weights are read and written to the bit."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.models.embedded.gguf import (
    ARRAY,
    F32,
    Q4_1,
    Q8_0,
    STRING,
    UINT32,
    Entry,
    Tensor,
    WeightsError,
    laid_out,
    read_header,
    requantise,
    size,
    to_q8_0,
    write_header,
)

FACTS = {
    "general.name": Entry(kind=STRING, raw=struct.pack("<Q", 5) + "Größe".encode()[:5]),
    "general.file_type": Entry(kind=UINT32, raw=struct.pack("<I", 3)),
    "numbers": Entry(kind=ARRAY, raw=struct.pack("<IQ3f", 6, 3, 0.5, 1.5, 2.5)),
    "words": Entry(kind=ARRAY, raw=struct.pack("<IQQ1sQ2s", STRING, 2, 1, b"a", 2, b"bc")),
}


def q4_1(rng: np.random.Generator, blocks: int) -> np.ndarray:
    scales = rng.uniform(-0.1, 0.1, (blocks, 2)).astype("<f2")
    levels = rng.integers(0, 256, (blocks, 16), dtype=np.uint8)
    return np.concatenate([scales.view(np.uint8).reshape(blocks, 4), levels], axis=1)


def values_of_q4_1(block: bytes) -> list[float]:
    """Plainly, as the format is defined."""
    scale, least = struct.unpack("<2e", block[:4])
    levels = [byte & 15 for byte in block[4:]] + [byte >> 4 for byte in block[4:]]
    return [scale * level + least for level in levels]


def values_of_q8_0(block: bytes) -> list[float]:
    (scale,) = struct.unpack("<e", block[:2])
    return [scale * level for level in struct.unpack("<32b", block[2:])]


def write(path: Path, rng: np.random.Generator) -> tuple[bytes, bytes]:
    """A small GGUF file with a tensor that is copied and one that is made anew."""
    plain = rng.normal(size=96).astype("<f4").tobytes()
    packed = q4_1(rng, 9).tobytes()
    shapes = (
        Tensor(name="norm", shape=(96,), kind=F32, offset=0),
        Tensor(name="layer", shape=(96, 3), kind=Q4_1, offset=0),
        Tensor(name="last", shape=(96,), kind=F32, offset=0),
    )
    tensors = tuple(laid_out(shapes, size, 32))
    with path.open("wb") as file:
        write_header(file, FACTS, tensors)
        start = file.tell()
        for tensor, data in zip(tensors, (plain, packed, plain), strict=True):
            file.write(b"\0" * (start + tensor.offset - file.tell()) + data)
    return plain, packed


def test_every_value_is_within_half_a_step_of_what_it_was(tmp_path: Path) -> None:
    plain, packed = write(tmp_path / "old", np.random.default_rng(5))
    requantise(tmp_path / "old", tmp_path / "new")
    data = (tmp_path / "new").read_bytes()
    header = read_header(io.BytesIO(data))
    found = {tensor.name: tensor for tensor in header.tensors}
    assert [tensor.kind for tensor in header.tensors] == [F32, Q8_0, F32]
    assert [tensor.shape for tensor in header.tensors] == [(96,), (96, 3), (96,)]
    assert all(tensor.offset % 32 == 0 for tensor in header.tensors)
    assert header.data % 32 == 0
    for name in ("norm", "last"):
        start = header.data + found[name].offset
        assert data[start : start + len(plain)] == plain
    start = header.data + found["layer"].offset
    for number in range(9):
        new = data[start + 34 * number : start + 34 * (number + 1)]
        old = values_of_q4_1(packed[20 * number : 20 * (number + 1)])
        (step,) = struct.unpack("<e", new[:2])
        assert np.allclose(values_of_q8_0(new), old, atol=0.51 * step + 127 * step / 1024)


def test_the_header_says_what_it_said_but_for_the_type_of_the_file(tmp_path: Path) -> None:
    write(tmp_path / "old", np.random.default_rng(5))
    requantise(tmp_path / "old", tmp_path / "new")
    with (tmp_path / "new").open("rb") as file:
        facts = read_header(file).facts
    assert facts["general.file_type"].number == 7
    changed = FACTS.keys() - {"general.file_type"}
    assert {name: facts[name] for name in changed} == {name: FACTS[name] for name in changed}


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_blocks_do_not_depend_on_their_neighbours(seed: int, blocks: int) -> None:
    packed = q4_1(np.random.default_rng(seed), blocks)
    assert np.array_equal(to_q8_0(packed), np.concatenate([to_q8_0(row[None]) for row in packed]))


def test_a_block_of_zeros_stays_one() -> None:
    assert not to_q8_0(np.zeros((1, 20), np.uint8)).any()


@pytest.mark.parametrize("kept", [0, 3, 60, 400, 700])
def test_a_file_that_ends_early_is_found(tmp_path: Path, kept: int) -> None:
    write(tmp_path / "old", np.random.default_rng(5))
    (tmp_path / "old").write_bytes((tmp_path / "old").read_bytes()[:kept])
    with pytest.raises(WeightsError, match="ends"):
        requantise(tmp_path / "old", tmp_path / "new")


def test_another_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"PK\3\4" * 20)
    with pytest.raises(WeightsError, match="not a GGUF file of version 3"):
        requantise(tmp_path / "old", tmp_path / "new")
