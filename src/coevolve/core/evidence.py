"""The tasks that candidates were asked about, and the assignments that their estimates use."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from coevolve.core.arrays import Bools
from coevolve.core.assignment import Assignment, Design, Sample, drawn_samples
from coevolve.core.identifiers import Id
from coevolve.core.missingness import Cell
from coevolve.core.outcome_table import OutcomeTable
from coevolve.core.pool import Pool


@dataclass(slots=True)
class Asked:
    """The tasks that every candidate was asked about, and how many of each pool are left.

    `total` counts the tasks of all draws.

    >>> asked = Asked()
    >>> asked.everything("start", Pool(["a", "b", "c"]))
    >>> asked.left["start"], asked.count("start"), asked.total
    ([0], 3, 0)
    """

    masks: dict[Id, Bools] = field(default_factory=dict)
    left: dict[Id, list[int]] = field(default_factory=dict)
    total: int = 0

    def add(self, candidate: Id, designs: Sequence[Design], pool: Pool, *, anew: bool) -> None:
        """Count a draw from `pool`; a round that is drawn again starts `anew`."""
        if anew:
            self.masks[candidate] = np.zeros(len(pool), dtype=np.bool_)
        mask = self.masks[candidate]
        for design in designs:
            mask[design.positions] = True
            self.total += len(design.positions)
        pools = map(pool.members, pool.names)
        self.left[candidate] = [int(np.count_nonzero(~mask[members])) for members in pools]

    def everything(self, candidate: Id, pool: Pool) -> None:
        """Count a candidate that is evaluated on every task, without a draw."""
        self.masks[candidate] = np.ones(len(pool), dtype=np.bool_)
        self.left[candidate] = [0] * len(pool.names)

    def count(self, candidate: Id) -> int:
        """Number of tasks a candidate was asked about."""
        return int(np.count_nonzero(self.masks[candidate])) if candidate in self.masks else 0


@dataclass(slots=True)
class Progress:
    """How many trials of an assignment were told, and how many of these have a score.

    `scored` counts the scores alone, `answered` also the missing outcomes that count as failed.
    `pool` has the tasks it was drawn from; tasks may have been added since. `withdrawn` says why
    the trials that were not told never will be.
    """

    assignment: Assignment
    pool: Pool
    asked: frozenset[Id]
    told: int = 0
    scored: int = 0
    withdrawn: str = ""

    @property
    def complete(self) -> bool:
        return self.told == len(self.assignment)

    def recount(self, table: OutcomeTable) -> None:
        """Count again, after outcomes were told for the whole pool."""
        tasks = self.pool.positions(self.assignment.tasks)
        self.told = self.scored = 0
        for trial in self.assignment.trials:
            known, scores = table.find(
                self.assignment.candidate, tasks, np.full(len(tasks), trial, dtype=np.int64)
            )
            self.told += int(known.sum())
            self.scored += int((~np.isnan(scores)).sum())

    def untold(self, table: OutcomeTable) -> list[Cell]:
        """The outcomes that were asked for and not told."""
        tasks = self.pool.positions(self.assignment.tasks)
        found: list[Cell] = []
        for trial in self.assignment.trials:
            trials = np.full(len(tasks), trial, dtype=np.int64)
            known, _ = table.find(self.assignment.candidate, tasks, trials)
            found += [(task, trial) for task in tasks[~known].tolist()]
        return found

    def answered(self, failed: Sequence[Cell]) -> int:
        """The outcomes with a score, and those of `failed` among the missing ones."""
        if not failed:
            return self.scored
        drawn = np.concatenate([design.positions for design in self.assignment.designs])
        asked = set(drawn.tolist())
        trials = self.assignment.trials
        return self.scored + sum(task in asked and trial in trials for task, trial in failed)

    def empty_pool(self, table: OutcomeTable, failed: Sequence[Cell]) -> bool:
        """Whether it has no outcome that counts in some pool."""
        if self.scored == self.told:
            return False
        samples = Evidence((self,), failed=failed).samples(table)
        return any(not len(sample.scores) for sample in samples)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The assignments that an estimate uses: one draw and its further batches.

    `coming` counts the trials of further batches that are not told in full yet. `failed` are the
    missing outcomes that count as 0.
    """

    batches: tuple[Progress, ...]
    coming: int = 0
    failed: Sequence[Cell] = ()

    @classmethod
    def of(cls, batches: Sequence[Progress], failed: Sequence[Cell]) -> "Evidence":
        """The evidence for a candidate with these assignments.

        A round that is drawn again has other trial numbers and starts anew. It counts once it is
        complete, unless it has fewer outcomes that count than the draw before. Batches that are
        still open count only if nothing is complete.
        """
        draws: dict[tuple[int, ...], list[Progress]] = {}
        for progress in batches:
            draws.setdefault(progress.assignment.trials, []).append(progress)
        found = [
            cls(
                tuple(progress for progress in draw if progress.complete),
                coming=sum(len(p.assignment) for p in draw if not p.complete),
                failed=failed,
            )
            for draw in draws.values()
            if draw[0].complete
        ]
        latest_first = reversed(found)  # of equals, the latest counts
        only = cls((batches[0],), failed=failed)
        return max(latest_first, key=lambda one: one.answered, default=only)

    @property
    def pool(self) -> Pool:
        """The tasks that the first batch was drawn from."""
        return self.batches[0].pool

    @property
    def complete(self) -> bool:
        return all(progress.complete for progress in self.batches)

    @property
    def answered(self) -> int:
        return sum(progress.answered(self.failed) for progress in self.batches)

    @property
    def note(self) -> str:
        """What is still missing, if anything."""
        asked = sum(len(progress.assignment) for progress in self.batches)
        told = sum(progress.told for progress in self.batches)
        gone = next((p.withdrawn for p in self.batches if p.withdrawn), "")
        notes = [failures_note(self.failed), f"withdrawn: {gone}" if gone else ""]
        if told < asked:
            notes.append(f"{asked - told} of {asked} trials are not told yet")
        elif 2 * self.answered < told:
            notes.append("under half of the trials have a score")
        elif self.coming:
            notes.append(f"{self.coming} more trials are asked for and not told yet")
        return "; ".join(filter(None, notes))

    def samples(self, table: OutcomeTable) -> list[Sample]:
        """One sample per pool."""
        first = self.batches[0].assignment
        designs = [progress.assignment.designs for progress in self.batches]
        means = table.means(first.candidate, first.trials, self.failed)
        return drawn_samples(designs, *means)


def growth_note(then: Pool, now: Pool) -> str:
    """What an estimate for the tasks at that time says of those that were added since."""
    added = len(now) - len(then)
    if not added:
        return ""
    what = "task was" if added == 1 else "tasks were"
    return f"{added} {what} added since; this is an estimate for the {len(then)} before"


def failures_note(failed: Sequence[Cell]) -> str:
    """What an estimate says of missing outcomes that count as failed."""
    if not failed:
        return ""
    what = "trial without a score counts" if len(failed) == 1 else "trials without a score count"
    return f"{len(failed)} {what} as failed, because other candidates lost fewer"
