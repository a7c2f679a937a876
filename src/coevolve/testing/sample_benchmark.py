"""A benchmark whose tasks say what they do, to try executors with."""

import time
from typing import Any

from coevolve.core.outcomes import Usage
from coevolve.executors.isolation import Harness
from coevolve.executors.workload import Score

HARNESS = b"""
import time


def answer(number):
    return number


def learn():
    return {"share": 0.75}


def speak(text):
    print("the candidate says", text)
    return text.upper()


def fail():
    raise ValueError("no idea")
"""
"""A candidate that can do all that the tasks ask for."""
BROKEN = b"raise RuntimeError('at import')\n"
"""A candidate that cannot even be imported."""


class RateLimitError(Exception):
    """What the client of a service raises when it is asked too often."""


class SampleBenchmark:
    """Runs tasks such as `answer:0.5`: the name of a method and its argument."""

    def check(self, harness: Harness) -> None:
        if harness.call("answer", 1) != 1:
            raise ValueError("answers wrongly")

    def prepare(self, harness: Harness) -> object:
        return harness.call("learn")

    def run(self, harness: Harness, task: str, trial: int) -> float | Score:
        name, _, given = task.partition(":")
        result: float | Score = getattr(self, name)(harness, given, trial)
        return result

    def run_test(self, harness: Harness, task: str, trial: int) -> float:
        return 0.125

    def score(self, harness: Harness, given: str, trial: int) -> float:
        return float(given)

    def trial(self, harness: Harness, given: str, trial: int) -> float:
        return trial / 10

    def answer(self, harness: Harness, given: str, trial: int) -> float:
        return float(harness.call("answer", float(given)))

    def state(self, harness: Harness, given: str, trial: int) -> float:
        learned: Any = harness.state
        return float(learned["share"])

    def whole(self, harness: Harness, given: str, trial: int) -> Score:
        print("the benchmark prints")  # noqa: T201 - it must not reach the trace
        usage = Usage(tokens_in=3, dollars=0.5)
        return Score(value=0.5, usage=usage, trace={"answer": harness.call("speak", given)})

    def call(self, harness: Harness, given: str, trial: int) -> float:
        return float(harness.call(given))

    def limited(self, harness: Harness, given: str, trial: int) -> float:
        raise RateLimitError("slow down")

    def bug(self, harness: Harness, given: str, trial: int) -> float:
        return dict[str, float]()["label"]

    def disk(self, harness: Harness, given: str, trial: int) -> float:
        raise OSError(28, "No space left on device")

    def sleep(self, harness: Harness, given: str, trial: int) -> float:
        time.sleep(float(given))
        return 1.0
