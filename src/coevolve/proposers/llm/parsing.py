"""From the text of a reply to drafts; whatever a model writes, it raises nothing."""

import re
from dataclasses import dataclass
from typing import Any

from coevolve.proposers.llm.blocks import Block, blocks
from coevolve.proposers.llm.drafts import Draft, from_json
from coevolve.proposers.llm.metadata import (
    as_json,
    heading,
    is_metadata,
    objects,
    said_in,
)
from coevolve.proposers.llm.paths import above, named

_THINKING = re.compile(r"\s*<(think|thinking|reasoning|thought)>", re.IGNORECASE)
_THOUGHT = re.compile(r"^[ \t]*</(?:think|thinking|reasoning|thought)>[ \t]*$", re.M | re.I)
_REFUSALS = re.compile(
    r"\b(?:I(?:'m| am) (?:sorry|unable|not able)"
    r"|I (?:can(?:'t|not| not)|won't|will not|must decline)"
    r"|(?:can(?:'t|not)|unable to) (?:help|assist|comply))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reply holds.

    Args:
        drafts: Candidates, of whose files at least something is there.
        notes: What was left out or guessed.
        words: The reply without what the model thought aloud.
    """

    drafts: tuple[Draft, ...]
    notes: tuple[str, ...]
    words: str

    @property
    def refusal(self) -> str:
        """The first sentence of a reply by which a model declines; empty if it does not."""
        if self.drafts or not _REFUSALS.search(self.words[:600]):
            return ""
        return first_sentence(self.words)


def read_reply(text: str, *, cut: bool = False, main: str = "harness.py") -> Reading:
    r"""The candidates in a reply.

    Args:
        text: What the model wrote.
        cut: Whether it was cut off at its longest.
        main: The path of a program that has none.

    >>> read_reply("Sure!\n```python\nanswer = 42\n```").drafts[0].files
    {'harness.py': 'answer = 42\n'}
    """
    words = _spoken(text.encode(errors="replace").decode().removeprefix("\ufeff"))
    words = words.replace("\r\n", "\n").replace("\r", "\n")
    drafts = list(from_json(as_json(words))) if words.lstrip()[:1] in ("{", "[") else []
    drafts = drafts or _fenced(words, cut)
    drafts = drafts or [draft for value in objects(words) for draft in from_json(value)]
    notes = [note for draft in drafts if (note := draft.settle(main))]
    return Reading(drafts=tuple(drafts), notes=tuple(notes), words=words.strip())


def _fenced(words: str, cut: bool) -> list[Draft]:
    found, rest = blocks(words)
    reader = _Reader()
    for number, block in enumerate(found, 1):
        reader.take(block, cut=cut and not block.closed and number == len(found))
    if cut:
        reader.end(rest)
    return [draft for draft in reader.drafts if not draft.empty]


def first_sentence(text: str, most: int = 200) -> str:
    """How a text begins.

    >>> first_sentence("I'm sorry. I can't help with that.")
    "I'm sorry."
    """
    plain = " ".join(text.split())
    found = re.match(r".*?[.!?](?=\s|$)", plain)
    first = found[0] if found else plain
    return first if len(first) <= most else f"{first[: most - 1]}…"


class _Reader:
    """Puts blocks together to candidates: by headings, by metadata, by files that come again."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = [Draft()]
        self._told = False  # whether the reply says anywhere where candidates begin

    def take(self, block: Block, *, cut: bool) -> None:
        """Take up the next block; `cut` if the reply ended before the block did."""
        title, said = heading(block.before), said_in(block.before)
        if title is not None:
            self._begin({"name": title} if title else {})
        if self._current.empty:
            self._current.said = {**said, **self._current.said}
        elif "hypothesis" in said or len(said) > 1:
            self._begin(said)
        value = self._value(block)
        if made := list(from_json(value)):
            self.drafts += [*made, Draft()]
        elif is_metadata(value):
            self._describe(value)
        elif not self._described(block):
            if not self._told and self._current.has(block):
                self.drafts.append(Draft())
            self._current.add(block, cut=cut)

    def end(self, rest: str) -> None:
        """Mark the candidate that the end of the reply cut off before its first file."""
        title = heading(rest)
        if title is not None:
            self._begin({"name": title} if title else {})
        if self._current.empty and self._told:
            self._current.cut.append("")

    @property
    def _current(self) -> Draft:
        return self.drafts[-1]

    def _begin(self, said: dict[str, Any]) -> None:
        self._told = True
        if self._current.empty and not self._current.said:
            self._current.said.update(said)
        else:
            self.drafts.append(Draft(said=said))

    def _describe(self, said: dict[str, Any]) -> None:
        """Take up metadata: those of the candidate that was announced, or of the next one."""
        if self._current.empty and not self._current.said.keys() - {"name"}:
            self._current.said.update(said)
            self._told = True
        else:
            self._begin(dict(said))

    def _value(self, block: Block) -> Any:
        """The JSON in a block that is no file."""
        if _is_file(block) or block.language not in ("json", "jsonc", "json5", ""):
            return None
        return as_json(block.content) if block.content.lstrip()[:1] in ("{", "[") else None

    def _described(self, block: Block) -> bool:
        """Whether a block says something of a candidate in YAML, or in JSON that is broken."""
        if _is_file(block) or block.language not in ("json", "yaml", "yml", "toml"):
            return False
        said = said_in(block.content.replace('",\n', '"\n'))
        if said:
            self._describe(said)
        return True


def _is_file(block: Block) -> bool:
    data = (above(block.before) or "").endswith((".json", ".yaml", ".yml", ".toml"))
    return data or named(block.info) is not None


def _spoken(text: str) -> str:
    """A reply without what the model thought aloud before it."""
    opening = _THINKING.match(text)
    if opening is not None:
        closing = text.lower().find(f"</{opening[1].lower()}>")
        return "" if closing < 0 else text[text.index(">", closing) + 1 :]
    closed = _THOUGHT.search(text)
    if closed is not None and not re.search(r"<think", text[: closed.start()], re.IGNORECASE):
        return text[closed.end() :]
    return text
