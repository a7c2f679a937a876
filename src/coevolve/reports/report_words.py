"""The numbers of a report in words: sentences of the summary, cells of tables."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from coevolve.formatting import (
    count,
    difference,
    dollars,
    duration,
    estimate,
    interval,
    is_exact,
    plural,
    score,
)
from coevolve.views.spend import Range, Savings

Numbers = Mapping[str, Any]
SECTIONS = {
    "progress": ("Progress", ("progress", "certainty")),
    "matrix": ("Outcomes", ("matrix",)),
    "frontier": ("Frontier", ("frontier", "weights")),
    "lineage": ("Descent", ("lineage",)),
    "costs": ("Costs", ("spend", "costs")),
    "failures": ("Failures", ("failures",)),
}
"""The sections with figures: their titles and the names of the figures."""
_SCORES = {"estimate", "low", "high", "all tasks", "test", "difference", "solvability"}
_FINE = {"weight w", "probability π", "better with"}


def headline(found: Numbers) -> str:
    """What won, with its score, in one sentence."""
    winner, value = found["winner"], found["estimate"]
    if winner is None or value is None:
        return "No candidate has a score yet."
    role = "won" if found["chosen"] else "is the best so far"
    if is_exact(value):
        return f"{winner} {role} with {score(value['value'])} on all {found['tasks']:,} tasks."
    limits = interval(value)
    limits = f", {found['level']:.0%} interval {limits}" if limits else ""
    return (
        f"{winner} {role} with an estimated score of {estimate(value)}{limits}, from "
        f"{value['tasks']:,} of {value['pool_size']:,} tasks."
    )


def findings(found: Numbers) -> Iterator[str]:
    """The result beside the starting harnesses, how sure it is, and what it cost: paragraphs."""
    for sentences in ([*_gain(found), *_measured(found)], [*_certain(found)]):
        if sentences:
            yield " ".join(sentences)
    yield _cost(found)
    yield _end(found)


def _gain(found: Numbers) -> Iterator[str]:
    value, base = found["estimate"], found["baseline_score"]
    if value is None or base is None or found["baseline"] == found["winner"]:
        return
    yield (
        f"That is {difference(value['value'] - base)} against the best starting harness, "
        f"{found['baseline']}, which scores {score(base)} on all tasks."
    )


def _measured(found: Numbers) -> Iterator[str]:
    full, test = found["all_tasks"], found["sealed_test"]
    if full is not None:
        yield f"Scored on every task after the choice, it has {score(full)}."
    if test is not None:
        beside = found["baseline_test"]
        other = found["baseline"] != found["winner"] and beside is not None
        compared = f"; {found['baseline']} has {score(beside)}" if other else ""
        tasks = plural(found["test_tasks"], "task")
        yield f"On the sealed test of {tasks} it has {score(test)}{compared}."


def _certain(found: Numbers) -> Iterator[str]:
    if found["winner"] is None or not found["compared"]:
        return
    if found["probability"] is not None:
        yield (
            f"It is the best of all candidates with probability {found['probability']:.0%}; the "
            f"expected loss of choosing it is {found['regret']:.3f}."
        )
    unclear, among = found["open_rivals"], found["compared"]
    if unclear:
        yield f"{unclear} of the {among} candidates compared with it may be better."
    else:
        yield f"None of the {among} candidates compared with it may be better."


def _cost(found: Numbers) -> str:
    parts = []
    savings = found["savings"]
    if savings is None:
        parts.append(f"{plural(found['trials'], 'trial')} in all.")
    else:
        ranges = (Range(savings[n], savings[n]) for n in ("paid", "paid_full", "searched", "full"))
        parts.append(str(Savings(*ranges)))
    spent = [f"{count(found['tokens'])} tokens"] if found["tokens"] else []
    spent += [dollars(found["dollars"])] if found["dollars"] else []
    spent.append(f"{duration(3600 * found['hours'])} of work")
    parts.append(f"It took {', '.join(spent)}.")
    return " ".join(parts)


def _end(found: Numbers) -> str:
    rounds = f"{found['round']} of {plural(found['rounds'], 'round')}"
    made = f"{plural(found['candidates'], 'candidate')}"
    refused = f", {found['refused']} of them refused" if found["refused"] else ""
    if found["phase"] == "ended":
        return f"The run ended ({found['why']}) after {rounds} with {made}{refused}."
    state = f"stopped ({found['why']})" if found["stopped"] else f"is not over ({found['phase']})"
    return f"The run {state} after {rounds} with {made}{refused}."


def facts(found: Numbers) -> Iterator[tuple[str, str]]:
    """Labels and values of the summary."""
    value = found["estimate"]
    if found["winner"] is not None and value is not None:
        yield "winner" if found["chosen"] else "best so far", str(found["winner"])
        yield "estimate", estimate(value)
        yield "all tasks", score(found["all_tasks"])
        yield "sealed test", score(found["sealed_test"])
    if found["baseline"] is not None:
        yield "best starting harness", f"{found['baseline']}, {score(found['baseline_score'])}"
    yield (
        "tasks",
        f"{found['tasks']:,}"
        + (f" and {found['test_tasks']:,} sealed" if found["test_tasks"] else ""),
    )
    yield "trials", f"{found['trials']:,}"
    yield "tokens", count(found["tokens"])
    yield "dollars", dollars(found["dollars"])
    yield "time", duration(3600 * found["hours"])
    zeros, retried = found["zeros"], found["retried"]
    yield "faults", f"{found['missing']:,} missing, {zeros:,} scored 0, {retried:,} repeated"


def provenance(found: Numbers, version: str) -> Iterator[tuple[str, str]]:
    """Where the numbers come from: versions, seed, protocol, benchmark, sessions."""
    yield "coevolve", version
    yield "run", str(found["name"])
    yield "seed", str(found["seed"])
    yield "protocol", str(found["protocol"]["name"])
    for part in ("weighting", "design", "estimator", "allocation", "choice"):
        yield part, _part(found["protocol"].get(part))
    yield "trials per task", str(found["trials"])
    yield "draw per", str(found["draw_per"])
    yield "level of intervals", f"{found['confidence']:.0%}"
    settings = found["settings"]
    yield "rounds", f"{settings['rounds']} of {plural(settings['candidates'], 'candidate')}"
    caps = [f"{name} {cap:,g}" for name, cap in settings["budget"].items() if cap is not None]
    yield "budget", ", ".join(caps) or "no caps"
    for at, one in enumerate(found["sessions"], start=1):
        isolation = f", isolation {one['isolation']}" if one["isolation"] else ""
        yield (
            f"session {at}",
            f"{_moment(one['at'])}, {plural(one['capacity'], 'worker')}{isolation}",
        )
    yield "last event", f"{_moment(found['last'])}, number {found['events'] - 1:,}"
    yield "seal of the journal", str(found["seal"])
    for change in found["changes"]:
        yield "benchmark changed", str(change)


def _part(found: Numbers | None) -> str:
    if not found:
        return "-"
    given = ", ".join(f"{key} {value}" for key, value in found.items() if key != "part")
    return f"{found['part']}({given})" if given else str(found["part"])


def _moment(at: float) -> str:
    if not at:
        return "unknown time"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def cell(column: str, value: Any) -> str:
    """A cell of a table as text.

    >>> cell("estimate", 0.81234), cell("dollars", 0.3), cell("hours", 0.5), cell("tokens", 12345)
    ('0.812', '$0.30', '30m 00s', '12,345')
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if column == "dollars":
        return dollars(value)
    if column == "hours":
        return duration(3600 * value)
    if column == "time":
        return duration(value)
    if column == "difference":
        return f"{value:+.3f}"
    if column in _SCORES:
        return f"{value:.3f}"
    if column in _FINE or (isinstance(value, float) and value != int(value)):
        return f"{value:.4f}"
    return f"{value:,.0f}"


def is_number(value: Any) -> bool:
    """Whether a cell is aligned at the right."""
    return isinstance(value, int | float)


def incomplete(shown: int, whole: int, what: str) -> str:
    """What a reader must know of a list that was cut; empty if it is whole."""
    if shown >= whole:
        return ""
    return f"The first {shown:,} of {whole:,} {what} are shown."
