"""The pages of several runs: the list, runs side by side, and protocols on recorded outcomes."""

from collections.abc import Iterator, Mapping, Sequence

from coevolve.dashboard.page_frame import (
    Ask,
    Page,
    address,
    choices,
    empty,
    figure,
    heading,
    link,
    notice,
    table,
)
from coevolve.dashboard.run_catalogue import Catalogue, Listed
from coevolve.errors import CoevolveError
from coevolve.figures import comparison_figure, replay_figure
from coevolve.formatting import count, dollars, duration, estimate, markup, score
from coevolve.views.run_comparison import RunComparison, compare_runs
from coevolve.views.timeline import Snapshot

AXES = {
    "evaluations": "evaluations",
    "trials": "all trials",
    "tokens": "tokens",
    "dollars": "dollars",
    "hours": "hours",
}
MOST_COMPARED = 8
"""Runs side by side; a reader cannot tell more lines apart."""


def runs_page(catalogue: Catalogue, ask: Ask) -> Page:
    """All runs, with their states, to open one or to compare some."""
    found = catalogue.listed()
    return Page(
        title="Runs",
        parts={"runs": _runs(found), "replays": _replays(catalogue)},
    )


def _runs(found: Sequence[Listed]) -> Iterator[str]:
    yield "<h1>Runs</h1>"
    if not found:
        yield empty("There is no run in this folder yet.", "coevolve run FILE.toml")
        return
    yield '<form method="get" action="/compare">'
    yield from table(
        ("", "run", "state", "round", "best", "estimate", "sealed test", "trials", "cost"),
        (_row(one) for one in found),
        "Runs",
        right=("round", "estimate", "sealed test", "trials", "cost"),
        hidden=("round", "sealed test", "trials", "cost"),
    )
    if len(found) > 1:
        most = f'<span class="soft">up to {MOST_COMPARED}</span>'
        yield f'<p><button type="submit">Compare the chosen runs</button> {most}</p>'
    yield "</form>"
    for one in found:
        if one.row["state"] == "unreadable":
            yield notice(f"{one.folder.name}: {one.row['why']}", "error")


def _row(one: Listed) -> list[str]:
    row = one.row
    name = markup(one.folder.name, 80)
    box = (
        f'<input type="checkbox" name="run" value="{markup(one.key)}" aria-label="Compare {name}">'
    )
    kind = {"running": "good", "stopped": "bad", "not finished": "bad", "unreadable": "bad"}
    badge = f'<b class="badge {kind.get(row["state"], "calm")}">{markup(row["state"])}</b>'
    if row["state"] == "unreadable":
        return ["", name, badge, "", "", "", "", "", ""]
    return [
        box,
        link(address(one.key), one.folder.name),
        badge,
        f"{row['round']} of {row['rounds']}",
        markup(row["best"] or "-", 40),
        score(row["score"]),
        score(row["test"]),
        f"{row['trials']:,}",
        dollars(row["dollars"]),
    ]


def _replays(catalogue: Catalogue) -> Iterator[str]:
    if not catalogue.replays:
        return
    yield heading("Replays")
    yield "<ul>"
    for key, path in catalogue.replays.items():
        yield f"<li>{link(f'/replays/{key}', path.name)}</li>"
    yield "</ul>"


def comparison_page(catalogue: Catalogue, ask: Ask, keys: Sequence[str]) -> Page:
    """Some runs side by side, over what they cost."""
    known = catalogue.folders()
    chosen = [key for key in dict.fromkeys(keys) if key in known][:MOST_COMPARED]
    axis = ask.get("axis", tuple(AXES), "evaluations")
    snapshots: dict[str, Snapshot] = {}
    unknown = [key for key in dict.fromkeys(keys) if key not in known]
    troubles = [f"There is no run {key[:80]!r}." for key in unknown[:MOST_COMPARED]]
    for key in chosen:
        feed = catalogue.feed(key)
        if feed is None:
            continue
        try:
            snapshots[_label(known[key].name, snapshots)] = feed.snapshot()
        except CoevolveError as error:
            troubles.append(f"{known[key].name}: {error}")
    return Page(
        title="Comparison",
        parts={
            "chosen": _chosen(known, chosen, axis, troubles),
            "curves": _curves(snapshots, ask, axis, chosen),
        },
    )


def _label(name: str, taken: dict[str, Snapshot]) -> str:
    label, number = name, 2
    while label in taken:
        label, number = f"{name} ({number})", number + 1
    return label


def _chosen(
    known: Mapping[str, object], chosen: Sequence[str], axis: str, troubles: Sequence[str]
) -> Iterator[str]:
    yield "<h1>Runs side by side</h1>"
    for text in troubles:
        yield notice(text, "error")
    if len(known) < 2:
        yield notice("There is one run only. Give `coevolve ui` a folder with several.")
    yield '<form class="boxes" method="get" action="/compare">'
    yield f'<input type="hidden" name="axis" value="{axis}">'
    yield "<fieldset><legend>Runs</legend>"
    for key in known:
        here = " checked" if key in chosen else ""
        box = f'<input type="checkbox" name="run" value="{markup(key)}"{here}>'
        yield f"<label>{box} {markup(key)}</label>"
    yield '</fieldset><button type="submit">Compare</button></form>'


def _curves(
    snapshots: dict[str, Snapshot], ask: Ask, axis: str, chosen: Sequence[str]
) -> Iterator[str]:
    if not snapshots:
        yield empty(f"Tick up to {MOST_COMPARED} runs above, then press Compare.")
        return
    found = compare_runs(snapshots)
    runs = "".join(f"run={markup(key)}&" for key in chosen)
    yield from choices("Against", "axis", AXES, axis, lambda value: f"/compare?{runs}axis={value}")
    yield from figure(comparison_figure(found, axis=axis, width=ask.width), titled=False)
    yield from _compared(found)


def _compared(found: RunComparison) -> Iterator[str]:
    yield heading("Results")
    yield from table(
        (
            "run", "protocol", "seed", "best", "estimate", "all tasks", "sealed test",
            "P(best)", "evaluations", "trials", "tokens", "cost", "time",
        ),
        (
            (
                markup(run.label, 60),
                markup(run.protocol, 40),
                str(run.seed),
                markup(run.best or "-", 40),
                "-" if run.estimate is None else markup(estimate(run.estimate)),
                score(run.full),
                score(run.test),
                "-" if run.probability is None else f"{run.probability:.0%}",
                f"{run.evaluations:,}",
                f"{run.trials:,}",
                count(run.tokens),
                dollars(run.dollars),
                duration(3600 * run.hours),
            )
            for run in found.runs
        ),
        "Results of the runs",
        right=(
            "seed", "estimate", "all tasks", "sealed test", "P(best)", "evaluations",
            "trials", "tokens", "cost", "time",
        ),
        hidden=("seed", "P(best)", "evaluations", "tokens", "cost", "time", "all tasks"),
    )  # fmt: skip


def replay_page(catalogue: Catalogue, ask: Ask, key: str) -> Page:
    """Protocols on recorded outcomes, from a file of `coevolve replay --json`."""
    found = catalogue.replay(key)
    name = markup(catalogue.replays[key].name, 80)
    body = [
        f'<h1>{name} <span class="soft">protocols on recorded outcomes</span></h1>',
        *figure(replay_figure(found, width=ask.width)),
    ]
    return Page(title="Replay", parts={"replay": body})
