"""From drafts to proposals: parents found, edits made, copies told apart."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from coevolve.errors import CandidateError
from coevolve.proposers.base import Proposal, View
from coevolve.proposers.llm.drafts import Draft
from coevolve.proposers.llm.edits import EditError, apply_edits
from coevolve.search.accepting import clean
from coevolve.search.candidate import Candidate, Files


class Fault(ValueError):  # noqa: N818
    """Why a draft is no candidate; the message goes back to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files that candidates are built on.

    Args:
        view: The run so far.
        base: Files that replace those of any parent: of a candidate that is mended.
    """

    view: View
    base: Files | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates of the run."""
        return tuple(standing.candidate.name for standing in self.view.standings)

    @property
    def main(self) -> str:
        """The path of the file that a harness mostly is."""
        paths: Iterable[str] = () if self.base is None else self.base
        if self.base is None and self.view.parent in self.names:
            paths = self.view.standing(self.view.parent).candidate.files
        programs = [path for path in paths if path.endswith(".py")]
        return programs[0] if len(programs) == 1 else "harness.py"

    def known(self, name: str) -> str | None:
        """The candidate that is meant by a name."""
        names = self.names
        if name in names:
            return name
        alike = [known for known in names if known.lower() == clean(name).lower()]
        return alike[0] if len(alike) == 1 else None


@dataclass(slots=True, kw_only=True)
class Builder:
    """Makes proposals of drafts, and knows what is there already.

    Args:
        sources: What drafts build on.
        addresses: Candidates by the address of their files.
    """

    sources: Sources
    addresses: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for standing in self.sources.view.standings:
            self.addresses.setdefault(standing.candidate.address, standing.candidate.name)
        if self.sources.base is not None:
            as_it_was = Candidate.of(self.sources.base, name="before").address
            self.addresses.setdefault(as_it_was, "the candidate before")

    def build(self, draft: Draft, number: int) -> Proposal:
        """The proposal that a draft describes.

        Raises:
            Fault: It describes none, or one that is there already.
        """
        name = draft.name or f"round-{self.sources.view.round}-{number}"
        if draft.cut:
            what = ", ".join(filter(None, draft.cut)) or "it"
            raise Fault(f"the reply was cut off before {what} was complete")
        parents = self._parents(draft)
        files = self._files(draft, name, parents)
        try:
            address = Candidate.of(files, name=name).address
        except CandidateError as error:
            raise Fault(str(error).rstrip(".")) from error
        if (twin := self.addresses.get(address)) is not None:
            raise Fault(f"its files are those of {twin!r}, to the letter")
        self.addresses[address] = name
        return Proposal(
            files=files,
            name=name,
            parents=parents,
            hypothesis=draft.hypothesis,
            kind=draft.kind,
            components=draft.components,
        )

    def _parents(self, draft: Draft) -> tuple[str, ...]:
        """Whom a draft builds on; an edit without a parent is one of the best candidate."""
        given = draft.parents
        if given is None:
            default = self.sources.view.parent
            return (default,) if draft.edits and default in self.sources.names else ()
        known = [self.sources.known(name) for name in given]
        unknown = [name for name, found in zip(given, known, strict=True) if found is None]
        if unknown and draft.edits and self.sources.base is None:
            raise Fault(f"there is no candidate {unknown[0]!r:.80} whose files could be edited")
        return tuple(dict.fromkeys(name for name in known if name is not None))

    def _files(self, draft: Draft, name: str, parents: tuple[str, ...]) -> dict[str, bytes]:
        """The files of the parent, with those of the draft in their place."""
        files: dict[str, bytes] = {}
        if self.sources.base is not None:
            files = dict(self.sources.base)
        elif parents:
            files = self.sources.view.files(parents[0])
        own = f"{clean(name)}/"
        for path, content in draft.files.items():
            files[path.removeprefix(own)] = content.encode(errors="replace")
        for path, edits in draft.edits.items():
            target = path.removeprefix(own) or self.sources.main
            if not edits:
                raise Fault(f"the edits of {target} have no complete SEARCH and REPLACE part")
            if target not in files and any(any(map(str.strip, e.search)) for e in edits):
                raise Fault(f"there is no file {target!r:.80} to edit; {_there(files)}")
            source = files.get(target, b"").decode(errors="replace")
            try:
                files[target] = apply_edits(source.replace("\r\n", "\n"), edits).encode(
                    errors="replace"
                )
            except EditError as error:
                raise Fault(f"{target}: {error}") from error
        return files


def _there(files: Mapping[str, bytes]) -> str:
    if not files:
        return "it names no parent"
    return f"its parent has {', '.join(sorted(files)[:10])}"
