"""Settings of the proposer that calls a language model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import SerializeAsAny, model_validator

from coevolve.errors import CoevolveError, ConfigError, InputError
from coevolve.findings import Finding, failed
from coevolve.models.model_settings import ModelPlug, ModelSettings
from coevolve.models.model_spend import need_prices
from coevolve.models.provider import Caps
from coevolve.proposers.proposer_settings import ProposerSettings, check_ready
from coevolve.search.proposal import Proposer
from coevolve.settings import Amount, Context, Count, Needed

_GIVEN = {"temperature": "default", "max_tokens": 16_384}
"""Defaults that differ from those of `[model]`, because an answer contains whole files."""
_OF_TRIALS = ("trial_calls", "trial_tokens")


class LLMSettings(ProposerSettings):
    """A call of a language model, or one for each candidate."""

    has_keys: ClassVar[bool] = True
    model: Annotated[SerializeAsAny[ModelSettings], ModelPlug(given=_GIVEN)]
    context_tokens: Count = 48_000
    calls: Literal["one", "each"] = "one"
    seconds: Amount = 3600.0
    best_of_n: bool = False

    @model_validator(mode="after")
    def _has_no_trials(self) -> Self:
        for key in _OF_TRIALS:
            if getattr(self.model, key) is not None:
                raise InputError(f"model.{key} has no effect on a proposer, which has no trials.")
        return self

    def needs(self) -> Iterator[Needed]:
        yield from ((f"model.{key}", path, kind) for key, path, kind in self.model.needs())

    def priced(self) -> Self:
        return self.model_copy(update={"model": self.model.priced()})

    def unrecorded(self) -> Self:
        return self.model_copy(update={"model": self.model.unrecorded()})

    def waiting(self, folder: Path) -> str:
        return f"Waiting for {self.model.name}."

    def build(self, context: Context) -> Proposer:
        from coevolve.proposers.llm import LLMProposer

        config, folder = context.config, context.folder
        model = (self if folder is not None else self.unrecorded()).priced().model
        try:
            # The budget is checked before every proposal: it counts both ledgers, and the gateway
            # only its own.
            need_prices(Caps(dollars=config.budget.dollars), known=model.has_prices)
            gateway = model.gateway(
                base=context.base, folder=folder or context.base, seed=config.run.seed
            )
            if folder is None:
                model.check_service()
        except ConfigError as error:
            said = str(error).replace("'model.", "'proposer.model.")
            raise ConfigError(said.replace("[model]", "[proposer.model]")) from error
        return LLMProposer(gateway, context_tokens=self.context_tokens, calls=self.calls)

    def examine(self, context: Context) -> Iterator[Finding]:
        try:
            check_ready(self.build(context))
        except CoevolveError as error:
            yield failed("proposer", str(error))
        else:
            yield from self.model.examine("proposer's model", context.base)
