"""An executable as a benchmark: any program that prints a score."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from coevolve.benchmarks.base import (
    Start,
    Tasks,
    check_sealed,
    command_briefing,
    make_pool,
    read_starts,
)
from coevolve.core.outcomes import Usage, checked_score
from coevolve.errors import ConfigError, ScoreError
from coevolve.executors.failures import CandidateFault, InfrastructureError, TrialError
from coevolve.executors.isolation import Executed, Harness
from coevolve.executors.workload import Score
from coevolve.formatting import one_line

NO_PROGRAM = (126, 127)
"""Exit codes of a program that cannot be executed, or does not exist."""
_TAIL = 400
_SCRIPT = re.compile(r"\.{1,2}/.*|[^-\s][^\s]*\.(?:sh|py|pl|rb|js|lua|awk|jl|R)")
_MARK = re.compile(r"\{(candidate|task|trial)\}")
_KEYS = ("score", "usage", "trace", "missing", "error")


class CommandBenchmark:
    """A benchmark whose trials are runs of one executable in the sandbox.

    The executable gets the candidate's folder and a task id, and prints as its last line a JSON
    object: `{"score": 0.7}`, optionally with `"usage": {"tokens_in": 900, "dollars": 0.01}` and
    any `"trace"`; or `{"missing": "reason"}` for a fault of the infrastructure, after which the
    trial is retried; or `{"error": "reason"}` for a fault of the candidate. Any exit code but 0,
    or no such line, is the candidate's fault. The exit codes 126 and 127 (no such program) stop
    the run if a starting harness causes them.

    The candidate's code runs inside the executable, and **what the executable can read, the
    candidate can read**. The sandbox shows it the candidate's folder, the system, the files named
    in the command, and `readable`. If the answers are among them, a candidate can look them up.
    Keep answers in a function benchmark, whose code runs outside the sandbox. Make sure that the
    output of the candidate is never the last line, or it can choose its own score.

    Args:
        command: Program and arguments; `{candidate}`, `{task}` and `{trial}` are replaced by the
            folder (`.`, because the program starts in it), the task's id and the trial's number.
            Folder and task are appended if none is used.
        tasks: Task ids, or the ids of each pool by its name.
        starts: Two or more starting harnesses, as folders or as files by name.
        readable: More files and folders that the executable may read.
        test_tasks: Ids of the sealed test.
        test_readable: Files and folders that it may read only in trials of the test.
        network: Whether it may use the network.
        weights: Weight of each pool by name.
        costs: Expected cost of each task.
        briefing: What proposers should know about candidates, in Markdown: their files, what
            they must do, how they are scored. How the command is run is added.
        base: The folder that relative paths start from.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        tasks: Tasks,
        starts: Mapping[str, Start] | Iterable[Path | str],
        readable: Sequence[Path | str] = (),
        test_tasks: Sequence[str] = (),
        test_readable: Sequence[Path | str] = (),
        network: bool = False,
        weights: Mapping[str, float] | None = None,
        costs: Mapping[str, float] | None = None,
        briefing: str = "",
        base: Path | str = ".",
    ) -> None:
        if isinstance(command, str) or not command:
            raise ConfigError(f"command must be a list of words, got {command!r}.")
        folder = Path(base).resolve()
        self.pool = make_pool(tasks, weights=weights, costs=costs)
        self.starts = read_starts(starts)
        self.test_tasks = tuple(test_tasks)
        check_sealed(self)
        shown, sealed = ([folder / path for path in paths] for paths in (readable, test_readable))
        self._command = [_absolute(part, folder, [*shown, *sealed]) for part in command]
        files = [Path(part) for part in self._command if Path(part).is_absolute()]
        named = [path for path in files if path.is_file() and path not in sealed]
        self._readable = list(dict.fromkeys([*named, *shown]))
        self._test_readable = [*self._readable, *sealed]
        self._network = network
        example = arguments(command, ".", "TASK", 0)
        self.briefing = command_briefing(briefing, example, network=network)

    def check(self, harness: Harness) -> None:
        """Does nothing: only the executable can check a candidate."""

    def prepare(self, harness: Harness) -> object:
        return None

    def run(self, harness: Harness, task: str, trial: int) -> Score:
        return self._run(harness, task, trial, self._readable)

    def run_test(self, harness: Harness, task: str, trial: int) -> Score:
        return self._run(harness, task, trial, self._test_readable)

    def _run(self, harness: Harness, task: str, trial: int, readable: list[Path]) -> Score:
        argv = arguments(self._command, ".", task, trial)
        done = harness.execute(argv, readable=readable, network=self._network)
        return read_score(done, argv[0])


def arguments(command: Sequence[str], candidate: str, task: str, trial: int) -> list[str]:
    """The command of one trial.

    >>> arguments(["./score"], ".", "t1", 0)
    ['./score', '.', 't1']
    >>> arguments(["./score", "--task={task}", "{candidate}/main.py"], ".", "t1", 0)
    ['./score', '--task=t1', './main.py']
    """
    values = {"candidate": candidate, "task": task, "trial": str(trial)}
    if not any(_MARK.search(part) for part in command):
        return [*command, candidate, task]
    return [_MARK.sub(lambda mark: values[mark[1]], part) for part in command]


def read_score(done: Executed, program: str) -> Score:
    """The score an executable printed.

    Raises:
        CandidateFault: It failed or printed no score.
        InfrastructureError: It reports a missing outcome.
        TrialError: The program, or one that it starts, does not exist.
    """
    tail = one_line(done.stderr.decode(errors="replace").strip()[-_TAIL:])
    stderr = f"; its stderr: {tail}" if tail else ""
    if done.code in NO_PROGRAM:
        # Not an operator's fault: a candidate that exits like this must not stop the run.
        raise TrialError(
            f"{program}, or a program that it starts, does not exist or cannot run in the sandbox "
            f"(exit code {done.code}){stderr}",
            kind="no-program",
            advice="Check benchmark.command; list the files it needs in benchmark.readable.",
        )
    if done.code != 0:
        raise CandidateFault(f"{program} ended with exit code {done.code}{stderr}", kind="exit")
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    last = lines[-1] if lines else ""
    try:
        printed = json.loads(last)
    except (ValueError, RecursionError):
        printed = None
    if not isinstance(printed, dict):
        raise _no_score(
            program, f"the last line is not a JSON object: {one_line(last, _TAIL)!r}{stderr}"
        )
    return _as_score(printed, program)


def _as_score(printed: dict[str, Any], program: str) -> Score:
    if unknown := [key for key in printed if key not in _KEYS]:
        raise _no_score(program, f"unknown key {unknown[0]!r}; use {', '.join(_KEYS)}")
    if "missing" in printed:
        raise InfrastructureError(one_line(f"{program}: {printed['missing']}"))
    if "error" in printed:
        raise CandidateFault(one_line(str(printed["error"])) or "no reason given", kind="error")
    try:
        value = checked_score(printed.get("score"))
        usage = Usage(**printed["usage"]) if printed.get("usage") is not None else None
    except (ScoreError, TypeError, OverflowError) as error:
        raise _no_score(program, str(error)) from error
    return Score(value=value, usage=usage, trace=printed.get("trace"))


def _no_score(program: str, what: str) -> CandidateFault:
    return CandidateFault(one_line(f"{program} printed no score: {what}", 1_000), kind="no-score")


def _absolute(part: str, folder: Path, named: list[Path]) -> str:
    """The full path of a part of the command that names a file of the project; others unchanged.

    A script that does not exist is refused: the program starts in the candidate's folder, where a
    candidate could have a script of that name and score itself.
    """
    path = folder / part
    if part and (path.is_file() or path in named):
        return str(path)
    if _SCRIPT.fullmatch(part) and not _MARK.search(part):
        raise ConfigError(
            f"the command names {part!r}, but there is no such file in {folder}; write "
            "{candidate}/... for a file of the candidate."
        )
    return part
