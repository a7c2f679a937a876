"""What every fuzz target has, and the folder that they share."""

import functools
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from coevolve.core.events import sealed


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A parser, who writes what it reads, and inputs for it."""

    name: str
    written_by: str
    inputs: st.SearchStrategy[Any]
    read: Callable[[Any], object]


_MEMORY = Path("/dev/shm")


@functools.cache
def scratch() -> Path:
    """A folder of this process, in memory where there is one."""
    folder = tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


def written(name: str, data: bytes) -> Path:
    path = scratch() / name
    path.write_bytes(data)
    return path


def json_lines(values: Sequence[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def resealed(events: Sequence[Any]) -> list[dict[str, Any]]:
    """Events with the seals that belong to them, as if they had been written like this."""
    found: list[dict[str, Any]] = []
    before = ""
    for seq, event in enumerate(events):
        body = event if isinstance(event, dict) else {"value": event}
        kind = body.get("type", "noted")
        rest = {key: part for key, part in body.items() if key not in ("seq", "type", "seal")}
        line = sealed(seq, kind, rest, before)
        before = line.event["seal"]
        found.append(json.loads(line.text))
    return found
