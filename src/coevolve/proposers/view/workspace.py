"""Laying out the workspace in which a meta-agent writes candidates."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve.errors import InputError
from coevolve.executors.isolation.base import remove
from coevolve.proposers.view.index import index_of
from coevolve.proposers.view.instructions import instructions, prompt
from coevolve.proposers.view.mending import mending, mending_prompt
from coevolve.proposers.view.names import file_names
from coevolve.proposers.view.program import program
from coevolve.proposers.view.query.source import INDEX, Row
from coevolve.proposers.view.summary import summary
from coevolve.proposers.view.tasks import tasks_page
from coevolve.search.proposing import Broken, Proposal, View

PROPOSAL = "proposal.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A folder with everything an agent needs.

    Args:
        folder: What the agent works in; it may write anywhere below it.
        proposals: Where candidates are handed over, each in a folder of its own.
        prompt: What to tell the agent; the rest stands in `INSTRUCTIONS.md`.
    """

    folder: Path
    proposals: Path
    prompt: str

    def put_away(self) -> None:
        """Delete what the run holds anyway, so that days of rounds do not fill the disk.

        What was written stays, with the pages that were read first.
        """
        for name in ("candidates", "bin", "tasks.json", "tasks.md", INDEX):
            remove(self.folder / name)


def lay_out(view: View, folder: Path, *, count: int, broken: Broken | None = None) -> Workspace:
    """Write a workspace into a new or empty folder.

    Args:
        view: What the agent may know.
        folder: Where to write.
        count: How many candidates are wanted.
        broken: A candidate to mend, instead of new ones to write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; a workspace is laid out in a new folder.")
    index = index_of(view)
    _place(index)
    for row in index["candidates"]:
        _write_candidate(view, folder, row)
    _write_json(folder / INDEX, index)
    _write_json(folder / "tasks.json", index["tasks"], indent=1)
    _write(folder / "tasks.md", tasks_page(index))
    _write(folder / "SUMMARY.md", summary(index))
    (folder / "bin").mkdir()
    (folder / "bin" / "coevolve").write_bytes(program())
    (folder / "bin" / "coevolve").chmod(0o755)
    (folder / "proposals").mkdir()
    if broken is None:
        said, page = prompt(view, count), instructions(view, index, count)
    else:
        home = _write_proposal(folder / "proposals", broken.proposal)
        said, page = mending_prompt(view, home), mending(view, broken, home)
    _write(folder / "INSTRUCTIONS.md", page)
    return Workspace(folder=folder, proposals=folder / "proposals", prompt=said)


def _place(index: Row) -> None:
    """Give every candidate its folder, every task its file name, and every trace its path."""
    rows = index["candidates"]
    folders = file_names(row["name"] for row in rows)
    listed = [row["task"] for row in index["tasks"]]
    stems = file_names(dict.fromkeys([*listed, *(task for r in rows for task in r["outcomes"])]))
    for row in index["tasks"]:
        row["file"] = stems[row["task"]]
    for row in rows:
        row["folder"] = f"candidates/{folders[row['name']]}"
        for task, outcome in row["outcomes"].items():
            outcome["trace"] = f"{row['folder']}/traces/{stems[task]}.json"


def _write_candidate(view: View, folder: Path, row: Row) -> None:
    """The files of a candidate, its traces, and how it stands."""
    home = folder / row["folder"]
    _write_files(home / "files", view.files(row["name"]))
    (home / "traces").mkdir()
    for task, outcome in row["outcomes"].items():
        trace = view.trace(row["name"], task)
        if trace is None:
            outcome["trace"] = ""
        else:
            _write(folder / outcome["trace"], _readable(trace))
    _write_json(home / "standing.json", row, indent=1)


def _write_proposal(proposals: Path, proposal: Proposal) -> str:
    """A broken candidate, laid out as it was handed over; returns the name of its folder."""
    (home,) = file_names([proposal.name]).values()
    _write_files(proposals / home, proposal.files)
    _write_json(
        proposals / home / PROPOSAL,
        {
            "name": proposal.name,
            "parents": list(proposal.parents),
            "hypothesis": proposal.hypothesis,
            "kind": proposal.kind,
            "components": list(proposal.components),
        },
        indent=2,
    )
    return home


def _write_files(home: Path, files: Mapping[str, bytes]) -> None:
    home.mkdir(parents=True)
    for path, content in files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_bytes(content)


def _readable(trace: str) -> str:
    """A trace with a line for each of its values."""
    try:
        return json.dumps(json.loads(trace), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps(trace, ensure_ascii=False)


def _write_json(path: Path, value: Any, indent: int | None = None) -> None:
    _write(path, json.dumps(value, indent=indent, ensure_ascii=False))


def _write(path: Path, text: str) -> None:
    path.write_bytes(f"{text.rstrip()}\n".encode(errors="replace"))
