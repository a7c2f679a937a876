"""Jobs of Harbor: a folder of trials, each with a `result.json`, read without Harbor."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coevolve.errors import HistoryError
from coevolve.past_results.result_rows import Row, Rows

RESULT = "result.json"
MOST_BYTES = 200_000_000


def trial_files(folder: Path) -> list[Path]:
    """The results of trials in a job, in a folder of jobs, or in the folder of one trial.

    Deeper folders hold what agents wrote, and are not searched.
    """
    if (folder / RESULT).is_file() and _is_trial(folder / RESULT):
        return [folder / RESULT]
    found: list[Path] = []
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        if (inner / RESULT).is_file() and _is_trial(inner / RESULT):
            found.append(inner / RESULT)
        else:
            deeper = sorted(inner.glob(f"*/{RESULT}"))
            found += [path for path in deeper if path.is_file() and _is_trial(path)]
    return found


def read_trials(paths: list[Path], rows: Rows) -> bool:
    """Add the rewards of trials; repeated trials of a task are numbered by their beginning.

    The candidate is the name of the agent, with its model if a job has several. A trial without a
    reward, such as one that the infrastructure ended, has no score.
    """
    trials = [(path, _read(path)) for path in paths]
    models: dict[str, set[str]] = {}
    for _, trial in trials:
        models.setdefault(_agent(trial), set()).add(_model(trial))
    counts: dict[tuple[str, str], int] = {}
    for path, trial in sorted(trials, key=lambda one: (str(one[1].get("started_at")), one[0])):
        rows.open(str(path))
        candidate = _agent(trial)
        if len(models[candidate]) > 1:
            candidate = f"{candidate}@{_model(trial)}"
        task = str(trial.get("task_name") or "").rpartition("/")[2]
        number = counts[candidate, task] = counts.get((candidate, task), -1) + 1
        rows.add(0, Row(candidate, task, _reward(trial, rows), number, _cost(trial)))
    return True


def _read(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"{path}: this is not JSON: {str(error)[:200]}.") from None
    if not isinstance(found, dict) or "task_name" not in found:
        raise HistoryError(f"{path}: this is not the result of a trial: it has no 'task_name'.")
    return found


def _is_trial(path: Path) -> bool:
    """Whether a result is that of a trial and not of a job; a damaged one is for `_read`."""
    if path.stat().st_size > MOST_BYTES:
        raise HistoryError(f"{path}: it has {path.stat().st_size:,} bytes, too many to read.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return True
    return isinstance(found, dict) and "task_name" in found


def _table(found: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = found.get(key)
        found = inner if isinstance(inner, Mapping) else {}
    return found


def _agent(trial: Mapping[str, Any]) -> str:
    config = _table(trial, "config", "agent")
    named = _table(trial, "agent_info").get("name") or config.get("name")
    return str(named or config.get("import_path") or "")


def _model(trial: Mapping[str, Any]) -> str:
    known = _table(trial, "agent_info", "model_info").get("name")
    return str(known or _table(trial, "config", "agent").get("model_name") or "")


def _reward(trial: Mapping[str, Any], rows: Rows) -> Any:
    rewards = _table(trial, "verifier_result", "rewards")
    if not rewards or trial.get("reward_valid") is False:
        return None
    if "reward" in rewards:
        return rewards["reward"]
    if len(rewards) > 1:
        names = ", ".join(map(str, list(rewards)[:10]))
        raise rows.wrong(0, "rewards", f"there are several ({names}), and none is 'reward'.")
    return next(iter(rewards.values()))


def _cost(trial: Mapping[str, Any]) -> Any:
    return _table(trial, "agent_result").get("cost_usd")
