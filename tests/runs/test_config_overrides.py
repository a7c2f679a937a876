"""Values in place of those in a TOML file: how they are written, applied and named in errors."""

from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import ConfigError
from coevolve.runs.config import read_config
from coevolve.runs.config_overrides import Override, parse_overrides, table_overrides

SMALL = """
[search]
rounds = 3
[benchmark]
kind = "synthetic"
pools = { easy = 10, hard = 20 }
[proposer]
kind = "synthetic"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL)
    return path


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("search.fraction=0.07", ("search", "fraction"), 0.07),
        ("search.protocol=naive", ("search", "protocol"), "naive"),
        ("search.protocol = naive", ("search", "protocol"), "naive"),
        ('run.name="7"', ("run", "name"), "7"),
        ("search.rescore=true", ("search", "rescore"), True),
        ('benchmark.sets=["s2d"]', ("benchmark", "sets"), ["s2d"]),
        ("benchmark.pools={all = 30}", ("benchmark", "pools"), {"all": 30}),
        ('benchmark.pools."a.b"=4', ("benchmark", "pools", "a.b"), 4),
        ("model.name=openai/gpt-5=x", ("model", "name"), "openai/gpt-5=x"),
        ("benchmark.version=2026-01-02", ("benchmark", "version"), "2026-01-02"),
        ("search.history=a\nb = 2", ("search", "history"), "a\nb = 2"),
        ("search.history=", ("search", "history"), ""),
    ],
)
def test_values_are_toml_and_plain_words_are_text(
    text: str, path: tuple[str, ...], value: Any
) -> None:
    assert Override.parse(text) == Override(path=path, value=value)


@pytest.mark.parametrize("text", ["search.rounds", "=3", "a b=3", "a.=3", "a\nb=3", "#=3"])
def test_a_text_without_a_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="must be KEY=VALUE"):
        Override.parse(text)


def test_other_texts_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'a\.b' in --set is not valid TOML: '\[1'"):
        Override.parse("a.b=[1")
    with pytest.raises(ConfigError, match=r"'a\.b' has the date 2026-01-02; write it in quotes"):
        Override.parse("a.b=[2026-01-02]")
    with pytest.raises(ConfigError, match=r"--set has 'a\.b' twice"):
        parse_overrides(["a.b=1", "a.b=2"])


def test_a_file_is_read_with_other_values(file: Path) -> None:
    texts = ["search.rounds=5", "benchmark.pools.easy=7", "budget.trials=90", "run.name=other"]
    config = read_config(file, overrides=parse_overrides(texts))
    assert (config.run.name, config.search.rounds, config.budget.trials) == ("other", 5, 90)
    assert config.to_json()["benchmark"]["pools"] == {"easy": 7, "hard": 20}
    assert {"budget.trials", "search.rounds", "run.name"} <= set(config.given_keys())
    whole = read_config(file, overrides=parse_overrides(["benchmark.pools={all = 30}"]))
    assert whole.to_json()["benchmark"]["pools"] == {"all": 30}


def test_tables_change_the_values_that_they_have() -> None:
    tables = {"search": {"rounds": 5}, "benchmark": {"pools": {"easy": 7}}, "budget": {}}
    found = table_overrides(tables, "row 'a' of m.toml")
    assert [(one.key, one.value) for one in found] == [
        ("search.rounds", 5),
        ("benchmark.pools.easy", 7),
    ]
    assert [Override.from_json(one.to_json()) for one in found] == list(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("search.rounds=0", "'search.rounds' must be at least 1, got 0. 'search.rounds' comes"),
        ("search.fractoin=1", r"Did you mean 'search.fraction'\? 'search.fractoin' comes"),
        ("serch.rounds=1", r"unknown key 'serch'. Did you mean 'search'\? 'serch.rounds' comes"),
        ("search.rounds.x=1", "'search.rounds.x' cannot be set, because 'search.rounds' is not a"),
        ("search.protocol=nave", "'search.protocol': .*'search.protocol' comes"),
    ],
)
def test_errors_name_the_key_and_where_it_comes_from(file: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        read_config(file, overrides=parse_overrides([text]))
    assert str(raised.value).startswith(f"{file}: ")
    assert str(raised.value).count("comes from --set.") == 1
    assert str(raised.value).endswith("comes from --set.")


def test_errors_of_the_file_are_not_blamed_on_the_option(file: Path) -> None:
    file.write_text(SMALL.replace("rounds = 3", "rounds = 0"))
    with pytest.raises(ConfigError) as raised:
        read_config(file, overrides=parse_overrides(["search.candidates=2"]))
    assert "--set" not in str(raised.value)


def test_two_options_for_one_key_are_refused(file: Path) -> None:
    for given in ({"name": "a"}, {"seed": 1}):
        (key,) = given
        with pytest.raises(ConfigError, match=f"'run.{key}' comes from --set, and also from"):
            read_config(file, overrides=parse_overrides([f"run.{key}=3"]), **given)
