"""What the canvas of the matrix gets: all outcomes once, then only those that changed."""

from collections import OrderedDict
from typing import Any

from coevolve.dashboard.run_feed import RunFeed
from coevolve.formatting import visible
from coevolve.views.outcome_grid import GridSplit, OutcomeGrid
from coevolve.views.report import CandidateRow

_MOST_KEPT = 3
"""Earlier matrices that changes are computed from; an older page gets the whole matrix."""
_LONGEST = 200


class MatrixSource:
    """The matrix of a run as JSON, whole or as the changes since an earlier one.

    Args:
        feed: The run.
    """

    def __init__(self, feed: RunFeed) -> None:
        self._feed = feed
        self._kept: OrderedDict[tuple[str, int], OutcomeGrid] = OrderedDict()

    def whole(self, split: GridSplit) -> dict[str, Any]:
        """Every cell, the orders of rows and columns, and the number of events in it."""
        with self._feed.locked():
            grid, orders = self._feed.grid(split), self._feed.orders(split)
            number, best = self._keep(split, grid), self._feed.snapshot().report.best
        found = grid.to_json()
        del found["draws"]
        found["tasks"] = [visible(task, _LONGEST) for task in grid.tasks]
        found["ids"] = list(grid.tasks)
        found["pools"] = [visible(pool, _LONGEST) for pool in grid.pools]
        found["candidates"] = [_candidate(row, best) for row in grid.candidates]
        return {"events": number, "whole": True, **found, "orders": orders.to_json()}

    def changes(self, split: GridSplit, since: int) -> dict[str, Any] | None:
        """The cells that changed since a number of events; None if that matrix is forgotten."""
        with self._feed.locked():
            before = self._kept.get((split, since))
            if before is None:
                return None
            grid = self._feed.grid(split)
            number, best = self._keep(split, grid), self._feed.snapshot().report.best
            orders = self._feed.orders(split) if number != since else None
        if orders is None:
            return {"events": number, "whole": False, "cells": []}
        return {
            "events": number,
            "whole": False,
            "cells": grid.changes(before),
            "candidates": [_candidate(row, best) for row in grid.candidates],
            "solvability": [None if p != p else round(p, 6) for p in grid.solvability.tolist()],
            "seen": grid.seen.tolist(),
            "orders": orders.to_json(),
        }

    def cell(self, split: GridSplit, candidate: str, task: str) -> dict[str, Any] | None:
        """How a task came to a candidate: the draw, its probability and weight; None without."""
        with self._feed.locked():
            grid = self._feed.grid(split)
        names = [row.name for row in grid.candidates]
        if candidate not in names or task not in grid.tasks:
            return None
        found = grid.draw(names.index(candidate), grid.tasks.index(task))
        if found is None:
            return {"drawn": False}
        draw, place = found
        anchor = float(draw.anchors[place])
        return {
            "drawn": True,
            "round": draw.round,
            "kind": draw.kind,
            "probability": float(draw.probabilities[place]),
            "weight": float(draw.weights[place]),
            "anchor": None if anchor != anchor else anchor,
        }

    def _keep(self, split: str, grid: OutcomeGrid) -> int:
        events = self._feed.shown
        self._kept[split, events] = grid
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return events


def _candidate(row: CandidateRow, best: str | None) -> dict[str, Any]:
    found = row.estimate
    return {
        "name": row.name,
        "shown": visible(row.name, _LONGEST),
        "round": row.round,
        "start": row.start,
        "status": row.status,
        "best": row.name == best,
        "value": None if found is None else found["value"],
        "low": None if found is None else found["low"],
        "high": None if found is None else found["high"],
        "tasks": 0 if found is None else found["tasks"],
    }
