"""A run's state as plain data, without the times, which no two runs share."""

from dataclasses import asdict
from typing import Any

from coevolve.search.budget import Ledger
from coevolve.search.run_state import RunState


def snapshot(state: RunState) -> dict[str, Any]:
    """Every field of a state that follows from outcomes and proposals alone.

    The seal of a selector stands for all its events: draws, probabilities and scores.
    """
    return {
        "name": state.name,
        "settings": state.settings.to_json(),
        "trials": state.trials,
        "entries": {
            name: (entry.candidate.to_json(), entry.status, entry.reason, entry.state)
            for name, entry in state.candidates.items()
        },
        "faults": (state.tally.zeros, state.tally.missing),
        "turns": [{**asdict(turn), "told_at": None} for turn in state.rounds],
        "wave": state.wave and (state.wave.kind, state.wave.to_json(), state.wave.open),
        "proposing": ledger(state.proposing),
        "evaluating": ledger(state.evaluating),
        "failures": state.tally.failures,
        "exhausted": state.exhausted,
        "finishing": state.finishing,
        "chosen": state.chosen,
        "ended": state.ended,
        "selector": (len(state.selector._log), state.selector._log.seal),
        "rescored": state.rescored._log.seal,
        "test": None if state.test is None else state.test._log.seal,
    }


def ledger(spent: Ledger) -> dict[str, float]:
    return {name: value for name, value in asdict(spent).items() if name != "nano_seconds"}
