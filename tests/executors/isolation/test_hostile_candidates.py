"""Hostile candidates: each ends as its own fault, and the harness continues to work."""

import textwrap
from dataclasses import replace
from typing import NamedTuple

import pytest

from coevolve.executors.isolation import HarnessFault, Isolation
from coevolve.search.trials import Blame
from tests.effort import effort

from .conftest import STRICT, Make

FINE = """
import coevolve_host

def fine(value):
    return value
"""


class Hostile(NamedTuple):
    """A hostile candidate: its code, and the kinds of fault it may end with."""

    name: str
    code: str
    kinds: tuple[str, ...]


def hostile(name: str, code: str, *kinds: str) -> Hostile:
    return Hostile(name, textwrap.dedent(code), kinds)


CANDIDATES = [
    hostile("infinite loop", "def act():\n    while True: pass", "time-limit"),
    hostile("sleep", "import time\ndef act(): time.sleep(1000)", "time-limit"),
    hostile(
        "allocates 10 GB",
        "def act():\n    hoard = bytearray(10 << 30)\n    return len(hoard)",
        "memory-limit",
    ),
    hostile(
        "allocates bit by bit",
        "def act():\n    hoard = []\n    while True: hoard.append(bytearray(1 << 20))",
        "memory-limit",
    ),
    hostile(
        "allocates in many processes",
        """
        import os, time
        def act():
            for _ in range(8):
                if os.fork() == 0:
                    hoard = bytearray(b"x") * (100 << 20)
                    time.sleep(100)
                    os._exit(0)
            time.sleep(100)
        """,
        "memory-limit",
    ),
    hostile(
        "prints 1 GB",
        "def act():\n    for _ in range(1 << 10): print('x' * (1 << 20))",
        "output-limit",
    ),
    hostile(
        "prints 1 GB past Python",
        "import os\ndef act():\n    for _ in range(1 << 14): os.write(2, b'x' * (1 << 16))",
        "output-limit",
    ),
    hostile("leaves with os._exit", "import os\ndef act(): os._exit(0)", "exit"),
    hostile("leaves with an odd code", "import os\ndef act(): os._exit(77)", "exit"),
    hostile("SystemExit", "def act(): raise SystemExit(0)", "SystemExit"),
    hostile("KeyboardInterrupt", "def act(): raise KeyboardInterrupt", "KeyboardInterrupt"),
    hostile("BaseException", "def act(): raise BaseException('no')", "BaseException"),
    hostile("kills itself", "import os\ndef act(): os.kill(os.getpid(), 9)", "killed"),
    hostile("crashes", "import os\ndef act(): os.kill(os.getpid(), 11)", "killed"),
    hostile("signals its group", "import os\ndef act(): os.kill(0, 9)", "killed", "exit"),
    hostile("stops itself", "import os\ndef act(): os.kill(os.getpid(), 19)", "time-limit"),
    hostile(
        "ignores every signal",
        """
        import signal
        def act():
            for number in range(1, 32):
                if number not in (9, 19): signal.signal(number, signal.SIG_IGN)
            while True: pass
        """,
        "time-limit",
    ),
    hostile("returns NaN", "def act(): return float('nan')", "not-json"),
    hostile("returns infinity", "def act(): return [1, float('-inf')]", "not-json"),
    hostile("returns a 100 MB string", "def act(): return 'x' * 100_000_000", "answer-limit"),
    hostile("returns rubbish", "def act(): return {'f': lambda: 1}", "not-json"),
    hostile("returns a set", "def act(): return {1, 2}", "not-json"),
    hostile("returns half a character", "def act(): return chr(0xD800)", "not-json"),
    hostile("returns a huge number", "def act(): return 1 << 100_000", "not-json"),
    hostile(
        "returns a deep nest",
        "def act():\n    nest = []\n    for _ in range(100_000): nest = [nest]\n    return nest",
        "not-json",
    ),
    hostile(
        "returns itself",
        "def act():\n    nest = []\n    nest.append(nest)\n    return nest",
        "not-json",
    ),
    hostile(
        "raises the unprintable",
        """
        class Rude(Exception):
            def __str__(self): raise SystemExit('no')
            __repr__ = __str__
        def act(): raise Rude
        """,
        "Rude",
    ),
    hostile(
        "raises escapes for the terminal",
        "def act(): raise ValueError('\\x1b]0;owned\\x07\\r\\n\\ud800' + 'x' * 10**6)",
        "ValueError",
    ),
    hostile(
        "raises what hangs when shown",
        """
        class Slow(Exception):
            def __str__(self):
                while True: pass
        def act(): raise Slow
        """,
        "time-limit",
    ),
    hostile("overflows the stack", "def act(): return act()", "RecursionError"),
    hostile(
        "leaves threads behind and exits",
        """
        import sys, threading, time
        def act():
            threading.Thread(target=time.sleep, args=(1000,)).start()
            sys.exit(3)
        """,
        "SystemExit",
    ),
    hostile(
        "hangs in atexit",
        """
        import atexit, time
        def act():
            atexit.register(time.sleep, 1000)
            raise ValueError('bye')
        """,
        "ValueError",
    ),
    hostile(
        "too many threads",
        """
        import threading, time
        def act():
            for _ in range(1000): threading.Thread(target=time.sleep, args=(9,)).start()
            time.sleep(9)
        """,
        "process-limit",
        "RuntimeError",
    ),
    hostile(
        "too many processes",
        """
        import os, time
        def act():
            for _ in range(40):
                if os.fork() == 0:
                    time.sleep(100)
                    os._exit(0)
            time.sleep(100)
        """,
        "process-limit",
        "BlockingIOError",
    ),
    hostile(
        "writes a huge file",
        """
        import tempfile
        def act():
            with tempfile.TemporaryFile() as file:
                for _ in range(1 << 10): file.write(b'x' * (1 << 20))
        """,
        "OSError",
    ),
    hostile(
        "burns CPU in many processes",
        """
        import os
        def act():
            for _ in range(6): os.fork()
            while True: pass
        """,
        "time-limit",
        "cpu-limit",
        "process-limit",
        "BlockingIOError",
    ),
    hostile("dribbles output", "def act():\n    while True: print('x', flush=True)", "time-limit",
           "output-limit"),
    hostile(
        "asks for ever",
        "import coevolve_host\ndef act():\n    while True: coevolve_host.ask('echo', 1)",
        "ask-limit",
    ),
    hostile(
        "asks a service that is not there",
        "import coevolve_host\ndef act(): return coevolve_host.ask('shell', 'ls')",
        "AskError",
    ),
    hostile(
        "asks with wrong arguments",
        "import coevolve_host\ndef act(): return coevolve_host.ask('echo', nonsense=1)",
        "AskError",
    ),
    hostile(
        "breaks what the runner uses",
        """
        import builtins, os, sys
        def act():
            os.write = os.read = lambda *a: 1 / 0
            builtins.len = builtins.str = builtins.type = None
            sys.stdout = sys.stderr = None
            return 1
        """,
        "exit",
    ),
    hostile(
        "replaces the runner",
        """
        import sys
        def act():
            runner = sys.modules['__main__']
            runner.describe = runner.answer = lambda *a: sys.exit(1)
            return 1
        """,
        "exit",
    ),
    hostile(
        "closes every descriptor",
        "import os\ndef act(): os.closerange(0, 600)",
        "exit",
        "protocol",
    ),
    hostile(
        "closes every descriptor and stays",
        "import os, time\ndef act():\n    os.closerange(0, 600)\n    time.sleep(100)",
        "time-limit",
    ),
    hostile("returns the wrong type", "def act(): return 'one'", "wrong-type"),
    hostile("returns a boolean", "def act(): return True", "wrong-type"),
]  # fmt: skip


@pytest.mark.parametrize("hostile", CANDIDATES, ids=lambda one: one.name.replace(" ", "-"))
def test_each_ends_as_its_own_fault_and_the_harness_continues(
    hostile: Hostile, isolation: Isolation, make: Make
) -> None:
    seconds = 1 if "time-limit" in hostile.kinds else 30
    harness = make(FINE + hostile.code, isolation, replace(STRICT, seconds=seconds))
    assert harness.call("fine", 3) == 3
    for _ in range(effort(1, 2)):
        with pytest.raises(HarnessFault) as caught:
            harness.call("act", returns=float, services={"echo": lambda value: value})
        fault = caught.value.fault
        killed = fault.kind == "killed" and "SIGKILL" in fault.reason
        assert fault.blame is (Blame.DOUBTFUL if killed else Blame.CANDIDATE)
        assert fault.kind in hostile.kinds, fault
        assert fault.reason
        assert fault.reason.isprintable()
        assert len(fault.reason) <= 500
        assert harness.call("fine", [1, "ü", None]) == [1, "ü", None]


IMPORTS = [
    hostile("hangs at import", "import time\ntime.sleep(1000)", "import-limit"),
    hostile("exits at import", "import os\nos._exit(0)", "exit"),
    hostile("fails at import", "1 / 0", "ZeroDivisionError"),
    hostile("is not Python", "def act(:", "SyntaxError"),
    hostile("is not text", "\udc80", "SyntaxError"),
    hostile("leaves at import", "raise SystemExit", "SystemExit"),
    hostile("needs a package that is not installed", "import nonsense_xyz", "ModuleNotFoundError"),
    hostile("asks at import", "import coevolve_host\ncoevolve_host.ask('echo', 1)", "AskError"),
    hostile("prints at import", "while True: print('x' * 1000)", "output-limit"),
    hostile("forks at import", "import os\nif os.fork(): os._exit(0)", "exit", "protocol"),
]


@pytest.mark.parametrize("hostile", IMPORTS, ids=lambda one: one.name.replace(" ", "-"))
def test_what_happens_at_import_is_a_fault_too(
    hostile: Hostile, isolation: Isolation, make: Make
) -> None:
    slow = hostile.kinds == ("import-limit",)
    harness = make("", isolation, replace(STRICT, startup_seconds=3 if slow else 20))
    file = harness.folder / "harness.py"
    file.write_bytes((FINE + hostile.code).encode("utf-8", "surrogateescape"))
    with pytest.raises(HarnessFault) as caught:
        harness.call("fine", 3)
    assert caught.value.kind in hostile.kinds, caught.value
    file.write_text(FINE)
    assert harness.call("fine", 3) == 3
