"""The history of a search as plain JSON: every candidate, outcome and task a proposer may know.

It feeds `coevolve query`, and `history.json` and the pages of a workspace.
"""

from typing import Any

from coevolve.core.choice import Choice
from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing
from coevolve.search.proposal import Standing, View
from coevolve.views.questions import FORMAT, Row, Source


def index_of(view: View) -> Row:
    """Everything in a view except files and traces.

    `folder`, `file` and `trace` are paths in a workspace, empty until it is laid out. A candidate
    has an `estimate`, or a `mean_score` if the protocol estimates nothing.
    """
    ranks = ranks_of(view.standings)
    return {
        "format": FORMAT,
        "round": view.round,
        "parent": view.parent,
        "best": None if view.best is None else _best(view, view.best),
        "tasks": [_task(view, task) for task in view.tasks],
        "candidates": [_candidate(view, s, ranks.get(s.candidate.name)) for s in view.standings],
    }


def source_of(view: View) -> Source:
    """The source for queries about a view."""

    def file(row: Row, path: str) -> bytes:
        return view.read(view.standing(row["name"]).candidate.files[path])

    def trace(row: Row, task: str) -> str | None:
        return view.trace(row["name"], task)

    return Source(index_of(view), file, trace)


def ranks_of(standings: tuple[Standing, ...]) -> dict[str, int]:
    """The rank of every candidate with an estimate, from 1; ties share a rank."""
    values = {s.candidate.name: s.estimate.value for s in standings if s.estimate is not None}
    order = sorted(values.values(), reverse=True)
    return {name: order.index(value) + 1 for name, value in values.items()}


def _candidate(view: View, standing: Standing, rank: int | None) -> Row:
    candidate = standing.candidate
    return {
        "name": candidate.name,
        "round": candidate.round,
        "status": standing.status,
        "reason": standing.reason,
        "rank": rank,
        **_scored(view, standing.estimate),
        "delta": standing.delta,
        "parents": list(candidate.parents),
        "kind": candidate.kind,
        "components": list(candidate.components),
        "hypothesis": candidate.hypothesis,
        "folder": "",
        "files": list(candidate.files),
        "outcomes": {task: _outcome(score) for task, score in standing.outcomes.items()},
    }


def _outcome(score: float | Missing) -> Row:
    """A score, or the reason why it is missing; missing is not 0."""
    if isinstance(score, Missing):
        return {"score": None, "missing": score.reason, "trace": ""}
    return {"score": score, "missing": "", "trace": ""}


def _task(view: View, task: str) -> Row:
    known = view.solvability.get(task)
    return {
        "task": task,
        "pool": view.pools.get(task, ""),
        "mean": None if known is None else known.mean,
        "candidates": 0 if known is None else known.candidates,
        "file": "",
    }


def _scored(view: View, found: Estimate | None) -> dict[str, Any]:
    """The estimate of a score; or its mean alone, if the protocol estimates nothing."""
    key = "estimate" if view.disclosure.estimated else "mean_score"
    if found is None:
        return {key: None}
    data = found.to_json()
    if key == "mean_score":
        kept = ("value", "tasks", "pool_size", "scale")
        return {key: {name: data[name] for name in kept if name in data}}
    return {key: {**data, "exact": found.exact}}


def _best(view: View, best: Choice) -> Row:
    return {
        "candidate": best.candidate,
        **_scored(view, best.estimate),
        "why": best.why if view.disclosure.estimated else "",
        "tied_with": list(best.tied_with),
        "better_start": best.better_start,
    }
