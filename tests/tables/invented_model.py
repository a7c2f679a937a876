"""A model without weights: log-probabilities from hashes, tokens from words."""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from coevolve.models.batched.token_trees import NONE, LabelTree
from coevolve.tables.label_answers import SpeltLabels


class InventedSpeller:
    """Spells texts with a token for each word."""

    def prompts(self, texts: Sequence[str]) -> list[list[int]]:
        return [_tokens(text) for text in texts]

    def labels(self, labels: Sequence[str]) -> dict[bool, SpeltLabels]:
        spelt = SpeltLabels({label: _tokens(label) for label in labels}, ends=(7,))
        return {True: spelt, False: spelt}

    def ends(self, stops: Sequence[str]) -> list[int]:
        return [7]

    def written(self, tokens: Sequence[int], stops: Sequence[str]) -> tuple[str, int]:
        return " ".join(f"w{token}" for token in tokens), len(tokens)

    def close(self) -> None:
        pass


class InventedScorer:
    """Scores that depend on the prompt and the path, as those of a model do."""

    def __init__(self) -> None:
        self.asked = 0
        self.facts = {"torch": "none", "device": "invented"}

    def scores(
        self, prompts: Sequence[Sequence[int]], trees: Sequence[LabelTree]
    ) -> list[NDArray[np.float32]]:
        self.asked += len(prompts)
        return [
            np.array([_score(prompt, node, token) for node, token in tree.wanted], np.float32)
            for prompt, tree in zip(prompts, trees, strict=True)
        ]

    def written(
        self, prompts: Sequence[Sequence[int]], limit: int, ends: Sequence[int]
    ) -> list[list[int]]:
        self.asked += len(prompts)
        return [[1 + sum(prompt) % 5, 7][:limit] for prompt in prompts]


def _score(prompt: Sequence[int], node: int, token: int) -> float:
    seed = sha256(repr((list(prompt), node if node != NONE else "start", token)).encode())
    return -5 * int.from_bytes(seed.digest()[:4], "big") / 2**32


def _tokens(text: str) -> list[int]:
    return [10 + int.from_bytes(sha256(w.encode()).digest()[:4], "big") for w in text.split()]
