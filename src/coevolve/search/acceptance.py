"""From what a proposer returns to candidates of the run."""

import re
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coevolve.errors import CandidateError, CoevolveError, nearest, titled
from coevolve.search.candidate import Candidate, Files, plain
from coevolve.search.journal import Journal
from coevolve.search.leaks import UNREAD
from coevolve.search.proposal import KINDS, Proposal, Proposed
from coevolve.search.run_state import RunState

_OURS = str(Path(__file__).parents[1])
_OTHERS = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})


def described(error: BaseException) -> str:
    """An error in a line: its kind and the line that raised it, unless it is one of ours.

    >>> described(CoevolveError("there is no agent."))
    'there is no agent.'
    """
    if isinstance(error, CoevolveError):
        return str(error)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OURS, *_OTHERS, "<"))
    ]
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    return f"{where}{titled(type(error).__name__, str(error))}"


MOST_LEAKS = 20


def _nothing(files: Files) -> Sequence[object]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a search as proposers meet them.

    Args:
        briefing: What a harness is here, its interface and its rules, in Markdown.
        scan: Finds places in files that speak of tasks a harness may not know.
        refuse_leaks: Whether a candidate with such places is refused, or only reported.

    >>> Rules(scan=lambda files: ["harness.py:3 quotes task t1"]).leaks({"harness.py": b""})
    ('harness.py:3 quotes task t1',)
    """

    briefing: str = ""
    scan: Callable[[Files], Sequence[object]] = _nothing
    refuse_leaks: bool = False

    def leaks(self, files: Files) -> tuple[str, ...]:
        """What a scan finds, in words; the first places if they are many."""
        found = self.scan(files)
        more = len(found) - MOST_LEAKS
        words = tuple(str(leak) for leak in found[:MOST_LEAKS])
        return words if more <= 0 else (*words, f"and {more:,} more places")

    def refusal(self, leaks: Sequence[str]) -> str:
        """Why a candidate with these leaks is refused; nothing if it is not."""
        if not leaks or not self.refuse_leaks:
            return ""
        if leaks[0].endswith(UNREAD):  # tasks come first: none was found where it was read
            return f"it may speak of tasks it may not know: {leaks[0]}"
        return f"it speaks of tasks it may not know: {leaks[0]}"


LONGEST_HYPOTHESIS = 4_000
LONGEST_COMPONENT = 80
MOST_COMPONENTS = 20
_LONGEST = 60


def accept(
    state: RunState,
    journal: Journal,
    round: int,
    proposals: Sequence[Proposal],
    rules: Rules,
    most: int,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Candidates as the event "proposed" lists them, and notes on what was none, or too many.

    Names are made unique, what is said of them fit to be shown, and files are kept by content.
    A copy of an earlier candidate, or one that breaks the rules, is refused before it costs
    a trial.
    """
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    names = set(state.candidates)
    known = _known(state)
    for proposal in proposals[:most]:
        name = unique(clean(proposal.name), names)
        try:
            candidate = _candidate(state, proposal, name, round)
        except CandidateError as error:
            notes.append(str(error))
            continue
        notes += _strangers(state, proposal, name)
        twin = known.setdefault(candidate.address, name)
        row = _row(journal, candidate, proposal, "" if twin == name else twin, rules)
        rows.append({"candidate": row.pop("to"), **row})
        names.add(name)
    if len(proposals) > most:
        notes.append(f"{len(proposals)} were proposed, {most} were asked for.")
    return rows, notes


def mended(
    state: RunState, journal: Journal, before: Candidate, proposed: Proposed, rules: Rules
) -> tuple[dict[str, Any] | None, str]:
    """A mended candidate as the event "repaired" has it, if it is one; and a note if not."""
    if not proposed.proposals:
        return None, ""
    proposal = proposed.proposals[0]
    try:
        after = _candidate(state, proposal, before.name, before.round)
    except CandidateError as error:
        return None, str(error)
    if after.address == before.address:
        return None, "the files came back as they were."
    after = replace(after, parents=tuple(p for p in after.parents if p != before.name))
    return _row(journal, after, proposal, _known(state).get(after.address, ""), rules), ""


def _row(
    journal: Journal, candidate: Candidate, proposal: Proposal, twin: str, rules: Rules
) -> dict[str, Any]:
    """A candidate whose files are kept, with what speaks against it."""
    for content in proposal.files.values():
        journal.put(content, durable=True)
    leaks = rules.leaks(proposal.files)
    refused = f"its files are those of {twin!r}." if twin else rules.refusal(leaks)
    return {"to": candidate.to_json(), "refused": refused, "leaks": list(leaks)}


def clean(name: str) -> str:
    """A name fit for files and terminals.

    >>> clean("  Shorter prompt! "), clean("../..")
    ('Shorter-prompt', 'candidate')
    """
    kept = re.sub(r"[^A-Za-z0-9._+-]+", "-", str(name)).strip("-.")[:_LONGEST].rstrip("-.")
    return kept or "candidate"


def unique(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken.

    >>> unique("plain", {"plain", "plain-2"})
    'plain-3'
    """
    if name not in taken:
        return name
    return next(n for i in range(2, len(taken) + 3) if (n := f"{name}-{i}") not in taken)


def _known(state: RunState) -> dict[str, str]:
    """The first candidate of each address."""
    known: dict[str, str] = {}
    for name, entry in state.candidates.items():
        known.setdefault(entry.candidate.address, name)
    return known


def _strangers(state: RunState, proposal: Proposal, name: str) -> list[str]:
    """A note on each parent that is no candidate; it is left out."""
    return [
        f"{name}: there is no parent {plain(str(parent), _LONGEST)!r}."
        f"{nearest(str(parent), state.candidates)}"
        for parent in proposal.parents
        if parent not in state.candidates
    ]


def _candidate(state: RunState, proposal: Proposal, name: str, round: int) -> Candidate:
    return Candidate.of(
        proposal.files,
        name=name,
        round=round,
        parents=tuple(parent for parent in proposal.parents if parent in state.candidates),
        hypothesis=plain(str(proposal.hypothesis), LONGEST_HYPOTHESIS),
        kind=proposal.kind if proposal.kind in KINDS else "",
        components=tuple(
            " ".join(plain(str(component), LONGEST_COMPONENT).split())
            for component in proposal.components[:MOST_COMPONENTS]
        ),
    )
