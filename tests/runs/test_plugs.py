"""Every family of plugs is found in the same ways: by name, by entry point, by reference."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coevolve
from coevolve import executors, registry
from coevolve.benchmarks.synthetic.synthetic_settings import SyntheticSettings
from coevolve.errors import ConfigError
from coevolve.executors.local import LocalExecutor
from coevolve.models import model_settings
from coevolve.models.model_settings import HostedModel
from coevolve.proposers.base import Repairer
from coevolve.proposers.proposer_settings import check_ready
from coevolve.runs import RunConfig, build_benchmark, build_proposer
from coevolve.runs.building import build_executor
from coevolve.runs.session import create_run, read_state, session
from coevolve.search.journal import MemoryJournal
from coevolve.search.run_state import RunState
from tests.cli.projects import write_doubling

PLUGS = '''
from collections.abc import Iterator
from pathlib import Path

import coevolve
from coevolve.benchmarks import FunctionBenchmark
from coevolve.benchmarks.benchmark_settings import BenchmarkSettings
from coevolve.executors.local import LocalExecutor
from coevolve.executors.workload import Spec
from coevolve.models.provider import ModelReply, Provider
from coevolve.proposers.proposer_settings import ProposerSettings
from coevolve.settings import Context, Count, Needed, Text


def benchmark(size=2):
    starts = {name: {"harness.py": f"name = '{name}'"} for name in "ab"}
    tasks = [str(number) for number in range(size)]
    return FunctionBenchmark(lambda harness, task: 1.0, tasks=tasks, starts=starts)


class Sized(BenchmarkSettings):
    """Settings of my benchmark."""

    size: Count

    def spec(self, context):
        arguments = {"size": self.size}
        return Spec(factory=f"{__name__}:benchmark", arguments=arguments, folder=context.base)


class Proposer:
    def __init__(self, word="none"):
        self.word = word

    async def propose(self, view, count):
        return []


class Plain:
    def __init__(self):
        self.closed = self.checked = False

    def propose(self, view, count):
        return [{"files": {"harness.py": f"def double(n): return {view.round} * n"}}]

    def repair(self, view, broken):
        return []

    def check(self):
        self.checked = True

    def close(self):
        self.closed = True


def of_view(view):
    return f"def double(n): return {view.round} * n"


async def of_both(view, count):
    return [of_view(view)]


def of_three(view, count, more):
    return []


class Reading(ProposerSettings):
    """Settings of my proposer."""

    file: Text

    def needs(self):
        yield ("file", self.file, "file")

    def build(self, context):
        return Proposer((context.base / self.file).read_text())


class Counting(LocalExecutor):
    """A local executor that counts its trials."""

    def __init__(self, benchmark, *, note="", **rest):
        super().__init__(benchmark, **rest)
        self.note, self.trials = note, 0

    async def run(self, candidate, trial):
        self.trials += 1
        return await super().run(candidate, trial)


class Model(Provider):
    identity = {"name": "parrot"}
    window = None
    gives_scores = False

    def __init__(self, words="yes"):
        self.words = words

    async def complete(self, request):
        return ModelReply(text=self.words, finish="stop", tokens_in=3, tokens_out=1)

    async def count(self, texts):
        return [len(text) for text in texts]

    async def close(self):
        pass


protocol = coevolve.SearchProtocol(name="mine")
'''
ENTRY_POINTS = """
[coevolve.benchmarks]
installed = installed_plugs:benchmark
[coevolve.proposers]
installed = installed_plugs:Proposer
[coevolve.executors]
installed = installed_plugs:Counting
[coevolve.models]
installed = installed_plugs:Model
broken = no_such_plugs:Model
[coevolve.protocols]
installed = installed_plugs:protocol
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with plugs of its own, and a distribution that is installed beside it."""
    project, site = tmp_path / "project", tmp_path / "site"
    info = site / "installed_plugs-1.0.dist-info"
    for place in (project, info):
        place.mkdir(parents=True)
    (project / "my_plugs.py").write_text(PLUGS)
    (site / "installed_plugs.py").write_text(PLUGS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-plugs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (project / "word.txt").write_text("read")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    registry._installed.cache_clear()
    yield project
    registry._installed.cache_clear()
    for name in ("my_plugs", "installed_plugs"):
        sys.modules.pop(name, None)


def config(folder: Path, **tables: Any) -> RunConfig:
    given = {
        "search": {"rounds": 1},
        "benchmark": {"kind": "synthetic"},
        "proposer": {"kind": "my_plugs:Proposer"},
        **tables,
    }
    return RunConfig.from_json(given, folder=folder)


@pytest.mark.parametrize("family", registry.FAMILIES)
def test_an_unknown_name_is_answered_with_what_there_is(
    family: registry.Family, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(name: str, *, own: bool) -> None:
        raise ConfigError(f"no service for {name!r}.")

    monkeypatch.setattr(model_settings, "check_service", unknown)
    if family == "models":  # any other name is a hosted model's
        with pytest.raises(
            ConfigError, match=r"no service for 'embeded'\. Did you mean 'embedded'"
        ):
            HostedModel(name="embeded").check_service()
        return
    with pytest.raises(ConfigError, match=rf"unknown {family[:-1]} 'instaled'.* mean 'installed'"):
        registry.find(family, "instaled")


@pytest.mark.parametrize("family", registry.FAMILIES)
def test_a_plug_is_found_by_name_entry_point_and_reference(
    family: registry.Family, folder: Path
) -> None:
    plug = {
        "benchmarks": "benchmark",
        "proposers": "Proposer",
        "executors": "Counting",
        "models": "Model",
        "protocols": "protocol",
    }[family]
    for name in registry.names(family):
        if name != "broken":
            assert registry.find(family, name) is not None
    assert "installed" in registry.names(family)
    assert registry.find(family, "installed") is getattr(sys.modules["installed_plugs"], plug)
    own = registry.find(family, f"my_plugs:{plug}", folder=folder)
    assert own is getattr(sys.modules["my_plugs"], plug)


def test_an_entry_point_that_cannot_be_loaded_is_named(folder: Path) -> None:
    message = (
        r"the entry point 'broken' of coevolve\.models \(no_such_plugs:Model\) failed to load"
    )
    with pytest.raises(ConfigError, match=message):
        registry.find("models", "broken")


@pytest.mark.parametrize("kind", ["installed", "my_plugs:benchmark"])
def test_a_benchmark_of_ones_own(kind: str, folder: Path) -> None:
    made = config(folder, benchmark={"kind": kind, "arguments": {"size": 5}})
    assert len(build_benchmark(made, folder).pool) == 5
    assert RunConfig.from_json(made.to_json(), folder=folder) == made


def test_a_benchmark_with_settings_of_its_own(folder: Path) -> None:
    made = config(folder, benchmark={"kind": "my_plugs:Sized", "size": 4})
    assert len(build_benchmark(made, folder).pool) == 4
    assert made.to_json()["benchmark"] == {"kind": "my_plugs:Sized", "size": 4}
    for table, message in (
        ({"sise": 4}, r"unknown key 'benchmark\.sise'\. Did you mean 'benchmark\.size'\?"),
        ({"size": 0}, r"'benchmark\.size' must be at least 1, got 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            config(folder, benchmark={"kind": "my_plugs:Sized", **table})


@pytest.mark.parametrize("kind", ["installed", "my_plugs:Proposer"])
def test_a_proposer_of_ones_own(kind: str, folder: Path) -> None:
    made = config(folder, proposer={"kind": kind, "arguments": {"word": "new"}})
    assert build_proposer(made, folder).word == "new"  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["my_plugs:Plain", "my_plugs:of_view", "my_plugs:of_both"])
def test_a_plain_method_or_a_function_proposes(kind: str, folder: Path) -> None:
    file = write_doubling(folder)
    own = f'[proposer]\nkind = "{kind}"\n'
    table = '[proposer]\nkind = "function"\nfile = "propose.py"\n'
    file.write_text(file.read_text().replace(table, own))
    result = coevolve.open(file).run()
    assert [c.name for c in result.candidates if c.round] == ["r1-0", "r2-0", "r3-0"]
    assert result.best.name == "r2-0"


def test_a_plain_proposer_keeps_its_other_methods(folder: Path) -> None:
    made = build_proposer(config(folder, proposer={"kind": "my_plugs:Plain"}), folder)
    check_ready(made)
    assert isinstance(made, Repairer)
    asyncio.run(made.close())  # type: ignore[attr-defined]


def test_optimize_takes_the_name_of_a_function(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = coevolve.optimize(
        ["1", "2", "3"],
        ["def double(n): return n", "def double(n): return 0"],
        lambda candidate, task: candidate.call("double", int(task)) == 2 * int(task),
        "my_plugs:of_view",
        rounds=2,
    )
    assert result.best.name == "r2-0"


def test_a_function_that_neither_proposes_nor_returns_a_proposer_is_named(folder: Path) -> None:
    made = config(folder, proposer={"kind": "my_plugs:of_three"})
    with pytest.raises(ConfigError, match=r"'more'\. It is called with `arguments` and returns"):
        build_proposer(made, folder)


def test_a_proposer_with_settings_of_its_own(folder: Path) -> None:
    made = config(folder, proposer={"kind": "my_plugs:Reading", "file": "word.txt"})
    assert build_proposer(made, folder).word == "read"  # type: ignore[attr-defined]
    lost = config(folder, proposer={"kind": "my_plugs:Reading", "file": "none.txt"})
    with pytest.raises(ConfigError, match=r"'proposer\.file' names 'none\.txt'"):
        build_proposer(lost, folder)


def test_a_single_choice_is_not_one_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_installed", lambda family: {})
    monkeypatch.delitem(executors.PLUGS, "ray")
    with pytest.raises(ConfigError, match="unknown executor 'remote'; use local, or package"):
        registry.find("executors", "remote")
    given = {"benchmark": {"kind": "synthetic"}, "executor": {"kind": 3}}
    with pytest.raises(ConfigError, match="is 3; use 'local', or 'package"):
        RunConfig.from_json({**given, "proposer": {"kind": "synthetic"}})


def test_the_local_executor_is_a_plug_like_others(folder: Path) -> None:
    for table in ({}, {"kind": "local"}):
        made = config(folder, executor=table)
        assert made.to_json()["executor"]["kind"] == "local"
        benchmark = build_benchmark(made, folder)
        executor = build_executor(made, folder, benchmark, contents=MemoryJournal())
        assert type(executor) is LocalExecutor
    with pytest.raises(ConfigError, match=r"unknown key 'executor\.worker'\. Did you mean"):
        config(folder, executor={"worker": 3})


@pytest.mark.parametrize("kind", ["installed", "my_plugs:Counting"])
def test_an_executor_of_ones_own_runs_a_search(
    kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_doubling(folder)
    own = f'[executor]\nkind = "{kind}"\narguments = {{ note = "hello" }}\n'
    assert "workers = 1\n" in file.read_text()
    text = file.read_text().replace("workers = 1\n", "workers = 2\n")
    file.write_text(text.replace("[executor]\n", own))
    run, seen = create_run(file), list[Any]()

    def around(executor: Any) -> Any:
        seen.append(executor)
        return executor

    async def search() -> RunState:
        with session(run, around=around) as work:
            return await work.run()

    state = asyncio.run(search())
    assert state.ended is not None
    (executor,) = seen
    assert (executor.note, executor.capacity) == ("hello", 2)
    assert executor.trials == state.evaluating.trials
    assert read_state(run).ended == state.ended


def test_an_executor_that_is_not_one_is_named(folder: Path) -> None:
    made = config(folder, executor={"kind": "my_plugs:Proposer", "arguments": {"word": "x"}})
    benchmark = build_benchmark(made, folder)
    with pytest.raises(ConfigError, match="executor 'my_plugs:Proposer' cannot be built: TypeErr"):
        build_executor(made, folder, benchmark, contents=MemoryJournal())


def with_model(folder: Path, **table: Any) -> RunConfig:
    benchmark = {"kind": "textclass"}
    return config(folder, benchmark=benchmark, model={"cache": "off", **table})


@pytest.mark.parametrize("name", ["installed", "my_plugs:Model"])
def test_a_model_of_ones_own_answers(name: str, folder: Path) -> None:
    made = with_model(folder, name=name, arguments={"words": "polly"}, price_in=1, price_out=1)

    async def ask() -> dict[str, Any]:
        assert made.model is not None
        gateway = made.model.gateway(base=folder, folder=folder)
        try:
            return await gateway.ask(prompt="Who are you?")
        finally:
            await gateway.close()

    answer = asyncio.run(ask())
    assert answer["text"] == "polly"
    assert answer["usage"]["dollars"] == 4e-6
    assert made.model is not None
    (found,) = made.model.examine("model", folder)
    assert found.kind == "passed"


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("embedded", "base_url", "http://localhost:8000/v1"),
        ("embedded", "price_in", 1.0),
        ("my_plugs:Model", "window", 4096),
        ("installed", "key", "MY_KEY"),
    ],
)
def test_what_has_no_effect_on_a_model_is_refused(
    name: str, key: str, value: Any, folder: Path
) -> None:
    both = {"price_out": 1.0} if key == "price_in" else {}
    with pytest.raises(ConfigError, match=f"{key} has no effect on the model '{name}'"):
        with_model(folder, **{"name": name, key: value, **both})


def test_a_server_of_ones_own_may_have_a_model_that_looks_like_a_reference(folder: Path) -> None:
    made = with_model(folder, name="llama3:latest", base_url="http://localhost:8000/v1")
    assert type(made.model).__name__ == "HostedModel"


def test_a_proposer_may_use_a_model_of_ones_own(folder: Path) -> None:
    made = config(folder, proposer={"kind": "llm", "model": {"name": "my_plugs:Model"}})
    table = made.to_json()["proposer"]["model"]
    assert (table["max_tokens"], table["temperature"]) == (16_384, "default")
    assert type(build_proposer(made, folder)).__name__ == "LLMProposer"


def test_two_projects_may_have_modules_of_the_same_name(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "my_plugs.py").write_text(PLUGS.replace("size=2", "size=7"))
    kind = {"kind": "my_plugs:benchmark"}
    for place, size in ((folder, 2), (other, 7), (folder, 2)):
        assert len(build_benchmark(config(place, benchmark=kind), place).pool) == size


def test_built_in_plugs_are_found_as_settings() -> None:
    assert registry.find("benchmarks", "synthetic") is SyntheticSettings
    assert registry.names("executors")[0] == "local"
    assert registry.names("models")[0] == "embedded"
