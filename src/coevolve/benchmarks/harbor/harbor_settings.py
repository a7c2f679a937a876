"""Settings of Harbor's tasks."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from coevolve.benchmarks.benchmark_settings import BenchmarkSettings, Starts
from coevolve.benchmarks.harbor.agent_files import built_in
from coevolve.errors import InputError
from coevolve.executors.workload import Spec
from coevolve.findings import Finding
from coevolve.models.model_client import StubModel
from coevolve.settings import Amount, Context, Needed, Text, Texts


class HarborSettings(BenchmarkSettings):
    """Terminal-Bench and other tasks of Harbor; see `coevolve.benchmarks.harbor`."""

    unscored: ClassVar[frozenset[str]] = BenchmarkSettings.unscored | {
        "path",
        "exclude",
        "costs",
        "costs_from",
        "keep_trials",
    }
    path: Text | None = None
    dataset: Text | None = None
    version: Text | None = None
    registry: Text | None = None
    tasks: Texts = ()
    exclude: Texts = ()
    starts: Starts = ("terminus-2", "terminus-kira")
    environment: Text = "docker"
    environment_options: dict[str, Any] = Field(default_factory=dict)
    agent_options: dict[str, Any] = Field(default_factory=dict)
    agent_timeout_multiplier: Amount = 1.0
    verifier_timeout_multiplier: Amount = 1.0
    build_timeout_multiplier: Amount = 1.0
    setup_timeout_multiplier: Amount = 1.0
    services: Texts = ()
    reward: Text = "reward"
    costs: dict[str, Amount] | None = None
    costs_from: Text | None = None
    fresh_sandbox: bool = True
    keep_trials: bool = True

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.path is None) == (self.dataset is None):
            raise InputError("set one of path and dataset.")
        for name in ("version", "registry"):
            if getattr(self, name) is not None and self.dataset is None:
                raise InputError(f"{name} has no effect without dataset.")
        return self

    def check(self, config: Any) -> None:
        if config.model is None:
            raise InputError(
                f"benchmark.kind {self.kind!r} needs a model; add [model] with the name of a "
                "hosted model (docs/models.md)."
            )

    def examine(self) -> Iterator[Finding]:
        from coevolve.benchmarks.harbor.environment_checks import check_dataset, check_environment

        yield from check_environment(self.environment)
        if self.dataset is not None and self.registry is None:
            yield from check_dataset(self.dataset, self.version)

    def stub_model(self) -> StubModel:
        from coevolve.benchmarks.harbor.smoke_trial import EndingModel

        return EndingModel()

    def needs(self) -> Iterator[Needed]:
        if self.path is not None:
            yield ("path", self.path, "folder")
        if self.registry is not None:
            yield ("registry", self.registry, "file")
        if self.costs_from is not None:
            yield ("costs_from", self.costs_from, "folder")
        yield from (("starts", name, "harness") for name in self.starts)

    def harnesses(self) -> Mapping[str, Path]:
        return built_in()

    def spec(self, context: Context) -> Spec:
        base, known = context.base.resolve(), self.harnesses()
        given = self.model_dump(mode="json", exclude={"kind", "keep_trials"})
        for name in ("path", "registry", "costs_from"):
            if given[name] is not None:
                given[name] = str(base / given[name])
        given["starts"] = [name if name in known else str(base / name) for name in self.starts]
        if self.keep_trials and context.folder is not None:
            given["trials_folder"] = str(context.folder.resolve() / "trials")
        return Spec(
            factory="coevolve.benchmarks.harbor.harbor_benchmark:HarborBenchmark",
            arguments=given,
            folder=base,
        )
