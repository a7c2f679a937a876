"""What a search found: the best candidate, all others, and every outcome."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from coevolve.core.estimators import Estimate
from coevolve.core.events import Event
from coevolve.errors import InputError, NoOutcomeError, StoreError, nearest
from coevolve.formatting import score
from coevolve.search.candidate import Candidate, only_text
from coevolve.search.run_state import RunState
from coevolve.store import RunStore
from coevolve.views.outcome_rows import outcome_rows
from coevolve.views.report import Report, report

if TYPE_CHECKING:
    from coevolve.runs.run import Run

_SHOWN = 5
"""Candidates in a report, besides the starting ones; likewise those refused."""


class Source(Protocol):
    """Where the events and contents of a run are; a journal is one."""

    def events(self) -> Iterator[Event]:
        """Every event in order."""
        ...

    def get(self, address: str) -> bytes:
        """The bytes kept at an address."""
        ...

    def checkout(self, candidate: Candidate) -> Path:
        """A folder with the files of a candidate."""
        ...


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run folder, opened for each read."""

    folder: Path

    def events(self) -> Iterator[Event]:
        with RunStore.read(self.folder) as store:
            yield from store.events()

    def get(self, address: str) -> bytes:
        with RunStore.read(self.folder) as store:
            return store.get(address)

    def checkout(self, candidate: Candidate) -> Path:
        with RunStore.read(self.folder) as store, suppress(StoreError):
            return store.checkout(candidate)
        with RunStore.open(self.folder) as store:  # only a writer can make the folder
            return store.checkout(candidate)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CandidateResult:
    """A candidate of a run: its files, estimate and scores.

    `status` is "evaluated", "refused" (`reason` says why) or its progress. `estimate` is that of
    the full-set score, if it has any outcome. `full` is the score of a rescored candidate on every
    task, and `test` that on the sealed test. Starting candidates are of round 0.
    """

    name: str
    round: int
    status: str
    reason: str
    parents: tuple[str, ...]
    hypothesis: str
    estimate: Estimate | None
    full: float | None
    test: float | None
    record: Candidate
    source: Source = field(repr=False)

    @property
    def files(self) -> dict[str, bytes]:
        """Contents by relative path."""
        return {path: self.source.get(address) for path, address in self.record.files.items()}

    @property
    def text(self) -> str:
        """The text of the only file."""
        return only_text(self.files, self.name)

    @property
    def folder(self) -> Path:
        """A folder with the files, which must not be changed; copy them to work on them."""
        return self.source.checkout(self.record)

    def __repr__(self) -> str:
        return f"CandidateResult({self.name!r}, {self.estimate or self.status})"


class Result:
    """What a search found: the best candidate, all others, and every outcome.

    Args:
        state: The run.
        source: Where its events and contents are.
        run: The run on disk, if it is on disk.

    >>> from coevolve import optimize
    >>> result = optimize(
    ...     tasks=["1", "2", "3", "4"],
    ...     starts={"same": "def double(n): return n", "none": "def double(n): return 0"},
    ...     evaluate=lambda candidate, task: candidate.call("double", int(task)) == 2 * int(task),
    ...     propose=lambda view: "def double(n): return n + n",
    ...     rounds=1,
    ... )
    >>> result
    Result(best='r1-0', 0.481 ± 0.256 (1 of 4 tasks, joint), 3 candidates, 9 trials)
    >>> result.best.text
    'def double(n): return n + n'
    >>> result.outcomes()[0]["candidate"], len(result.outcomes())
    ('same', 9)
    """

    def __init__(self, state: RunState, source: Source, run: "Run | None" = None) -> None:
        self.run = run
        self._state, self._source = state, source

    @property
    def status(self) -> Report:
        """The progress, spending and candidates of the run, as displays show them."""
        return report(self._state)

    @property
    def candidates(self) -> tuple[CandidateResult, ...]:
        """Every candidate, starting candidates first, in the order of proposal."""
        return tuple(
            CandidateResult(
                name=row.name,
                round=row.round,
                status=row.status,
                reason=row.reason,
                parents=row.parents,
                hypothesis=row.hypothesis,
                estimate=self._state.estimate(row.name),
                full=row.full,
                test=row.test,
                record=self._state.candidates[row.name].candidate,
                source=self._source,
            )
            for row in self.status.candidates
        )

    @property
    def best(self) -> CandidateResult:
        """The winner; while the run is under way, the best candidate so far.

        Raises:
            NoOutcomeError: No candidate has a score.
        """
        name = self.status.best
        if name is None:
            why = f": {self.status.why}" if self.status.why else ""
            raise NoOutcomeError(f"no candidate of run {self._state.name!r} has a score{why}.")
        return self[name]

    @property
    def estimate(self) -> Estimate:
        """The estimated full-set score of the best candidate."""
        found = self.best.estimate
        if found is None:
            raise NoOutcomeError(f"no candidate of run {self._state.name!r} has a score.")
        return found

    def __getitem__(self, name: str) -> CandidateResult:
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        known = list(self._state.candidates)
        raise InputError(f"the run has no candidate {name!r}.{nearest(name, known)}")

    def outcomes(self) -> list[dict[str, Any]]:
        """Every outcome as a flat row: `pandas.DataFrame(result.outcomes())`.

        `score` is None where it is missing, and `missing` says why. `fault` and `reason` say what
        went wrong, also where the candidate failed and scored 0.
        """
        return [row.to_json() for row in outcome_rows(self._source.events())]

    def report(self) -> str:
        """The result as text."""
        return "\n".join(_lines(self.status, self.candidates))

    def _repr_html_(self) -> str:
        """The result in a notebook: static, as of the time it was made."""
        from coevolve.reports.notebook_view import notebook_html
        from coevolve.views.timeline import Timeline

        events = takewhile(lambda event: event["seq"] < self._state.events, self._source.events())
        return notebook_html(Timeline.of_events(events))

    def __repr__(self) -> str:
        now = self.status
        found = f"best={now.best!r}, {self.estimate}" if now.best else now.why or now.phase
        trials = f"{now.spend.evaluating['trials']:,} trials"
        return f"Result({found}, {len(now.candidates)} candidates, {trials})"


def _lines(now: Report, candidates: tuple[CandidateResult, ...]) -> Iterator[str]:
    """A result as text, line by line."""
    if now.warning:
        yield f"Warning: {now.warning}"
    done = f"{now.round} of {now.rounds} rounds, {now.spend.evaluating['trials']:,} trials"
    yield f"{now.name}: {now.why or now.phase}, {done}, protocol {now.protocol}"
    if now.spend.savings is not None:
        yield str(now.spend.savings)
    shown = sorted(
        (c for c in candidates if c.estimate is not None),
        key=lambda c: (c.name != now.best, -c.estimate.value if c.estimate else 0.0),
    )
    rows: list[tuple[str, ...]]
    rows = [("", "candidate", "round", "estimate", "all tasks", "sealed test")]
    hidden = [c for c in shown[_SHOWN:] if c.round]
    hidden = hidden if len(hidden) > 1 else []  # a line is as long as "and 1 more"
    for candidate in (c for c in shown if c not in hidden):
        mark = "*" if candidate.name == now.best else ""
        round = "start" if candidate.round == 0 else str(candidate.round)
        known = (candidate.full, candidate.test)
        last = ["" if value is None else score(value) for value in known]
        rows.append((mark, candidate.name, round, str(candidate.estimate), *last))
    columns = zip(*rows, strict=True)
    kept = [c for c in columns if any(c[1:]) or c[0] not in ("all tasks", "sealed test")]
    widths = [max(map(len, column)) for column in kept]
    rows = list(zip(*kept, strict=True))
    yield ""
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
    if hidden:
        yield f"and {len(hidden)} more"
    if now.chosen and (now.chosen.get("tied_with") or now.chosen.get("better_start")):
        yield f"Choice: {now.chosen['why']}"
    if now.mixed:
        yield f"Warning: {now.mixed}"
    if now.sealed_warning:
        yield f"Warning: {now.sealed_warning}"
    if now.missing:
        yield f"{now.missing:,} trials have no score"
    if now.failures:
        yield "Failures: " + ", ".join(f"{kind} ({n:,})" for kind, n in now.failures.items())
    refused = [c for c in candidates if c.status == "refused"]
    listed = len(refused) if len(refused) == _SHOWN + 1 else _SHOWN
    for candidate in refused[:listed]:
        yield f"{candidate.name} was refused: {candidate.reason}"
    if len(refused) > listed:
        yield f"and {len(refused) - listed} more were refused"
