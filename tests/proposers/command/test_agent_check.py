"""The doctor's word on an agent: found, its version, its keys, its isolation."""

import asyncio
from pathlib import Path

import pytest

from coevolve.findings import Finding
from coevolve.proposers.command import custom, examine, preset

from .conftest import StandIn


def facts(found: list[Finding]) -> dict[str, tuple[str, str]]:
    return {one.about: (one.kind, one.detail) for one in found}


def test_an_agent_in_good_order(
    stand_in: StandIn, bwrap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-1234567890")
    program = stand_in("print('9.8.7 (Stand-in)')")
    found = facts(list(examine(preset("claude-code", program=program))))
    assert found["agent"] == ("passed", f"claude-code 9.8.7, {program}")
    assert found["agent's isolation"][0] == "passed"
    assert found["agent's keys"] == ("passed", "ANTHROPIC_API_KEY")


def test_an_agent_that_is_not_installed() -> None:
    (found,) = examine(preset("gemini", program="no-such-gemini"))
    assert found.kind == "failed"
    assert "npm install -g @google/gemini-cli" in found.detail


def test_an_agent_without_a_key_is_noted_and_a_login_is_enough(
    stand_in: StandIn, bwrap: None, home: Path
) -> None:
    agent = preset("codex", program=stand_in("print('codex-cli 1.2.3')"))
    lacks = "none of CODEX_API_KEY is set, and there is no login"
    assert facts(list(examine(agent)))["agent's keys"] == ("noted", lacks)
    (home / ".codex").mkdir()
    (home / ".codex" / "auth.json").write_text("{}")
    assert facts(list(examine(agent)))["agent's keys"] == ("passed", "~/.codex/auth.json")


def test_an_agent_that_does_not_start(stand_in: StandIn, bwrap: None) -> None:
    agent = preset("codex", program=stand_in("sys.exit('cannot find my libraries')"))
    found = next(examine(agent))
    assert found.kind == "failed"
    assert "cannot find my libraries" in found.detail
    assert "readable" in found.advice


def test_a_custom_command_is_not_started(stand_in: StandIn, bwrap: None, tmp_path: Path) -> None:
    program = stand_in(f"open({str(tmp_path / 'worked')!r}, 'w')")
    found = next(examine(custom([program]), isolation="none"))
    assert (found.kind, found.detail) == ("passed", f"{program} exists; it was not started")
    assert not (tmp_path / "worked").exists()


def test_without_a_sandbox_that_works(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "coevolve.proposers.command.agent_check.why_no_sandbox"
    monkeypatch.setattr(where, lambda: "no namespaces here.")
    agent = custom([stand_in("print('1.0')")])
    assert facts(list(examine(agent)))["agent's isolation"] == ("failed", "no namespaces here.")
    trusted = facts(list(examine(agent, isolation="none")))
    assert trusted["agent's isolation"][0] == "noted"
    assert trusted["agent"][0] == "passed"


def test_the_doctor_may_ask_beside_a_running_loop(stand_in: StandIn, bwrap: None) -> None:
    agent = preset("codex", program=stand_in("print('1.0')"))

    async def look() -> list[Finding]:
        return list(examine(agent))

    assert facts(asyncio.run(look()))["agent"][0] == "passed"


def test_a_key_that_is_named_and_not_set_is_noted(stand_in: StandIn, bwrap: None) -> None:
    found = facts(list(examine(custom([stand_in("")], keys=["NOT_SET"]), keys=["NOT_SET"])))
    assert found["agent's keys"] == ("noted", "NOT_SET is listed in `keys` but not set")
