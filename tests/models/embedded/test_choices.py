"""Choosing and scoring, with a model whose every probability is known."""

import asyncio
import math
from collections.abc import Collection, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.models.embedded import scoring
from coevolve.models.embedded.scoring import Scorer, choose, tree

VOCABULARY = 8
ENDS = (6, 7)
PARTIAL = {2, 4}
PROMPT = [3, 1, 4]
token_lists = st.lists(
    st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=5).map(tuple),
    min_size=1,
    max_size=8,
    unique=True,
)


def named(sequences: Sequence[Sequence[int]]) -> dict[str, Sequence[int]]:
    return {f"choice {number}": sequence for number, sequence in enumerate(sequences)}


class Model:
    """A model with a distribution of its own after every text; counts what it is asked."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.asked = 0

    def logprobs(self, path: Sequence[int]) -> list[float]:
        logits = np.random.default_rng([self._seed, *path]).normal(size=VOCABULARY)
        return [float(value) for value in logits - np.log(np.exp(logits).sum())]

    async def pick(
        self, path: Sequence[int], allowed: Sequence[int], *, temperature: float, seed: int
    ) -> int:
        self.asked += 1
        found = self.logprobs(path)
        return max(allowed, key=lambda token: found[token])

    async def likely(
        self, path: Sequence[int], forced: int, count: int
    ) -> dict[int, float] | None:
        self.asked += 1
        if forced in PARTIAL:
            return None
        found = self.logprobs(path)
        top = sorted(range(VOCABULARY), key=lambda token: -found[token])[:count]
        return {token: found[token] for token in (*top, forced)}

    async def against(
        self, path: Sequence[int], forced: int, tokens: Collection[int]
    ) -> dict[int, float]:
        self.asked += 1
        found = self.logprobs(path)
        return {token: found[token] - found[forced] for token in tokens}


def chosen(sequences: Sequence[Sequence[int]], model: Model) -> tuple[str, int]:
    root = tree(named(sequences))
    return asyncio.run(choose(root, PROMPT, model, ends=ENDS, temperature=0, seed=0))


@given(token_lists, st.integers(0, 1000))
def test_a_choice_is_always_one_of_those_given(
    sequences: list[tuple[int, ...]], seed: int
) -> None:
    choice, tokens = chosen(sequences, Model(seed))
    assert tokens == len(named(sequences)[choice])


@given(token_lists, st.integers(0, 1000))
def test_at_every_parting_the_likeliest_token_is_taken(
    sequences: list[tuple[int, ...]], seed: int
) -> None:
    model = Model(seed)
    sequence = named(sequences)[chosen(sequences, model)[0]]
    for place, token in enumerate(sequence):
        found = model.logprobs([*PROMPT, *sequence[:place]])
        rivals = {
            other[place] for other in sequences if other[:place] == sequence[:place] != other
        }
        assert all(found[token] >= found[rival] for rival in rivals)


def test_nothing_is_asked_where_there_is_no_choice() -> None:
    model = Model(0)
    assert chosen([[1, 2, 3, 4]], model) == ("choice 0", 4)
    assert model.asked == 0
    assert chosen([[1, 2, 3, 4], [1, 2, 5, 5]], model)[1] == 4
    assert model.asked == 1


def test_long_choices_and_many_beginnings() -> None:
    choice, tokens = chosen([[1] * length for length in range(1, 1500)], Model(3))
    assert choice == f"choice {tokens - 1}"


@given(token_lists, st.integers(0, 1000), st.sampled_from([1, 3, VOCABULARY]))
def test_scores_are_sums_over_tokens(
    sequences: list[tuple[int, ...]], seed: int, many: int
) -> None:
    model = Model(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "MANY", many)
        scores = asyncio.run(Scorer(0).score(tree(named(sequences)), PROMPT, model))
    assert scores.keys() == named(sequences).keys()
    for choice, sequence in named(sequences).items():
        steps = range(len(sequence))
        plain = sum(model.logprobs([*PROMPT, *sequence[:at]])[sequence[at]] for at in steps)
        assert math.isclose(scores[choice], plain, abs_tol=1e-9)


def test_a_common_beginning_is_computed_once() -> None:
    model = Model(1)
    sequences = [[1, 1, 1, 1, last] for last in range(5)]
    asyncio.run(Scorer(0).score(tree(named(sequences)), [0], model))
    assert model.asked == 5
