"""All that is known of a candidate, a task or a round, as plain JSON."""

from dataclasses import asdict
from typing import Any

from coevolve.cli.outcomes import OutcomeRow, outcome_rows
from coevolve.search.report import report
from coevolve.search.run_state import RunState
from coevolve.store import RunStore

_SHOWN = ("candidate", "task", "round", "trial", "split", "score", "fault", "reason")
_SPENT = ("tokens_in", "tokens_out", "dollars", "seconds", "trace")


def candidate_json(name: str, state: RunState, store: RunStore) -> dict[str, Any]:
    """A candidate: where it comes from, its files, its estimate and its outcomes."""
    row = next(row for row in report(state).candidates if row.name == name)
    candidate = state.candidates[name].candidate
    files = {path: len(store.get(address)) for path, address in candidate.files.items()}
    outcomes = [outcome_json(o) for o in outcome_rows(store.events()) if o.candidate == name]
    children = [n for n, entry in state.candidates.items() if name in entry.candidate.parents]
    folder = store.folder / "candidates" / candidate.address
    return {
        **asdict(row),
        "children": children,
        "given_back": state.candidates[name].repaired,
        "files": files,
        "folder": str(folder) if folder.is_dir() else None,
        "transcripts": transcripts(name, state),
        "outcomes": outcomes,
    }


def transcripts(name: str, state: RunState) -> list[str]:
    """Addresses of what was said while a candidate was written and mended."""
    round = state.candidates[name].candidate.round
    if not round:
        return []
    turn = state.rounds[round - 1]
    return [found for found in (turn.transcript, turn.repairs.get(name)) if found is not None]


def task_json(task: str, state: RunState, store: RunStore) -> dict[str, Any]:
    """A task: who met it, and what came out."""
    rows = [row for row in outcome_rows(store.events()) if row.task == task]
    scores = [row.score for row in rows if row.score is not None]
    return {
        "task": task,
        "pool": rows[0].pool if rows else None,
        "split": "validation" if task in state.selector.pool.tasks else "test",
        "mean": sum(scores) / len(scores) if scores else None,
        "candidates": len({row.candidate for row in rows}),
        "missing": len(rows) - len(scores),
        "draws": [draw for draw in _draws(store) if draw.pop("task") == task],
        "outcomes": [outcome_json(row) for row in rows],
    }


def round_json(number: str, state: RunState, store: RunStore) -> dict[str, Any]:
    """A round: what was proposed for it, which tasks it drew, and what came out."""
    round = int(number)
    rows = [asdict(row) for row in report(state).candidates if row.round == round]
    found: dict[str, Any] = {"round": round, "candidates": rows}
    if not round:
        return found | {"trials": sum(r["estimate"]["tasks"] for r in rows if r["estimate"])}
    turn = state.rounds[round - 1]
    draws = [draw for draw in _draws(store) if draw["round"] == round]
    return found | {
        "settled": turn.settled,
        "note": turn.note,
        "trials": turn.trials,
        "missing": turn.missing,
        "thin": turn.thin,
        "transcript": turn.transcript,
        "draws": draws,
    }


def _draws(store: RunStore) -> list[dict[str, Any]]:
    """Every drawn task with its probability, once per draw."""
    return [
        {"round": drawn["round"], "kind": drawn["kind"], "task": task, "probability": probability}
        for event in store.events()
        if event["type"] == "asked"
        for drawn in event["events"]
        for draw in drawn["draws"]
        for design in draw
        for task, probability in zip(design["tasks"], design["probabilities"], strict=True)
    ]


def outcome_json(row: OutcomeRow) -> dict[str, Any]:
    """What is shown of an outcome."""
    return {name: getattr(row, name) for name in (*_SHOWN, *_SPENT)}
