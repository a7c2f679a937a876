"""A zoo of hostile candidates: each ends as its own fault, and the harness goes on."""

import textwrap
from dataclasses import replace
from typing import NamedTuple

import pytest

from coevolve.executors.isolation import HarnessFault, Isolation
from coevolve.search.trials import Blame

from .conftest import STRICT, Make

FINE = """
import coevolve_host

def fine(value):
    return value
"""


class Animal(NamedTuple):
    """A hostile candidate: its code, and the kinds of fault it may end with."""

    name: str
    code: str
    kinds: tuple[str, ...]


def animal(name: str, code: str, *kinds: str) -> Animal:
    return Animal(name, textwrap.dedent(code), kinds)


ZOO = [
    animal("infinite loop", "def act():\n    while True: pass", "time-limit"),
    animal("sleep", "import time\ndef act(): time.sleep(1000)", "time-limit"),
    animal(
        "allocates 10 GB",
        "def act():\n    hoard = bytearray(10 << 30)\n    return len(hoard)",
        "memory-limit",
    ),
    animal(
        "allocates bit by bit",
        "def act():\n    hoard = []\n    while True: hoard.append(bytearray(1 << 20))",
        "memory-limit",
    ),
    animal(
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
    animal(
        "prints 1 GB",
        "def act():\n    for _ in range(1 << 10): print('x' * (1 << 20))",
        "output-limit",
    ),
    animal(
        "prints 1 GB past Python",
        "import os\ndef act():\n    for _ in range(1 << 14): os.write(2, b'x' * (1 << 16))",
        "output-limit",
    ),
    animal("leaves with os._exit", "import os\ndef act(): os._exit(0)", "exit"),
    animal("leaves with an odd code", "import os\ndef act(): os._exit(77)", "exit"),
    animal("SystemExit", "def act(): raise SystemExit(0)", "SystemExit"),
    animal("KeyboardInterrupt", "def act(): raise KeyboardInterrupt", "KeyboardInterrupt"),
    animal("BaseException", "def act(): raise BaseException('no')", "BaseException"),
    animal("kills itself", "import os\ndef act(): os.kill(os.getpid(), 9)", "killed"),
    animal("crashes", "import os\ndef act(): os.kill(os.getpid(), 11)", "killed"),
    animal("signals its group", "import os\ndef act(): os.kill(0, 9)", "killed", "exit"),
    animal("stops itself", "import os\ndef act(): os.kill(os.getpid(), 19)", "time-limit"),
    animal(
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
    animal("returns NaN", "def act(): return float('nan')", "not-json"),
    animal("returns infinity", "def act(): return [1, float('-inf')]", "not-json"),
    animal("returns a 100 MB string", "def act(): return 'x' * 100_000_000", "answer-limit"),
    animal("returns rubbish", "def act(): return {'f': lambda: 1}", "not-json"),
    animal("returns a set", "def act(): return {1, 2}", "not-json"),
    animal("returns half a character", "def act(): return chr(0xD800)", "not-json"),
    animal("returns a huge number", "def act(): return 1 << 100_000", "not-json"),
    animal(
        "returns a deep nest",
        "def act():\n    nest = []\n    for _ in range(100_000): nest = [nest]\n    return nest",
        "not-json",
    ),
    animal(
        "returns itself",
        "def act():\n    nest = []\n    nest.append(nest)\n    return nest",
        "not-json",
    ),
    animal(
        "raises the unprintable",
        """
        class Rude(Exception):
            def __str__(self): raise SystemExit('no')
            __repr__ = __str__
        def act(): raise Rude
        """,
        "Rude",
    ),
    animal(
        "raises escapes for the terminal",
        "def act(): raise ValueError('\\x1b]0;owned\\x07\\r\\n\\ud800' + 'x' * 10**6)",
        "ValueError",
    ),
    animal(
        "raises what hangs when shown",
        """
        class Slow(Exception):
            def __str__(self):
                while True: pass
        def act(): raise Slow
        """,
        "time-limit",
    ),
    animal("overflows the stack", "def act(): return act()", "RecursionError"),
    animal(
        "leaves threads behind and exits",
        """
        import sys, threading, time
        def act():
            threading.Thread(target=time.sleep, args=(1000,)).start()
            sys.exit(3)
        """,
        "SystemExit",
    ),
    animal(
        "hangs in atexit",
        """
        import atexit, time
        def act():
            atexit.register(time.sleep, 1000)
            raise ValueError('bye')
        """,
        "ValueError",
    ),
    animal(
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
    animal(
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
    animal(
        "writes a huge file",
        """
        import tempfile
        def act():
            with tempfile.TemporaryFile() as file:
                for _ in range(1 << 10): file.write(b'x' * (1 << 20))
        """,
        "OSError",
    ),
    animal(
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
    animal("dribbles output", "def act():\n    while True: print('x', flush=True)", "time-limit",
           "output-limit"),
    animal(
        "asks for ever",
        "import coevolve_host\ndef act():\n    while True: coevolve_host.ask('echo', 1)",
        "ask-limit",
    ),
    animal(
        "asks a service that is not there",
        "import coevolve_host\ndef act(): return coevolve_host.ask('shell', 'ls')",
        "AskError",
    ),
    animal(
        "asks with wrong arguments",
        "import coevolve_host\ndef act(): return coevolve_host.ask('echo', nonsense=1)",
        "AskError",
    ),
    animal(
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
    animal(
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
    animal(
        "closes every descriptor",
        "import os\ndef act(): os.closerange(0, 600)",
        "exit",
        "protocol",
    ),
    animal(
        "closes every descriptor and stays",
        "import os, time\ndef act():\n    os.closerange(0, 600)\n    time.sleep(100)",
        "protocol",
    ),
    animal("lets the wrong type out", "def act(): return 'one'", "wrong-type"),
    animal("lets a boolean out", "def act(): return True", "wrong-type"),
]  # fmt: skip


@pytest.mark.parametrize("animal", ZOO, ids=lambda animal: animal.name.replace(" ", "-"))
def test_each_ends_as_its_own_fault_and_the_harness_goes_on(
    animal: Animal, isolation: Isolation, make: Make
) -> None:
    seconds = 1 if "time-limit" in animal.kinds else 30
    harness = make(FINE + animal.code, isolation, replace(STRICT, seconds=seconds))
    assert harness.call("fine", 3) == 3
    for _ in range(2):
        with pytest.raises(HarnessFault) as caught:
            harness.call("act", returns=float, services={"echo": lambda value: value})
        fault = caught.value.fault
        assert fault.blame is Blame.CANDIDATE
        assert fault.kind in animal.kinds, fault
        assert fault.reason
        assert fault.reason.isprintable()
        assert len(fault.reason) <= 500
        assert harness.call("fine", [1, "ü", None]) == [1, "ü", None]


IMPORTS = [
    animal("hangs at import", "import time\ntime.sleep(1000)", "import-limit"),
    animal("exits at import", "import os\nos._exit(0)", "exit"),
    animal("fails at import", "1 / 0", "ZeroDivisionError"),
    animal("is no Python", "def act(:", "SyntaxError"),
    animal("is no text", "\udc80", "SyntaxError"),
    animal("leaves at import", "raise SystemExit", "SystemExit"),
    animal("needs a package nobody has", "import nonsense_xyz", "ModuleNotFoundError"),
    animal("asks at import", "import coevolve_host\ncoevolve_host.ask('echo', 1)", "AskError"),
    animal("prints at import", "while True: print('x' * 1000)", "output-limit"),
    animal("forks at import", "import os\nif os.fork(): os._exit(0)", "exit", "protocol"),
]


@pytest.mark.parametrize("animal", IMPORTS, ids=lambda animal: animal.name.replace(" ", "-"))
def test_what_happens_at_import_is_a_fault_too(
    animal: Animal, isolation: Isolation, make: Make
) -> None:
    slow = animal.kinds == ("import-limit",)
    harness = make("", isolation, replace(STRICT, startup_seconds=3 if slow else 20))
    file = harness.folder / "harness.py"
    file.write_bytes((FINE + animal.code).encode("utf-8", "surrogateescape"))
    with pytest.raises(HarnessFault) as caught:
        harness.call("fine", 3)
    assert caught.value.kind in animal.kinds, caught.value
    file.write_text(FINE)
    assert harness.call("fine", 3) == 3
