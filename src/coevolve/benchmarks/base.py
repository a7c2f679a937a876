"""The interface of benchmarks: tasks, starting harnesses, secrets, a briefing, and trials."""

import ast
import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from coevolve.core.outcomes import Missing
from coevolve.core.pool import Pool
from coevolve.errors import ConfigError, nearest
from coevolve.executors.isolation import Harness
from coevolve.executors.workload import Score
from coevolve.registry import described
from coevolve.search.candidate import Files, check_files, read_folder
from coevolve.search.leaks import LeakScan, Secret

Given = Secret | str | tuple[str, str]
"""The question of a task, or a pair of question and answer."""
Secrets = Callable[[], Mapping[str, Given]]


def read_secrets(benchmark: object, name: str, tasks: Sequence[str]) -> dict[str, Secret]:
    """The secrets of some tasks, from a method or attribute of a benchmark.

    Raises:
        ConfigError: It is not a mapping from these tasks to secrets.
    """
    given = getattr(benchmark, name, None)
    try:
        found = given() if callable(given) else given
    except Exception as error:
        raise ConfigError(f"{name} failed: {described(error)}") from error
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ConfigError(
            f"{name} must map tasks to questions, got a {type(found).__name__}; for example "
            '{"task-1": ("the question", "the answer")}.'
        )
    known = set(tasks)
    for task in found:
        if task not in known:
            where = "test task" if name.startswith("sealed") else "task"
            raise ConfigError(
                f"{name} names {task!r}, which is not a {where}.{nearest(task, tasks)}"
            )
    return {task: _secret(value, f"{name}[{task!r}]") for task, value in found.items()}


def _secret(value: object, where: str) -> Secret:
    match value:
        case Secret():
            return value
        case str():
            return Secret(text=value)
        case [str() as text, str() as answer]:
            return Secret(text=text, answer=answer)
    raise ConfigError(
        f"{where} must be a text, or two texts, question and answer, got a {type(value).__name__}."
    )


Tasks = Iterable[str] | Mapping[str, Iterable[str]]
"""Tasks of one pool, or the tasks of each pool by its name."""
Start = Path | str | Mapping[str, bytes | str]
"""A starting harness: a folder, or contents by relative path."""


@runtime_checkable
class Benchmark(Protocol):
    """What users implement to search over their harnesses.

    The object is built in the engine and in every worker process. It must be the same each time,
    and keep nothing between calls that changes a score. Its own code is trusted. The candidate's
    code is not: it runs in the sandbox behind `harness`, and sees only what is passed to
    `harness.call`. Properties may be plain attributes.

    >>> class Doubling:
    ...     pool = Pool(["1", "2", "3"])
    ...     starts = {
    ...         "same": {"harness.py": b"def double(n): return n"},
    ...         "square": {"harness.py": b"def double(n): return n * n"},
    ...     }
    ...     def check(self, harness): harness.call("double", 0)
    ...     def prepare(self, harness): return None
    ...     def run(self, harness, task, trial):
    ...         return harness.call("double", int(task)) == 2 * int(task)
    >>> isinstance(Doubling(), Benchmark)
    True
    """

    @property
    def pool(self) -> Pool:
        """The validation tasks."""
        ...

    @property
    def starts(self) -> Mapping[str, Files]:
        """Two or more starting harnesses by name, each as its files."""
        ...

    def check(self, harness: Harness) -> None:
        """Raise if a candidate cannot be evaluated; a cheap check before any trial."""
        ...

    def prepare(self, harness: Harness) -> object:
        """Prepare a candidate, once; the JSON value it returns is `harness.state` in trials."""
        ...

    def run(self, harness: Harness, task: str, trial: int) -> float | Score | Missing:
        """One trial of a task: a score in [0, 1], or a `Score` with usage and trace."""
        ...


@runtime_checkable
class SealedBenchmark(Benchmark, Protocol):
    """A benchmark with a sealed test, which runs once, after the final choice."""

    @property
    def test_tasks(self) -> Sequence[str] | Mapping[str, Sequence[str]]:
        """Tasks of the test, or those of each pool by its name; none of them in the pool."""
        ...

    def run_test(self, harness: Harness, task: str, trial: int) -> float | Score | Missing:
        """One trial of a test task."""
        ...


def services_of(benchmark: Benchmark) -> Mapping[str, Callable[..., object]]:
    """The services of a benchmark in the engine's process, by name; none by default.

    A benchmark may have an attribute `services` with functions that workers call through their
    host. Keys, caches and rate limits belong there, because all workers share them.
    """
    return dict(getattr(benchmark, "services", {}))


def briefing_of(benchmark: Benchmark) -> str:
    """What proposers should know about the harnesses, in Markdown; empty by default.

    A benchmark may have an attribute `briefing`: what a harness is, its interface, what it may
    import and call, and how it is scored. Proposers read it, so it must not quote a task.

    Raises:
        ConfigError: It is not a text.
    """
    return checked_briefing(getattr(benchmark, "briefing", ""))


def secrets_of(benchmark: Benchmark) -> dict[str, Secret]:
    """Questions and answers of the validation tasks, by task; none by default.

    A benchmark may have a method `secrets`, to find candidates that contain tasks. It returns a
    `Secret`, a question, or a pair of question and answer for each task.

    Raises:
        ConfigError: One has another type, or belongs to an unknown task.
    """
    return read_secrets(benchmark, "secrets", benchmark.pool.tasks)


def sealed_secrets_of(benchmark: Benchmark) -> dict[str, Secret]:
    """The same for the tasks of the sealed test, from a method `sealed_secrets`."""
    return read_secrets(benchmark, "sealed_secrets", sealed_tasks(benchmark))


def leak_scan_of(benchmark: Benchmark) -> LeakScan | None:
    """The scan for tasks in the files of candidates; None if the benchmark has no secrets.

    Candidates may quote the starting harnesses, and the files in an attribute `quotable`, such as
    training examples.
    """
    secrets, sealed = secrets_of(benchmark), sealed_secrets_of(benchmark)
    if not secrets and not sealed:
        return None
    quotable: Files = getattr(benchmark, "quotable", {})
    return LeakScan(secrets, sealed=sealed, known=[*benchmark.starts.values(), quotable])


def sealed_tasks(benchmark: Benchmark) -> tuple[str, ...]:
    """The sealed test tasks of a benchmark; none if it has no test."""
    given = getattr(benchmark, "test_tasks", ())
    groups = given.values() if isinstance(given, Mapping) else (given,)
    return tuple(task for group in groups for task in group)


def check_sealed(benchmark: Benchmark) -> None:
    """Refuse test tasks that are not ids, or that the search would see.

    Raises:
        ConfigError: For example, one is also in the pool.
    """
    given = getattr(benchmark, "test_tasks", ())
    if isinstance(given, str):
        raise ConfigError(f"test_tasks must be a list of ids, got {given!r}.")
    in_pool = set(benchmark.pool.tasks)
    if common := [task for task in sealed_tasks(benchmark) if task in in_pool]:
        raise ConfigError(
            f"test task {common[0]!r} is also a validation task; remove it from the pool or from "
            "test_tasks."
        )


def check_starts(starts: Mapping[str, Files]) -> None:
    """Refuse starting harnesses that are not files by name.

    Raises:
        ConfigError: One is not a mapping, or the contents of a file are not bytes.
        CandidateError: A path or size is not allowed for candidates.
    """
    if not isinstance(starts, Mapping):
        raise ConfigError(f"starts must map names to files, got a {type(starts).__name__}.")
    for name, files in starts.items():
        if not isinstance(files, Mapping):
            raise ConfigError(
                f"starts[{name!r}] must map paths to contents, got a {type(files).__name__}."
            )
        for path, data in files.items():
            if not isinstance(data, bytes):
                raise ConfigError(
                    f"starts[{name!r}][{path!r}] must be bytes, got {type(data).__name__}; "
                    "use text.encode() for a text."
                )
        check_files(files, name)


def make_pool(
    tasks: Tasks,
    *,
    weights: Mapping[str, float] | None = None,
    costs: Mapping[str, float] | None = None,
) -> Pool:
    """The pool of some tasks.

    >>> make_pool({"dates": ["d1", "d2"], "sums": ["s1"]})
    Pool(3 tasks; dates: 2, sums: 1)
    """
    if isinstance(tasks, Mapping):
        return Pool.grouped(tasks, weights=weights, costs=costs)
    return Pool(tasks, weights=weights, costs=costs)


def read_starts(starts: Mapping[str, Start] | Iterable[Path | str]) -> dict[str, Files]:
    """The files of starting harnesses, given by name or as folders that name them.

    >>> found = read_starts({"echo": {"harness.py": "x = 1"}, "plain": {"harness.py": "x = 2"}})
    >>> found["plain"]
    {'harness.py': b'x = 2'}
    """
    if isinstance(starts, Mapping):
        given = list(starts.items())
    else:
        given = [(Path(folder).resolve().name, folder) for folder in starts]
    found: dict[str, Files] = {}
    for name, start in given:
        if name in found:
            raise ConfigError(f"two starting harnesses are named {name!r}; rename a folder.")
        if isinstance(start, Mapping):
            found[name] = {
                path: text.encode() if isinstance(text, str) else text
                for path, text in start.items()
            }
            check_starts({name: found[name]})
        else:
            found[name] = read_folder(Path(start))
    if not found:
        raise ConfigError("a search needs a starting harness, got none.")
    return found


def read_named_starts(starts: Sequence[str], known: Mapping[str, Path]) -> dict[str, Files]:
    """The files of starting harnesses, by name.

    Args:
        starts: Names of known harnesses, or folders with a `harness.py`.
        known: The folders of the harnesses that can be named.

    Raises:
        ConfigError: One is neither, or two have the same name.
    """
    if isinstance(starts, str):
        raise ConfigError(f"starts must be a list of names or folders, got {starts!r}.")
    found: dict[str, Path] = {}
    for entry in starts:
        name = entry if entry in known else Path(entry).resolve().name
        if name in found:
            raise ConfigError(f"two starting harnesses are named {name!r}; rename a folder.")
        found[name] = folder = known.get(entry, Path(entry).expanduser())
        if not folder.is_dir():
            raise ConfigError(
                f"there is no starting harness {entry!r}: it is neither a folder nor one of "
                f"{', '.join(known)}.{nearest(entry, known)}"
            )
    return read_starts(found)


_HARNESS = """\
A candidate is a folder with a Python file `harness.py`, and more files if it needs them."""
_CALLED = """\
Arguments and answers are JSON. A candidate that raises, hangs or gives an unreadable answer \
scores 0 on that task."""
_SANDBOX = """\
Its code runs in a sandbox, with limits on time and memory: it has no network and no files but \
its own, and must not rely on anything kept from one task to the next. It may import the standard \
library and what is installed with this Python. Where the run has a language model, \
`coevolve_host.ask("model", prompt="...", max_tokens=100)["text"]` asks it (`import \
coevolve_host` first). The same input should get the same answer: use a seeded \
generator such as `random.Random(0)`."""
_BY_HEART = """\
It must work for unseen tasks: its files must not contain answers to particular tasks."""
_COMMAND = """\
A candidate is a folder of files. For each task, `{command}` is run in that folder, in a sandbox \
{network}; `.` is the folder, TASK the id of the task. It prints the score of the candidate, \
from 0 to 1. A candidate that makes it fail scores 0."""


def checked_briefing(briefing: object) -> str:
    """A briefing, if it is a text."""
    if not isinstance(briefing, str):
        raise ConfigError(f"the briefing must be a text, got {briefing!r:.80}.")
    return briefing


def function_briefing(about: str, functions: Sequence[str], starts: Mapping[str, Files]) -> str:
    """The briefing of a function benchmark, with the functions that a harness must define.

    The signatures are those of the first starting harness.

    >>> files = {"harness.py": b"def total(text: str) -> float: return 0.0"}
    >>> lines = function_briefing("Find totals.", ["total"], {"zero": files}).splitlines()
    >>> lines[0], lines[4]
    ('Find totals.', '- `total(text: str) -> float`')
    """
    source = next(iter(starts.values())).get("harness.py", b"").decode(errors="replace")
    found = dict(_signatures(source))
    listed = [f"- {found.get(name, f'`{name}`')}" for name in functions]
    defines = f"{_HARNESS} It must define:\n\n" + "\n".join(listed) if listed else _HARNESS
    parts = [checked_briefing(about).strip(), defines, _CALLED, _SANDBOX, _BY_HEART]
    return "\n\n".join(part for part in parts if part) + "\n"


def command_briefing(about: str, command: Sequence[str], *, network: bool) -> str:
    """The briefing of a command benchmark.

    Args:
        about: The text of its author.
        command: The command of one trial, with TASK in place of a task.
        network: Whether the sandbox has network access.
    """
    used = _COMMAND.format(
        command=shlex.join(command), network="with network" if network else "without network"
    )
    parts = [checked_briefing(about).strip(), used, _BY_HEART]
    return "\n\n".join(part for part in parts if part) + "\n"


def _signatures(source: str) -> list[tuple[str, str]]:
    """The functions of a file: name, and signature with the first line of the docstring."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the candidate
            tree = ast.parse(source)
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [(node.name, _shown(node)) for node in tree.body if isinstance(node, functions)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # the check of the benchmark reports it


def _shown(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    about = (ast.get_docstring(node) or "").partition("\n")[0]
    shown = f"`{node.name}({ast.unparse(node.args)}){gives}`"
    return f"{shown}: {about}" if about else shown
