"""Where a search stands, as the pages an agent reads."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from coevolve.proposers.workspace.query.printing import interval, score, short
from coevolve.proposers.workspace.query.source import Row


def plural(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> plural(1, "candidate"), plural(1200, "task")
    ('1 candidate', '1,200 tasks')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def minutes(seconds: float) -> str:
    """A time limit in words.

    >>> minutes(2400), minutes(90), minutes(60), minutes(7200)
    ('40 minutes', '90 seconds', '60 seconds', '2 hours')
    """
    if seconds < 120:
        return plural(max(int(seconds), 0), "second")
    if seconds < 7200:
        return plural(int(seconds / 60), "minute")
    return f"{seconds / 3600:.2g} hours"


def code(text: str) -> str:
    r"""A name or id in a line of Markdown, also in a table.

    >>> code("a|b"), code("one\ntwo")
    ('`a¦b`', '`one two`')
    """
    return f"`{_line(text).replace('`', chr(39))}`"


def said(text: str, most: int = 180) -> str:
    r"""What somebody wrote, in a line of Markdown.

    >>> said("Shorter | better,\nI think.")
    'Shorter ¦ better, I think.'
    """
    return short(_line(text), most)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    rule = "|" + "---|" * len(head)
    return [f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]


def below(text: str, level: int) -> str:
    r"""Markdown whose highest headings are of a level, so that it fits below another heading.

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
    return " ".join(text.replace("|", "¦").split())


_MOST = 60


def tasks_page(index: Row) -> str:
    """`tasks.md`: which tasks tell candidates apart, which nobody solves, which everybody does."""
    return "\n".join(_lines(index["tasks"]))


def groups(tasks: list[Row]) -> dict[str, list[Row]]:
    """Tasks by what earlier candidates made of them, the most telling first."""
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
        "The mean score of each task over the candidates that were tried on it, and how many "
        "these were. A mean over two candidates says little. `tasks.json` has the same in full."
    )
    pages = {
        "mixed": "Some solve them: here candidates differ, and contrasting traces teach most",
        "never": "Nobody solved them yet",
        "always": "Everybody solved them: a new candidate should, too",
        "untried": "Not tried yet",
    }
    for name, heading in pages.items():
        if found[name]:
            yield from ("", f"## {heading}", "", f"{plural(len(found[name]), 'task')}.", "")
            yield from _listed(found[name])


def _listed(tasks: list[Row]) -> Iterator[str]:
    pools = any(task["pool"] for task in tasks)
    yield f"| task |{' pool |' if pools else ''} mean | candidates |"
    yield f"|---|{'---|' if pools else ''}---|---|"
    for task in tasks[:_MOST]:
        mean = "-" if task["mean"] is None else f"{task['mean']:.2f}"
        pool = f" {code(task['pool'])} |" if pools else ""
        yield f"| {code(task['task'])} |{pool} {mean} | {task['candidates']} |"
    if len(tasks) > _MOST:
        yield ""
        yield f"{len(tasks) - _MOST} more: `coevolve query tasks`."


_TOP = 20
_ROUNDS = 3
_OF_A_ROUND = 12
_FAILED = 8
_COMPONENTS = 15
_HEAD = ("#", "candidate", "round", "kind", "estimate", "interval", "delta", "tasks", "hypothesis")


def summary(index: Row) -> str:
    """`SUMMARY.md`: the best, the leaderboard, the last rounds, what failed and what was tried."""
    rows: list[Row] = index["candidates"]
    parts = (_state(index), _best(index), _board(rows), _rounds(rows), _failed(rows), _tried(rows))
    return "\n".join(line for part in parts for line in part)


def _state(index: Row) -> Iterator[str]:
    rows, found = index["candidates"], groups(index["tasks"])
    status = Counter(row["status"] for row in rows if row["round"])
    new = sum(status.values())
    yield f"# Where the search stands, before round {index['round']}"
    yield ""
    counts = ", ".join(f"{number} {name}" for name, number in sorted(status.items()))
    yield (
        f"{plural(len(rows) - new, 'starting harness', 'starting harnesses')} and "
        f"{plural(new, 'candidate')}{f' ({counts})' if counts else ''}. Of "
        f"{plural(len(index['tasks']), 'task')}, {len(found['always'])} were solved by all who "
        f"tried, {len(found['mixed'])} by some or in part, {len(found['never'])} by nobody; "
        f"{len(found['untried'])} were not tried yet (`tasks.md`)."
    )
    missing = Counter(o["missing"] for r in rows for o in r["outcomes"].values() if o["missing"])
    if missing:
        why = "; ".join(f"{said(reason, 100)} ({n})" for reason, n in missing.most_common(3))
        yield f"{plural(sum(missing.values()), 'outcome')} missing, which is no 0: {why}."


def _best(index: Row) -> Iterator[str]:
    rows = {row["name"]: row for row in index["candidates"]}
    row, best = rows.get(index["parent"]), index["best"]
    if row is None:
        return
    yield from ("", "## The best so far", "")
    yield f"{code(row['name'])}, {_estimate(row)}. Its files: `{row['folder']}/files/`."
    if best and best["better_start"]:
        yield (
            f"It is a starting harness: no candidate is estimated higher yet. The best of them is "
            f"{code(best['candidate'])}: {best['why']}."
        )
    elif best:
        yield f"Why: {said(best['why'], 400)}."
    if best and best["tied_with"]:
        yield f"Tied with {', '.join(map(code, best['tied_with']))}."
    if row["hypothesis"]:
        yield f"Its hypothesis: {said(row['hypothesis'], 600)}"


def _board(rows: list[Row]) -> Iterator[str]:
    ranked = sorted((row for row in rows if row["rank"]), key=lambda row: int(row["rank"]))
    yield from ("", "## Leaderboard", "")
    if not ranked:
        yield "Nothing is evaluated yet."
        return
    yield (
        "Estimates of the score on all tasks, ± standard error; `delta` is against the best known "
        "before the candidate's round. Where intervals overlap widely, the order means little."
    )
    yield ""
    yield from table(_HEAD, [_cells(row) for row in ranked[:_TOP]])
    if len(ranked) > _TOP:
        yield f"\n{len(ranked) - _TOP} more: `coevolve query top {min(len(ranked), 50)}`."


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
            yield f"- {code(row['name'])}{after}: {_estimate(row)}. {said(row['hypothesis'])}"
        if len(made) > _OF_A_ROUND:
            yield f"- and {len(made) - _OF_A_ROUND} more"
    if len(last) > _ROUNDS:
        yield f"\n{plural(len(last) - _ROUNDS, 'earlier round')}: `coevolve query top 50`."


def _records(rows: list[Row]) -> str:
    """Which candidates were better than all before them, as estimated now."""
    held = [row for row in rows if row["delta"] is not None and row["delta"] > 0]
    if not held:
        return "No candidate was better than the best before it."
    steps = [f"{code(row['name'])} {row['delta']:+.3f} in round {row['round']}" for row in held]
    more = f"{len(steps) - 10} earlier ones, " if len(steps) > 10 else ""
    stale = max(row["round"] for row in rows) - held[-1]["round"]
    since = f" Nothing was better in the {plural(stale, 'round')} since." if stale else ""
    return f"Better than all before their round: {more}{', '.join(steps[-10:])}.{since}"


def _failed(rows: list[Row]) -> Iterator[str]:
    refused = [row for row in rows if row["status"] == "refused"]
    lost = [row for row in rows if row["delta"] is not None and row["delta"] < 0]
    lost.sort(key=lambda row: float(row["delta"]))
    if refused or lost:
        yield from ("", "## What failed", "")
    if refused:
        yield f"{plural(len(refused), 'candidate')} refused before any trial:"
        yield ""
        for row in refused[-_FAILED:]:
            yield f"- {code(row['name'])} (round {row['round']}): {said(row['reason'], 300)}"
        yield ""
    if lost:
        yield "Furthest below the best before their round:"
        yield ""
        for row in lost[:_FAILED]:
            yield f"- {code(row['name'])} {row['delta']:+.3f}: {said(row['hypothesis'])}"


def _tried(rows: list[Row]) -> Iterator[str]:
    """What candidates were made of, and how the best with each did."""
    uses = Counter(part for row in rows for part in dict.fromkeys(row["components"]))
    if not uses:
        return
    most = [part for part, _ in uses.most_common(_COMPONENTS)]
    yield from ("", "## What was tried", "")
    cells = [_used(part, [row for row in rows if part in row["components"]]) for part in most]
    yield from table(("component", "candidates", "best with it", "last in round"), cells)
    if len(uses) > _COMPONENTS:
        yield f"\nand {len(uses) - _COMPONENTS} more, each used at most as often."


def _used(part: str, rows: list[Row]) -> tuple[str, ...]:
    """How candidates with a component did."""
    ranked = [row for row in rows if row["rank"]]
    best = min(ranked, key=lambda row: int(row["rank"]), default=None)
    shown = f"{code(best['name'])} {score(best['estimate'])}" if best else "none evaluated"
    return said(part, 60), str(len(rows)), shown, str(max(row["round"] for row in rows))


def _cells(row: Row) -> tuple[str, ...]:
    estimate = row["estimate"]
    return (
        str(row["rank"]),
        code(row["name"]),
        str(row["round"] or "start"),
        row["kind"],
        score(estimate),
        interval(estimate),
        "" if row["delta"] is None else f"{row['delta']:+.3f}",
        f"{estimate['tasks']}/{estimate['pool_size']}",
        said(row["hypothesis"], 140),
    )


def _estimate(row: Row) -> str:
    if row["estimate"] is None:
        return f"{row['status']}{': ' if row['reason'] else ''}{said(row['reason'])}".rstrip(".")
    delta = "" if row["delta"] is None else f", delta {row['delta']:+.3f}"
    estimate = row["estimate"]
    tasks = f"{estimate['tasks']} of {estimate['pool_size']} tasks"
    return f"estimate {score(estimate)} ({tasks}{delta})"
