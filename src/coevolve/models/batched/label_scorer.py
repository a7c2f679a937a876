"""Log-probabilities of labels, and written text, after many prompts; a separate program computes.

The program is `packed_model`. It may run in another Python, and on a GPU.
"""

import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
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
_NODES = {"cpu": 800, "cuda": 65_536}
"""Nodes that are computed at once, those that fill up shorter packs included."""
_PAIRS = 200_000_000
"""Pairs of nodes of a pack that are computed at once, at most: each has an entry in a mask."""


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
        self._nodes = _NODES.get(device.partition(":")[0], _NODES["cpu"])
        try:
            self._process = subprocess.Popen(
                [python, str(Path(packed_model.__file__))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise ConfigError(
                f"the Python {python!r} cannot be started ({error.strerror}); name one that has "
                "torch and numpy with --python."
            ) from error
        with tempfile.TemporaryDirectory(prefix="coevolve-weights-") as folder:
            export(weights, Path(folder))
            setup = {"folder": folder, "device": device, "threads": threads}
            try:
                self.facts: dict[str, str] = self._asked(setup)
            except ConfigError:
                self.close()
                raise

    def scores(
        self, prompts: Sequence[Sequence[int]], trees: Sequence[LabelTree]
    ) -> list[NDArray[np.float32]]:
        """The log-probabilities that the tree of each prompt wants, in its order."""
        found: dict[int, NDArray[np.float32]] = {}
        # Packs of similar length waste least when they are computed together.
        made = sorted(packs(prompts, trees, ROOM), key=lambda pack: len(pack.tokens))
        for some in self._together(made, lambda pack: len(pack.tokens)):
            answers = self._asked({"packs": [_sent(pack) for pack in some]})
            for pack, values in zip(some, answers, strict=True):
                array, start = np.array(values, np.float32), 0
                for number in pack.prompts:
                    end = start + len(trees[number].wanted)
                    found[number] = array[start:end]
                    start = end
        return [found[number] for number in range(len(prompts))]

    def written(
        self, prompts: Sequence[Sequence[int]], limit: int, ends: Iterable[int]
    ) -> list[list[int]]:
        """The tokens that the model writes after each prompt, each time the most probable one.

        Args:
            prompts: The tokens of each prompt.
            limit: Tokens to write, at most.
            ends: Tokens that end an answer; such a token is its last.
        """
        found: dict[int, list[int]] = {}
        order = sorted(range(len(prompts)), key=lambda number: len(prompts[number]))
        for some in self._together(order, lambda number: len(prompts[number]) + limit):
            asked = {"prompts": [list(prompts[number]) for number in some], "limit": limit}
            answers = self._asked({**asked, "ends": list(ends)})
            found.update(zip(some, answers, strict=True))
        return [found[number] for number in range(len(prompts))]

    def _together[One](
        self, made: Sequence[One], size: Callable[[One], int]
    ) -> Iterator[list[One]]:
        """Pieces of a list with ascending sizes that are computed at once."""
        piece: list[One] = []
        for one in made:
            rows = len(piece) + 1
            if piece and (rows * size(one) > self._nodes or rows * size(one) ** 2 > _PAIRS):
                yield piece
                piece = []
            piece.append(one)
        if piece:
            yield piece

    def close(self) -> None:
        """End the program."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):  # the program ended before
                    pipe.close()
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
