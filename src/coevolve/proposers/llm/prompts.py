"""The prompts of the LLM proposer, and its conversation with the model."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from coevolve.core.disclosure import Disclosure
from coevolve.core.outcomes import Usage
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import ModelError
from coevolve.models.request_payload import MOST_SAMPLES
from coevolve.proposers.base import Broken, Proposal, View
from coevolve.proposers.llm.prompt_context import listing
from coevolve.proposers.llm.prompt_text import clip, line, size

FORMAT = """\
# Answer format

First write at most ten lines: the failures you studied and their common cause. Then write each \
candidate like this:

## Candidate 1

```json
{"name": "short-descriptive-name", "parent": "name-of-a-candidate", "kind": "exploit", \
"hypothesis": "Because ..., doing ... should solve tasks where ...", \
"components": ["its building blocks", "in a few words each"]}
```

````python path=harness.py
(the complete file)
````

- A candidate starts with all files of its parent; your files replace or add to them. With \
`"parent": null` it starts without files. `kind` is "exploit" if the candidate refines what \
works, and "explore" if it tries a different approach.
- Write each file completely, in a block of its own, with `path=` after the opening fence. Use \
fences of four backticks, because the file may contain three.
- For a small change to a long file, write edits of the parent's file instead. Copy each SEARCH \
part exactly from the file, with enough lines to match only once:

````edit path=harness.py
<<<<<<< SEARCH
    return model(prompt)
=======
    answer = model(prompt)
    return answer if answer in known else closest(answer, known)
>>>>>>> REPLACE
````
"""

_SYSTEM = """\
You write the next candidates in a search for a better harness. A harness is the code around a \
fixed language model. The briefing says what the harness must do and what it may use. Each \
candidate is checked and then scored on tasks of a pool. {draws} {scores} At the end, the best \
candidate is scored on unseen test tasks.

# How to find a better candidate

1. Study the failures before the scores. Where the best harness fails and another one succeeds, \
find the step at which they differ: what the model saw, what it was asked, or how its answer was \
read. Where every harness fails, find out what the model was missing. The model in the harness is \
not you, and may be much weaker. Judge it by its answers in the traces.
2. Choose a cause that many failures share, and a change that removes it. A good hypothesis names \
the cause, the change, and the tasks that should then be solved, so that the scores can refute it.
3. Change a mechanism: what is stored, and how it is selected, ordered, shown, asked, checked or \
combined. A different number or a reworded prompt is rarely worth a candidate.
4. Keep what works. Solved tasks must stay solved. You may combine parts that work in several \
candidates.
5. {noise}Do not repeat a candidate that was tried or refused.

# Rules

- Do not write code for single tasks: no task names, no questions or answers from the traces, and \
no tables of them. Candidates are scanned for these, and they do not help on unseen tasks.
- Use only what the briefing provides, through the interface it describes. There is no network.
- The code must be complete and run without changes: include every import, and do not abbreviate \
any part as "unchanged". Return an answer for every input, even if it is empty, long or unusual. \
The same input must give the same answer.
- Write readable code: one file if possible, with a docstring that says what is new.

{format}"""
_NOISE = "Scores are estimates. If two intervals overlap, do not explain the difference. "

_KINDS = {
    1: "Refine the best one if its last changes helped; otherwise try a different approach.",
    2: "One refines the best one. The other tries an approach that no candidate has tried.",
}
_MORE = (
    "Each tests its own hypothesis. At least one refines the best one, and at least one tries an "
    "approach that no candidate has tried."
)
_REPLY = 24_000
_ERROR = 6_000
"""Bytes shown of an earlier reply, and of an error."""


def system(told: Disclosure) -> str:
    """The system prompt, with what the protocol tells about draws and scores."""
    return _SYSTEM.format(
        draws=told.draws,
        scores=told.scores,
        noise=_NOISE if told.estimated else "",
        format=FORMAT,
    )


def asking(round: int, count: int, made: Sequence[Proposal], most: int) -> str:
    """The request at the end of the prompt, of at most `most` bytes.

    >>> asking(3, 2, (), 1_000).splitlines()[2][:51]
    'Write 2 candidates for round 3, in the format above'
    """
    what = "1 candidate" if count == 1 else f"{count} candidates"
    text = f"# Your task\n\nWrite {what} for round {round}, in the format above."
    if made:
        each = min(300, most // (4 * len(made)))
        listed = "\n".join(f"- {line(f'{p.name}: {p.hypothesis}', each)}" for p in made)
        text += f"\n\nThis round already has these; test a different hypothesis:\n\n{listed}\n"
    if count == 1 and made and all(p.kind == "exploit" for p in made):
        return f"{text} Try an approach that no candidate has tried."
    return f"{text} {_KINDS.get(count, _MORE)}"


def repairing(broken: Broken, most: int) -> str:
    """The request to repair a candidate that failed its check, of at most `most` bytes."""
    proposal = broken.proposal
    why = f" ({line(proposal.hypothesis, 300)})" if proposal.hypothesis else ""
    text = (
        f"# Your task\n\nThe candidate {proposal.name[:80]!r} failed its check:\n\n"
        f"{clip(broken.error.strip(), min(_ERROR, most // 4))}\n\n"
        "Find the cause, which may be elsewhere than in the line of the error, and fix it. Change "
        f"nothing else, and keep the hypothesis of the candidate{why}. Answer with this one "
        "candidate in the format above. Edits apply to the files below; files that you leave out "
        "stay unchanged.\n\n"
    )
    left = max(0, most * 3 // 4 - size(text))
    return f"{text}{clip(listing(proposal.files), left)}"


def correcting(faults: Sequence[str], cut: bool) -> str:
    """The message after a reply that could not be used, or not completely.

    >>> print(correcting(["few: edit 1 of 1 does not match: ..."], cut=False)[:80])
    Some of this reply could not be used:
    <BLANKLINE>
    - few: edit 1 of 1 does not match: ...
    """
    if faults:
        listed = "\n".join(f"- {fault}" for fault in faults)
        text = f"Some of this reply could not be used:\n\n{listed}\n\nWrite these candidates "
        text += "again, each complete, in the format above, and nothing else."
    else:
        text = (
            "This reply contains no candidate: it has no fenced block with a file. Write the "
            "candidates in the format above, and nothing else."
        )
    if cut:
        return f"{text} Your reply was too long and was cut off. Be brief, and prefer edits."
    return f"{text} If an edit did not match, write the complete file." if faults else text


def shown_back(reply: str) -> str:
    """A reply of the model, as it is sent back to the model."""
    return clip(reply.strip(), _REPLY) or "(no text)"


type Turn = dict[str, str]


class OutOfTime(Exception):  # noqa: N818
    """The time limit of the proposal is reached."""


class Reply(NamedTuple):
    """The text of the model, and whether it was cut off."""

    text: str
    cut: bool


class Conversation:
    """The calls for one proposal, with their usage and transcript.

    Every round, and every prompt of a round, requests another sample. So equal prompts get
    independent replies, and a round that is proposed again gets the same ones.

    Args:
        gateway: The model.
        view: The view of the round, for its seed and its time limit.
    """

    def __init__(self, gateway: Gateway, view: View) -> None:
        self.usage = Usage()
        self._gateway = gateway
        self._sample = view.seed
        self._seconds = view.seconds
        self._began = asyncio.get_running_loop().time()
        self._entries: list[str] = []
        self._prompts = 0

    @property
    def paid(self) -> bool:
        """Whether there is usage that an error would lose."""
        return any((self.usage.tokens_in, self.usage.tokens_out, self.usage.dollars))

    @property
    def transcript(self) -> str:
        """All messages and replies in order."""
        return "\n\n".join(self._entries)

    async def ask(self, turns: list[Turn]) -> Reply:
        """The next reply.

        Raises:
            OutOfTime: The time limit was reached first.
            ModelError: The model did not answer; the usage is counted.
        """
        self._note(turns)
        loop = asyncio.get_running_loop()
        began = loop.time()
        left = self._seconds - (began - self._began)
        limit = asyncio.timeout(left if math.isfinite(left) else None)
        try:
            async with limit:
                sample = (self._sample + self._prompts - 1) % MOST_SAMPLES
                answer = await self._gateway.ask(messages=turns, sample=sample)
        except TimeoutError:
            if not limit.expired():
                raise
            self._add("no reply", "The time limit of this proposal was reached.")
            raise OutOfTime from None
        except ModelError as error:
            self._count(error.usage or {})
            self._add("no reply", f"{type(error).__name__}: {error}")
            raise
        finally:
            self.usage += Usage(seconds=max(0.0, loop.time() - began))
        usage, cut = answer["usage"], answer["finish"] == "length"
        self._count(usage)
        cost = f"{usage['tokens_in']:,} tokens read, {usage['tokens_out']:,} written"
        how = ["cached" if answer["cached"] else cost, *(["cut off"] if cut else [])]
        self._add(f"reply ({', '.join(how)})", answer["text"])
        return Reply(answer["text"], cut)

    def _note(self, turns: list[Turn]) -> None:
        """Add the new messages to the transcript."""
        if len(turns) <= 2:
            self._prompts += 1
        for turn in turns if len(turns) <= 2 else turns[-1:]:
            self._add(turn["role"], turn["content"])

    def _add(self, title: str, text: str) -> None:
        self._entries.append(f"===== {self._prompts}. {title} =====\n\n{text}")

    def _count(self, usage: Any) -> None:
        self.usage += Usage(
            tokens_in=int(usage.get("tokens_in", 0)),
            tokens_out=int(usage.get("tokens_out", 0)),
            dollars=float(usage.get("dollars", 0.0)),
        )
