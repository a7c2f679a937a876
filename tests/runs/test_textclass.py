"""Whole searches of text-classification harnesses, from the command line."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coevolve.runs.session import read_state
from coevolve.store import RunStore
from tests import command
from tests.models.endpoint import Endpoint

WORDS = {"fruit": ["apple", "pear", "plum"], "tool": ["hammer", "saw", "drill"]}
TOML = """
[run]
name = "words"
[search]
rounds = 1
candidates = 2
protocol = "full"
[benchmark]
kind = "textclass"
sets = ["./words"]
starts = ["zero-shot", "few-shot-k"]
mode = "{mode}"
[proposer]
kind = "scripted"
folders = ["nearest", "vote"]
[executor]
workers = 1
[model]
name = "tiny"
base_url = "{url}"
"""


def rows(split: int) -> str:
    """A few sentences, other ones in every split."""
    ends = ["on the table", "in the box", "by the door"]
    return "".join(
        json.dumps({"question": f"There is a {word} {ends[split]}.", "answer": label}) + "\n"
        for label, words in WORDS.items()
        for word in words
    )


def project(folder: Path, url: str, mode: str = "offline") -> Path:
    (folder / "words").mkdir()
    for split, name in enumerate(("train", "val", "test")):
        (folder / "words" / f"{name}.jsonl").write_text(rows(split))
    (folder / "words.toml").write_text(TOML.format(url=url, mode=mode))
    return folder


def knows(body: Any) -> str:
    """A model that knows what an apple is, if it is asked about it last."""
    asked = body["messages"][-1]["content"].rpartition("There is a ")[2].split()[0]
    label = next(label for label, words in WORDS.items() if asked in words)
    return json.dumps({"reasoning": "known", "final_answer": label})


def coevolve(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return command.coevolve(*args, cwd=folder, litellm=True)


@pytest.mark.parametrize("mode", [pytest.param("offline", marks=pytest.mark.long), "online"])
def test_a_search_from_one_file(mode: str, tmp_path: Path) -> None:
    with Endpoint(answer=knows) as endpoint:
        done = coevolve(project(tmp_path, endpoint.base_url, mode), "run", "words.toml")
    assert done.returncode == 0, done.stderr
    state = read_state(tmp_path / "runs" / "words")
    found = {name: state.selector.estimate(name).value for name in state.candidates}
    assert found == {"zero-shot": 1, "few-shot-k": 1, "nearest": 1, "vote": found["vote"]}
    assert state.chosen is not None
    assert state.chosen["candidate"] == "nearest"
    asked = len(endpoint.seen)  # prompts that are alike are asked once
    assert asked == 6 * 6 if mode == "offline" else 6 * 6 < asked <= 6 * 9
    assert state.evaluating.tokens_in == 10 * asked


def keeps_files(body: Any) -> str:
    """A model that writes all it should know into a file, and knows nothing without it."""
    prompt = body["messages"][-1]["content"]
    if "You keep files of context" in prompt:
        text = "\n".join(f"{word}: {label}" for label, words in WORDS.items() for word in words)
        write = {"op": "write", "file": "words.md", "text": text}
        return json.dumps({"operations": [write], "done": True})
    return knows(body) if "hammer: tool" in prompt else '{"final_answer": "fruit"}'


def test_a_search_finds_that_files_of_context_help(tmp_path: Path) -> None:
    with Endpoint(answer=keeps_files) as endpoint:
        file = project(tmp_path, endpoint.base_url) / "words.toml"
        file.write_text(file.read_text().replace('["nearest", "vote"]', '["context-files"]'))
        done = coevolve(tmp_path, "run", "words.toml")
    assert done.returncode == 0, done.stderr
    state = read_state(tmp_path / "runs" / "words")
    found = {name: state.selector.estimate(name).value for name in state.candidates}
    assert found == {"zero-shot": 0.5, "few-shot-k": 0.5, "context-files": 1}


def test_traces_show_validation_and_nothing_of_the_test(tmp_path: Path) -> None:
    with Endpoint(answer=knows) as endpoint:
        assert coevolve(project(tmp_path, endpoint.base_url), "run", "words.toml").returncode == 0
    with RunStore.read(tmp_path / "runs" / "words") as store:
        outcomes = [event for event in store.events() if event["type"] == "outcome"]
        traces = {
            (o["candidate"], o["task"]): store.get(o["trace"]).decode()
            for o in outcomes
            if o.get("trace")
        }
    asked = json.loads(traces["nearest", "words-000"])["trace"]
    assert asked["question"] == "There is a apple in the box."
    assert asked["gold"] == "fruit"
    assert asked["correct"] is True
    assert asked["calls"][0]["prompt"].count("There is a apple in the box.") == 1
    tested = [text for (_, task), text in traces.items() if "-test-" in task]
    assert tested
    assert not [text for text in tested if "door" in text or "fruit" in text or "tool" in text]


def test_a_textclass_benchmark_needs_a_model(tmp_path: Path) -> None:
    folder = project(tmp_path, "http://127.0.0.1:9/v1")
    file = folder / "words.toml"
    file.write_text(file.read_text().partition("[model]")[0])
    done = coevolve(folder, "run", "words.toml")
    assert done.returncode == 2
    assert "needs a model" in done.stderr


def test_a_start_that_is_nowhere_is_named(tmp_path: Path) -> None:
    folder = project(tmp_path, "http://127.0.0.1:9/v1")
    file = folder / "words.toml"
    file.write_text(file.read_text().replace('"few-shot-k"', '"few-shots"'))
    done = coevolve(folder, "run", "words.toml")
    assert done.returncode == 2
    assert "'few-shots', but there is no such folder" in done.stderr
    assert "Did you mean 'few-shot'?" in done.stderr


def test_doctor_spends_nothing_on_trying_the_benchmark_out(tmp_path: Path) -> None:
    with Endpoint(answer=lambda body: "yes") as endpoint:
        done = coevolve(project(tmp_path, endpoint.base_url), "doctor", "words.toml")
        assert len(endpoint.seen) == 1
    assert done.returncode == 0, done.stdout
    assert "the first answer of tiny took" in done.stdout
    assert not (tmp_path / "runs").exists()


TWICE = """
class Twice:
    def __init__(self, model, task): self.model = model
    def learn(self, example): ...
    def predict(self, question):
        said = self.model(question)  # "stub" in the check
        return said if said == "stub" else self.model(question + "?")
    def state(self): return None
    def restore(self, state): ...
"""


def test_a_trial_that_breaks_down_keeps_what_was_asked(tmp_path: Path) -> None:
    with Endpoint(answer=lambda body: "yes") as endpoint:
        folder = project(tmp_path, endpoint.base_url)
        (folder / "twice").mkdir()
        (folder / "twice" / "harness.py").write_text(TWICE)
        file = folder / "words.toml"
        scripted = file.read_text().replace('"nearest", "vote"', '"twice", "vote"')
        file.write_text(scripted + "trial_calls = 1\n")
        assert coevolve(folder, "run", "words.toml").returncode == 0
    with RunStore.read(folder / "runs" / "words") as store:
        outcome = next(
            event
            for event in store.events()
            if event["type"] == "outcome" and event["candidate"] == "twice"
        )
        trace = json.loads(store.get(outcome["trace"]))["trace"]
    assert outcome["fault"]["kind"] == "TrialCapError"
    assert trace["question"] == trace["calls"][0]["prompt"]
    assert trace["calls"][0]["answer"]["text"] == "yes"
