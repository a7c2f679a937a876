"""The table holds what was added, whatever the batches and their order."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve import OutcomeTable
from coevolve.core.arrays import Floats, Indices
from coevolve.errors import ChangedOutcomeError, InputError, ScoreError, UnknownCandidateError

TASKS = 7
outcomes = st.dictionaries(
    st.tuples(st.integers(0, TASKS - 1), st.integers(0, 2)),
    st.one_of(st.just(float("nan")), st.floats(0, 1), st.sampled_from([0.0, 1.0, 1 / 3])),
    max_size=20,
)


def columns(cells: Any) -> tuple[Indices, Indices, Floats]:
    tasks, trials, scores = [], [], []
    for (task, trial), score in cells:
        tasks.append(task)
        trials.append(trial)
        scores.append(score)
    return (
        np.array(tasks, dtype=np.int64),
        np.array(trials, dtype=np.int64),
        np.array(scores, dtype=np.float64),
    )


@given(st.lists(outcomes, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_history_is_the_mean_over_candidates_of_means_over_trials(
    candidates: list[dict[tuple[int, int], float]], random: Any
) -> None:
    table = OutcomeTable(TASKS)
    expected: list[list[float]] = [[] for _ in range(TASKS)]
    for number, cells in enumerate(candidates):
        table.open(str(number), round=number)
        shuffled = list(cells.items())
        random.shuffle(shuffled)
        while shuffled:
            size = random.randint(1, len(shuffled))
            table.add(str(number), *columns(shuffled[:size]))
            shuffled = shuffled[size:]
        for task in range(TASKS):
            scores = [s for (t, _), s in cells.items() if t == task and not np.isnan(s)]
            if scores:
                expected[task].append(sum(scores) / len(scores))
    for history in (table.history(), table.history(0, len(candidates))):
        assert history.count.tolist() == [len(means) for means in expected]
        for task, means in enumerate(expected):
            if means:
                assert history.mean[task] == pytest.approx(sum(means) / len(means), abs=1e-13)
            else:
                assert np.isnan(history.mean[task])
    assert len(table) == sum(len(cells) for cells in candidates)


@given(outcomes, st.randoms(use_true_random=False))
def test_order_of_arrival_leaves_no_trace(
    cells: dict[tuple[int, int], float], random: Any
) -> None:
    histories = []
    for _ in range(2):
        table = OutcomeTable(TASKS)
        for name in "ab":
            table.open(name, round=0)
        todo = [(name, cell) for name in "ab" for cell in cells.items()]
        random.shuffle(todo)
        for name, cell in todo:
            table.add(name, *columns([cell]))
        histories.append(table.history())
    assert histories[0].mean.tobytes() == histories[1].mean.tobytes()


def test_equal_repeats_are_ignored_and_changes_refused() -> None:
    table = OutcomeTable(3)
    table.open("c", round=1)
    batch = columns([((0, 0), 1.0), ((1, 0), float("nan"))])
    table.add("c", *batch)
    table.add("c", *batch)
    assert len(table) == 2
    for changed in [((0, 0), 0.5), ((0, 0), float("nan")), ((1, 0), 0.0)]:
        with pytest.raises(ChangedOutcomeError, match="never rewritten"):
            table.add("c", *columns([((2, 0), 1.0), changed]))
    assert len(table) == 2
    assert table.history().count.tolist() == [1, 0, 0]


def test_a_batch_may_not_contradict_itself() -> None:
    table = OutcomeTable(3)
    table.open("c", round=1)
    table.add("c", *columns([((0, 0), 1.0), ((0, 0), 1.0)]))
    assert len(table) == 1
    with pytest.raises(ChangedOutcomeError, match="two different scores"):
        table.add("c", *columns([((1, 0), 1.0), ((1, 0), 0.0)]))


def test_windows_of_rounds() -> None:
    table = OutcomeTable(1)
    for round, score in enumerate([1.0, 0.0, 0.0, 1.0]):
        table.open(str(round), round=round)
        table.add(str(round), *columns([((0, 0), score)]))
    means = [table.history(*window).mean[0] for window in [(0, None), (1, None), (1, 2), (3, 3)]]
    assert means == [0.5, pytest.approx(1 / 3), 0.0, 1.0]


def test_candidates_are_opened_once() -> None:
    table = OutcomeTable(1)
    table.open("c", round=2)
    assert "c" in table
    assert table.candidates == ("c",)
    assert table.round_of("c") == 2
    with pytest.raises(InputError, match="'c' is already in the table"):
        table.open("c", round=3)


def test_memory_is_sixteen_bytes_per_outcome() -> None:
    table = OutcomeTable(10_000)
    table.open("c", round=1)
    tasks = np.arange(10_000)
    table.add("c", tasks, np.zeros_like(tasks), np.ones(10_000))
    held = sum(keys.nbytes + scores.nbytes for keys, scores in table._columns["c"].parts)
    assert held == 16 * 10_000


@pytest.mark.parametrize(
    ("cell", "error", "message"),
    [
        (((5, 0), 1.0), InputError, "task must be from 0 to 2, got 5"),
        (((-1, 0), 1.0), InputError, "got -1"),
        (((0, 1_024), 1.0), InputError, "trial must be from 0 to 1023, got 1024"),
        (((0, 0), 7.0), ScoreError, "got 7.0"),
    ],
)
def test_what_makes_no_outcome_is_refused(
    cell: tuple[tuple[int, int], float], error: type[Exception], message: str
) -> None:
    table = OutcomeTable(3)
    table.open("c", round=1)
    with pytest.raises(error, match=message):
        table.add("c", *columns([((1, 0), 1.0), cell]))
    assert len(table) == 0
    with pytest.raises(UnknownCandidateError, match="'d' is not in the table"):
        table.add("d", *columns([((0, 0), 1.0)]))
