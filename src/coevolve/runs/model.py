"""From `[model]` to the gateway of a run."""

import os
from pathlib import Path

from coevolve.errors import ConfigError
from coevolve.models.call_recording import Recorder, ReplayProvider
from coevolve.models.gateway import Gateway
from coevolve.models.hosted_service import check_service
from coevolve.models.model_spend import Prices, Spent, price_of
from coevolve.models.provider import Caps, Provider, Sampling
from coevolve.models.rate_limits import Pace, Retrying
from coevolve.models.response_cache import ResponseCache, cache_folder
from coevolve.runs.config import RunConfig
from coevolve.runs.model_settings import ModelSettings
from coevolve.runs.proposer_settings import LLMProposerSettings
from coevolve.runs.settings import BudgetSettings
from coevolve.search.budget import Ledger
from coevolve.search.candidate import Candidate
from coevolve.search.trials import Executor, Prepared, Result, Trial

CACHE_FILE = "responses.db"
HOSTED, EMBEDDED = 32, 2
"""Requests under way at once, unless told."""


def build_gateway(
    model: ModelSettings,
    *,
    base: Path,
    folder: Path,
    budget: BudgetSettings,
    spent: Ledger,
    seed: int = 0,
) -> Gateway:
    """The gateway of a run, which reaches for the model when it is first asked.

    Args:
        model: Which model, and how.
        base: The folder that paths start from.
        folder: The run's folder, where its cache may be.
        budget: Its caps on tokens and dollars hold for every single request.
        spent: What evaluating has spent so far.
        seed: The seed of the run.
    """
    provider = build_provider(model, base)
    # What a recording says must not pass for the model's own answer in another run.
    kept = "run" if model.replay is not None and model.cache != "off" else model.cache
    path = _cache_path(kept, base, folder)
    return Gateway(
        provider,
        sampling=Sampling(
            temperature=None if model.temperature == "default" else model.temperature,
            max_tokens=model.max_tokens,
            system=model.system,
            reasoning_effort=model.reasoning_effort,
        ),
        pace=Pace(
            concurrency=slots(model),
            requests_per_minute=model.requests_per_minute,
            tokens_per_minute=model.tokens_per_minute,
        ),
        retrying=Retrying(attempts=model.attempts, seconds=model.seconds, seed=seed),
        caps=Caps(
            tokens=budget.tokens,
            dollars=budget.dollars,
            trial_calls=model.trial_calls,
            trial_tokens=model.trial_tokens,
        ),
        prices=_prices(model),
        cache=None if path is None else ResponseCache(path),
        recorder=None if model.record is None else Recorder(base / model.record, provider),
        spent=Spent(tokens_in=spent.tokens_in, tokens_out=spent.tokens_out, dollars=spent.dollars),
    )


def check_model(config: RunConfig, base: Path) -> None:
    """Refuse a model that cannot be reached in this way, before there is a run of it.

    Raises:
        ConfigError: The settings cannot work here; nothing was asked.
    """
    trial_gateway(config, base)
    model = config.model
    if model is not None and model.hosted and model.replay is None:
        check_service(model.name, own=model.base_url is not None)


def trial_gateway(config: RunConfig, base: Path) -> Gateway | None:
    """A gateway for a first try, which keeps and records nothing."""
    if config.model is None:
        return None
    model = priced(config).model or config.model
    return build_gateway(
        without_traces(model),
        base=base,
        folder=base,
        budget=config.budget,
        spent=Ledger(),
    )


def without_traces(model: ModelSettings) -> ModelSettings:
    """The same model for a first try, of which nothing is kept or recorded."""
    return model.model_copy(update={"cache": "off", "record": None})


def build_provider(model: ModelSettings, base: Path) -> Provider:
    """Who answers: a recording, the embedded model, or a service."""
    if model.replay is not None:
        return ReplayProvider(base / model.replay)
    if not model.hosted:
        from coevolve.models.embedded import EmbeddedProvider

        return EmbeddedProvider(slots=slots(model))
    from coevolve.models.hosted import HostedProvider

    return HostedProvider(
        model.name,
        base_url=model.base_url,
        key=_key(model.key),
        key_variable=model.key or "",
        timeout=model.seconds,
        window=model.window,
        strict_choices=model.strict_choices,
    )


def workers(config: RunConfig) -> int:
    """Trials that run at once: enough to keep the model busy, or all cores without one.

    With more of them than calls in a minute, trials would spend their time waiting in line.
    """
    if config.executor.workers is None and config.model is not None:
        most = slots(config.model)
        return min(most, config.model.requests_per_minute or most)
    return config.executor.processes()


def slots(model: ModelSettings) -> int:
    """Requests under way at once."""
    return model.concurrency or (HOSTED if model.hosted else EMBEDDED)


def priced(config: RunConfig) -> RunConfig:
    """A configuration that says what tokens cost, if anybody knows, so that the run keeps it."""
    proposer = config.proposer
    if isinstance(proposer, LLMProposerSettings):
        proposer = proposer.model_copy(update={"model": with_prices(proposer.model)})
    model = None if config.model is None else with_prices(config.model)
    return config.model_copy(update={"model": model, "proposer": proposer})


def with_prices[M: ModelSettings](model: M) -> M:
    """The same model with what its tokens cost, if anybody knows."""
    if not model.hosted or model.replay or model.price_in is not None:
        return model
    found = price_of(model.name)
    if found is None:
        return model
    prices = {f"price_{part}": getattr(found, f"tokens_{part}") for part in ("in", "out", "kept")}
    return model.model_copy(update=prices)


def _prices(model: ModelSettings) -> Prices | None:
    if not model.hosted:
        return Prices(tokens_in=0, tokens_out=0)
    if model.price_in is None or model.price_out is None:
        return None
    return Prices(
        tokens_in=model.price_in, tokens_out=model.price_out, tokens_kept=model.price_kept
    )


def _key(name: str | None) -> str:
    if name is None:
        return ""
    key = os.environ.get(name)
    if not key:
        shown = repr(name) if name.isupper() else "(not shown, for it may be a key itself)"
        raise ConfigError(
            f"'model.key' names the environment variable {shown}, which is not set here; set it "
            "to the key of the model's service."
        )
    return key


def _cache_path(cache: str, base: Path, folder: Path) -> Path | None:
    match cache:
        case "off":
            return None
        case "run":
            return folder / CACHE_FILE
        case "shared":
            return cache_folder() / CACHE_FILE
        case path:
            return base / path


class ModelledExecutor:
    """An executor whose trials reach a model; both are closed together."""

    def __init__(self, executor: Executor, gateway: Gateway) -> None:
        self._executor, self._gateway = executor, gateway
        self.isolation_name = getattr(executor, "isolation_name", "")

    @property
    def capacity(self) -> int:
        """How many attempts may be under way at once."""
        return self._executor.capacity

    async def check(self, candidate: Candidate) -> Prepared:
        """Whether a candidate can be evaluated at all."""
        return await self._executor.check(candidate)

    async def prepare(self, candidate: Candidate) -> Prepared:
        """Make a candidate ready for trials."""
        return await self._executor.prepare(candidate)

    async def run(self, candidate: Candidate, trial: Trial) -> Result:
        """Run one attempt."""
        return await self._executor.run(candidate, trial)

    async def close(self) -> None:
        """End every process, then the gateway."""
        try:
            await self._executor.close()
        finally:
            await self._gateway.close()
