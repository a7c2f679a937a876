"""The expected cost of a run before it starts: ranges, and what is unknown."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coevolve.core.allocation import Adaptive, AdaptiveShare, Share, share
from coevolve.core.selector import Selector
from coevolve.formatting import amount, plural
from coevolve.search.budget import CAPS, Settings
from coevolve.views.spend import Costs, Range, Savings

PLAYED = 2
"""Searches simulated for an adaptive protocol."""
MOST_PLAYED = 12
"""Candidates of a simulated search; the trials of more are extrapolated."""
PRICED = tuple(cap for cap in CAPS if cap != "trials")
"""Measures of the budget that a trial spends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a run: its trials, and its tokens, dollars and hours where they are known."""

    name: str
    trials: Range
    spent: Costs

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, null for what is unknown."""
        found = {name: self.spent.get(name) for name in PRICED}
        known = {name: None if one is None else one.to_json() for name, one in found.items()}
        return {"part": self.name, "trials": self.trials.to_json(), **known}


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The parts of a run, their total, the caps of the budget, and notes for the reader.

    `savings` compare the run with a full search, both without caps; `drawn` says how many tasks
    of each pool a candidate gets.
    """

    parts: tuple[Part, ...]
    total: Part
    savings: Savings
    caps: dict[str, float | None]
    notes: tuple[str, ...]
    drawn: "Drawn | None" = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; the total is the last part."""
        return {
            "parts": [part.to_json() for part in (*self.parts, self.total)],
            "savings": self.savings.to_json(),
            "caps": self.caps,
            "notes": list(self.notes),
            "drawn": None if self.drawn is None else self.drawn.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How many tasks of each pool a candidate gets, and how the numbers were rounded.

    `first` are the tasks of an adaptive protocol's first look; `tasks` are then an average.
    """

    fraction: float
    rounding: str
    pools: tuple[str, ...]
    sizes: tuple[int, ...]
    tasks: tuple[int, ...]
    first: tuple[int, ...] | None = None

    @classmethod
    def of(cls, selector: Selector) -> "Drawn | None":
        """The draws of a selector; None unless its protocol draws a fixed share of the tasks."""
        pool, allocation = selector.pool, selector.protocol.allocation
        if not isinstance(allocation, Share | AdaptiveShare):
            return None
        adaptive = isinstance(allocation, AdaptiveShare)
        none = np.empty(0)
        return cls(
            fraction=allocation.fraction,
            rounding=allocation.rounding,
            pools=pool.names,
            sizes=tuple(len(pool.members(name)) for name in pool.names),
            tasks=share(allocation.fraction, pool, allocation.rounding),
            first=allocation.sizes(pool, none) if adaptive else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; the numbers of tasks by pool."""
        rows = zip(self.pools, self.sizes, self.tasks, strict=True)
        return {
            "fraction": self.fraction,
            "rounding": self.rounding,
            "pools": {name: {"tasks": size, "drawn": drawn} for name, size, drawn in rows},
        }

    def __str__(self) -> str:
        """In a sentence.

        >>> print(Drawn(fraction=0.07, rounding="floor", pools=("a", "b"), sizes=(30, 50),
        ...     tasks=(2, 3)))
        A candidate gets 2/3 of 30/50 tasks (a/b): 7% of each pool, rounded down.
        """
        names = "" if self.pools == ("all",) else f" ({'/'.join(self.pools)})"
        tasks, sizes = "/".join(map(str, self.tasks)), "/".join(map(str, self.sizes))
        exact = [round(size * self.fraction, 9) for size in self.sizes]
        each = "the tasks" if self.pools == ("all",) else "each pool"
        text = f"{tasks} of {sizes} tasks{names}: {100 * self.fraction:.4g}% of {each}"
        if any(number != int(number) for number in exact):
            text += f", rounded {'up' if self.rounding == 'ceil' else 'down'}"
        text += ", at least 1." if min(exact) < 1 and self.rounding == "floor" else "."
        if self.first is None:
            return f"A candidate gets {text}"
        first = "/".join(map(str, self.first))
        return f"A candidate gets {first} tasks at first; on average at most {text}"


def forecast(
    selector: Selector,
    settings: Settings,
    *,
    starts: int,
    test_tasks: int,
    workers: int,
    trial: Costs,
    proposal: Costs,
    measured: bool = False,
    given: int = 0,
) -> Forecast:
    """The expected cost of a run.

    Args:
        selector: The selector of the run, before any outcome.
        settings: How the run searches.
        starts: Number of starting harnesses.
        test_tasks: Number of tasks of the sealed test.
        workers: Trials that run at once.
        trial: The cost of a trial, as far as it is known.
        proposal: The cost of a proposal, as far as it is known.
        measured: Whether `trial` comes from one trial of each starting harness.
        given: Trials of Phase 0 that past results stand for.
    """
    each = selector.events[0]["trials"]
    tasks = len(selector.pool) * each
    counts = {
        "phase 0": _exactly(starts * tasks - given),
        "rounds": search_trials(selector, settings, starts),
        "rescoring the winner": _exactly(tasks if settings.rescore else 0),
        "sealed test": _exactly((starts + 1) * test_tasks * each),
    }
    parts = [
        Part(name=name, trials=number, spent=evaluating_costs(number, trial, workers))
        for name, number in counts.items()
        if number.high
    ]
    spent = _in_hours({name: one * settings.rounds for name, one in proposal.items()})
    parts.append(Part(name="proposing", trials=Range(0, 0), spent=spent))
    total, caps = total_of(parts), settings.budget.to_json()
    within = capped(total, caps)
    rounds = Range(settings.rounds, settings.rounds * settings.candidates)
    savings = Savings.of(
        paid=total.trials,
        searched=counts["rounds"],
        full=rounds * tasks,
        rescored=tasks if settings.rescore else 0,
    )
    notes = list(_notes(trial, proposal, measured, within != total))
    if given:
        notes.append(f"Past results stand for {plural(given, 'trial')} of Phase 0.")
    if selector.pool.costs is not None:
        mean = float(selector.pool.costs.mean())
        notes.append(
            f"The pool's costs are {mean:.3g} per trial on average: "
            f"{shown(total.trials * mean, 'trials')} in total."
        )
    return Forecast(
        parts=tuple(parts),
        total=within,
        savings=savings,
        caps=caps,
        notes=tuple(notes),
        drawn=Drawn.of(selector),
    )


def search_trials(selector: Selector, settings: Settings, starts: int) -> Range:
    """Trials of the rounds: from one valid candidate per round to all of them.

    The trials of an adaptive protocol are found by simulation, with random outcomes.
    """
    adaptive = isinstance(selector.protocol.allocation, Adaptive)
    seeds = range(PLAYED if adaptive else 1)
    counts = {
        per_round: [_play(selector, settings.rounds, per_round, starts, seed) for seed in seeds]
        for per_round in {1, settings.candidates}
    }
    return Range(min(counts[1]), max(counts[settings.candidates]))


def capped(part: Part, caps: dict[str, float | None]) -> Part:
    """A part cut off by the caps of a budget."""

    def within(one: Range, cap: float | None) -> Range:
        return one if cap is None else Range(min(one.low, cap), min(one.high, cap))

    spent = {name: within(one, caps.get(name)) for name, one in part.spent.items()}
    return replace(part, trials=within(part.trials, caps["trials"]), spent=spent)


def shown(one: Range | None, measure: str) -> str:
    """A range as text.

    >>> shown(Range(144, 288), "trials"), shown(Range(2, 2), "dollars"), shown(None, "tokens")
    ('144 to 288', '$2.00', 'unknown')
    """
    if one is None:
        return "unknown"
    low, high = (amount(measure, end).removesuffix(f" {measure}") for end in (one.low, one.high))
    return low if low == high else f"{low} to {high}"


def _notes(trial: Costs, proposal: Costs, measured: bool, cut: bool) -> Iterable[str]:
    if not trial:
        yield (
            "The cost of a trial is unknown. Add --like RUN to take it from an earlier run, or "
            "measure it on one trial of each starting harness: coevolve estimate FILE.toml --trial"
        )
    if measured:
        yield (
            "Measured on one trial of each starting harness; the range allows for a factor of 2 "
            "either way. Tokens and dollars are those that the benchmark reports."
        )
    if not proposal:
        yield "The cost of proposing is unknown. Add --like RUN to take it from an earlier run."
    if cut:
        yield "A cap of the budget ends the run early."


def _exactly(number: int) -> Range:
    return Range(number, number)


def evaluating_costs(trials: Range, each: Costs, workers: int) -> Costs:
    """The tokens, dollars and hours of some trials, as far as the cost of one is known."""
    found = _in_hours({name: trials * one for name, one in each.items()})
    if "hours" in found:
        found["hours"] *= 1 / workers
    return found


def _in_hours(spent: Costs) -> Costs:
    """Costs with hours in place of seconds."""
    found = {name: one for name, one in spent.items() if name != "seconds"}
    return found | ({"hours": spent["seconds"] * (1 / 3600)} if "seconds" in spent else {})


def total_of(parts: Sequence[Part]) -> Part:
    """The total of all parts; a measure that is unknown for one of them is unknown."""
    trials = Range(0, 0)
    for part in parts:
        trials += part.trials
    spent: Costs = {}
    for name in PRICED:
        if all(name in part.spent for part in parts):
            spent[name] = Range(0, 0)
            for part in parts:
                spent[name] += part.spent[name]
    return Part(name="all", trials=trials, spent=spent)


def _play(selector: Selector, rounds: int, per_round: int, starts: int, seed: int) -> int:
    """Trials of a simulated search with random outcomes."""
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
    return math.ceil(copy.evaluations * rounds / played)
