"""The descent of candidates: who was made from whom, laid out as a tree over rounds."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from coevolve.views.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageNode:
    """A candidate in the tree.

    `generation` counts the steps from a starting harness along first parents. `line` is its place
    beside the others of all rounds: a candidate without children has a line of its own, and a
    parent is in the middle of its children. `parents` are those that the run knows.
    """

    name: str
    round: int
    start: bool
    status: str
    value: float | None
    parents: tuple[str, ...]
    generation: int
    line: float
    best: bool
    ancestor: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Every candidate in the order of proposal; `lines` is the height of the tree.

    `best` descends from its `ancestors`, along first parents.
    """

    nodes: tuple[LineageNode, ...]
    lines: int
    rounds: int

    @property
    def edges(self) -> list[tuple[str, str, bool]]:
        """Parent, child, and whether it is the child's first parent."""
        return [
            (parent, node.name, number == 0)
            for node in self.nodes
            for number, parent in enumerate(node.parents)
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def lineage(now: Report) -> Lineage:
    """The descent of the candidates of a run."""
    order = {row.name: number for number, row in enumerate(now.candidates)}
    parents = {
        row.name: tuple(
            parent
            for parent in dict.fromkeys(row.parents)
            if parent in order and order[parent] < order[row.name]
        )
        for row in now.candidates
    }
    lines, count = _lines(parents)
    generations: dict[str, int] = {}
    for name, known in parents.items():
        generations[name] = generations[known[0]] + 1 if known else 0
    ancestors = _ancestors(now.best, parents)
    nodes = tuple(
        LineageNode(
            name=row.name,
            round=row.round,
            start=row.start,
            status=row.status,
            value=None if row.estimate is None else row.estimate["value"],
            parents=parents[row.name],
            generation=generations[row.name],
            line=lines[row.name],
            best=row.name == now.best,
            ancestor=row.name in ancestors,
        )
        for row in now.candidates
    )
    return Lineage(nodes=nodes, lines=count, rounds=max((n.round for n in nodes), default=0))


def _ancestors(name: str | None, parents: dict[str, tuple[str, ...]]) -> set[str]:
    """A candidate and its first parents, up to a starting harness."""
    found: set[str] = set()
    while name is not None and name not in found:
        found.add(name)
        name = next(iter(parents.get(name, ())), None)
    return found


def _lines(parents: dict[str, tuple[str, ...]]) -> tuple[dict[str, float], int]:
    """The line of every candidate, and their number."""
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, known in parents.items():
        if known:
            children[known[0]].append(name)
    lines: dict[str, float] = {}
    count = 0
    for leaf in _leaves_in_order(parents, children):
        lines[leaf] = float(count)
        count += 1
    for name in reversed(parents):  # children come after their parents
        if children[name]:
            ends = [lines[child] for child in children[name]]
            lines[name] = (min(ends) + max(ends)) / 2
    return lines, count


def _leaves_in_order(
    parents: dict[str, tuple[str, ...]], children: dict[str, list[str]]
) -> Iterable[str]:
    """The candidates without children, as a walk from the starting harnesses meets them."""
    waiting = [name for name in reversed(parents) if not parents[name]]
    while waiting:
        name = waiting.pop()
        if not children[name]:
            yield name
        waiting.extend(reversed(children[name]))
