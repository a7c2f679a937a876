"""A short life of an emitted harness, in plain Python with a stub for a model."""

import json
import zlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from coevolve.benchmarks.textclass.inside.interface import Example, Task

DESK = [
    ("The printer eats paper again.", "printer"),
    ("I forgot the password of my mail account.", "password"),
    ("Toner is low, who brings a new one?", "printer"),
    ("My laptop does not wake up.", "laptop"),
    ("The password I chose is refused.", "password"),
    ("The lid of the laptop is broken.", "laptop"),
]
CASES = [
    ("被告人张某入户盗窃现金三千元。", "盗窃"),
    ("被告人李某虚构事实骗取货款。", "诈骗"),
    ("被告人王某在超市盗窃手机一部。", "盗窃"),
    ("被告人赵某持刀抢劫出租车司机。", "抢劫"),
]
REACTIONS = [("CC(=O)OCC {ester}", "CCO.CC(=O)O"), ("c1ccccc1Br", "c1ccccc1"), ("CCN", "CC.N")]


class Stub:
    """Answers by rote, differently for every prompt, and notes what it was asked."""

    window = 8192

    def __init__(self, *, scores: bool = True) -> None:
        self.gives_scores = self.completes = scores
        self.prompts: list[str] = []

    def __call__(self, prompt: str, **options: Any) -> str:
        assert set(options) <= {"max_tokens", "temperature", "stop", "sample"}
        return f"stub {self._number(prompt, str(options.get('sample', 0))) % 5}"

    def choose(self, prompt: str, choices: Sequence[str]) -> str:
        assert choices
        return choices[self._number(prompt, "") % len(choices)]

    def scores(self, prompt: str, choices: Sequence[str]) -> dict[str, float]:
        assert choices
        assert self.gives_scores
        return {choice: -float(self._number(prompt, choice) % 1000) / 100 for choice in choices}

    def _number(self, prompt: str, more: str) -> int:
        self.prompts.append(prompt)
        return zlib.crc32(f"{prompt}|{more}".encode())


def harness_of(source: str, model: Stub, task: Task) -> Any:
    """The harness that a file defines."""
    space: dict[str, Any] = {}
    exec(compile(source, "harness.py", "exec"), space)
    kinds = [value for value in space.values() if hasattr(value, "learn")]
    assert len(kinds) == 1
    return kinds[0](model, task)


def lived(
    source: str,
    rows: Sequence[tuple[str, str]],
    *,
    labels: list[str] | None,
    scores: bool = True,
    question: str = "",
) -> SimpleNamespace:
    """Answers before learning, after it, and of a harness made from the state; the prompts."""
    model, task = Stub(scores=scores), Task("Which is it?", labels)
    question = question or rows[0][0][: len(rows[0][0]) // 2]
    harness = harness_of(source, model, task)
    before = harness.predict(question)
    for text, answer in rows:
        harness.learn(Example(text, answer))
    state = json.dumps(harness.state(), allow_nan=False)
    after = harness.predict(question)
    assert json.dumps(harness.state()) == state
    again = harness_of(source, model, task)
    again.restore(json.loads(state))
    assert json.dumps(again.state()) == state
    return SimpleNamespace(
        before=before, after=after, restored=again.predict(question), prompts=model.prompts
    )
