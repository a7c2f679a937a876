"""Tables of past results: what is read, and what is refused with its row and column."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.errors import HistoryError
from coevolve.formatting import csv_cell
from coevolve.past_results import PastResults, read_past

Rows = list[tuple[str, str, int, float | None]]


def outcomes(past: PastResults) -> Rows:
    """Candidate, task, trial and score of every row."""
    columns = (past.candidate, past.task, past.trial, past.score)
    return [
        (past.candidates[c], past.tasks[t], n, None if s != s else s)
        for c, t, n, s in zip(*(column.tolist() for column in columns), strict=True)
    ]


def written(folder: Path, text: str | bytes, name: str = "past.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


ROWS: Rows = [("a", "t1", 0, 1.0), ("a", "t1", 1, 0.5), ("b", "t2", 0, None)]


def test_the_three_formats_hold_the_same(tmp_path: Path) -> None:
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    names = ("candidate", "task", "trial", "score")
    lines = [",".join("" if v is None else str(v) for v in row) for row in ROWS]
    table = written(tmp_path, "\n".join(["candidate,task,trial,score", *lines]) + "\n")
    values = [dict(zip(names, row, strict=True)) for row in ROWS]
    jsonl = written(tmp_path, "\n".join(map(json.dumps, values)), "past.jsonl")
    parquet.write_table(pa.Table.from_pylist(values), tmp_path / "past.parquet")
    for path in (table, jsonl, tmp_path / "past.parquet"):
        assert outcomes(read_past(path)) == ROWS, path


def test_extra_columns_and_order_do_not_matter_and_costs_are_read(tmp_path: Path) -> None:
    past = read_past(written(tmp_path, "\ufeffscore,note,task,candidate,dollars\n1,x,t,c,0.25\n"))
    assert outcomes(past) == [("c", "t", 0, 1.0)]
    assert past.cost.tolist() == [0.25]


def test_trials_may_count_from_one(tmp_path: Path) -> None:
    past = read_past(written(tmp_path, "candidate,task,score,trial\nc,t,1,2\nc,t,0,1\n"))
    assert outcomes(past) == [("c", "t", 1, 1.0), ("c", "t", 0, 0.0)]


def test_rows_of_a_sealed_test_are_not_read(tmp_path: Path) -> None:
    text = "candidate,task,score,split\nc,t,1,validation\nc,secret,1,test\nc,t,0,rescore\n"
    past = read_past(written(tmp_path, text))
    assert outcomes(past) == [("c", "t", 0, 1.0)]
    assert past.other_splits == 2
    assert past.tasks == ("t",)


NAMES = st.text('abé=+-@ ,"', min_size=1, max_size=6).filter(str.strip)


@given(st.lists(st.tuples(NAMES, NAMES, st.floats(0, 1)), unique_by=lambda row: row[:2]))
def test_what_an_export_escapes_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, float]]
) -> None:
    path = tmp_path_factory.mktemp("table") / "past.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("candidate", "task", "score"))
        writer.writerows((csv_cell(c), csv_cell(t), s) for c, t, s in rows)
    assert outcomes(read_past(path)) == [(c, t, 0, s) for c, t, s in rows]


WRONG: list[tuple[str, str | bytes, str]] = [
    ("past.csv", "candidate,task\na,t\n", "row 1, column 'score': there is no such column"),
    ("past.csv", "candidate,task,Score\na,t,1\n", "Is it 'Score'"),
    ("past.csv", "candidate,task,score,trail\na,t,1,0\n", "column 'trail': .* rename it to 'tri"),
    ("past.csv", "candidate,task,score,score\n", "row 1, column 'score': two columns"),
    ("past.csv", "", "the file is empty, .* must name the columns candidate, task and score"),
    ("past.csv", "candidate;task;score\na;t;1\n", "row 1: the cells are separated by ';'; save"),
    ("past.csv", "candidate,task,score\na,t,85\n", "row 2, column 'score': .* got '85'"),
    ("past.csv", "candidate,task,score\na,t,1\na,u,nan\n", "row 3, column 'score'"),
    ("past.csv", "candidate,task,score\na,t,good\n", "row 2, column 'score': .* got 'good'"),
    ("past.csv", "candidate,task,score\n,t,1\n", "row 2, column 'candidate': it is empty"),
    ("past.csv", "candidate,task,score\na,t\n", "row 2: it has 2 cells, but the header has 3"),
    ("past.csv", "candidate,task,score,trial\na,t,1,-1\n", "row 2, column 'trial'"),
    ("past.csv", "candidate,task,score,trial\na,t,1,2000\n", "row 2, column 'trial'"),
    ("past.csv", "candidate,task,score,cost\na,t,1,-3\n", "row 2, column 'cost'"),
    ("past.csv", "candidate,task,score,pool\na,t,1,x\nb,t,1,y\n", "row 3, column 'pool'"),
    (
        "past.csv",
        b"candidate,task,score\na,t,1\na,\xff,1\n",
        "row 3, column 'task': this is not UTF-8",
    ),
    ("past.csv", b"candidate,task,score\n\xff,t,1\n", "row 2, column 'candidate': this is not U"),
    ("past.csv", 'candidate,task,score\na,t,1\n"a,t,1\n', "row 3: this is not CSV"),
    (
        "past.csv",
        "candidate,task,score\na,t,1\nb,t,1\na,t,1\n",
        "row 4: candidate 'a', task 't', trial 0 is in .*row 2 too; .* a column 'trial'",
    ),
    ("past.jsonl", '{"candidate": "a", "task": "t", "score": 1}\n{"a"\n', "row 2: this is not J"),
    ("past.jsonl", '{"candidate": "a", "task": "t"}\n', "row 1, column 'score'"),
    ("past.jsonl", '{"candidate": "a", "task": ["t"], "score": 1}\n', "row 1, column 'task'"),
    ("past.jsonl", '{"candidate": "\\ud800", "task": "t", "score": 1}\n', "not valid Unicode"),
    ("past.jsonl", '{"seq": 0, "type": "opened"}\n', "an event and not an outcome"),
    ("past.csv", b"\r\xffcandidate,task,score\n", "row 1: this is not UTF-8"),
    (
        "past.csv",
        b"candidate,task,score\n" + b"a" * 200_000 + b"\xff\n",
        "row 2: this is not UTF-8",
    ),
    ("past.jsonl", b'{"candidate": "\xff"}\n', "row 1: this is not UTF-8"),
    ("past.parquet", "candidate", r"this is not a Parquet file: .*[^.]\.$"),
    ("past.xlsx", "", "is not a .csv, .jsonl, .parquet, .eval or .json file"),
]


@pytest.mark.parametrize(("name", "text", "message"), WRONG)
def test_wrong_rows_are_named(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = written(tmp_path, text, name)
    with pytest.raises(HistoryError, match=message) as raised:
        read_past(path)
    assert str(path) in str(raised.value)


def test_a_million_rows_may_end_with_a_wrong_one(tmp_path: Path) -> None:
    """The message names the row also where there are many; fewer here, for the time it takes."""
    rows = "".join(f"c{n // 100},t{n % 100},1\n" for n in range(20_000))
    path = written(tmp_path, f"candidate,task,score\n{rows}c0,t0,1\n")
    with pytest.raises(HistoryError, match=r"row 20,002: .*row 2 too"):
        read_past(path)


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(HistoryError, match=r"pip install 'task-coevolve\[parquet\]'"):
        read_past(written(tmp_path, "", "past.parquet"))


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    written(tmp_path, "candidate,task,score\na,t,1\n", "1.csv")
    written(tmp_path, '{"candidate": "b", "task": "t", "score": false}', "2.jsonl")
    past = read_past(tmp_path)
    assert outcomes(past) == [("a", "t", 0, 1.0), ("b", "t", 0, 0.0)]
    assert past.place(1, "task") == f"{tmp_path / '2.jsonl'}, row 1, column 'task'"
    (tmp_path / "empty").mkdir()
    with pytest.raises(HistoryError, match="has neither trials of Harbor nor"):
        read_past(tmp_path / "empty")
    with pytest.raises(HistoryError, match="there is no file or folder"):
        read_past(tmp_path / "nothing")


def test_the_digest_is_that_of_the_contents(tmp_path: Path) -> None:
    text = "candidate,task,score\na,t,1\n"
    first, second, other = (
        read_past(written(tmp_path, data, name)).digest
        for name, data in {"1.csv": text, "2.csv": text, "3.csv": text + "a,u,1\n"}.items()
    )
    assert first == second != other


def test_only_a_single_candidate_gets_another_name(tmp_path: Path) -> None:
    past: Any = read_past(written(tmp_path, "candidate,task,score\nold,t,1\n"))
    assert past.renamed("new").candidates == ("new",)
    two = read_past(written(tmp_path, "candidate,task,score\na,t,1\nb,t,1\n"))
    with pytest.raises(HistoryError, match="has 2 candidates"):
        two.renamed("new")
