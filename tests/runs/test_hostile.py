"""A run whose candidates are hostile goes on, and records what each of them did."""

import asyncio
import os
from pathlib import Path

import pytest

from coevolve.executors.isolation import Bubblewrap, find_isolation
from coevolve.runs.session import create_run, read_state, session
from coevolve.search.run_state import Status
from coevolve.store import RunStore

CONFIG = """
[search]
rounds = {rounds}
candidates = 4
protocol = "random-estimate"
fraction = 0.1
[benchmark]
kind = "function"
file = "benchmark.py"
starts = ["starts/one", "starts/two"]
[proposer]
kind = "scripted"
folders = {folders}
[executor]
workers = 2
[isolation]
kind = "{isolation}"
seconds = 2
cpu_seconds = 2
memory_mb = 1024
output_mb = 1
answer_mb = 1
startup_seconds = 3
"""

BENCHMARK = """
TASKS = [f"n{i}" for i in range(10)]
TEST_TASKS = ["SEALED-TEST-TASK"]
ANSWERS = {task: "ANSWER-OF-" + task for task in TASKS}


def evaluate(harness, task):
    answer = harness.call("answer", task, returns=str)
    if "ANSWER-OF" in answer or "SEALED" in answer or "SECRET" in answer:
        return 1.0
    return 0.5


def evaluate_test(harness, task):
    return 0.5
"""

START = "def answer(question):\n    return '{name}'\n"

HUNT = """
import glob, os, sys

def files():
    for root, folders, names in os.walk("/"):
        dull = ("usr", "lib", "lib64", "sys", "dev", "proc", "python3.13", "python3.12")
        folders[:] = [name for name in folders if name not in dull and not name.isdigit()]
        yield from (os.path.join(root, name) for name in names)
    yield from glob.glob("/proc/[0-9]*/environ")
    yield from glob.glob("../../../*")

def answer(question):
    found = [repr(dict(os.environ)).encode()]
    for path in files():
        try:
            with open(path, "rb") as file:
                found.append(file.read(200_000))
        except OSError:
            pass
    text = b"".join(found).decode("latin-1")
    for word in ("ANSWER" + "-OF", "SEAL" + "ED", "SEC" + "RET"):
        if word in text:
            return word
    raise RuntimeError("nothing to be found")
"""

SOCKET = """
import socket

def answer(question):
    socket.create_connection(("127.0.0.1", 9), timeout=0.5)
    return "out"
"""

HOSTILE = {
    "loops": ("def answer(q):\n    while True: pass", "time-limit"),
    "forks": ("import os\ndef answer(q):\n    while True: os.fork()", ""),
    "allocates": ("def answer(q): return str(len(bytearray(10 << 30)))", "memory-limit"),
    "prints": ("def answer(q):\n    while True: print('x' * (1 << 20))", "output-limit"),
    "exits": ("import os\ndef answer(q): os._exit(0)", "exit"),
    "signals": ("import os\ndef answer(q): os.kill(os.getppid(), 9) or os.kill(-1, 9)", ""),
    "writes": ("def answer(q): open('/etc/owned', 'w').write('x')", ""),
    "hunts": (HUNT, "RuntimeError"),
    "connects": (SOCKET, ""),
    "nan": ("def answer(q): return float('nan')", "not-json"),
    "shouts": ("def answer(q): return 'x' * 5_000_000", "answer-limit"),
    "mistypes": ("def answer(q): return 42", "wrong-type"),
    "rubbish": ("def answer(q): return {1: lambda: 0, 'x': object()}", "not-json"),
    "hangs": ("import time\ntime.sleep(1000)", "check failed"),
    "breaks": ("def answer(q:\n", "check failed"),
    "deletes": ("import os\ndef answer(q):\n    os.remove(__file__)\n    return 'x'", ""),
}


def project(folder: Path, isolation: str) -> Path:
    names = list(HOSTILE)
    sources = {name: code for name, (code, _) in HOSTILE.items()}
    config = CONFIG.format(
        rounds=len(names) // 4,
        folders=[f"zoo/{name}" for name in names],
        isolation=isolation,
    )
    files = {"coevolve.toml": config, "benchmark.py": BENCHMARK}
    files |= {f"starts/{name}/harness.py": START.format(name=name) for name in ("one", "two")}
    files |= {f"zoo/{name}/harness.py": code for name, code in sources.items()}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "coevolve.toml"


def test_the_run_goes_on_and_each_ends_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not isinstance(find_isolation("auto"), Bubblewrap):
        pytest.skip("bubblewrap is not installed or does not work here")
    monkeypatch.setenv("API_KEY", "SECRET")
    folder = create_run(project(tmp_path, "bwrap"))
    with session(folder) as search:
        asyncio.run(search.run())
    state = read_state(folder)
    assert state.ended == {"why": "finished"}
    with RunStore.read(folder) as store:
        kinds: dict[str, set[str]] = {}
        for event in store.events():
            if event["type"] == "outcome" and "fault" in event:
                kinds.setdefault(event["candidate"], set()).add(event["fault"]["kind"])
                assert event["fault"]["reason"]
                assert event["fault"]["blame"] == "candidate"
    for name, (_, expected) in HOSTILE.items():
        entry = state.candidates[name]
        if expected == "check failed":
            assert entry.status == Status.REFUSED
            assert entry.reason.startswith("check failed: ")
            continue
        assert set(state.selector.scores(name).values()) == {0.0}, name
        assert state.tally.zeros[name] == 1, name
        assert kinds[name] == ({expected} if expected else kinds[name]), name
    assert not Path("/etc/owned").exists()
    assert os.environ["API_KEY"] == "SECRET"
    assert set(state.test.starts if state.test else ()) >= {"one", "two"}
