"""From a configuration to the parts of a run: benchmark, proposer, model, executor and rules."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coevolve import registry
from coevolve.benchmarks.base import (
    Benchmark,
    briefing_of,
    check_sealed,
    check_starts,
    leak_scan_of,
    services_of,
)
from coevolve.core.pool import Pool
from coevolve.errors import CoevolveError, ConfigError, StopRun
from coevolve.executors.benchmark_needs import needs_of
from coevolve.executors.executor_settings import Work
from coevolve.executors.failures import named
from coevolve.executors.local import Contents
from coevolve.executors.workload import Host, Spec
from coevolve.models.gateway import Gateway
from coevolve.proposers.best_of_n import best_of_n
from coevolve.runs.config import RunConfig
from coevolve.search.acceptance import Rules
from coevolve.search.candidate import Candidate
from coevolve.search.proposal import Proposer
from coevolve.search.trials import Executor, Prepared, Result, Trial
from coevolve.settings import Context


def benchmark_spec(config: RunConfig, base: Path, folder: Path | None = None) -> Spec:
    """How a worker builds the benchmark of a configuration with paths relative to `base`.

    In a run, `folder` is that of the run.
    """
    return config.benchmark.spec(Context(config=config, base=base, folder=folder))


def build_benchmark(
    config: RunConfig, base: Path, host: Host | None = None, *, folder: Path | None = None
) -> Benchmark:
    """The benchmark of a configuration with paths relative to `base`.

    It reaches the services of the `host`, if it uses any, and keeps files in the `folder` of the
    run, if there is one.

    Raises:
        ConfigError: The benchmark cannot be built, or lacks a required attribute.
    """
    config.check_paths(base)
    spec = benchmark_spec(config, base, folder)
    try:
        return _checked(spec.build(host), spec.factory)
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"benchmark.kind {config.benchmark.kind!r} cannot be built: "
            f"{registry.described(error, spec.folder)}"
        ) from error


def _checked(found: object, factory: str) -> Benchmark:
    for name in ("pool", "starts", "check", "prepare", "run"):
        if not hasattr(found, name):
            raise ConfigError(
                f"the benchmark {factory!r} is an object of type {type(found).__name__}, which "
                f"has no {name}; see docs/benchmark.md."
            )
    assert isinstance(found, Benchmark)
    if not isinstance(found.pool, Pool):
        raise ConfigError(f"the pool of benchmark {factory!r} is not a Pool: {found.pool!r}.")
    check_starts(found.starts)
    check_sealed(found)
    needs_of(found)
    return found


def build_proposer(config: RunConfig, base: Path, *, folder: Path | None = None) -> Proposer:
    """The proposer of a configuration with paths relative to `base`.

    Args:
        config: The configuration.
        base: The folder of the TOML file.
        folder: The folder of the run; without one, the proposer writes nothing to disk.

    Raises:
        ConfigError: The proposer cannot be built.
    """
    config.check_paths(base)
    try:
        made = config.proposer.build(Context(config=config, base=base, folder=folder))
    except ConfigError as error:
        raise ConfigError(f"[proposer]: {error}") from error
    return best_of_n(made) if getattr(config.proposer, "best_of_n", False) else made


def priced(config: RunConfig) -> RunConfig:
    """The configuration with the prices of tokens that are known, so that the run records them."""
    model = None if config.model is None else config.model.priced()
    return config.model_copy(update={"model": model, "proposer": config.proposer.priced()})


def check_model(config: RunConfig, base: Path) -> None:
    """Refuse a model that is certainly not available, before there is a run.

    Raises:
        ConfigError: The settings cannot work here; no request was sent.
    """
    trial_gateway(config, base)
    if config.model is not None:
        config.model.check_service()


def trial_gateway(config: RunConfig, base: Path) -> Gateway | None:
    """A gateway for trials outside a run, which leaves nothing in caches or recordings."""
    if config.model is None:
        return None
    model = config.model.priced().unrecorded()
    return model.gateway(base=base, folder=base, budget=config.budget)


def workers(config: RunConfig) -> int:
    """Trials that run at once: enough to keep the model busy, or all cores without a model.

    With more workers than requests per minute, trials would spend their time waiting.
    """
    if config.executor.workers is None and config.model is not None:
        most = config.model.at_once
        return min(most, config.model.requests_per_minute or most)
    return config.executor.processes()


def build_executor(
    config: RunConfig,
    base: Path,
    benchmark: Benchmark,
    *,
    contents: Contents,
    folder: Path | None = None,
    gateway: Gateway | None = None,
    at_once: int | None = None,
    around: Callable[[Any], Executor] = lambda executor: executor,
) -> Executor:
    """The executor of a configuration; it closes the gateway too.

    Args:
        config: The configuration.
        base: The folder of the TOML file.
        benchmark: The benchmark, whose services workers may ask.
        contents: Where the files and states of candidates are.
        folder: The folder of the run, if there is one.
        gateway: The way to the model, if there is one.
        at_once: Attempts at once; by default those of the configuration.
        around: Wraps the executor.
    """
    services = {**services_of(benchmark), **(gateway.services() if gateway else {})}
    needs = needs_of(benchmark)
    work = Work(
        benchmark=benchmark_spec(config, base, folder),
        contents=contents,
        workers=at_once or workers(config),
        isolation=config.isolation.kind,
        limits=config.isolation.limits(needs),
        needs=needs,
        services=services,
    )
    executor = around(config.executor.build(Context(config=config, base=base), work))
    return executor if gateway is None else _WithGateway(executor, gateway)


def sweep(benchmark: Benchmark) -> None:
    """Let a benchmark remove what killed sessions have left, before any worker starts.

    Raises:
        StopRun: It failed.
    """
    clean = getattr(benchmark, "sweep", None)
    if clean is None:
        return
    try:
        clean()
    except CoevolveError:
        raise
    except Exception as error:
        raise StopRun(
            f"the benchmark could not remove what earlier sessions left: {named(error)}. Remove "
            "it yourself or fix `sweep` of the benchmark, then resume the run."
        ) from error


class _WithGateway:
    """An executor whose trials reach a model; both are closed together."""

    def __init__(self, executor: Executor, gateway: Gateway) -> None:
        self._executor, self._gateway = executor, gateway
        self.isolation_name = getattr(executor, "isolation_name", "")
        self.elastic = bool(getattr(executor, "elastic", False))

    @property
    def capacity(self) -> int:
        return self._executor.capacity

    async def check(self, candidate: Candidate) -> Prepared:
        return await self._executor.check(candidate)

    async def prepare(self, candidate: Candidate) -> Prepared:
        return await self._executor.prepare(candidate)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        return await self._executor.run(candidate, trial)

    async def close(self) -> None:
        try:
            await self._executor.close()
        finally:
            await self._gateway.close()


def build_rules(config: RunConfig, benchmark: Benchmark, gateway: Gateway | None) -> Rules:
    """The briefing of proposers, and the scan for tasks that candidates must not know."""
    scan = leak_scan_of(benchmark)
    parts = [briefing_of(benchmark), "" if gateway is None else _model_briefing(gateway.facts())]
    briefing = "\n\n".join(filter(None, parts))
    refuse = config.search.leaks == "refuse"
    if scan is not None:
        return Rules(briefing=briefing, scan=scan.scan, refuse_leaks=refuse)
    if refuse:
        raise ConfigError(
            "search.leaks = 'refuse' has no effect: the benchmark has no `secrets` to scan for "
            "(docs/benchmark.md)."
        )
    return Rules(briefing=briefing)


def _model_briefing(facts: Mapping[str, Any]) -> str:
    """The model that harnesses reach, in Markdown."""
    scores = "gives" if facts["scores"] else "does not give"
    lines = [f"- It is `{facts['name']}`, and {scores} scores of choices."]
    if facts["window"] is not None:
        lines.append(f"- Prompt and answer together may have {facts['window']:,} tokens.")
    for what in ("calls", "tokens"):
        if (most := facts[f"trial_{what}"]) is not None:
            lines.append(f"- A trial may use {most:,} {what} of it.")
    return "\n".join(["## The model", "", *lines])
