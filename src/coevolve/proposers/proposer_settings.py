"""`[proposer]`: the base of all settings, and those of functions, folders and factories."""

import inspect
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, Strict

from coevolve import registry
from coevolve.core.outcomes import Usage
from coevolve.errors import CoevolveError, ConfigError, InputError
from coevolve.findings import Finding, failed, passed
from coevolve.proposers.base import takes
from coevolve.proposers.scripted import CallableProposer, FunctionProposer, Scripted, awaitable
from coevolve.search.proposal import Proposer
from coevolve.settings import Amount, Context, Needed, Table, Text, Texts


class ProposerSettings(Table):
    """The settings of a proposer; a plug of yours may derive its own from it.

    Args:
        free: Whether a proposal takes almost no time and calls no model.
        reads_traces: Whether it may read tasks in traces and write them into candidates.
        has_keys: Whether it may need a key, which `examine` looks for.
    """

    free: ClassVar[bool] = False
    reads_traces: ClassVar[bool] = True
    has_keys: ClassVar[bool] = False
    kind: Text

    @abstractmethod
    def build(self, context: Context) -> Proposer:
        """The proposer; if the context has no folder, it must not write anything."""

    @property
    def patience(self) -> float:
        """Seconds after which the engine stops waiting for a proposal."""
        return float(getattr(self, "seconds", math.inf))

    def priced(self) -> Self:
        """The same settings with the prices of its model, where they are known."""
        return self

    def unrecorded(self) -> Self:
        """The same settings for a trial proposal, which leaves nothing in caches or recordings."""
        return self

    def waiting(self, folder: Path) -> str:
        """A message to show while a proposal is made in a folder; empty if that is quick."""
        return ""

    def examine(self, context: Context) -> Iterator[Finding]:
        """Whether the proposer is ready, for `coevolve doctor`."""
        try:
            check_ready(self.build(context))
        except CoevolveError as error:
            yield failed("proposer", str(error))
        else:
            yield passed("proposer", f"{self.kind!r} is ready")


def check_ready(proposer: Proposer) -> None:
    """Make sure that a proposer can work here, before Phase 0 costs anything.

    Raises:
        ConfigError: Its agent is not installed, for example.
    """
    if (check := getattr(proposer, "check", None)) is not None:
        check()


async def probed(proposer: Proposer) -> Usage | None:
    """What one short request to the proposer's model cost; None if it has no model to ask.

    If the model does not answer, the proposer is closed.

    Raises:
        ConfigError: The model did not answer, so Phase 0 would be paid in vain.
    """
    probe = getattr(proposer, "probe", None)
    if probe is None:
        return None
    try:
        used: Usage | None = await probe()
    except BaseException:
        await closed(proposer)
        raise
    return used


async def closed(proposer: Proposer) -> None:
    """Close a proposer that can be closed."""
    if (close := getattr(proposer, "close", None)) is not None:
        await close()


class FactoryProposer(ProposerSettings):
    """A function or class that returns a proposer, or a function that proposes."""

    arguments: dict[str, Any] = Field(default_factory=dict)
    seconds: Amount = 3600.0
    best_of_n: bool = False

    def build(self, context: Context) -> Proposer:
        folder = context.base.resolve()
        found = registry.find("proposers", self.kind, folder=folder)
        proposes = inspect.isroutine(found) and (takes(found, 1) or takes(found, 2))
        if proposes and not takes(found, 0) and not self.arguments:
            return CallableProposer(found)
        try:
            made: Proposer = registry.make(
                "proposers",
                self.kind,
                arguments=self.arguments,
                members=("propose",),
                folder=folder,
            )
        except ConfigError as error:
            if not isinstance(error.__cause__, TypeError):
                raise
            raise ConfigError(
                f"{str(error).rstrip('.')}. It is called with `arguments` and returns the "
                "proposer; a function of (view) or (view, count) takes no `arguments`."
            ) from error
        return awaitable(made)


class FunctionProposerSettings(ProposerSettings):
    """A function of a Python file."""

    file: Text
    function: Text = "propose"
    seconds: Amount = 3600.0
    best_of_n: bool = False

    def needs(self) -> Iterator[Needed]:
        yield ("file", self.file, "file")

    def build(self, context: Context) -> Proposer:
        return FunctionProposer.from_file(context.base / self.file, self.function)


class ScriptedSettings(ProposerSettings):
    """Folders, proposed in their order; a list of folders is one round."""

    free: ClassVar[bool] = True
    reads_traces: ClassVar[bool] = False
    folders: Annotated[tuple[Text | Texts, ...], Strict(False), Field(min_length=1)]

    def needs(self) -> Iterator[Needed]:
        for item in self.folders:
            for name in (item,) if isinstance(item, str) else item:
                yield ("folders", name, "harness")

    def check(self, config: Any) -> None:
        rounds, candidates = config.search.rounds, config.search.candidates
        flat = all(isinstance(item, str) for item in self.folders)
        lasts = -(-len(self.folders) // candidates) if flat else len(self.folders)
        if lasts < rounds:
            raise InputError(
                f"'proposer.folders' has {len(self.folders)} entries, enough for {lasts} rounds "
                f"of {candidates}, but 'search.rounds' is {rounds}; add folders, or lower "
                "search.rounds."
            )

    def build(self, context: Context) -> Proposer:
        known: Mapping[str, Path] = context.config.benchmark.harnesses()

        def folder(name: str) -> Path:
            return known.get(name, context.base / name)

        return Scripted(
            [
                folder(item) if isinstance(item, str) else [folder(name) for name in item]
                for item in self.folders
            ]  # type: ignore[arg-type]
        )
