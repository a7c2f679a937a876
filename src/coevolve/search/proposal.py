"""What a proposer sees and what it returns."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, get_args, runtime_checkable

from coevolve.core.choice import Choice
from coevolve.core.disclosure import Disclosure
from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing, Usage
from coevolve.core.protocols import protocol
from coevolve.errors import InputError, nearest
from coevolve.search.candidate import Candidate, Files, Kind, only_text

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A new candidate as a proposer submits it.

    Args:
        files: Contents by relative path.
        name: What to call it; the engine makes it unique.
        parents: Names of the candidates it builds on.
        hypothesis: Why it should be better.
        kind: "exploit" if it refines what is known to work, "explore" if it tries something
            else, "" if that is unknown.
        components: What it is made of, in a few words each.

    >>> Proposal(files={"harness.py": b"..."}, name="shorter-prompt").parents
    ()
    """

    files: Files
    name: str
    parents: tuple[str, ...] = ()
    hypothesis: str = ""
    kind: Kind = ""
    components: tuple[str, ...] = ()

    @classmethod
    def of(cls, candidate: Candidate, read: Callable[[str], bytes]) -> Self:
        """The proposal of a candidate; `read` returns contents by their address."""
        return cls(
            files={path: read(address) for path, address in candidate.files.items()},
            name=candidate.name,
            parents=candidate.parents,
            hypothesis=candidate.hypothesis,
            kind=candidate.kind,
            components=candidate.components,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """The answer of a proposer: candidates, and the cost of writing them.

    Args:
        proposals: The candidates.
        usage: The cost of writing them.
        transcript: The conversation in which they were written.
        notes: What went wrong, such as an invalid candidate or a time limit.
    """

    proposals: tuple[Proposal, ...]
    usage: Usage = field(default_factory=Usage)
    transcript: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A candidate that failed its check, and the error, for its repair."""

    proposal: Proposal
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of an earlier candidate.

    `status` is "evaluated", "refused" or its progress, such as "ready"; `outcomes` has its scores
    by task. `delta` is its estimate minus the best estimate before its round, starting harnesses
    included. It is None for starting harnesses, and without an estimate.
    """

    candidate: Candidate
    status: str
    reason: str
    estimate: Estimate | None
    outcomes: Mapping[str, float | Missing]
    delta: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solvability:
    """How often a task was solved: the mean over the candidates that ran it."""

    mean: float
    candidates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a proposer may know before a round; nothing of the sealed test.

    Args:
        round: The round to propose for, from 1.
        seed: Seed for the random numbers of the proposer in this round.
        tasks: The tasks of the pool.
        standings: Every earlier candidate, starting harnesses first, in the order of proposal.
        best: The current choice; None while only starting harnesses have scores.
        parent: The candidate with the best score so far, starting harnesses included.
        read: Reads the content of a file by its address.
        trace: The trace of a candidate's last trial of a task, as JSON text, if there is one.
        briefing: What a harness of the benchmark is, its interface and its rules, in Markdown.
        pools: The pool of each task, if there are several pools.
        solvability: How often each task was solved, for the tasks that were run.
        seconds: How long the proposal may take.
        disclosure: What the proposer is told about draws and scores.

    >>> start = Candidate.of({"prompt.txt": b"Answer."}, name="start")
    >>> known = Standing(
    ...     candidate=start, status="evaluated", reason="", estimate=None, outcomes={})
    >>> view = View(round=1, seed=0, tasks=("a",), standings=(known,), best=None, parent="start",
    ...     read=lambda address: b"Answer.", trace=lambda candidate, task: None)
    >>> view.text(), view.files("start")
    ('Answer.', {'prompt.txt': b'Answer.'})
    """

    round: int
    seed: int
    tasks: tuple[str, ...]
    standings: tuple[Standing, ...]
    best: Choice | None
    parent: str
    read: Callable[[str], bytes]
    trace: Callable[[str, str], str | None]
    briefing: str = ""
    pools: Mapping[str, str] = field(default_factory=dict)
    solvability: Mapping[str, Solvability] = field(default_factory=dict)
    seconds: float = math.inf
    disclosure: Disclosure = field(default_factory=lambda: protocol("task-coevolve").disclosure())

    def standing(self, name: str) -> Standing:
        """What is known of one candidate."""
        return next(s for s in self.standings if s.candidate.name == name)

    def files(self, name: str) -> dict[str, bytes]:
        """The files of one candidate."""
        files = self.standing(name).candidate.files
        return {path: self.read(address) for path, address in files.items()}

    def text(self, name: str = "") -> str:
        """The text of a candidate with one file; by default the parent."""
        name = name or self.parent
        return only_text(self.files(name), name)


@runtime_checkable
class Proposer(Protocol):
    """Writes candidates.

    >>> class Shouting:
    ...     async def propose(self, view, count):
    ...         text = view.text().upper()
    ...         return [Proposal(name=f"loud-{view.round}", files={"prompt.txt": text.encode()})]
    >>> isinstance(Shouting(), Proposer)
    True
    """

    async def propose(self, view: View, count: int) -> Proposed | Sequence[Proposal]:
        """Up to `count` new candidates for the round of the view."""
        ...


@runtime_checkable
class Repairer(Proposer, Protocol):
    """A proposer that can repair a candidate that failed its check; it is asked once."""

    async def repair(self, view: View, broken: Broken) -> Proposed | Sequence[Proposal]:
        """The repaired candidate, or nothing."""
        ...


_KEYS = ("name", "files", "parents", "hypothesis", "kind", "components")


def as_proposed(given: object, *, source: str = "the proposer") -> Proposed:
    """What a proposer returned, as a `Proposed`.

    Args:
        given: A `Proposed`, or a list of what `as_proposal` takes.
        source: Name of the proposer in errors.

    Raises:
        InputError: It is something else; the message names the item and what is wrong with it.
    """
    items: Any = given.proposals if isinstance(given, Proposed) else given
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Mapping):
        raise InputError(
            f"{source} returned {_shown(given)}; return a list of Proposal or of "
            "{'name': ..., 'files': {...}}."
        )
    proposals = tuple(as_proposal(item, source=source) for item in items)
    if isinstance(given, Proposed):
        return replace(given, proposals=proposals)
    return Proposed(proposals=proposals)


def as_proposal(item: object, *, source: str = "the proposer") -> Proposal:
    """A proposal, from one or from a mapping with the same keys and files as text or bytes.

    >>> as_proposal({"name": "new", "files": {"harness.py": "answer = 42"}}).files
    {'harness.py': b'answer = 42'}
    """
    if isinstance(item, Proposal):
        data = {key: getattr(item, key) for key in _KEYS}
    elif isinstance(item, Mapping):
        data = dict(item)
    else:
        raise InputError(f"{source} returned {_shown(item)}, which is not a proposal.")
    for key in data:
        if key not in _KEYS:
            raise InputError(
                f"{source}: {key!r} is not a key of a proposal.{nearest(str(key), _KEYS)}"
            )
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"{source}: a proposal needs a name, got {_shown(name)}.")
    parents = data.get("parents") or ()
    if not _are_texts(parents):
        raise InputError(
            f"{source}: parents of {name!r} must be a list of names, got {_shown(parents)}."
        )
    hypothesis = data.get("hypothesis") or ""
    if not isinstance(hypothesis, str):
        raise InputError(
            f"{source}: the hypothesis of {name!r} must be text, got {_shown(hypothesis)}."
        )
    components = data.get("components") or ()
    if not _are_texts(components):
        raise InputError(
            f"{source}: components of {name!r} must be a list of texts, got {_shown(components)}."
        )
    kind = data.get("kind") or ""
    if kind not in KINDS:
        raise InputError(
            f"{source}: the kind of {name!r} must be 'exploit' or 'explore', got {_shown(kind)}."
        )
    return Proposal(
        files=_as_files(data.get("files"), name, source),
        name=name,
        parents=tuple(parents),
        hypothesis=hypothesis,
        kind=kind,
        components=tuple(components),
    )


def _as_files(given: object, name: str, source: str) -> Files:
    if not isinstance(given, Mapping):
        raise InputError(
            f"{source}: files of {name!r} must map paths to contents, got {_shown(given)}."
        )
    files: dict[str, bytes] = {}
    for path, content in given.items():
        if not isinstance(path, str) or not isinstance(content, str | bytes):
            raise InputError(
                f"{source}: file {path!r} of {name!r} must be text or bytes, "
                f"got {_shown(content)}."
            )
        try:
            files[path] = content.encode() if isinstance(content, str) else content
        except UnicodeEncodeError as error:
            raise InputError(
                f"{source}: file {path!r} of {name!r} is not valid text: {error}."
            ) from error
    return files


def _are_texts(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
