"""Past outcomes in columns, checked row by row while a file is read."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coevolve.errors import HistoryError

MOST_TRIALS = 1024
"""Trials of a candidate on a task; a selector observes no more."""
MOST_TEXT = 500
"""Characters of a name or an id."""
MOST_COST = 1e12
VALIDATION = "validation"
"""The split whose rows are read; those of a sealed test must stay unknown."""

_WORDS = {"true": 1.0, "false": 0.0}


class Row(NamedTuple):
    """One row as it is in a file: texts, numbers, or None where there is nothing."""

    candidate: Any
    task: Any
    score: Any
    trial: Any = None
    cost: Any = None
    pool: Any = None
    split: Any = None
    round: Any = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PastResults:
    """Past outcomes, one per row: a score of a candidate on a task in a trial.

    Args:
        source: The file or folder, as the user named it.
        digest: Hash of the contents of all files, and of options they are read with.
        kind: The format.
        candidates: Names, in the order of the first row of each.
        tasks: Ids, in the order of the first row of each.
        pools: The pool of each task, if the file says it.
        rounds: The round of each candidate, if the file says it; 0 are starting harnesses.
        candidate: For each row, the place of its candidate in `candidates`.
        task: For each row, the place of its task in `tasks`.
        trial: For each row, its trial number, from 0.
        score: For each row, its score in [0, 1], or NaN if it has none.
        cost: For each row, its cost in US dollars, or NaN if it is unknown.
        files: The files that were read.
        file: For each row, the place of its file in `files`.
        row: For each row, its number in its file; 0 if the file has no rows.
        other_splits: Rows that were not read because their split is not "validation".
    """

    source: str
    digest: str
    kind: str
    candidates: tuple[str, ...]
    tasks: tuple[str, ...]
    pools: tuple[str, ...] | None
    rounds: tuple[int, ...] | None
    candidate: npt.NDArray[np.int64]
    task: npt.NDArray[np.int64]
    trial: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    cost: npt.NDArray[np.float64]
    files: tuple[str, ...]
    file: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    other_splits: int = 0

    def __len__(self) -> int:
        return len(self.score)

    def place(self, at: int, column: str = "") -> str:
        """The file, the row and the column of an outcome, for messages."""
        return _place(self.files[int(self.file[at])], int(self.row[at]), column)

    def renamed(self, candidate: str) -> "PastResults":
        """The results of the only candidate under another name.

        Raises:
            HistoryError: There are several candidates.
        """
        if len(self.candidates) > 1:
            shown = ", ".join(map(repr, self.candidates[:5]))
            raise HistoryError(
                f"{self.source} has {len(self.candidates)} candidates ({shown}); only a single "
                "one can get another name."
            )
        digest = combined(self.digest, candidate)
        return replace(self, candidates=(candidate,) * len(self.candidates), digest=digest)


def combined(digest: str, option: str) -> str:
    """The digest of contents that are read with an option: other results than without it."""
    return blake2b(f"{digest}/{option}".encode(), digest_size=16).hexdigest()


def _place(file: str, row: int, column: str) -> str:
    parts = [file, f"row {row:,}" if row else "", f"column {column!r}" if column else ""]
    return ", ".join(part for part in parts if part)


@dataclass(slots=True, kw_only=True)
class Rows:
    """Rows while they are read; the first that is wrong is refused.

    >>> rows = Rows()
    >>> rows.open("past.csv")
    >>> rows.add(2, Row("start", "sort-list", "1.0"))
    >>> rows.add(3, Row("start", "sort-list", "1.5"))
    Traceback (most recent call last):
    coevolve.errors.HistoryError: past.csv, row 3, column 'score': a score is from 0 to 1, or \
empty where it is missing, got '1.5'.
    """

    files: list[str] = field(default_factory=list)
    candidates: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    pools: dict[int, str] = field(default_factory=dict)
    rounds: dict[int, int] = field(default_factory=dict)
    candidate: "array[int]" = field(default_factory=lambda: array("q"))
    task: "array[int]" = field(default_factory=lambda: array("q"))
    trial: "array[int]" = field(default_factory=lambda: array("q"))
    score: "array[float]" = field(default_factory=lambda: array("d"))
    cost: "array[float]" = field(default_factory=lambda: array("d"))
    file: "array[int]" = field(default_factory=lambda: array("q"))
    row: "array[int]" = field(default_factory=lambda: array("q"))
    other_splits: int = 0

    def open(self, file: str) -> None:
        """Begin a file."""
        self.files.append(file)

    def add(self, number: int, row: Row) -> None:
        """Add a row, with its number in the file; 0 if it is the whole file."""
        if row.split not in (None, "", VALIDATION):
            self.other_splits += 1
            return
        try:
            candidate = self.candidates.get(row.candidate)
            task = self.tasks.get(row.task)
        except TypeError:  # a list or a table
            candidate = task = None
        if candidate is None or row.candidate.__class__ is not str:
            name = self._text(number, "candidate", row.candidate)
            candidate = self.candidates.setdefault(name, len(self.candidates))
            if row.round not in (None, ""):
                self.rounds[candidate] = self._whole(number, "round", row.round, 10**9)
        if task is None or row.task.__class__ is not str:
            name = self._text(number, "task", row.task)
            task = self.tasks.setdefault(name, len(self.tasks))
        if row.pool not in (None, "") and self.pools.get(task) != row.pool:
            self._set_pool(number, task, self._text(number, "pool", row.pool))
        self.candidate.append(candidate)
        self.task.append(task)
        self.trial.append(0 if row.trial in (None, "") else self._trial_number(number, row.trial))
        self.score.append(self._score(number, row.score))
        self.cost.append(math.nan if row.cost in (None, "") else self._cost(number, row.cost))
        self.file.append(len(self.files) - 1)
        self.row.append(number)

    def wrong(self, number: int, column: str, why: str) -> HistoryError:
        """The error for a row of the present file."""
        return HistoryError(f"{_place(self.files[-1], number, column)}: {why}")

    def results(self, source: str, digest: str, kind: str, numbered: bool) -> PastResults:
        """All rows.

        Args:
            source: The file or folder.
            digest: Hash of the contents.
            kind: The format.
            numbered: Whether the rows have trial numbers.
        """
        pools = None
        if self.pools:
            pools = tuple(self.pools.get(at, "all") for at in range(len(self.tasks)))
        rounds = None
        if len(self.rounds) == len(self.candidates):
            rounds = tuple(self.rounds[at] for at in range(len(self.candidates)))
        trials = _array(self.trial)
        if len(trials) and trials.min() == 1:
            trials = trials - 1  # they count from 1
        past = PastResults(
            source=source,
            digest=digest,
            kind=kind,
            candidates=tuple(self.candidates),
            tasks=tuple(self.tasks),
            pools=pools,
            rounds=rounds,
            candidate=_array(self.candidate),
            task=_array(self.task),
            trial=trials,
            score=np.array(self.score, dtype=np.float64),
            cost=np.array(self.cost, dtype=np.float64),
            files=tuple(self.files),
            file=_array(self.file),
            row=_array(self.row),
            other_splits=self.other_splits,
        )
        _check_once(past, numbered)
        return past

    def _text(self, number: int, column: str, value: Any) -> str:
        """A name or an id; a whole number is taken as text."""
        text = str(value) if value.__class__ is int else value
        if not isinstance(text, str) or not text.strip():
            what = "is empty" if value in (None, "") else f"must be text, got {value!r:.80}"
            raise self.wrong(number, column, f"it {what}.")
        if len(text) > MOST_TEXT:
            raise self.wrong(
                number, column, f"it has {len(text):,} characters; {MOST_TEXT} are allowed."
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.wrong(number, column, f"{text!r:.80} is not valid Unicode.") from None
        return text

    def _set_pool(self, number: int, task: int, pool: str) -> None:
        if self.pools.setdefault(task, pool) != pool:
            raise self.wrong(
                number,
                "pool",
                f"the task is in pool {pool!r} here, and in {self.pools[task]!r} before.",
            )

    def _score(self, number: int, given: Any) -> float:
        if given is None or given == "":
            return math.nan
        try:
            score = float(given)
        except (TypeError, ValueError, OverflowError):
            score = _WORDS.get(str(given).strip().lower(), math.nan)
        if not 0.0 <= score <= 1.0:
            raise self.wrong(
                number,
                "score",
                f"a score is from 0 to 1, or empty where it is missing, got {given!r:.80}.",
            )
        return score

    def _trial_number(self, number: int, given: Any) -> int:
        return 0 if given == "0" else self._whole(number, "trial", given, MOST_TRIALS - 1)

    def _whole(self, number: int, column: str, given: Any, most: int) -> int:
        try:
            value = float(given)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if given.__class__ is bool or not (0 <= value <= most and value == int(value)):
            raise self.wrong(
                number, column, f"a whole number from 0 to {most:,} is needed, got {given!r:.80}."
            )
        return int(value)

    def _cost(self, number: int, given: Any) -> float:
        try:
            cost = float(given)
        except (TypeError, ValueError, OverflowError):
            cost = math.nan
        if given.__class__ is bool or not 0.0 <= cost <= MOST_COST:
            raise self.wrong(
                number, "cost", f"a cost is a number of at least 0, got {given!r:.80}."
            )
        return cost


def _array(numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def _check_once(past: PastResults, numbered: bool) -> None:
    """Refuse rows for the same candidate, task and trial, and too many trials."""
    if len(past) and past.trial.max() >= MOST_TRIALS:
        at = int(np.argmax(past.trial))
        raise HistoryError(
            f"{past.place(at, 'trial')}: a candidate can have {MOST_TRIALS} trials on a task."
        )
    keys = (past.candidate * max(1, len(past.tasks)) + past.task) * MOST_TRIALS + past.trial
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    if not len(again):
        return
    seconds = order[again + 1]
    second = int(seconds.min())
    first = int(order[again[seconds == second][0]])
    candidate, task = past.candidates[past.candidate[second]], past.tasks[past.task[second]]
    remedy = "give each trial its own number" if numbered else "number trials in a column 'trial'"
    raise HistoryError(
        f"{past.place(second)}: candidate {candidate!r}, task {task!r}, trial "
        f"{past.trial[second]} is in {past.place(first)} too; keep one of the rows, or {remedy}."
    )
