"""Designs, assignments and samples: the drawn tasks, their candidate, and the scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.designs import Draw
from coevolve.core.identifiers import Id, all_plain
from coevolve.core.pool import Pool
from coevolve.core.variance import Anticipation, Past
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """A draw from one pool, with the data that later estimates need.

    The arrays belong to the drawn `tasks`: their positions in the pool, inclusion probabilities
    π_t, weights w_t, anchors p̄_t and expected squared deviations u_t from these. `anchor_mean` and
    `anticipation` are of the whole pool. A further draw has no anticipation, and its π_t are
    conditional on the draws before. `seed` is the seed of the random generator.

    >>> from coevolve import Selector
    >>> (assignment,) = Selector(Pool(["a", "b", "c", "d"]), protocol="naive").ask(["new"])
    >>> (design,) = assignment.designs
    >>> design.method, design.pool_size, design.probabilities.tolist()
    ('fixed', 4, [0.25])
    """

    round: int
    pool: str
    pool_size: int
    method: str
    seed: tuple[int, ...]
    tasks: tuple[Id, ...]
    positions: Indices
    probabilities: Floats
    weights: Floats
    anchors: Floats
    expected: Floats
    anchor_mean: float
    anticipation: Anticipation | None

    @classmethod
    def from_draw(
        cls,
        draw: Draw,
        *,
        tasks: Pool,
        pool: str,
        members: Indices,
        round: int,
        method: str,
        seed: tuple[int, ...],
        weights: Floats,
        past: Past,
    ) -> Self:
        """The design of a draw from `members`: all or some tasks of a pool with this past."""
        whole, positions = tasks.members(pool), members[draw.chosen]
        at = np.searchsorted(whole, positions)
        at_once = len(members) == len(whole)
        return cls(
            round=round,
            pool=pool,
            pool_size=len(whole),
            method=method,
            seed=seed,
            tasks=tuple(tasks.tasks[position] for position in positions.tolist()),
            positions=positions,
            probabilities=draw.probabilities[draw.chosen],
            weights=weights[draw.chosen],
            anchors=past.anchors[at],
            expected=past.expected[at],
            anchor_mean=float(past.anchors.mean()),
            anticipation=Anticipation.of(past, draw.probabilities) if at_once else None,
        )

    def __post_init__(self) -> None:
        for array in (
            self.positions,
            self.probabilities,
            self.weights,
            self.anchors,
            self.expected,
        ):
            array.setflags(write=False)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the positions, which follow from the ids."""
        return {
            "round": self.round,
            "pool": self.pool,
            "method": self.method,
            "seed": list(self.seed),
            "tasks": all_plain(self.tasks),
            "probabilities": self.probabilities.tolist(),
            "weights": self.weights.tolist(),
            "anchors": self.anchors.tolist(),
            "expected": self.expected.tolist(),
            "anchor_mean": self.anchor_mean,
            "anticipation": None if self.anticipation is None else self.anticipation.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], pool: Pool) -> Self:
        """The design `to_json` described."""
        names = ("probabilities", "weights", "anchors", "expected")
        columns = {name: np.array(data[name], dtype=np.float64) for name in names}
        for name, column in columns.items():
            if column.shape != (len(data["tasks"]),):
                raise InputError(f"{name} of a design must have one entry per drawn task.")
        pi, anticipation = columns["probabilities"], data["anticipation"]
        if not ((pi > 0) & (pi <= 1 + 1e-9)).all():
            raise InputError("the inclusion probabilities of drawn tasks must be in (0, 1].")
        positions = pool.positions(data["tasks"])
        return cls(
            round=data["round"],
            pool=data["pool"],
            pool_size=len(pool.members(data["pool"])),
            method=data["method"],
            seed=tuple(data["seed"]),
            tasks=tuple(pool.tasks[at] for at in positions.tolist()),  # not a copy of each id
            positions=positions,
            anchor_mean=float(data["anchor_mean"]),
            anticipation=None if anticipation is None else Anticipation.from_json(anticipation),
            **columns,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assignment:
    """The tasks to evaluate one candidate on.

    Every task is run once for each of the trial numbers `trials`. `batch` counts the assignments
    of the candidate: 0 is its first, later ones were drawn because the protocol requested more
    tasks or because under half of the outcomes of its round had a score. An assignment of a
    restored selector is equal to the one before, and so is a copy from another process.

    >>> from coevolve import Selector
    >>> (assignment,) = Selector(Pool(["a", "b", "c", "d"]), protocol="full").ask(["new"])
    >>> assignment.candidate, assignment.round, assignment.tasks, len(assignment)
    ('new', 1, ('a', 'b', 'c', 'd'), 4)
    """

    candidate: Id
    round: int
    batch: int
    tasks: tuple[Id, ...]
    trials: tuple[int, ...]
    designs: tuple[Design, ...]

    @property
    def probabilities(self) -> dict[Id, float]:
        """Inclusion probability π_t of each task."""
        values = np.concatenate([design.probabilities for design in self.designs]).tolist()
        return dict(zip(self.tasks, values, strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Assignment):
            return NotImplemented
        return self is other or (
            self._key == other._key and self.probabilities == other.probabilities
        )

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return self.candidate, self.round, self.batch, self.trials, self.tasks

    def __len__(self) -> int:
        return len(self.tasks) * len(self.trials)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """The scores of one candidate on the tasks drawn from one pool.

    `scores`, `probabilities`, `anchors` (p̄_t) and `expected` (u_t) belong to the tasks with a
    score; `drawn` counts the tasks asked about, `anchor_mean` is the mean anchor of the whole pool
    and `anticipation` holds the variances expected from its history, if there is any.
    """

    pool: str
    pool_size: int
    drawn: int
    scores: Floats
    probabilities: Floats
    anchors: Floats
    expected: Floats
    anchor_mean: float
    anticipation: Anticipation | None

    @classmethod
    def without_history(
        cls, scores: Floats, probabilities: Floats, *, pool_size: int, pool: str = "all"
    ) -> Self:
        """Sample of tasks that all have a score, and no history."""
        size = len(scores)
        return cls(
            pool=pool,
            pool_size=pool_size,
            drawn=size,
            scores=scores,
            probabilities=probabilities,
            anchors=np.full(size, 0.5),
            expected=np.full(size, 0.25),
            anchor_mean=0.5,
            anticipation=None,
        )

    @property
    def share(self) -> float:
        """Share of the drawn tasks that have a score."""
        return len(self.scores) / self.drawn

    @property
    def answering(self) -> Floats:
        """The probability that a task is drawn and has a score, for each task."""
        return self.probabilities * self.share


def drawn_samples(
    batches: Sequence[Sequence[Design]], tasks: Indices, means: Floats
) -> list[Sample]:
    """One sample per pool: the drawn tasks that have a score.

    Args:
        batches: The designs of each of a candidate's assignments, in order; the first has one
            for every pool, later ones draw from the tasks that are left.
        tasks: Positions of the tasks the candidate has a score on, ascending.
        means: Its mean score over trials on each of them.
    """
    if len(batches) == 1:
        return [_sample(design, tasks, means) for design in batches[0]]
    drawn = [[d for batch in batches for d in batch if d.pool == f.pool] for f in batches[0]]
    return [_joined([_sample(design, tasks, means) for design in designs]) for designs in drawn]


def sequential_probabilities(
    probabilities: Sequence[Floats], sizes: Sequence[int], pool_size: int
) -> list[Floats]:
    """The π_t for tasks drawn in batches, where each batch depends on those before.

    Given the batches before, batch k with conditional probabilities π_t^(k) makes an unbiased
    estimate of the total: the scores seen, plus Σ x_t/π_t^(k). Averaged with weights c_k, a task
    of batch j gets the weight 1/π_t = c_j/π_t^(j) + Σ_{k>j} c_k. The weights
    c_k ∝ 1/(N-n_k) - 1/(N-n_{k-1}), with n_k tasks drawn in k batches, are LURE's [Farquhar2021]
    if every batch is one task; they are optimal for uniform draws. The number of batches may
    depend on the scores seen, which leaves a bias of second order.

    >>> halves = sequential_probabilities([np.full(2, 0.25), np.full(2, 1 / 3)], [2, 2], 8)
    >>> [half.round(3).tolist() for half in halves]  # as drawn at once: 4 of 8
    [[0.5, 0.5], [0.5, 0.5]]
    """
    left = pool_size - np.cumsum(sizes)
    if left[-1] == 0:
        return [np.ones(len(pi)) for pi in probabilities]
    share = 1 / left - 1 / (left + np.asarray(sizes))
    share /= share.sum()
    later = share[::-1].cumsum()[::-1] - share
    return [1 / (c / pi + rest) for c, pi, rest in zip(share, probabilities, later, strict=True)]


def _joined(samples: list[Sample]) -> Sample:
    """One sample of several batches from the same pool.

    A batch counts with the tasks that have a score, as a random part of those drawn.
    """
    heard = [sample for sample in samples if len(sample.scores)]
    drawn = sum(sample.drawn for sample in samples)
    if len(samples) == 1 or not heard:
        return replace(samples[0], drawn=drawn)
    scores = np.concatenate([sample.scores for sample in heard])
    sizes = [len(sample.scores) for sample in heard]
    probabilities = np.concatenate(
        sequential_probabilities([s.answering for s in heard], sizes, samples[0].pool_size)
    )
    return replace(
        samples[0],
        drawn=drawn,
        scores=scores,
        # Estimators multiply by the share of tasks with a score, which is already included.
        probabilities=probabilities * (drawn / len(scores)),
        anchors=np.concatenate([sample.anchors for sample in heard]),
        expected=np.concatenate([sample.expected for sample in heard]),
        anticipation=None,
    )


def whole_samples(pool: Pool, tasks: Indices, means: Floats) -> list[Sample]:
    """One sample per pool of a candidate that ran every task."""
    samples = []
    for name in pool.names:
        members = pool.members(name)
        scores = means[np.isin(tasks, members, assume_unique=True)]
        sample = Sample.without_history(
            scores, np.ones(len(scores)), pool_size=len(members), pool=name
        )
        samples.append(replace(sample, drawn=len(members)))
    return samples


def _sample(design: Design, tasks: Indices, means: Floats) -> Sample:
    at = np.searchsorted(tasks, design.positions)
    at = np.minimum(at, max(len(tasks) - 1, 0))
    answered = tasks[at] == design.positions if len(tasks) else np.zeros(len(at), dtype=np.bool_)
    return Sample(
        pool=design.pool,
        pool_size=design.pool_size,
        drawn=len(design.positions),
        scores=means[at[answered]],
        probabilities=design.probabilities[answered],
        anchors=design.anchors[answered],
        expected=design.expected[answered],
        anchor_mean=design.anchor_mean,
        anticipation=design.anticipation,
    )
