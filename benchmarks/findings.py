"""Which of the paper's findings synthetic worlds reproduce, and what that depends on.

Run as `make bench-findings` or `python benchmarks/findings.py`; it takes about six minutes on two
cores.
Every search of a row has a world of its own, and all rows see the same worlds, so differences
between rows are paired. `docs/analyses.md` says what was found.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import record
from paper_settings import (
    ROWS,
    SWAPPED,
    TERMINAL,
    TEXT,
    VARIANTS,
    Regime,
    Results,
    phase_zero_errors,
    run_all,
    world,
)

from coevolve.benchmarks.synthetic import SyntheticWorld
from coevolve.core.arrays import Floats
from coevolve.core.estimators import Hajek, PhaseZeroRule


def column(results: Results, *key: Any, name: str = "score") -> Floats:
    """A measure of every search of a row."""
    return np.array([found[name] for found in results[key]])


def plus_minus(values: Floats, digits: int = 1) -> str:
    """Mean and standard error."""
    values = values[~np.isnan(values)]
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def step(values: Floats, before: Floats) -> str:
    """Paired difference and standard error, marked where it exceeds two of them."""
    difference = values - before
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    mark = "" if abs(difference.mean()) <= 2 * error else " *"
    return f"{difference.mean():+.1f} ± {error:.1f}{mark}"


PAPER: Mapping[tuple[str, float, str], str] = {
    (TEXT.name, 0.07, "naive"): "45.2 ± 1.8",
    (TEXT.name, 0.07, "random-resample"): "47.0 ± 1.3",
    (TEXT.name, 0.07, "task-coevolve"): "47.6 ± 0.5",
    (TEXT.name, 0.07, SWAPPED): "44.0 ± 1.7",
    (TEXT.name, 0.2, "naive"): "47.2 ± 0.3",
    (TEXT.name, 0.2, "random-resample"): "48.2 ± 0.3",
    (TEXT.name, 0.2, "random-estimate"): "48.8 ± 0.8",
    (TEXT.name, 0.2, "task-coevolve"): "49.3 ± 0.5",
    (TEXT.name, 0.2, SWAPPED): "46.0 ± 1.5",
    (TEXT.name, 0.2, "full"): "48.6 ± 0.5",
    (TERMINAL.name, 0.2, "naive"): "55.1",
    (TERMINAL.name, 0.2, "random-resample"): "59.6",
    (TERMINAL.name, 0.2, "task-coevolve"): "61.8",
    (TERMINAL.name, 0.2, "full"): "62.9",
}
"""Means and standard errors over the paper's three runs; one run on Terminal-Bench."""


def starting_harnesses() -> list[dict[str, Any]]:
    """Tasks that neither, one or both starting harnesses solve, beside the paper's tables."""
    paper = {"uspto": (26, 3, 1), "s2d": (9, 11, 30), "law": (39, 8, 3), "all": (32, 23, 34)}
    rows = []
    for regime in (TEXT, TERMINAL):
        places = [world(regime, "usual", seed) for seed in range(100)]
        means = [_phase_zero_means(place) for place in places]
        hajek = sum(isinstance(PhaseZeroRule().decide(each), Hajek) for each in means)
        for name in regime.pools:
            both = [
                np.array([place.outcomes(s)[place.pool.members(name)] for s in place.start(2)])
                for place in places
            ]
            solved = [np.bincount(o.sum(axis=0).astype(int), minlength=3) for o in both]
            rows.append(
                {
                    "regime": regime.name,
                    "pool": name,
                    "neither, one, both": _slashed(np.mean(solved, axis=0)),
                    "paper": _slashed(np.array(paper[name])),
                    "rule takes Hájek": f"{hajek} of {len(places)}",
                }
            )
    return rows


def _phase_zero_means(place: SyntheticWorld) -> dict[str, float]:
    scores = np.mean([place.outcomes(start) for start in place.start(2)], axis=0)
    return {name: float(scores[place.pool.members(name)].mean()) for name in place.pool.names}


def _slashed(counts: Floats) -> str:
    return " / ".join(f"{count:.0f}" for count in counts)


def ablation(results: Results) -> list[dict[str, Any]]:
    """The rows of the paper's ablation, and the estimator swap."""
    rows = []
    for regime in (TEXT, TERMINAL):
        for fraction in regime.fractions:
            key = (regime.name, "usual", fraction)
            above = {after: before for before, after in pairwise((*ROWS, SWAPPED))}
            full = ("full",) if (*key, "full") in results else ()
            for row in (*full, *ROWS, SWAPPED):
                values = column(results, *key, row)
                rows.append(
                    {
                        "regime": regime.name,
                        "fraction": fraction,
                        "row": _label(regime, row),
                        "searches": len(values),
                        "start": f"{column(results, *key, row, name='start').mean():.1f}",
                        "score": plus_minus(values),
                        "vs row above": step(values, column(results, *key, above[row]))
                        if row in above
                        else "",
                        "paper": PAPER.get((regime.name, fraction, row), ""),
                        "full set": plus_minus(column(results, *key, row, name="full set")),
                        "spearman": plus_minus(column(results, *key, row, name="spearman"), 2),
                    }
                )
    return rows


def _label(regime: Regime, row: str) -> str:
    names = {True: "Hájek", False: "difference"}
    if row == SWAPPED:
        return f"... with {names[isinstance(regime.other, Hajek)]}"
    if row in ("random-estimate", "task-coevolve"):
        return f"{row} ({names[isinstance(regime.estimator, Hajek)]})"
    return row


def sensitivity(results: Results) -> list[dict[str, Any]]:
    """The same differences in other worlds; * exceeds two standard errors."""
    rows = []
    for regime in (TEXT, TERMINAL):
        for fraction in regime.fractions:
            for variant in VARIANTS:
                found = {r: column(results, regime.name, variant, fraction, r) for r in ROWS}
                other = column(results, regime.name, variant, fraction, SWAPPED)
                hajek, difference = found["task-coevolve"], other
                if isinstance(regime.other, Hajek):
                    hajek, difference = difference, hajek
                rows.append(
                    {
                        "regime": regime.name,
                        "fraction": fraction,
                        "world": variant,
                        "resample - naive": step(found["random-resample"], found["naive"]),
                        "estimate - resample": step(
                            found["random-estimate"], found["random-resample"]
                        ),
                        "weighted - estimate": step(
                            found["task-coevolve"], found["random-estimate"]
                        ),
                        "task-coevolve - naive": step(found["task-coevolve"], found["naive"]),
                        "hájek - difference": step(hajek, difference),
                    }
                )
    return rows


def ties(results: Results) -> list[dict[str, Any]]:
    """How many candidates share the top score."""
    paper = {
        (0.07, "naive"): "13-16",
        (0.07, "random-resample"): "2-5",
        (0.07, "task-coevolve"): "1",
        (0.2, "naive"): "4-12",
        (0.2, "random-resample"): "1-2",
        (0.2, "task-coevolve"): "1",
    }
    rows = []
    for fraction in TEXT.fractions:
        for row in ROWS:
            for variant in ("usual", "little chance"):
                values = column(results, TEXT.name, variant, fraction, row, name="ties")
                low, middle, high = np.quantile(values, (0.1, 0.5, 0.9))
                rows.append(
                    {
                        "fraction": fraction,
                        "row": row,
                        "world": variant,
                        "at the top": plus_minus(values),
                        "median (10% to 90%)": f"{middle:.0f} ({low:.0f} to {high:.0f})",
                        "searches with a tie": f"{np.mean(values > 1):.0%}",
                        "paper": paper.get((fraction, row), ""),
                    }
                )
    return rows


def show_and_save(tables: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Print the tables and record them."""
    titles = {
        "phase zero": "Phase 0: tasks solved by neither, one or both starting harnesses (means)",
        "ablation": "The winner's true score in percent, ± standard error; * exceeds two of them",
        "sensitivity": "Differences in points in other worlds; * exceeds two standard errors",
        "ties": "Candidates that share the top score, text classification",
        "error": "Error of one estimate on the paper's own Phase 0 pools, in points",
    }
    for name, rows in tables.items():
        record.show(titles[name], rows)
    record.save("findings", dict(tables))


def main() -> None:
    """Measure, print and record."""
    results = run_all()
    show_and_save(
        {
            "phase zero": starting_harnesses(),
            "ablation": ablation(results),
            "sensitivity": sensitivity(results),
            "ties": ties(results),
            "error": phase_zero_errors(),
        }
    )


if __name__ == "__main__":
    main()
