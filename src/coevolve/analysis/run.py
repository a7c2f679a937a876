"""The outcomes of a finished run as a matrix."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from coevolve.analysis.matrix import Matrix
from coevolve.analysis.series import Series
from coevolve.core.arrays import Floats
from coevolve.core.events import SCHEMA, Event, fitting, verified
from coevolve.core.pool import Pool
from coevolve.core.table import OutcomeTable
from coevolve.errors import EventError


def matrix_of_run(name: str, events: Iterable[Mapping[str, Any]]) -> Matrix:
    """What a run evaluated, as one series: starting harnesses first, then by proposal.

    A cell is the mean of its trials, NaN where nothing was evaluated; costs are the dollars its
    trials report. Any protocol will do, for the draws are not looked at.

    >>> from coevolve import Pool, Selector
    >>> selector = Selector(Pool(["a", "b"]), protocol="full")
    >>> for start in ("start-a", "start-b"):
    ...     selector.tell_full(start, {"a": 1, "b": 0})
    >>> (assignment,) = selector.ask(["new"])
    >>> selector.tell(assignment, {"a": 1, "b": 1})
    >>> matrix_of_run("mine", selector.events).series[0].outcomes.tolist()
    [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    """
    lines = iter(verified(events))
    opened = next(lines, None)
    if opened is None or opened.event["type"] != "opened":
        raise EventError("a run starts with the event 'opened'; there is none.")
    with fitting(opened.event):
        if opened.event["schema"] != SCHEMA:
            found = opened.event["schema"]
            raise EventError(f"events of schema {found!r}; this is schema {SCHEMA}.")
        run = _Run(Pool.from_json(opened.event["pool"]))
    for line in lines:
        with fitting(line.event):
            run.take(line.event)
    return _noted(Matrix.from_series(name, [run.series(name)]))


def read_events(path: Path) -> Iterator[Any]:
    """The events in a `.jsonl` file, one per line; blank lines are passed over."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise EventError(f"line {number} is not JSON: {error}.") from error


def _noted(matrix: Matrix) -> Matrix:
    """With a note on the cells the run left open."""
    open_cells = float(np.isnan(matrix.series[0].outcomes).mean())
    if not open_cells:
        return matrix
    note = f"{open_cells:.0%} of the cells were never evaluated; true scores are of the others"
    return replace(matrix, notes=(*matrix.notes, note))


@dataclass(slots=True)
class _Run:
    """Outcomes and dollars of the candidates met so far."""

    pool: Pool
    table: OutcomeTable = field(init=False)
    dollars: dict[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = OutcomeTable(len(self.pool))

    def take(self, event: Event) -> None:
        """Take in an event that names candidates or tells outcomes."""
        if event["type"] == "drawn":
            for candidate in event["candidates"]:
                self._meet(candidate)
        elif event["type"] in ("told", "told_full"):
            self._told(event)

    def _meet(self, candidate: str) -> None:
        if candidate not in self.table:
            self.table.open(candidate, round=0)
            self.dollars[candidate] = np.full(len(self.pool), np.nan)

    def _told(self, event: Event) -> None:
        candidate, tasks = event["candidate"], self.pool.positions(event["tasks"])
        self._meet(candidate)
        scores = np.array([np.nan if s is None else s for s in event["scores"]], dtype=np.float64)
        self.table.add(candidate, tasks, np.array(event["trials"], dtype=np.int64), scores)
        dollars = self.dollars[candidate]
        for at, usage in event["usage"].items():
            task = tasks[int(at)]
            dollars[task] = np.nansum([dollars[task], usage["dollars"]])

    def series(self, name: str) -> Series:
        outcomes = np.full((len(self.table.candidates), len(self.pool)), np.nan)
        for row, candidate in enumerate(self.table.candidates):
            tasks, means = self.table.means(candidate)
            outcomes[row, tasks] = means
        costs = np.array(list(self.dollars.values())).reshape(outcomes.shape)
        return Series(
            matrix=name,
            name="all",
            pool=self.pool,
            candidates=self.table.candidates,
            outcomes=outcomes,
            costs=costs if (costs > 0).any() else None,
        )
