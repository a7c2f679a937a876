"""What is asked: the index of a search, with its files and traces."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from coevolve.proposers.workspace.query.printing import gist

FORMAT = "coevolve history 1"
INDEX = "history.json"

Row = dict[str, Any]


class QueryError(Exception):
    """A question that has no answer, and what to ask instead."""


class Source:
    """The index of a search, and how to read what it lists.

    Args:
        index: What `history.json` holds.
        file: Reads a file of a candidate, given its row of the index and the path.
        trace: Reads the trace of a candidate's outcome, given its row and the task.
    """

    def __init__(
        self,
        index: Row,
        file: Callable[[Row, str], bytes],
        trace: Callable[[Row, str], str | None],
    ) -> None:
        self.candidates: dict[str, Row] = {row["name"]: row for row in index["candidates"]}
        self.tasks: dict[str, Row] = {row["task"]: row for row in index["tasks"]}
        self.file, self.trace = file, trace

    @property
    def ranked(self) -> list[Row]:
        """Candidates with an estimate, the best first, equals in the order of proposal."""
        rows = [row for row in self.candidates.values() if row["rank"] is not None]
        return sorted(rows, key=lambda row: int(row["rank"]))

    def candidate(self, name: str) -> Row:
        """What the index says of a candidate."""
        if name not in self.candidates:
            close = nearest(name, self.candidates)
            raise QueryError(f"there is no candidate {name!r}.{close or _listed(self.candidates)}")
        return self.candidates[name]

    def task(self, name: str) -> Row:
        """What the index says of a task, found by its name or by that of its files."""
        if name in self.tasks:
            return self.tasks[name]
        for row in self.tasks.values():
            if name == row["file"]:
                return row
        close = nearest(name, self.tasks) or _listed(self.tasks)
        raise QueryError(f"there is no task {name!r}.{close}")

    def outcome(self, row: Row, task: str) -> Row:
        """One outcome, with what its trace says in a line."""
        found = row["outcomes"][task]
        says = found["missing"] or gist(self.trace(row, task))
        return {"task": task, "candidate": row["name"], "score": found["score"], "says": says}


def in_workspace(folder: Path) -> Source:
    """The source that a workspace is."""

    def trace(row: Row, task: str) -> str | None:
        path = row["outcomes"][task]["trace"]
        return (folder / path).read_text("utf-8") if path else None

    def file(row: Row, path: str) -> bytes:
        return (folder / str(row["folder"]) / "files" / path).read_bytes()

    return Source(json.loads((folder / INDEX).read_text("utf-8")), file, trace)


def find(place: Path) -> Path | None:
    """The workspace that a folder lies in, if it does."""
    for folder in (place, *place.parents):
        if (folder / INDEX).is_file():
            with (folder / INDEX).open("rb") as file:
                if FORMAT.encode() in file.read(100):
                    return folder
    return None


def nearest(name: str, known: Iterable[str]) -> str:
    """A suggestion to end a message with, or nothing.

    >>> nearest("tip", ["top", "show"])
    " Did you mean 'top'?"
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _listed(known: Iterable[str]) -> str:
    """The first of the names there are, where none is near."""
    names = list(known)
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f" There are {', '.join(names[:10])}{more}." if names else " There is none yet."
