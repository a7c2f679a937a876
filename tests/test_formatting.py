"""An estimate reads the same wherever it is shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from coevolve.cli.show_command import _estimate
from coevolve.core.estimators import Estimate
from coevolve.formatting import CLIPPED
from coevolve.proposers.llm.prompt_context import leaderboard
from coevolve.proposers.workspace import lay_out
from coevolve.search.proposal import View
from coevolve.views.history import source_of
from coevolve.views.questions import answer
from tests.proposers.workspace.histories import history, standing

CLOSE = Estimate(
    value=0.859,
    se=0.126,
    low=0.612,
    high=1.107,
    tasks=18,
    drawn=18,
    pool_size=60,
    method="difference",
)


@pytest.fixture
def view() -> View:
    row, files = standing("new", value=0.5)
    return history([(replace(row, estimate=CLOSE), files)])


def test_interval_limits_are_clipped_alike_and_marked(view: View, tmp_path: Path) -> None:
    lay_out(view, tmp_path, count=1)
    pages = {
        "show": _estimate(CLOSE.to_json()),
        "query top": answer(source_of(view), ["top"]),
        "query show": answer(source_of(view), ["show", "new"]),
        "summary": (tmp_path / "SUMMARY.md").read_text("utf-8"),
        "prompt": leaderboard(view, 10_000),
    }
    for page, text in pages.items():
        assert "0.612 to ≥1.000" in text, page
        assert "1.107" not in text, page
        assert page == "prompt" or CLIPPED in text, page


def test_nothing_is_said_of_clipping_where_nothing_was(view: View) -> None:
    row, files = standing("new", value=0.5)
    shown = answer(source_of(history([(row, files)])), ["top"])
    assert "0.400 to 0.600" in shown
    assert CLIPPED not in shown
    assert CLIPPED not in _estimate(replace(CLOSE, high=0.99).to_json())
