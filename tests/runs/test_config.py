"""The configuration of a run: what is read, and what is said of a mistake."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

from coevolve import protocol
from coevolve.core.choice import HighestEstimate
from coevolve.errors import ConfigError, InputError
from coevolve.executors.isolation import Limits
from coevolve.runs import RunConfig, read_config
from coevolve.runs.config import BudgetTable, IsolationSettings
from coevolve.search.budget import CAPS, Budget, Spending

SMALL = """
[search]
rounds = 3
[benchmark]
kind = "synthetic"
[proposer]
kind = "synthetic"
"""
FUNCTION = """
[search]
rounds = 3
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["starts/a", "starts/b"]
[proposer]
kind = "function"
file = "propose.py"
"""


def read(folder: Path, text: str, name: str = "mine.toml") -> RunConfig:
    path = folder / name
    path.write_text(text)
    return read_config(path)


def test_a_run_is_named_after_its_file_and_has_defaults(tmp_path: Path) -> None:
    config = read(tmp_path, SMALL)
    assert config.run.name == "mine"
    assert config.run.folder == "runs"
    assert (config.search.candidates, config.search.fraction) == (1, None)
    assert config.budget.trials is None
    assert config.executor.processes() >= 1
    assert config.isolation.limits() == Limits()


def test_what_is_given_is_kept(tmp_path: Path) -> None:
    text = '[run]\nname = "x"\nseed = 7\n[budget]\ndollars = 5\nhours = 0.5\n' + SMALL
    config = read(tmp_path, text + "[executor]\nworkers = 3\n[isolation]\nmemory_mb = 99\n")
    settings = config.settings()
    assert (settings.seed, settings.rounds) == (7, 3)
    assert (settings.budget.dollars, settings.budget.hours) == (5.0, 0.5)
    assert config.executor.processes() == 3
    assert config.isolation.limits().memory_mb == 99


def test_the_limits_that_can_be_set_are_those_there_are() -> None:
    assert set(IsolationSettings.model_fields) - {"kind"} == {f.name for f in fields(Limits)}


def test_the_caps_that_can_be_set_are_those_there_are() -> None:
    assert list(BudgetTable.model_fields) == [f.name for f in fields(Budget)] == list(CAPS)
    assert [f.name for f in fields(Spending)] == list(CAPS)


def test_json_gives_the_same_configuration_and_no_path_of_this_machine(tmp_path: Path) -> None:
    for name in ("benchmark.py", "propose.py"):
        (tmp_path / name).write_text("")
    for name in ("a", "b"):
        (tmp_path / "starts" / name).mkdir(parents=True)
    config = read(tmp_path, FUNCTION)
    text = json.dumps(config.to_json())
    assert RunConfig.from_json(json.loads(text)) == config
    assert str(tmp_path) not in text


def test_a_starting_harness_may_win_if_that_is_wanted(tmp_path: Path) -> None:
    text = SMALL.replace("rounds = 3", "rounds = 3\ninclude_start = true")
    rule = read(tmp_path, text).search.rule()
    assert rule.choice == HighestEstimate(include_start=True)
    assert read(tmp_path, SMALL).search.rule().choice == HighestEstimate()


def test_settings_of_the_protocol_are_keys_and_survive_json(tmp_path: Path) -> None:
    keys = 'protocol = "task-coevolve"\nrounding = "floor"\nestimator = "hajek"\nbonus = 0.1'
    config = read(tmp_path, SMALL.replace("rounds = 3", f"rounds = 3\n{keys}"))
    rule = config.search.rule()
    assert rule == protocol("task-coevolve", rounding="floor", estimator="hajek", bonus=0.1)
    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert {"search.rounding", "search.bonus"} <= set(config.given_keys())
    assert "search.floor" not in config.given_keys()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rounds", "round", "unknown key 'search.round'. Did you mean 'search.rounds'?"),
        ("[search]", "[serch]", "unknown key 'serch'. Did you mean 'search'?"),
        ("rounds = 3", "", "the key 'search.rounds' is missing"),
        ("rounds = 3", "rounds = '3'", "'search.rounds' must be a whole number, got '3'"),
        ("rounds = 3", "rounds = 0", "'search.rounds' must be at least 1, got 0"),
        ("rounds = 3", "rounds = 3\noverlap = 1", "'search.overlap' must be true or false, got 1"),
        ("rounds = 3", "rounds = 3\nfraction = 1.5", "'search.fraction' must be at most 1, got 1"),
        ("rounds = 3", "rounds = 3\nprotocol = 'naiv'", "Did you mean 'naive'?"),
        (
            "rounds = 3",
            "rounds = 3\nprotocol = 'halving'\ninclude_start = true",
            "include_start has no effect on protocol 'halving'",
        ),
        (
            "rounds = 3",
            "rounds = 3\nprotocol = 'naive'\nfloor = 0.1",
            "floor has no effect on protocol 'naive': it needs weighting = 'variance'",
        ),
        ("rounds = 3", "rounds = 3\nrounding = 'up'", "must be 'ceil' or 'floor', got 'up'"),
        ("rounds = 3", "rounds = 3\nreserve = 2", "reserve must be in [0, 1], got 2"),
        ("rounds = 3", "rounds = 3\ndraw_per = 'x'", "must be 'round' or 'candidate', got 'x'"),
        ("rounds = 3", "rounds =", "is not valid TOML: Invalid value (at line 3"),
        ('kind = "synthetic"', 'kind = "synthetik"', "Did you mean 'synthetic'?"),
        ('kind = "synthetic"', "", "'benchmark.kind' is missing; use one of 'function'"),
        ('kind = "synthetic"', 'kind = "a-b:c"', "unknown benchmark 'a-b:c'; use one of function"),
        ('kind = "synthetic"', 'kind = "no_such:c"', "No module named 'no_such'"),
        ('kind = "synthetic"', 'kind = "math:pi"', "'math:pi' is a float; it must be a subclass"),
        ('kind = "synthetic"', "kind = 3", "'benchmark.kind' is 3; use one of"),
        ("[search]", "executor = 3\n[search]", "'executor' must be a table, got 3"),
        (
            'kind = "synthetic"',
            'kind = "synthetic"\npool = {a = 1}',
            "unknown key 'benchmark.pool'. Did you mean 'benchmark.pools'?",
        ),
        ("[search]", "[budget]\nhours = nan\n[search]", "'budget.hours' must be a finite number"),
        ("[search]", "[budget]\ntrials = -1\n[search]", "'budget.trials' must be at least 1"),
        ("[search]", "[run]\nname = '../x'\n[search]", "'run.name' must have only letters"),
        ("[search]", "run = 3\n[search]", "'run' must be a table, got 3"),
        (
            "[search]",
            "[model]\nname = 'x'\ntemperature = 3\n[search]",
            "'model.temperature' must be at most 2, got 3",
        ),
        (
            "[search]",
            "[model]\nname = 'x'\nkey = 'sk-1'\n[search]",
            "'model.key' must be the name of an environment variable, not the key itself.",
        ),
    ],
)
def test_a_mistake_is_named_with_its_file_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, SMALL.replace(old, new, 1))
    assert message in str(error.value)
    assert str(tmp_path / "mine.toml") in str(error.value)
    assert isinstance(error.value, InputError)


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'search\.rounds'.*\n.*'budget\.trials'"):
        read(tmp_path, SMALL.replace("= 3", "= 0") + "[budget]\ntrials = 0\n")


def test_values_within_lists_are_named_by_their_place(tmp_path: Path) -> None:
    text = FUNCTION.replace('"function"\nfile = "propose.py"', '"scripted"\nfolders = ["a", [4]]')
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert str(error.value).endswith("mine.toml: 'proposer.folders[1][0]' must be text, got 4.")


def test_paths_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "starts" / "a").mkdir(parents=True)
    with pytest.raises(ConfigError) as error:
        read(tmp_path, FUNCTION)
    for lacking in ("'benchmark.file' names 'benchmark.py'", "'starts/b'", "'propose.py'"):
        assert lacking in str(error.value)
    assert "'starts/a'" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*none\.toml; `coevolve init`"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path)


def test_the_synthetic_proposer_needs_a_synthetic_benchmark(tmp_path: Path) -> None:
    text = SMALL.replace('kind = "synthetic"', 'kind = "fractions:Fraction"', 1)
    with pytest.raises(ConfigError, match=r"needs benchmark\.kind 'synthetic', got"):
        read(tmp_path, text)


def test_a_script_must_last_for_all_rounds(tmp_path: Path) -> None:
    text = FUNCTION.replace('"function"\nfile = "propose.py"', '"scripted"\nfolders = ["a", "b"]')
    with pytest.raises(ConfigError, match=r"enough for 2 rounds of 1, but 'search\.rounds' is 3"):
        read(tmp_path, text)
