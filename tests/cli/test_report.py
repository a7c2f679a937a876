"""`coevolve report`: what it writes, and that it verifies it."""

import json
import sys
from pathlib import Path

import pytest

from coevolve.cli.report_command import report
from tests.cli.projects import coevolve


def test_a_report_is_written_and_verified(finished: Path, tmp_path: Path) -> None:
    run, file = finished / "runs" / "doubling", tmp_path / "deep" / "report.html"
    done = coevolve("report", run, "--to", file)
    assert (done.returncode, done.stdout) == (0, f"Wrote the report of {run} to {file}.\n")
    assert [path.name for path in file.parent.iterdir()] == ["report.html"]
    checked = coevolve("report", run, "--to", file, "--verify")
    assert checked.returncode == 0
    assert checked.stdout == f"Every number of {file} follows from the journal of {run}.\n"


def test_a_report_with_another_number_fails(finished: Path, tmp_path: Path) -> None:
    run, file = finished / "runs" / "doubling", tmp_path / "report.html"
    coevolve("report", run, "--to", file)
    text = file.read_text("utf-8")
    trials = json.loads(coevolve("status", run, "--json").stdout)["paid"]
    file.write_text(text.replace(f'"trials": {trials}', f'"trials": {trials + 1}', 1), "utf-8")
    checked = coevolve("report", run, "--to", file, "--verify")
    assert checked.returncode == 1
    assert f"summary.trials: the report has {trials + 1}, the journal {trials}" in checked.stdout
    found = json.loads(coevolve("report", run, "--to", file, "--verify", "--json").stdout)
    assert found["mismatches"][0] == {
        "where": "summary.trials",
        "reported": str(trials + 1),
        "recorded": str(trials),
    }


def test_markdown_has_its_figures_beside_it(finished: Path, tmp_path: Path) -> None:
    run, file = finished / "runs" / "doubling", tmp_path / "a b.md"
    done = coevolve("report", run, "--to", file, "--json")
    found = json.loads(done.stdout)
    assert (found["format"], len(found["figures"])) == ("markdown", 18)
    assert "](a%20b-figures/matrix.svg)" in file.read_text("utf-8")
    assert (tmp_path / "a b-figures" / "matrix.png").read_bytes().startswith(b"\x89PNG")
    assert coevolve("report", run, "--to", file, "--verify").returncode == 0


def test_without_resvg_markdown_has_svg_files(
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    report(finished / "runs" / "doubling", to=tmp_path / "r.md")
    names = [path.name for path in (tmp_path / "r-figures").iterdir()]
    assert len(names) == 9
    assert all(name.endswith(".svg") for name in names)
    assert "task-coevolve[figures]" in capsys.readouterr().out


def test_figures_for_papers_and_slides(finished: Path, tmp_path: Path) -> None:
    run, folder = finished / "runs" / "doubling", tmp_path / "figures"
    options = ("--to", tmp_path / "r.html", "--figures", folder, "--theme", "dark")
    assert coevolve("report", run, *options).returncode == 0
    assert len(list(folder.iterdir())) == 18
    text = (folder / "progress.svg").read_text("utf-8")
    assert text.startswith("<?xml")
    assert "#14181d" in text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--to", "report.pdf"), "use .html or .md"),
        (("--to", "no.html", "--verify"), "cannot read no.html"),
        (("--to", "no.html", "--verify", "--figures", "x"), "leave out --figures"),
        (("--to", "/dev/null/report.html"), "cannot write"),
    ],
)
def test_what_cannot_be_done_is_refused(
    finished: Path, options: tuple[str, ...], expected: str
) -> None:
    done = coevolve("report", finished / "runs" / "doubling", *options)
    assert done.returncode == 2
    assert expected in " ".join(done.stderr.split())


def test_a_file_that_is_no_report_is_refused(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<html></html>")
    run = finished / "runs" / "doubling"
    done = coevolve("report", run, "--to", tmp_path / "page.html", "--verify")
    assert done.returncode == 2
    assert "no numbers of a report" in done.stderr
