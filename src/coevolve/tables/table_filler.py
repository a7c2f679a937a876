"""Fills a table: runs every harness of a space, and asks the model in batches for what is missing.

Harnesses run first with stand-in answers, which shows the prompts they need. The model answers
these in batches; then the harnesses run again. Answers and finished rows are kept in a database,
so a filler that was stopped continues where it was.
"""

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from itertools import batched, groupby
from pathlib import Path
from typing import Any

import numpy as np

from coevolve import __version__
from coevolve.benchmarks.textclass.blocks.example_source import likeness
from coevolve.benchmarks.textclass.blocks.text_recipe import TextRecipe
from coevolve.benchmarks.textclass.data_sets import DataSet
from coevolve.benchmarks.textclass.harness_files import read_start_files
from coevolve.errors import InputError
from coevolve.formatting import plural
from coevolve.models.batched.label_scorer import LabelScorer
from coevolve.models.batched.vocabulary import Vocabulary
from coevolve.models.embedded.model_process import ModelProcess
from coevolve.models.embedded.model_weights import MADE, MODEL
from coevolve.models.embedded.scoring import Tokens, follows
from coevolve.search.candidate import Files
from coevolve.tables.harness_runs import OTHER, Evaluated, HarnessRuns
from coevolve.tables.harness_table import HarnessTable, TableFacts, save, table_arrays
from coevolve.tables.label_answers import (
    Answered,
    AnswerStore,
    LabelModel,
    Request,
    SpeltLabels,
    Written,
    database,
)
from coevolve.tables.table_space import Row, TableSpace, prompts_of

IDENTITY = f"{MADE.sha256} torch bfloat16"
"""What answers depend on beside the prompt: the weights and the arithmetic."""
PIECE, LARGE_PIECE = 64, 4096
"""Requests after which answers are kept, if the model gets one family at once, or several."""


class Speller:
    """Turns texts into the model's tokens, and tokens into texts.

    Args:
        weights: The GGUF file of the model.
    """

    def __init__(self, weights: Path) -> None:
        self._runner = asyncio.Runner()
        self._process = ModelProcess(lambda: weights, slots=1, threads=1)
        self._tokens = Tokens(self._process)
        self._vocabulary = Vocabulary.read(weights)

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

    def ends(self, stops: Sequence[str]) -> list[int]:
        """The tokens after which the model writes no more."""
        _, *marks = self._runner.run(self._tokens.ends())
        return [*marks, *(token for stop in stops for token in self._vocabulary.ending(stop))]

    def written(self, tokens: Sequence[int], stops: Sequence[str]) -> tuple[str, int]:
        """What tokens say before the first of some texts, and the number of tokens up to it."""
        return self._vocabulary.cut(tokens, stops)

    def close(self) -> None:
        """End the model's process."""
        self._runner.run(self._process.close())
        self._runner.close()


class RowStore:
    """Finished rows on disk, and with what they were computed.

    Args:
        file: The database; it is made if it does not exist.
        addresses: What each row depends on, by the key of its harness: a row is another one if
            the files of its harness or the set have changed.
    """

    def __init__(self, file: Path, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses
        self._base = database(
            file, "evaluated (address text primary key, row blob)", "scorers (facts text)"
        )

    def keys(self) -> set[str]:
        """The harnesses that are finished."""
        stored = {address for (address,) in self._base.execute("select address from evaluated")}
        return {key for key, address in self._addresses.items() if address in stored}

    def put(self, rows: Mapping[str, Evaluated]) -> None:
        """Keep some rows."""
        made = []
        for key, row in rows.items():
            packed = BytesIO()
            np.savez_compressed(packed, **{f.name: getattr(row, f.name) for f in fields(row)})
            made.append((self._addresses[key], packed.getvalue()))
        with self._base:
            self._base.executemany("insert or replace into evaluated values (?, ?)", made)

    def note(self, scorer: Mapping[str, str]) -> None:
        """Note with what rows are computed: the version of torch and the device."""
        with self._base:
            self._base.execute("insert into scorers values (?)", (json.dumps(dict(scorer)),))

    def scorer(self) -> dict[str, str]:
        """With what rows were computed; several values are joined."""
        found = self._base.execute("select distinct facts from scorers order by rowid")
        noted = [json.loads(facts) for (facts,) in found]
        names = dict.fromkeys(name for facts in noted for name in facts)
        return {
            name: ", ".join(dict.fromkeys(facts[name] for facts in noted if name in facts))
            for name in names
        }

    def get(self, key: str) -> Evaluated:
        """A finished row."""
        found = self._base.execute(
            "select row from evaluated where address = ?", (self._addresses[key],)
        ).fetchone()
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


@dataclass(frozen=True, slots=True)
class Pass:
    """Some harnesses that ran: the rows of those that have all answers, and what is missing."""

    rows: Mapping[str, Evaluated]
    missing: Sequence[str]
    unwritten: Sequence[Request]


class TableFiller:
    """Fills the rows of a table for one set.

    Args:
        data: The set; where it has no list of labels, the answers of its examples are the labels.
        space: The harnesses.
        folder: Where answers and rows are kept while the table is filled.
        speller: Turns prompts into tokens.
        families: Families of harnesses with equal prompts whose requests the model gets together:
            one for a CPU, so that rows are finished early; many for a GPU.
        workers: Processes that run harnesses.
    """

    def __init__(
        self,
        data: DataSet,
        space: TableSpace,
        folder: Path,
        *,
        speller: Speller,
        families: int = 1,
        workers: int = 1,
    ) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise InputError(f"the work folder {folder} is a file; name a folder.") from None
        self.labels = labels_of(data)
        self._data, self._space, self._folder = data, space, folder
        self._speller, self._families, self._workers = speller, families, workers
        self._spelt = speller.labels(self.labels)
        self._open()
        try:
            self.finished = RowStore(folder / f"{data.name}-rows.db", self._addresses())
        except InputError:
            self._store.close()
            raise
        self._asked = self._read = 0

    def _open(self) -> None:
        """Open the store of answers; a forked process needs a connection of its own."""
        file = self._folder / f"{self._data.name}-answers.db"
        self._store = AnswerStore(file, f"{IDENTITY} {self.labels}")
        self._model = LabelModel(self._store, self._spelt)
        self._runs = HarnessRuns(self._data, self.labels, self._model)

    def _addresses(self) -> dict[str, str]:
        """What each row depends on: the set, the labels, the model, and the harness."""
        data = self._data
        given = repr((IDENTITY, self.labels, data.words, data.train, data.val, data.test))
        whole = sha256(given.encode()).hexdigest()
        made = {}
        for row in self._space.rows():
            files = sorted(self.files(row)[0].items())
            made[row.key] = sha256(repr((whole, row.key, files)).encode()).hexdigest()
        return made

    def fill(self, scorer: LabelScorer, told: Callable[[Progress], None], stage: int) -> None:
        """Fill all rows up to a stage."""
        started, done = time.monotonic(), self.finished.keys()
        self.finished.note(scorer.facts)
        rows = [row for row in self._space.rows() if row.stage <= stage]
        with self._pool() as run:
            for wave in _waves([row for row in rows if row.key not in done], self._families):
                self._ask(scorer, run(_first(wave)))
                while wave:
                    found = run(wave)
                    done |= found.rows.keys()
                    wave = [row for row in wave if row.key not in found.rows]
                    told(self._progress(rows, done, stage, started))
                    self._ask(scorer, found)

    @contextmanager
    def _pool(self) -> Iterator[Callable[[Sequence[Row]], Pass]]:
        """A function that runs harnesses, in several processes if there are to be several."""
        if self._workers == 1:
            yield lambda rows: self._kept(self._ran(list(rows)))
            return
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(
            self._workers, mp_context=context, initializer=_begin, initargs=(self,)
        ) as pool:
            yield lambda rows: self._kept(*pool.map(_run, _pieces(rows, self._workers)))

    def _ran(self, rows: Sequence[Row]) -> Pass:
        """Run harnesses on all tasks."""
        made: dict[str, Evaluated] = {}
        missing: dict[str, None] = {}
        unwritten: dict[Request, None] = {}
        for _, family in groupby(rows, _family):
            self._model.forget()  # no later harness asks the same
            for row in family:
                found = self._runs.evaluated(*self.files(row))
                if found is not None:
                    made[row.key] = found
                missing.update(self._model.missing)
                unwritten.update(self._model.unwritten)
        return Pass(made, list(missing), list(unwritten))

    def _kept(self, *passes: Pass) -> Pass:
        """Keep the rows of some passes."""
        missing = dict.fromkeys(prompt for one in passes for prompt in one.missing)
        unwritten = dict.fromkeys(request for one in passes for request in one.unwritten)
        made = {key: row for one in passes for key, row in one.rows.items()}
        self.finished.put(made)
        return Pass(made, list(missing), list(unwritten))

    def requests(self, stage: int) -> tuple[int, int]:
        """How many requests the rows up to a stage send, each counted once, and their tokens.

        Harnesses get stand-in answers; requests that depend on an earlier answer are not counted.
        """
        scored: dict[str, None] = {}
        written: dict[Request, None] = {}
        for row in _first([row for row in self._space.rows() if row.stage <= stage]):
            self._model.forget_requests()
            self._runs.evaluated(*self.files(row))
            scored.update(self._model.requested)
            written.update(self._model.writing)
        prompts = [*scored, *(request.prompt for request in written)]
        return len(prompts), sum(map(len, self._speller.prompts(prompts)))

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

    def check(self, file: Path) -> None:
        """Refuse to replace a table that has more than the work folder, or other data.

        Raises:
            InputError: The file has such a table, or is no table.
        """
        if not file.exists():
            return
        facts, stage = HarnessTable.read(file).facts, self.stage
        if facts.set != self._data.name or facts.source.get("data") != self._hash_of_tasks():
            raise InputError(
                f"{file} is a table of other tasks ({facts.set}); name another file, or remove it."
            )
        if facts.stage > stage:
            raise InputError(
                f"{file} has {plural(facts.stage, 'stage')}, but the work folder {self._folder} "
                f"has {stage} of them; name another file, or remove {file.name} to fill it again."
            )

    @property
    def stage(self) -> int:
        """The last stage that is finished; 0 if none is."""
        return max(whole_stages(self._space, self.finished.keys()), default=0)

    def save(self, file: Path, command: str) -> None:
        """Write the table of all stages that are finished.

        Args:
            file: The file of the table.
            command: The command that fills it, for its provenance.

        Raises:
            InputError: The first stage is not finished yet.
        """
        stage, number = self.stage, {label: n for n, label in enumerate(self.labels)}
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
            characters=self._space.characters,
            source={
                "model": MODEL,
                "weights": MADE.sha256,
                "arithmetic": "torch bfloat16",
                **self.finished.scorer(),
                "version": __version__,
                "harnesses": self._hash(rows),
                "data": self._hash_of_tasks(),
                "command": command,
                "date": f"{datetime.now(UTC):%Y-%m-%d}",
            },
        )
        gold = np.array([number.get(task.answer, OTHER) for task in tasks], np.uint8)
        save(
            file, table_arrays(facts, gold, {row.key: self.finished.get(row.key) for row in rows})
        )

    def _hash_of_tasks(self) -> str:
        return sha256(repr((*self._data.val, *self._data.test)).encode()).hexdigest()

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

    def _ask(self, scorer: LabelScorer, found: Pass) -> None:
        """Ask the model for what is missing."""
        self._ask_labels(scorer, found.missing)
        by_kind: dict[tuple[int, tuple[str, ...]], list[Request]] = {}
        for request in found.unwritten:
            by_kind.setdefault((request.limit, request.stops), []).append(request)
        for (limit, stops), requests in by_kind.items():
            self._ask_texts(scorer, requests, limit, stops)

    def _ask_labels(self, scorer: LabelScorer, prompts: Sequence[str]) -> None:
        tokens = dict(zip(prompts, self._speller.prompts(prompts), strict=True))
        ordered = sorted(prompts, key=tokens.__getitem__)  # neighbours share their beginnings
        for some in batched(ordered, self._piece):
            trees = [self._spelt[prompt[-1:].isspace()].tree for prompt in some]
            found = scorer.scores([tokens[prompt] for prompt in some], trees)
            self._store.put(
                {
                    prompt: Answered(len(tokens[prompt]), values)
                    for prompt, values in zip(some, found, strict=True)
                }
            )
            self._count(len(some), sum(len(tokens[prompt]) for prompt in some))

    def _ask_texts(
        self, scorer: LabelScorer, requests: Sequence[Request], limit: int, stops: tuple[str, ...]
    ) -> None:
        tokens = self._speller.prompts([request.prompt for request in requests])
        ends = self._speller.ends(stops)
        for some in batched(zip(requests, tokens, strict=True), self._piece):
            found = scorer.written([given for _, given in some], limit, ends)
            made = {}
            for (request, given), wrote in zip(some, found, strict=True):
                text, count = self._speller.written(wrote, stops)
                made[request] = Written(len(given), text, count)
            self._store.put_written(made)
            self._count(len(some), sum(len(given) for _, given in some))

    @property
    def _piece(self) -> int:
        """Requests after which answers are kept."""
        return PIECE if self._families == 1 else LARGE_PIECE

    def _count(self, asked: int, read: int) -> None:
        self._asked += asked
        self._read += read

    def _progress(
        self, rows: Sequence[Row], done: set[str], stage: int, started: float
    ) -> Progress:
        return Progress(
            rows=len(done),
            of=len(rows),
            stage=stage,
            asked=self._asked,
            read=self._read,
            seconds=time.monotonic() - started,
        )


def labels_of(data: DataSet) -> tuple[str, ...]:
    """The labels of a set: those it lists, else the answers of its examples.

    Raises:
        InputError: There are more than the table can number.
    """
    labels = tuple(data.words.labels or dict.fromkeys(row.answer for row in data.train))
    if not 1 < len(labels) < OTHER:
        raise InputError(
            f"the set {data.name!r} has {len(labels)} labels; a table needs 2 to {OTHER - 1}."
        )
    return labels


def _family(row: Row) -> tuple[str, ...]:
    """Harnesses of one family send the same prompts for a question."""
    return prompts_of(row.recipe) if row.recipe else (row.key,)


def _waves(rows: Sequence[Row], families: int) -> Iterator[list[Row]]:
    """The rows in order, some families at a time."""
    groups = (list(group) for _, group in groupby(rows, _family))
    for some in batched(groups, families):
        yield [row for group in some for row in group]


def _first(rows: Sequence[Row]) -> list[Row]:
    """A harness for each family and way to ask; the others send no other requests."""
    found: dict[Any, Row] = {}
    for row in rows:
        found.setdefault((_family(row), row.recipe["ask"] if row.recipe else ""), row)
    return list(found.values())


def _pieces(rows: Sequence[Row], workers: int) -> list[Sequence[Row]]:
    """The rows for several processes; each piece has rows of one family."""
    size = max(1, len(rows) // (8 * workers))
    groups = (list(group) for _, group in groupby(rows, _family))
    return [piece for group in groups for piece in batched(group, size)]


_filler: TableFiller | None = None


def _begin(filler: TableFiller) -> None:
    """Keep what a fork has inherited, with a connection of its own."""
    global _filler
    _filler = filler
    filler._open()


def _run(rows: Sequence[Row]) -> Pass:
    assert _filler is not None
    return _filler._ran(rows)


def whole_stages(space: TableSpace, done: set[str]) -> Iterator[int]:
    """The stages all of whose rows are finished, from the first on."""
    rows = list(space.rows())
    for stage in range(1, len(space.stages) + 1):
        if any(row.key not in done for row in rows if row.stage <= stage):
            return
        yield stage
