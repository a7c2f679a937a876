"""The workspace in which a meta-agent writes candidates."""

import io
import itertools
import json
import re
import secrets
import stat
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevolve import formatting
from coevolve.errors import InputError
from coevolve.executors.isolation.folders import remove
from coevolve.formatting import json_text, visible
from coevolve.proposers.workspace.instructions import (
    instructions,
    prompt,
    repair_instructions,
    repair_prompt,
)
from coevolve.proposers.workspace.summary import summary, tasks_page
from coevolve.search.candidate import address_of
from coevolve.search.proposal import Broken, Proposal, View
from coevolve.views import answer_text, questions
from coevolve.views.history import index_of
from coevolve.views.questions import INDEX, Row

_LONGEST = 60


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A unique file name for each name: the name itself where it is safe.

    A name that is not safe, or differs from another only in case, gets a digest at its end. A
    task therefore keeps its file name from round to round.

    >>> file_names(["law-007", "two days", "../.."])
    {'law-007': 'law-007', 'two days': 'two-days-5f193fa7', '../..': 'x-e58db3d6'}
    """
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        file = _plain(name)
        if file != name or file.casefold() in taken:
            file = _digested(file, name, taken)
        taken.add(file.casefold())
        made[name] = file
    return made


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.")[:_LONGEST].rstrip("-.")


def _digested(file: str, name: str, taken: set[str]) -> str:
    digest = address_of(name.encode(errors="surrogatepass"))
    lengths = range(8, len(digest) + 1)  # more than 8 only after a collision
    return next(
        made for n in lengths if (made := f"{file or 'x'}-{digest[:n]}").casefold() not in taken
    )


_SHEBANG = b"#!/usr/bin/env python3\n"
_MAIN = b"""import sys
from pathlib import Path

from coevolve.views.questions import main

sys.exit(main(Path(sys.argv[0]), sys.argv[1:]))
"""


def program() -> bytes:
    """The query command as an executable archive; the same bytes on every call.

    The packages in it are empty except for the modules it needs. An installed coevolve is not
    used.

    >>> program()[:22]
    b'#!/usr/bin/env python3'
    """
    files = {"__main__.py": _MAIN, "coevolve/__init__.py": b"", "coevolve/views/__init__.py": b""}
    for module in (questions, answer_text, formatting):
        files[f"{module.__name__.replace('.', '/')}.py"] = Path(module.__file__ or "").read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(files):
            archive.writestr(zipfile.ZipInfo(path), files[path])  # a fixed date
    return _SHEBANG + packed.getvalue()


PROPOSAL = "proposal.json"
_INSTRUCTIONS, _SUMMARY = "INSTRUCTIONS.md", "SUMMARY.md"
_ASIDE = ".gone-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A folder with everything an agent needs.

    Args:
        folder: The working directory of the agent, which may write anywhere in it.
        proposals: Where the agent writes candidates, each in its own folder.
        prompt: The first message to the agent; the rest is in `INSTRUCTIONS.md`.
    """

    folder: Path
    proposals: Path
    prompt: str

    def put_away(self, proposals: Sequence[Proposal] = ()) -> None:
        """Keep the first pages and the accepted candidates; set the rest aside for `sweep`.

        The run has a copy of everything that was laid out, and the agent may have written
        anything.
        """
        aside = set_aside(self.folder)
        self.folder.mkdir(parents=True)
        for name in (_INSTRUCTIONS, _SUMMARY):
            if aside is not None and _is_file(aside / name):
                (aside / name).rename(self.folder / name)
        self.proposals.mkdir()
        for proposal in proposals:
            _write_proposal(self.proposals, proposal)


def set_aside(folder: Path) -> Path | None:
    """Rename a folder to a hidden name beside it, which is fast for any size."""
    aside = folder.with_name(f"{_ASIDE}{secrets.token_hex(8)}")
    try:
        folder.rename(aside)
        if aside.is_symlink() or not aside.is_dir():
            return None
        aside.chmod(0o700)  # the agent may have locked it
    except FileNotFoundError:
        return None
    return aside


def sweep(folder: Path) -> None:
    """Delete everything that was set aside in a folder; this can take long."""
    for aside in folder.glob(f"{_ASIDE}*"):
        remove(aside)


def lay_out(view: View, folder: Path, *, count: int, broken: Broken | None = None) -> Workspace:
    """Write a workspace into a new or empty folder.

    Args:
        view: What the agent may know.
        folder: Where to write.
        count: The number of candidates to propose.
        broken: A candidate to repair, instead of new ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; a workspace needs a new or empty folder.")
    index = index_of(view)
    _place(index)
    for row in index["candidates"]:
        _write_candidate(view, folder, row)
    _write_json(folder / INDEX, index)
    _write_json(folder / "tasks.json", index["tasks"], indent=1)
    _write(folder / "tasks.md", tasks_page(index))
    _write(folder / _SUMMARY, summary(index))
    (folder / "bin").mkdir()
    (folder / "bin" / "coevolve").write_bytes(program())
    (folder / "bin" / "coevolve").chmod(0o755)
    (folder / "proposals").mkdir()
    if broken is None:
        message, page = prompt(view, count), instructions(view, index, count)
    else:
        home = _write_proposal(folder / "proposals", broken.proposal)
        message, page = repair_prompt(view, home), repair_instructions(view, broken, home)
    _write(folder / _INSTRUCTIONS, page)
    return Workspace(folder=folder, proposals=folder / "proposals", prompt=message)


def _place(index: Row) -> None:
    """Set the folder of every candidate, the file name of every task, the path of every trace."""
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
    """Write the files of a candidate, its traces, and its `standing.json`."""
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
    """Write a candidate in the form that agents submit; returns the name of its folder."""
    (made,) = file_names([proposal.name]).values()
    others = (f"{made}-{number}" for number in itertools.count(2))
    home = next(
        name for name in itertools.chain([made], others) if not (proposals / name).exists()
    )
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
    """A trace with one value per line."""
    try:
        return json_text(json.loads(trace), indent=1, ascii=False)
    except (ValueError, RecursionError):
        return json_text(trace, ascii=False)


def _write_json(path: Path, value: Any, indent: int | None = None) -> None:
    _write(path, json_text(value, indent=indent, ascii=False))


def _write(path: Path, text: str) -> None:
    path.write_bytes(f"{visible(text.rstrip())}\n".encode())


def _is_file(path: Path) -> bool:
    """Whether a path is a regular file, not a link to one."""
    return path.exists(follow_symlinks=False) and stat.S_ISREG(path.lstat().st_mode)
