"""Which rows of a set are secret, and that only candidates that know them are found."""

import json
import random
from functools import cache
from pathlib import Path

import pytest

from coevolve.benchmarks.base import leak_scan_of, sealed_secrets_of, secrets_of
from coevolve.benchmarks.textclass import TextClassification
from coevolve.benchmarks.textclass.data_sets import load_set
from coevolve.benchmarks.textclass.harness_files import built_in, harness_files
from coevolve.search.leaks import LeakScan
from tests.benchmarks.textclass.files import ANIMALS, PUBLISHED, needs_published, write_set

SETS = [
    "service-desk",
    *(pytest.param(name, marks=needs_published) for name in ("s2d", "uspto", "law")),
]
HINT = "    # A text with {0}, {1} or {2} is often about {3}; {4} says little.\n"
EXAMPLE = '\nSHOWN = """Question: {0}\nAnswer: {1}"""\n'


@cache
def benchmark_of(name: str) -> TextClassification:
    return TextClassification([name], data=PUBLISHED)


@cache
def scan_of(name: str) -> LeakScan:
    scan = leak_scan_of(benchmark_of(name))
    assert scan is not None
    return scan


def variants(name: str, count: int) -> list[str]:
    """Built-in harnesses with advice and examples in the words of the training rows."""
    rng = random.Random(0)
    train = load_set(name, PUBLISHED).train
    words = sorted({word for row in train for word in row.question.split()})
    sources = [harness_files(harness)["harness.py"].decode() for harness in built_in()]
    found = []
    for number in range(count):
        source, row = rng.choice(sources), rng.choice(train)
        lines = source.splitlines(keepends=True)
        for _ in range(rng.randrange(1, 12)):
            hint = HINT.format(*rng.sample(words, 3), row.answer, rng.choice(words))
            lines.insert(rng.randrange(len(lines)), hint)
        example = EXAMPLE.format(row.question[: rng.choice((40, 200, 9999))], row.answer)
        found.append("".join(lines) + (example if number % 2 else ""))
    return found


@pytest.mark.parametrize("name", SETS)
def test_harnesses_that_learn_are_clean(name: str) -> None:
    for harness in built_in():
        assert scan_of(name).scan(harness_files(harness)) == (), harness
    for source in variants(name, 200):
        assert scan_of(name).scan({"harness.py": source.encode()}) == (), source


@pytest.mark.parametrize("name", SETS)
def test_the_question_of_every_task_is_found(name: str) -> None:
    benchmark = benchmark_of(name)
    plain = harness_files("nearest")["harness.py"].decode()
    secrets = secrets_of(benchmark) | sealed_secrets_of(benchmark)
    asked = {task: secret.text for task, secret in secrets.items()}
    table = "".join(f"    {text!r}: {number},\n" for number, text in enumerate(asked.values()))
    leaks = scan_of(name).scan({"harness.py": f"{plain}\nKNOWN = {{\n{table}}}\n".encode()})
    found = {leak.task for leak in leaks if leak.what == "question"}
    # Where two tasks ask the same, the first is told.
    assert {asked[task] for task in found} == set(asked.values())


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("service-desk", 1.0),
        pytest.param("law", 1.0, marks=needs_published),
        # Some of its rows begin as training rows do, and those may be quoted.
        pytest.param("s2d", 0.8, marks=needs_published),
    ],
)
def test_the_first_forty_characters_will_do(name: str, share: float) -> None:
    tasks = secrets_of(benchmark_of(name))
    found = [
        task
        for task, secret in tasks.items()
        if scan_of(name).scan({"harness.py": f"START = {secret.text[:40]!r}\n".encode()})
    ]
    assert len(found) >= share * len(tasks)


@pytest.mark.parametrize("name", SETS)
def test_the_briefing_tells_nothing_of_a_task(name: str) -> None:
    briefing = benchmark_of(name).briefing
    assert scan_of(name).scan({"briefing.md": briefing.encode()}) == ()


@needs_published
def test_only_answers_that_are_no_labels_are_secret() -> None:
    open_ones = benchmark_of("uspto").secrets().values()
    assert all(secret.answer for secret in open_ones)
    for name in ("s2d", "law"):
        assert not any(secret.answer for secret in benchmark_of(name).secrets().values())
    answers = json.dumps([secret.answer for secret in open_ones]).encode()
    found = {leak.task for leak in scan_of("uspto").scan({"answers.json": answers})}
    assert len(found) >= 0.8 * len(open_ones)  # the others are short


def test_the_secrets_of_a_set_are_its_questions(tmp_path: Path) -> None:
    benchmark = TextClassification([str(write_set(tmp_path / "animals"))])
    asked = {task: secret.text for task, secret in secrets_of(benchmark).items()}
    assert asked == {f"animals-{n:03}": q for n, (q, _) in enumerate(ANIMALS["val"])}
    assert {secret.answer for secret in secrets_of(benchmark).values()} == {""}
    sealed = {task: secret.text for task, secret in sealed_secrets_of(benchmark).items()}
    assert sealed == {f"animals-test-{n:03}": q for n, (q, _) in enumerate(ANIMALS["test"])}
    scan = leak_scan_of(benchmark)
    assert scan is not None
    (leak,) = scan.scan({"harness.py": b"X = 'it climbs curtains'"})
    assert (leak.task, leak.sealed) == ("animals-test-001", True)
