"""Files of users: configurations, tasks, data sets and matrices."""

import functools
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from coevolve.analysis.matrix_files import read_matrix
from coevolve.benchmarks.base import make_pool
from coevolve.benchmarks.benchmark_settings import read_tasks
from coevolve.benchmarks.textclass.data_sets import read_own, read_rows
from coevolve.benchmarks.textclass.published_sets import law_split
from coevolve.core.selector import Selector
from coevolve.past_results import read_past
from coevolve.runs.config import RunConfig, read_config
from coevolve.runs.config_overrides import Override
from coevolve.runs.run_matrix import read_run_matrix
from tests.fuzz.inputs import changed, json_bytes, spoiled
from tests.fuzz.target import Target, json_lines, resealed, scratch, written

_TOML = b"""
[run]
name = "mine"
seed = 5
[search]
rounds = 3
candidates = 2
fraction = 0.3
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["a", "b"]
[proposer]
kind = "scripted"
folders = ["c"]
[model]
name = "openai/gpt"
key = "KEY"
[budget]
trials = 100
"""
_MATRIX = b"""
base = "base.toml"
seeds = [1, 2]
[include]
"other.toml" = ["full"]
[rows.naive-7]
seeds = [5]
[rows.naive-7.search]
protocol = "naive"
fraction = 0.07
"""


def _configurations() -> list[Any]:
    path = Path(__file__).parents[1] / "runs" / "recorded_configurations.jsonl"
    return [json.loads(line)["config"] for line in path.read_text().splitlines()]


def _from_json(data: Any) -> None:
    if isinstance(data, dict):
        RunConfig.from_json(data, source="recorded")


def _tasks(given: tuple[str, bytes]) -> None:
    ending, data = given
    make_pool(read_tasks(written(f"tasks.{ending}", data)))


def _folder(given: tuple[str, bytes, bytes]) -> None:
    name, words, rows = given
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        good = b'{"question": "Wet?", "answer": "yes"}\n'
        for split, data in {"train": rows, "val": good}.items():
            (Path(folder) / f"{split}.jsonl").write_bytes(data)
        (Path(folder) / name).write_bytes(words)
        read_own(Path(folder))


def _law(data: bytes) -> None:
    law_split(data, "3-3.json")


@functools.cache
def _npz() -> bytes:
    file = io.BytesIO()
    outcomes = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 1]])
    np.savez(file, outcomes=outcomes, tasks=["a", "b", "c"], cost=outcomes * 0.1)
    return file.getvalue()


@functools.cache
def _selector_events() -> list[dict[str, Any]]:
    selector = Selector(make_pool(["a", "b"]), protocol="full")
    for start in ("start-a", "start-b"):
        selector.tell_full(start, {"a": 1, "b": 0})
    (assignment,) = selector.ask(["new"])
    selector.tell(assignment, {"a": 1, "b": 1})
    return list(selector.events)


def _selector(events: Any) -> None:
    if isinstance(events, list):
        written = resealed(events)
        Selector.from_events(written)
        _matrix(("jsonl", json_lines(written)))


def _matrix(given: tuple[str, bytes]) -> None:
    ending, data = given
    read_matrix(written(f"outcomes.{ending}", data))


_RESULTS = (
    {"candidate": "a", "task": "t", "score": 1.0, "trial": 0, "cost": 0.5},
    {"candidate": "a", "task": "u", "score": None, "pool": "p", "split": "validation"},
)
_CSV = b'candidate,task,score,trial,cost,split\na,t,1.0,0,0.5,validation\n\'=b,"t, u",,1,,\n'
_SAMPLE = {
    "id": "t",
    "epoch": 1,
    "scores": {"includes": {"value": "C"}},
    "model_usage": {"m": {"total_cost": 0.5}},
}
_LOG = {"eval": {"model": "m", "metadata": {"candidate": "a"}}, "samples": [_SAMPLE] * 2}
_TRIAL = {
    "task_name": "org/t",
    "started_at": "2026-01-01",
    "agent_info": {"name": "agent", "model_info": {"name": "m"}},
    "agent_result": {"cost_usd": 0.5},
    "verifier_result": {"rewards": {"reward": 1.0}},
}


def _past(name: str) -> Callable[[bytes], object]:
    return lambda data: read_past(written(name, data))


@functools.cache
def _archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": _LOG["eval"]}))
        archive.writestr("summaries.json", json.dumps(_LOG["samples"]))
    return file.getvalue()


def _archived(header: bytes, summaries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", header)
        archive.writestr("summaries.json", summaries)
    return file.getvalue()


def _job(results: list[bytes]) -> None:
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        for number, data in enumerate(results):
            trial = Path(folder) / f"trial-{number}"
            trial.mkdir()
            (trial / "result.json").write_bytes(data)
        read_past(folder)


def _columns(rows: list[Any]) -> None:
    """A Parquet file of any values; pyarrow itself refuses other bytes."""
    from pyarrow import ArrowException, Table, parquet  # type: ignore[import-untyped]

    path = scratch() / "past.parquet"
    try:
        parquet.write_table(Table.from_pylist(rows), path)
    except (ArrowException, OverflowError, TypeError, ValueError, AttributeError):
        return  # it has no table of such rows
    read_past(path)


TARGETS: tuple[Target, ...] = (
    Target(
        name="configuration file",
        written_by="user",
        inputs=spoiled(_TOML) | st.binary(max_size=60),
        read=lambda data: read_config(written("mine.toml", data)),
    ),
    Target(
        name="file of a run matrix",
        written_by="user",
        inputs=spoiled(_MATRIX) | st.binary(max_size=60),
        read=lambda data: read_run_matrix(written("matrix.toml", data)),
    ),
    Target(
        name="KEY=VALUE of --set",
        written_by="user",
        inputs=spoiled(b'benchmark.pools."a b"={x = [1, "y"]}').map(
            lambda data: data.decode(errors="replace")
        )
        | st.text(max_size=40),
        read=Override.parse,
    ),
    Target(
        name="recorded configurations",
        written_by="user",
        inputs=changed(*_configurations()),
        read=_from_json,
    ),
    Target(
        name="tasks_file",
        written_by="user",
        inputs=st.tuples(
            st.sampled_from(["json", "txt"]),
            json_bytes(["a", "b"], {"easy": ["a"], "hard": ["b", "c"]}),
        ),
        read=_tasks,
    ),
    Target(
        name="rows of a data set",
        written_by="user",
        inputs=json_bytes({"question": "Wet?", "answer": "yes"}),
        read=lambda data: read_rows(data, Path("train.jsonl")),
    ),
    Target(
        name="folder of a data set",
        written_by="user",
        inputs=st.tuples(
            st.sampled_from(["task.toml", "task.json"]),
            spoiled(b'instructions = "Classify."\nlabels = ["yes", "no"]\n')
            | json_bytes({"instructions": "Classify.", "labels": ["yes", "no"]}),
            json_bytes({"question": "Wet?", "answer": "yes"}),
        ),
        read=_folder,
    ),
    Target(
        name="the published Law set",
        written_by="user",
        inputs=json_bytes([{"instruction": "a", "question": "b", "answer": "c"}] * 3),
        read=_law,
    ),
    Target(
        name="outcome matrices",
        written_by="user",
        inputs=st.tuples(
            st.sampled_from(["npz", "jsonl"]), spoiled(_npz(), json_lines(_selector_events()))
        ),
        read=_matrix,
    ),
    Target(
        name="events of a selector",
        written_by="user",
        inputs=changed(_selector_events()),
        read=_selector,
    ),
    Target(
        name="past results in CSV",
        written_by="user",
        inputs=spoiled(_CSV) | st.binary(max_size=60),
        read=_past("past.csv"),
    ),
    Target(
        name="past results in JSONL",
        written_by="user",
        inputs=st.lists(json_bytes(*_RESULTS), max_size=3).map(b"\n".join),
        read=_past("past.jsonl"),
    ),
    Target(
        name="past results in Parquet",
        written_by="user",
        inputs=changed(list(_RESULTS)).filter(lambda rows: isinstance(rows, list)),
        read=_columns,
    ),
    Target(
        name="logs of Inspect in JSON",
        written_by="user",
        inputs=json_bytes(_LOG),
        read=_past("past.json"),
    ),
    Target(
        name="archives of Inspect",
        written_by="user",
        inputs=spoiled(_archive())
        | st.builds(_archived, json_bytes({"eval": _LOG["eval"]}), json_bytes(_LOG["samples"])),
        read=_past("past.eval"),
    ),
    Target(
        name="jobs of Harbor",
        written_by="user",
        inputs=st.lists(json_bytes(_TRIAL), min_size=1, max_size=3),
        read=_job,
    ),
)
