"""`[proposer]`: who writes candidates."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Strict, model_validator

from coevolve.errors import InputError
from coevolve.runs.model_settings import ModelSettings
from coevolve.runs.settings import Amount, Count, Needed, Table, Text, Texts, harness_folders

AGENTS = ("claude-code", "codex", "gemini", "opencode", "mini-swe-agent")
Variables = tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...]


class ScriptedProposerSettings(Table):
    """Folders, proposed in their order; a list of folders is one round."""

    kind: Literal["scripted"]
    folders: Annotated[tuple[Text | Texts, ...], Strict(False), Field(min_length=1)]

    def needs(self) -> Iterator[Needed]:
        for item in self.folders:
            yield from harness_folders("folders", (item,) if isinstance(item, str) else item)

    def check_length(self, rounds: int, candidates: int) -> None:
        """Refuse a script that would leave a round without a proposal."""
        flat = all(isinstance(item, str) for item in self.folders)
        lasts = -(-len(self.folders) // candidates) if flat else len(self.folders)
        if lasts < rounds:
            raise InputError(
                f"'proposer.folders' has {len(self.folders)} entries, which last for {lasts} "
                f"rounds of {candidates}, but 'search.rounds' is {rounds}: name more folders, or "
                "search for fewer rounds."
            )


class FunctionProposerSettings(Table):
    """A function of a Python file."""

    kind: Literal["function"]
    file: Text
    function: Text = "propose"
    seconds: Amount = 3600.0
    best_of_n: bool = False

    def needs(self) -> Iterator[Needed]:
        yield ("file", self.file, "file")


class OfflineProposerSettings(Table):
    """Building blocks of text classification, recombined; needs no model."""

    kind: Literal["offline"]
    characters: Count = 4000
    best_of_n: bool = False


class ProposerModelSettings(ModelSettings):
    """The model of an LLM proposer: as `[model]`, with room for whole files in an answer."""

    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["default"] = "default"
    max_tokens: Count = 16_384

    @model_validator(mode="after")
    def _has_no_trials(self) -> Self:
        for key in ("trial_calls", "trial_tokens"):
            if getattr(self, key) is not None:
                raise InputError(f"{key} has no effect on a proposer, which has no trials.")
        return self


class LLMProposerSettings(Table):
    """A call of a language model, or one for each candidate."""

    kind: Literal["llm"]
    model: ProposerModelSettings
    context_tokens: Count = 48_000
    calls: Literal["one", "each"] = "one"
    seconds: Amount = 3600.0
    best_of_n: bool = False

    def needs(self) -> Iterator[Needed]:
        yield from ((f"model.{key}", path, kind) for key, path, kind in self.model.needs())


class CommandProposerSettings(Table):
    """A command-line agent that works in a folder.

    `keys` are names of environment variables that the agent gets, never keys themselves.
    """

    kind: Literal["command"]
    agent: Literal[AGENTS] | None = None  # type: ignore[valid-type]
    command: Annotated[tuple[Text, ...], Strict(False), Field(min_length=1)] | None = None
    program: Text | None = None
    model: Text | None = None
    effort: Text | None = None
    tools: Texts = ()
    arguments: Texts = ()
    dollars: Amount | None = None
    seconds: Amount = 2400.0
    keys: Annotated[Variables, Strict(False)] = ()
    home: Texts = ()
    readable: Texts = ()
    isolation: Literal["bwrap", "none"] = "bwrap"
    best_of_n: bool = False

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.agent is None) == (self.command is None):
            raise InputError(
                "give either agent, one of " + ", ".join(AGENTS) + ", or command, a list of words."
            )
        others = (
            ("home",) if self.agent else ("program", "effort", "tools", "arguments", "dollars")
        )
        for key in others:
            if getattr(self, key):
                given, other = ("agent", "command") if self.agent else ("command", "agent")
                raise InputError(f"{key} goes with {other}, and has no effect with {given}.")
        return self

    def needs(self) -> Iterator[Needed]:
        yield from (("readable", path, "either") for path in self.readable)


class SyntheticProposerSettings(Table):
    """The proposer of the synthetic world the benchmark is."""

    kind: Literal["synthetic"]


class OwnProposerSettings(Table):
    """A factory that returns a proposer, as `package.module:factory`."""

    kind: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    arguments: dict[str, Any] = Field(default_factory=dict)
    seconds: Amount = 3600.0
    best_of_n: bool = False


PROPOSERS: dict[str, type[Table]] = {
    "offline": OfflineProposerSettings,
    "llm": LLMProposerSettings,
    "command": CommandProposerSettings,
    "function": FunctionProposerSettings,
    "scripted": ScriptedProposerSettings,
    "synthetic": SyntheticProposerSettings,
    "package.module:factory": OwnProposerSettings,
}
