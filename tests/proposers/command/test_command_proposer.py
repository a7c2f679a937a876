"""An agent's candidates count however it ends; its cost is known or reported as unknown."""

import asyncio
import errno
import json
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.errors import ConfigError, StopRun
from coevolve.proposers.base import Broken, Proposal, Proposed, View
from coevolve.proposers.command import AgentError, CommandProposer, custom, preset
from coevolve.proposers.proposal_folder import collect
from coevolve.proposers.workspace import Workspace, lay_out
from coevolve.proposers.workspace.workspace import sweep
from coevolve.testing import propose_once
from tests.effort import effort

from . import samples
from .conftest import StandIn


def proposer(program: str, folder: Path, isolation: Any = "none", **kw: Any) -> CommandProposer:
    kw.setdefault("seconds", 60)
    return CommandProposer(custom([program]), folder=folder, isolation=isolation, **kw)


def ask(proposer: CommandProposer, view: View, count: int = 2) -> Proposed:
    return asyncio.run(propose_once(proposer, view, count))


def names(made: Proposed) -> list[str]:
    return [proposal.name for proposal in made.proposals]


def test_candidates_are_collected_with_their_descriptions(
    stand_in: StandIn, view: View, tmp_path: Path, isolation: str
) -> None:
    program = stand_in(
        """
        assert "INSTRUCTIONS.md" in sys.stdin.read()
        assert os.path.exists("INSTRUCTIONS.md")
        write("shorter", "answer = 2\\n", parent="start", kind="exploit", components=["prompt"])
        write("bolder", kind="explore")
        json.dump({"tokens_in": 5, "tokens_out": 2, "dollars": 0.1}, open("usage.json", "w"))
        print("all is written")
        """
    )
    made = ask(proposer(program, tmp_path / "work", isolation), view)
    assert names(made) == ["shorter", "bolder"]
    assert made.proposals[0] == Proposal(
        name="shorter",
        files={"harness.py": b"answer = 2\n"},
        parents=("start",),
        hypothesis="h",
        kind="exploit",
        components=("prompt",),
    )
    assert (made.usage.tokens_in, made.usage.tokens_out, made.usage.dollars) == (5, 2, 0.1)
    assert made.usage.seconds > 0
    assert made.transcript == "all is written\n"
    assert made.notes == ()
    assert (tmp_path / "work" / "round-002.log").read_text() == "all is written\n"


def test_afterwards_only_collected_candidates_are_kept(
    stand_in: StandIn, view: View, tmp_path: Path, isolation: str
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "mine").write_text("mine")
    program = stand_in(
        f"""
        assert os.path.exists("candidates") and os.path.exists("history.json")
        if {isolation == "none"}:
            for name in ("tasks.json", "SUMMARY.md"):
                os.remove(name)
                os.symlink({str(kept)!r}, name)
        write("new", parent="start")
        os.makedirs("proposals/linked")
        os.symlink({str(kept)!r}, "proposals/linked/harness.py")
        os.symlink({str(kept)!r}, "out")
        os.makedirs("scratch/locked/deep")
        os.makedirs("/".join(["scratch"] + ["d" * 100] * 30))
        open("scratch/notes", "w").close()
        for place in ("scratch/locked/deep", "scratch/locked", "proposals", "."):
            os.chmod(place, 0o500 if place == "proposals" else 0)
        """
    )
    made = ask(proposer(program, tmp_path / "work", isolation), view)
    assert names(made) == ["new"]
    workspace = tmp_path / "work" / "round-002"
    pages = {"INSTRUCTIONS.md"} if isolation == "none" else {"INSTRUCTIONS.md", "SUMMARY.md"}
    assert {path.name for path in workspace.iterdir()} == {*pages, "proposals"}
    assert {path.name for path in (tmp_path / "work").iterdir()} == {
        "round-002",
        "round-002.log",
    }
    assert (
        collect(workspace / "proposals", view, count=9, source="again").proposals == made.proposals
    )
    assert (kept / "mine").read_text() == "mine"


def test_what_takes_long_to_delete_does_not_delay_the_search(
    stand_in: StandIn, view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def slow(folder: Path) -> None:
        go.wait(60)
        sweep(folder)

    monkeypatch.setattr("coevolve.proposers.command.command_proposer.sweep", slow)
    monkeypatch.setattr("coevolve.proposers.command.command_proposer._LONGEST_SWEEP", 0.1)
    work = proposer(stand_in("write('new')"), tmp_path / "work")
    assert names(ask(work, view)) == names(ask(work, view)) == ["new"]
    assert list((tmp_path / "work").glob(".gone-*"))
    go.set()
    deadline = time.monotonic() + 60
    while list((tmp_path / "work").glob(".gone-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not list((tmp_path / "work").glob(".gone-*"))
    assert (tmp_path / "work" / "round-002" / "proposals" / "new" / "harness.py").exists()


def test_a_candidate_counts_though_its_workspace_cannot_be_kept(
    stand_in: StandIn, view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Workspace, proposals: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Workspace, "put_away", full)
    made = ask(proposer(stand_in("write('new')"), tmp_path / "work"), view)
    assert names(made) == ["new"]
    assert "its workspace was not kept: No space left on device." in made.notes


@pytest.mark.parametrize(
    ("name", "stream", "used", "notes"),
    [
        ("claude-code", samples.CLAUDE, (300, 80, 0.001306), ()),
        ("codex", samples.CODEX, (200, 80, 0.0), ("codex did not report dollars.",)),
        ("gemini", samples.GEMINI, (200, 94, 0.0), ("gemini did not report dollars.",)),
        ("opencode", samples.OPENCODE, (200, 80, pytest.approx(0.0003)), ()),
    ],
)
def test_each_preset_reads_its_agent_s_stream(
    name: str,
    stream: str,
    used: tuple[Any, ...],
    notes: tuple[str, ...],
    stand_in: StandIn,
    view: View,
    tmp_path: Path,
    bwrap: None,
) -> None:
    program = stand_in(f"write('new')\nsys.stdout.write({stream!r})", name)
    agent = preset(name, program=program)
    made = ask(CommandProposer(agent, folder=tmp_path / "work", seconds=60), view)
    assert names(made) == ["new"]
    assert (made.usage.tokens_in, made.usage.tokens_out, made.usage.dollars) == used
    assert made.notes == notes
    assert made.transcript == stream


def test_a_trajectory_is_read_from_the_workspace(
    stand_in: StandIn, view: View, tmp_path: Path, bwrap: None
) -> None:
    program = stand_in(
        f"""
        write("new")
        place = sys.argv[sys.argv.index("--output") + 1]
        os.makedirs(os.path.dirname(place))
        json.dump({samples.trajectory(cost=0.25)!r}, open(place, "w"))
        """,
        "mini",
    )
    agent = preset("mini-swe-agent", program=program)
    made = ask(CommandProposer(agent, folder=tmp_path / "work"), view)
    assert names(made) == ["new"]
    assert (made.usage.tokens_in, made.usage.tokens_out, made.usage.dollars) == (200, 80, 0.25)


def test_after_a_time_out_what_was_written_counts(
    stand_in: StandIn, view: View, tmp_path: Path, isolation: str
) -> None:
    program = stand_in("write('early')\nprint('thinking', flush=True)\ntime.sleep(600)")
    made = ask(proposer(program, tmp_path / "work", isolation, seconds=3), view)
    assert names(made) == ["early"]
    assert made.transcript == "thinking\n"
    assert "stand-in was stopped after 3 s." in made.notes
    assert "stand-in reported no usage." in made.notes


def test_the_instructions_state_the_time_limit(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    program = stand_in("write('new', open('INSTRUCTIONS.md').read())")
    made = ask(proposer(program, tmp_path / "work", seconds=600), replace(view, seconds=3600.0))
    assert b"about 10 minutes" in made.proposals[0].files["harness.py"]


def test_the_view_s_time_holds_too_and_leaves_time_to_collect(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    program = stand_in("write('early')\ntime.sleep(600)")
    hurried = replace(view, seconds=4.0)
    made = ask(proposer(program, tmp_path / "work"), hurried)
    assert names(made) == ["early"]
    assert made.usage.seconds < 4.0


def test_the_time_that_a_long_history_takes_to_lay_out_is_not_the_agent_s(
    stand_in: StandIn, view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: Any, **named: Any) -> Workspace:
        time.sleep(3)
        return lay_out(*arguments, **named)

    monkeypatch.setattr("coevolve.proposers.command.command_proposer.lay_out", slow)
    program = stand_in("write('early')\ntime.sleep(600)")
    made = ask(proposer(program, tmp_path / "work"), replace(view, seconds=8.0))
    assert names(made) == ["early"]
    assert made.usage.seconds < 6.0


def test_usage_so_far_counts_when_an_agent_is_stopped(
    stand_in: StandIn, view: View, tmp_path: Path, bwrap: None
) -> None:
    code = f"sys.stdout.write({samples.CLAUDE_WORK!r})\nsys.stdout.flush()\ntime.sleep(600)"
    agent = preset("claude-code", program=stand_in(code))
    made = ask(CommandProposer(agent, folder=tmp_path / "work", seconds=3), view)
    assert (made.usage.tokens_in, made.usage.tokens_out) == (300, 2)
    assert "claude-code did not report dollars." in made.notes
    assert "claude-code wrote no candidate." in made.notes


def test_after_a_crash_what_was_written_counts(
    stand_in: StandIn, view: View, tmp_path: Path, isolation: str
) -> None:
    program = stand_in("write('early')\nprint('no memory', file=sys.stderr)\nos._exit(3)")
    made = ask(proposer(program, tmp_path / "work", isolation), view)
    assert names(made) == ["early"]
    assert "stand-in ended with exit status 3." in made.notes
    assert made.transcript == "no memory\n"


def test_an_agent_that_fails_at_once_is_an_error_that_quotes_it(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    program = stand_in("sys.exit('unknown option --frobnicate')")
    with pytest.raises(AgentError, match=r"unknown option --frobnicate\. .*round-002\.log"):
        ask(proposer(program, tmp_path / "work"), view)


def test_a_refused_key_stops_the_run_with_advice(
    stand_in: StandIn, view: View, tmp_path: Path, bwrap: None
) -> None:
    code = f"sys.stdout.write({samples.CLAUDE_REFUSED!r})\nsys.exit(1)"
    agent = preset("claude-code", program=stand_in(code))
    with pytest.raises(StopRun, match=r"Invalid API key .* set one of ANTHROPIC_API_KEY"):
        ask(CommandProposer(agent, folder=tmp_path / "work"), view)


def test_an_agent_that_worked_in_vain_costs_a_round(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    made = ask(proposer(stand_in("print('I would rather not.')"), tmp_path / "work"), view)
    assert made.proposals == ()
    assert made.notes == ("stand-in reported no usage.", "stand-in wrote no candidate.")


def test_an_agent_that_is_not_installed_stops_the_run(view: View, tmp_path: Path) -> None:
    agent = preset("codex", program="no-such-codex")
    proposer = CommandProposer(agent, folder=tmp_path)
    with pytest.raises(ConfigError, match="npm install -g @openai/codex"):
        proposer.check()
    with pytest.raises(StopRun, match="no program 'no-such-codex'"):
        ask(proposer, view)


def test_without_a_sandbox_an_agent_runs_only_if_it_is_trusted(
    stand_in: StandIn, view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = stand_in("write('new')")
    where = "coevolve.proposers.command.command_proposer.why_no_sandbox"
    monkeypatch.setattr(where, lambda: "no permissions to create a namespace.")
    with pytest.raises(StopRun, match="isolation = 'none'"):
        ask(proposer(program, tmp_path / "work", "bwrap"), view)
    assert names(ask(proposer(program, tmp_path / "work", "none"), view)) == ["new"]


def test_a_broken_candidate_is_repaired(
    stand_in: StandIn, view: View, tmp_path: Path, isolation: str
) -> None:
    program = stand_in(
        """
        assert "name 'answr' is not defined" in read("INSTRUCTIONS.md")
        (name,) = os.listdir("proposals")
        text = read(f"proposals/{name}/harness.py").replace("answr", "answer")
        open(f"proposals/{name}/harness.py", "w").write(text)
        """
    )
    broken = Broken(
        proposal=Proposal(name="odd", files={"harness.py": b"answr = 1\n"}),
        error="NameError: name 'answr' is not defined",
    )
    repairer = proposer(program, tmp_path / "work", isolation)
    made = asyncio.run(repairer.repair(view, broken))
    assert [p.files for p in made.proposals] == [{"harness.py": b"answer = 1\n"}]
    assert (tmp_path / "work" / "round-002-repair-odd.log").exists()


def test_a_broken_candidate_left_unchanged_does_not_count(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    broken = Broken(proposal=Proposal(name="odd", files={"harness.py": b"x"}), error="E")
    repairer = proposer(stand_in("print('Looks fine to me.')"), tmp_path / "work")
    made = asyncio.run(repairer.repair(view, broken))
    assert made.proposals == ()
    assert "stand-in wrote no candidate." in made.notes


def test_a_candidate_repaired_in_another_folder_counts(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    broken = Broken(proposal=Proposal(name="odd", files={"harness.py": b"x"}), error="E")
    repairer = proposer(stand_in("write('odd-repaired', 'x = 1\\n')"), tmp_path / "work")
    made = asyncio.run(repairer.repair(view, broken))
    assert [p.files for p in made.proposals] == [{"harness.py": b"x = 1\n"}]


def test_a_round_proposed_again_starts_afresh(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    left = tmp_path / "work" / "round-002" / "proposals" / "old"
    left.mkdir(parents=True)
    (left / "harness.py").write_text("old")
    made = ask(proposer(stand_in("write('new')"), tmp_path / "work"), view)
    assert names(made) == ["new"]


def test_printing_far_more_than_is_kept_is_bounded(
    stand_in: StandIn, view: View, tmp_path: Path, isolation: str
) -> None:
    program = stand_in(
        f"""
        print("first")
        for number in range({effort(45, 100)}):
            sys.stdout.write(("x" * 999 + chr(10)) * 500 + "y" * 500_000)
        print("last")
        write("new")
        """
    )
    made = ask(proposer(program, tmp_path / "work", isolation), view)
    assert names(made) == ["new"]
    assert made.transcript is not None
    assert made.transcript.startswith("first\n")
    assert made.transcript.endswith("last\n")
    assert 30_000_000 < len(made.transcript) < 34_000_000
    assert "bytes left out" in made.transcript
    assert (tmp_path / "work" / "round-002.log").stat().st_size < 40_000_000


def test_keys_reach_the_agent_and_nothing_else(
    stand_in: StandIn, view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret-1")
    monkeypatch.setenv("OTHER_API_KEY", "sk-other-2")
    program = stand_in(
        """
        print("key", os.environ["MY_API_KEY"], flush=True)
        print(sorted(os.environ))
        sys.stderr.write("oops " + os.environ["MY_API_KEY"])
        write("leaking", "KEY = '" + os.environ["MY_API_KEY"] + "'")
        write("sly", "KEY = '" + os.environ["MY_API_KEY"][::-1] + "'")
        write("honest", hypothesis="no " + os.environ["MY_API_KEY"][3:])
        write("c-" + os.environ["MY_API_KEY"], components=[os.environ["MY_API_KEY"]])
        open("proposals/" + os.environ["MY_API_KEY"], "w").close()
        """
    )
    made = ask(proposer(program, tmp_path / "work", isolation, keys=["MY_API_KEY"]), view, 4)
    log = (tmp_path / "work" / "round-002.log").read_text()
    recorded = f"{made.transcript}{log}{made.notes}{made.proposals}"
    assert "key [hidden]" in log
    assert "sk-very-secret-1" not in recorded
    assert "very-secret-" not in recorded
    assert "OTHER_API_KEY" not in recorded
    assert names(made) == ["honest", "c-[hidden]"]
    for name in ("leaking", "sly"):
        assert any(f"{name!r} was rejected: its files contain a key" in n for n in made.notes)


def test_the_address_of_a_proxy_is_not_secret_unless_it_has_a_password(
    stand_in: StandIn, view: View, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:pass@proxy.example:3128")
    program = stand_in(
        """
        write("plain", "# asks no server, not even localhost or http://proxy.example:3128")
        print(os.environ["HTTPS_PROXY"])
        """
    )
    made = ask(proposer(program, tmp_path / "work"), view)
    assert names(made) == ["plain"]
    assert made.transcript == "http:[hidden]proxy.example:3128\n"


def test_a_report_that_leads_elsewhere_is_not_read(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    (tmp_path / "usage.json").write_text(json.dumps({"tokens_in": 7}))
    program = stand_in(f"write('new')\nos.symlink({str(tmp_path / 'usage.json')!r}, 'usage.json')")
    made = ask(proposer(program, tmp_path / "work"), view)
    assert "stand-in reported no usage." in made.notes


@pytest.mark.parametrize(
    "code",
    [
        "open('usage.json', 'w').write('[' + '{},' * 7_000_000 + '{}]')",
        "os.mkfifo('usage.json')",
        "os.symlink('usage.json', 'usage.json')",
        "os.makedirs('usage.json')\nos.chmod('usage.json', 0)",
        "open('usage.json', 'w').write('[' * 1_000_000)",
    ],
    ids=["huge", "pipe", "loop", "folder", "deep"],
)
def test_an_unreadable_report_is_ignored(
    code: str, stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    made = ask(proposer(stand_in(f"write('new')\n{code}"), tmp_path / "work"), view)
    assert names(made) == ["new"]
    assert made.notes == ("stand-in reported no usage.",)


def test_reported_usage_is_limited(stand_in: StandIn, view: View, tmp_path: Path) -> None:
    program = stand_in("write('new')\nopen('usage.json', 'w').write('{\"tokens_in\": 1e12}')")
    made = ask(proposer(program, tmp_path / "work"), view)
    assert sum([made.usage] * 1000, Usage()).tokens_in > 0


@pytest.mark.parametrize(("name", "value"), [("seconds", 0), ("isolation", "bubblewrap")])
def test_invalid_values_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=name):
        CommandProposer(custom(["a"]), folder=tmp_path, **{name: value})


def probed(program: str, folder: Path) -> Usage | None:
    agent = preset("claude-code", program=program)
    one = CommandProposer(agent, folder=folder, isolation="none")
    return asyncio.run(one.probe())


def test_a_preset_is_probed_with_a_short_prompt_and_its_cost_is_known(
    stand_in: StandIn, tmp_path: Path
) -> None:
    program = stand_in(
        """
        assert "Answer with the word yes" in sys.stdin.read()
        print(json.dumps({"type": "result", "total_cost_usd": 0.25, "usage":
            {"input_tokens": 5, "output_tokens": 2}}))
        """
    )
    used = probed(program, tmp_path / "work")
    assert used is not None
    assert (used.tokens_in, used.tokens_out, used.dollars) == (5, 2, 0.25)
    assert not (tmp_path / "work").exists()


def test_a_preset_without_a_valid_key_is_refused_before_anything_is_evaluated(
    stand_in: StandIn, tmp_path: Path
) -> None:
    program = stand_in("print('Invalid API key'); sys.exit(1)")
    with pytest.raises(ConfigError, match=r"nothing was evaluated yet.*Invalid API key") as error:
        probed(program, tmp_path / "work")
    assert "set one of ANTHROPIC_API_KEY" in str(error.value)


def test_a_program_of_the_user_is_not_probed(stand_in: StandIn, tmp_path: Path) -> None:
    program = stand_in("sys.exit(1)")
    assert asyncio.run(proposer(program, tmp_path / "work").probe()) is None
