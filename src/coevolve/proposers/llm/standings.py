"""What the run knows, in the words of a prompt: the leaderboard, the files, what was refused."""

from collections.abc import Iterable

from coevolve.core.estimate import Estimate
from coevolve.proposers.base import Standing, View
from coevolve.proposers.llm.clipping import clip, line, size
from coevolve.search.candidate import Files

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
    """An estimate with its interval, which is nothing if all tasks were tried."""
    shown = min(max(estimate.value, 0.0), 1.0)
    tasks = f"{estimate.tasks} of {estimate.pool_size} tasks"
    if estimate.exact:
        return f"{shown:.3f} (all {estimate.pool_size} tasks)"
    if estimate.low is None or estimate.high is None:
        return f"{shown:.3f} (interval unknown, {tasks})"
    low, high = max(estimate.low, 0.0), min(estimate.high, 1.0)
    return f"{shown:.3f} ({low:.3f} to {high:.3f}, {tasks})"


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
