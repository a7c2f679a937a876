"""The context of a prompt, packed to a budget of tokens.

A task without a score is no failure: it is left out, wherever it would count as one.

Every section has a share of the room that is its own; what one does not need goes to the others,
the most important first. What does not fit is clipped where it stands, and counted there.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coevolve.core.estimators import Estimate
from coevolve.core.outcomes import Missing
from coevolve.proposers.base import Standing, View
from coevolve.search.candidate import Files
from coevolve.views import formatting

BYTES = 3
"""Of a token, roughly: fewer than code and English have, and a whole character of Chinese."""


def tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few.

    A model's own count takes seconds or a connection, and need not be had.

    >>> tokens("def answer(question):")
    7
    """
    return -(-size(text) // BYTES)


def size(text: str) -> int:
    """The bytes of a text, by which it is clipped."""
    return len(text.encode(errors="replace"))


def clip(text: str, most: int) -> str:
    """A text of that many bytes at most: of a longer one its two ends.

    >>> clip("x" * 5_000, 40)
    'xxxxxxx … 4,986 characters … xxxxxxx'
    """
    if size(text) <= most:
        return text
    room = most - size(_gap(len(text)))
    if room < 2:
        return clip_end(text, most)
    start, end = _first(text, room - room // 2), _last(text, room // 2)
    return f"{start}{_gap(len(text) - len(start) - len(end))}{end}"


def clip_end(text: str, most: int) -> str:
    """The beginning of a text, with a mark if that is not all of it.

    >>> clip_end("because the nearest example belongs last", 14)
    'because the…'
    """
    if size(text) <= most:
        return text
    return f"{_first(text, most - size('…')).rstrip()}…" if most >= size("…") else ""


def line(text: str, most: int) -> str:
    r"""A text on one line, clipped at its end.

    >>> line(" two\n lines ", 80)
    'two lines'
    """
    return clip_end(" ".join(text.split()), most)


def _gap(characters: int) -> str:
    return f" … {characters:,} characters … "


def _first(text: str, most: int) -> str:
    return text.encode(errors="replace")[: max(most, 0)].decode(errors="ignore")


def _last(text: str, most: int) -> str:
    data = text.encode(errors="replace")
    return data[len(data) - max(most, 0) :].decode(errors="ignore")


_BETWEEN = 2
"""Bytes of the empty line between two texts."""


class Part(NamedTuple):
    """A text to be: its own share of the room, and who writes it in so many bytes at most."""

    share: float
    write: Callable[[int], str]


def fitted(parts: Sequence[Part], room: int) -> list[str]:
    """The texts, each as long as it likes if all fit, with an empty line between any two.

    Otherwise each has its share, and what one does not need goes to the others, in their order.

    >>> def word(letter):
    ...     return lambda most: letter * min(most, 20)
    >>> fitted([Part(0.5, word("a")), Part(0.3, word("b")), Part(0.2, lambda most: "c")], 36)
    ['aaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbb', 'c']
    """
    whole = [part.write(room) for part in parts]
    wanted = [size(text) + _BETWEEN if text else 0 for text in whole]
    granted = [min(want, int(part.share * room)) for part, want in zip(parts, wanted, strict=True)]
    for place, want in enumerate(wanted):
        granted[place] += max(0, min(room - sum(granted), want - granted[place]))
    return [
        text if given >= want else part.write(max(0, given - _BETWEEN))
        for part, text, want, given in zip(parts, whole, wanted, granted, strict=True)
    ]


_LENGTHS = (4_000, 2_000, 1_000, 500, 250, 120, 60)
_MOST_ITEMS = 40


def shortened(trace: str | None, most: int) -> str:
    """A trace as lines of that many bytes at most.

    >>> print(shortened('{"trace": {"question": "6 x 7?", "calls": [{"answer": "42"}]}}', 200))
    question: 6 x 7?
    calls:
      - answer: 42
    >>> shortened(None, 200)
    '(no trace was kept)'
    """
    if trace is None:
        return clip("(no trace was kept)", most)
    try:
        value = json.loads(trace)
    except (ValueError, RecursionError):
        return clip(trace, most)
    if isinstance(value, dict) and isinstance(value.get("trace"), dict):
        value = {**value.pop("trace"), **value}  # what was printed and raised comes last
    text = trace
    for longest in _LENGTHS:
        try:
            text = "\n".join(_lines(value, longest))
        except RecursionError:
            break
        if size(text) <= most:
            break
    return clip(text, most)


def _lines(value: Any, longest: int, indent: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _entry(f"{indent}{key}:", part, longest, indent)
    elif isinstance(value, list):
        for part in value[:_MOST_ITEMS]:
            inner = list(_lines(part, longest, f"{indent}  "))
            if inner:
                yield f"{indent}- {inner[0].removeprefix(f'{indent}  ')}"
                yield from inner[1:]
        if len(value) > _MOST_ITEMS:
            yield f"{indent}… {len(value) - _MOST_ITEMS:,} more …"
    else:
        yield f"{indent}{_scalar(value, longest)}"


def _entry(head: str, part: Any, longest: int, indent: str) -> Iterator[str]:
    if part is None or part in ("", [], {}):
        return
    if isinstance(part, dict | list):
        yield head
        yield from _lines(part, longest, f"{indent}  ")
        return
    text = _scalar(part, longest)
    if "\n" not in text:
        yield f"{head} {text}"
        return
    yield f"{head} |"
    yield from (f"{indent}  {line}" for line in text.split("\n"))


def _scalar(value: Any, longest: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(text.strip("\n"), longest)


_HYPOTHESIS = 300
_REASON = 400
_REST = 200
"""Bytes to name what is not shown in."""


def ranked(view: View) -> list[Standing]:
    """Candidates with an estimate, the best first, the earliest of equals first."""
    known = [standing for standing in view.standings if standing.estimate is not None]
    return sorted(known, key=lambda s: -_value(s.estimate))


def leaderboard(view: View, most: int) -> str:
    """Every candidate with its estimate, the best first; the worst go first if room is short."""
    rows = [_row(view, standing) for standing in ranked(view)]
    waiting = [s for s in view.standings if s.estimate is None and s.status != "refused"]
    rows += [f"- {s.candidate.name}: not scored yet{_descent(s)}{_why(s)}" for s in waiting]
    return fill([_progress(view)], rows, most, "candidates that score less or are not scored")


def refused(view: View, most: int) -> str:
    """Candidates that failed their check, the latest first, each with the reason."""
    rows = [
        f"- {s.candidate.name} (round {s.candidate.round}): {line(s.reason, _REASON)}{_why(s)}"
        for s in reversed(view.standings)
        if s.status == "refused"
    ]
    return fill([], rows, most, "refused candidates")


def sources(view: View, most: int) -> str:
    """Files of the best candidates: the parent's in any case, then as many as fit."""
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
    """The files of a candidate as a reply would have them."""
    estimate = view.standing(name).estimate
    scored = "" if estimate is None else f", {_scored(estimate)}"
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
    """Lines as far as they fit; how many of `what` are left out stands at the end."""
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
    """Where the search stands: which candidate is the best, and since when."""
    known = [s for s in view.standings if s.candidate.name == view.parent]
    if not known:
        return f"This is round {view.round}; there are no candidates yet."
    if known[0].estimate is None:
        return f"This is round {view.round}; nothing has a score yet."
    born = known[0].candidate.round
    said = f"This is round {view.round}. The best so far is {view.parent}, "
    said += f"of round {born}." if born else "a starting harness."
    since = view.round - 1 - born
    return f"{said} No candidate of the last {since} rounds beat it." if since > 1 else said


def _row(view: View, standing: Standing) -> str:
    assert standing.estimate is not None
    best = ", the best so far" if standing.candidate.name == view.parent else ""
    scored = _scored(standing.estimate)
    delta = standing.delta
    change = "" if delta is None else f", {delta:+.3f} on the best before its round"
    name = standing.candidate.name
    return f"- {name}{best}: {scored}{change}{_descent(standing)}{_why(standing)}"


def _scored(estimate: Estimate) -> str:
    """An estimate with its interval; an exact score has none."""
    shown = formatting.score(estimate.value)
    if estimate.exact:
        return f"{shown} (all {estimate.pool_size} tasks)"
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
    said = standing.candidate.hypothesis
    return f"\n  hypothesis: {line(said, _HYPOTHESIS)}" if said else ""


def _listed(path: str, content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"{path}: {len(content):,} bytes that are no text"
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
"""A score from which a task counts as solved."""
_TRACE = 1_500
"""Bytes of a trace at most: many failures in short tell more than a few at length."""
_FEW = 3
"""Tasks that the best candidate solves which are shown, lest they be broken."""
_LEAST = 300
"""Bytes below which a trace says nothing."""


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
    """The tasks that the best candidate was scored on, sorted by what others make of them."""

    best: str
    tried: int
    lost: tuple[Contrast, ...]
    unsolved: tuple[Scored, ...]
    solved: tuple[Scored, ...]


def sort_tasks(view: View) -> Tasks:
    """What the best candidate fails and others solve, what nobody solves, what it solves.

    Nobody solves a task, too, that the best candidate was not tried on. Within each, tasks of all
    pools by turns, in an order of the round's own.
    """
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
        return clip("No task has a score of the best candidate yet.", most)
    head = (
        f"{tasks.best} was scored on {tasks.tried} of {len(view.tasks)} tasks: it solves "
        f"{len(tasks.solved)}, and fails {len(tasks.lost)} that another candidate solves. "
        f"{len(tasks.unsolved)} tasks were tried and solved by no candidate.{_by_pool(view)}"
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
    """Tasks as far as they fit, each of a fair length; those left out are counted."""
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
    rest = [f"… {more:,} more such tasks …"] if more else []
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
    """The scores on each task, in the order of proposal; what is missing is no score."""
    scores: dict[str, list[Scored]] = {}
    for standing in view.standings:
        for task, score in standing.outcomes.items():
            if not isinstance(score, Missing):
                scores.setdefault(task, []).append(Scored(task, standing.candidate.name, score))
    return scores


def _shuffled(view: View, tasks: Iterable[str]) -> list[str]:
    """Tasks in an order drawn for the round, those of all pools by turns."""
    names = sorted(tasks)
    order = np.random.default_rng([view.seed, len(names)]).permutation(len(names))
    turns: dict[str, int] = {}
    placed = []
    for position in order:
        pool = view.pools.get(names[position], "")
        turns[pool] = turns.get(pool, 0) + 1
        placed.append((turns[pool], names[position]))
    return [name for _, name in sorted(placed, key=lambda pair: pair[0])]


def _by_pool(view: View) -> str:
    """How often candidates solve the tasks of each pool, where there are several."""
    means: dict[str, list[float]] = {}
    for task, known in view.solvability.items():
        if task in view.pools:
            means.setdefault(view.pools[task], []).append(known.mean)
    said = ", ".join(f"{pool} {sum(m) / len(m):.2f}" for pool, m in sorted(means.items()))
    return f" Mean score of all candidates by pool: {said}." if said else ""


class Section(NamedTuple):
    """A part of the context: its title, its own share of the room, and who writes it.

    `write` takes the view and a number of bytes, and returns a text that is no longer.
    """

    title: str
    share: float
    write: Callable[[View, int], str]


def briefing(view: View, most: int) -> str:
    """What the benchmark says a harness is."""
    return clip(view.briefing.strip(), most)


def parent(view: View, most: int) -> str:
    """The files of the best candidate, and of no other."""
    known = any(standing.candidate.name == view.parent for standing in view.standings)
    return clip(files_of(view, view.parent), most) if known else ""


SECTIONS = (
    Section("Briefing", 0.25, briefing),
    Section("Files of the best candidates", 0.30, sources),
    Section("Failures", 0.25, failures),
    Section("Leaderboard", 0.15, leaderboard),
    Section("Refused candidates", 0.05, refused),
)
"""In order of importance, in which they get what others leave."""
FOR_REPAIR = (SECTIONS[0], Section("A harness that passes the check", 0.4, parent))
"""All that is needed to mend a candidate."""
ORDER = (
    "Briefing",
    "Leaderboard",
    "Refused candidates",
    "Files of the best candidates",
    "Failures",
)
"""The order in the prompt: what stays the same from round to round comes first."""


def pack(view: View, tokens: int, sections: tuple[Section, ...] = SECTIONS) -> str:
    """The context of a proposal in at most that many tokens.

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
    This is round 1; there are no candidates yet.
    <BLANKLINE>
    # Failures
    <BLANKLINE>
    No task has a score of the best candidate yet.
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
