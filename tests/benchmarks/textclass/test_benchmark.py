"""Text classification as a benchmark, with harnesses in a real sandbox."""

import json
from pathlib import Path
from typing import Any

import pytest

from coevolve.benchmarks.base import sealed_tasks
from coevolve.benchmarks.textclass import TextClassification
from coevolve.benchmarks.textclass.data_sets import shuffled
from coevolve.benchmarks.textclass.harness_files import built_in
from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError, StateError, UnknownTaskError
from coevolve.executors.failures import CandidateFault, FaultError, classify
from coevolve.executors.isolation import HarnessFault
from coevolve.executors.workload import Host
from coevolve.models.model_client import StubModel
from coevolve.models.model_errors import ContextTooLong, ModelUnavailable, TrialCapError
from coevolve.search.trials import Blame, Fault
from coevolve.testing import assert_benchmark
from tests.benchmarks.textclass.files import ANIMALS, PUBLISHED, needs_published, write_set
from tests.benchmarks.textclass.workbench import COPY, Scripted, at_work

RECORD = """
class Record:
    def __init__(self, model, task):
        self.model, self.task, self.seen = model, task, []

    def learn(self, example):
        self.seen.append([example.question, example.answer, example.prediction, example.correct])

    def predict(self, question):
        print("asked:", question)
        self.seen.append("a question")
        return self.model(question)

    def state(self):
        return self.seen

    def restore(self, state):
        self.seen = list(state)
"""


@pytest.fixture
def starts(tmp_path: Path) -> list[str]:
    folders = []
    for name, source in (("copy", COPY), ("record", RECORD)):
        (tmp_path / "starts" / name).mkdir(parents=True)
        (tmp_path / "starts" / name / "harness.py").write_text(source)
        folders.append(str(tmp_path / "starts" / name))
    return folders


@pytest.fixture
def animals(tmp_path: Path) -> str:
    return str(write_set(tmp_path / "animals"))


def build(animals: str, starts: list[str], host: Host | None = None, **options: Any) -> Any:
    return TextClassification([animals], starts=starts, host=host or StubModel(), **options)


def test_tasks_are_rows_by_number_in_the_shuffled_order(animals: str, starts: list[str]) -> None:
    benchmark = build(animals, starts)
    order = shuffled(3, seed=42)
    assert benchmark.pool.names == ("animals",)
    assert benchmark.pool.tasks == tuple(f"animals-{row:03}" for row in order)
    assert set(sealed_tasks(benchmark)) == {"animals-test-000", "animals-test-001"}
    assert list(benchmark.starts) == ["copy", "record"]
    other = build(animals, starts, seed=7)
    assert set(other.pool.tasks) == set(benchmark.pool.tasks)


def test_every_set_is_a_pool(tmp_path: Path, animals: str, starts: list[str]) -> None:
    write_set(tmp_path / "beasts", {"train": ANIMALS["train"], "val": ANIMALS["val"]})
    both = TextClassification([animals, str(tmp_path / "beasts")], starts=starts)
    assert both.pool.names == ("animals", "beasts")
    assert list(both.test_tasks) == ["animals"]


@needs_published
def test_the_three_published_sets(starts: list[str]) -> None:
    found = TextClassification(["uspto", "s2d", "law"], data=PUBLISHED, starts=starts)
    assert {name: len(found.pool.members(name)) for name in found.pool.names} == {
        "uspto": 30,
        "s2d": 50,
        "law": 50,
    }
    assert {name: len(tasks) for name, tasks in found.test_tasks.items()} == {
        "uspto": 100,
        "s2d": 212,
        "law": 100,
    }


def test_the_engine_can_rely_on_it(animals: str, starts: list[str]) -> None:
    assert_benchmark(build(animals, starts))
    assert_benchmark(build(animals, ["zero-shot", "few-shot"], mode="online"))


def test_every_built_in_harness_can_be_a_start(animals: str) -> None:
    names = [*built_in()]
    assert list(build(animals, names).starts) == names
    assert build(animals, names).starts["vote"]["harness.py"].strip()


def test_train_is_fed_one_example_at_a_time_in_shuffled_order(
    animals: str, starts: list[str]
) -> None:
    benchmark = build(animals, starts)
    with at_work(benchmark, RECORD) as harness:
        rows = [ANIMALS["train"][row] for row in shuffled(3, seed=42)]
        assert harness.state == {"animals": [[q, a, None, None] for q, a in rows]}


def test_online_learning_asks_first_and_tells_what_was_right(
    animals: str, starts: list[str]
) -> None:
    host = Scripted({"barks": "dog", "purrs": "dog"})
    benchmark = build(animals, starts, host, mode="online")
    with at_work(benchmark, RECORD) as harness:
        seen = {question: rest for question, *rest in harness.state["animals"]}
    assert seen == {
        "It barks.": ["dog", "dog", True],
        "It purrs.": ["cat", "dog", False],
        "It growls.": ["dog", "stub", False],
    }


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_every_step_of_learning_has_the_caps_of_a_trial(
    animals: str, starts: list[str], mode: Any
) -> None:
    once = RECORD.replace("self.seen.append([", "self.model('x'), self.seen.append([")
    twice = once.replace("self.model('x'),", "self.model('x'), self.model('y'),")
    benchmark = TextClassification(
        (animals,), starts=starts, mode=mode, host=StubModel(trial_calls=1)
    )
    with at_work(benchmark, once) as harness:  # it learns from several examples
        assert harness.state is not None
    with pytest.raises(TrialCapError, match="the cap is 1 calls"), at_work(benchmark, twice):
        pass
    capped = pytest.raises(CandidateFault, match=r"^learn: .*the cap is 1 calls")
    with at_work(benchmark, twice, prepared=False) as harness, capped:
        benchmark.check(harness)


def test_a_right_answer_scores_1_and_a_wrong_one_0(animals: str, starts: list[str]) -> None:
    host = Scripted({"It meows.": '{"final_answer": "Cat."}', "It fetches": "cat"})
    benchmark = build(animals, starts, host)
    with at_work(benchmark, COPY) as harness:
        scores = [benchmark.run(harness, f"animals-{row:03}", 0) for row in range(3)]
    assert [score.value for score in scores] == [1.0, 0.0, 0.0]
    assert scores[0].usage == Usage(tokens_in=9, tokens_out=1, dollars=0.5)


def test_the_trace_tells_all_about_a_validation_task(animals: str, starts: list[str]) -> None:
    host = Scripted({"It meows.": '{"final_answer": "Dog"}'})
    benchmark = build(animals, starts, host)
    with at_work(benchmark, COPY) as harness:
        trace = benchmark.run(harness, "animals-000", 0).trace
    assert trace["question"] == "It meows."
    assert trace["answer"] == '{"final_answer": "Dog"}'
    assert (trace["read_as"], trace["gold"], trace["correct"]) == ("dog", "cat", False)
    (call,) = trace["calls"]
    assert call["prompt"].endswith("Text: It meows.\nLabel:")
    assert call["answer"]["text"] == '{"final_answer": "Dog"}'
    assert trace["context_chars"] == 0


def test_the_trace_of_a_long_prompt_is_still_plain_json(tmp_path: Path, starts: list[str]) -> None:
    rows = [("罪" * 30_000, "a"), ("x", "b")]
    folder = write_set(tmp_path / "long", dict.fromkeys(("train", "val", "test"), rows))
    benchmark = build(str(folder), starts)
    source = COPY.replace("if question in self.seen:", "if False:")
    with at_work(benchmark, source) as harness:
        trace = benchmark.run(harness, "long-000", 0).trace
    assert len(json.dumps(trace)) <= 40_000
    assert trace["calls"][0]["prompt"].endswith("罪\nLabel:")
    assert "characters" in trace["calls"][0]["prompt"]


def test_a_trial_of_the_test_leaves_nothing_but_its_score(animals: str, starts: list[str]) -> None:
    benchmark = build(animals, starts, Scripted({"wags": "dog"}))
    with at_work(benchmark, RECORD) as harness:
        score = benchmark.run_test(harness, "animals-test-000", 0)
        assert (score.value, score.trace) == (1.0, {"set": "animals", "correct": True})
        assert score.usage.tokens_out == 1
        assert harness.printed == ""
        benchmark.run(harness, "animals-000", 0)
        assert harness.printed == "asked: It meows.\n"


def test_a_harness_that_quotes_a_test_question_in_an_error_is_not_quoted(
    animals: str, starts: list[str]
) -> None:
    benchmark = build(animals, starts)
    named = "raise type(question, (Exception,), {})(question)"
    source = RECORD.replace("return self.model(question)", named)
    with at_work(benchmark, source) as harness:
        with pytest.raises(HarnessFault) as caught:
            benchmark.run_test(harness, "animals-test-000", 0)
        assert "tail" not in f"{caught.value} {caught.value.fault} {harness.printed}"
        assert caught.value.__context__ is None or caught.value.__suppress_context__
        with pytest.raises(HarnessFault, match="It meows"):
            benchmark.run(harness, "animals-000", 0)


def test_a_refusal_that_quotes_a_test_question_is_not_quoted(
    animals: str, starts: list[str]
) -> None:
    fault = Fault(blame=Blame.CANDIDATE, kind="NoChoice", reason="none of 'It wags its tail.'")
    benchmark = build(animals, starts, Scripted({"tail": FaultError(fault)}))
    with at_work(benchmark, COPY) as harness, pytest.raises(HarnessFault) as caught:
        benchmark.run_test(harness, "animals-test-000", 0)
    assert caught.value.kind == "NoChoice"
    assert "tail" not in str(caught.value.fault)


def test_memory_is_frozen_and_questions_leave_no_trace_in_it(
    animals: str, starts: list[str]
) -> None:
    benchmark = build(animals, starts)
    source = RECORD.replace("return self.model(question)", "return str(len(self.seen))")
    with at_work(benchmark, source) as harness:
        answers = [benchmark.run(harness, "animals-000", 0).trace["answer"] for _ in range(3)]
    assert answers == ["4", "4", "4"]


def test_a_process_started_anew_knows_what_the_first_one_knew(
    animals: str, starts: list[str]
) -> None:
    benchmark = build(animals, starts)
    source = RECORD.replace("return self.model(question)", "return str(len(self.seen))")
    with at_work(benchmark, source) as harness:
        first = benchmark.run(harness, "animals-000", 0).trace["answer"]
        harness.close()
        assert benchmark.run(harness, "animals-001", 0).trace["answer"] == first


def test_another_trial_asks_for_other_samples(animals: str, starts: list[str]) -> None:
    host = Scripted({})
    benchmark = build(animals, starts, host)
    with at_work(benchmark, COPY) as harness:
        for trial in range(3):
            benchmark.run(harness, "animals-000", trial)
    assert [request.get("sample", 0) for request in host.requests] == [0, 1000, 2000]


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        (ModelUnavailable("429"), Blame.INFRASTRUCTURE),
        (ContextTooLong("too long"), Blame.CANDIDATE),
        (
            FaultError(Fault(blame=Blame.OPERATOR, kind="ModelKeyError", reason="no key")),
            Blame.OPERATOR,
        ),
    ],
)
def test_what_the_model_raises_is_nobodys_score(
    animals: str, starts: list[str], error: Exception, blame: Blame
) -> None:
    source = COPY.replace(
        "return self.model(self.task.prompt(question))",
        """try:
            return self.model(self.task.prompt(question))
        except BaseException:
            return "cat"  # a candidate cannot make a score of it""",
    )
    benchmark = build(animals, starts, Scripted({"It meows.": error}))
    with at_work(benchmark, source) as harness:
        with pytest.raises(type(error)) as caught:
            benchmark.run(harness, "animals-000", 0)
        assert classify(caught.value).blame is blame
        with pytest.raises(type(error)):
            benchmark.run(harness, "animals-000", 1)
        assert benchmark.run(harness, "animals-001", 0).value == 0.0


@pytest.mark.parametrize("body", ["return None", "return 7", "raise KeyError(question)"])
def test_a_harness_that_does_not_answer_is_at_fault(
    animals: str, starts: list[str], body: str
) -> None:
    benchmark = build(animals, starts)
    source = RECORD.replace("return self.model(question)", body)
    with at_work(benchmark, source) as harness, pytest.raises(HarnessFault):
        benchmark.run(harness, "animals-000", 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sets": []}, "sets must be a list of one or more sets"),
        ({"sets": "law"}, "sets must be a list of one or more sets, got 'law'"),
        ({"mode": "ofline"}, "mode must be .*got 'ofline'.*mean 'offline'"),
        ({"starts": "copy"}, "starts must be a list"),
        ({"starts": ["zero-shoot", "x"]}, "no starting harness 'zero-shoot'"),
    ],
)
def test_a_mistake_is_named(
    animals: str, starts: list[str], options: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"sets": [animals], "starts": starts, **options}
    with pytest.raises(ConfigError, match=message):
        TextClassification(**given)


def test_two_sets_of_one_name(tmp_path: Path, animals: str, starts: list[str]) -> None:
    other = write_set(tmp_path / "other" / "animals")
    with pytest.raises(ConfigError, match="two sets are named 'animals'"):
        TextClassification([animals, str(other)], starts=starts)


def test_without_a_host_the_tasks_are_known_and_the_model_is_missed(
    animals: str, starts: list[str]
) -> None:
    benchmark = TextClassification([animals], starts=starts)
    assert len(benchmark.pool) == 3
    with at_work(benchmark, COPY) as harness, pytest.raises(ConfigError, match="without a host"):
        benchmark.run(harness, "animals-000", 0)


def test_unknown_tasks_and_unprepared_harnesses(animals: str, starts: list[str]) -> None:
    benchmark = build(animals, starts)
    with at_work(benchmark, COPY, prepared=False) as harness:
        with pytest.raises(StateError, match="call prepare before run"):
            benchmark.run(harness, "animals-000", 0)
        with pytest.raises(UnknownTaskError, match=r"animals-0000.*mean 'animals-000'"):
            benchmark.run(harness, "animals-0000", 0)
        with pytest.raises(UnknownTaskError):  # a test task is no validation task
            benchmark.run(harness, "animals-test-000", 0)
