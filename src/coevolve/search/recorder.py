"""Events are recorded first, and have their effect then."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from coevolve.core.events import Event
from coevolve.search.budget import usage_row
from coevolve.search.effects import apply
from coevolve.search.folding import fold
from coevolve.search.parts import Journal
from coevolve.search.state import RunState
from coevolve.search.trials import Fault, Result, Trial


class Recorder:
    """A journal and the state it makes, which change together.

    `listen` is called with every event after it had its effect.
    """

    def __init__(
        self, journal: Journal, listen: Callable[[Event], None] = lambda event: None
    ) -> None:
        self.journal = journal
        self.state: RunState = fold(journal.skim())
        self._listen = listen

    def record(self, kind: str, body: Mapping[str, Any]) -> None:
        """Record an event, then let it have its effect."""
        self._record([(kind, body)])

    def _record(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        for event in self.journal.append(events):
            apply(self.state, event)
            self._listen(event)

    def outcome(self, trial: Trial, result: Result) -> None:
        """Record the outcome of a trial; a candidate's fault scores 0, another is missing."""
        self.record("outcome", self._row(trial, result))

    def failed(self, trial: Trial, result: Result) -> None:
        """Record an attempt that will be made again."""
        body = self._row(trial, result)
        del body["score"]
        self.record("failed", body | {"attempt": trial.attempt})

    def exhausted(self, cap: str) -> None:
        """Record that a cap of the budget is reached."""
        spent = asdict(self.state.spending(self.journal.clock()))
        ended: list[tuple[str, Mapping[str, Any]]] = [("exhausted", {"cap": cap, "spent": spent})]
        if self.state.wave is not None:
            rest = f"the budget of {cap} was spent"
            ended.insert(0, ("told", {**self.state.wave.to_json(), "rest": rest}))
        self._record(ended)

    def told(self) -> None:
        """Record what the wave came to, which closes it."""
        if self.state.wave is not None:
            self.record("told", {**self.state.wave.to_json(), "rest": ""})

    def _row(self, trial: Trial, result: Result) -> dict[str, Any]:
        row: dict[str, Any] = {
            "candidate": trial.candidate,
            "task": trial.task,
            "trial": trial.trial,
            "score": result.score,
            "usage": usage_row(result.usage),
        }
        if trial.split != "validation":
            row["split"] = trial.split
        if result.fault is not None:
            row["fault"] = fault_json(result.fault)
            row["score"] = score_of(result.fault)
        if result.trace is not None:
            row["trace"] = self.journal.put(result.trace.encode())
        return row


def score_of(fault: Fault) -> float | None:
    """0 where the candidate is to blame; missing where the infrastructure is."""
    return 0.0 if fault.blame in ("candidate", "benchmark", "doubtful") else None


def fault_json(fault: Fault | None) -> dict[str, str] | None:
    """A fault as plain JSON."""
    if fault is None:
        return None
    return {"blame": fault.blame.value, "kind": fault.kind, "reason": fault.reason}
