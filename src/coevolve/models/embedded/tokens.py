"""Texts as the tokens of the embedded model."""

from collections.abc import Sequence

from coevolve.models.embedded.choices import follows
from coevolve.models.embedded.process import ModelProcess
from coevolve.models.embedded.weights import WINDOW
from coevolve.models.errors import ContextTooLong, RequestRefused
from coevolve.models.request import ModelRequest

_BETWEEN = -1
"""No token: what stands between the tokens of two texts."""


class Tokens:
    """Asks the model's process for tokens."""

    def __init__(self, process: ModelProcess) -> None:
        self._process = process
        self._ends: tuple[int, ...] = ()

    async def text(self, request: ModelRequest) -> str:
        """The text that the model has to continue."""
        if request.prompt is not None and not request.system:
            return request.prompt
        messages = [message._asdict() for message in request.conversation()]
        answer = await self._process.post("/apply-template", {"messages": messages})
        return str(answer["prompt"])

    async def prompt(self, text: str) -> list[int]:
        """The tokens of a prompt, in which marks such as `<|im_end|>` count as what they mean."""
        (tokens,) = await self.many([text], marks=True)
        return tokens

    async def choices(self, text: str, choices: Sequence[str]) -> dict[str, list[int]]:
        """The tokens of every choice as it follows a prompt."""
        after = [follows(text, choice) for choice in choices]
        return dict(zip(choices, await self.many(after), strict=True))

    async def ends(self) -> tuple[int, ...]:
        """The tokens that end an answer: that of a new line first, then marks."""
        if not self._ends:
            found = await self.many(["\n", "<|im_end|>", "<|endoftext|>"], marks=True)
            self._ends = tuple(token for (token,) in found)
        return self._ends

    async def many(self, texts: Sequence[str], *, marks: bool = False) -> list[list[int]]:
        """The tokens of every text."""
        if not texts:
            return []
        content: list[str | int] = []
        for text in texts:
            content += [text, _BETWEEN]
        body = {"content": content, "add_special": False, "parse_special": marks}
        answer = await self._process.post("/tokenize", body)
        found: list[list[int]] = [[]]
        for token in answer["tokens"]:
            if token == _BETWEEN:
                found.append([])
            else:
                found[-1].append(token)
        return found[:-1]


def check_choices(tokens: int) -> None:
    """Refuse choices that take too long: a time-out would be nobody's fault."""
    if tokens > WINDOW:
        raise RequestRefused(
            f"the choices have {tokens:,} tokens in all, and the embedded model takes "
            f"{WINDOW:,}. Give fewer or shorter ones."
        )


def check_room(tokens: int, more: int) -> None:
    """Refuse a prompt that leaves no room for so many tokens more."""
    if tokens + more > WINDOW:
        raise ContextTooLong(
            f"the prompt has {tokens:,} tokens, and the embedded model reads {WINDOW:,}, its "
            "answer included. Make the prompt shorter."
        )
