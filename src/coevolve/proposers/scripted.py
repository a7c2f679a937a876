"""Proposers that need no model: a fixed list, and a Python function."""

import ast
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

from coevolve.errors import InputError
from coevolve.proposers.base import Proposal, Proposed, View, as_proposed, call
from coevolve.registry import load_function
from coevolve.search.candidate import read_folder

Item = Path | str | Proposal


class Scripted:
    """Proposes the items of a list in order, and nothing after the last.

    The items of a round depend only on its number, so a resumed run continues with the right
    item. A folder is read in its round. Its name becomes the name of the candidate, and the first
    line of the docstring in its `harness.py` becomes the hypothesis.

    Args:
        items: Folders or proposals, of which each round gets the next `count`; or a list of such
            lists, one for each round.

    >>> import asyncio
    >>> new = [Proposal(name=name, files={"harness.py": b""}) for name in ("a", "b", "c")]
    >>> view = View(round=2, seed=0, tasks=(), standings=(), best=None, parent="", read=bytes,
    ...     trace=lambda candidate, task: None)
    >>> [p.name for p in asyncio.run(Scripted(new).propose(view, 2)).proposals]
    ['c']
    """

    def __init__(self, items: Sequence[Item] | Sequence[Sequence[Item]]) -> None:
        nested = [not isinstance(item, Path | str | Proposal) for item in items]
        if isinstance(items, str) or (any(nested) and not all(nested)):
            raise InputError(
                "a script must be a list of folders or proposals, or a list of such lists, one "
                f"for each round; got {items!r}."
            )
        self._rounds = [tuple(item) for item in items] if any(nested) else None  # type: ignore[arg-type]
        self._items: tuple[Item, ...] = () if any(nested) else tuple(items)  # type: ignore[arg-type]

    async def propose(self, view: View, count: int) -> Proposed:
        if self._rounds is None:
            items = self._items[(view.round - 1) * count : view.round * count]
        else:
            items = self._rounds[view.round - 1] if view.round <= len(self._rounds) else ()
        return as_proposed([_proposal(item) for item in items], source="the script")


class FunctionProposer:
    """Proposes the results of a Python function.

    Args:
        function: Gets the view and the number of candidates. Returns proposals, or mappings with
            the keys name, files (text or bytes), parents, hypothesis, kind and components. A plain
            function runs in a thread; an `async` one is awaited.
        name: Its name in error messages; by default that of the function.

    >>> import asyncio
    >>> def propose(view, count):
    ...     return [{"name": f"r{view.round}", "files": {"harness.py": "answer = 42"}}]
    >>> view = View(round=2, seed=0, tasks=(), standings=(), best=None, parent="", read=bytes,
    ...     trace=lambda candidate, task: None)
    >>> asyncio.run(FunctionProposer(propose).propose(view, 1)).proposals[0].name
    'r2'
    """

    def __init__(
        self, function: Callable[[View, int], object | Awaitable[object]], *, name: str = ""
    ) -> None:
        if not callable(function):
            raise InputError(f"a proposer needs a function, got {function!r}.")
        self._function = function
        self._name = name or getattr(function, "__name__", type(function).__name__)

    @classmethod
    def from_file(cls, path: Path, function: str = "propose") -> Self:
        """The proposer in a Python file.

        Raises:
            ConfigError: The file cannot be loaded, or does not have the function.
        """
        return cls(load_function(path, function), name=f"{function} in {path.name}")

    async def propose(self, view: View, count: int) -> Proposed:
        return as_proposed(await call(self._function, view, count), source=self._name)


def _proposal(item: Item) -> Proposal:
    if isinstance(item, Proposal):
        return item
    folder = Path(item)
    files = read_folder(folder)
    hypothesis = first_line(files.get("harness.py", b""))
    return Proposal(files=files, name=folder.resolve().name, hypothesis=hypothesis)


def first_line(source: bytes) -> str:
    """The first line of the docstring of a Python file; empty if there is none.

    >>> first_line(b"'The nearest example belongs last.'")
    'The nearest example belongs last.'
    """
    try:
        docstring = ast.get_docstring(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""  # the check reports the error
    return (docstring or "").partition("\n")[0]
