"""Fills a table: runs every harness of a space, and asks the model in batches for what is missing.

Harnesses run first with stand-in answers, which shows the prompts they need. The model answers
these in batches; then the harnesses run again. Answers and finished rows are kept in a database,
so a filler that was stopped continues where it was.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np

from coevolve import __version__
from coevolve.benchmarks.textclass.blocks.example_source import likeness
from coevolve.benchmarks.textclass.blocks.text_recipe import TextRecipe
from coevolve.benchmarks.textclass.data_sets import DataSet
from coevolve.benchmarks.textclass.harness_files import read_start_files
from coevolve.errors import InputError
from coevolve.models.batched.label_scorer import LabelScorer
from coevolve.models.embedded.model_process import ModelProcess
from coevolve.models.embedded.model_weights import MADE, MODEL
from coevolve.models.embedded.scoring import Tokens, follows
from coevolve.search.candidate import Files
from coevolve.tables.harness_runs import Evaluated, HarnessRuns
from coevolve.tables.harness_table import TableFacts, save, table_arrays
from coevolve.tables.label_answers import Answered, AnswerStore, LabelModel, SpeltLabels
from coevolve.tables.table_space import Row, TableSpace, prompts_of

IDENTITY = f"{MADE.sha256} torch bfloat16"
"""What answers depend on beside the prompt: the weights and the arithmetic."""
PIECE = 64
"""Prompts after which answers are kept."""
EMPTY: Mapping[str, str] = {}


class Speller:
    """Turns texts into the model's tokens.

    Args:
        weights: The GGUF file of the model.
    """

    def __init__(self, weights: Path) -> None:
        self._runner = asyncio.Runner()
        self._process = ModelProcess(lambda: weights, slots=1, threads=1)
        self._tokens = Tokens(self._process)

    def prompts(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of prompts."""
        return self._runner.run(self._tokens.many(texts, marks=True))

    def labels(self, labels: Sequence[str]) -> dict[bool, SpeltLabels]:
        """The labels after prompts that end with white space, and after others."""
        ends = self._runner.run(self._tokens.ends())
        made = {}
        for spaced, prompt in ((True, "\n"), (False, ":")):
            texts = [follows(prompt, label) for label in labels]
            spelt = self._runner.run(self._tokens.many(texts))
            made[spaced] = SpeltLabels(dict(zip(labels, spelt, strict=True)), ends)
        return made

    def close(self) -> None:
        """End the model's process."""
        self._runner.run(self._process.close())
        self._runner.close()


class RowStore:
    """Finished rows on disk, by the keys of their harnesses."""

    def __init__(self, file: Path) -> None:
        self._base = sqlite3.connect(file)
        self._base.execute("create table if not exists rows (key text primary key, row blob)")

    def keys(self) -> set[str]:
        """The harnesses that are finished."""
        return {key for (key,) in self._base.execute("select key from rows")}

    def put(self, key: str, row: Evaluated) -> None:
        """Keep a row."""
        made = BytesIO()
        np.savez_compressed(made, **{f.name: getattr(row, f.name) for f in fields(row)})
        with self._base:
            self._base.execute("insert or replace into rows values (?, ?)", (key, made.getvalue()))

    def get(self, key: str) -> Evaluated:
        """A finished row."""
        found = self._base.execute("select row from rows where key = ?", (key,)).fetchone()
        if found is None:
            raise InputError(f"the row {key!r} is not finished.")
        with np.load(BytesIO(found[0])) as arrays:
            values = {name: arrays[name] for name in arrays.files}
        return Evaluated(**{**values, "learning": int(values["learning"])})

    def close(self) -> None:
        """Close the database."""
        self._base.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a filler is."""

    rows: int
    of: int
    stage: int
    asked: int
    read: int
    seconds: float


class TableFiller:
    """Fills the rows of a table for one set.

    Args:
        data: The set.
        space: The harnesses.
        folder: Where answers and rows are kept while the table is filled.
        speller: Turns prompts into tokens.
        ahead: Prompts to collect before the model is asked: many for a GPU.
    """

    def __init__(
        self,
        data: DataSet,
        space: TableSpace,
        folder: Path,
        *,
        speller: Speller,
        ahead: int = 1,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        labels = tuple(data.words.labels or ())
        if not labels:
            raise InputError(f"the set {data.name!r} has no list of labels; a table needs one.")
        self.labels = labels
        self._data, self._space = data, space
        self._speller, self._ahead = speller, ahead
        self._spelt = speller.labels(labels)
        self._store = AnswerStore(folder / f"{data.name}-answers.db", f"{IDENTITY} {labels}")
        self.finished = RowStore(folder / f"{data.name}-rows.db")
        self._model = LabelModel(self._store, self._spelt)
        self._runs = HarnessRuns(data, labels, self._model)
        self._asked = self._read = 0

    def fill(self, scorer: LabelScorer, told: Callable[[Progress], None], stage: int) -> None:
        """Fill all rows up to a stage."""
        started, done = time.monotonic(), self.finished.keys()
        rows = [row for row in self._space.rows() if row.stage <= stage]
        waiting = [row for row in rows if row.key not in done]
        last: tuple[str, ...] | None = None
        while waiting:
            missing: dict[str, None] = {}
            again: list[Row] = []
            for place, row in enumerate(waiting):
                family = prompts_of(row.recipe) if row.recipe else ()
                if family != last and self._ahead == 1:
                    self._model.forget()  # no later harness asks the same
                last = family
                found = self._runs.evaluated(*self.files(row))
                if found is None:
                    missing.update(self._model.missing)
                    again.append(row)
                else:
                    self.finished.put(row.key, found)
                    done.add(row.key)
                if len(missing) >= self._ahead:
                    again += waiting[place + 1 :]
                    break
                if len(done) % 50 == 0:
                    told(self._progress(rows, done, row, started))
            if missing:
                told(self._progress(rows, done, again[0], started))
                self._ask(scorer, list(missing))
            waiting = again

    def requests(self, stage: int) -> tuple[int, int]:
        """How many different prompts the rows up to a stage send, and their tokens.

        No harness of the space sends a request that depends on an earlier answer, so stand-in
        answers suffice.
        """
        prompts: dict[str, None] = {}
        seen: set[tuple[tuple[str, ...], str]] = set()
        for row in self._space.rows():
            if row.stage > stage:
                continue
            if row.recipe is not None:
                asks = (prompts_of(row.recipe), row.recipe["ask"])
                if asks in seen:
                    continue
                seen.add(asks)
            self._model.requested.clear()
            self._runs.evaluated(*self.files(row))
            prompts.update(self._model.requested)
        tokens = self._speller.prompts(list(prompts))
        return len(prompts), sum(map(len, tokens))

    def files(self, row: Row) -> tuple[Files, str | None]:
        """The files of a harness, and how it compares texts."""
        return self.files_in(self._space, row)

    @staticmethod
    def files_in(space: TableSpace, row: Row) -> tuple[Files, str | None]:
        """The files of a harness of a space, and how it compares texts."""
        if row.recipe is None:
            ((_, files),) = read_start_files([row.key]).items()
            return files, None
        blocks = space.blocks(len(space.stages))
        files = blocks.render(row.recipe, "A harness of a table.")
        text = TextRecipe(**dict(row.recipe.blocks))
        return files, repr(likeness(text)) if text.compares else None

    def save(self, file: Path, scorer: Mapping[str, str] = EMPTY) -> None:
        """Write the table of all stages that are finished.

        Args:
            file: The file of the table.
            scorer: The version of torch and the device, if known.

        Raises:
            InputError: The first stage is not finished yet.
        """
        done, number = self.finished.keys(), {label: n for n, label in enumerate(self.labels)}
        stage = max(whole_stages(self._space, done), default=0)
        if not stage:
            raise InputError("no stage is finished yet; run the command without --save-only.")
        rows = [row for row in self._space.rows() if row.stage <= stage]
        tasks = (*self._data.val, *self._data.test)
        facts = TableFacts(
            set=self._data.name,
            validation=len(self._data.val),
            test=len(self._data.test),
            labels=len(self.labels),
            stages=self._space.stages,
            stage=stage,
            source={
                "model": MODEL,
                "weights": MADE.sha256,
                "arithmetic": "torch bfloat16",
                **scorer,
                "version": __version__,
                "harnesses": self._hash(rows),
                "data": sha256(repr(tasks).encode()).hexdigest(),
                "command": f"coevolve fill {file.name} --set {self._data.name} --stage {stage}",
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
            },
        )
        gold = np.array([number[task.answer] for task in tasks], np.uint8)
        save(
            file, table_arrays(facts, gold, {row.key: self.finished.get(row.key) for row in rows})
        )

    def _hash(self, rows: Sequence[Row]) -> str:
        """A hash of the files of all harnesses."""
        made = sha256()
        for row in rows:
            made.update(self.files(row)[0]["harness.py"])
        return made.hexdigest()

    def close(self) -> None:
        """Close the databases."""
        self._store.close()
        self.finished.close()

    def _ask(self, scorer: LabelScorer, prompts: list[str]) -> None:
        tokens = dict(zip(prompts, self._speller.prompts(prompts), strict=True))
        ordered = sorted(prompts, key=tokens.__getitem__)  # neighbours share their beginnings
        piece = max(PIECE, self._ahead)
        for start in range(0, len(ordered), piece):
            some = ordered[start : start + piece]
            trees = [self._spelt[prompt[-1:].isspace()].tree for prompt in some]
            found = scorer.scores([tokens[prompt] for prompt in some], trees)
            self._store.put(
                {
                    prompt: Answered(len(tokens[prompt]), values)
                    for prompt, values in zip(some, found, strict=True)
                }
            )
            self._asked += len(some)
            self._read += sum(len(tokens[prompt]) for prompt in some)

    def _progress(self, rows: Sequence[Row], done: set[str], row: Row, started: float) -> Progress:
        return Progress(
            rows=len(done),
            of=len(rows),
            stage=row.stage,
            asked=self._asked,
            read=self._read,
            seconds=time.monotonic() - started,
        )


def whole_stages(space: TableSpace, done: set[str]) -> Iterator[int]:
    """The stages all of whose rows are finished, from the first on."""
    rows = list(space.rows())
    for stage in range(1, len(space.stages) + 1):
        if any(row.key not in done for row in rows if row.stage <= stage):
            return
        yield stage
