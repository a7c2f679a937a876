"""Questions about the history of a search, and their answers, for agents and people.

`coevolve query` answers them for a run, `bin/coevolve` for its workspace. This module is part of
that program: standard library only, Python 3.9.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coevolve.formatting import json_text, visible
from coevolve.views.answer_text import flat, gist, parsed, printed

FORMAT = "coevolve history 1"
INDEX = "history.json"
FLAGS = ("--json", "--never", "--mixed")
USAGE_ERROR = 2
_MOST_PAIRS = 5_000_000
"""Pairs of equal lines in a comparison of files, which takes seconds then."""

Row = dict[str, Any]


class QueryError(Exception):
    """A question without an answer; the message says what to ask instead."""


class Source:
    """The index of a search, and how to read the files and traces it lists.

    Args:
        index: The content of `history.json`.
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
        """Candidates with a score, the best first, ties in the order of proposal."""
        rows = [row for row in self.candidates.values() if row["rank"] is not None]
        return sorted(rows, key=lambda row: int(row["rank"]))

    def candidate(self, name: str) -> Row:
        """The row of a candidate."""
        if name not in self.candidates:
            close = nearest(name, self.candidates)
            raise QueryError(f"there is no candidate {name!r}.{close or _listed(self.candidates)}")
        return self.candidates[name]

    def task(self, name: str) -> Row:
        """The row of a task, found by its name or by the name of its files."""
        if name in self.tasks:
            return self.tasks[name]
        for row in self.tasks.values():
            if name == row["file"]:
                return row
        close = nearest(name, self.tasks) or _listed(self.tasks)
        raise QueryError(f"there is no task {name!r}.{close}")

    def outcome(self, row: Row, task: str) -> Row:
        """One outcome, with its trace in a line."""
        found = row["outcomes"][task]
        says = found["missing"] or gist(self.trace(row, task))
        return {"task": task, "candidate": row["name"], "score": found["score"], "says": says}


def in_workspace(folder: Path) -> Source:
    """The source for questions about a workspace."""

    def trace(row: Row, task: str) -> str | None:
        path = row["outcomes"][task]["trace"]
        return (folder / path).read_text("utf-8") if path else None

    def file(row: Row, path: str) -> bytes:
        return (folder / str(row["folder"]) / "files" / path).read_bytes()

    return Source(json.loads((folder / INDEX).read_text("utf-8")), file, trace)


def find_workspace(place: Path) -> Path | None:
    """The workspace that contains a folder, or None."""
    for folder in (place, *place.parents):
        if (folder / INDEX).is_file():
            with (folder / INDEX).open("rb") as file:
                if FORMAT.encode() in file.read(100):
                    return folder
    return None


def nearest(name: str, known: Iterable[str]) -> str:
    """A suggestion for the end of a message; empty if no known name is similar.

    >>> nearest("tip", ["top", "show"])
    " Did you mean 'top'?"
    """
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


class Shared(NamedTuple):
    """Tasks on which both candidates have a score, by which of them scored higher."""

    tasks: int
    first_better: dict[str, tuple[float, float]]
    second_better: dict[str, tuple[float, float]]


def shared_tasks(first: Mapping[str, float], second: Mapping[str, float]) -> Shared:
    """Compare two candidates on the tasks that both have a score on.

    >>> shared_tasks({"a": 1.0, "b": 0.0, "c": 1.0}, {"a": 0.0, "b": 0.0})
    Shared(tasks=2, first_better={'a': (1.0, 0.0)}, second_better={})
    """
    common = {task: (first[task], score) for task, score in second.items() if task in first}
    return Shared(
        tasks=len(common),
        first_better={task: pair for task, pair in common.items() if pair[0] > pair[1]},
        second_better={task: pair for task, pair in common.items() if pair[0] < pair[1]},
    )


def file_diff(
    first: Mapping[str, bytes], second: Mapping[str, bytes], names: Sequence[str]
) -> Iterator[str]:
    """The unified diff of two sets of files, without line ends.

    Files with too many equal lines are not compared line by line: it would take hours.
    """
    room = _MOST_PAIRS
    for path in sorted({*first, *second}):
        old, new = first.get(path), second.get(path)
        if old == new:
            continue
        before = "/dev/null" if old is None else f"{names[0]}/{path}"
        after = "/dev/null" if new is None else f"{names[1]}/{path}"
        try:
            lines = [(data or b"").decode().splitlines() for data in (old, new)]
        except UnicodeDecodeError:
            yield f"Binary files {before} and {after} differ"
            continue
        room -= _equal_pairs(lines[0], lines[1])
        if room < 0:
            yield f"Files {before} and {after} differ; they are too long to compare"
            continue
        yield from difflib.unified_diff(lines[0], lines[1], before, after, lineterm="")


def _equal_pairs(first: Sequence[str], second: Sequence[str]) -> int:
    """How many pairs of equal lines difflib looks at; it leaves out lines that are very common."""
    counts = Counter(second)
    common = len(second) // 100 + 1 if len(second) >= 200 else len(second)
    return sum(counts[line] for line in first if counts[line] <= common)


class Query(NamedTuple):
    """A query: its arguments, what it prints, and the function that answers it."""

    words: str
    does: str
    ask: Callable[..., Row]


def answer(source: Source, words: Sequence[str]) -> str:
    """The text that a query prints.

    Raises:
        QueryError: There is no such query, candidate, task or trace.
    """
    flags = [word for word in words if word in FLAGS]
    name, *given = [word for word in words if word not in FLAGS] or ["help"]
    if name == "help" or "-h" in words or "--help" in words:
        return usage()
    if name not in QUERIES:
        raise QueryError(
            f"there is no query {name!r}.{nearest(name, QUERIES)}\n{usage()}".rstrip()
        )
    query = QUERIES[name]
    _check(name, query, given, flags)
    found = query.ask(source, *given, *(flag for flag in flags if flag != "--json"))
    if "--json" in flags:
        return json_text(found, indent=2, ascii=False) + "\n"
    return printed(found)


def usage() -> str:
    """All queries, one per line."""
    forms = [
        (f"coevolve query {name} {query.words}", query.does) for name, query in QUERIES.items()
    ]
    return "".join(f"{form:<40} {does}\n" for form, does in forms) + "--json prints JSON.\n"


def brief(row: Row) -> Row:
    """The columns of a candidate in a table."""
    keys = ("rank", "name", "round", "kind", scored(row), "delta", "parents", "hypothesis")
    return {key: row[key] for key in keys}


def scored(row: Row) -> str:
    """The key of a candidate's score: under some protocols it is no estimate."""
    return "estimate" if "estimate" in row else "mean_score"


def scores(row: Row) -> dict[str, float]:
    """The scores of a candidate. Missing outcomes are left out: they are not 0."""
    found = {task: outcome["score"] for task, outcome in row["outcomes"].items()}
    return {task: score for task, score in found.items() if score is not None}


def _check(name: str, query: Query, given: Sequence[str], flags: Sequence[str]) -> None:
    wanted = [word for word in query.words.split() if "--" not in word]
    least = len([word for word in wanted if not word.startswith("[")])
    extra = [flag for flag in flags if flag != "--json" and flag not in query.words]
    if extra or not least <= len(given) <= len(wanted):
        got = " ".join([*given, *extra]) or "nothing"
        raise QueryError(f"{name} got {got}; the usage is: coevolve query {name} {query.words}")


def _top(source: Source, count: str = "10") -> Row:
    if not (count.isascii() and count.isdecimal() and int(count)):
        raise QueryError(f"N must be a number above 0, got {count!r}; try: coevolve query top 5")
    rows, others = source.ranked, source.candidates.values()
    found: Row = {"candidates": [brief(row) for row in rows[: int(count)]]}
    found["more"] = max(len(rows) - int(count), 0) or None
    keys = ("name", "round", "status", "reason")
    without = [{key: row[key] for key in keys} for row in others if row["rank"] is None]
    return {**found, "without_score": without}


def _show(source: Source, name: str) -> Row:
    row = dict(source.candidate(name))
    tried, outcomes = scores(row), row.pop("outcomes")
    children = [other["name"] for other in source.candidates.values() if name in other["parents"]]
    return {
        **row,
        "children": children,
        "tried": len(tried),
        "solved": list(tried.values()).count(1),
        "missing": len(outcomes) - len(tried),
    }


def _diff(source: Source, first: str, second: str) -> Row:
    rows = [source.candidate(name) for name in (first, second)]
    files = [{path: source.file(row, path) for path in row["files"]} for row in rows]
    shared = shared_tasks(scores(rows[0]), scores(rows[1]))
    return {
        "diff": "\n".join(file_diff(files[0], files[1], (first, second)))
        or "the files are identical",
        "candidates": [brief(row) for row in rows],
        "tasks_of_both": shared.tasks,
        "won": _moved(shared.second_better),
        "lost": _moved(shared.first_better),
    }


def _moved(better: Mapping[str, tuple[float, float]]) -> list[Row]:
    return [{"task": task, "from": old, "to": new} for task, (old, new) in better.items()]


def _failures(source: Source, name: str) -> Row:
    row = source.candidate(name)
    tried, others = scores(row), [(other["name"], scores(other)) for other in source.ranked]
    failed: list[Row] = []
    for task in [task for task, score in tried.items() if score < 1]:
        better = [other for other, theirs in others if theirs.get(task, -1) > tried[task]]
        found = source.outcome(row, task)
        failed.append(
            {"task": task, "score": tried[task], "better": better, "says": found["says"]}
        )
    failed.sort(key=lambda found: (not found["better"], found["score"]))
    missing = [source.outcome(row, task) for task in row["outcomes"] if task not in tried]
    keys = ("task", "score", "says")
    return {
        "candidate": name,
        "tried": len(tried),
        "failures": failed,
        "missing": [{key: found[key] for key in keys} for found in missing],
    }


def _task(source: Source, name: str) -> Row:
    row = source.task(name)
    met = [other for other in source.candidates.values() if row["task"] in other["outcomes"]]
    found = [source.outcome(other, row["task"]) for other in met]
    found.sort(key=lambda outcome: 1.0 if outcome["score"] is None else -outcome["score"])
    keys = ("candidate", "score", "says")
    return {**row, "outcomes": [{key: outcome[key] for key in keys} for outcome in found]}


def _tasks(source: Source, *flags: str) -> Row:
    rows: list[Row] = list(source.tasks.values())
    if flags:
        rows = [row for row in rows if row["mean"] is not None]
        never, mixed = "--never" in flags, "--mixed" in flags
        rows = [r for r in rows if (never and r["mean"] == 0) or (mixed and 0 < r["mean"] < 1)]
    return {"tasks": sorted(rows, key=lambda row: 2 if row["mean"] is None else row["mean"])}


def _trace(source: Source, name: str, task: str) -> Row:
    row, found = source.candidate(name), source.task(task)["task"]
    if found not in row["outcomes"]:
        raise QueryError(
            f"{name} has no outcome on {found!r}; `coevolve query task {found!r}` lists the "
            "candidates that have one."
        )
    outcome, text = row["outcomes"][found], source.trace(row, found)
    content: Any = "no trace" if text is None else flat(parsed(text))
    return {"candidate": name, "task": found, **outcome, "content": content}


QUERIES = {
    "top": Query("[N]", "the N best candidates (default 10)", _top),
    "show": Query("A", "candidate A: origin, score, number of tasks solved", _show),
    "diff": Query("A B", "changes from A to B: files, tasks won, tasks lost", _diff),
    "failures": Query("A", "tasks that A failed, those that others solved first", _failures),
    "task": Query("T", "the outcome of every candidate on task T", _task),
    "tasks": Query(
        "[--never|--mixed]", "mean score of all tasks, of unsolved or of mixed ones", _tasks
    ),
    "trace": Query("A T", "the trial of candidate A on task T: input, calls, answer", _trace),
}


def main(program: Path, words: Sequence[str]) -> int:
    """Answer a query about the workspace that contains the program, or the current folder."""
    asked = words[1:] if words[:1] == ["query"] else words
    if not asked or {"-h", "--help"} & set(asked):
        return _write(sys.stdout.fileno(), usage())
    folder = find_workspace(program.resolve().parent) or find_workspace(Path.cwd())
    if folder is None:
        return _refuse("this is not a workspace: history.json is missing.")
    try:
        return _write(sys.stdout.fileno(), answer(in_workspace(folder), asked))
    except QueryError as error:
        return _refuse(str(error))


def _refuse(message: str) -> int:
    _write(sys.stderr.fileno(), f"coevolve: {visible(message)}\n")
    return USAGE_ERROR


def _write(stream: int, text: str) -> int:
    """Write UTF-8 in any locale; a reader that stops early, as `head` does, is not an error."""
    left = text.encode("utf-8", "replace")
    with contextlib.suppress(BrokenPipeError):
        while left:
            left = left[os.write(stream, left) :]
    return 0


def _listed(known: Iterable[str]) -> str:
    """The first of the known names, for a message without a near match."""
    names = list(known)
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f" Known: {', '.join(names[:10])}{more}." if names else " There are none yet."
