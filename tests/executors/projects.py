"""A benchmark in a folder, candidates to evaluate with it, and where their files are."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import StopRun
from coevolve.executors.isolation import find_isolation
from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Trial

BENCHMARK = """
import ast, os, signal, subprocess, sys, time

from coevolve.core.outcomes import Missing, Usage
from coevolve.executors.failures import InfrastructureError
from coevolve.executors.workload import Score


class RateLimitError(Exception):
    pass


class Benchmark:
    def __init__(self, note="", host=None):
        self.note, self.host = note, host

    def check(self, harness):
        if harness.call("answer", 1) != 1:
            raise ValueError("answers wrongly")

    def prepare(self, harness):
        return harness.call("learn")

    def run(self, harness, task, trial):
        return getattr(self, task.split(":")[0])(harness, task.partition(":")[2], trial)

    def run_test(self, harness, task, trial):
        return 0.125

    def score(self, harness, said, trial):
        return float(said)

    def trial(self, harness, said, trial):
        return trial / 10

    def answer(self, harness, said, trial):
        return harness.call("answer", float(said))

    def state(self, harness, said, trial):
        return harness.state["share"]

    def whole(self, harness, said, trial):
        print("the benchmark prints")
        answer = harness.call("speak", said)
        usage = Usage(tokens_in=3, dollars=0.5)
        return Score(value=0.5, usage=usage, trace={"answer": answer, "note": self.note})

    def call(self, harness, said, trial):
        return harness.call(said)

    def missing(self, harness, said, trial):
        return Missing("the grader was away")

    def limited(self, harness, said, trial):
        raise RateLimitError("slow down")

    def bug(self, harness, said, trial):
        return {}["label"]

    def leave(self, harness, said, trial):
        sys.exit("bye")

    def wrong(self, harness, said, trial):
        return {"nan": float("nan"), "none": None, "text": "1.0", "two": 2}[said]

    def disk(self, harness, said, trial):
        raise OSError(28, "No space left on device")

    def die(self, harness, said, trial):
        print("about to die", file=sys.stderr, flush=True)
        if said == "asked":
            harness.call("ask", "now", services={"model": lambda prompt: os._exit(3)})
        elif said:
            harness.call("answer", 1)
        os._exit(3)

    def odd(self, harness, said, trial):
        class Rude:
            def __repr__(self):
                return str(1 / 0)

        return Score(value=1.0, usage={"tokens_in": 3}) if said == "usage" else Score(
            value=1.0, trace=Rude()
        )

    def memory(self, harness, said, trial):
        return float(ast.literal_eval("-" * 100_000 + "1"))

    def numpy(self, harness, said, trial):
        import numpy

        return Score(value=numpy.float32(0.5), trace=numpy.arange(3))

    def pid(self, harness, said, trial):
        return Score(value=0.0, trace=os.getpid())

    def sleep(self, harness, said, trial):
        time.sleep(float(said))
        return 1.0

    def stubborn(self, harness, said, trial):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with subprocess.Popen([sys.executable, "-c", said], start_new_session=True) as child:
            child.wait()
        return 1.0

    def garbage(self, harness, said, trial):
        self.host.pipe._end.sendall(b"rubbish, not a message")
        return 1.0

    def huge(self, harness, said, trial):
        return Score(value=1.0, usage=Usage(), trace="x" * 20_000_000)

    def ask(self, harness, said, trial):
        return self.host.ask(said, number=0.25)

    def relay(self, harness, said, trial):
        services = {"model": lambda prompt: self.host.ask("model", number=float(prompt))}
        return harness.call("ask", said, services=services)


def broken():
    return {}["settings"]


def unlearned():
    class Unlearned(Benchmark):
        def prepare(self, harness):
            return {"x" * 9_000_000: "y" * 9_000_000}

    return Unlearned()
"""

HARNESS = b"""
import time

def answer(number):
    return number

def learn():
    return {"share": 0.75}

def speak(text):
    print("the candidate says", text)
    return text.upper()

def sleep():
    time.sleep(600)

def fail():
    raise ValueError("no idea")

def ask(prompt):
    import coevolve_host
    return coevolve_host.ask("model", prompt=prompt)
"""


class Contents:
    """Candidates' files in a folder, as a journal keeps them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, dict[str, bytes]] = {}
        self._kept: dict[str, bytes] = {}

    def candidate(self, source: bytes = HARNESS, name: str = "c1") -> Candidate:
        """A candidate with one file."""
        files = {"harness.py": source}
        candidate = Candidate.of(files, name=name)
        self._files[candidate.address] = files
        return candidate

    def put(self, address: str, data: bytes) -> None:
        self._kept[address] = data

    def get(self, address: str) -> bytes:
        return self._kept[address]

    def checkout(self, candidate: Candidate) -> Path:
        folder = self._folder / candidate.address
        folder.mkdir(exist_ok=True)
        for path, data in self._files[candidate.address].items():
            if not (folder / path).exists():  # a sandbox may read it now
                (folder / f"{path}.new").write_bytes(data)
                (folder / f"{path}.new").rename(folder / path)
        return folder


class Project:
    """A benchmark's folder and its contents."""

    def __init__(self, folder: Path, source: str = BENCHMARK) -> None:
        (folder / "project").mkdir()
        (folder / "candidates").mkdir()
        self.folder = folder / "project"
        self.contents = Contents(folder / "candidates")
        (self.folder / "tasks_of_mine.py").write_text(source)

    def spec(self, factory: str = "Benchmark", **arguments: Any) -> Spec:
        return Spec(factory=f"tasks_of_mine:{factory}", arguments=arguments, folder=self.folder)

    def executor(
        self, factory: str = "Benchmark", arguments: Any = None, **settings: Any
    ) -> LocalExecutor:
        spec = self.spec(factory, **(arguments or {}))
        return LocalExecutor(spec, contents=self.contents, **{"isolation": "process", **settings})


def trial(task: str, number: int = 0, *, candidate: str = "c1", **more: Any) -> Trial:
    return Trial(candidate=candidate, task=task, trial=number, **more)


def with_executor[T](executor: Any, use: Callable[[Any], Awaitable[T]]) -> T:
    """What using an executor gives; it is closed in any case."""

    async def main() -> T:
        try:
            return await use(executor)
        finally:
            await executor.close()

    return asyncio.run(main())


def needs_bwrap() -> pytest.MarkDecorator:
    try:
        find_isolation("bwrap")
    except StopRun as error:
        return pytest.mark.skip(reason=f"bubblewrap does not work here: {error}")
    return pytest.mark.filterwarnings("error")


def runs(pid: int) -> bool:
    """Whether a process is there and not only waited for."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def until(true: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether something becomes true in time."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()
