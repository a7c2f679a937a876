"""A candidate that cannot be evaluated is refused before any trial, and told why."""

import pytest

from coevolve.benchmarks.textclass.harness_check import check
from coevolve.executors.failures import CandidateFault
from coevolve.models.model_client import StubModel
from tests.benchmarks.textclass.lives import alive

FIT = """
class Fit:
    def __init__(self, model, task):
        self.model, self.task, self.seen = model, task, []

    def learn(self, example):
        self.seen.append(example.answer)

    def predict(self, question):
        return self.model.choose(question, [*self.seen, "none"])

    def state(self):
        return {"seen": self.seen}

    def restore(self, state):
        self.seen = state["seen"]
"""


def test_a_fit_candidate_passes() -> None:
    with alive(FIT, None) as life:
        check(life.harness)
        check(life.harness)


def test_a_check_has_the_caps_of_a_trial() -> None:
    twice = FIT.replace("self.seen.append", "self.model('a'), self.model('b'), self.seen.append")
    with alive(twice, None) as life:
        check(life.harness, model=StubModel(trial_calls=2))
        with pytest.raises(CandidateFault, match=r"^learn: .*the cap is 1 calls") as caught:
            check(life.harness, model=StubModel(trial_calls=1))
    assert caught.value.fault.kind == "TrialCapError"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("class Fit:", "import nowhere\nclass Fit:", r"^import: ModuleNotFoundError.*line 2"),
        ("class Fit:", "class Fit", r"^import: SyntaxError"),
        ("def learn", "def teach", r"^import: .*no harness class"),
        ("model, task)", "model)", r"^make an instance: TypeError"),
        ('[*self.seen, "none"]', "self.seen", r"^predict before learning: .*choices must be"),
        ("self.seen.append", "self.sight.append", r"^learn: AttributeError.*line 7, in learn"),
        (
            'self.model.choose(question, [*self.seen, "none"])',
            'None if self.seen else ""',
            r"^predict after learning: .*predict must return a string",
        ),
        (
            'self.model.choose(question, [*self.seen, "none"])',
            "self.model(question, max_tokens=0)",
            r"^predict before learning: the model refused the request: .*max_tokens",
        ),
        ('{"seen": self.seen}', "object()", r"^predict before learning: .*state\(\) must return"),
        ('state["seen"]', 'state["saw"]', r"^restore: KeyError: 'saw' \(harness.py, line 16"),
        ('state["seen"]', "[]", r"^restore: .*at 'seen', \[\] instead of \['French'"),
        (
            '{"seen": self.seen}',
            "None",
            r"^predict after restoring: .*answers 'none', and",
        ),
    ],
)
def test_the_step_that_fails_is_named(old: str, new: str, words: str) -> None:
    assert old in FIT
    with alive(FIT.replace(old, new), None) as life, pytest.raises(CandidateFault, match=words):
        check(life.harness)


FORGETFUL = FIT.replace("return self.model.choose", "self.model(str(self.seen)); return str")
FORGETFUL = FORGETFUL.replace('(question, [*self.seen, "none"])', "(1)").replace(
    "self.seen = state", "self.seen = [] and state"
)
CHANCE = """
import random

class Chance:
    def __init__(self, model, task): self.model = model
    def learn(self, example): ...
    def predict(self, question): return self.model(str(random.random()))
    def state(self): return None
    def restore(self, state): ...
"""


def test_what_the_model_is_asked_shows_that_a_state_lacks_something() -> None:
    source = FORGETFUL.replace('{"seen": self.seen}', '{"seen": None}')
    words = r"^predict after restoring: .*sends other requests to the model than"
    with alive(source, None) as life, pytest.raises(CandidateFault, match=words):
        check(life.harness)


def test_what_is_asked_once_may_be_asked_again_after_restoring() -> None:
    source = """
class Knowing:
    def __init__(self, model, task): self.model, self.usual = model, None
    def learn(self, example): ...
    def predict(self, question):
        self.usual = self.usual or self.model("What is usual?")
        return self.model(f"{question} Not {self.usual}.")
    def state(self): return None
    def restore(self, state): ...
"""
    with alive(source, None) as life:
        check(life.harness)


def test_chance_is_no_fault() -> None:
    with alive(CHANCE, None) as life:
        check(life.harness)


def test_an_empty_candidate_is_refused() -> None:
    with alive({}, None) as life, pytest.raises(CandidateFault, match=r"^import: .*harness.py"):
        check(life.harness)


def test_the_stub_can_be_like_the_model_of_the_run() -> None:
    source = FIT.replace("self.model.choose(question", "str(self.model.scores(question")
    source = source.replace('"none"])', '"none"]))')
    with alive(source, None) as life:
        check(life.harness)
        with pytest.raises(CandidateFault, match=r"^predict before learning: .*scores"):
            check(life.harness, model=StubModel(gives_scores=False))
