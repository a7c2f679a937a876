"""The figure of descent: who was made from whom, and what it scores."""

from coevolve.figures.axes import Scale
from coevolve.figures.figure import Figure, empty
from coevolve.figures.svg_drawing import CROWD, WIDTH, Drawing, cross, star, text_width
from coevolve.formatting import middle, plural, score
from coevolve.views.lineage import Lineage, LineageNode

_STEPS = 5
"""Shades of the scores of candidates."""
_CROWDED = 45
"""With more lines than this, only the ancestors of the best candidate have their names."""


def lineage_figure(found: Lineage, *, width: float = WIDTH, prefix: str = "") -> Figure:
    """Candidates by round, each joined to its parents; the best one's ancestors stand out."""
    title = "Descent of the candidates"
    if not found.nodes:
        text = "There are no candidates yet."
        return empty("lineage", title, text, width=width, prefix=prefix)
    caption = _caption(found)
    return Figure(
        name="lineage",
        title=title,
        caption=caption,
        svg=_Tree(found, width, title, caption, prefix).svg(),
        columns=("candidate", "round", "generation", "estimate", "status", "parents"),
        rows=tuple(
            (
                node.name,
                node.round,
                node.generation,
                node.value,
                node.status,
                ", ".join(node.parents),
            )
            for node in found.nodes
        ),
    )


def _caption(found: Lineage) -> str:
    made = sum(not node.start for node in found.nodes)
    parents = {node.parents[0] for node in found.nodes if node.parents}
    best = next((node for node in found.nodes if node.best), None)
    text = f"{plural(made, 'candidate')} with {plural(len(parents), 'first parent')}."
    if best is not None and best.generation:
        first = next(node for node in found.nodes if node.ancestor and not node.parents)
        kind = "a starting harness" if first.start else "made without a parent"
        text += (
            f" The best one, {middle(best.name, 40)}, is {plural(best.generation, 'step')} from "
            f"{middle(first.name, 40)}, {kind}."
        )
    text += " Darker dots score higher."
    if any(len(node.parents) > 1 for node in found.nodes):
        text += " Dotted lines join a candidate to its further parents."
    return text


class _Tree:
    """The tree over rounds, from the starting harnesses at the left."""

    def __init__(
        self, found: Lineage, width: float, title: str, caption: str, prefix: str
    ) -> None:
        self.found = found
        self.named = found.lines <= _CROWDED and width > 500
        gap = 19.0 if self.named else min(14.0, 640 / max(found.lines, 1))
        self.top, height = 30.0, 30.0 + gap * max(found.lines, 1) + 44
        self.drawing = Drawing(
            width, height, name="lineage", title=title, description=caption, prefix=prefix
        )
        self.bottom = height - 40
        names = [node.name for node in found.nodes if node.round == found.rounds]
        room = 1.15 * max((text_width(middle(name, 22)) for name in names), default=0) + 12
        self.x = Scale(0, max(found.rounds, 1), 22, width - (room if self.named else 24))
        self.y = Scale(0, max(found.lines - 1, 1), self.top + gap / 2, self.bottom - gap / 2)
        values = [node.value for node in found.nodes if node.value is not None]
        self.low, self.high = min(values, default=0.0), max(values, default=1.0)
        self.at = {node.name: (self.x(node.round), self._line(node)) for node in found.nodes}
        self.size = 5.0 if self.named else 3.6

    def _line(self, node: LineageNode) -> float:
        return self.y(node.line) if self.found.lines > 1 else (self.top + self.bottom) / 2

    def svg(self) -> str:
        draw = self.drawing
        every = max(1, -(-(self.found.rounds + 1) * 30 // int(draw.width)))
        for round in range(self.found.rounds + 1):
            x = self.x(round)
            draw.line(x, self.top - 6, x, self.bottom, "grid")
            if round % every == 0:
                text = str(round) if round else "start"
                draw.text(x, self.bottom + 16, text, "small", "middle" if round else "start")
        draw.text(self.x.end, self.bottom + 32, "round", "small", "end")
        nodes = {node.name: node for node in self.found.nodes}
        edges: dict[str, list[str]] = {"line-start": [], "line-soft": [], "line-best": []}
        for parent, child, first in self.found.edges:
            chosen = nodes[parent].ancestor and nodes[child].ancestor and first
            style = "line-best" if chosen else "line-soft" if first else "line-start"
            edges[style].append(self._edge(parent, child))
        for style, data in edges.items():
            draw.path("".join(data), style)
        for node in self._crowd():
            self._node(node)
        return draw.svg()

    def _crowd(self) -> list[LineageNode]:
        """Draw the nodes of a crowd together; return those that are drawn one by one."""
        if len(self.found.nodes) <= CROWD:
            return list(self.found.nodes)
        spots: dict[int, list[str]] = {}
        for node in self.found.nodes:
            if node.value is not None and not node.ancestor:
                x, y = self.at[node.name]
                spots.setdefault(self._depth(node), []).append(f"M{x:.1f} {y:.1f}h0")
        for depth, data in sorted(spots.items()):
            self.drawing.path("".join(data), f"spots-depth-{depth}")
        return [node for node in self.found.nodes if node.ancestor]

    def _edge(self, parent: str, child: str) -> str:
        (x1, y1), (x2, y2) = self.at[parent], self.at[child]
        half = (x1 + x2) / 2
        return f"M{x1:.1f} {y1:.1f}C{half:.1f} {y1:.1f} {half:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"

    def _node(self, node: LineageNode) -> None:
        draw, (x, y) = self.drawing, self.at[node.name]
        about = {"data_candidate": node.name, "data_tip": _tip(node)}
        if node.value is None:
            draw.path(cross(x, y, self.size * 0.6), "cross", **about)
        elif node.best:
            draw.path(star(x, y, self.size + 4), "dot-best", **about)
        elif node.start:
            size = self.size
            draw.rect(
                x - size, y - size, 2 * size, 2 * size, f"depth-{self._depth(node)}", **about
            )
        else:
            draw.add("circle", f"depth-{self._depth(node)}", cx=x, cy=y, r=self.size, **about)
        fits = int((self.x(1) - self.x(0) - 18) / 7.4)
        last = node.round == self.found.rounds
        # Cut to a few letters, names look alike: then only those that matter have one.
        telling = node.ancestor or node.start or last or fits >= 11
        if (self.named and telling) or (node.ancestor and draw.width > 500):
            style = "halo-best" if node.best else "halo" if node.ancestor else "halo-soft"
            most = 22 if last else 16 if node.start else self._letters(node, fits)
            text = middle(node.name, most)
            if last and not self.named:
                draw.text(x - 9, y - 7, text, style, "end", **about)
            else:
                draw.text(
                    x + 9 if last else x + 8, y - 5 if not last else y + 4, text, style, **about
                )

    def _letters(self, node: LineageNode, fits: int) -> int:
        """How many letters of a name have room before the next ancestor of the best candidate."""
        later = [one.round for one in self.found.nodes if one.ancestor and one.round > node.round]
        if not node.ancestor or not later:
            return fits
        room = self.x(min(later)) - self.x(node.round) - 18
        return max(8, min(22, int(room / 7.4)))

    def _depth(self, node: LineageNode) -> int:
        """The shade of a score among those of all candidates."""
        span = self.high - self.low
        share = 1.0 if span == 0 or node.value is None else (node.value - self.low) / span
        return min(_STEPS - 1, int(share * _STEPS))


def _tip(node: LineageNode) -> str:
    made = f" from {', '.join(node.parents)}" if node.parents else ""
    where = "starting harness" if node.start else f"round {node.round}{made}"
    return f"{node.name}, {where}: {node.status if node.value is None else score(node.value)}"
