"""Several runs side by side, and the results of a replay of protocols."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coevolve.errors import InputError
from coevolve.views.timeline import Snapshot

AXES = ("evaluations", "trials", "tokens", "dollars", "hours")
"""What the best score so far is shown against: the paper's evaluations, or all costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The best candidate after a round and its estimate as known then, with all costs so far."""

    round: int
    candidate: str
    value: float
    low: float | None
    high: float | None
    evaluations: int
    trials: int
    tokens: int
    dollars: float
    hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCurve:
    """A run in a comparison: its best so far, and its result.

    `label` is unique among the runs compared. `evaluations` are the trials of generated
    candidates, as the paper counts; the other costs are of everything.
    """

    label: str
    name: str
    protocol: str
    seed: int
    tasks: int
    phase: str
    rounds: int
    candidates: int
    points: tuple[CurvePoint, ...]
    best: str | None
    estimate: dict[str, Any] | None
    full: float | None
    test: float | None
    probability: float | None
    evaluations: int
    trials: int
    tokens: int
    dollars: float
    hours: float

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Runs in the order given."""

    runs: tuple[RunCurve, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def compare_runs(snapshots: Mapping[str, Snapshot]) -> RunComparison:
    """Runs by their labels, such as the names of their folders."""
    return RunComparison(runs=tuple(_curve(label, one) for label, one in snapshots.items()))


def _curve(label: str, one: Snapshot) -> RunCurve:
    now = one.report
    best = None if now.best is None else now.candidate(now.best)
    totals = now.spend.totals
    return RunCurve(
        label=label,
        name=now.name,
        protocol=now.protocol,
        seed=one.seed,
        tasks=now.tasks,
        phase=now.phase,
        rounds=now.round,
        candidates=sum(not row.start for row in now.candidates),
        points=tuple(
            CurvePoint(
                round=stone.round,
                candidate=stone.best,
                value=stone.estimate["value"],
                low=stone.estimate["low"],
                high=stone.estimate["high"],
                **{axis: getattr(stone, axis) for axis in AXES},
            )
            for stone in one.frontier.milestones
            if stone.best is not None and stone.estimate is not None
        ),
        best=now.best,
        estimate=None if best is None else best.estimate,
        full=None if best is None else best.true_score,
        test=None if best is None else best.test,
        probability=one.certainty.probability,
        evaluations=now.spend.searched,
        trials=int(totals["trials"]),
        tokens=int(totals["tokens"]),
        dollars=totals["dollars"],
        hours=totals["hours"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPoint:
    """Means of a protocol at a fraction: regret, Spearman's ρ and evaluations, with errors."""

    fraction: float
    regret: float
    regret_se: float | None
    spearman: float | None
    evaluations: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCurve:
    """A protocol in a replay, over fractions of the tasks."""

    protocol: str
    points: tuple[ReplayPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayComparison:
    """The regret of protocols against the fraction, over all matrices of a replay."""

    curves: tuple[ReplayCurve, ...]
    matrices: tuple[str, ...]
    series: int
    seeds: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


_LARGEST = 1e12
_SCHEMA = 1
"""The JSON form of `coevolve replay` that is read here."""


def replay_comparison(data: Mapping[str, Any]) -> ReplayComparison:
    """The result of `coevolve replay --json`.

    Raises:
        InputError: It is not such a result.
    """
    try:
        if data["schema"] != _SCHEMA:
            raise InputError(
                f"the replay has schema {data['schema']!r}; this version reads schema {_SCHEMA}."
            )
        overall = [entry for entry in data["summary"] if entry["matrix"] is None]
        names = list(dict.fromkeys(str(entry["protocol"]) for entry in overall))
        curves = tuple(
            ReplayCurve(
                protocol=name,
                points=_points(entry for entry in overall if entry["protocol"] == name),
            )
            for name in names
        )
        return ReplayComparison(
            curves=curves,
            matrices=tuple(str(one["matrix"]) for one in data["settings"]["matrices"]),
            series=max((int(entry["series"]) for entry in overall), default=0),
            seeds=max((int(entry["seeds"]) for entry in overall), default=0),
        )
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"this is not the JSON of `coevolve replay --json` ({error!r:.80}). With --aa there "
            "is no regret to show."
        ) from error


def _points(entries: Iterable[Mapping[str, Any]]) -> tuple[ReplayPoint, ...]:
    found: Sequence[ReplayPoint] = [
        ReplayPoint(
            fraction=_known(entry["fraction"], above=0.0),
            regret=_known(entry["regret"]["mean"]),
            regret_se=_number(entry["regret"]["se"]),
            spearman=_number(entry["spearman"]["mean"]),
            evaluations=_number(entry["evaluations"]["mean"]),
        )
        for entry in entries
        if entry["regret"]["mean"] is not None
    ]
    return tuple(sorted(found, key=lambda point: point.fraction))


def _number(value: Any) -> float | None:
    return None if value is None else _known(value)


def _known(value: Any, above: float = -math.inf) -> float:
    """A number that can be drawn."""
    found = float(value)
    if not math.isfinite(found) or found <= above or abs(found) > _LARGEST:
        raise ValueError(f"{found!r} cannot be drawn")
    return found
