"""Reading matrices from files."""

import json
from pathlib import Path

import numpy as np
import pytest

from coevolve import Missing, Outcome, Pool, Selector, Usage
from coevolve.analysis import matrix_of_run, read_matrices, read_matrix
from coevolve.errors import EventError, HistoryError, MatrixError

CELLS = np.random.default_rng(1).integers(0, 2, (6, 4)).astype(np.float32)


def test_arrays_of_a_file(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "mine.npz",
        outcomes=CELLS,
        run=np.array([1, 1, 1, 0, 0, 0]),
        tasks=np.array(["a", "b", "c", "d"]),
        candidates=np.arange(6),
        pools=np.array([b"x", b"x", b"y", b"y"]),
        cost_usd=np.ones((6, 4)),
        trials=np.array(3),
        notes_of_others=np.zeros(3),
    )
    matrix = read_matrix(tmp_path / "mine.npz")
    series = matrix.series[0]
    assert matrix.name == series.matrix == "mine"
    assert series.name == "0"
    assert series.candidates == ("3", "4", "5")
    assert series.pool.tasks == ("a", "b", "c", "d")
    assert series.pool.names == ("x", "y")
    assert series.outcomes.tolist() == CELLS[3:].tolist()
    assert series.trials is not None
    assert series.trials.tolist() == [[3] * 4] * 3
    assert series.costs is not None


def test_a_folder_stands_for_its_matrices(tmp_path: Path) -> None:
    for name in ("b", "a"):
        np.savez(tmp_path / f"{name}.npz", outcomes=CELLS)
    (tmp_path / "a.json").write_text("{}")
    assert [m.name for m in read_matrices([tmp_path, tmp_path / "a.npz"])] == ["a", "b"]


def test_names_of_matrices_differ(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        np.savez(tmp_path / folder / "m.npz", outcomes=CELLS)
    with pytest.raises(MatrixError, match="two matrices are named 'm'"):
        read_matrices([tmp_path / "x", tmp_path / "y"])


def test_files_that_are_no_matrix_are_named(tmp_path: Path) -> None:
    text, single, objects, other, wrong = (
        tmp_path / name for name in ("t.npz", "s.npz", "o.npz", "n.npz", "w.npz")
    )
    text.write_text("outcomes")
    with single.open("wb") as file:
        np.save(file, CELLS)
    np.savez(objects, outcomes=CELLS, tasks=np.array(["a", "b", "c", None], dtype=object))
    np.savez(other, scores=CELLS)
    np.savez(wrong, outcomes=CELLS * 3)
    for path, message in (
        (text, "not an .npz file"),
        (single, "holds one array"),
        (objects, "array 'tasks' cannot be read"),
        (other, "no array 'outcomes'; the arrays are: scores"),
        (wrong, r"'outcomes' must be in \[0, 1\], got 3"),
        (tmp_path / "absent.npz", "there is no file"),
        (tmp_path / "data.csv", "there is no file"),
    ):
        with pytest.raises(MatrixError, match=message) as caught:
            read_matrix(path)
        assert str(path) in str(caught.value)
    (tmp_path / "data.txt").write_text("1,2")
    with pytest.raises(MatrixError, match=r"not an \.npz, \.csv, \.parquet or \.jsonl file"):
        read_matrix(tmp_path / "data.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MatrixError, match=r"has no \.npz file"):
        read_matrices([tmp_path / "empty"])


TABLE = """candidate,round,task,pool,trial,split,score,dollars
new,1,a,x,0,validation,1.0,0.5
start,0,a,x,0,validation,0.0,
start,0,a,x,1,validation,1.0,
start,0,b,y,0,validation,1.0,
new,1,b,y,0,validation,,
new,1,b,y,1,validation,0.5,0.25
new,1,secret,y,0,test,1.0,
"""


def test_a_table_of_outcomes(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(TABLE)
    (series,) = read_matrix(tmp_path / "mine.csv").series
    assert (series.starts, series.generated) == (("start",), ("new",))
    assert series.pool.tasks == ("a", "b")
    assert series.pool.names == ("x", "y")
    assert series.outcomes.tolist() == [[0.5, 1.0], [1.0, 0.5]]
    assert series.trials is not None
    assert series.trials.tolist() == [[2, 1], [1, 1]]
    assert series.costs is not None
    assert series.costs[1].tolist() == [0.5, 0.25]


def test_a_table_that_is_wrong_names_the_row(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("candidate,task,score\na,t,7\n")
    with pytest.raises(HistoryError, match=r"mine\.csv, row 2, column 'score'"):
        read_matrix(tmp_path / "mine.csv")


def test_a_run_with_one_starting_harness_has_one(tmp_path: Path) -> None:
    selector = Selector(Pool(["a", "b"]), protocol="full")
    selector.tell_full("start", {"a": 1, "b": 0})
    for name in ("one", "two"):
        (assignment,) = selector.ask([name])
        selector.tell(assignment, {"a": 1, "b": 1})
    (series,) = matrix_of_run("mine", selector.events).series
    assert (series.starts, series.generated) == (("start",), ("one", "two"))


def finished_run() -> Selector:
    """Two starting harnesses and two candidates on half of four tasks, two trials each."""
    selector = Selector(
        Pool(["a", "b", "c", "d"], pools=["x", "x", "y", "y"], weights={"x": 3, "y": 1}),
        fraction=0.5,
        protocol="random-resample",
        trials=2,
    )
    for start in ("start-a", "start-b"):
        selector.tell_full(start, {task: [1, 0] for task in selector.pool.tasks})
    for assignment in selector.ask(["new-1", "new-2"]):
        usage = Usage(dollars=0.25)
        scores: tuple[float | Missing, ...] = (1.0, Missing("time-out"))
        selector.tell(
            assignment,
            [
                Outcome(
                    candidate=assignment.candidate, task=task, trial=n, score=score, usage=usage
                )
                for task in assignment.tasks
                for n, score in enumerate(scores)
            ],
        )
    return selector


def test_a_run_becomes_a_matrix(tmp_path: Path) -> None:
    selector = finished_run()
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in selector.events))
    matrix = read_matrix(path)
    (series,) = matrix.series
    drawn = selector.pool.positions(selector.events[-1]["tasks"][::2])
    assert series.candidates == ("start-a", "start-b", "new-1", "new-2")
    assert series.outcomes[:2].tolist() == [[0.5] * 4] * 2
    assert series.outcomes[2, drawn].tolist() == [1.0, 1.0]
    assert int(np.isnan(series.outcomes[2:]).sum()) == 4
    assert series.pool.weights.tolist() == [0.75, 0.25]
    assert series.costs is not None
    assert series.costs[2, drawn].tolist() == [0.25, 0.25]
    assert np.isnan(series.costs[:2]).all()
    assert "25% of the cells were never evaluated" in matrix.notes[0]


def test_a_candidate_without_outcomes_is_left_out() -> None:
    selector = finished_run()
    selector.ask(["unheard"])
    matrix = matrix_of_run("mine", selector.events)
    assert "unheard" not in matrix.series[0].candidates
    assert "'unheard' first" in matrix.notes[0]


def test_damaged_runs_are_refused(tmp_path: Path) -> None:
    events = [json.dumps(event) for event in finished_run().events]
    for lines, message in (
        (events[1:], "missing or out of order"),
        ([*events[:-1], events[-1].replace("time-out", "refused")], "its seal does not match"),
        ([*events[:-1], events[-1][:40]], "line 6 is not JSON"),
        ([], "the first event must be 'opened'"),
    ):
        path = tmp_path / "run.jsonl"
        path.write_text("\n".join(lines))
        with pytest.raises(MatrixError, match=message) as caught:
            read_matrix(path)
        assert str(path) in str(caught.value)
        assert isinstance(caught.value.__cause__, EventError)
