"""What the best candidate fails at, beside what another one does right there.

A task without a score is no failure: it is left out, wherever it would count as one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from coevolve.core.outcomes import Missing
from coevolve.proposers.base import Standing, View
from coevolve.proposers.llm.clipping import clip, size
from coevolve.proposers.llm.sharing import Part, fitted
from coevolve.proposers.llm.traces import shortened

_SOLVED = 0.5
"""A score from which a task counts as solved."""
_TRACE = 1_800
_LEAST = 300
"""Bytes below which a trace says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A task that the best candidate fails and another one does better at."""

    task: str
    other: str
    own: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """The tasks that the best candidate was scored on, sorted by what others make of them."""

    best: str
    tried: int
    lost: tuple[Contrast, ...]
    unsolved: tuple[str, ...]
    solved: tuple[str, ...]


def sort_tasks(view: View) -> Tasks:
    """What the best candidate fails and others solve, what nobody solves, what it solves.

    Within each, tasks of all pools by turns, in an order of the round's own.
    """
    best = next((s for s in view.standings if s.candidate.name == view.parent), None)
    scores = {} if best is None else _scores(best)
    lost, unsolved, solved = [], [], []
    for task in _shuffled(view, scores):
        own = scores[task]
        if own >= _SOLVED:
            solved.append(task)
            continue
        other, score = _best_other(view, task)
        if score >= _SOLVED:
            lost.append(Contrast(task=task, other=other, own=own, score=score))
        else:
            unsolved.append(task)
    return Tasks(
        best=view.parent,
        tried=len(scores),
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
        f"{len(tasks.solved)}, fails {len(tasks.lost)} that another candidate solves, and "
        f"{len(tasks.unsolved)} that no candidate solves yet.{_by_pool(view)}"
    )
    groups = (
        (0.60, f"Tasks that {tasks.best} fails and another candidate solves", _lost(view, tasks)),
        (0.30, "Tasks that no candidate solves", _alone(view, tasks.best, tasks.unsolved)),
        (0.10, f"Tasks that {tasks.best} solves", _alone(view, tasks.best, tasks.solved)),
    )
    parts = [
        Part(share, partial(_filled, view, title, entries)) for share, title, entries in groups
    ]
    texts = [clip(head, most), *fitted(parts, max(0, most - size(head) - 2))]
    return clip("\n\n".join(filter(None, texts)), most)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """One task to show: its trials, each a title with a candidate."""

    task: str
    pool: str
    trials: tuple[tuple[str, str], ...]

    def text(self, view: View, most: int) -> str:
        head = f"#### {self.task}{f' ({self.pool})' if self.pool else ''}"
        room = (most - size(head)) // len(self.trials) - 40
        shown = [
            f"{title}\n{_quoted(view.trace(name, self.task), room)}" for title, name in self.trials
        ]
        return clip("\n".join([head, *shown]), most)


def _lost(view: View, tasks: Tasks) -> list[_Entry]:
    return [
        _Entry(
            task=contrast.task,
            pool=view.pools.get(contrast.task, ""),
            trials=(
                (f"{tasks.best} scores {contrast.own:g}:", tasks.best),
                (f"{contrast.other} scores {contrast.score:g}:", contrast.other),
            ),
        )
        for contrast in tasks.lost
    ]


def _alone(view: View, best: str, names: Iterable[str]) -> list[_Entry]:
    return [
        _Entry(task=task, pool=view.pools.get(task, ""), trials=((f"{best}:", best),))
        for task in names
    ]


def _filled(view: View, title: str, entries: list[_Entry], most: int) -> str:
    """Entries as far as they fit, each of a fair length; those left out are counted."""
    head = f"### {title}"
    room = most - size(head) - 60
    if not entries or room < _LEAST:
        return ""
    shown: list[str] = []
    for entry in entries:
        each = min(room, _TRACE * len(entry.trials))
        if each < _LEAST * len(entry.trials):
            break
        text = entry.text(view, each - 2)
        shown.append(text)
        room -= size(text) + 2
    more = len(entries) - len(shown)
    rest = [f"… {more:,} more such tasks …"] if more else []
    return "\n\n".join([head, *shown, *rest])


def _quoted(trace: str | None, most: int) -> str:
    text = shortened(trace, most)
    marks = 2 * (text.count("\n") + 1)
    if size(text) + marks > most:
        text = shortened(trace, most - marks)
    return "\n".join(f"> {row}" for row in text.split("\n"))


def _scores(standing: Standing) -> dict[str, float]:
    return {t: s for t, s in standing.outcomes.items() if not isinstance(s, Missing)}


def _best_other(view: View, task: str) -> tuple[str, float]:
    found = ("", -1.0)
    for standing in view.standings:
        score = standing.outcomes.get(task)
        if standing.candidate.name == view.parent or score is None or isinstance(score, Missing):
            continue
        if score > found[1]:
            found = (standing.candidate.name, score)
    return found


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
