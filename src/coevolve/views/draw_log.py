"""The draws of a run: which tasks, by which weights, with what probability, for whom."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coevolve.core.arrays import Floats, Indices
from coevolve.core.events import Event


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskDraw:
    """The tasks that were drawn from one pool, for one or more candidates.

    `kind` is "first", "again" or "further". `tasks` are positions in the list of all tasks;
    `probabilities` are π_t, in a further draw conditional on the draws before; `weights` are w_t
    and `anchors` the solvability p̄_t before the draw.
    """

    round: int
    kind: str
    pool: str
    method: str
    candidates: tuple[str, ...]
    tasks: Indices
    probabilities: Floats
    weights: Floats
    anchors: Floats

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; probabilities and weights to six digits."""
        return {
            "round": self.round,
            "kind": self.kind,
            "pool": self.pool,
            "method": self.method,
            "candidates": list(self.candidates),
            "tasks": self.tasks.tolist(),
            "probabilities": _rounded(self.probabilities),
            "weights": _rounded(self.weights),
            "anchors": _rounded(self.anchors),
        }


def _rounded(values: Floats) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


class DrawLog:
    """The draws of a run; call `take` with every event."""

    def __init__(self) -> None:
        self.draws: list[TaskDraw] = []
        self._positions: dict[str, int] = {}

    def take(self, event: Event) -> None:
        """Add the draws of an event."""
        if event["type"] == "opened":
            tasks = event["selector"]["pool"]["tasks"]
            self._positions = {task: number for number, task in enumerate(tasks)}
        elif event["type"] == "asked":
            for drawn in event["events"]:
                self.draws += self._draws(drawn)

    def _draws(self, drawn: Event) -> Iterator[TaskDraw]:
        together, draws = tuple(drawn["candidates"]), drawn["draws"]
        for at, designs in enumerate(draws):
            names = together if len(draws) == 1 else together[at : at + 1]
            for design in designs:
                yield TaskDraw(
                    round=drawn["round"],
                    kind=drawn["kind"],
                    pool=design["pool"],
                    method=design["method"],
                    candidates=names,
                    tasks=np.array([self._positions[t] for t in design["tasks"]], dtype=np.int32),
                    probabilities=np.array(design["probabilities"]),
                    weights=np.array(design["weights"]),
                    anchors=np.array(design["anchors"]),
                )
