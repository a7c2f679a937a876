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

from coevolve.errors import InputError
from coevolve.executors.isolation.folders import remove
from coevolve.proposers.workspace import query
from coevolve.proposers.workspace.index import index_of
from coevolve.proposers.workspace.instructions import instructions, mending, mending_prompt, prompt
from coevolve.proposers.workspace.query.source import INDEX, Row
from coevolve.proposers.workspace.summary import summary, tasks_page
from coevolve.search.candidate import address_of
from coevolve.search.proposal import Broken, Proposal, View

_LONGEST = 60


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A file name for each name: the name itself where that is safe, unique in any case.

    A name that had to be changed, or differs from another in nothing but capitals, ends with a
    digest of itself, so that a task keeps its file name from round to round.

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
    lengths = range(8, len(digest) + 1)  # longer only where somebody chose a name to collide
    return next(
        made for n in lengths if (made := f"{file or 'x'}-{digest[:n]}").casefold() not in taken
    )


_SHEBANG = b"#!/usr/bin/env python3\n"
_PACKAGE = Path(*query.__name__.split("."))


def program() -> bytes:
    """An executable archive of the package `query`, the same on every call.

    The folders above the package are empty in it, so that nothing else of this package is
    imported where it happens to be installed.

    >>> program()[:22]
    b'#!/usr/bin/env python3'
    """
    sources = {path.name: path.read_bytes() for path in Path(query.__path__[0]).glob("*.py")}
    files = {(parent / "__init__.py").as_posix(): b"" for parent in _PACKAGE.parents[:-1]}
    files |= {(_PACKAGE / name).as_posix(): source for name, source in sources.items()}
    files["__main__.py"] = sources["__main__.py"]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(files):
            archive.writestr(zipfile.ZipInfo(path), files[path])  # of 1980, whenever it is made
    return _SHEBANG + packed.getvalue()


PROPOSAL = "proposal.json"
_INSTRUCTIONS, _SUMMARY = "INSTRUCTIONS.md", "SUMMARY.md"
_ASIDE = ".gone-"


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

    def put_away(self, proposals: Sequence[Proposal] = ()) -> None:
        """Keep the pages that an agent reads first and what was taken over of its work.

        The rest is set aside, to be deleted by `sweep`: the run holds what was laid out, and the
        agent may have written anything.
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
    """Give a folder another name beside its own, which is free at once, however full it is."""
    aside = folder.with_name(f"{_ASIDE}{secrets.token_hex(8)}")
    try:
        folder.rename(aside)
        if aside.is_symlink() or not aside.is_dir():
            return None
        aside.chmod(0o700)  # somebody may have locked it
    except FileNotFoundError:
        return None
    return aside


def sweep(folder: Path) -> None:
    """Delete what was set aside in a folder; that can take long."""
    for aside in folder.glob(f"{_ASIDE}*"):
        remove(aside)


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
    _write(folder / _SUMMARY, summary(index))
    (folder / "bin").mkdir()
    (folder / "bin" / "coevolve").write_bytes(program())
    (folder / "bin" / "coevolve").chmod(0o755)
    (folder / "proposals").mkdir()
    if broken is None:
        said, page = prompt(view, count), instructions(view, index, count)
    else:
        home = _write_proposal(folder / "proposals", broken.proposal)
        said, page = mending_prompt(view, home), mending(view, broken, home)
    _write(folder / _INSTRUCTIONS, page)
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
    """A candidate, laid out as it is handed over; returns the name of its folder."""
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
    """A trace with a line for each of its values."""
    try:
        return json.dumps(json.loads(trace), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps(trace, ensure_ascii=False)


def _write_json(path: Path, value: Any, indent: int | None = None) -> None:
    _write(path, json.dumps(value, indent=indent, ensure_ascii=False))


def _write(path: Path, text: str) -> None:
    path.write_bytes(f"{text.rstrip()}\n".encode(errors="replace"))


def _is_file(path: Path) -> bool:
    """Whether a plain file lies there, and no link to one."""
    return path.exists(follow_symlinks=False) and stat.S_ISREG(path.lstat().st_mode)
