"""The queries: what each finds, and how they are asked."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from coevolve.proposers.workspace.query.printing import (
    flat,
    parsed,
    printed,
)
from coevolve.proposers.workspace.query.source import QueryError, Row, Source, nearest

FLAGS = ("--json", "--never", "--mixed")


class Query(NamedTuple):
    """A query: the words it takes, what it does, and how it is answered."""

    words: str
    does: str
    ask: Callable[..., Row]


def answer(source: Source, words: Sequence[str]) -> str:
    """What a query prints.

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
        return json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    return printed(found)


def usage() -> str:
    """All queries, one on a line."""
    forms = [
        (f"coevolve query {name} {query.words}", query.does) for name, query in QUERIES.items()
    ]
    return "".join(f"{form:<40} {does}\n" for form, does in forms) + "--json prints JSON.\n"


def brief(row: Row) -> Row:
    """A candidate in a line."""
    keys = ("rank", "name", "round", "kind", "estimate", "delta", "parents", "hypothesis")
    return {key: row[key] for key in keys}


def scores(row: Row) -> dict[str, float]:
    """What a candidate scored; what is missing is left out, for it is no 0."""
    found = {task: outcome["score"] for task, outcome in row["outcomes"].items()}
    return {task: score for task, score in found.items() if score is not None}


def _check(name: str, query: Query, given: Sequence[str], flags: Sequence[str]) -> None:
    wanted = [word for word in query.words.split() if "--" not in word]
    least = len([word for word in wanted if not word.startswith("[")])
    extra = [flag for flag in flags if flag != "--json" and flag not in query.words]
    if extra or not least <= len(given) <= len(wanted):
        got = " ".join([*given, *extra]) or "nothing"
        raise QueryError(f"{name} got {got}; the form is: coevolve query {name} {query.words}")


def _top(source: Source, count: str = "10") -> Row:
    if not (count.isascii() and count.isdecimal() and int(count)):
        raise QueryError(f"N must be a number above 0, got {count!r}; say: coevolve query top 5")
    rows, others = source.ranked, source.candidates.values()
    found: Row = {"candidates": [brief(row) for row in rows[: int(count)]]}
    found["more"] = max(len(rows) - int(count), 0) or None
    keys = ("name", "round", "status", "reason")
    without = [{key: row[key] for key in keys} for row in others if row["rank"] is None]
    return {**found, "without_estimate": without}


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
    lines: list[str] = []
    for path in sorted({path for row in rows for path in row["files"]}):
        both = [source.file(row, path) if path in row["files"] else b"" for row in rows]
        ends = [f"{row['name']}/{path}" if path in row["files"] else "-" for row in rows]
        lines += _changed(both, ends)
    a, b = (scores(row) for row in rows)
    won = [task for task in b if task in a and b[task] > a[task]]
    lost = [task for task in b if task in a and b[task] < a[task]]
    return {
        "diff": "\n".join(lines) or "the files are the same",
        "candidates": [brief(row) for row in rows],
        "tasks_of_both": len(a.keys() & b.keys()),
        "won": [{"task": task, "from": a[task], "to": b[task]} for task in won],
        "lost": [{"task": task, "from": a[task], "to": b[task]} for task in lost],
    }


def _changed(both: Sequence[bytes], ends: Sequence[str]) -> list[str]:
    """The unified diff of two contents."""
    try:
        texts = [data.decode("utf-8").splitlines() for data in both]
    except UnicodeDecodeError:
        return [f"Binary files {ends[0]} and {ends[1]} differ"] if both[0] != both[1] else []
    return list(difflib.unified_diff(texts[0], texts[1], ends[0], ends[1], lineterm=""))


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
        raise QueryError(f"{name} was not tried on {found!r}; `coevolve query failures {name}`.")
    outcome, text = row["outcomes"][found], source.trace(row, found)
    content: Any = "no trace" if text is None else flat(parsed(text))
    return {"candidate": name, "task": found, **outcome, "content": content}


QUERIES = {
    "top": Query("[N]", "the N best candidates (10)", _top),
    "show": Query("A", "candidate A: where it comes from, how it stands", _show),
    "diff": Query("A B", "what changed from A to B: files, and tasks won and lost", _diff),
    "failures": Query("A", "what A did not solve, first what others did solve", _failures),
    "task": Query("T", "what every candidate made of task T", _task),
    "tasks": Query(
        "[--never|--mixed]", "how often tasks were solved: all, never, at times", _tasks
    ),
    "trace": Query("A T", "candidate A on task T: input, calls, answer, error", _trace),
}
