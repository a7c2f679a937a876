"""Candidates from plain calls to a language model."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, NamedTuple, get_args

from coevolve.core.outcomes import Usage
from coevolve.errors import CandidateError, ConfigError, StopRun
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import (
    ContextTooLong,
    ModelError,
    ModelKeyError,
    ModelNotFound,
    NotRecorded,
    RequestRefused,
)
from coevolve.proposers.base import Broken, Proposal, Proposed, View
from coevolve.proposers.llm.edits import EditError, apply_edits
from coevolve.proposers.llm.prompt_context import (
    FOR_REPAIR,
    SECTIONS,
    Section,
    pack,
)
from coevolve.proposers.llm.prompt_text import BYTES, line, tokens
from coevolve.proposers.llm.prompts import (
    Conversation,
    OutOfTime,
    Reply,
    Turn,
    asking,
    correcting,
    repairing,
    shown_back,
    system,
)
from coevolve.proposers.llm.reply_drafts import Draft, Reading, first_sentence, read_reply
from coevolve.search.acceptance import clean
from coevolve.search.candidate import Candidate, Files


class Fault(ValueError):  # noqa: N818
    """Why a draft is not a candidate; the message is sent back to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files that candidates start with.

    Args:
        view: The run so far.
        base: The files of a candidate to repair, which replace those of any parent.
    """

    view: View
    base: Files | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates of the run."""
        return tuple(standing.candidate.name for standing in self.view.standings)

    @property
    def main(self) -> str:
        """The path of the main file of a harness."""
        paths: Iterable[str] = () if self.base is None else self.base
        if self.base is None and self.view.parent in self.names:
            paths = self.view.standing(self.view.parent).candidate.files
        programs = [path for path in paths if path.endswith(".py")]
        return programs[0] if len(programs) == 1 else "harness.py"

    def known(self, name: str) -> str | None:
        """The candidate that a name refers to."""
        names = self.names
        if name in names:
            return name
        alike = [known for known in names if known.lower() == clean(name).lower()]
        return alike[0] if len(alike) == 1 else None


@dataclass(slots=True, kw_only=True)
class Builder:
    """Builds proposals from drafts, and refuses duplicates.

    Args:
        sources: The files that drafts start with.
        addresses: Candidates by the address of their files.
    """

    sources: Sources
    addresses: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for standing in self.sources.view.standings:
            self.addresses.setdefault(standing.candidate.address, standing.candidate.name)
        if self.sources.base is not None:
            before = Candidate.of(self.sources.base, name="before").address
            self.addresses.setdefault(before, "the candidate before the repair")

    def build(self, draft: Draft, number: int) -> Proposal:
        """The proposal that a draft describes.

        Raises:
            Fault: The draft is not a candidate, or a duplicate.
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
            raise Fault(f"its files are identical to those of {twin!r}")
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
        """The parents of a draft; an edit without a parent applies to the best candidate."""
        given = draft.parents
        if given is None:
            default = self.sources.view.parent
            return (default,) if draft.edits and default in self.sources.names else ()
        known = [self.sources.known(name) for name in given]
        unknown = [name for name, found in zip(given, known, strict=True) if found is None]
        if unknown and draft.edits and self.sources.base is None:
            raise Fault(f"it edits the files of {unknown[0]!r:.80}, which is not a candidate")
        return tuple(dict.fromkeys(name for name in known if name is not None))

    def _files(self, draft: Draft, name: str, parents: tuple[str, ...]) -> dict[str, bytes]:
        """The files of the parent, with those of the draft."""
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
                has = ", ".join(sorted(files)[:10])
                but = f"its parent has {has}" if files else "it names no parent"
                raise Fault(f"it edits the file {target!r:.80}, which does not exist; {but}")
            source = files.get(target, b"").decode(errors="replace")
            try:
                files[target] = apply_edits(source.replace("\r\n", "\n"), edits).encode(
                    errors="replace"
                )
            except EditError as error:
                raise Fault(f"{target}: {error}") from error
        return files


type Request = Callable[[int], str]
"""Writes the end of a prompt, within a number of bytes."""

_NOTE = 500
_PROBE_SECONDS = 120.0


class _Taken(NamedTuple):
    """The candidates of one reply, and the faults of the others."""

    made: list[Proposal]
    faults: list[str]
    reading: Reading


@dataclass(slots=True, kw_only=True)
class Writing:
    """Requests candidates, and keeps the usable ones of each reply.

    Args:
        conversation: The calls to the model.
        builder: Builds candidates from drafts.
        sections: The sections of the prompt about the run.
        tokens: The longest prompt.
        made: The candidates so far.
        notes: The problems so far.
    """

    conversation: Conversation
    builder: Builder
    sections: tuple[Section, ...]
    tokens: int
    made: list[Proposal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    async def write(self, count: int, request: Request) -> bool:
        """Request `count` candidates; returns whether further requests make sense.

        Raises:
            ConfigError: The model accepts less than half of the tokens.
            StopRun: The model is unknown, or its key is refused.
            ModelError: The model did not answer, and nothing was paid for yet.
        """
        try:
            await self._written(count, request)
        except OutOfTime:
            self._note("the time limit of the proposal was reached before the model answered")
        except RequestRefused as error:
            self._note(f"the service refused to answer: {error}")
        except (ModelKeyError, ModelNotFound) as error:
            raise StopRun(str(error)) from error
        except ModelError as error:
            if not self.made and not self.conversation.paid:
                raise
            self._note(f"the model stopped answering: {error}")
        else:
            return True
        return False

    def proposed(self, count: int) -> Proposed:
        """The result of all calls."""
        if 0 < len(self.made) < count:
            self._note(f"the model wrote {len(self.made)} of {count} candidates")
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
            {"role": "user", "content": correcting(taken.faults, reply.cut)},
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
                self._note(f"in the first reply, {fault}")
            self._give_up(last, again)

    async def _first(self, request: Request) -> tuple[list[Turn], Reply]:
        """The reply to the prompt, or to one half as long if the model cannot read it."""
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
                f"a prompt of {self.tokens:,} tokens is too long for the proposer's model: "
                f"{error} Lower context_tokens in [proposer], or choose a model with a larger "
                "context."
            ) from error
        self._note(
            "a prompt of context_tokens was too long for the model; set context_tokens to "
            f"{self.tokens:,} to save a call"
        )
        return turns, reply

    def _turns(self, request: Request) -> list[Turn]:
        """The prompt: the system text, the context of the run, and the request."""
        view = self.builder.sources.view
        instructions = system(view.disclosure)
        room = max(0, self.tokens - tokens(instructions))
        task = request(BYTES * room)
        context = pack(view, max(0, room - tokens(task) - 1), self.sections)
        text = f"{context}\n\n{task}".lstrip("\n")
        plain = text.encode(errors="replace").decode()  # half a character cannot be sent
        return [{"role": "system", "content": instructions}, {"role": "user", "content": plain}]

    def _take(self, reply: Reply, count: int) -> _Taken:
        """Keep the candidates of a reply; those beyond the requested number are noted."""
        reading = read_reply(reply.text, cut=reply.cut, main=self.builder.sources.main)
        made: list[Proposal] = []
        faults: list[str] = []
        for number, draft in enumerate(reading.drafts, len(self.made) + 1):
            if len(made) == count:
                break  # a candidate that is not taken may be written again
            try:
                made.append(self.builder.build(draft, number))
            except Fault as fault:
                faults.append(line(f"{draft.name or 'a candidate'}: {fault}", _NOTE))
        if len(reading.drafts) > count:
            self._note(f"the model wrote {len(reading.drafts)} candidates instead of {count}")
        self.notes += reading.notes
        self.made += made
        return _Taken(made, faults[: count - len(made)], reading)

    def _give_up(self, taken: _Taken, reply: Reply) -> None:
        """Note the problems of a reply that is not sent back."""
        for fault in taken.faults:
            self._note(fault)
        if not taken.reading.drafts:
            text = first_sentence(taken.reading.words)
            self._note(f"the reply has no candidate: {text!r}" if text else "the reply is empty")
        if reply.cut:
            self._note("the reply was cut off; raise max_tokens in [proposer.model]")

    def _note(self, text: str) -> None:
        self.notes.append(f"{line(text, _NOTE).rstrip('.')}.")


Calls = Literal["one", "each"]

LEAST_TOKENS = 6_000
"""The least `context_tokens`; a prompt has at least half as many."""


class LLMProposer:
    """Requests candidates from a model, with the failures of the run, and reads its replies.

    One call writes all candidates of a round, or one call writes each of them and gets the
    hypotheses of those before. A reply that cannot be used completely is sent back once, with the
    faults. Mistakes of the model are notes, never errors.

    Args:
        gateway: The model that writes candidates; not the one that harnesses use.
        context_tokens: The longest prompt, by an estimate that is rather too high; at most three
            quarters of the model's window.
        calls: "one" for all candidates of a round together, "each" for one call per candidate.

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
        """Up to `count` candidates; notes say why there are fewer.

        Raises:
            ConfigError: The model accepts less than half of `context_tokens`.
            StopRun: The model is unknown, or its key is refused.
            ModelError: The model did not answer, and nothing was paid for yet.
        """
        writing = await self._started(view, Sources(view=view), SECTIONS)
        for number in [count] if self._calls == "one" else [1] * count:
            request = partial(asking, view.round, number, tuple(writing.made))
            if not await writing.write(number, request):
                break
        return writing.proposed(count)

    async def repair(self, view: View, broken: Broken) -> Proposed:
        """The repaired candidate, with the same name and hypothesis, or nothing.

        Raises:
            ConfigError: The model accepts less than half of `context_tokens`.
            StopRun: The model is unknown, or its key is refused.
            ModelError: The model did not answer, and nothing was paid for yet.
        """
        base = Sources(view=view, base=broken.proposal.files)
        writing = await self._started(view, base, FOR_REPAIR)
        await writing.write(1, partial(repairing, broken))
        done = writing.proposed(1)
        repaired = tuple(replace(broken.proposal, files=new.files) for new in done.proposals)
        return replace(done, proposals=repaired)

    async def probe(self) -> Usage:
        """Send one short request, and return its cost; a wrong key or model shows at once.

        Raises:
            ConfigError: The model did not answer.
        """
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                turns = [{"role": "user", "content": "Say yes."}]
                answer = await self._gateway.ask(messages=turns, max_tokens=16)
        except NotRecorded:
            return Usage()  # the answers are a recording, which needs no key
        except (ModelError, TimeoutError) as error:
            why = str(error) or f"no answer within {_PROBE_SECONDS:g} s"
            raise ConfigError(
                f"[proposer]: the model does not answer, and nothing was evaluated yet: {why}"
            ) from error
        used = answer["usage"]
        return Usage(
            tokens_in=used["tokens_in"], tokens_out=used["tokens_out"], dollars=used["dollars"]
        )

    async def close(self) -> None:
        """Close the gateway."""
        await self._gateway.close()

    async def _started(
        self, view: View, sources: Sources, sections: tuple[Section, ...]
    ) -> Writing:
        conversation = Conversation(self._gateway, view)
        # In a thread: the table with the window of a hosted model takes seconds to load.
        window = (await asyncio.to_thread(self._gateway.facts))["window"]
        most = self._tokens if window is None else min(self._tokens, window * 3 // 4)
        if most < LEAST_TOKENS // 2:
            raise ConfigError(
                f"the proposer's model has a context of {window:,} tokens, but a proposal needs "
                f"{LEAST_TOKENS:,} or more. Choose a model with a larger context."
            )
        return Writing(
            conversation=conversation,
            builder=Builder(sources=sources),
            sections=sections,
            tokens=most,
        )
