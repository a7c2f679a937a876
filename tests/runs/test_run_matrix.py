"""A matrix: which runs its file describes, and what is said of a mistake."""

from pathlib import Path

import pytest

from coevolve.errors import ConfigError, InputError
from coevolve.runs.config import read_config
from coevolve.runs.config_overrides import parse_overrides
from coevolve.runs.run_matrix import check_new_runs, read_run_matrix

BASE = """
[run]
folder = "runs/all"
[search]
rounds = 3
[benchmark]
kind = "synthetic"
pools = { easy = 10, hard = 20 }
[proposer]
kind = "synthetic"
"""
MATRIX = """
base = "base.toml"
seeds = [1, 2]
[rows.full.search]
protocol = "full"
[rows.naive-7]
seeds = [5]
search = { protocol = "naive", fraction = 0.07 }
[rows.other]
base = "other/base.toml"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    for place in (tmp_path, tmp_path / "other"):
        (place / "base.toml").write_text(BASE)
    (tmp_path / "m.toml").write_text(MATRIX)
    return tmp_path


def test_every_row_and_seed_is_a_run(folder: Path) -> None:
    runs = read_run_matrix(folder / "m.toml").runs()
    assert [run.folder.relative_to(folder).as_posix() for run in runs] == [
        "runs/all/full-s1",
        "runs/all/full-s2",
        "runs/all/naive-7-s5",
        "other/runs/all/other-s1",
        "other/runs/all/other-s2",
    ]
    found = {run.name: run.config for run in runs}
    assert found["full-s2"].search.protocol == "full"
    assert (found["full-s2"].run.seed, found["full-s2"].search.rounds) == (2, 3)
    assert found["naive-7-s5"].search.fraction == 0.07
    assert found["other-s1"].search.protocol == "adaptive"


def test_a_part_of_a_matrix_with_other_values(folder: Path) -> None:
    part = read_run_matrix(folder / "m.toml").chosen(only=["naive-7", "full"], seeds=[7])
    runs = part.runs(parse_overrides(["search.rounds=1", "search.protocol=joint"]))
    assert [run.name for run in runs] == ["full-s7", "naive-7-s7"]
    assert {(run.config.search.rounds, run.config.search.protocol) for run in runs} == {
        (1, "joint")
    }
    with pytest.raises(InputError, match=r"has no row 'naive'; .* Did you mean 'naive-7'\?"):
        read_run_matrix(folder / "m.toml").chosen(only=["naive"])
    for seeds in ([-1], [1, 1]):
        with pytest.raises(InputError, match="seeds must be different whole numbers"):
            part.chosen(seeds=seeds)


def test_rows_of_another_matrix_are_the_same_runs(folder: Path) -> None:
    (folder / "more.toml").write_text(
        'base = "base.toml"\n[include]\n"m.toml" = ["naive-7"]\n[rows.joint]\n'
    )
    runs = read_run_matrix(folder / "more.toml").runs()
    (same,) = read_run_matrix(folder / "m.toml").chosen(only=["naive-7"]).runs()
    assert [run.name for run in runs] == ["naive-7-s5", "joint-s0"]
    assert (runs[0].folder, runs[0].overrides) == (same.folder, same.overrides)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"m\.toml: there are no rows"),
        ("[rows.a]", "'base' is missing; set it for all rows or in row 'a'"),
        ('bas = "x"\n[rows.a]', r"unknown key 'bas'. Did you mean 'base'\?"),
        ("[rows.a.serach]\nrounds = 1", r"'rows.a.serach'. Did you mean 'rows.a.search'\?"),
        ("seeds = []\n[rows.a]", "'seeds' must have at least one entry"),
        ("seeds = [-1]\n[rows.a]", r"'seeds\[0\]' must be at least 0"),
        ('base = "base.toml"\n[rows.a]\nseeds = [1, 1]', "row 'a' has a seed twice"),
        ('base = "base.toml"\n[rows."a/b"]', "the row 'a/b' must have only letters"),
        ('[include]\n"m.toml" = ["a"]', "'include' names 'm.toml', which includes this file"),
        ('[include]\n"n.toml" = ["a"]', r"there is no file .*n\.toml"),
        ('[include]\n"k.toml" = ["fll"]', r"the row 'fll' of .* Did you mean 'full'\?"),
        ('base = "base.toml"\n[include]\n"k.toml" = ["full"]\n[rows.full]', "two rows 'full'"),
        ("[search]\nrounds = 1", "the configuration of one search, not a matrix"),
    ],
)
def test_mistakes_in_the_file_are_named(folder: Path, text: str, message: str) -> None:
    (folder / "k.toml").write_text(MATRIX)
    (folder / "m.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_run_matrix(folder / "m.toml")


def test_a_matrix_in_place_of_a_configuration_is_named(folder: Path) -> None:
    (folder / "m.toml").write_text(MATRIX)
    with pytest.raises(ConfigError, match=r"m\.toml is a matrix of runs: coevolve run --matrix"):
        read_config(folder / "m.toml")


def test_mistakes_of_all_rows_are_found_together(folder: Path) -> None:
    (folder / "m.toml").write_text(
        'base = "base.toml"\n[rows.a.search]\nfractoin = 1\n[rows.b.run]\nname = "x"\n'
        '[rows.c]\nbase = "none.toml"\n[rows.d]'
    )
    with pytest.raises(ConfigError) as raised:
        read_run_matrix(folder / "m.toml").runs()
    message = str(raised.value)
    assert "nothing was started" in message
    assert "Did you mean 'search.fraction'? 'search.fractoin' comes from row 'a' of" in message
    assert "'run.name' comes from row 'b' of" in message
    assert "c: there is no file" in message
    assert "none.toml; the key 'base' must name the configuration of a search" in message
    assert "\nd: " not in message
    everywhere = parse_overrides(["search.rounds=0"])
    (folder / "m.toml").write_text('base = "base.toml"\n[rows.a]\n[rows.b]')
    with pytest.raises(ConfigError, match=r"a, b: .*'search\.rounds' comes from --set"):
        read_run_matrix(folder / "m.toml").runs(everywhere)
    (folder / "m.toml").write_text('base = "base.toml"\n[rows.a.search]\nrounds = 2')
    with pytest.raises(ConfigError) as raised:
        read_run_matrix(folder / "m.toml").runs(everywhere)
    assert str(raised.value).count("comes from") == 1  # not from the row, whose value is replaced


def test_what_cannot_start_is_found_before_anything_runs(folder: Path) -> None:
    (folder / "m.toml").write_text('base = "base.toml"\n[rows.a]\n[rows.b.budget]\ntrials = 3')
    runs = read_run_matrix(folder / "m.toml").runs()
    with pytest.raises(ConfigError, match=r"nothing was started\.\nb: .*trials"):
        check_new_runs(folder / "m.toml", runs)
    assert not (folder / "runs").exists()
