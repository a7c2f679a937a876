"""Selection quality on real outcome matrices.

Run as `make bench-matrices` or `python benchmarks/matrices.py`. It needs a folder of matrices:
`../shared/data/matrices` beside the repository, or the one named in COEVOLVE_MATRICES. Every
series (at most 4 per matrix, 60 candidates each) is replayed under every protocol, with equal
seeds and equal numbers of evaluations.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import record

from coevolve.analysis import Matrix, Replay, read_matrices, replay

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "matrices"
FRACTIONS = (0.07, 0.2)
SEEDS = range(7_000, 7_020)
RIVAL_SEEDS = range(7_000, 7_005)
OURS = ("random-resample", "naive", "random-estimate", "task-coevolve", "joint", "adaptive")
SMALL, SMALL_SEEDS = 0.03, range(7_000, 7_010)
RIVALS = (
    "mid-range",
    "halving",
    "racing",
    "racing-wilcoxon",
    "thompson",
    "item-information",
    "active-testing",
)


def matrices() -> list[Matrix]:
    """The matrices; none, and an explanation, where there is no folder of them."""
    folder = Path(os.environ.get("COEVOLVE_MATRICES", FOLDER))
    if not folder.is_dir():
        print(
            "skipped: there is no folder of outcome matrices; name one in COEVOLVE_MATRICES "
            "(.npz files as docs/replay.md describes)."
        )
        return []
    return [matrix.limited(series=4, candidates=60) for matrix in read_matrices([folder])]


def number(value: float | None, digits: int) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def points(value: float | None) -> str:
    """A share in points."""
    return "-" if value is None else f"{100 * value:.2f}"


def by_matrix(found: Replay, protocols: Sequence[str], fraction: float) -> list[dict[str, Any]]:
    """Regret in points / Spearman, as in the table of the specification."""
    entries = {
        (e.matrix, e.protocol): e
        for e in found.summary
        if e.fraction == fraction and e.run is None
    }
    names = [*dict.fromkeys(row.matrix for row in found.rows), None]
    rows = []
    for name in names:
        row: dict[str, Any] = {"matrix": name or "mean"}
        for protocol in protocols:
            means = entries[name, protocol].means
            order = number(means["spearman"].mean, 2)
            row[protocol] = f"{points(means['regret'].mean)} / {order}"
        rows.append(row)
    return rows


def overall(found: Replay, protocols: Sequence[str]) -> list[dict[str, Any]]:
    """Means over matrices, with standard errors over series and over seeds."""
    rows = []
    for fraction in FRACTIONS:
        for name in protocols:
            means = found.overall(name, fraction).means
            regret = means["regret"]
            rows.append(
                {
                    "fraction": fraction,
                    "protocol": name,
                    "regret": points(regret.mean),
                    "± series": points(regret.se),
                    "± seeds": points(regret.se_seeds),
                    "spearman": number(means["spearman"].mean, 3),
                    "kendall": number(means["kendall"].mean, 3),
                    "rank": number(means["rank"].mean, 1),
                    "rmse": points(means["rmse"].mean),
                    "coverage of 90%": points(means["coverage"].mean),
                    "share": points(means["share"].mean),
                }
            )
    return rows


def against_random(found: Replay) -> list[dict[str, Any]]:
    """The regret of adaptive minus that of random-resample, on every matrix."""
    return [
        {
            "fraction": entry.fraction,
            "matrix": entry.matrix or "mean",
            "difference": points(entry.paired.difference),
            "±": points(entry.paired.se_seeds if entry.matrix else entry.paired.se),
            "significantly worse": entry.paired.significant and entry.paired.difference > 0,
        }
        for entry in found.summary
        if entry.protocol == "adaptive" and entry.run is None and entry.paired is not None
    ]


def small_budgets(found: Replay) -> list[dict[str, Any]]:
    """The regret of adaptive and of the fixed share of joint, where m is as small as 2."""
    rows = []
    for entry in found.summary:
        if entry.protocol == "adaptive" and entry.run is None and entry.paired is not None:
            regret = entry.means["regret"].mean
            joint = None if regret is None else regret - entry.paired.difference
            rows.append(
                {
                    "matrix": entry.matrix or "mean",
                    "joint": points(joint),
                    "adaptive": points(regret),
                    "difference": points(entry.paired.difference),
                    "±": points(entry.paired.se_seeds),
                }
            )
    return rows


def aims(found: Replay) -> list[dict[str, Any]]:
    """What the protocols are meant to reach, and what they reach."""

    def mean(protocol: str, fraction: float, metric: str) -> float:
        value = found.overall(protocol, fraction).means[metric].mean
        return float("nan") if value is None else value

    paper = mean("task-coevolve", 0.2, "regret")
    worse = [row for row in against_random(found) if row["significantly worse"]]
    wanted = [
        ("regret of adaptive at 20% / task-coevolve at 20%", "<= 0.15", 0.2, "adaptive"),
        ("regret of adaptive at 7% / task-coevolve at 20%", "<= 0.60", 0.07, "adaptive"),
    ]
    rows: list[dict[str, Any]] = [
        {"aim": aim, "wanted": limit, "found": f"{mean(name, fraction, 'regret') / paper:.2f}"}
        for aim, limit, fraction, name in wanted
    ]
    for fraction, limit in ((0.2, ">= 0.85"), (0.07, ">= 0.72")):
        order = mean("joint", fraction, "spearman")
        row = {"aim": f"Spearman of joint at {fraction:.0%}", "wanted": limit}
        rows.append(row | {"found": f"{order:.3f}"})
    for fraction in FRACTIONS:
        held = mean("joint", fraction, "coverage")
        row = {"aim": f"90% intervals of joint that hold, {fraction:.0%}", "wanted": "85-95%"}
        rows.append(row | {"found": f"{held:.1%}"})
    lost = {"aim": "matrices where adaptive is significantly worse than random-resample"}
    return [*rows, lost | {"wanted": "0", "found": str(len(worse))}]


def main() -> None:
    """Replay, print and record."""
    found = matrices()
    if not found:
        return
    workers = os.cpu_count() or 1
    ours = replay(found, protocols=OURS, fractions=FRACTIONS, seeds=SEEDS, workers=workers)
    rivals = replay(
        found,
        protocols=("random-resample", "adaptive", *RIVALS),
        fractions=FRACTIONS,
        seeds=RIVAL_SEEDS,
        workers=workers,
    )
    small = replay(
        found,
        protocols=("joint", "adaptive"),
        fractions=(SMALL,),
        seeds=SMALL_SEEDS,
        workers=workers,
    )
    tables: dict[str, Sequence[dict[str, Any]]] = {}
    for fraction in FRACTIONS:
        rows = by_matrix(ours, OURS, fraction)
        record.show(f"Regret in points / Spearman at {fraction:.0%}, {len(SEEDS)} seeds", rows)
        tables[f"by matrix at {fraction:.0%}"] = rows
    tables |= {
        "means": overall(ours, OURS),
        "rivals": overall(rivals, ("random-resample", "adaptive", *RIVALS)),
        "adaptive against random-resample": against_random(ours),
        "small budgets": small_budgets(small),
        "aims": aims(ours),
    }
    names = ("means", "rivals", "adaptive against random-resample", "small budgets", "aims")
    for title in names:
        record.show(title, tables[title])
    record.save("matrices", tables)


if __name__ == "__main__":
    main()
