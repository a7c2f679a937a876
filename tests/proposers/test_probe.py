"""A proposer's model is asked once before anything is paid, and the ledger counts it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.core.pool import Pool
from coevolve.core.selector import Selector
from coevolve.errors import ConfigError
from coevolve.models.model_errors import ModelKeyError
from coevolve.proposers.best_of_n import best_of_n
from coevolve.proposers.llm import LLMProposer
from coevolve.proposers.proposer_settings import probed
from coevolve.proposers.scripted import Scripted
from coevolve.runs.optimize import optimize
from coevolve.search.budget import Settings
from coevolve.search.effects import fold
from coevolve.search.journal import MemoryJournal
from coevolve.search.loop import open_run


class Gateway:
    """Answers once, or refuses the key."""

    def __init__(self, *, wrong: bool = False) -> None:
        self.wrong, self.closed = wrong, False

    async def ask(self, **payload: Any) -> dict[str, Any]:
        if self.wrong:
            raise ModelKeyError("the key was refused.")
        return {"usage": {"tokens_in": 3, "tokens_out": 1, "dollars": 0.5}}

    async def close(self) -> None:
        self.closed = True


def test_a_wrong_key_is_refused_before_anything_is_paid() -> None:
    gateway = Gateway(wrong=True)
    with pytest.raises(ConfigError, match="nothing was evaluated yet: the key was refused"):
        asyncio.run(probed(LLMProposer(gateway)))  # type: ignore[arg-type]
    assert gateway.closed


def test_the_ledger_of_proposing_counts_the_request() -> None:
    used = asyncio.run(probed(LLMProposer(Gateway())))  # type: ignore[arg-type]
    assert used == Usage(tokens_in=3, tokens_out=1, dollars=0.5)
    journal = MemoryJournal()
    starts = {"a": {"harness.py": b"1"}}
    selector, settings = Selector(Pool(["x", "y"])), Settings(rounds=1)
    open_run(journal, name="r", settings=settings, selector=selector, starts=starts, probe=used)
    assert fold(journal.events()).proposing.to_json()["dollars"] == 0.5


def test_a_proposer_without_a_model_needs_no_request() -> None:
    assert asyncio.run(probed(Scripted([]))) is None


def test_a_proposer_without_feedback_asks_the_model_of_the_inner_one() -> None:
    used = asyncio.run(probed(best_of_n(LLMProposer(Gateway()))))  # type: ignore[arg-type]
    assert used == Usage(tokens_in=3, tokens_out=1, dollars=0.5)
    assert asyncio.run(probed(best_of_n(Scripted([])))) is None


def test_optimize_asks_before_it_evaluates(tmp_path: Path) -> None:
    evaluated: list[str] = []

    def evaluate(candidate: Any, task: str) -> float:
        evaluated.append(task)
        return 1.0

    wrong = LLMProposer(Gateway(wrong=True))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="the key was refused"):
        optimize(["x", "y"], ["a"], evaluate, wrong, folder=tmp_path / "run")
    assert not evaluated
    assert not (tmp_path / "run").exists()
