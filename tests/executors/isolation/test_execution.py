"""Programs run in the isolation of a candidate, from start to end."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from coevolve.executors.isolation import HarnessFault, Isolation

from .conftest import STRICT, Make


def test_a_program_reads_input_and_gives_output_and_code(isolation: Isolation, make: Make) -> None:
    harness = make("", isolation)
    done = harness.execute(["sh", "-c", "cat; echo wrong >&2; exit 3"], stdin=b"right")
    assert (done.stdout, done.stderr, done.code) == (b"right", b"wrong\n", 3)
    assert done.seconds > 0
    assert harness.output == "rightwrong\n"


def test_it_starts_in_the_candidates_folder(isolation: Isolation, make: Make) -> None:
    harness = make("print('hello')", isolation)
    assert harness.execute(["cat", "harness.py"]).stdout == b"print('hello')"
    script = harness.folder / "run.sh"
    script.write_text("#!/bin/sh\necho ran $1\n")
    script.chmod(0o755)
    assert harness.execute(["./run.sh", "it"]).stdout == b"ran it\n"


def test_what_it_may_read_is_where_it_is(bwrap: Isolation, make: Make, tmp_path: Path) -> None:
    data = tmp_path / "data" / "tasks.json"
    data.parent.mkdir()
    data.write_text("tasks")
    (tmp_path / "secret").write_text("secret")
    harness = make("", bwrap)
    assert harness.execute(["cat", str(data)]).code == 1
    assert harness.execute(["cat", str(data)], readable=[data]).stdout == b"tasks"
    seen = harness.execute(["ls", str(tmp_path)], readable=[data.parent])
    assert seen.stdout == b"data\n"
    script = f"echo x > {data} || touch /tmp/still-mine && echo ok"
    assert harness.execute(["sh", "-c", script], readable=[data]).stdout == b"ok\n"
    assert data.read_text() == "tasks"


def test_a_missing_program_is_code_127(isolation: Isolation, make: Make) -> None:
    done = make("", isolation).execute(["no-such-program"])
    assert done.code == 127
    assert b"No such file" in done.stderr


def test_it_need_not_read_its_input(isolation: Isolation, make: Make) -> None:
    harness = make("", isolation, replace(STRICT, seconds=30))
    assert harness.execute(["true"], stdin=b"x" * 10_000_000).code == 0
    harness.limits = replace(STRICT, seconds=1)
    with pytest.raises(HarnessFault, match="longer than 1 s"):
        harness.execute(["sleep", "1000"], stdin=b"x" * 10_000_000)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("while :; do :; done", "time-limit"),
        ("yes", "output-limit"),
        ("yes >&2", "output-limit"),
        ("exec >&- 2>&-; sleep 1000", "time-limit"),
        ("for i in $(seq 14); do sleep 100 & done; wait", "process-limit"),
    ],
)
def test_limits_hold(script: str, kind: str, isolation: Isolation, make: Make) -> None:
    harness = make("", isolation, replace(STRICT, seconds=1 if kind == "time-limit" else 30))
    with pytest.raises(HarnessFault) as caught:
        harness.execute(["sh", "-c", script])
    assert caught.value.kind == kind, caught.value
    assert harness.execute(["echo", "well"]).stdout == b"well\n"


def test_memory_is_limited(isolation: Isolation, make: Make) -> None:
    program = [sys.base_prefix + "/bin/python3", "-I", "-S", "-c", "bytearray(10 << 30)"]
    done = make("", isolation, replace(STRICT, seconds=30)).execute(program)
    assert b"MemoryError" in done.stderr


def test_the_network_is_there_only_when_asked_for(bwrap: Isolation, make: Make) -> None:
    harness = make("", bwrap)
    shown = ["cat", "/proc/net/dev"]
    without = harness.execute(shown).stdout.splitlines()
    assert len(without) == 3  # two lines of titles, and the loopback
    host = Path("/proc/net/dev").read_bytes().splitlines()
    assert len(harness.execute(shown, network=True).stdout.splitlines()) == len(host)
