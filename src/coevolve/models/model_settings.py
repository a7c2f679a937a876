"""`[model]`: settings of hosted, embedded and user-defined models, and their gateway."""

import asyncio
import os
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from coevolve import registry
from coevolve.core.outcomes import Usage
from coevolve.errors import CoevolveError, ConfigError, InputError, nearest
from coevolve.findings import Finding, failed, passed
from coevolve.models.call_recording import Recorder, ReplayProvider
from coevolve.models.gateway import Gateway
from coevolve.models.hosted_service import check_service
from coevolve.models.model_errors import NotRecorded
from coevolve.models.model_spend import Prices, price_of
from coevolve.models.provider import Caps, ModelRequest, Provider, Sampling
from coevolve.models.rate_limits import Pace, Retrying
from coevolve.models.response_cache import ResponseCache, cache_folder
from coevolve.search.budget import Budget, Ledger
from coevolve.settings import Amount, Count, Needed, Plugged, Table, Text

CACHE_FILE = "responses.db"
Price = Annotated[float, Field(ge=0)]
_CACHES = ("run", "shared", "off")
_OF_SERVICES = ("base_url", "key", "window", "strict_choices")
_PRICES = ("price_in", "price_out", "price_kept")


class ModelSettings(Table):
    """The model of a run; see docs/models.md.

    `key` is the name of an environment variable, never a key itself.
    """

    slots: ClassVar[int] = 32
    """Requests at once if `concurrency` is left out."""
    ignored: ClassVar[tuple[str, ...]] = ()
    """Keys that have no effect on this kind of model."""
    unscored: ClassVar[frozenset[str]] = frozenset(
        {"key", "concurrency", "requests_per_minute", "tokens_per_minute", "seconds", "attempts"}
        | {"cache", "record", *_PRICES}
    )
    """Keys that cannot alter an answer."""

    name: Text
    base_url: Text | None = None
    key: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["default"] = 0.0
    reasoning_effort: Text | None = None
    system: str = ""
    max_tokens: Count = 1024
    window: Count | None = None
    strict_choices: bool | None = None
    concurrency: Count | None = None
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    seconds: Amount = 300.0
    attempts: Count = 5
    cache: Text = "run"
    record: Text | None = None
    replay: Text | None = None
    price_in: Price | None = None
    price_out: Price | None = None
    price_kept: Price | None = None
    trial_calls: Count | None = None
    trial_tokens: Count | None = None

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        if (self.price_in is None) != (self.price_out is None):
            raise InputError("give both price_in and price_out, or neither.")
        if self.price_kept is not None and self.price_in is None:
            raise InputError("price_kept has no effect without price_in and price_out.")
        for key in self.ignored:
            if getattr(self, key) is not None:
                raise InputError(f"{key} has no effect on the model {self.name!r}; leave it out.")
        if self.cache not in _CACHES and not {".", "/"} & set(self.cache):
            raise InputError(
                "cache may be 'run', 'shared', 'off' or a file such as 'answers.db', got "
                f"{self.cache!r}."
            )
        if self.record is not None and self.record == self.replay:
            raise InputError(f"record and replay are both {self.record!r}; change one of them.")
        return self

    def needs(self) -> Iterator[Needed]:
        if self.replay is not None:
            yield ("replay", self.replay, "file")

    def sources(self, base: Path) -> Iterator[Path]:
        """The files whose contents can alter answers, for paths relative to `base`."""
        if self.replay is not None:
            yield base / self.replay

    @abstractmethod
    def answering(self, base: Path) -> Provider:
        """The provider that answers requests if no recording is replayed."""

    def check_service(self) -> None:
        """Refuse a model that is certainly not available, without a request.

        Raises:
            ConfigError: No service has a model of this name.
        """

    def priced(self) -> Self:
        """The same settings with the prices of tokens, if they are known."""
        return self

    def unrecorded(self) -> Self:
        """The same settings for a trial, which leaves nothing in caches or recordings."""
        return self.model_copy(update={"cache": "off", "record": None})

    @property
    def at_once(self) -> int:
        """The number of requests that may run at once."""
        return self.concurrency or self.slots

    @property
    def unset_key(self) -> bool:
        """Whether it needs a key that is not in the environment."""
        return self.key is not None and self.replay is None and not os.environ.get(self.key)

    @property
    def has_prices(self) -> bool:
        """Whether the cost of a request is known; a recording costs nothing."""
        return self.replay is not None or self.prices() is not None

    def prices(self) -> Prices | None:
        """The prices of tokens, if they are known."""
        if self.price_in is None or self.price_out is None:
            return None
        return Prices(
            tokens_in=self.price_in, tokens_out=self.price_out, tokens_kept=self.price_kept
        )

    def provider(self, base: Path) -> Provider:
        """A recording, or the provider that answers; `base` is the folder of the project."""
        return ReplayProvider(base / self.replay) if self.replay else self.answering(base)

    def gateway(
        self,
        *,
        base: Path,
        folder: Path,
        budget: Budget | None = None,
        spent: Ledger | None = None,
        seed: int = 0,
    ) -> Gateway:
        """A gateway, which connects to the model at the first request.

        Args:
            base: The folder that paths start from.
            folder: The run's folder, where its cache may be.
            budget: Its caps on tokens and dollars are checked at every request.
            spent: What evaluating has spent so far.
            seed: The seed of the run.
        """
        provider, budget, spent = self.provider(base), budget or Budget(), spent or Ledger()
        cache = self._cache_path(base, folder)
        return Gateway(
            provider,
            sampling=Sampling(
                temperature=None if self.temperature == "default" else self.temperature,
                max_tokens=self.max_tokens,
                system=self.system,
                reasoning_effort=self.reasoning_effort,
            ),
            pace=Pace(
                concurrency=self.at_once,
                requests_per_minute=self.requests_per_minute,
                tokens_per_minute=self.tokens_per_minute,
            ),
            retrying=Retrying(attempts=self.attempts, seconds=self.seconds, seed=seed),
            caps=Caps(
                tokens=budget.tokens,
                dollars=budget.dollars,
                trial_calls=self.trial_calls,
                trial_tokens=self.trial_tokens,
            ),
            prices=self.prices(),
            cache=None if cache is None else ResponseCache(cache),
            recorder=None if self.record is None else Recorder(base / self.record, provider),
            spent=Usage(
                tokens_in=spent.tokens_in, tokens_out=spent.tokens_out, dollars=spent.dollars
            ),
        )

    def _cache_path(self, base: Path, folder: Path) -> Path | None:
        # Another run must not take answers of a recording for the model's own.
        kept = "run" if self.replay is not None and self.cache != "off" else self.cache
        places = {"off": None, "run": folder, "shared": cache_folder()}
        if kept not in places:
            return base / kept
        place = places[kept]
        return None if place is None else place / CACHE_FILE

    def examine(self, about: str, base: Path) -> Iterator[Finding]:
        """Whether the model answers, for `coevolve doctor`; it sends a short request."""
        try:
            seconds = asyncio.run(self._ask_once(base))
        except NotRecorded:
            yield passed(about, f"answers come from {self.replay}")
        except CoevolveError as error:
            yield failed(about, str(error))
        else:
            yield passed(about, f"the first answer of {self.name} took {seconds:.1f} s")

    async def _ask_once(self, base: Path) -> float:
        """How many seconds the model takes to answer."""
        provider = self.provider(base)
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self.seconds):
                await provider.complete(ModelRequest(prompt="Say yes.", max_tokens=16))
        except TimeoutError:
            raise ConfigError(f"{self.name} did not answer within {self.seconds:g} s.") from None
        else:
            return time.perf_counter() - started
        finally:
            await provider.close()


class HostedModel(ModelSettings):
    """A model of a service, or of your own server, through LiteLLM."""

    def answering(self, base: Path) -> Provider:
        from coevolve.models.hosted import HostedProvider

        return HostedProvider(
            self.name,
            base_url=self.base_url,
            key=self._key(),
            key_variable=self.key or "",
            timeout=self.seconds,
            window=self.window,
            strict_choices=self.strict_choices,
        )

    def check_service(self) -> None:
        if self.replay is not None:
            return
        try:
            check_service(self.name, own=self.base_url is not None)
        except ConfigError as error:
            raise ConfigError(f"{error}{nearest(self.name, registry.names('models'))}") from error

    def priced(self) -> Self:
        if self.replay or self.price_in is not None or (found := price_of(self.name)) is None:
            return self
        prices = (found.tokens_in, found.tokens_out, found.tokens_kept)
        return self.model_copy(update=dict(zip(_PRICES, prices, strict=True)))

    def _key(self) -> str:
        if self.key is None:
            return ""
        key = os.environ.get(self.key)
        if not key:
            shown = repr(self.key) if self.key.isupper() else "(hidden: it may be a key itself)"
            raise ConfigError(
                f"'model.key' names the environment variable {shown}, which is not set here; set "
                "it to the key of the model's service."
            )
        return key


class EmbeddedModel(ModelSettings):
    """The small embedded model, which costs nothing."""

    slots: ClassVar[int] = 2
    ignored: ClassVar[tuple[str, ...]] = (*_OF_SERVICES, "reasoning_effort", *_PRICES)

    def answering(self, base: Path) -> Provider:
        from coevolve.models.embedded import EmbeddedProvider

        return EmbeddedProvider(slots=self.at_once)

    def prices(self) -> Prices | None:
        return Prices(tokens_in=0, tokens_out=0)

    def examine(self, about: str, base: Path) -> Iterator[Finding]:
        if self.replay is not None:
            yield from super().examine(about, base)
            return
        from coevolve.models.embedded import embedded_line

        there, line = embedded_line()
        yield passed(about, line) if there else failed(about, line)


class FactoryModel(ModelSettings):
    """A function or class that returns a `coevolve.models.provider.Provider`."""

    ignored: ClassVar[tuple[str, ...]] = _OF_SERVICES
    arguments: dict[str, Any] = Field(default_factory=dict)

    def sources(self, base: Path) -> Iterator[Path]:
        yield from super().sources(base)
        module = registry.reference("models", self.name).partition(":")[0]
        path = base.joinpath(*module.split(".")).with_suffix(".py")
        if path.is_file():
            yield path

    def answering(self, base: Path) -> Provider:
        made: Provider = registry.make(
            "models",
            self.name,
            arguments=self.arguments,
            members=("identity", "window", "gives_scores", "complete", "count", "close"),
            folder=base.resolve(),
        )
        return made


class ModelPlug(Plugged):
    """Marks a field that holds a model's table; `given` are values for keys left out."""

    others = "a name that LiteLLM knows"

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        super().__init__("models", ModelSettings, FactoryModel, key="name", given=given)

    def named(self, table: Mapping[str, Any]) -> Any:
        """The name of the plug; the name `llama3:latest` of a server is not a module."""
        name = super().named(table)
        served = table.get("base_url") is not None and registry.REFERENCE.match(str(name))
        return registry.ANY if served else name
