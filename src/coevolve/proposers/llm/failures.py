"""What the best candidate fails at, beside what another one does right there.

A task without a score is no failure: it is left out, wherever it would count as one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from coevolve.core.outcomes import Missing
from coevolve.proposers.base import View
from coevolve.proposers.llm.clipping import clip, size
from coevolve.proposers.llm.sharing import Part, fitted
from coevolve.proposers.llm.traces import shortened

_SOLVED = 0.5
"""A score from which a task counts as solved."""
_TRACE = 1_500
"""Bytes of a trace at most: many failures in short tell more than a few at length."""
_FEW = 3
"""Tasks that the best candidate solves which are shown, lest they be broken."""
_LEAST = 300
"""Bytes below which a trace says nothing."""


class Scored(NamedTuple):
    """A candidate's score on a task."""

    task: str
    candidate: str
    score: float


class Contrast(NamedTuple):
    """A task that the best candidate fails and another one solves."""

    own: Scored
    other: Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """The tasks that the best candidate was scored on, sorted by what others make of them."""

    best: str
    tried: int
    lost: tuple[Contrast, ...]
    unsolved: tuple[Scored, ...]
    solved: tuple[Scored, ...]


def sort_tasks(view: View) -> Tasks:
    """What the best candidate fails and others solve, what nobody solves, what it solves.

    Nobody solves a task, too, that the best candidate was not tried on. Within each, tasks of all
    pools by turns, in an order of the round's own.
    """
    scores = _by_task(view)
    lost, unsolved, solved = [], [], []
    for task in _shuffled(view, scores):
        own = next((one for one in scores[task] if one.candidate == view.parent), None)
        top = max(scores[task], key=lambda one: one.score)
        if own is not None and own.score >= _SOLVED:
            solved.append(own)
        elif top.score < _SOLVED:
            unsolved.append(own or top)
        elif own is not None:
            lost.append(Contrast(own, top))
    return Tasks(
        best=view.parent,
        tried=sum(any(one.candidate == view.parent for one in scores[task]) for task in scores),
        lost=tuple(lost),
        unsolved=tuple(unsolved),
        solved=tuple(solved),
    )


def failures(view: View, most: int) -> str:
    """The failures with their traces, as many as fit."""
    tasks = sort_tasks(view)
    if not tasks.tried:
        return clip("No task has a score of the best candidate yet.", most)
    head = (
        f"{tasks.best} was scored on {tasks.tried} of {len(view.tasks)} tasks: it solves "
        f"{len(tasks.solved)}, and fails {len(tasks.lost)} that another candidate solves. "
        f"{len(tasks.unsolved)} tasks were tried and solved by no candidate.{_by_pool(view)}"
    )
    unsolved, solved = ([(one,) for one in group] for group in (tasks.unsolved, tasks.solved))
    lost = f"Tasks that {tasks.best} fails and another candidate solves"
    parts = [
        Part(0.60, partial(_filled, view, lost, tasks.lost, None)),
        Part(0.30, partial(_filled, view, "Tasks that no candidate solves", unsolved, None)),
        Part(0.10, partial(_filled, view, f"Tasks that {tasks.best} solves", solved, _FEW)),
    ]
    texts = [clip(head, most), *fitted(parts, max(0, most - size(head) - 2))]
    return clip("\n\n".join(filter(None, texts)), most)


def _filled(
    view: View, title: str, groups: Sequence[Sequence[Scored]], most_shown: int | None, most: int
) -> str:
    """Tasks as far as they fit, each of a fair length; those left out are counted."""
    head = f"### {title}"
    room = most - size(head) - 60
    if not groups or room < _LEAST:
        return ""
    shown: list[str] = []
    for trials in groups[:most_shown]:
        each = min(room, _TRACE * len(trials))
        if each < _LEAST * len(trials):
            break
        shown.append(_task(view, trials, each - 2))
        room -= size(shown[-1]) + 2
    more = len(groups) - len(shown)
    rest = [f"… {more:,} more such tasks …"] if more else []
    return "\n\n".join([head, *shown, *rest])


def _task(view: View, trials: Sequence[Scored], most: int) -> str:
    task = trials[0].task
    pool = view.pools.get(task, "")
    head = f"#### {task} ({pool})" if pool else f"#### {task}"
    room = (most - size(head)) // len(trials)
    shown = []
    for trial in trials:
        title = f"{trial.candidate} scores {trial.score:g}:"
        trace = _quoted(view.trace(trial.candidate, task), room - size(title) - 2)
        shown.append(f"{title}\n{trace}")
    return clip("\n".join([head, *shown]), most)


def _quoted(trace: str | None, most: int) -> str:
    text = shortened(trace, most)
    marks = 2 * (text.count("\n") + 1)
    if size(text) + marks > most:
        text = shortened(trace, most - marks)
    return "\n".join(f"> {row}" for row in text.split("\n"))


def _by_task(view: View) -> dict[str, list[Scored]]:
    """The scores on each task, in the order of proposal; what is missing is no score."""
    scores: dict[str, list[Scored]] = {}
    for standing in view.standings:
        for task, score in standing.outcomes.items():
            if not isinstance(score, Missing):
                scores.setdefault(task, []).append(Scored(task, standing.candidate.name, score))
    return scores


def _shuffled(view: View, tasks: Iterable[str]) -> list[str]:
    """Tasks in an order drawn for the round, those of all pools by turns."""
    names = sorted(tasks)
    order = np.random.default_rng([view.seed, len(names)]).permutation(len(names))
    turns: dict[str, int] = {}
    placed = []
    for position in order:
        pool = view.pools.get(names[position], "")
        turns[pool] = turns.get(pool, 0) + 1
        placed.append((turns[pool], names[position]))
    return [name for _, name in sorted(placed, key=lambda pair: pair[0])]


def _by_pool(view: View) -> str:
    """How often candidates solve the tasks of each pool, where there are several."""
    means: dict[str, list[float]] = {}
    for task, known in view.solvability.items():
        if task in view.pools:
            means.setdefault(view.pools[task], []).append(known.mean)
    said = ", ".join(f"{pool} {sum(m) / len(m):.2f}" for pool, m in sorted(means.items()))
    return f" Mean score of all candidates by pool: {said}." if said else ""
