"""Logs of Inspect and jobs of Harbor, read without either."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from coevolve.errors import HistoryError
from coevolve.past_results import read_past
from tests.past_results.test_tables import outcomes

EVALUATION: dict[str, Any] = {"task": "sums", "model": "openai/m", "metadata": None}


def sample(id: object, value: object, epoch: int = 1, **more: object) -> dict[str, Any]:
    return {"id": id, "epoch": epoch, "scores": {"includes": {"value": value}}, **more}


SAMPLES = [
    sample("t1", "C"),
    sample("t2", "I", model_usage={"m": {"total_cost": 0.5}}),
    sample(3, "P", 2),
    sample("t4", 0.25),
    {"id": "t5", "epoch": 1, "scores": None, "error": {"message": "it broke"}},
]
FOUND = [("words", "t1", 0, 1.0), ("words", "t2", 0, 0.0), ("words", "3", 1, 0.5)]
FOUND_ALL = [*FOUND, ("words", "t4", 0, 0.25), ("words", "t5", 0, None)]


def archive(path: Path, files: dict[str, Any], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as file:
        for name, value in files.items():
            file.writestr(name, json.dumps(value))
    return path


def with_zstd(path: Path, files: dict[str, Any]) -> Path:
    """An archive as Inspect writes it today, compressed with Zstandard."""
    pa = pytest.importorskip("pyarrow")
    packed = {
        n: pa.compress(json.dumps(v).encode(), "zstd", asbytes=True) for n, v in files.items()
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for name, data in packed.items():
            file.writestr(name, data)
    raw = bytearray(path.read_bytes())
    sizes = {name: len(json.dumps(value)) for name, value in files.items()}
    with zipfile.ZipFile(path) as file:
        entries = {info.filename: info for info in file.infolist()}
        central = file.start_dir
    for info in entries.values():
        raw[info.header_offset + 8 : info.header_offset + 10] = (93).to_bytes(2, "little")
    at = central
    for name in entries:
        raw[at + 10 : at + 12] = (93).to_bytes(2, "little")
        raw[at + 24 : at + 28] = sizes[name].to_bytes(4, "little")
        at += 46 + len(name)
    path.write_bytes(raw)
    return path


NAMED = {"eval": EVALUATION | {"metadata": {"candidate": "words"}}}


@pytest.mark.parametrize("write", [archive, with_zstd])
def test_an_archive_and_a_json_log_hold_the_same(tmp_path: Path, write: Any) -> None:
    path = write(tmp_path / "a.eval", {"header.json": NAMED, "summaries.json": SAMPLES})
    plain = tmp_path / "a.json"
    plain.write_text(json.dumps({**NAMED, "samples": SAMPLES}))
    for log in (path, plain):
        past = read_past(log)
        assert outcomes(past) == FOUND_ALL
        assert past.kind == "inspect"
        assert past.cost[1] == 0.5


def test_a_log_that_was_cut_short_has_a_journal(tmp_path: Path) -> None:
    files = {
        "_journal/start.json": NAMED,
        "_journal/summaries/1.json": SAMPLES[:2],
        "_journal/summaries/2.json": SAMPLES[2:],
    }
    assert outcomes(read_past(archive(tmp_path / "a.eval", files))) == FOUND_ALL


@pytest.mark.parametrize(
    ("evaluation", "candidate"),
    [
        ({"metadata": {"candidate": "words"}, "solver": "s"}, "words"),
        ({"task_args": {"candidate": "digits"}}, "digits"),
        ({"solver": "agent"}, "agent"),
        ({}, "openai/m"),
    ],
)
def test_the_candidate_of_a_log(
    tmp_path: Path, evaluation: dict[str, Any], candidate: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"eval": EVALUATION | evaluation, "samples": SAMPLES}))
    assert read_past(path).candidates == (candidate,)


def test_one_of_several_scorers_is_chosen(tmp_path: Path) -> None:
    both = {"id": "t", "epoch": 1, "scores": {"a": {"value": 1}, "b": {"value": 0}}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**NAMED, "samples": [both]}))
    with pytest.raises(HistoryError, match="row 1, column 'scores': there are several: a, b"):
        read_past(path)
    assert read_past(path, scorer="b").score.tolist() == [0.0]
    with pytest.raises(HistoryError, match="there is no score 'c', only a, b"):
        read_past(path, scorer="c")


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ([1], "this is not a log of Inspect"),
        ({"eval": {}}, "has no samples"),
        ({**NAMED, "samples": [sample("t", 7)]}, "row 1, column 'score': .* got 7"),
        ({**NAMED, "samples": [sample("t", {"x": 1})]}, "row 1, column 'includes'"),
        ({**NAMED, "samples": [sample("t", 1), sample("t", 1)]}, "row 2: .*row 1 too"),
        ({**NAMED, "samples": [{"epoch": 1}]}, "row 1, column 'id'"),
    ],
)
def test_wrong_logs_are_refused(tmp_path: Path, log: object, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log))
    with pytest.raises(HistoryError, match=message):
        read_past(path)


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK nothing")
    with pytest.raises(HistoryError, match="this is not a log of Inspect"):
        read_past(tmp_path / "a.eval")
    with pytest.raises(HistoryError, match="this archive is not a log of Inspect"):
        read_past(archive(tmp_path / "b.eval", {"x.json": 1}))


def trial(folder: Path, task: str, reward: object, begun: int = 0, **more: Any) -> None:
    folder.mkdir(parents=True)
    rewards = {} if reward is None else {"verifier_result": {"rewards": {"reward": reward}}}
    result = {
        "task_name": f"org/{task}",
        "started_at": f"2026-01-01T00:00:{begun:02}",
        "agent_info": {"name": "terminus-2", "model_info": {"name": "m"}},
        "agent_result": {"cost_usd": 0.125},
        **rewards,
        **more,
    }
    (folder / "result.json").write_text(json.dumps(result))


def test_a_job_of_harbor(tmp_path: Path) -> None:
    job = tmp_path / "jobs" / "mine"
    trial(job / "a__x", "a", 1.0, begun=5)
    trial(job / "a__y", "a", 0.0, begun=3)
    trial(job / "b__x", "b", None, exception_info={"exception_type": "EnvironmentStartTimeout"})
    trial(job / "c__x", "c", 1.0, reward_valid=False)
    trial(job / "a__x" / "artifacts" / "inner", "forged", 1.0)
    (job / "cut").mkdir()
    (job / "result.json").write_text('{"n_total_trials": 4, "stats": {}}')
    expected = [
        ("terminus-2", "b", 0, None),
        ("terminus-2", "c", 0, None),
        ("terminus-2", "a", 0, 0.0),
        ("terminus-2", "a", 1, 1.0),
    ]
    for folder in (job, job.parent):
        past = read_past(folder)
        assert outcomes(past) == expected
        assert past.kind == "harbor"
        assert past.cost.tolist() == [0.125] * 4
    assert len(read_past(job / "a__x")) == 1


def test_two_models_of_an_agent_are_two_candidates(tmp_path: Path) -> None:
    trial(tmp_path / "x", "a", 1)
    trial(tmp_path / "y", "a", 1, agent_info={"name": "terminus-2", "model_info": {"name": "n"}})
    assert read_past(tmp_path).candidates == ("terminus-2@m", "terminus-2@n")


def test_a_wrong_trial_is_named(tmp_path: Path) -> None:
    trial(tmp_path / "x", "a", 7)
    with pytest.raises(HistoryError, match=r"x/result.json, column 'score': .* got 7"):
        read_past(tmp_path)
    (tmp_path / "x" / "result.json").write_text("{")
    with pytest.raises(HistoryError, match=r"x/result.json: this is not JSON"):
        read_past(tmp_path)
