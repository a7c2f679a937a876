"""A configuration is compared with the one that a run recorded."""

from pathlib import Path
from typing import Any

import pytest

import coevolve
from coevolve.errors import ChangedConfigError
from coevolve.runs.config import RunConfig
from coevolve.runs.config_changes import config_changes, new_limits

TABLES: dict[str, Any] = {
    "search": {"rounds": 1, "protocol": "naive", "confidence": 0.9},
    "budget": {"trials": 90},
    "benchmark": {"kind": "synthetic", "pools": {"all": 10}},
    "proposer": {"kind": "synthetic"},
    "executor": {"workers": 1},
}


@pytest.fixture
def ended(tmp_path: Path) -> coevolve.Run:
    run = coevolve.open({"run": {"folder": str(tmp_path), "name": "world"}, **TABLES})
    run.run()
    return run


def changed(of: coevolve.Run, /, **tables: Any) -> list[str]:
    config = RunConfig.from_json({**TABLES, **tables})
    return [str(change) for change in config_changes(of.state, of.folder, config)]


def test_keys_that_were_set_or_are_set_now(ended: coevolve.Run) -> None:
    assert changed(ended) == []
    assert changed(ended, run={"name": "other"}, executor={"kind": "local", "workers": 1}) == []
    search = {"rounds": 3, "protocol": "naive", "fraction": 0.5}
    assert changed(ended, search=search, budget={}) == [
        "search.rounds: recorded 1, now 3",
        "search.confidence: recorded 0.9, now 0.95",
        "budget.trials: recorded 90, now none",
        "search.fraction: recorded none, now 0.5",
    ]


def test_limits_that_the_run_has_are_no_change(ended: coevolve.Run) -> None:
    ended.extend(rounds=2)
    assert changed(ended) == []
    assert changed(ended, search={**TABLES["search"], "rounds": 2}) == []
    ended.extend(rounds=3)
    assert changed(ended, search={**TABLES["search"], "rounds": 2}) == []
    config = RunConfig.from_json({**TABLES, "search": {**TABLES["search"], "rounds": 4}})
    assert new_limits(config_changes(ended.state, ended.folder, config)) == {"rounds": 4}


def test_for_runs_of_earlier_versions_only_keys_in_the_file(ended: coevolve.Run) -> None:
    state = ended.state
    del state.config["given"]
    search = {"rounds": 1, "protocol": "joint"}
    config = RunConfig.from_json({**TABLES, "search": search})
    found = [change.key for change in config_changes(state, ended.folder, config)]
    assert found == ["search.protocol"]


def test_resume_refuses_another_configuration(ended: coevolve.Run) -> None:
    tables = {**TABLES, "benchmark": {"kind": "synthetic", "pools": {"all": 12}}}
    place = {"folder": str(ended.folder.parent), "name": "world"}
    run = coevolve.open({"run": place, **tables})
    with pytest.raises(ChangedConfigError, match=r"benchmark\.pools\.all: recorded 10, now 12"):
        run.resume()
    assert run.resume(ignore_changes=True).status.tasks == 10
