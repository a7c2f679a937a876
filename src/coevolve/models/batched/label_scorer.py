"""Log-probabilities of labels after many prompts, from a model in a separate program."""

import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import batched
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from coevolve.errors import ConfigError
from coevolve.models.batched import packed_model
from coevolve.models.batched.packed_model import read_frame, write_frame
from coevolve.models.batched.token_trees import LabelTree, Pack, packs
from coevolve.models.embedded.gguf import Entry, Header, numbers, read_header

_FLOAT = 6
ROOM = 200
"""Nodes of a pack; in larger ones, unrelated prompts cost more attention than they save."""
_ROWS = {"cpu": 4, "cuda": 256}
"""Packs that are computed at once."""


class LabelScorer:
    """A model that scores trees of labels after prompts.

    Args:
        weights: A GGUF file of a Llama model.
        device: "cpu", or a device of torch such as "cuda".
        threads: Cores to compute with.
        python: A Python that has torch and numpy; by default this one.

    Raises:
        ConfigError: That Python has no torch, or the device cannot be used.
    """

    def __init__(
        self,
        weights: Path,
        *,
        device: str = "cpu",
        threads: int = 1,
        python: str = sys.executable,
    ) -> None:
        self._room, self._rows = ROOM, _ROWS.get(device.partition(":")[0], 1)
        self._process = subprocess.Popen(
            [python, str(Path(packed_model.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with tempfile.TemporaryDirectory(prefix="coevolve-weights-") as folder:
            export(weights, Path(folder))
            setup = {"folder": folder, "device": device, "threads": threads}
            self.facts: dict[str, str] = self._asked(setup)

    def scores(
        self, prompts: Sequence[Sequence[int]], trees: Sequence[LabelTree]
    ) -> list[NDArray[np.float32]]:
        """The log-probabilities that the tree of each prompt wants, in its order."""
        found: dict[int, NDArray[np.float32]] = {}
        # Packs of similar length waste least when they are computed together.
        made = sorted(packs(prompts, trees, self._room), key=lambda pack: len(pack.tokens))
        for some in batched(made, self._rows, strict=False):
            answers = self._asked([_sent(pack) for pack in some])
            for pack, values in zip(some, answers, strict=True):
                array, start = np.array(values, np.float32), 0
                for number in pack.prompts:
                    end = start + len(trees[number].wanted)
                    found[number] = array[start:end]
                    start = end
        return [found[number] for number in range(len(prompts))]

    def close(self) -> None:
        """End the program."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _asked(self, value: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        try:
            write_frame(self._process.stdin, value)
            answer = read_frame(self._process.stdout)
        except BrokenPipeError:
            answer = None
        if answer is None:
            said = self._process.stderr.read().decode(errors="replace").strip()
            last = said.splitlines()[-1] if said else "it said nothing"
            raise ConfigError(
                f"the model's program ended: {last}. It needs a Python with torch and numpy."
            )
        return answer


def export(weights: Path, folder: Path) -> None:
    """Write the tensors of a GGUF file as .npy files, and the facts of the model as JSON."""
    with weights.open("rb") as file:
        header = read_header(file)
        for tensor in header.tensors:
            np.save(folder / f"{tensor.name}.npy", numbers(file, header, tensor))
    facts = {
        "layers": _whole(header, "block_count"),
        "heads": _whole(header, "attention.head_count"),
        "kv_heads": _whole(header, "attention.head_count_kv"),
        "width": _whole(header, "embedding_length"),
        "epsilon": _number(header, "attention.layer_norm_rms_epsilon"),
        "rope_base": _number(header, "rope.freq_base"),
        "tensors": [tensor.name for tensor in header.tensors],
    }
    (folder / "facts.json").write_text(json.dumps(facts))


def _sent(pack: Pack) -> dict[str, Any]:
    return {"tokens": pack.tokens, "parents": pack.parents, "wanted": pack.wanted}


def _fact(header: Header, name: str) -> Entry:
    found = header.facts.get(f"llama.{name}")
    if found is None:
        raise ConfigError(f"the weights have no entry 'llama.{name}'; only Llama models work.")
    return found


def _whole(header: Header, name: str) -> int:
    return _fact(header, name).number


def _number(header: Header, name: str) -> float:
    entry = _fact(header, name)
    if entry.kind != _FLOAT:
        raise ConfigError(f"the entry 'llama.{name}' of the weights is not a float.")
    return float(struct.unpack("<f", entry.raw)[0])
