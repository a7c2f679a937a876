"""The context of a prompt: the sections about the run, packed into a number of tokens.

Every section has a share of the tokens. What one does not need goes to the others, the most
important first. A section that does not fit is shortened, and says how much is left out.

A task without a score does not count as a failure.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from coevolve import formatting
from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing
from coevolve.proposers.base import Standing, View
from coevolve.proposers.llm.prompt_text import BYTES, Part, clip, fitted, line, shortened, size
from coevolve.search.candidate import Files

_HYPOTHESIS = 300
_REASON = 400
_REST = 200
"""Bytes for the names of candidates that are not shown."""


def ranked(view: View) -> list[Standing]:
    """Candidates with an estimate, the best first; of equals, the earliest first."""
    known = [standing for standing in view.standings if standing.estimate is not None]
    return sorted(known, key=lambda s: -_value(s.estimate))


def leaderboard(view: View, most: int) -> str:
    """Every candidate with its estimate, the best first; the worst are left out first."""
    rows = [_row(view, standing) for standing in ranked(view)]
    waiting = [s for s in view.standings if s.estimate is None and s.status != "refused"]
    rows += [f"- {s.candidate.name}: not scored yet{_descent(s)}{_why(s)}" for s in waiting]
    return fill([_progress(view)], rows, most, "more candidates, with lower scores or without")


def refused(view: View, most: int) -> str:
    """Refused candidates, the latest first, each with the reason."""
    rows = [
        f"- {s.candidate.name} (round {s.candidate.round}): {line(s.reason, _REASON)}{_why(s)}"
        for s in reversed(view.standings)
        if s.status == "refused"
    ]
    return fill([], rows, most, "more refused candidates")


def sources(view: View, most: int) -> str:
    """Files of the best candidates: those of the parent, then as many as fit."""
    known = {standing.candidate.name for standing in view.standings}
    names = [name for name in (view.parent,) if name in known]
    names += [s.candidate.name for s in ranked(view) if s.candidate.name not in names]
    shown: list[str] = []
    room = most - _REST
    for name in names:
        text = files_of(view, name)
        text = text if shown else clip(text, room)
        if size(text) > room:
            break
        shown.append(text)
        room -= size(text) + 2
    if left := names[len(shown) :]:
        shown.append(f"… {len(left):,} more candidates: {line(', '.join(left), _REST - 80)} …")
    return clip("\n\n".join(shown), most)


def files_of(view: View, name: str) -> str:
    """The files of a candidate in the format of a reply."""
    estimate = view.standing(name).estimate
    scored = "" if estimate is None else f", {_scored(view, estimate)}"
    return f"### {name}{scored}\n\n{listing(view.files(name))}"


def listing(files: Files) -> str:
    """Files as fenced blocks with their paths.

    >>> print(listing({"harness.py": b"x = 1"}))
    ````python path=harness.py
    x = 1
    ````
    """
    return "\n\n".join(_listed(path, content) for path, content in sorted(files.items()))


def fill(head: list[str], rows: list[str], most: int, what: str) -> str:
    """The rows that fit, and at the end the number of the others, which are `what`."""
    room = most - sum(size(text) + 1 for text in head)
    kept: list[str] = []
    for number, row in enumerate(rows):
        rest = 0 if number + 1 == len(rows) else 80
        if size(row) + 1 + rest > room:
            kept.append(f"… {len(rows) - number:,} {what} …")
            break
        kept.append(row)
        room -= size(row) + 1
    return clip("\n".join([*head, *kept]), most)


def _progress(view: View) -> str:
    """The progress of the search: the best candidate, and the rounds since then."""
    known = [s for s in view.standings if s.candidate.name == view.parent]
    if not known:
        return f"This is round {view.round}. There are no candidates yet."
    if known[0].estimate is None:
        return f"This is round {view.round}. No candidate has a score yet."
    first = known[0].candidate.round
    text = f"This is round {view.round}. The best candidate so far is {view.parent}, "
    text += f"of round {first}." if first else "a starting harness."
    since = view.round - 1 - first
    return f"{text} No candidate of the last {since} rounds beat it." if since > 1 else text


def _row(view: View, standing: Standing) -> str:
    assert standing.estimate is not None
    best = ", the best so far" if standing.candidate.name == view.parent else ""
    scored = _scored(view, standing.estimate)
    delta = standing.delta
    change = "" if delta is None else f", {delta:+.3f} against the best before its round"
    name = standing.candidate.name
    return f"- {name}{best}: {scored}{change}{_descent(standing)}{_why(standing)}"


def _scored(view: View, estimate: Estimate) -> str:
    """An estimate with its interval; an exact score, and a plain mean, have none."""
    shown = formatting.score(estimate.value)
    if estimate.exact:
        return f"{shown} (all {estimate.pool_size} tasks)"
    if not view.disclosure.estimated:
        return f"{shown} ({estimate.tasks} of {estimate.pool_size} tasks)"
    limits = formatting.interval(estimate.to_json()) or "interval unknown"
    return f"{shown} ({limits}, {estimate.tasks} of {estimate.pool_size} tasks)"


def _descent(standing: Standing) -> str:
    candidate = standing.candidate
    made = [f"from {' and '.join(candidate.parents)}"] if candidate.parents else []
    made += [candidate.kind] if candidate.kind else []
    made += [f"of {line(', '.join(candidate.components), 200)}"] if candidate.components else []
    first = ["starting harness"] if candidate.round == 0 else [f"round {candidate.round}"]
    return f"; {', '.join([*first, *made])}"


def _why(standing: Standing) -> str:
    why = standing.candidate.hypothesis
    return f"\n  hypothesis: {line(why, _HYPOTHESIS)}" if why else ""


def _listed(path: str, content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{path}: {len(content):,} bytes, not text"
    longest = max((len(run) for run in _fences(text)), default=0)
    fence = "`" * max(4, longest + 1)
    language = "python" if path.endswith(".py") else ""
    return f"{fence}{language} path={path}\n{text.rstrip()}\n{fence}"


def _fences(text: str) -> Iterable[str]:
    for row in text.split("\n"):
        stripped = row.lstrip()
        if stripped.startswith("```"):
            yield stripped[: len(stripped) - len(stripped.lstrip("`"))]


def _value(estimate: Estimate | None) -> float:
    return float("-inf") if estimate is None else estimate.value


_SOLVED = 0.5
"""The least score of a solved task."""
_TRACE = 1_500
"""The most bytes of a trace: many short failures say more than a few long ones."""
_FEW = 3
"""Tasks shown that the best candidate solves, as a reminder to keep them solved."""
_LEAST = 300
"""The least bytes of a trace."""


class Scored(NamedTuple):
    """A candidate's score on a task."""

    task: str
    candidate: str
    score: float


class Contrast(NamedTuple):
    """A task that the best candidate fails and another one solves."""

    own: Scored
    other: Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Tasks by who solves them.

    Args:
        best: The best candidate.
        tried: The number of tasks on which it was scored.
        lost: Tasks that it fails and another candidate solves.
        unsolved: Tasks that no candidate solves, whether the best was scored on them or not.
        solved: Tasks that it solves.
    """

    best: str
    tried: int
    lost: tuple[Contrast, ...]
    unsolved: tuple[Scored, ...]
    solved: tuple[Scored, ...]


def sort_tasks(view: View) -> Tasks:
    """Tasks by who solves them, each group in an order drawn for the round, pools in turn."""
    scores = _by_task(view)
    lost, unsolved, solved = [], [], []
    for task in _shuffled(view, scores):
        own = next((one for one in scores[task] if one.candidate == view.parent), None)
        top = max(scores[task], key=lambda one: one.score)
        if own is not None and own.score >= _SOLVED:
            solved.append(own)
        elif top.score < _SOLVED:
            unsolved.append(own or top)
        elif own is not None:
            lost.append(Contrast(own, top))
    return Tasks(
        best=view.parent,
        tried=sum(any(one.candidate == view.parent for one in scores[task]) for task in scores),
        lost=tuple(lost),
        unsolved=tuple(unsolved),
        solved=tuple(solved),
    )


def failures(view: View, most: int) -> str:
    """The failures with their traces, as many as fit."""
    tasks = sort_tasks(view)
    if not tasks.tried:
        return clip("The best candidate has no scores yet.", most)
    head = (
        f"{tasks.best} was scored on {tasks.tried} of {len(view.tasks)} tasks. It solves "
        f"{len(tasks.solved)}, and fails {len(tasks.lost)} that another candidate solves. No "
        f"candidate solves {len(tasks.unsolved)} of the tasks that were tried.{_by_pool(view)}"
    )
    unsolved, solved = ([(one,) for one in group] for group in (tasks.unsolved, tasks.solved))
    lost = f"Tasks that {tasks.best} fails and another candidate solves"
    parts = [
        Part(0.60, partial(_filled, view, lost, tasks.lost, None)),
        Part(0.30, partial(_filled, view, "Tasks that no candidate solves", unsolved, None)),
        Part(0.10, partial(_filled, view, f"Tasks that {tasks.best} solves", solved, _FEW)),
    ]
    texts = [clip(head, most), *fitted(parts, max(0, most - size(head) - 2))]
    return clip("\n\n".join(filter(None, texts)), most)


def _filled(
    view: View, title: str, groups: Sequence[Sequence[Scored]], most_shown: int | None, most: int
) -> str:
    """The tasks that fit, each with a fair share of the bytes, and the number of the others."""
    head = f"### {title}"
    room = most - size(head) - 60
    if not groups or room < _LEAST:
        return ""
    shown: list[str] = []
    for trials in groups[:most_shown]:
        each = min(room, _TRACE * len(trials))
        if each < _LEAST * len(trials):
            break
        shown.append(_task(view, trials, each - 2))
        room -= size(shown[-1]) + 2
    more = len(groups) - len(shown)
    rest = [f"… {more:,} more of these tasks …"] if more else []
    return "\n\n".join([head, *shown, *rest])


def _task(view: View, trials: Sequence[Scored], most: int) -> str:
    task = trials[0].task
    pool = view.pools.get(task, "")
    head = f"#### {task} ({pool})" if pool else f"#### {task}"
    room = (most - size(head)) // len(trials)
    shown = []
    for trial in trials:
        title = f"{trial.candidate} scores {trial.score:g}:"
        trace = _quoted(view.trace(trial.candidate, task), room - size(title) - 2)
        shown.append(f"{title}\n{trace}")
    return clip("\n".join([head, *shown]), most)


def _quoted(trace: str | None, most: int) -> str:
    text = shortened(trace, most)
    marks = 2 * (text.count("\n") + 1)
    if size(text) + marks > most:
        text = shortened(trace, most - marks)
    return "\n".join(f"> {row}" for row in text.split("\n"))


def _by_task(view: View) -> dict[str, list[Scored]]:
    """The scores on each task in the order of proposal, without missing ones."""
    scores: dict[str, list[Scored]] = {}
    for standing in view.standings:
        for task, score in standing.outcomes.items():
            if not isinstance(score, Missing):
                scores.setdefault(task, []).append(Scored(task, standing.candidate.name, score))
    return scores


def _shuffled(view: View, tasks: Iterable[str]) -> list[str]:
    """Tasks in an order drawn for the round, pools in turn."""
    names = sorted(tasks)
    order = np.random.default_rng([view.seed, len(names)]).permutation(len(names))
    seen: dict[str, int] = {}
    placed = []
    for position in order:
        pool = view.pools.get(names[position], "")
        seen[pool] = seen.get(pool, 0) + 1
        placed.append((seen[pool], names[position]))
    return [name for _, name in sorted(placed, key=lambda pair: pair[0])]


def _by_pool(view: View) -> str:
    """The mean score on each pool, if there are several."""
    means: dict[str, list[float]] = {}
    for task, known in view.solvability.items():
        if task in view.pools:
            means.setdefault(view.pools[task], []).append(known.mean)
    listed = ", ".join(f"{pool} {sum(m) / len(m):.2f}" for pool, m in sorted(means.items()))
    return f" Mean score of all candidates by pool: {listed}." if listed else ""


class Section(NamedTuple):
    """A section of the context: its title, its share of the bytes, and a function that writes it.

    `write` takes the view and the maximum number of bytes.
    """

    title: str
    share: float
    write: Callable[[View, int], str]


def briefing(view: View, most: int) -> str:
    """The benchmark's description of a harness."""
    return clip(view.briefing.strip(), most)


def parent(view: View, most: int) -> str:
    """The files of the best candidate only."""
    known = any(standing.candidate.name == view.parent for standing in view.standings)
    return clip(files_of(view, view.parent), most) if known else ""


SECTIONS = (
    Section("Briefing", 0.25, briefing),
    Section("Files of the best candidates", 0.30, sources),
    Section("Failures", 0.25, failures),
    Section("Leaderboard", 0.15, leaderboard),
    Section("Refused candidates", 0.05, refused),
)
"""The sections of a proposal, in order of importance."""
FOR_REPAIR = (SECTIONS[0], Section("A harness that passes the check", 0.4, parent))
"""The sections of a repair."""
ORDER = (
    "Briefing",
    "Leaderboard",
    "Refused candidates",
    "Files of the best candidates",
    "Failures",
)
"""The order in the prompt: sections that rarely change come first."""


def pack(view: View, tokens: int, sections: tuple[Section, ...] = SECTIONS) -> str:
    """The context of a proposal, within a number of tokens.

    >>> from coevolve.proposers.base import View
    >>> view = View(round=1, seed=0, tasks=(), standings=(), best=None, parent="", read=bytes,
    ...     trace=lambda candidate, task: None, briefing="A harness answers questions.")
    >>> print(pack(view, 100))
    # Briefing
    <BLANKLINE>
    A harness answers questions.
    <BLANKLINE>
    # Leaderboard
    <BLANKLINE>
    This is round 1. There are no candidates yet.
    <BLANKLINE>
    # Failures
    <BLANKLINE>
    The best candidate has no scores yet.
    """
    texts = fitted([_writer(section, view) for section in sections], BYTES * tokens)
    titled = dict(zip((section.title for section in sections), texts, strict=True))
    rank = {title: place for place, title in enumerate(ORDER)}
    shown = sorted(titled, key=lambda title: rank.get(title, len(rank)))
    return clip("\n\n".join(titled[title] for title in shown if titled[title]), BYTES * tokens)


def _writer(section: Section, view: View) -> Part:
    head = f"# {section.title}\n\n"

    def write(most: int) -> str:
        text = section.write(view, most - size(head)) if most > size(head) else ""
        return f"{head}{text}" if text.strip() else ""

    return Part(section.share, write)
