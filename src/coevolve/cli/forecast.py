"""What a run will take, before it begins: ranges, and what cannot be told."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coevolve.core.allocation import Adaptive
from coevolve.core.selector import Selector
from coevolve.search.budget import Settings

MEASURES = ("tokens", "dollars", "seconds")
PLAYED = 2
"""Searches played through for a protocol that decides as it goes."""
MOST_PLAYED = 12
"""Candidates of a search that is played through; beyond, trials go on at the same rate."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number that lies between two others.

    >>> Range(1, 2) * 10 + Range(5, 5)
    Range(low=15, high=25)
    """

    low: float
    high: float

    def __mul__(self, other: "Range | float") -> "Range":
        by = other if isinstance(other, Range) else Range(other, other)
        return Range(self.low * by.low, self.high * by.high)

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)

    def to_json(self) -> list[float]:
        """Plain JSON."""
        return [self.low, self.high]


Known = dict[str, Range]
"""What is known of each measure; one that is left out is unknown."""
NOTHING: Known = {name: Range(0, 0) for name in MEASURES}
"""What costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a run: its trials, and its tokens, dollars and hours where they are known."""

    name: str
    trials: Range
    spent: Known

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, null for what is unknown."""
        found = {name: self.spent.get(name) for name in ("tokens", "dollars", "hours")}
        known = {name: None if one is None else one.to_json() for name, one in found.items()}
        return {"part": self.name, "trials": self.trials.to_json(), **known}


def search_trials(selector: Selector, settings: Settings, starts: int) -> Range:
    """Trials of the rounds.

    At most every proposal can be evaluated, at least one of each round. What an adaptive
    protocol asks for is seen by playing searches through, on outcomes drawn by chance.
    """
    adaptive = isinstance(selector.protocol.allocation, Adaptive)
    seeds = range(PLAYED if adaptive else 1)
    counts = {
        per_round: [_play(selector, settings.rounds, per_round, starts, seed) for seed in seeds]
        for per_round in {1, settings.candidates}
    }
    return Range(min(counts[1]), max(counts[settings.candidates]))


def parts_of(
    *,
    searched: Range,
    starts: int,
    tasks: int,
    test: int,
    rescored: int,
    rounds: int,
    workers: int,
    trial: Known,
    proposal: Known,
) -> list[Part]:
    """The parts of a run and their sum; `trial` and `proposal` say what one of each takes."""
    counts = {
        "phase 0": Range(starts * tasks, starts * tasks),
        "rounds": searched,
        "the winner in full": Range(rescored, rescored),
        "sealed test": Range((starts + 1) * test, (starts + 1) * test),
    }
    found = [
        Part(name=name, trials=number, spent=_evaluating(number, trial, workers))
        for name, number in counts.items()
        if number.high
    ]
    writing = {_hours(name): one * rounds for name, one in proposal.items()}
    if "hours" in writing:
        writing["hours"] *= 1 / 3600
    found.append(Part(name="proposing", trials=Range(0, 0), spent=writing))
    return [*found, _sum(found)]


def usage_range(groups: Iterable[Iterable[float]]) -> Range | None:
    """From the lowest mean of a group to the highest; None where there are none."""
    means = [float(np.mean(values)) for group in groups if (values := list(group))]
    return Range(min(means), max(means)) if means else None


def capped(part: Part, caps: dict[str, float | None]) -> Part:
    """A part that a budget ends."""

    def within(one: Range, cap: float | None) -> Range:
        return one if cap is None else Range(min(one.low, cap), min(one.high, cap))

    spent = {name: within(one, caps.get(name)) for name, one in part.spent.items()}
    return replace(part, trials=within(part.trials, caps["trials"]), spent=spent)


def _evaluating(trials: Range, each: Known, workers: int) -> Known:
    found = {_hours(name): trials * one for name, one in each.items()}
    if "hours" in found:
        found["hours"] *= 1 / 3600 / workers
    return found


def _hours(measure: str) -> str:
    return "hours" if measure == "seconds" else measure


def _sum(parts: list[Part]) -> Part:
    trials = Range(0, 0)
    spent: Known = {}
    for part in parts:
        trials += part.trials
    for name in ("tokens", "dollars", "hours"):
        if all(name in part.spent for part in parts):
            total = Range(0, 0)
            for part in parts:
                total += part.spent[name]
            spent[name] = total
    return Part(name="all", trials=trials, spent=spent)


def _play(selector: Selector, rounds: int, per_round: int, starts: int, seed: int) -> int:
    """Trials of a search whose outcomes are drawn by chance."""
    copy = Selector.from_events(selector.events)
    rng = np.random.default_rng(seed)
    ease = dict(zip(copy.pool.tasks, rng.random(len(copy.pool)), strict=True))
    trials = copy.events[0]["trials"]

    def scores(tasks: Iterable[str]) -> dict[str, list[float]]:
        return {task: (rng.random(trials) < ease[task]).astype(float).tolist() for task in tasks}

    for start in range(starts):
        copy.tell_full(f"start-{start}", scores(copy.pool.tasks))
    played = min(rounds, max(1, MOST_PLAYED // per_round))
    for round in range(played):
        asked = copy.ask([f"{round}-{index}" for index in range(per_round)])
        while asked:
            for assignment in asked:
                copy.tell(assignment, scores(assignment.tasks))
            asked = copy.ask(final=round == played - 1)
    return round_up(copy.evaluations * rounds / played)


def round_up(number: float) -> int:
    """The whole number from this one on.

    >>> round_up(4.2), round_up(4.0)
    (5, 4)
    """
    return -int(-number // 1)
