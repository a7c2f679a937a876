"""One proposal under way: what was asked, what came of it, and what was sent back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from coevolve.errors import ConfigError, StopRun
from coevolve.models.errors import (
    ContextTooLong,
    ModelError,
    ModelKeyError,
    ModelNotFound,
    RequestRefused,
)
from coevolve.proposers.base import Proposal, Proposed
from coevolve.proposers.llm.building import Builder, Fault
from coevolve.proposers.llm.clipping import BYTES, line, tokens
from coevolve.proposers.llm.conversation import Conversation, OutOfTime, Reply, Turn
from coevolve.proposers.llm.packing import Section, pack
from coevolve.proposers.llm.parsing import Reading, first_sentence, read_reply
from coevolve.proposers.llm.prompts import SYSTEM, sending_back, shown_back

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
