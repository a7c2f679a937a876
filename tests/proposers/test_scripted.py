"""Proposers that need no model."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from coevolve.core.outcomes import Usage
from coevolve.errors import CandidateError, ConfigError, InputError
from coevolve.proposers import FunctionProposer, Proposal, Proposed, Scripted
from coevolve.proposers.base import Proposer
from coevolve.testing import propose_once
from tests.proposers.views import view

FILES = {"harness.py": b""}


def proposal(name: str, *parents: str) -> Proposal:
    return Proposal(name=name, files=FILES, parents=parents)


def names(proposer: Proposer, round: int, count: int) -> list[str]:
    made = asyncio.run(propose_once(proposer, view(round=round), count))
    return [one.name for one in made.proposals]


def test_a_script_is_dealt_out_in_order_until_its_end() -> None:
    script = Scripted([proposal(name) for name in "abcde"])
    assert [names(script, round, 2) for round in (1, 2, 3, 4)] == [
        ["a", "b"],
        ["c", "d"],
        ["e"],
        [],
    ]


def test_what_a_round_gets_follows_from_its_number() -> None:
    script = Scripted([proposal(name) for name in "abcde"])
    assert names(script, 3, 1) == names(script, 3, 1) == ["c"]


def test_a_script_may_list_its_rounds() -> None:
    script = Scripted([[proposal("a")], [], [proposal("b"), proposal("c")]])
    assert [names(script, round, 2) for round in (1, 2, 3, 4)] == [["a"], [], ["b", "c"], []]
    with pytest.raises(InputError, match="returned 2 proposals, but was asked for 1"):
        names(script, 3, 1)


def test_folders_give_their_files_and_names(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "harness.py").write_text("x = 1")
    made = asyncio.run(Scripted([tmp_path / "new"]).propose(view(), 1))
    assert made.proposals[0].name == "new"
    assert made.proposals[0].files == {"harness.py": b"x = 1"}
    with pytest.raises(CandidateError, match="is not a folder"):
        names(Scripted([tmp_path / "none"]), 1, 1)


def test_a_mixed_script_is_refused() -> None:
    with pytest.raises(InputError, match="a list of such lists"):
        Scripted([proposal("a"), [proposal("b")]])  # type: ignore[arg-type]


def test_a_function_sees_the_view_and_runs_beside_the_loop() -> None:
    ran_in = []

    def propose(seen: Any, count: int) -> list[dict[str, object]]:
        ran_in.append(threading.current_thread())
        files = seen.files("start")
        return [{"name": f"n{i}", "files": files, "parents": ["start"]} for i in range(count)]

    seen = view(candidates={"start": {"harness.py": b"x"}}, parent="start")
    made = asyncio.run(FunctionProposer(propose).propose(seen, 2))
    assert [one.name for one in made.proposals] == ["n0", "n1"]
    assert made.proposals[0].parents == ("start",)
    assert made.proposals[0].files == {"harness.py": b"x"}
    assert ran_in[0] is not threading.main_thread()


def test_an_interrupted_run_does_not_wait_for_a_function() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def propose(seen: Any, count: int) -> list[Proposal]:
        begun.set()
        go_on.wait()
        return []

    async def interrupted() -> None:
        task = asyncio.create_task(FunctionProposer(propose).propose(view(), 1))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(interrupted())
    assert not go_on.is_set()
    go_on.set()


def test_an_async_function_is_awaited_and_may_say_what_it_cost() -> None:
    async def propose(seen: Any, count: int) -> Proposed:
        await asyncio.sleep(0)
        usage = Usage(tokens_in=5)
        return Proposed(proposals=(proposal("a"),), usage=usage, transcript="thought")

    made = asyncio.run(FunctionProposer(propose).propose(view(), 1))
    assert (made.usage.tokens_in, made.transcript) == (5, "thought")
    assert made.proposals[0].name == "a"


def test_text_becomes_bytes() -> None:
    made = FunctionProposer(lambda seen, count: [{"name": "a", "files": {"h.py": "é"}}])
    assert asyncio.run(made.propose(view(), 1)).proposals[0].files == {"h.py": "é".encode()}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "mine returned None; return a list of Proposal"),
        ("abc", "mine returned 'abc'; return a list"),
        ({"name": "a"}, "return a list of Proposal"),
        ([3], "mine returned 3, which is not a proposal"),
        ([{"files": FILES}], "a proposal needs a name, got None"),
        ([{"name": "a"}], "files of 'a' must map paths to contents, got None"),
        ([{"name": "a", "files": {"x": 3}}], "file 'x' of 'a' must be text or bytes, got 3"),
        ([{"name": "a", "files": {"x": "\ud800"}}], "file 'x' of 'a' is not valid text"),
        (
            [{"name": "a", "file": FILES}],
            "'file' is not a key of a proposal. Did you mean",
        ),
        ([{"name": "a", "files": FILES, "parents": "b"}], "must be a list of names, got 'b'"),
        ([{"name": "a", "files": FILES, "parents": 3}], "must be a list of names, got 3"),
        ([{"name": "a", "files": FILES, "hypothesis": 3}], "hypothesis of 'a' must be text"),
    ],
)
def test_rubbish_is_named(given: Any, message: str) -> None:
    proposer = FunctionProposer(lambda seen, count: given, name="mine")
    with pytest.raises(InputError) as error:
        asyncio.run(proposer.propose(view(), 1))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "FunctionProposer: candidate 'a' has no files"),
        ({"../x": ""}, "'../x' is not a valid path"),
    ],
)
def test_files_that_make_no_candidate_are_found(files: Any, message: str) -> None:
    proposer = FunctionProposer(lambda seen, count: [{"name": "a", "files": files}])
    with pytest.raises(InputError, match=message):
        asyncio.run(propose_once(proposer, view(), 1))


def test_what_a_function_raises_comes_through() -> None:
    def propose(seen: Any, count: int) -> Any:
        raise ConnectionError("no network")

    with pytest.raises(ConnectionError):
        asyncio.run(FunctionProposer(propose).propose(view(), 1))


def test_a_function_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "propose.py"
    (tmp_path / "beside_propose_of_a_test.py").write_text("NAME = 'a'")
    path.write_text(
        "from beside_propose_of_a_test import NAME\n"
        "def propose(view, count): return [{'name': NAME, 'files': {'h': ''}}]\n"
    )
    assert names(FunctionProposer.from_file(path), 1, 1) == ["a"]
    with pytest.raises(ConfigError, match=r"no function 'propos'. Did you mean 'propose'?"):
        FunctionProposer.from_file(path, "propos")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef propose(:\n", "line 2: SyntaxError"),
        ("x = 1\nraise KeyError('k')\n", "line 2: KeyError: 'k'"),
        ("import no_such_module_here\n", "line 1: ModuleNotFoundError"),
    ],
)
def test_a_file_that_fails_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "propose.py"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        FunctionProposer.from_file(path)
    assert str(path) in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a Python file"):
        FunctionProposer.from_file(tmp_path / "none.py")


def test_what_has_no_propose_is_no_proposer() -> None:
    with pytest.raises(InputError, match="int has no method propose"):
        asyncio.run(propose_once(3, view()))  # type: ignore[arg-type]


def test_a_parent_must_be_a_candidate_of_the_run() -> None:
    seen = view(candidates={"start": FILES})
    asyncio.run(propose_once(Scripted([proposal("a", "start")]), seen))
    with pytest.raises(
        InputError, match=r"'strat' of 'a' is not a candidate.* Did you mean 'start'"
    ):
        asyncio.run(propose_once(Scripted([proposal("a", "strat")]), seen))
