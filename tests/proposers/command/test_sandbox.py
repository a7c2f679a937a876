"""What an agent behind bwrap sees, and what it can change."""

import asyncio
import json
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import coevolve
from coevolve.models.response_cache import cache_folder
from coevolve.proposers.base import Proposed, View
from coevolve.proposers.command import CommandProposer, custom
from coevolve.proposers.command.agents import Agent

from ...models.endpoint import Endpoint
from .conftest import StandIn

pytestmark = pytest.mark.usefixtures("bwrap")


def answered(agent: Agent | str, view: View, folder: Path, **kw: Any) -> tuple[Proposed, Any]:
    """What an agent proposed, and the JSON it printed last."""
    agent = custom([agent]) if isinstance(agent, str) else agent
    work = CommandProposer(agent, folder=folder, seconds=60, **kw)
    made = asyncio.run(work.propose(view, 2))
    assert made.transcript is not None
    return made, json.loads(made.transcript.splitlines()[-1])


HUNT = """
needle = "".join({letters!r}).encode()
hits = []
for root, folders, names in os.walk("/"):
    if root.startswith(("/proc", "/sys", "/usr", "/lib", "/dev")) or "/lib/python3" in root:
        folders[:] = []
        continue
    for name in names:
        path = os.path.join(root, name)
        if path == sys.argv[0]:
            continue
        try:
            with open(path, "rb") as file:
                hits += [path] if needle in file.read(1 << 22) else []
        except OSError:
            pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "mountinfo"):
        try:
            with open(f"/proc/{{pid}}/{{name}}", "rb") as file:
                hits += [f"/proc/{{pid}}/{{name}}"] if needle in file.read() else []
        except OSError:
            pass
print(json.dumps(hits))
"""


def test_nothing_of_the_project_the_run_or_the_home_can_be_found(
    stand_in: StandIn, view: View, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needle = secrets.token_hex(16)
    run = tmp_path / "project" / "runs" / "one"
    run.mkdir(parents=True)
    for place in (run / "journal.sqlite", tmp_path / "project" / "labels.csv", home / ".ssh-key"):
        place.write_text(needle)
    (home.parent / "other-home").mkdir()
    (home.parent / "other-home" / "labels").write_text(needle)
    monkeypatch.setenv("SOMEBODY_S_TOKEN", needle)
    (run / "proposing" / "round-001").mkdir(parents=True)
    (run / "proposing" / "round-001" / "old.json").write_text(needle)
    program = stand_in(HUNT.format(letters=list(needle)))
    _, hits = answered(program, view, run / "proposing")
    assert hits == []


def test_neither_this_package_nor_its_data_nor_its_cache_can_be_read(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    folders = [Path(coevolve.__file__).parent, cache_folder(), *map(Path, sys.path)]
    found = {str(path) for path in folders if path.is_dir()}
    program = stand_in(
        f"""
        hits = []
        for place in {sorted(found)!r}:
            for root, folders, names in os.walk(place):
                if os.path.basename(root) == "coevolve" or "textclass" in root:
                    hits += [os.path.join(root, name) for name in names]
        print(json.dumps(hits))
        """
    )
    _, hits = answered(program, view, tmp_path / "work")
    assert hits == []


def test_hidden_folders_are_empty_even_where_it_may_read(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    (shown / "labels").mkdir(parents=True)
    (shown / "labels" / "test.csv").write_text("a,b")
    (shown / "answers.txt").write_text("42")
    (shown / "public.txt").write_text("hello")
    (tmp_path / "link").symlink_to(shown)
    program = stand_in(
        f"""
        print(json.dumps([
            os.listdir({str(tmp_path / "link" / "labels")!r}),
            "42" in tried(read, {str(tmp_path / "link" / "answers.txt")!r}),
            read({str(tmp_path / "link" / "public.txt")!r}),
        ]))
        """
    )
    hidden = [shown / "labels", shown / "answers.txt"]
    _, seen = answered(program, view, tmp_path / "w", readable=[tmp_path / "link"], hidden=hidden)
    assert seen == [[], False, "hello"]


def test_only_proposals_and_new_files_can_be_written(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    program = stand_in(
        """
        places = {
            "candidate": "candidates/start/files/harness.py",
            "instructions": "INSTRUCTIONS.md",
            "query": "bin/coevolve",
            "system": "/usr/bin/new",
            "root": "/new",
            "devices": "/dev/new",
            "etc": "/etc/passwd",
            "own": "notes.txt",
            "proposal": "proposals/new.txt",
            "home": os.path.expanduser("~/new"),
            "tmp": "/tmp/new",
            "shared": "/dev/shm/new",
        }
        seen = {name: tried(overwrite, path) for name, path in places.items()}
        seen["rename"] = tried(os.rename, "candidates", "mine")
        seen["replace"] = tried(os.rename, "proposals", "mine")
        seen["remove"] = tried(os.unlink, "INSTRUCTIONS.md")
        seen["after"] = read(places["candidate"])
        write("new")
        print(json.dumps(seen))
        """
    )
    made, seen = answered(program, view, tmp_path / "work")
    assert seen.pop("after") == "answer = 0\n"
    allowed = {name for name, what in seen.items() if what == "None"}
    assert allowed == {"own", "proposal", "home", "tmp", "shared"}
    assert [p.name for p in made.proposals] == ["new"]


def test_what_it_writes_to_memory_is_bounded(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    program = stand_in(
        """
        places = ("/tmp", "/dev/shm")
        print(json.dumps([os.statvfs(p).f_blocks * os.statvfs(p).f_frsize for p in places]))
        """
    )
    assert answered(program, view, tmp_path / "work")[1] == [2 << 30, 512 << 20]


def test_it_has_copies_of_its_logins_and_nothing_else_of_the_home(
    stand_in: StandIn, view: View, tmp_path: Path, home: Path
) -> None:
    (home / ".agent-cli").mkdir()
    (home / ".agent-cli" / "auth.json").write_text('{"access_token": "tok-0123456789abcdef"}')
    (home / ".agent-cli" / "history").write_text("private")
    (home / ".bashrc").write_text("private")
    program = stand_in(
        """
        home = os.path.expanduser("~")
        found = sorted(os.path.join(r, n)[len(home):] for r, _, ns in os.walk(home) for n in ns)
        token = json.loads(read(home + "/.agent-cli/auth.json"))["access_token"]
        print("it is", token)
        overwrite(home + "/.agent-cli/auth.json")
        print(json.dumps([home, found, len(token)]))
        """
    )
    agent = custom([program], home=[".agent-cli/auth.json"])
    made, (place, found, size) = answered(agent, view, tmp_path / "work")
    assert (place, found, size) == (str(home), ["/.agent-cli/auth.json"], 20)
    assert "tok-0123456789abcdef" in (home / ".agent-cli" / "auth.json").read_text()
    assert "it is [hidden]" in str(made.transcript)


def test_it_has_an_ordinary_user_without_rights(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    program = stand_in(
        """
        import pwd
        status = dict(line.split(":", 1) for line in read("/proc/self/status").splitlines())
        print(json.dumps([
            pwd.getpwuid(os.getuid()).pw_dir == os.environ["HOME"],
            int(status["CapEff"], 16),
            sorted(name for name in os.listdir("/proc") if name.isdigit())[:1],
            os.listdir("/proc/1"),
            os.getcwd(),
        ]))
        """
    )
    _, seen = answered(program, view, tmp_path / "work")
    assert seen == [True, 0, ["1"], [], "/workspace"]


def test_it_reaches_the_network_and_this_machine_s_servers(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    with Endpoint(answer=lambda _: "reached") as endpoint:
        program = stand_in(
            f"""
            import urllib.request
            body = json.dumps({{"messages": [{{"role": "user", "content": "?"}}]}}).encode()
            address = {endpoint.base_url!r} + "/chat/completions"
            with urllib.request.urlopen(address, body, 30) as reply:
                print(json.dumps(json.load(reply)["choices"][0]["message"]["content"]))
            """
        )
        assert answered(program, view, tmp_path / "work")[1] == "reached"


def test_the_query_command_of_the_workspace_works_inside(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    program = stand_in(
        """
        done = subprocess.run(["coevolve", "query", "top", "5"], capture_output=True)
        print(json.dumps([done.returncode, "start" in done.stdout.decode()]))
        """
    )
    assert answered(program, view, tmp_path / "work")[1] == [0, True]


def test_it_can_try_candidates_with_the_packages_they_will_have(
    stand_in: StandIn, view: View, tmp_path: Path
) -> None:
    program = stand_in(
        """
        code = "import numpy, sys; print(sys.version_info[:2], numpy.array([1, 2]).sum())"
        done = subprocess.run(["python", "-c", code], capture_output=True, text=True)
        print(json.dumps(done.stdout + done.stderr))
        """
    )
    seen = answered(program, view, tmp_path / "work")[1]
    assert seen == f"{sys.version_info[:2]} 3\n"


def test_keys_of_the_machine_are_hidden(stand_in: StandIn, view: View, tmp_path: Path) -> None:
    program = stand_in("print(json.dumps(tried(os.listdir, '/etc/ssl/private')))")
    seen = answered(program, view, tmp_path / "work")[1]
    assert seen == "[]" or "No such file" in seen or "Permission denied" in seen


def test_its_log_can_be_followed(stand_in: StandIn, view: View, tmp_path: Path) -> None:
    program = stand_in(
        """
        print("one", flush=True)
        while not os.path.exists("proposals/go"):
            time.sleep(0.02)
        os.remove("proposals/go")
        print("two")
        """
    )
    work = CommandProposer(custom([program]), folder=tmp_path / "work", seconds=60)
    log, go = tmp_path / "work" / "round-002.log", tmp_path / "work/round-002/proposals/go"

    async def followed() -> str:
        task = asyncio.create_task(work.propose(view, 1))
        deadline = time.monotonic() + 60
        while not (log.exists() and log.read_text()) and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        seen = log.read_text()
        go.write_text("")
        await task
        return seen

    assert asyncio.run(followed()) == "one\n"
    assert log.read_text() == "one\ntwo\n"
