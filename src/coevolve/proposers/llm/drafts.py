"""Candidates as a reply describes them, before anything is known of their parents."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from coevolve.proposers.llm.blocks import Block
from coevolve.proposers.llm.edits import Edit, has_edits, has_hunks, read_edits, read_hunks
from coevolve.proposers.llm.metadata import parents, sentence, words
from coevolve.proposers.llm.paths import above, commented, named, tidy
from coevolve.search.candidate import Kind

_PROGRAMS = {"", "python", "py", "python3"}


@dataclass(slots=True, kw_only=True)
class Draft:
    """What a reply holds of one candidate.

    Args:
        said: What it says of it.
        files: Whole files by path.
        edits: Edits by path.
        unnamed: Programs without a path.
        cut: Files that the end of the reply cut off.
    """

    said: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    edits: dict[str, tuple[Edit, ...]] = field(default_factory=dict)
    unnamed: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing of a file is there."""
        return not (self.files or self.edits or self.unnamed or self.cut)

    @property
    def name(self) -> str:
        """What it is called; empty if it has no name."""
        return sentence(self.said.get("name"))[:200]

    @property
    def parents(self) -> tuple[str, ...] | None:
        """Whom it builds on; None if it does not say."""
        return parents(self.said)

    @property
    def hypothesis(self) -> str:
        """Why it should be better."""
        return sentence(self.said.get("hypothesis"))

    @property
    def kind(self) -> Kind:
        """Whether it exploits or explores; empty if it does not say."""
        kind = sentence(self.said.get("kind")).lower()
        if kind.startswith("exploit"):
            return "exploit"
        return "explore" if kind.startswith("explor") else ""

    @property
    def components(self) -> tuple[str, ...]:
        """What it is made of."""
        return words(self.said.get("components"))

    def add(self, block: Block, *, cut: bool) -> None:
        """Take up a block; `cut` if the reply ended before the block did."""
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
        """Whether it has a whole file already where the block has one."""
        path = named(block.info) or above(block.before) or commented(block.content)[0]
        if has_edits(block.content) or has_hunks(block.content):
            return False
        return bool(self.unnamed) if path is None else path in self.files

    def settle(self, main: str) -> str:
        """Give a program without a path that of the main file; what to tell of it, if anything."""
        spare, self.unnamed = self.unnamed, []
        if not spare or self.files or self.edits:
            return "" if not spare else "a block of code without a path was left out."
        self.files[main] = max(spare, key=len)
        return "" if len(spare) == 1 else f"of {len(spare)} blocks without a path one was taken."

    def _edit(self, path: str | None, edits: tuple[Edit, ...]) -> None:
        key = path or ""
        self.edits[key] = self.edits.get(key, ()) + edits


def from_json(value: object, depth: int = 10) -> Iterator[Draft]:
    """Drafts from JSON that holds the files too, whatever it is wrapped in."""
    if depth == 0:
        return
    if isinstance(value, list):
        for one in value[:100]:
            yield from from_json(one, depth - 1)
    elif isinstance(value, Mapping):
        if files := _files(value.get("files")):
            yield Draft(said={str(k): v for k, v in value.items()}, files=files)
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
    """The file that a diff is of, by its head."""
    for line in content.splitlines():
        if line.startswith("+++ "):
            return tidy(line[4:].split("\t")[0].strip().removeprefix("b/"))
    return None
