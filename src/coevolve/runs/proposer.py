"""From `[proposer]` to who writes the candidates of a run, and what it is told."""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coevolve.benchmarks.base import Benchmark, briefing_of, leak_scan_of
from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.benchmarks.synthetic.synthetic_benchmark import SyntheticProposer
from coevolve.benchmarks.textclass.harness_files import built_in
from coevolve.errors import ConfigError
from coevolve.executors.failures import named
from coevolve.executors.workload import Spec
from coevolve.models.gateway import Gateway
from coevolve.models.hosted_service import check_service
from coevolve.models.model_spend import need_prices
from coevolve.models.provider import Caps
from coevolve.proposers import FunctionProposer, Proposer, Scripted
from coevolve.proposers.best_of_n import best_of_n
from coevolve.runs.config import RunConfig
from coevolve.runs.model import build_gateway, with_prices, without_traces
from coevolve.runs.proposer_settings import (
    CommandProposerSettings,
    FunctionProposerSettings,
    LLMProposerSettings,
    OfflineProposerSettings,
    OwnProposerSettings,
    ScriptedProposerSettings,
)
from coevolve.runs.settings import BudgetSettings
from coevolve.search.acceptance import Rules
from coevolve.search.budget import Ledger

if TYPE_CHECKING:
    from coevolve.proposers.command import Agent

WORKSPACES = "proposing"
"""The folder of a run in which agents work."""

_OF_BENCHMARK = {"kind", "starts", "test_tasks", "seconds"}
_GRACE = 60.0
"""Seconds after its own limit that an agent is given to be stopped and read."""


def build_proposer(config: RunConfig, base: Path, *, folder: Path | None = None) -> Proposer:
    """The proposer of a configuration whose paths start from `base`.

    Args:
        config: The configuration.
        base: The folder of the TOML file.
        folder: The folder of the run; without one, the proposer keeps nothing on disk.

    Raises:
        ConfigError: What the configuration names cannot be loaded.
    """
    config.check_paths(base)
    try:
        made = _build(config, base, folder)
    except ConfigError as error:
        if "proposer" in str(error):
            raise
        raise ConfigError(f"[proposer]: {error}") from error
    return best_of_n(made) if getattr(config.proposer, "best_of_n", False) else made


def check_ready(proposer: Proposer) -> None:
    """Make sure that a proposer can work here, before anything is spent on Phase 0.

    Raises:
        ConfigError: Its agent is not installed, for example.
    """
    if (check := getattr(proposer, "check", None)) is not None:
        check()


def _build(config: RunConfig, base: Path, folder: Path | None) -> Proposer:
    table = config.proposer
    match table:
        case OfflineProposerSettings():
            from coevolve.proposers.offline import OfflineProposer

            return OfflineProposer(characters=table.characters, independent=table.best_of_n)
        case LLMProposerSettings():
            return _llm(table, config, base, folder)
        case CommandProposerSettings():
            return _command(table, config, base, folder)
        case ScriptedProposerSettings():
            return Scripted(
                [
                    _folder(base, item)
                    if isinstance(item, str)
                    else [_folder(base, one) for one in item]
                    for item in table.folders
                ]  # type: ignore[arg-type]
            )
        case FunctionProposerSettings():
            return FunctionProposer.from_file(base / table.file, table.function)
        case OwnProposerSettings():
            return _own(table, base)
        case _:
            world = config.benchmark.model_dump(exclude=_OF_BENCHMARK)
            return SyntheticProposer(SyntheticWorld(**world))


def _llm(
    table: LLMProposerSettings, config: RunConfig, base: Path, folder: Path | None
) -> Proposer:
    from coevolve.proposers.llm import LLMProposer

    settings = with_prices(table.model if folder is not None else without_traces(table.model))
    # The budget is checked before every proposal: it counts both ledgers, a gateway only its own.
    try:
        known = settings.price_in is not None or settings.replay is not None
        need_prices(Caps(dollars=config.budget.dollars), known or not settings.hosted)
        gateway = build_gateway(
            settings,
            base=base,
            folder=folder or base,
            budget=BudgetSettings(),
            spent=Ledger(),
            seed=config.run.seed,
        )
        if folder is None and settings.hosted and settings.replay is None:
            check_service(settings.name, own=settings.base_url is not None)
    except ConfigError as error:
        said = str(error).replace("'model.", "'proposer.model.")
        raise ConfigError(said.replace("[model]", "[proposer.model]")) from error
    return LLMProposer(gateway, context_tokens=table.context_tokens, calls=table.calls)


def _command(
    table: CommandProposerSettings, config: RunConfig, base: Path, folder: Path | None
) -> Proposer:
    from coevolve.proposers.command import CommandProposer

    hidden = [base, *(base / path for _, path, _ in config.benchmark.needs())]
    return CommandProposer(
        agent_of(table, base),
        folder=(folder or base) / WORKSPACES,
        seconds=table.seconds,
        isolation=table.isolation,
        hidden=[*hidden, *([folder] if folder else [])],
        readable=[base / path for path in table.readable],
        keys=table.keys,
    )


def agent_of(table: CommandProposerSettings, base: Path) -> "Agent":
    """The agent that a table names; a path to it starts from the folder `base`.

    Raises:
        ConfigError: It has no such option.
    """
    from coevolve.proposers.command import custom, preset

    if table.command is not None:
        program, *words = table.command
        command = [_program(program, base), *words]
        return custom(command, model=table.model or "", home=table.home)
    return preset(
        table.agent or "",
        program=_program(table.program or "", base),
        model=table.model or "",
        effort=table.effort or "",
        tools=table.tools,
        dollars=table.dollars,
        arguments=table.arguments,
    )


def _own(table: OwnProposerSettings, base: Path) -> Proposer:
    spec = Spec(factory=table.kind, arguments=dict(table.arguments), folder=base.resolve())
    try:
        made: Any = spec.build(None)
    except (Exception, SystemExit) as error:
        hint = (
            " What it names is called with `arguments`, and returns the proposer; a function "
            'propose(view, count) goes with kind = "function".'
        )
        raise ConfigError(
            f"proposer.kind {table.kind!r} cannot be built: {named(error)}"
            f"{hint if isinstance(error, TypeError) else ''}"
        ) from error
    if not isinstance(made, Proposer):
        raise ConfigError(
            f"proposer {table.kind!r} gave a {type(made).__name__} without a method "
            "propose(view, count), which is no proposer; see docs/write-a-proposer.md."
        )
    return made


def _program(name: str, base: Path) -> str:
    """A name on the PATH as it is, a path from the folder of the project."""
    return str(base.resolve() / os.path.expanduser(name)) if "/" in name else name  # noqa: PTH111


def unrecorded(config: RunConfig) -> RunConfig:
    """The same configuration for a first try, of which no answer is kept or recorded."""
    table = config.proposer
    if not isinstance(table, LLMProposerSettings):
        return config
    table = table.model_copy(update={"model": without_traces(table.model)})
    return config.model_copy(update={"proposer": table})


def build_rules(config: RunConfig, benchmark: Benchmark, gateway: Gateway | None) -> Rules:
    """What proposers are told of a benchmark, and what may not be in what they write."""
    scan = leak_scan_of(benchmark)
    parts = [briefing_of(benchmark), "" if gateway is None else _model_words(gateway.facts())]
    briefing = "\n\n".join(filter(None, parts))
    if scan is None and config.search.leaks == "refuse":
        raise ConfigError(
            "'search.leaks' is 'refuse', which has no effect: the benchmark does not say what its "
            "tasks ask (docs/benchmark.md, secrets)."
        )
    if scan is None:
        return Rules(briefing=briefing)
    return Rules(briefing=briefing, scan=scan.scan, refuse_leaks=config.search.leaks == "refuse")


def proposal_seconds(config: RunConfig) -> float:
    """How long a proposal may take before the engine gives it up."""
    seconds = float(getattr(config.proposer, "seconds", math.inf))
    own = isinstance(config.proposer, CommandProposerSettings)
    return seconds + _GRACE if own else seconds


def _model_words(facts: Mapping[str, Any]) -> str:
    """The model of harnesses, in Markdown."""
    scores = "gives" if facts["scores"] else "does not give"
    lines = [f"- It is `{facts['name']}`, and {scores} scores of choices."]
    if facts["window"] is not None:
        lines.append(f"- Prompt and answer together may have {facts['window']:,} tokens.")
    for what in ("calls", "tokens"):
        if (most := facts[f"trial_{what}"]) is not None:
            lines.append(f"- A trial may use {most:,} {what} of it.")
    return "\n".join(["## The model", "", *lines])


def _folder(base: Path, name: str) -> Path:
    return built_in().get(name, base / name)
