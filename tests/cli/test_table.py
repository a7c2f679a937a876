"""`coevolve table`, run as users run it."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from rich.cells import cell_len

from coevolve_reproductions.run_tables import TABLES
from tests.command import coevolve
from tests.reproductions.small_runs import make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs; tests only read it."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("full", "naive", "task-coevolve"):
        make_run(folder / name, name)
    return folder


@pytest.fixture
def project(finished: Path, tmp_path: Path) -> Path:
    """A copy of a project whose run has ended."""
    return shutil.copytree(finished, tmp_path / "project")


def table(*words: object, cwd: Path, width: int = 80) -> subprocess.CompletedProcess[str]:
    return coevolve("table", *words, cwd=cwd, env=os.environ | {"COLUMNS": str(width)})


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [60, 80])
def test_every_table_fits_the_terminal(name: str, width: int, runs: Path) -> None:
    done = table(name, ".", cwd=runs, width=width)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith("  coevolve ")]
    assert max(map(cell_len, lines)) <= width  # commands stay in one line
    assert "task-coevolve" in done.stdout or name == "phase0"  # a name is not broken in a word
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["cost", "stronger"])
def test_rows_of_a_method_at_several_fractions_are_told_apart(name: str, tmp_path: Path) -> None:
    for fraction in (0.2, 0.5):
        make_run(tmp_path / f"naive-{fraction}", "naive", fraction=fraction)
    found = table(name, ".", cwd=tmp_path, width=40).stdout
    for share in (20, 50):
        assert re.search(rf"(naive|luna) +{share} ", found), found


def test_a_missing_score_is_a_dash_and_names_its_command(runs: Path) -> None:
    done = table("tb", "naive", cwd=runs)
    assert re.search(r"naive +20 +0 +- +-", done.stdout)
    assert "coevolve rescore r2-1 naive" in done.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("suffix", "begins"),
    [(".md", "**Sealed"), (".tex", r"\begin{table}"), (".csv", "section,model"), (".json", "{")],
)
def test_a_file_has_the_format_of_its_suffix(
    suffix: str, begins: str, runs: Path, tmp_path: Path
) -> None:
    path = tmp_path / "new" / f"tc{suffix}"
    done = table("tc", ".", "--to", path, cwd=runs)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert path.read_text().startswith(begins)
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    form = {".md": "markdown", ".tex": "latex"}.get(suffix, suffix[1:])
    assert table("tc", ".", "--format", form, cwd=runs).stdout == path.read_text()


def test_json_lists_the_commands_that_complete_the_table(runs: Path) -> None:
    found = json.loads(table("tb", ".", "--json", cwd=runs).stdout)
    assert found["missing"] == [
        "coevolve rescore r2-1 naive",
        "coevolve rescore r2-1 task-coevolve",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tie", "."), "there is no table 'tie'"),
        (("tc", "nothing"), "nothing is not a run folder or a folder of runs"),
        (("tc", ".", "--format", "html"), "--format must be one of markdown, latex, csv, json"),
        (("tc", ".", "--to", "x.html"), "needs one of the suffixes .md, .tex, .csv, .json"),
        (("tc", ".", "--json", "--format", "csv"), "cannot be combined"),
        (("tc", ".", "--rounds", "1"), "--rounds has no effect on the table tc"),
        (("tc", ".", "--yes"), "--yes has an effect only with --rescore"),
        (("difficulty", ".", "--rounds", "9"), "must be from 0 to 3, got 9"),
        (("tc",), "Missing argument 'RUN...'"),
    ],
)
def test_bad_input_exits_with_2(words: tuple[str, ...], message: str, runs: Path) -> None:
    done = table(*words, cwd=runs)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_run_is_named(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "runs" / "broken").mkdir(parents=True)
    (tmp_path / "runs" / "broken" / "run.db").write_text("hello")
    for path in (".", "runs/broken"):
        done = table("tc", path, cwd=tmp_path)
        assert done.returncode == 2
        assert "runs/broken" in done.stderr
        assert "Traceback" not in done.stderr


def test_names_are_escaped_on_a_terminal(tmp_path: Path) -> None:
    make_run(tmp_path / "run", "naive", model="red\x1b[31m[bold]")
    done = table("tc", ".", cwd=tmp_path)
    assert "\x1b[31m" not in done.stdout
    assert r"red\x1b[31m[bold]" in done.stdout


def test_rescore_pays_for_what_the_table_lacks(project: Path) -> None:
    """The candidate r3-0 of the project is right everywhere on its 16 validation tasks."""
    asked = table("tb", ".", "--rescore", cwd=project)
    assert asked.returncode == 2
    assert "1 candidate on all validation tasks, 16 trials" in asked.stderr
    paid = table("tb", ".", "--rescore", "--yes", "--json", cwd=project)
    assert paid.returncode == 0, paid.stderr
    found = json.loads(paid.stdout)
    assert found["missing"] == []
    assert found["rows"][-1]["average"] == 1.0
    again = table("tb", ".", "--rescore", cwd=project)
    assert "Nothing to rescore" in again.stderr


def test_harnesses_of_the_project_that_ran_the_sealed_test_are_hand_designed(
    project: Path,
) -> None:
    mine = project / "mine"
    mine.mkdir()
    (mine / "harness.py").write_text("def double(n):\n    return 2 * n if n < 202 else 0\n")
    words = ("evaluate", "mine", "r1-0", "--config", "coevolve.toml", "--split", "test", "-q")
    assert coevolve(*words, cwd=project).returncode == 0
    rows = json.loads(table("tc", "runs", "--json", cwd=project).stdout)["rows"]
    assert [row["method"] for row in rows] == ["same", "square", "mine", "task-coevolve"]
    assert (rows[2]["test"], rows[2]["n"]) == (0.5, 1)
