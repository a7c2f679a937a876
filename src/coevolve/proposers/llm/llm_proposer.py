"""Candidates from plain calls to a language model."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, NamedTuple, get_args

from coevolve.errors import CandidateError, ConfigError, StopRun
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import (
    ContextTooLong,
    ModelError,
    ModelKeyError,
    ModelNotFound,
    RequestRefused,
)
from coevolve.proposers.base import Broken, Proposal, Proposed, View
from coevolve.proposers.llm.edits import EditError, apply_edits
from coevolve.proposers.llm.prompt_context import (
    BYTES,
    FOR_REPAIR,
    SECTIONS,
    Section,
    line,
    pack,
    tokens,
)
from coevolve.proposers.llm.prompts import (
    SYSTEM,
    Conversation,
    OutOfTime,
    Reply,
    Turn,
    asking,
    mending,
    sending_back,
    shown_back,
)
from coevolve.proposers.llm.reply_drafts import Draft, Reading, first_sentence, read_reply
from coevolve.search.acceptance import clean
from coevolve.search.candidate import Candidate, Files


class Fault(ValueError):  # noqa: N818
    """Why a draft is no candidate; the message goes back to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files that candidates are built on.

    Args:
        view: The run so far.
        base: Files that replace those of any parent: of a candidate that is mended.
    """

    view: View
    base: Files | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates of the run."""
        return tuple(standing.candidate.name for standing in self.view.standings)

    @property
    def main(self) -> str:
        """The path of the file that a harness mostly is."""
        paths: Iterable[str] = () if self.base is None else self.base
        if self.base is None and self.view.parent in self.names:
            paths = self.view.standing(self.view.parent).candidate.files
        programs = [path for path in paths if path.endswith(".py")]
        return programs[0] if len(programs) == 1 else "harness.py"

    def known(self, name: str) -> str | None:
        """The candidate that is meant by a name."""
        names = self.names
        if name in names:
            return name
        alike = [known for known in names if known.lower() == clean(name).lower()]
        return alike[0] if len(alike) == 1 else None


@dataclass(slots=True, kw_only=True)
class Builder:
    """Makes proposals of drafts, and knows what is there already.

    Args:
        sources: What drafts build on.
        addresses: Candidates by the address of their files.
    """

    sources: Sources
    addresses: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for standing in self.sources.view.standings:
            self.addresses.setdefault(standing.candidate.address, standing.candidate.name)
        if self.sources.base is not None:
            as_it_was = Candidate.of(self.sources.base, name="before").address
            self.addresses.setdefault(as_it_was, "the candidate before")

    def build(self, draft: Draft, number: int) -> Proposal:
        """The proposal that a draft describes.

        Raises:
            Fault: It describes none, or one that is there already.
        """
        name = draft.name or f"round-{self.sources.view.round}-{number}"
        if draft.cut:
            what = ", ".join(filter(None, draft.cut)) or "it"
            raise Fault(f"the reply was cut off before {what} was complete")
        parents = self._parents(draft)
        files = self._files(draft, name, parents)
        try:
            address = Candidate.of(files, name=name).address
        except CandidateError as error:
            raise Fault(str(error).rstrip(".")) from error
        if (twin := self.addresses.get(address)) is not None:
            raise Fault(f"its files are those of {twin!r}, to the letter")
        self.addresses[address] = name
        return Proposal(
            files=files,
            name=name,
            parents=parents,
            hypothesis=draft.hypothesis,
            kind=draft.kind,
            components=draft.components,
        )

    def _parents(self, draft: Draft) -> tuple[str, ...]:
        """Whom a draft builds on; an edit without a parent is one of the best candidate."""
        given = draft.parents
        if given is None:
            default = self.sources.view.parent
            return (default,) if draft.edits and default in self.sources.names else ()
        known = [self.sources.known(name) for name in given]
        unknown = [name for name, found in zip(given, known, strict=True) if found is None]
        if unknown and draft.edits and self.sources.base is None:
            raise Fault(f"there is no candidate {unknown[0]!r:.80} whose files could be edited")
        return tuple(dict.fromkeys(name for name in known if name is not None))

    def _files(self, draft: Draft, name: str, parents: tuple[str, ...]) -> dict[str, bytes]:
        """The files of the parent, with those of the draft in their place."""
        files: dict[str, bytes] = {}
        if self.sources.base is not None:
            files = dict(self.sources.base)
        elif parents:
            files = self.sources.view.files(parents[0])
        own = f"{clean(name)}/"
        for path, content in draft.files.items():
            files[path.removeprefix(own)] = content.encode(errors="replace")
        for path, edits in draft.edits.items():
            target = path.removeprefix(own) or self.sources.main
            if not edits:
                raise Fault(f"the edits of {target} have no complete SEARCH and REPLACE part")
            if target not in files and any(any(map(str.strip, e.search)) for e in edits):
                raise Fault(f"there is no file {target!r:.80} to edit; {_there(files)}")
            source = files.get(target, b"").decode(errors="replace")
            try:
                files[target] = apply_edits(source.replace("\r\n", "\n"), edits).encode(
                    errors="replace"
                )
            except EditError as error:
                raise Fault(f"{target}: {error}") from error
        return files


def _there(files: Mapping[str, bytes]) -> str:
    if not files:
        return "it names no parent"
    return f"its parent has {', '.join(sorted(files)[:10])}"


type Request = Callable[[int], str]
"""From a number of bytes to the end of a prompt, which is no longer."""

_NOTE = 500


class _Taken(NamedTuple):
    """What one reply gave, and what may be mended of it."""

    made: list[Proposal]
    faults: list[str]
    reading: Reading


@dataclass(slots=True, kw_only=True)
class Writing:
    """Has candidates written, and keeps what is good of each reply.

    Args:
        conversation: Who is asked.
        builder: Makes candidates of drafts.
        sections: What the prompt tells of the run.
        tokens: How long a prompt may get.
        made: The candidates so far.
        notes: What went wrong so far.
    """

    conversation: Conversation
    builder: Builder
    sections: tuple[Section, ...]
    tokens: int
    made: list[Proposal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    async def write(self, count: int, request: Request) -> bool:
        """Have so many candidates written; whether asking for more makes sense.

        Raises:
            ConfigError: The model reads less than half of the tokens.
            StopRun: There is no such model, or its key is refused.
            ModelError: The model did not answer, and nothing is there yet that was paid for.
        """
        try:
            await self._written(count, request)
        except OutOfTime:
            self._note("the time for the proposal was over before the model had answered")
        except RequestRefused as error:
            self._note(f"the service would not answer: {error}")
        except (ModelKeyError, ModelNotFound) as error:
            raise StopRun(str(error)) from error
        except ModelError as error:
            if not self.made and not self.conversation.paid:
                raise
            self._note(f"the model did not answer any more: {error}")
        else:
            return True
        return False

    def proposed(self, count: int) -> Proposed:
        """What came of it all."""
        if 0 < len(self.made) < count:
            self._note(f"{len(self.made)} of {count} candidates came of it")
        return Proposed(
            proposals=tuple(self.made[:count]),
            usage=self.conversation.usage,
            transcript=self.conversation.transcript,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    async def _written(self, count: int, request: Request) -> None:
        turns, reply = await self._first(request)
        taken = self._take(reply, count)
        if taken.reading.refusal:
            self._note(f"the model declined: {taken.reading.refusal}")
            return
        if taken.made and not taken.faults:
            return
        turns = [
            *turns,
            {"role": "assistant", "content": shown_back(reply.text)},
            {"role": "user", "content": sending_back(taken.faults, reply.cut)},
        ]
        try:
            again = await self.conversation.ask(turns)
        except ContextTooLong:
            self._give_up(taken, reply)
            return
        except (OutOfTime, ModelError):
            self._give_up(taken, reply)
            raise
        last = self._take(again, count - len(taken.made))
        if last.faults or not last.made:
            for fault in (fault for fault in taken.faults if fault not in last.faults):
                self._note(f"at first, {fault}")
            self._give_up(last, again)

    async def _first(self, request: Request) -> tuple[list[Turn], Reply]:
        """The reply to the whole prompt, or to one half as long if that is too long."""
        turns = self._turns(request)
        try:
            return turns, await self.conversation.ask(turns)
        except ContextTooLong:
            self.tokens //= 2
        turns = self._turns(request)
        try:
            reply = await self.conversation.ask(turns)
        except ContextTooLong as error:
            raise ConfigError(
                f"the proposer's model does not even read a prompt of {self.tokens:,} tokens: "
                f"{error} Lower context_tokens in [proposer], or take a model that reads more."
            ) from error
        self._note(
            f"the model read no more than half of context_tokens; at {self.tokens:,} "
            "no call would be lost"
        )
        return turns, reply

    def _turns(self, request: Request) -> list[Turn]:
        """The prompt: what is told always, what is known of the run, and what is wanted."""
        room = max(0, self.tokens - tokens(SYSTEM))
        wanted = request(BYTES * room)
        context = pack(self.builder.sources.view, max(0, room - tokens(wanted) - 1), self.sections)
        text = f"{context}\n\n{wanted}".lstrip("\n")
        plain = text.encode(errors="replace").decode()  # half a character cannot be sent
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": plain}]

    def _take(self, reply: Reply, count: int) -> _Taken:
        """Keep the candidates of a reply; those beyond what was asked for are noted."""
        reading = read_reply(reply.text, cut=reply.cut, main=self.builder.sources.main)
        made: list[Proposal] = []
        faults: list[str] = []
        for number, draft in enumerate(reading.drafts, len(self.made) + 1):
            if len(made) == count:
                break  # what is not taken may be written again
            try:
                made.append(self.builder.build(draft, number))
            except Fault as fault:
                faults.append(line(f"{draft.name or 'a candidate'}: {fault}", _NOTE))
        if len(reading.drafts) > count:
            self._note(f"{len(reading.drafts)} candidates were written, {count} were asked for")
        self.notes += reading.notes
        self.made += made
        return _Taken(made, faults[: count - len(made)], reading)

    def _give_up(self, taken: _Taken, reply: Reply) -> None:
        """Note what a reply lacks that is not sent back any more."""
        for fault in taken.faults:
            self._note(fault)
        if not taken.reading.drafts:
            said = first_sentence(taken.reading.words)
            what = f"no candidate but {said!r}" if said else "nothing"
            self._note(f"the model wrote {what}")
        if reply.cut:
            self._note("replies are cut off at max_tokens in [proposer.model]; raise it")

    def _note(self, text: str) -> None:
        self.notes.append(f"{line(text, _NOTE).rstrip('.')}.")


Calls = Literal["one", "each"]

LEAST_TOKENS = 6_000
"""Of a prompt that says what it has to; half of it is the least that is tried."""


class LLMProposer:
    """Asks a model for candidates, shows it what failed, and reads files out of what it says.

    One call writes all candidates of a round, or one call each of them, told the hypotheses of
    those before. A reply that cannot be used, or not all of it, is sent back once with what is
    wrong. What a model does wrong is a note, and never an error.

    Args:
        gateway: The model that writes; not the one that harnesses ask.
        context_tokens: How long a prompt may get, by an estimate that is rather too high; never
            more than three quarters of the model's window.
        calls: "one" for all candidates of a round together, "each" for one after another.

    >>> LLMProposer(None, calls="two")
    Traceback (most recent call last):
    coevolve.errors.ConfigError: calls must be 'one' or 'each', got 'two'.
    """

    def __init__(
        self, gateway: Gateway, *, context_tokens: int = 48_000, calls: Calls = "one"
    ) -> None:
        if context_tokens < LEAST_TOKENS:
            raise ConfigError(
                f"context_tokens must be {LEAST_TOKENS:,} or more, got {context_tokens!r}."
            )
        if calls not in get_args(Calls):
            raise ConfigError(f"calls must be 'one' or 'each', got {calls!r}.")
        self._gateway = gateway
        self._tokens = context_tokens
        self._calls = calls

    async def propose(self, view: View, count: int) -> Proposed:
        """Up to `count` candidates; notes say what became of the others.

        Raises:
            ConfigError: The model reads less than half of `context_tokens`.
            StopRun: There is no such model, or its key is refused.
            ModelError: The model did not answer, and nothing was paid for yet.
        """
        writing = await self._begun(view, Sources(view=view), SECTIONS)
        for wanted in [count] if self._calls == "one" else [1] * count:
            request = partial(asking, view.round, wanted, tuple(writing.made))
            if not await writing.write(wanted, request):
                break
        return writing.proposed(count)

    async def repair(self, view: View, broken: Broken) -> Proposed:
        """The candidate without its fault, or nothing; what it is meant to test stays the same.

        Raises:
            ConfigError: The model reads less than half of `context_tokens`.
            StopRun: There is no such model, or its key is refused.
            ModelError: The model did not answer, and nothing was paid for yet.
        """
        base = Sources(view=view, base=broken.proposal.files)
        writing = await self._begun(view, base, FOR_REPAIR)
        await writing.write(1, partial(mending, broken))
        done = writing.proposed(1)
        mended = tuple(replace(broken.proposal, files=new.files) for new in done.proposals)
        return replace(done, proposals=mended)

    async def close(self) -> None:
        """Close the gateway."""
        await self._gateway.close()

    async def _begun(self, view: View, sources: Sources, told: tuple[Section, ...]) -> Writing:
        conversation = Conversation(self._gateway, view)
        # In a thread, since the window of a hosted model is in a table that takes seconds to load.
        window = (await asyncio.to_thread(self._gateway.facts))["window"]
        most = self._tokens if window is None else min(self._tokens, window * 3 // 4)
        if most < LEAST_TOKENS // 2:
            raise ConfigError(
                f"the proposer's model reads {window:,} tokens, prompt and answer together, and a "
                f"proposal takes {LEAST_TOKENS:,} or more; take a model that reads more."
            )
        return Writing(
            conversation=conversation,
            builder=Builder(sources=sources),
            sections=told,
            tokens=most,
        )
