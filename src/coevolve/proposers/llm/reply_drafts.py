"""Drafts of candidates, read from the text of a reply."""

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coevolve.proposers.llm.edits import Edit, has_edits, has_hunks, read_edits, read_hunks
from coevolve.proposers.llm.reply_blocks import Block, above, blocks, commented, named, tidy
from coevolve.search.candidate import Kind

KEYS = ("name", "parent", "parents", "hypothesis", "kind", "components")
_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s*|\*\*\s*|=+\s*)(?:new\s+)?candidate\b(?:\s*\d+)?[\s:.—–*=-]*(?P<name>.*)$",
    re.IGNORECASE,
)
_LINE = re.compile(
    r"^[\s>*_-]*(?P<key>name|parents?|hypothesis|kind|components)[\s*_`\"]*:[\s*_]*(?P<value>\S.*)$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"(?P<key>name|parent|hypothesis|kind)"\s*:\s*"(?P<value>(?:[^"\\]|\\.)*)"')
_COMMA = re.compile(r",(\s*[}\]])")
_TRIES = 100
"""Failed attempts to read JSON in a text; a limit, because nonsense could take minutes."""


def as_json(text: str) -> Any | None:
    """A value from JSON with common mistakes: trailing commas, raw line ends, Python's quotes.

    >>> as_json("{'name': 'new', 'parent': None,}")
    {'name': 'new', 'parent': None}
    """
    for attempt in (text, _COMMA.sub(r"\1", text)):
        try:
            return json.loads(attempt, strict=False)
        except (ValueError, RecursionError):
            continue
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def is_metadata(value: object) -> bool:
    """Whether a value describes a candidate."""
    return isinstance(value, dict) and any(key in value for key in (*KEYS, "files"))


def heading(text: str) -> str | None:
    r"""The name in the last heading of a candidate, which may be empty; None without a heading.

    >>> heading("Some thoughts.\n## Candidate 2: `short-list`\n"), heading("## Analysis")
    ('short-list', None)
    """
    found = [match for line in text.splitlines() if (match := _HEADING.match(line[:200]))]
    return found[-1]["name"].strip(" `*:=\"'") if found else None


def metadata_in(text: str) -> dict[str, Any]:
    r"""The metadata of a candidate in a text: a JSON object, or lines like "Hypothesis: ...".

    >>> metadata_in("Parent: nearest\n- **Hypothesis:** the last example counts most")
    {'parent': 'nearest', 'hypothesis': 'the last example counts most'}
    """
    for value in objects(text):
        if is_metadata(value):
            return dict(value)
    if quoted := {found["key"]: found["value"] for found in _QUOTED.finditer(text)}:
        return quoted
    lines = (_LINE.match(line[:2_000]) for line in text.splitlines())
    return {found["key"].lower(): found["value"].strip(' `"') for found in lines if found}


def objects(text: str) -> Iterator[Any]:
    """The complete JSON values that begin a line of a text."""
    decoder = json.JSONDecoder(strict=False)
    at, tries = 0, _TRIES
    for found in re.finditer(r"^[ \t]*(?=[{\[])", text, re.MULTILINE):
        if found.end() < at:
            continue
        try:
            value, at = decoder.raw_decode(text, found.end())
        except (ValueError, RecursionError):
            tries -= 1
            if not tries:
                return
        else:
            yield value


def parents(metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The parents in some metadata; None if it does not mention them.

    >>> parents({"parent": "`nearest`"}), parents({"parent": None}), parents({})
    (('nearest',), (), None)
    """
    if "parent" not in metadata and "parents" not in metadata:
        return None
    given = metadata.get("parents") or metadata.get("parent")
    return tuple(name for name in words(given) if name.lower() not in ("null", "none", "-"))


def words(given: object) -> tuple[str, ...]:
    """Words from a list, or from a text with commas.

    >>> words("nearest, `quota`"), words(["a", 1, ""]), words(None)
    (('nearest', 'quota'), ('a', '1'), ())
    """
    if isinstance(given, str):
        given = given.strip("[] ").split(",")
    if not isinstance(given, list | tuple):
        return ()
    plain = (str(one).strip(" `\"'*") for one in given if isinstance(one, str | int | float))
    return tuple(word for word in plain if word)


def sentence(given: object) -> str:
    r"""A text on one line; empty for anything else.

    >>> sentence("so \n it is"), sentence({"a": 1}), sentence(None)
    ('so it is', '', '')
    """
    return " ".join(given.split()) if isinstance(given, str) else ""


_PROGRAMS = {"", "python", "py", "python3"}


@dataclass(slots=True, kw_only=True)
class Draft:
    """One candidate of a reply.

    Args:
        metadata: Its name, parents, hypothesis, kind and components.
        files: Complete files by path.
        edits: Edits by path.
        unnamed: Programs without a path.
        cut: Files that the end of the reply cut off.
    """

    metadata: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    edits: dict[str, tuple[Edit, ...]] = field(default_factory=dict)
    unnamed: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether it has no part of a file."""
        return not (self.files or self.edits or self.unnamed or self.cut)

    @property
    def name(self) -> str:
        """Its name; empty if it has none."""
        return sentence(self.metadata.get("name"))[:200]

    @property
    def parents(self) -> tuple[str, ...] | None:
        """Its parents; None if the reply does not mention them."""
        return parents(self.metadata)

    @property
    def hypothesis(self) -> str:
        """Why it should be better."""
        return sentence(self.metadata.get("hypothesis"))

    @property
    def kind(self) -> Kind:
        """Whether it exploits or explores; empty if unknown."""
        kind = sentence(self.metadata.get("kind")).lower()
        if kind.startswith("exploit"):
            return "exploit"
        return "explore" if kind.startswith("explor") else ""

    @property
    def components(self) -> tuple[str, ...]:
        """Its building blocks."""
        return words(self.metadata.get("components"))

    def add(self, block: Block, *, cut: bool) -> None:
        """Add a block; `cut` if the reply ended before the block did."""
        path = named(block.info) or above(block.before)
        content = block.content
        if path is None:
            path, content = commented(content)
        elif commented(content)[0] == path:
            content = commented(content)[1]
        diff = block.language in ("diff", "patch") or path is not None
        if cut:
            self.cut.append(path or "")
        elif has_edits(content):
            self._edit(path, read_edits(content))
        elif diff and has_hunks(content):
            self._edit(path or _patched(content), read_hunks(content))
        elif path is not None:
            self.files[path] = content
        elif block.language in _PROGRAMS and content.strip():
            self.unnamed.append(content)

    def has(self, block: Block) -> bool:
        """Whether it already has a complete file at the path of a block."""
        path = named(block.info) or above(block.before) or commented(block.content)[0]
        if has_edits(block.content) or has_hunks(block.content):
            return False
        return bool(self.unnamed) if path is None else path in self.files

    def settle(self, main: str) -> str:
        """Use a program without a path as the main file; returns a note, or nothing."""
        spare, self.unnamed = self.unnamed, []
        if not spare or self.files or self.edits:
            return "" if not spare else "a block of code without a path was ignored."
        self.files[main] = max(spare, key=len)
        if len(spare) == 1:
            return ""
        return f"of {len(spare)} blocks of code without a path, the longest was used."

    def _edit(self, path: str | None, edits: tuple[Edit, ...]) -> None:
        key = path or ""
        self.edits[key] = self.edits.get(key, ()) + edits


def from_json(value: object, depth: int = 10) -> Iterator[Draft]:
    """Drafts from JSON that contains the files too, at any depth."""
    if depth == 0:
        return
    if isinstance(value, list):
        for one in value[:100]:
            yield from from_json(one, depth - 1)
    elif isinstance(value, Mapping):
        if files := _files(value.get("files")):
            yield Draft(metadata={str(k): v for k, v in value.items()}, files=files)
            return
        for key in ("candidates", "proposals", "candidate", "proposal"):
            yield from from_json(value.get(key), depth - 1)


def _files(given: object) -> dict[str, str]:
    pairs: list[tuple[object, object]] = []
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, list):
        rows = [row for row in given if isinstance(row, Mapping)]
        pairs = [(row.get("path") or row.get("name"), row.get("content")) for row in rows]
    return {
        tidy(path): content
        for path, content in pairs
        if isinstance(path, str) and isinstance(content, str)
    }


def _patched(content: str) -> str | None:
    """The file that a diff changes, by its header."""
    for line in content.splitlines():
        if line.startswith("+++ "):
            return tidy(line[4:].split("\t")[0].strip().removeprefix("b/"))
    return None


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
    """The contents of a reply.

    Args:
        drafts: Candidates with at least a part of a file.
        notes: What was ignored or guessed.
        words: The reply without the reasoning of the model.
    """

    drafts: tuple[Draft, ...]
    notes: tuple[str, ...]
    words: str

    @property
    def refusal(self) -> str:
        """The first sentence of a reply that refuses to answer; empty for other replies."""
        if self.drafts or not _REFUSALS.search(self.words[:600]):
            return ""
        return first_sentence(self.words)


def read_reply(text: str, *, cut: bool = False, main: str = "harness.py") -> Reading:
    r"""The candidates in a reply.

    Args:
        text: The reply.
        cut: Whether it was cut off.
        main: The path for a program without one.

    >>> read_reply("Sure!\n```python\nanswer = 42\n```").drafts[0].files
    {'harness.py': 'answer = 42\n'}
    """
    words = _without_reasoning(text.encode(errors="replace").decode().removeprefix("\ufeff"))
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
    """The first sentence of a text, shortened.

    >>> first_sentence("I'm sorry. I can't help with that.")
    "I'm sorry."
    """
    plain = " ".join(text.split())
    found = re.match(r".*?[.!?](?=\s|$)", plain)
    first = found[0] if found else plain
    return first if len(first) <= most else f"{first[: most - 1]}…"


class _Reader:
    """Groups blocks into candidates: by headings, by metadata, and by repeated files."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = [Draft()]
        self._marked = False  # whether the reply marks the beginnings of candidates

    def take(self, block: Block, *, cut: bool) -> None:
        """Take the next block; `cut` if the reply ended before the block did."""
        title, metadata = heading(block.before), metadata_in(block.before)
        if title is not None:
            self._begin({"name": title} if title else {})
        if self._current.empty:
            self._current.metadata = {**metadata, **self._current.metadata}
        elif "hypothesis" in metadata or len(metadata) > 1:
            self._begin(metadata)
        value = self._value(block)
        if made := list(from_json(value)):
            self.drafts += [*made, Draft()]
        elif is_metadata(value):
            self._describe(value)
        elif not self._described(block):
            if not self._marked and self._current.has(block):
                self.drafts.append(Draft())
            self._current.add(block, cut=cut)

    def end(self, rest: str) -> None:
        """Mark a candidate that was cut off before its first file."""
        title = heading(rest)
        if title is not None:
            self._begin({"name": title} if title else {})
        if self._current.empty and self._marked:
            self._current.cut.append("")

    @property
    def _current(self) -> Draft:
        return self.drafts[-1]

    def _begin(self, metadata: dict[str, Any]) -> None:
        self._marked = True
        if self._current.empty and not self._current.metadata:
            self._current.metadata.update(metadata)
        else:
            self.drafts.append(Draft(metadata=metadata))

    def _describe(self, metadata: dict[str, Any]) -> None:
        """Take metadata: those of the candidate that has begun, or of the next one."""
        if self._current.empty and not self._current.metadata.keys() - {"name"}:
            self._current.metadata.update(metadata)
            self._marked = True
        else:
            self._begin(dict(metadata))

    def _value(self, block: Block) -> Any:
        """The JSON in a block that is not a file."""
        if _is_file(block) or block.language not in ("json", "jsonc", "json5", ""):
            return None
        return as_json(block.content) if block.content.lstrip()[:1] in ("{", "[") else None

    def _described(self, block: Block) -> bool:
        """Whether a block is not a file but metadata in YAML, TOML or invalid JSON."""
        if _is_file(block) or block.language not in ("json", "yaml", "yml", "toml"):
            return False
        metadata = metadata_in(block.content.replace('",\n', '"\n'))
        if metadata:
            self._describe(metadata)
        return True


def _is_file(block: Block) -> bool:
    data = (above(block.before) or "").endswith((".json", ".yaml", ".yml", ".toml"))
    return data or named(block.info) is not None


def _without_reasoning(text: str) -> str:
    """A reply without the reasoning of the model before it."""
    opening = _THINKING.match(text)
    if opening is not None:
        closing = text.lower().find(f"</{opening[1].lower()}>")
        return "" if closing < 0 else text[text.index(">", closing) + 1 :]
    closed = _THOUGHT.search(text)
    if closed is not None and not re.search(r"<think", text[: closed.start()], re.IGNORECASE):
        return text[closed.end() :]
    return text
