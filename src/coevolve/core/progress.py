"""How far assignments have been told, and which of them speak for a candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coevolve.core.assignment import Assignment
from coevolve.core.pool import Pool
from coevolve.core.sample import Sample, drawn_samples
from coevolve.core.table import OutcomeTable


@dataclass(slots=True)
class Progress:
    """How many trials of an assignment have been told, and how many of these have a score."""

    assignment: Assignment
    asked: frozenset[str]
    told: int = 0
    scored: int = 0
    empty_pool: bool = False

    @property
    def complete(self) -> bool:
        return self.told == len(self.assignment)

    def recount(self, table: OutcomeTable, pool: Pool) -> None:
        """Count anew, after outcomes came in by another way."""
        tasks = pool.positions(self.assignment.tasks)
        self.told = self.scored = 0
        for trial in self.assignment.trials:
            known, scores = table.find(
                self.assignment.candidate, tasks, np.full(len(tasks), trial, dtype=np.int64)
            )
            self.told += int(known.sum())
            self.scored += int((~np.isnan(scores)).sum())
        self.look(table)

    def look(self, table: OutcomeTable) -> None:
        """When a first draw is complete, see whether a pool was left without any score."""
        if self.scored == self.told:
            self.empty_pool = False
        elif self.complete and self.assignment.batch == 0:
            samples = Evidence((self,)).samples(table)
            self.empty_pool = any(not len(sample.scores) for sample in samples)


@dataclass(frozen=True, slots=True)
class Round:
    """One round and its candidates."""

    number: int
    candidates: tuple[str, ...]

    def settled(self, batches: Mapping[str, Sequence[Progress]]) -> bool | None:
        """Whether its first draw has half of its scores, some in every pool; None if not told."""
        first = [batches[name][0] for name in self.candidates]
        if not all(progress.complete for progress in first):
            return None
        asked = sum(len(progress.assignment) for progress in first)
        half = 2 * sum(progress.scored for progress in first) >= asked
        return half and not any(progress.empty_pool for progress in first)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The assignments that speak for a candidate: one draw and what was added to it later.

    `coming` counts the trials of further batches that are not told in full yet.
    """

    batches: tuple[Progress, ...]
    coming: int = 0

    @property
    def complete(self) -> bool:
        return all(progress.complete for progress in self.batches)

    @property
    def scored(self) -> int:
        return sum(progress.scored for progress in self.batches)

    @property
    def note(self) -> str:
        """What is still open about it, if anything."""
        asked = sum(len(progress.assignment) for progress in self.batches)
        told = sum(progress.told for progress in self.batches)
        if told < asked:
            return f"{asked - told} of {asked} trials are not told yet"
        if 2 * self.scored < told:
            return "under half of the trials have a score"
        return f"{self.coming} more trials are asked for and not told yet" if self.coming else ""

    def samples(self, table: OutcomeTable) -> list[Sample]:
        """One sample per pool."""
        first = self.batches[0].assignment
        designs = [progress.assignment.designs for progress in self.batches]
        return drawn_samples(designs, *table.means(first.candidate, first.trials))


def evidence(batches: list[Progress]) -> Evidence:
    """What speaks for a candidate with these assignments.

    A round drawn again has trial numbers of its own and starts anew; it counts once it is
    complete, unless it has fewer scores than the draw before. Batches that are still open count
    only where nothing is complete.
    """
    draws: dict[tuple[int, ...], list[Progress]] = {}
    for progress in batches:
        draws.setdefault(progress.assignment.trials, []).append(progress)
    complete = [_told(draw) for draw in draws.values() if draw[0].complete]
    if not complete:
        return Evidence((batches[0],))
    return max(enumerate(complete), key=lambda numbered: (numbered[1].scored, numbered[0]))[1]


def _told(draw: list[Progress]) -> Evidence:
    """What is told of a draw and of what was added to it."""
    complete = tuple(progress for progress in draw if progress.complete)
    coming = sum(len(progress.assignment) for progress in draw if not progress.complete)
    return Evidence(complete, coming)
