"""Text classification as a benchmark: learn from examples one at a time, then answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from coevolve.benchmarks.base import check_sealed
from coevolve.benchmarks.textclass.data_sets import DataSet, Row, load_set, shuffled
from coevolve.benchmarks.textclass.evaluators import Verdict
from coevolve.benchmarks.textclass.harness_check import (
    MODES,
    Mode,
    check,
    learned,
    predicted,
    recall,
)
from coevolve.benchmarks.textclass.harness_files import (
    DEFAULT_STARTS,
    frame_source,
    read_start_files,
)
from coevolve.benchmarks.textclass.proposer_briefing import briefing, quotable_files, secret_of
from coevolve.benchmarks.textclass.published_sets import SHIPPED
from coevolve.core.pool import Pool
from coevolve.errors import ConfigError, StateError, UnknownTaskError, nearest
from coevolve.executors.failures import FaultError
from coevolve.executors.isolation import Harness, HarnessFault
from coevolve.executors.isolation.launch import ReportedFault
from coevolve.executors.workload import Host, Score, attach_trace
from coevolve.models.model_client import ModelClient, StubModel, clipped
from coevolve.search.candidate import Files
from coevolve.search.leaks import Secret
from coevolve.search.trials import Blame

MOST = 40_000
"""Characters of a trace as JSON, at most, without the output of the candidate."""
_LENGTHS = (16_000, 8_000, 4_000, 2_000, 1_000, 400)


def validation_trace(
    data: DataSet, row: Row, answer: str, verdict: Verdict, client: ModelClient
) -> dict[str, Any]:
    """Everything about a trial: question, calls of the model, answer, and the right answer."""
    prompts = [call["prompt"] for call in client.calls if isinstance(call.get("prompt"), str)]
    task = len(data.words.prompt(row.question))
    trace = {
        "set": data.name,
        "question": row.question,
        "answer": answer,
        "read_as": verdict.answer,
        "gold": row.answer,
        "correct": verdict.correct,
        "metrics": dict(verdict.metrics),
        "context_chars": max(0, len(prompts[-1]) - task) if prompts else 0,
        "calls": client.calls,
        "calls_left_out": client.left_out,
    }
    return shortened(trace)


def failure_trace(data: DataSet, row: Row, client: ModelClient) -> dict[str, Any]:
    """The requests of a trial that failed."""
    trace = {
        "set": data.name,
        "question": row.question,
        "gold": row.answer,
        "calls": client.calls,
        "calls_left_out": client.left_out,
    }
    return shortened(trace)


def test_trace(data: DataSet, verdict: Verdict) -> dict[str, Any]:
    """The set, and whether the answer was right; no details that harnesses could be fitted to."""
    return {"set": data.name, "correct": verdict.correct}


def shortened(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace of limited length: long texts lose their middle, then the last calls are dropped."""
    short = trace
    for longest in _LENGTHS:
        if _fits(short):
            return short
        short = _clip(trace, longest)
    calls = list(short["calls"])
    while calls and not _fits(short):
        dropped = (len(calls) + 1) // 2
        calls = calls[: len(calls) - dropped]
        short = {**short, "calls": calls, "calls_left_out": short["calls_left_out"] + dropped}
    return short


def _fits(trace: dict[str, Any]) -> bool:
    return len(json.dumps(trace)) <= MOST


def _clip(value: Any, longest: int) -> Any:
    if isinstance(value, dict):
        return {key: _clip(part, longest) for key, part in value.items()}
    if isinstance(value, list):
        return [_clip(part, longest) for part in value]
    return clipped(value, longest)


_TRIED = 5
"""Training rows that a check uses."""


class Asked(NamedTuple):
    """The row of a task, and its set."""

    data: DataSet
    row: Row


class TextClassification:
    """Sets of questions, each a pool; a harness learns each of them from examples.

    Args:
        sets: Names of known sets (uspto, s2d, law, service-desk), or your own folders.
        data: The folder with the published sets; by default that of `coevolve data get`.
        starts: Names of built-in harnesses, or folders with a `harness.py`.
        mode: "offline" gives examples with their answers; "online" asks for a prediction first.
        seed: Of the order of examples and of tasks.
        host: Gives access to the model. Listing the tasks needs none.

    Attributes:
        pool: The validation tasks: `<set>-<number of its row>`, in shuffled order.
        test_tasks: The sealed tasks by set: `<set>-test-<number of its row>`.
        frame: Source of the module around a harness in the sandbox.
    """

    def __init__(
        self,
        sets: Sequence[str] = (SHIPPED,),
        *,
        data: str | Path | None = None,
        starts: Sequence[str] = DEFAULT_STARTS,
        mode: Mode = "offline",
        seed: int = 42,
        host: Host | None = None,
    ) -> None:
        if mode not in MODES:
            known = nearest(mode, MODES)
            raise ConfigError(f"mode must be one of {', '.join(MODES)}, got {mode!r}.{known}")
        self._sets = _loaded(sets, None if data is None else Path(data))
        self._mode, self._seed = mode, seed
        self._alone = host is None
        self._client = ModelClient(NoModel() if host is None else host)
        self.starts = read_start_files(starts)
        self.frame = frame_source()
        val = {found.name: _tasks(found, "", found.val) for found in self._sets}
        test = {found.name: _tasks(found, "-test", found.test) for found in self._sets}
        self._val = {task: asked for tasks in val.values() for task, asked in tasks.items()}
        self._test = {task: asked for tasks in test.values() for task, asked in tasks.items()}
        self.pool = Pool.grouped({name: self._order(tasks) for name, tasks in val.items()})
        self.test_tasks = {name: self._order(tasks) for name, tasks in test.items() if tasks}
        check_sealed(self)

    @property
    def briefing(self) -> str:
        """A description of harnesses and sets, for proposers."""
        return briefing(self._sets, self._mode)

    @property
    def quotable(self) -> Files:
        """Files that candidates may quote: training rows and the texts of tasks."""
        return quotable_files(self._sets)

    def fingerprint(self) -> dict[str, bytes]:
        """What can alter scores: the words of tasks and the rows of every set."""
        return {
            f"sets/{data.name}/{part}": json.dumps(value).encode()
            for data in self._sets
            for part, value in (
                ("task", data.words.to_json()),
                ("train", [(row.question, row.answer) for row in data.train]),
                ("val", [(row.question, row.answer) for row in data.val]),
                ("test", [(row.question, row.answer) for row in data.test]),
            )
        }

    def secrets(self) -> dict[str, Secret]:
        """The validation questions, with their answers unless these are labels."""
        return {task: secret_of(asked.data, asked.row) for task, asked in self._val.items()}

    def sealed_secrets(self) -> dict[str, Secret]:
        """The same for the sealed test."""
        return {task: secret_of(asked.data, asked.row) for task, asked in self._test.items()}

    def check(self, harness: Harness) -> None:
        """Check the harness on every set, with a stub in place of the model."""
        for data in self._sets:
            examples = [{"question": r.question, "answer": r.answer} for r in data.train[:_TRIED]]
            check(
                harness,
                data.words.to_json(),
                examples=examples[1:],
                question=examples[0]["question"],
                model=self._stub(),
            )
            harness.end_trial()

    def _stub(self) -> StubModel:
        """A stub with the abilities and the caps of the model of the run."""
        if self._alone:
            return StubModel()
        facts = self._client.facts()
        return StubModel(
            window=facts["window"],
            gives_scores=facts["scores"],
            trial_calls=facts["trial_calls"],
            trial_tokens=facts["trial_tokens"],
        )

    def prepare(self, harness: Harness) -> dict[str, Any]:
        """Let the harness learn the train rows of every set; returns its states by set."""
        states = {
            data.name: learned(
                harness,
                data,
                self._client,
                rows=[data.train[n] for n in shuffled(len(data.train), self._seed)],
                mode=self._mode,
            )
            for data in self._sets
        }
        harness.end_trial()  # trials start from the states alone
        return states

    def run(self, harness: Harness, task: str, trial: int) -> Score:
        """The answer to a validation question, and whether it is right."""
        asked = _found(self._val, task)
        try:
            answer = self._answer(harness, asked, trial)
        except Exception as error:
            attach_trace(error, failure_trace(asked.data, asked.row, self._client))
            raise
        verdict = asked.data.evaluate(answer, asked.row.answer)
        trace = validation_trace(asked.data, asked.row, answer, verdict, self._client)
        return Score(value=float(verdict.correct), usage=self._client.usage, trace=trace)

    def run_test(self, harness: Harness, task: str, trial: int) -> Score:
        """Whether the answer to a question of the sealed test is right, without details."""
        asked = _found(self._test, task)
        try:
            answer = self._answer(harness, asked, trial)
        except (HarnessFault, FaultError) as error:
            if error.fault.blame is not Blame.CANDIDATE:
                raise
            # The reason and the name of its own error may quote the question.
            kind = "error" if isinstance(error, ReportedFault) else error.fault.kind
            raise HarnessFault(kind, "failed on a question of the sealed test") from None
        finally:
            _forget(harness)
        verdict = asked.data.evaluate(answer, asked.row.answer)
        trace = test_trace(asked.data, verdict)
        return Score(value=float(verdict.correct), usage=self._client.usage, trace=trace)

    def _answer(self, harness: Harness, asked: Asked, trial: int) -> str:
        if harness.state is None:
            raise StateError("the harness has not learned yet; call prepare before run.")
        self._client.begin(trial=trial)
        recall(harness, asked.data, harness.state[asked.data.name], self._client)
        return predicted(harness, asked.data, asked.row.question, self._client)

    def _order(self, tasks: Mapping[str, Asked]) -> tuple[str, ...]:
        names = list(tasks)
        return tuple(names[number] for number in shuffled(len(names), self._seed))


class NoModel:
    """A host without services: listing the tasks of a benchmark needs no model."""

    def ask(self, service: str, /, **payload: object) -> NoReturn:
        """Refuse."""
        raise ConfigError(
            f"the service {service!r} is not available: this benchmark was built without a host. "
            "Pass one, such as coevolve.models.model_client.StubModel()."
        )


def _loaded(sets: Sequence[str], data: Path | None) -> tuple[DataSet, ...]:
    if isinstance(sets, str) or not sets:
        raise ConfigError(f"sets must be a list of one or more sets, got {sets!r}.")
    found: dict[str, DataSet] = {}
    for entry in sets:
        loaded = load_set(entry, data)
        if loaded.name in found:
            raise ConfigError(f"two sets are named {loaded.name!r}; rename a folder.")
        found[loaded.name] = loaded
    return tuple(found.values())


def _tasks(data: DataSet, split: str, rows: Sequence[Row]) -> dict[str, Asked]:
    """The tasks of a split by their ids, which count the rows of its file from 0."""
    width = max(3, len(str(len(rows) - 1)))
    return {
        f"{data.name}{split}-{number:0{width}}": Asked(data, row)
        for number, row in enumerate(rows)
    }


def _found(tasks: Mapping[str, Asked], task: str) -> Asked:
    if task not in tasks:
        raise UnknownTaskError(f"there is no task {task!r}.{nearest(task, tasks)}")
    return tasks[task]


def _forget(harness: Harness) -> None:
    """Drop the output of a candidate, which would be recorded."""
    forget: Callable[[], None] | None = getattr(harness, "forget_output", None)
    if forget is not None:
        forget()
