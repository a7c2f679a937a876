"""The outcomes of a run, one record each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coevolve.core.events import Event
from coevolve.core.pool import Pool
from coevolve.errors import titled


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """One outcome. `score` is None where it is missing; `missing` then says why.

    `fault` is the kind of the fault, also where a candidate's fault scored 0, and `reason` says
    what happened. `trace` is the address of the trial's trace. `imported` is the file of an
    outcome that was imported, and cost this run nothing: `dollars` is what it had cost.
    """

    candidate: str
    round: int
    task: str
    pool: str
    trial: int
    split: str
    score: float | None
    missing: str
    fault: str
    reason: str
    tokens_in: int
    tokens_out: int
    dollars: float
    seconds: float
    trace: str
    imported: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def outcome_rows(events: Iterable[Event]) -> Iterator[OutcomeRow]:
    """The outcomes in the events of a run, in the order of recording."""
    rounds: dict[str, int] = {}
    pools: dict[str, dict[str, str]] = {}
    tasks: list[str] = []
    for event in events:
        match event["type"]:
            case "opened":
                rounds |= {start["name"]: 0 for start in event["starts"]}
                pools["validation"] = _pools(Pool.from_json(event["selector"]["pool"]))
                pools["rescore"] = pools["validation"]
                tasks = event["selector"]["pool"]["tasks"]
                pools["test"] = _pools(Pool.from_json(event["test"])) if event["test"] else {}
            case "proposed":
                for row in event["candidates"]:
                    rounds[row["candidate"]["name"]] = event["round"]
            case "imported":
                for candidate, column in event["phase_0"].items():
                    yield from _given(candidate, column, event["file"], tasks, pools["validation"])
            case "added":
                rounds[event["candidate"]["name"]] = event["candidate"]["round"]
            case "outcome" | "scored":
                split = event.get("split", "validation")
                yield outcome_row(
                    event, rounds[event["candidate"]], split, pools[split][event["task"]]
                )


def _given(
    candidate: str,
    column: Mapping[str, Any],
    file: str,
    tasks: Sequence[str],
    pools: Mapping[str, str],
) -> Iterator[OutcomeRow]:
    """The imported outcomes of a starting harness that stand for Phase 0."""
    costs = column.get("dollars") or [None] * len(column["tasks"])
    columns = (column["tasks"], column["trials"], column["scores"], costs)
    for at, trial, score, cost in zip(*columns, strict=True):
        yield OutcomeRow(
            candidate=candidate,
            round=0,
            task=tasks[at],
            pool=pools[tasks[at]],
            trial=trial,
            split="validation",
            score=score,
            missing="",
            fault="",
            reason="",
            tokens_in=0,
            tokens_out=0,
            dollars=float(cost or 0.0),
            seconds=0.0,
            trace="",
            imported=file,
        )


def _pools(pool: Pool) -> dict[str, str]:
    """The pool of each task."""
    return {pool.tasks[i]: name for name in pool.names for i in pool.members(name).tolist()}


def outcome_row(event: Event, round: int, split: str, pool: str) -> OutcomeRow:
    """The outcome in an event, of a candidate of a round, on a task of a pool."""
    fault = event.get("fault") or {"kind": "", "reason": ""}
    tokens_in, tokens_out, dollars, seconds = event["usage"]
    missing = titled(fault["kind"], fault["reason"]) if event["score"] is None else ""
    return OutcomeRow(
        candidate=event["candidate"],
        round=round,
        task=event["task"],
        pool=pool,
        trial=event["trial"],
        split=split,
        score=event["score"],
        missing=missing,
        fault=fault["kind"],
        reason=fault["reason"],
        tokens_in=int(tokens_in),
        tokens_out=int(tokens_out),
        dollars=float(dollars),
        seconds=float(seconds),
        trace=event.get("trace") or "",
    )
