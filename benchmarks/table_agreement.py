"""Cells of a table of harnesses against the embedded model: how many answers are equal.

Run as `make bench-table_agreement` or `python benchmarks/table_agreement.py`. The table was
filled by the batched model in bfloat16; the embedded model computes with quantised weights, so a
few answers differ. The cells are a random sample in two steps, so that they share prompts: some
families of harnesses with equal prompts, then for each family some harnesses and some tasks. All
harnesses of these families that let the model write freely come on top. `--quick` takes one family
and records nothing. A run takes some minutes.
"""

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import record

from coevolve.benchmarks.textclass.data_sets import load_set
from coevolve.models.embedded.embedded_provider import EmbeddedProvider
from coevolve.models.provider import ModelReply, ModelRequest
from coevolve.tables.harness_runs import HarnessRuns
from coevolve.tables.harness_table import HarnessTable
from coevolve.tables.label_answers import LabelModel, Request
from coevolve.tables.table_filler import TableFiller
from coevolve.tables.table_space import Row, prompts_of

TABLE = Path(__file__).parent / "tables" / "service-desk.npz"
BARE, WITH_EXAMPLES = 2, 4
"""Families without and with examples in their prompts."""
HARNESSES, TASKS = 10, 20
"""Of each family, without the harnesses that let the model write."""


class EmbeddedLabels:
    """A harness's model that asks the embedded model, once for each request."""

    completes = gives_scores = True
    window = 8192

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels, self._runner = tuple(labels), asyncio.Runner()
        self._provider = EmbeddedProvider(slots=1, threads=1)
        self._scores: dict[str, dict[str, float]] = {}
        self._chosen: dict[tuple[str, tuple[str, ...]], str] = {}
        self._written: dict[Request, str] = {}
        self.missing: dict[str, None] = {}
        self.unwritten: dict[Request, None] = {}
        self.incomplete = False
        self.begin()

    def begin(self) -> None:
        """Begin a trial."""
        self.tokens_in = self.tokens_out = 0
        self.offered: set[str] = set()
        self.prompts: list[str] = []

    def choose(self, prompt: str, choices: Sequence[str]) -> str:
        """The choice that the model writes."""
        key = (prompt, tuple(choices))
        if key not in self._chosen:
            self._chosen[key] = self._asked(prompt, choices=key[1]).text
        return self._chosen[key]

    def scores(self, prompt: str, choices: Sequence[str]) -> dict[str, float]:
        """The log-probability of every choice; it does not depend on the other choices."""
        if prompt not in self._scores:
            found = self._asked(prompt, choices=self._labels, scores=True)
            self._scores[prompt] = dict(found.scores or {})
        return {choice: self._scores[prompt][choice] for choice in choices}

    def __call__(self, prompt: str, *, max_tokens: int, stop: Sequence[str] = ()) -> str:
        """What the model writes."""
        key = Request(prompt, max_tokens, tuple(stop))
        if key not in self._written:
            found = self._asked(prompt, max_tokens=max_tokens, stop=key.stops)
            self._written[key] = found.text
        return self._written[key]

    @property
    def read(self) -> int:
        """The number of different prompts so far."""
        chosen = {prompt for prompt, _ in self._chosen}
        return len({*self._scores, *chosen, *(request.prompt for request in self._written)})

    def close(self) -> None:
        """End the model's process."""
        self._runner.run(self._provider.close())
        self._runner.close()

    def _asked(self, prompt: str, *, max_tokens: int = 20, **given: Any) -> ModelReply:
        request = ModelRequest(prompt=prompt, max_tokens=max_tokens, **given)
        return self._runner.run(self._provider.complete(request))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A harness on a task, answered by both."""

    family: str
    ask: str
    task: int
    table: int
    embedded: int
    gold: int


def sampled(
    table: HarnessTable, families: tuple[int, int], generator: np.random.Generator
) -> Iterator[tuple[tuple[str, ...], list[Row], list[int]]]:
    """Families, each with some of its harnesses and some tasks."""
    known: dict[tuple[str, ...], list[Row]] = {}
    for row in table.space.rows():
        if row.recipe is not None:
            # The slot `repeat` is named only where it matters; all harnesses ask once.
            family = (part for part in prompts_of(row.recipe) if part != "repeat:once")
            known.setdefault(tuple(family), []).append(row)
    bare = [family for family in known if "select:none" in family]
    shown = [family for family in known if family not in bare]
    for kind, count in zip((bare, shown), families, strict=True):
        for place in generator.permutation(len(kind))[:count]:
            family = kind[place]
            free = [row for row in known[family] if _ask(row) == "free"]
            others = [row for row in known[family] if row not in free]
            some = [others[n] for n in generator.permutation(len(others))[:HARNESSES]]
            tasks = generator.permutation(len(table.gold))[:TASKS]
            yield family, some + free, sorted(tasks.tolist())


def _ask(row: Row) -> str:
    assert row.recipe is not None
    return row.recipe["ask"]


def answered(
    table: HarnessTable, families: tuple[int, int], model: EmbeddedLabels, data: Any
) -> Iterator[Cell]:
    """The cells of the sample."""
    labels = tuple(data.words.labels)
    every = (*data.val, *data.test)
    for family, rows, tasks in sampled(table, families, np.random.default_rng(0)):
        some = replace(data, val=tuple(every[n] for n in tasks), test=())
        runs = HarnessRuns(some, labels, cast("LabelModel", model))
        for row in rows:
            found = runs.evaluated(*TableFiller.files_in(table.space, row))
            assert found is not None
            for task, answer in zip(tasks, found.answers.tolist(), strict=True):
                yield Cell(
                    family=" ".join(family),
                    ask=_ask(row),
                    task=task,
                    table=int(table.answers[table.keys[row.key], task]),
                    embedded=answer,
                    gold=int(table.gold[task]),
                )
        print(f"  {' '.join(family)}: {model.read} prompts so far", flush=True)


def rows(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Agreement by how harnesses use the model, and over all cells."""
    for ask in (*dict.fromkeys(sorted(cell.ask for cell in cells)), "all"):
        some = [cell for cell in cells if ask in (cell.ask, "all")]
        better = sum(c.table == c.gold != c.embedded for c in some)
        worse = sum(c.embedded == c.gold != c.table for c in some)
        yield {
            "harnesses that": ask,
            "cells": len(some),
            "equal answers": f"{np.mean([c.table == c.embedded for c in some]):.1%}",
            "equal outcomes": f"{1 - (better + worse) / len(some):.1%}",
            "right in the table": f"{np.mean([c.table == c.gold for c in some]):.1%}",
            "right by the embedded model": f"{np.mean([c.embedded == c.gold for c in some]):.1%}",
            "table - embedded": difference(some),
            "only the table is right": better,
            "only the embedded model is right": worse,
        }


def difference(cells: Sequence[Cell]) -> str:
    """The difference in points, with a standard error that takes a family's task as one draw."""
    pairs: dict[tuple[str, int], int] = {}
    for c in cells:
        better = int(c.table == c.gold) - int(c.embedded == c.gold)
        pairs[c.family, c.task] = pairs.get((c.family, c.task), 0) + better
    sums, count = 100 * np.array(list(pairs.values())), len(cells)
    error = float(np.std(sums, ddof=1)) * len(sums) ** 0.5 / count
    return f"{sums.sum() / count:+.1f} ± {error:.1f}"


def main() -> None:
    """Answer the sample, show and record the agreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    table, data = HarnessTable.read(TABLE), load_set("service-desk")
    model = EmbeddedLabels(data.words.labels or ())
    try:
        cells = list(
            answered(table, (1, 0) if options.quick else (BARE, WITH_EXAMPLES), model, data)
        )
    finally:
        model.close()
    families: dict[str, list[Cell]] = {}
    for cell in cells:
        families.setdefault(cell.family, []).append(cell)
    about = {
        "cells": len(cells),
        "pairs of prompt family and task": len({(c.family, c.task) for c in cells}),
        "prompts": model.read,
        "pairs with a difference": len(
            {(c.family, c.task) for c in cells if c.table != c.embedded}
        ),
    }
    by_family = [
        {
            "prompts of": family,
            "equal answers": f"{np.mean([c.table == c.embedded for c in some]):.1%}",
        }
        for family, some in families.items()
    ]
    made: dict[str, Sequence[dict[str, Any]]] = {
        "agreement": list(rows(cells)),
        "families": by_family,
        "sample": [about],
    }
    for title, listed in made.items():
        record.show(title, listed)
    if not options.quick:
        record.save("table_agreement", made)


if __name__ == "__main__":
    main()
