"""What a proposer sees and what it returns."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, get_args, runtime_checkable

from coevolve.core.choice import Choice
from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing, Usage
from coevolve.errors import InputError, nearest
from coevolve.search.candidate import Candidate, Files, Kind, only_text

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A new candidate as a proposer hands it over.

    Args:
        files: Contents by relative path.
        name: What to call it; the engine makes it unique.
        parents: Names of the candidates it was written on top of.
        hypothesis: Why it should be better.
        kind: "exploit" if it refines what is known to work, "explore" if it tries something
            else; "" if its proposer does not say.
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
        """The proposal a candidate was; `read` gives contents by their address."""
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
    """What one proposal gave.

    Args:
        proposals: The candidates.
        usage: What they cost to write.
        transcript: All that was said while writing them.
        notes: What went wrong: a folder that was no candidate, a time limit that was reached.
    """

    proposals: tuple[Proposal, ...]
    usage: Usage = field(default_factory=Usage)
    transcript: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A candidate that failed its check, with what its proposer needs to mend it."""

    proposal: Proposal
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of an earlier candidate.

    `status` is "evaluated", "pending" or "refused"; `outcomes` holds what was told of it. `delta`
    is its estimate less the best of those known before its round, starting harnesses included;
    None for these, and without an estimate.
    """

    candidate: Candidate
    status: str
    reason: str
    estimate: Estimate | None
    outcomes: Mapping[str, float | Missing]
    delta: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solvability:
    """How often a task was solved: the mean over the candidates that were tried on it."""

    mean: float
    candidates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All a proposer may know before a round; nothing of the sealed test.

    Args:
        round: The round to propose for, from 1.
        seed: Seed for the proposer's own draws in this round.
        tasks: The tasks of the pool.
        standings: Every earlier candidate, starting harnesses first, in the order of proposal.
        best: The choice as of now; None while only starting harnesses are known.
        parent: The candidate with the best score so far, starting harnesses included.
        read: Reads a file's content by its address.
        trace: The trace of a candidate's last trial of a task, as JSON text, if there is one.
        briefing: What a harness is here, its interface and its rules, in Markdown.
        pools: The pool of each task, where there are several.
        solvability: What earlier candidates made of each task that was tried.
        seconds: How long the proposal may take.

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

    def standing(self, name: str) -> Standing:
        """What is known of one candidate."""
        return next(s for s in self.standings if s.candidate.name == name)

    def files(self, name: str) -> dict[str, bytes]:
        """The files of one candidate."""
        files = self.standing(name).candidate.files
        return {path: self.read(address) for path, address in files.items()}

    def text(self, name: str = "") -> str:
        """The text of a candidate that has one file: of the parent, unless it is named."""
        name = name or self.parent
        return only_text(self.files(name), name)


@runtime_checkable
class Proposer(Protocol):
    """Who writes candidates.

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
    """A proposer that gets a candidate back, once, if it fails its check."""

    async def repair(self, view: View, broken: Broken) -> Proposed | Sequence[Proposal]:
        """The candidate mended, or nothing."""
        ...


_KEYS = ("name", "files", "parents", "hypothesis", "kind", "components")


def as_proposed(given: object, *, source: str = "the proposer") -> Proposed:
    """What a proposer returned, in its full form.

    Args:
        given: A `Proposed`, or proposals as `as_proposal` takes them.
        source: What errors call the proposer.

    Raises:
        InputError: It is none of these; the message names the item and what is wrong with it.
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
        raise InputError(f"{source} returned {_shown(item)}, which is no proposal.")
    for key in data:
        if key not in _KEYS:
            raise InputError(f"{source}: a proposal has no {key!r}.{nearest(str(key), _KEYS)}")
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(f"{source}: a proposal needs a name, got {_shown(name)}.")
    parents = data.get("parents") or ()
    if not _are_texts(parents):
        raise InputError(f"{source}: parents of {name!r} must be names, got {_shown(parents)}.")
    hypothesis = data.get("hypothesis") or ""
    if not isinstance(hypothesis, str):
        raise InputError(
            f"{source}: the hypothesis of {name!r} must be text, got {_shown(hypothesis)}."
        )
    components = data.get("components") or ()
    if not _are_texts(components):
        raise InputError(
            f"{source}: components of {name!r} must be words, got {_shown(components)}."
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
        files[path] = content.encode() if isinstance(content, str) else content
    return files


def _are_texts(given: Any) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
