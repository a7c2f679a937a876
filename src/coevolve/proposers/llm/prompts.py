"""What the model is told, and the conversation with it within one proposal."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from coevolve.core.outcomes import Usage
from coevolve.models.gateway import Gateway
from coevolve.models.model_errors import ModelError
from coevolve.models.request_payload import MOST_SAMPLES
from coevolve.proposers.base import Broken, Proposal, View
from coevolve.proposers.llm.prompt_context import clip, line, listing, size

FORMAT = """\
# How to answer

First, in at most ten lines, the failures you looked at and the cause they share. Then each \
candidate like this:

## Candidate 1

```json
{"name": "short-telling-name", "parent": "name-of-a-candidate", "kind": "exploit", \
"hypothesis": "Because ..., doing ... should solve tasks where ...", \
"components": ["what it is made of", "in a few words each"]}
```

````python path=harness.py
(the whole file)
````

- A candidate has all files of its parent, with yours in their place. `"parent": null` starts \
with no files. `kind` is "exploit" if it refines what works, "explore" if it tries another way.
- A file is whole, from its first line to its last, in a block of its own with `path=` behind the \
opening fence. Fences have four backticks, so that three may stand in the file.
- For a small change to a long file, write edits of the parent's file instead. Each SEARCH part \
is copied to the letter, and long enough to be found only once:

````edit path=harness.py
<<<<<<< SEARCH
    return model(prompt)
=======
    answer = model(prompt)
    return answer if answer in known else closest(answer, known)
>>>>>>> REPLACE
````
"""

SYSTEM = f"""\
You write the next candidates of a search for a better harness. A harness is the code around a \
language model that stays as it is; the briefing says what it has to do here, and what it may \
use. Each candidate is checked, then scored on some tasks of a pool; its mean score on the whole \
pool is estimated from them. In the end the best one is scored on tasks that nobody has seen.

# How to find a better one

1. Read the failures before the scores. Where the best harness fails and another one succeeds, \
find the step at which they part: what the model was shown, what it was asked, how its answer was \
read. Where nobody succeeds, find what the model would have needed. That model is not you, and \
may be far weaker: judge it by what it says in the traces.
2. Choose a cause that many failures share, and say what would remove it. A good hypothesis names \
a cause, a change and the tasks it should turn, so that the scores can refute it.
3. Change a mechanism: what is kept, how it is selected, ordered, shown, asked, checked or \
combined. Another number, or the same request in other words, is seldom worth a candidate.
4. Keep what works. Tasks that are solved now must stay solved; parts that have proved good in \
several candidates can be joined.
5. Scores are estimates. Where intervals overlap, do not explain the difference; and do not write \
what has been tried already, or has been refused.

# Rules

- Nothing may depend on single tasks: no names of tasks, no questions or answers copied from the \
traces, no tables of them. Candidates are searched for it, and unseen tasks would not profit.
- Use only what the briefing offers, by the interface it states. There is no network.
- Code is complete and runs as it is: every import is there, no part is left as an exercise or \
"unchanged". Any input must give an answer, empty, long or strange as it may be. The same input \
gives the same answer.
- Write as for a reader: one file where one will do, and a docstring that says what is new.

{FORMAT}"""

_KINDS = {
    1: "Refine the best one if its last changes paid off; try another way if they did not.",
    2: "One refines the best one, the other tries a way that no candidate has tried.",
}
_MORE = (
    "Each tests a hypothesis of its own. At least one refines the best one, and at least one "
    "tries a way that no candidate has tried."
)
_SAID = 8_000
_ERROR = 6_000


def asking(round: int, count: int, made: Sequence[Proposal], most: int) -> str:
    """The request at the end of the prompt, after all the context, in so many bytes at most.

    >>> asking(3, 2, (), 1_000).splitlines()[2][:51]
    'Write 2 candidates for round 3, in the format above'
    """
    what = "1 candidate" if count == 1 else f"{count} candidates"
    text = f"# Your task\n\nWrite {what} for round {round}, in the format above."
    if made:
        each = min(300, most // (4 * len(made)))
        told = "\n".join(f"- {line(f'{p.name}: {p.hypothesis}', each)}" for p in made)
        text += f"\n\nThese are in this round already; test another hypothesis:\n\n{told}\n"
    if count == 1 and made and all(p.kind == "exploit" for p in made):
        return f"{text} This one tries a way that no candidate has tried."
    return f"{text} {_KINDS.get(count, _MORE)}"


def mending(broken: Broken, most: int) -> str:
    """The request to mend a candidate that failed its check, in so many bytes at most."""
    proposal = broken.proposal
    why = f" ({line(proposal.hypothesis, 300)})" if proposal.hypothesis else ""
    text = (
        f"# Your task\n\nThe candidate {proposal.name[:80]!r} failed its check:\n\n"
        f"{clip(broken.error.strip(), min(_ERROR, most // 4))}\n\n"
        "Find the cause, also where it is not in the line that is named, and mend it. Change "
        f"nothing else, and keep what the candidate is meant to test{why}. Answer with this one "
        "candidate in the format above; edits are edits of these files, and files you do not name "
        "stay as they are.\n\n"
    )
    left = max(0, most * 3 // 4 - size(text))
    return f"{text}{clip(listing(proposal.files), left)}"


def sending_back(faults: Sequence[str], cut: bool) -> str:
    """What a model is told whose reply could not be used, or not all of it.

    >>> print(sending_back(["few: edit 1 of 1 finds its SEARCH text nowhere"], cut=False)[:80])
    Not all of this could be used:
    <BLANKLINE>
    - few: edit 1 of 1 finds its SEARCH text nowhere
    """
    if faults:
        listed = "\n".join(f"- {fault}" for fault in faults)
        text = f"Not all of this could be used:\n\n{listed}\n\nWrite these candidates once more, "
        text += "each complete, in the format above, and nothing else."
    else:
        text = (
            "No candidate was found in this: there is no fenced block with a file in it. Write "
            "the candidates in the format above, and nothing else."
        )
    if cut:
        return f"{text} Your reply was cut off for its length: be brief, and prefer edits."
    return f"{text} If an edit did not fit, write the whole file." if faults else text


def shown_back(reply: str) -> str:
    """A model's own reply, as it is shown to it again."""
    return clip(reply.strip(), 3 * _SAID) or "(no text)"


type Turn = dict[str, str]


class OutOfTime(Exception):  # noqa: N818
    """The proposal has taken as long as it may."""


class Reply(NamedTuple):
    """What the model wrote, and whether it was cut off."""

    text: str
    cut: bool


class Conversation:
    """Asks for one proposal; what it cost and all that was said stays with it.

    Every round asks for another sample, and every prompt of a round, so that those which see the
    same get answers of their own, and a round that is proposed again gets the same ones.

    Args:
        gateway: Who is asked.
        view: The view of the round, for its seed and how long it may take.
    """

    def __init__(self, gateway: Gateway, view: View) -> None:
        self.usage = Usage()
        self._gateway = gateway
        self._sample = view.seed
        self._seconds = view.seconds
        self._began = asyncio.get_running_loop().time()
        self._said: list[str] = []
        self._written = 0

    @property
    def paid(self) -> bool:
        """Whether anything was used that an error would lose."""
        return any((self.usage.tokens_in, self.usage.tokens_out, self.usage.dollars))

    @property
    def transcript(self) -> str:
        """All that was said, in order."""
        return "\n\n".join(self._said)

    async def ask(self, turns: list[Turn]) -> Reply:
        """The next reply.

        Raises:
            OutOfTime: It did not come in time.
            ModelError: It did not come at all; what it cost is counted.
        """
        self._note(turns)
        loop = asyncio.get_running_loop()
        began = loop.time()
        left = self._seconds - (began - self._began)
        limit = asyncio.timeout(left if math.isfinite(left) else None)
        try:
            async with limit:
                sample = (self._sample + self._written - 1) % MOST_SAMPLES
                answer = await self._gateway.ask(messages=turns, sample=sample)
        except TimeoutError:
            if not limit.expired():
                raise
            self._say("no reply", "The time for this proposal was over.")
            raise OutOfTime from None
        except ModelError as error:
            self._count(error.usage or {})
            self._say("no reply", f"{type(error).__name__}: {error}")
            raise
        finally:
            self.usage += Usage(seconds=max(0.0, loop.time() - began))
        return self._heard(answer)

    def _heard(self, answer: dict[str, Any]) -> Reply:
        usage, cut = answer["usage"], answer["finish"] == "length"
        self._count(usage)
        cost = f"{usage['tokens_in']:,} tokens read, {usage['tokens_out']:,} written"
        how = ["cached" if answer["cached"] else cost, *(["cut off"] if cut else [])]
        self._say(f"reply ({', '.join(how)})", answer["text"])
        return Reply(answer["text"], cut)

    def _note(self, turns: list[Turn]) -> None:
        """Write down what is new; a conversation that goes on is not written twice."""
        if len(turns) <= 2:
            self._written += 1
        new = turns if len(turns) <= 2 else turns[-1:]
        for turn in new:
            self._say(f"{turn['role']}", turn["content"])

    def _say(self, who: str, text: str) -> None:
        self._said.append(f"===== {self._written}. {who} =====\n\n{text}")

    def _count(self, usage: Any) -> None:
        self.usage += Usage(
            tokens_in=int(usage.get("tokens_in", 0)),
            tokens_out=int(usage.get("tokens_out", 0)),
            dollars=float(usage.get("dollars", 0.0)),
        )
