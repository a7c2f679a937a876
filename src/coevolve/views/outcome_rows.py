"""The outcomes of a run, one record each."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from coevolve.core.events import Event
from coevolve.core.pool import Pool
from coevolve.errors import titled


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRow:
    """One outcome. `score` is None where it is missing; `missing` then says why.

    `fault` is the kind of the fault, also where a candidate's fault scored 0, and `reason` says
    what happened. `trace` is the address of the trial's trace.
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

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def outcome_rows(events: Iterable[Event]) -> Iterator[OutcomeRow]:
    """The outcomes in the events of a run, in the order of recording."""
    rounds: dict[str, int] = {}
    pools: dict[str, dict[str, str]] = {}
    for event in events:
        match event["type"]:
            case "opened":
                rounds |= {start["name"]: 0 for start in event["starts"]}
                pools["validation"] = _pools(Pool.from_json(event["selector"]["pool"]))
                pools["rescore"] = pools["validation"]
                pools["test"] = _pools(Pool.from_json(event["test"])) if event["test"] else {}
            case "proposed":
                for row in event["candidates"]:
                    rounds[row["candidate"]["name"]] = event["round"]
            case "outcome":
                split = event.get("split", "validation")
                yield _row(event, rounds[event["candidate"]], split, pools[split][event["task"]])


def _pools(pool: Pool) -> dict[str, str]:
    """The pool of each task."""
    return {pool.tasks[i]: name for name in pool.names for i in pool.members(name).tolist()}


def _row(event: Event, round: int, split: str, pool: str) -> OutcomeRow:
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
