"""Turns what a proposer returns into candidates of the run."""

import re
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coevolve.errors import CandidateError, CoevolveError, nearest, titled
from coevolve.formatting import visible
from coevolve.search.candidate import Candidate, Files
from coevolve.search.journal import Journal
from coevolve.search.leaks import UNREAD
from coevolve.search.proposal import KINDS, Proposal, Proposed
from coevolve.search.run_state import CandidateState, RunState

MOST_LEAKS = 20
LONGEST_HYPOTHESIS = 4_000
LONGEST_COMPONENT = 80
MOST_COMPONENTS = 20
_LONGEST_NAME = 60


def _no_leaks(files: Files) -> Sequence[object]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a search for proposers.

    Args:
        briefing: What a harness of the benchmark is, its interface and its rules, in Markdown.
        scan: Finds places in files that mention tasks a harness must not know.
        refuse_leaks: Whether a candidate with such places is refused, not only reported.

    >>> Rules(scan=lambda files: ["harness.py:3 quotes task t1"]).leaks({"harness.py": b""})
    ('harness.py:3 quotes task t1',)
    """

    briefing: str = ""
    scan: Callable[[Files], Sequence[object]] = _no_leaks
    refuse_leaks: bool = False

    def leaks(self, files: Files) -> tuple[str, ...]:
        """The places that the scan finds, as text; only the first if there are many."""
        found = self.scan(files)
        more = len(found) - MOST_LEAKS
        places = tuple(str(leak) for leak in found[:MOST_LEAKS])
        return places if more <= 0 else (*places, f"and {more:,} more places")

    def refusal(self, leaks: Sequence[str]) -> str:
        """Why a candidate with these leaks is refused; empty if it is not."""
        if not leaks or not self.refuse_leaks:
            return ""
        if leaks[0].endswith(UNREAD):  # found tasks come first, so there are none
            return f"it may mention tasks it must not know: {leaks[0]}"
        return f"it mentions tasks it must not know: {leaks[0]}"


def accept(
    state: RunState,
    journal: Journal,
    round: int,
    proposals: Sequence[Proposal],
    rules: Rules,
    most: int,
) -> tuple[list[CandidateState], list[str]]:
    """New candidates of a round, and notes on proposals that are invalid or too many.

    Names are made unique, texts are made safe to show, and files are stored. A copy of an earlier
    candidate, or one that breaks the rules, is refused before it costs a trial.
    """
    accepted: list[CandidateState] = []
    notes: list[str] = []
    names, known = set(state.candidates), _first_of_each(state)
    for proposal in proposals[:most]:
        name = unique(clean(proposal.name), names)
        try:
            candidate = _candidate(state, proposal, name, round)
        except CandidateError as error:
            notes.append(str(error))
            continue
        notes += _unknown_parents(state, proposal, name)
        twin = known.setdefault(candidate.address, name)
        copied = "" if twin == name else twin
        accepted.append(_stored(journal, candidate, proposal, copied, rules))
        names.add(name)
    if len(proposals) > most:
        notes.append(f"{len(proposals)} candidates were proposed, but {most} were requested.")
    return accepted, notes


def accept_repair(
    state: RunState, journal: Journal, before: Candidate, proposed: Proposed, rules: Rules
) -> tuple[CandidateState | None, str]:
    """A repaired candidate, if there is one, and a note if not."""
    if not proposed.proposals:
        return None, ""
    proposal = proposed.proposals[0]
    try:
        after = _candidate(state, proposal, before.name, before.round)
    except CandidateError as error:
        return None, str(error)
    if after.address == before.address:
        return None, "the files did not change."
    after = replace(after, parents=tuple(p for p in after.parents if p != before.name))
    copied = _first_of_each(state).get(after.address, "")
    return _stored(journal, after, proposal, copied, rules), ""


def _stored(
    journal: Journal, candidate: Candidate, proposal: Proposal, copied: str, rules: Rules
) -> CandidateState:
    """A candidate whose files are stored; refused if it is a copy or breaks the rules."""
    for content in proposal.files.values():
        journal.put(content, durable=True)
    known = CandidateState(candidate=candidate, leaks=rules.leaks(proposal.files))
    refused = f"it is a copy of {copied!r}." if copied else rules.refusal(known.leaks)
    if refused:
        known.refuse(refused)
    return known


def _candidate(state: RunState, proposal: Proposal, name: str, round: int) -> Candidate:
    return Candidate.of(
        proposal.files,
        name=name,
        round=round,
        parents=tuple(parent for parent in proposal.parents if parent in state.candidates),
        hypothesis=visible(str(proposal.hypothesis), LONGEST_HYPOTHESIS),
        kind=proposal.kind if proposal.kind in KINDS else "",
        components=tuple(
            " ".join(visible(str(component), LONGEST_COMPONENT).split())
            for component in proposal.components[:MOST_COMPONENTS]
        ),
    )


def _first_of_each(state: RunState) -> dict[str, str]:
    """The first candidate of each address."""
    known: dict[str, str] = {}
    for name, candidate in state.candidates.items():
        known.setdefault(candidate.candidate.address, name)
    return known


def _unknown_parents(state: RunState, proposal: Proposal, name: str) -> list[str]:
    """A note on each parent that is not a candidate; it is left out."""
    return [
        f"{name}: the parent {visible(str(parent), _LONGEST_NAME)!r} is unknown."
        f"{nearest(str(parent), state.candidates)}"
        for parent in proposal.parents
        if parent not in state.candidates
    ]


def clean(name: str) -> str:
    """A name that is safe for files and terminals.

    >>> clean("  Shorter prompt! "), clean("../..")
    ('Shorter-prompt', 'candidate')
    """
    kept = re.sub(r"[^A-Za-z0-9._+-]+", "-", str(name)).strip("-.")[:_LONGEST_NAME].rstrip("-.")
    return kept or "candidate"


def unique(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken.

    >>> unique("plain", {"plain", "plain-2"})
    'plain-3'
    """
    if name not in taken:
        return name
    return next(n for i in range(2, len(taken) + 3) if (n := f"{name}-{i}") not in taken)


_OURS = str(Path(__file__).parents[1])
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})


def described(error: BaseException) -> str:
    """An error of a proposer in one line: the line that raised it, its class and message.

    >>> described(CoevolveError("there is no agent."))
    'there is no agent.'
    """
    if isinstance(error, CoevolveError):
        return str(error)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OURS, *_LIBRARIES, "<"))
    ]
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    return f"{where}{titled(type(error).__name__, str(error))}"
