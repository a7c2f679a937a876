"""What agents and harnesses said reaches a terminal as text it can show, and nothing else."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from coevolve.cli.main import app
from coevolve.search.proposal import Proposed, View
from coevolve.store import RunStore
from tests.search.stubs import StubExecutor, StubProposer, go_on, opened


class Loud(StubProposer):
    """Prints what would command a terminal."""

    async def propose(self, view: View, count: int) -> Proposed:  # type: ignore[override]
        made = tuple(await super().propose(view, count))
        return Proposed(proposals=made, transcript="\x1b[2Jfirst\nsecond\x9b31m")


def test_a_transcript_does_not_command_the_terminal(tmp_path: Path) -> None:
    with RunStore.create(tmp_path / "run") as store:
        opened(store, rounds=1)
        go_on(store, StubExecutor(), Loud())
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "run"), "r1-0", "--transcript"])
    assert shown.output == "\\x1b[2Jfirst\nsecond\\x9b31m\n"


def test_an_answer_may_hold_half_a_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coevolve.cli.query_command._of_run", lambda run, asked: "half: \ud83d\n")
    shown = CliRunner().invoke(app, ["query", "trace", "a", "t"])
    assert (shown.exit_code, shown.output) == (0, "half: \\ud83d\n")
