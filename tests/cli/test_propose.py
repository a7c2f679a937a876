"""`coevolve propose` and `coevolve doctor` judge a proposer of one's own as a run does."""

import json
from pathlib import Path

import pytest

from tests.cli.projects import coevolve, write_doubling

OWN = '[proposer]\nkind = "mine:Mine"\n'
RIGHT = "def double(n): return 2 * n"


def project(folder: Path, source: str, table: str = "") -> Path:
    """The doubling project with another propose.py, or with a class in mine.py."""
    file = write_doubling(folder)
    if table:
        old = '[proposer]\nkind = "function"\nfile = "propose.py"\n'
        file.write_text(file.read_text().replace(old, table))
    (folder / ("mine.py" if table else "propose.py")).write_text(source)
    return file


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("1 / 0", "propose.py, line 2: ZeroDivisionError: division by zero."),
        ("raise TimeoutError('no answer in 5 s')", "TimeoutError: no answer in 5 s"),
        ("return 3", "returned 3; return a list of Proposal"),
        ("raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_what_a_proposer_does_wrong_is_one_line_and_code_2(
    tmp_path: Path, body: str, said: str
) -> None:
    file = project(tmp_path, f"def propose(view, count):\n    {body}\n")
    made = coevolve("propose", file, cwd=tmp_path)
    assert made.returncode == 2
    assert said in made.stderr
    assert "Traceback" not in made.stderr
    assert not (tmp_path / "proposal").exists()


def test_each_proposal_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    new = {"name": "new", "files": {"harness.py": RIGHT}, "parents": ["nobody"]}
    file = project(tmp_path, f"def propose(view, count):\n    return [{new!r}]\n")
    for folder in ("proposal", "proposal-2"):
        made = coevolve("propose", file, "--json", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        said = json.loads(made.stdout)
        assert said["folder"] == folder
        assert said["notes"] == ["new: the parent 'nobody' is unknown."]
        assert (tmp_path / folder / "candidates/new/harness.py").read_text() == RIGHT


def test_a_class_may_return_mappings_as_a_function_does(tmp_path: Path) -> None:
    new = {"name": "new", "files": {"harness.py": RIGHT}}
    source = f"class Mine:\n    async def propose(self, view, count):\n        return [{new!r}]\n"
    file = project(tmp_path, source, OWN)
    assert coevolve("propose", file, cwd=tmp_path).returncode == 0
    done = coevolve("run", file)
    assert "round 1 of 3: proposed new" in done.stdout


def test_what_a_proposer_needs_is_checked_before_it_is_asked(tmp_path: Path) -> None:
    source = (
        "from coevolve.errors import ConfigError\n"
        "class Mine:\n"
        "    async def propose(self, view, count): return []\n"
        "    def check(self): raise ConfigError('the muse is away.')\n"
    )
    file = project(tmp_path, source, OWN)
    for command in ("propose", "run"):
        done = coevolve(command, file, cwd=tmp_path)
        assert done.returncode == 2
        assert "the muse is away." in done.stderr
    assert "fix   proposer: the muse is away." in coevolve("doctor", file).stdout


MENDING = """
from coevolve.search.proposal import Proposal, Proposed

def proposal(name, source):
    return Proposal(name=name, files={"harness.py": source.encode()})

class Mine:
    async def propose(self, view, count):
        wrong = [proposal("wrong", "1 / 0"), proposal("worse", "2 / 0")]
        right = proposal("right", "def double(n): return n + n")
        return Proposed(proposals=(*wrong, right), transcript="so I wrote")

    async def repair(self, view, broken):
        if broken.proposal.name == "worse":
            raise ConnectionError("the muse is away")
        return [proposal("wrong", "def double(n): return 2 * n")]
"""


def test_what_fails_its_check_is_sent_back_once(tmp_path: Path) -> None:
    file = project(tmp_path, MENDING, OWN)
    made = coevolve("propose", file, "--count", "3", "--json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    said = json.loads(made.stdout)
    found = {one["name"]: (one["repaired"], bool(one["fault"])) for one in said["candidates"]}
    assert found == {"wrong": (True, False), "worse": (False, True), "right": (False, False)}
    assert "Repair of worse: the proposer failed: " in said["notes"][0]
    assert "the muse is away" in said["notes"][0]
    assert (tmp_path / "proposal/candidates/right/harness.py").exists()


def test_a_proposal_without_a_candidate_leaves_what_was_said(tmp_path: Path) -> None:
    source = (
        "from coevolve.search.proposal import Proposed\n"
        "class Mine:\n"
        "    async def propose(self, view, count):\n"
        "        return Proposed(proposals=(), transcript='no idea', notes=('It declined.',))\n"
    )
    made = coevolve("propose", project(tmp_path, source, OWN), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "Nothing was proposed." in made.stdout
    assert "It declined." in made.stdout
    assert (tmp_path / "proposal" / "transcript.txt").read_text() == "no idea"


def test_doctor_says_when_nobody_looks_for_leaks(tmp_path: Path) -> None:
    file = project(tmp_path, "def propose(view, count): return []\n")
    assert "note  leaks: candidates are not scanned" in coevolve("doctor", file).stdout
    benchmark = tmp_path / "benchmark.py"
    benchmark.write_text(benchmark.read_text() + "\ndef secrets(): return {'3': 'Twice three?'}\n")
    assert "leaks" not in coevolve("doctor", file).stdout


def test_doctor_examines_an_agent_of_one_s_own(tmp_path: Path) -> None:
    table = '[proposer]\nkind = "command"\ncommand = ["./agent.sh"]\nkeys = ["NOT_SET"]\n'
    file = project(tmp_path, "", table)
    assert 'command = ["./agent.sh", ...]' in examined(file)
    (tmp_path / "agent.sh").write_text("#!/bin/sh\n")
    (tmp_path / "agent.sh").chmod(0o755)
    assert "exists; it was not started" in examined(file)
    assert "NOT_SET is listed in `keys` but not set" in examined(file)


def examined(file: Path) -> str:
    """What the doctor says, on one line."""
    return " ".join(coevolve("doctor", file).stdout.split())


AGENT = """#!/bin/sh
cat > /dev/null
mkdir proposals/new && cd proposals/new
echo '{"name": "new", "hypothesis": "It is new."}' > proposal.json
echo "# $(head -c 8 /dev/urandom | od -An -tx1)" > harness.py
echo "def double(n): return 2 * n" >> harness.py
"""


def test_the_control_is_a_line_of_configuration(tmp_path: Path) -> None:
    table = '[proposer]\nkind = "command"\nisolation = "none"\ncommand = ["./agent.sh"]\n'
    file = project(tmp_path, "", f"{table}best_of_n = true\n")
    (tmp_path / "agent.sh").write_text(AGENT)
    (tmp_path / "agent.sh").chmod(0o755)
    done = coevolve("run", file)
    assert done.returncode == 0, done.stderr
    for number, name in enumerate(("new", "new-2", "new-3"), start=1):
        assert f"round {number} of 3: proposed {name}" in done.stdout
