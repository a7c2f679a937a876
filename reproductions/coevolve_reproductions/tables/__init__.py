"""The tables and figures of the paper, for any finished run or outcome matrix."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from coevolve.analysis.matrix import Series
from coevolve.analysis.replay import Report
from coevolve.errors import InputError, nearest
from coevolve_reproductions.tables import (
    ablation,
    accuracy,
    cost,
    difficulty,
    headroom,
    swap,
    ties,
)
from coevolve_reproductions.tables.analysis_source import EVENTS, Settings, Source, read_source
from coevolve_reproductions.tables.finished_search import Search
from coevolve_reproductions.tables.table import Column, Table, checked_suffix, save_figure

__all__ = [
    "ANALYSES",
    "EVENTS",
    "Analysis",
    "Column",
    "Search",
    "Settings",
    "Source",
    "Table",
    "analyse",
    "checked_suffix",
    "read_source",
    "save_figure",
]

_REPLAY = frozenset({"protocols", "fractions", "seeds", "per_round", "set"})
_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """An analysis: its table of a run and of a series, and the settings that each uses."""

    of_run: Callable[[Search, Settings, Report], Table]
    of_series: Callable[[Series, Settings, Report], Table]
    run_settings: frozenset[str] = _NOTHING
    series_settings: frozenset[str] = _REPLAY


ANALYSES: Mapping[str, Analysis] = {
    "difficulty": Analysis(
        of_run=difficulty.of_run,
        of_series=difficulty.of_series,
        run_settings=frozenset({"rounds"}),
        series_settings=_REPLAY | {"rounds"},
    ),
    "accuracy": Analysis(of_run=accuracy.of_run, of_series=accuracy.of_series),
    "ablation": Analysis(
        of_run=ablation.of_run, of_series=ablation.of_series, run_settings=_REPLAY
    ),
    "swap": Analysis(of_run=swap.of_run, of_series=swap.of_series),
    "ties": Analysis(of_run=ties.of_run, of_series=ties.of_series),
    "cost": Analysis(of_run=cost.of_run, of_series=cost.of_series),
    "headroom": Analysis(
        of_run=headroom.of_run, of_series=headroom.of_series, series_settings=_NOTHING
    ),
}
"""The analyses by name."""


def analyse(
    source: Source,
    table: str,
    settings: Settings | None = None,
    report: Report = lambda done, total: None,
) -> Table:
    """The table of an analysis of a run or matrix.

    Args:
        source: What `read_source` read.
        table: A name in `ANALYSES`.
        settings: Settings that differ from the defaults; one without effect is refused.
        report: Called with the number of searches replayed, and of all.

    >>> from coevolve.analysis import synthetic_matrix
    >>> source = Source(name="world", series=synthetic_matrix(tasks=20, candidates=6).series[0])
    >>> analyse(source, "headroom").rows[0]["kind"]
    'best start'
    """
    if table not in ANALYSES:
        raise InputError(
            f"there is no table {table!r}; use one of {', '.join(ANALYSES)}."
            + nearest(table, ANALYSES)
        )
    analysis, settings = ANALYSES[table], settings or Settings()
    used = analysis.series_settings if source.search is None else analysis.run_settings
    kind = "a matrix" if source.search is None else "a run"
    for name in sorted(settings.given - used):
        raise InputError(f"{name} has no effect on the table {table} of {kind}; leave it out.")
    if source.search is not None:
        made = analysis.of_run(source.search, settings, report)
    elif source.series is not None:
        made = analysis.of_series(source.series, settings, report)
    else:
        raise InputError(f"source {source.name!r} has neither a run nor a series.")
    notes = (f"{note[0].upper()}{note[1:].removesuffix('.')}." for note in source.notes)
    return replace(made.headed(), note=" ".join(filter(None, (made.note, *notes))))
