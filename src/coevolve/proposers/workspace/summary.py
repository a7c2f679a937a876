"""The pages that an agent reads first: `SUMMARY.md` and `tasks.md`."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from coevolve.formatting import (
    CLIPPED,
    difference,
    estimate,
    interval,
    is_clipped,
    plural,
    short,
    tasks_seen,
    visible,
)
from coevolve.views.questions import Row, scored

_TOP = 20
_ROUNDS = 3
_OF_A_ROUND = 12
_FAILED = 8
_COMPONENTS = 15
_MOST_TASKS = 60


def code(text: str) -> str:
    r"""A name or id in Markdown, safe in a table.

    >>> code("a|b"), code("one\ntwo")
    ('`a¦b`', '`one two`')
    """
    return f"`{_line(text).replace('`', chr(39))}`"


def quoted(text: str, most: int = 180) -> str:
    r"""A text in one line of Markdown, safe in a table; it contains no link, image or HTML.

    >>> quoted("Shorter | better,\nI think."), quoted("![x](http://x) <b>")
    ('Shorter ¦ better, I think.', '!\\[x](http://x) \\<b>')
    """
    return re.sub(r"\\(?=[\\\[<`])|[\[<`]", r"\\\g<0>", short(_line(text), most))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    rule = "|" + "---|" * len(head)
    return [f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]


def below(text: str, level: int) -> str:
    r"""Markdown with its headings moved down, the highest to a level.

    >>> below("# Harness\nText\n## Rules", 3)
    '### Harness\nText\n#### Rules'
    """
    lines, fence, headings = text.strip().splitlines(), "", []
    for number, line in enumerate(lines):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and re.match(r"#{1,6} ", line):
            headings.append(number)
    depth = level - min((len(lines[n].split()[0]) for n in headings), default=level)
    for number in headings:
        lines[number] = "#" * depth + lines[number]
    return "\n".join(lines)


def _line(text: str) -> str:
    return visible(" ".join(text.replace("|", "¦").split()))


def tasks_page(index: Row) -> str:
    """`tasks.md`: tasks on which candidates differ, unsolved tasks, and solved ones."""
    return "\n".join(_lines(index["tasks"]))


def groups(tasks: list[Row]) -> dict[str, list[Row]]:
    """Tasks by the outcomes of earlier candidates, the most informative first."""
    tried = [task for task in tasks if task["mean"] is not None]
    mixed = [task for task in tried if 0 < task["mean"] < 1]
    return {
        "mixed": sorted(mixed, key=lambda task: abs(task["mean"] - 0.5)),
        "never": sorted(
            (task for task in tried if task["mean"] == 0),
            key=lambda task: -int(task["candidates"]),
        ),
        "always": [task for task in tried if task["mean"] == 1],
        "untried": [task for task in tasks if task["mean"] is None],
    }


def _lines(tasks: list[Row]) -> Iterator[str]:
    found = groups(tasks)
    yield "# Tasks"
    yield ""
    yield (
        "The mean score of each task and the number of candidates evaluated on it. A mean over "
        "two candidates is not reliable. `tasks.json` has all tasks."
    )
    pages = {
        "mixed": "Solved by some candidates: compare their traces",
        "never": "Solved by no candidate",
        "always": "Solved by all candidates: a new candidate should solve them too",
        "untried": "Not evaluated yet",
    }
    for name, heading in pages.items():
        if found[name]:
            yield from ("", f"## {heading}", "", f"{plural(len(found[name]), 'task')}.", "")
            yield from _listed(found[name])


def _listed(tasks: list[Row]) -> Iterator[str]:
    pools = any(task["pool"] for task in tasks)
    yield f"| task |{' pool |' if pools else ''} mean | candidates |"
    yield f"|---|{'---|' if pools else ''}---|---|"
    for task in tasks[:_MOST_TASKS]:
        mean = "-" if task["mean"] is None else f"{task['mean']:.2f}"
        pool = f" {code(task['pool'])} |" if pools else ""
        yield f"| {code(task['task'])} |{pool} {mean} | {task['candidates']} |"
    if len(tasks) > _MOST_TASKS:
        yield ""
        yield f"{len(tasks) - _MOST_TASKS} more: `coevolve query tasks`."


def summary(index: Row) -> str:
    """`SUMMARY.md`: the best, the leaderboard, the last rounds, what failed and what was tried."""
    rows: list[Row] = index["candidates"]
    parts = (_state(index), _best(index), _board(rows), _rounds(rows), _failed(rows), _tried(rows))
    return "\n".join(line for part in parts for line in part)


def _state(index: Row) -> Iterator[str]:
    rows, found = index["candidates"], groups(index["tasks"])
    status = Counter(row["status"] for row in rows if row["round"])
    new = sum(status.values())
    yield f"# The search before round {index['round']}"
    yield ""
    counts = ", ".join(f"{number} {name}" for name, number in sorted(status.items()))
    yield (
        f"{plural(len(rows) - new, 'starting harness', 'starting harnesses')} and "
        f"{plural(new, 'candidate')}{f' ({counts})' if counts else ''}. Of "
        f"{plural(len(index['tasks']), 'task')}, {len(found['always'])} were solved by all "
        f"candidates evaluated on them, {len(found['mixed'])} by some or in part, "
        f"{len(found['never'])} by none; {len(found['untried'])} were not evaluated yet "
        "(`tasks.md`)."
    )
    missing = Counter(o["missing"] for r in rows for o in r["outcomes"].values() if o["missing"])
    if missing:
        why = "; ".join(f"{quoted(reason, 100)} ({n})" for reason, n in missing.most_common(3))
        yield f"{plural(sum(missing.values()), 'outcome')} missing (not 0): {why}."


def _best(index: Row) -> Iterator[str]:
    rows = {row["name"]: row for row in index["candidates"]}
    row, best = rows.get(index["parent"]), index["best"]
    if row is None:
        return
    why = f": {quoted(best['why'], 400)}" if best and best["why"] else ""
    yield from ("", "## The best so far", "")
    yield f"{code(row['name'])}, {_estimate(row)}. Its files: `{row['folder']}/files/`."
    if best and best["better_start"]:
        yield (
            f"It is a starting harness: no candidate has a higher {_word(row)} yet. The best "
            f"candidate is {code(best['candidate'])}{why}."
        )
    elif why:
        yield f"Reason{why}."
    if best and best["tied_with"]:
        yield f"Tied with {', '.join(map(code, best['tied_with']))}."
    if row["hypothesis"]:
        yield f"Hypothesis: {quoted(row['hypothesis'], 600)}"


def _board(rows: list[Row]) -> Iterator[str]:
    ranked = sorted((row for row in rows if row["rank"]), key=lambda row: int(row["rank"]))
    yield from ("", "## Leaderboard", "")
    if not ranked:
        yield "No candidate has a score yet."
        return
    yield _legend(ranked[:_TOP])
    yield ""
    head = ["#", "candidate", "round", "kind", *_columns(ranked[0]), "delta", "tasks"]
    yield from table([*head, "hypothesis"], [_cells(row) for row in ranked[:_TOP]])
    if len(ranked) > _TOP:
        yield f"\n{len(ranked) - _TOP} more: `coevolve query top {min(len(ranked), 50)}`."


def _legend(ranked: list[Row]) -> str:
    """What the columns of the leaderboard are."""
    if scored(ranked[0]) == "mean_score":
        return (
            "Mean scores; `delta` is the difference to the best score before the candidate's "
            "round."
        )
    marked = any(is_clipped(row["estimate"]) for row in ranked)
    return (
        "Estimates of the score on all tasks, ± standard error; `delta` is the difference to the "
        "best estimate before the candidate's round. Where intervals overlap widely, the order "
        f"is not reliable.{f' {CLIPPED}' if marked else ''}"
    )


def _rounds(rows: list[Row]) -> Iterator[str]:
    last = sorted({row["round"] for row in rows if row["round"]})
    if not last:
        return
    yield from ("", "## Rounds", "", _records(rows))
    for number in reversed(last[-_ROUNDS:]):
        made = [row for row in rows if row["round"] == number]
        yield from ("", f"### Round {number}", "")
        for row in made[:_OF_A_ROUND]:
            after = f" from {', '.join(map(code, row['parents']))}" if row["parents"] else ""
            yield f"- {code(row['name'])}{after}: {_estimate(row)}. {quoted(row['hypothesis'])}"
        if len(made) > _OF_A_ROUND:
            yield f"- and {len(made) - _OF_A_ROUND} more"
    if len(last) > _ROUNDS:
        yield f"\n{plural(len(last) - _ROUNDS, 'earlier round')}: `coevolve query top 50`."


def _records(rows: list[Row]) -> str:
    """The candidates that were better than all earlier ones, by their present estimates."""
    held = [row for row in rows if row["delta"] is not None and row["delta"] > 0]
    if not held:
        return "No candidate was better than the best before its round."
    steps = [
        f"{code(row['name'])} {difference(row['delta'])} in round {row['round']}" for row in held
    ]
    more = f"{len(steps) - 10} earlier candidates, " if len(steps) > 10 else ""
    stale = max(row["round"] for row in rows) - held[-1]["round"]
    since = f" No improvement in the {plural(stale, 'round')} since." if stale else ""
    return f"Improvements: {more}{', '.join(steps[-10:])}.{since}"


def _failed(rows: list[Row]) -> Iterator[str]:
    refused = [row for row in rows if row["status"] == "refused"]
    lost = [row for row in rows if row["delta"] is not None and row["delta"] < 0]
    lost.sort(key=lambda row: float(row["delta"]))
    if refused or lost:
        yield from ("", "## Failures", "")
    if refused:
        yield f"{plural(len(refused), 'candidate')} refused before evaluation:"
        yield ""
        for row in refused[-_FAILED:]:
            yield f"- {code(row['name'])} (round {row['round']}): {quoted(row['reason'], 300)}"
        yield ""
    if lost:
        yield "Largest losses against the best before their round:"
        yield ""
        for row in lost[:_FAILED]:
            yield f"- {code(row['name'])} {difference(row['delta'])}: {quoted(row['hypothesis'])}"


def _tried(rows: list[Row]) -> Iterator[str]:
    """The components of candidates, with the best candidate of each."""
    uses = Counter(part for row in rows for part in dict.fromkeys(row["components"]))
    if not uses:
        return
    most = [part for part, _ in uses.most_common(_COMPONENTS)]
    yield from ("", "## Components tried", "")
    cells = [_used(part, [row for row in rows if part in row["components"]]) for part in most]
    yield from table(("component", "candidates", "best candidate", "last round"), cells)
    if len(uses) > _COMPONENTS:
        yield f"\nand {len(uses) - _COMPONENTS} less frequent ones."


def _used(part: str, rows: list[Row]) -> tuple[str, ...]:
    """The row of a component."""
    ranked = [row for row in rows if row["rank"]]
    best = min(ranked, key=lambda row: int(row["rank"]), default=None)
    shown = f"{code(best['name'])} {estimate(best[scored(best)])}" if best else "none evaluated"
    return quoted(part, 60), str(len(rows)), shown, str(max(row["round"] for row in rows))


def _cells(row: Row) -> tuple[str, ...]:
    found = row[scored(row)]
    return (
        str(row["rank"]),
        code(row["name"]),
        str(row["round"] or "start"),
        row["kind"],
        *_columns(row).values(),
        difference(row["delta"]),
        tasks_seen(found),
        quoted(row["hypothesis"], 140),
    )


def _columns(row: Row) -> dict[str, str]:
    """The score of a candidate by the headings of the leaderboard."""
    found = row[scored(row)]
    if scored(row) == "mean_score":
        return {"score": estimate(found)}
    return {"estimate": estimate(found), "interval": interval(found)}


def _word(row: Row) -> str:
    return "estimate" if scored(row) == "estimate" else "score"


def _estimate(row: Row) -> str:
    found = row[scored(row)]
    if found is None:
        return f"{row['status']}{': ' if row['reason'] else ''}{quoted(row['reason'])}".rstrip(".")
    delta = "" if row["delta"] is None else f", delta {difference(row['delta'])}"
    return f"{_word(row)} {estimate(found)} ({tasks_seen(found)} tasks{delta})"
