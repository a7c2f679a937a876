"""Proposers that need no model: a fixed list, and a Python function."""

import ast
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from coevolve.errors import InputError, StopRun
from coevolve.proposers.base import Proposal, Proposed, Proposer, View, as_proposed, call, takes
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


class CallableProposer:
    """Proposes the results of a function of the view, or of the view and a count.

    Unlike those of a `FunctionProposer`, they may be texts and need no name.

    Args:
        function: A plain function, which runs in a thread, or an `async` one.
        owner: The object whose method it is; its other methods may be plain, too.
    """

    def __init__(self, function: Callable[..., Any], owner: object = None) -> None:
        self._counts = takes(function, 2)
        if not self._counts and not takes(function, 1):
            raise InputError(
                "propose must be a function of (view) or (view, count), got a function of "
                f"{inspect.signature(function)}."
            )
        self._function = function
        if (check := getattr(owner, "check", None)) is not None:
            self.check = check
        for name in ("repair", "close"):
            if (method := getattr(owner, name, None)) is not None:
                setattr(self, name, partial(call, method))

    async def propose(self, view: View, count: int) -> Proposed:
        given = await call(self._function, *((view, count) if self._counts else (view,)))
        try:
            return as_proposed(self._full(given, view), source="propose")
        except InputError as error:  # a retry would not help
            raise StopRun(str(error)) from error

    def _full(self, given: Any, view: View) -> Any:
        """Proposals in their full form, with a name and files."""
        if isinstance(given, Proposed):
            return given
        if isinstance(given, str | Mapping | Proposal):
            given = [given]
        if not isinstance(given, Iterable):
            raise InputError(
                f"propose returned {given!r:.80}; return a text, a Proposal, a mapping with "
                "'text' or 'files', or a list of these."
            )
        starts = {tuple(s.candidate.files) for s in view.standings if s.candidate.round == 0}
        only = starts.pop() if len(starts) == 1 else ()
        file = only[0] if len(only) == 1 else None
        return [self._one(item, f"r{view.round}-{n}", file) for n, item in enumerate(given)]

    @staticmethod
    def _one(item: Any, name: str, file: str | None) -> Any:
        if isinstance(item, str):
            item = {"text": item}
        if not isinstance(item, Mapping):
            return item
        made = {"name": name, **item}
        if "text" in made:
            if file is None:
                raise InputError(
                    "propose returned a text, but the starting candidates do not have one file "
                    "of the same name; return {'files': {path: text}}."
                )
            made["files"] = {file: made.pop("text")}
        return made


def awaitable(proposer: Proposer) -> Proposer:
    """The proposer, whose method `propose` may be a plain one."""
    if inspect.iscoroutinefunction(proposer.propose):
        return proposer
    return CallableProposer(proposer.propose, proposer)


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
