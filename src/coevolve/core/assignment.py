"""What a draw was, and what it asks of a candidate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.designs import Draw
from coevolve.core.pool import Pool
from coevolve.core.variance import Anticipation, Past
from coevolve.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """A draw from one pool, with all that later estimates need.

    The arrays belong to the drawn `tasks`: their positions in the pool, inclusion probabilities
    π_t, weights w_t, anchors p̄_t and the squared deviations u_t expected from them.
    `anchor_mean` and `anticipation` sum up the whole pool; a draw from what earlier ones left has
    no anticipation, and its π_t are conditional on them. `seed` is that of the generator that
    drew.

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
    tasks: tuple[str, ...]
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
        """Record of a draw from `members`, all or some of a pool with this past."""
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
        """Plain JSON; positions are left out, for they follow from the ids."""
        return {
            "round": self.round,
            "pool": self.pool,
            "method": self.method,
            "seed": list(self.seed),
            "tasks": list(self.tasks),
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
            raise InputError("a drawn task has no inclusion probability in (0, 1].")
        return cls(
            round=data["round"],
            pool=data["pool"],
            pool_size=len(pool.members(data["pool"])),
            method=data["method"],
            seed=tuple(data["seed"]),
            tasks=tuple(data["tasks"]),
            positions=pool.positions(data["tasks"]),
            anchor_mean=float(data["anchor_mean"]),
            anticipation=None if anticipation is None else Anticipation.from_json(anticipation),
            **columns,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assignment:
    """The tasks one candidate is to be evaluated on.

    Every task is to be run for each of the `trials`, which are trial numbers. `batch` counts the
    assignments of the candidate: 0 is its first, later ones were drawn because the protocol
    wanted more or because under half of the outcomes of its round had a score.

    >>> from coevolve import Selector
    >>> (assignment,) = Selector(Pool(["a", "b", "c", "d"]), protocol="full").ask(["new"])
    >>> assignment.candidate, assignment.round, assignment.tasks, len(assignment)
    ('new', 1, ('a', 'b', 'c', 'd'), 4)
    """

    candidate: str
    round: int
    batch: int
    tasks: tuple[str, ...]
    trials: tuple[int, ...]
    designs: tuple[Design, ...]

    @property
    def probabilities(self) -> dict[str, float]:
        """Inclusion probability π_t of each task."""
        values = np.concatenate([design.probabilities for design in self.designs]).tolist()
        return dict(zip(self.tasks, values, strict=True))

    def __len__(self) -> int:
        return len(self.tasks) * len(self.trials)
