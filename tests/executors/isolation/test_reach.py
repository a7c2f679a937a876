"""What bwrap keeps out of a candidate's reach: secrets, files, processes, the network."""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from coevolve.executors.isolation import HarnessFault, Isolation, find_isolation

from .conftest import STRICT, Make, way_to_python

HUNTER = '''
import os

SKIP = ("/proc", "/sys", "/usr", "/lib", "/bin", "/sbin", "/etc/alternatives")

def hunt(letters):
    """Every readable file that holds the needle, whose letters come one by one."""
    needle = "".join(letters).encode()
    hits = []
    for root, folders, names in os.walk("/"):
        if root.startswith(SKIP) or "site-packages" in root or "/lib/python3" in root:
            folders[:] = []
            continue
        hits += [os.path.join(root, name) for name in names + folders if needle in name.encode()]
        hits += [p for p in (os.path.join(root, name) for name in names) if holds(p, needle)]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline", "status", "mountinfo", "maps", "stat"):
            path = f"/proc/{pid}/{name}"
            hits += [path] if holds(path, needle) else []
        for kind in ("fd", "root", "cwd", "map_files"):
            hits += look(f"/proc/{pid}/{kind}", needle)
    return hits

def look(folder, needle):
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [p for p in (f"{folder}/{name}" for name in names) if holds(p, needle)]

def holds(path, needle):
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return needle in file.read(1 << 22)
    except OSError:
        return False

def names(path):
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return type(error).__name__

def mine():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
'''

PARENT = """
import json, os, sys
from pathlib import Path
from coevolve.executors.isolation import Harness, Limits, find_isolation
kind, folder, needle = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
fd = os.open(folder.parent / "answers.json", os.O_RDONLY)
os.set_inheritable(fd, True)
with Harness(folder, isolation=find_isolation(kind), limits=Limits(seconds=60)) as harness:
    print(json.dumps(harness.call("hunt", list(needle))))
"""


def planted(tmp_path: Path, needle: str) -> Path:
    """A candidate among secrets: answers, a test split, a home, links to them."""
    folder = tmp_path / "run" / "candidate"
    folder.mkdir(parents=True)
    (folder / "harness.py").write_text(HUNTER)
    (tmp_path / "run" / "answers.json").write_text(needle)
    (tmp_path / "test-split.csv").write_text(needle)
    (tmp_path / ".env").write_text(f"KEY={needle}")
    (folder / "link").symlink_to("../answers.json")
    (folder / "link-2").symlink_to(tmp_path)
    return folder


def test_no_secret_of_the_host_can_be_found(bwrap: Isolation, tmp_path: Path) -> None:
    needle = secrets.token_hex(16)
    folder = planted(tmp_path, needle)
    done = subprocess.run(
        [sys.executable, "-c", PARENT, "bwrap", str(folder), needle],
        env={**os.environ, "API_KEY": needle, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []


def test_the_same_holds_for_a_user_without_rights(bwrap: Isolation, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("all other tests here run as such a user")
    needle = secrets.token_hex(16)
    folder = planted(tmp_path, needle)
    ordinary = ["bwrap", "--unshare-user", "--uid", "1000", "--dev-bind", "/", "/", "--"]
    done = subprocess.run(
        [*ordinary, sys.executable, "-c", PARENT, "bwrap", str(folder), needle],
        env={**os.environ, "API_KEY": needle, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_hunter_would_find_a_secret_in_sight(bwrap: Isolation, make: Make) -> None:
    harness = make(HUNTER, bwrap)
    needle = secrets.token_hex(16)
    (harness.folder / "data.txt").write_text(needle)
    assert "/candidate/data.txt" in harness.call("hunt", list(needle))


def test_a_plain_process_finds_nothing_in_its_own_environment_and_descriptors(
    tmp_path: Path,
) -> None:
    code = """
        import os
        def act():
            links = {os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
                     if os.path.exists(f"/proc/self/fd/{n}")}
            return [dict(os.environ), sorted(x for x in links if x.startswith("/"))]
    """
    needle = secrets.token_hex(16)
    folder = planted(tmp_path, needle)
    (folder / "harness.py").write_text(textwrap.dedent(code))
    program = PARENT.replace('"hunt", list(needle)', '"act"')
    done = subprocess.run(
        [sys.executable, "-c", program, "process", str(folder), needle],
        env={**os.environ, "API_KEY": needle},
        capture_output=True,
        text=True,
        check=True,
    )
    environ, open_files = json.loads(done.stdout)
    assert needle not in json.dumps(environ)
    assert "API_KEY" not in environ
    assert not [path for path in open_files if "answers" in path]


def test_project_home_and_sources_are_not_visible(bwrap: Isolation, make: Make) -> None:
    harness = make(HUNTER, bwrap)
    assert harness.call("names", "/candidate") == ["harness.py"]
    assert harness.call("names", "/candidate/..") == harness.call("names", "/")
    clone, home = Path(__file__).parents[3], Path.home()
    system = map(Path, ("/home", "/root", "/var", "/run", "/srv", "/mnt", "/media", "/tmp"))
    for folder in {clone, clone / "src", clone / "tests", home, home / ".ssh", *system}:
        found = harness.call("names", str(folder))
        names = set() if found == "FileNotFoundError" else set(found)
        assert names == way_to_python(folder), f"{folder} shows more than the way to this Python"


def test_it_sees_only_its_own_processes(bwrap: Isolation, make: Make) -> None:
    assert make(HUNTER, bwrap).call("mine") == [1, 2, 3]


WRITER = """
import os

def write(path):
    try:
        with open(path, "w") as file:
            file.write("x")
    except OSError as error:
        return type(error).__name__
    return "written"

def act(code):
    import ctypes, socket
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        return eval(code) or os.strerror(ctypes.get_errno())
    except OSError as error:
        return f"refused: {error.strerror}"
"""


def test_it_writes_only_to_its_private_tmp(bwrap: Isolation, make: Make, tmp_path: Path) -> None:
    harness = make(WRITER, bwrap)
    assert harness.call("write", "/tmp/x") == "written"
    assert harness.call("write", "/dev/shm/x") == "written"
    assert harness.call("write", "/dev/null") == "written"
    assert not Path("/dev/shm/x").exists()
    places = ["/candidate/x", "/candidate/harness.py", "/x", "/usr/bin/x", "/etc/x", "/dev/x"]
    python = [f"{sys.base_prefix}/lib/x", f"{sys.prefix}/lib/x", os.__file__, "/coevolve/x"]
    for place in [*places, *python, str(tmp_path / "x"), "/proc/sys/kernel/hostname"]:
        assert harness.call("write", place) != "written", place
    assert not (tmp_path / "x").exists()
    harness.close()
    assert harness.call("write", "/tmp/x") == "written"


def test_its_tmp_is_small(bwrap: Isolation, make: Make) -> None:
    harness = make(
        """
        def act():
            for n in range(100):
                with open(f"/tmp/{n}", "wb") as file: file.write(b"x" * (1 << 20))
        """,
        bwrap,
    )
    with pytest.raises(HarnessFault, match="No space left"):
        harness.call("act")


def test_it_cannot_fill_memory_with_empty_files(bwrap: Isolation, make: Make) -> None:
    harness = make(
        """
        def act():
            for n in range(10**9): open(f"/tmp/{n}", "w").close()
        """,
        bwrap,
        replace(STRICT, seconds=60),
    )
    with pytest.raises(HarnessFault, match="more than 50,000 files"):
        harness.call("act")


@pytest.mark.parametrize(
    "code",
    [
        "libc.ptrace(16, 1, 0, 0) == 0 and 'done'",
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0) == 0 and 'done'",
        "libc.umount2(b'/candidate', 2) == 0 and 'done'",
        "libc.unshare(0x10000000) == 0 and 'done'",
        "libc.unshare(0x00020000) == 0 and 'done'",
        "libc.setns(os.open('/proc/1/ns/mnt', 0), 0) == 0 and 'done'",
        "libc.chroot(b'/tmp') == 0 and 'done'",
        "libc.memfd_create(b'x', 0) >= 0 and 'done'",
        "libc.shmget(0, 1 << 30, 0o1600) >= 0 and 'done'",
        "libc.semget(0, 1, 0o1600) >= 0 and 'done'",
        "libc.syscall(240, b'x', 0o102, 0o600, None) >= 0 and 'done'",
        "libc.sethostname(b'x', 1) == 0 and 'done'",
        "os.setuid(0) or 'done'",
        "os.setresuid(0, 0, 0) or 'done'",
        "os.chown('/tmp', 1, 1) or 'done'",
        "os.open('/proc/1/mem', os.O_RDWR) and 'done'",
        "os.open('/dev/mem', os.O_RDONLY) and 'done'",
        "os.open('/dev/kmsg', os.O_RDONLY) and 'done'",
        "os.open('/dev/sda', os.O_RDONLY) and 'done'",
        "os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0)) or 'done'",
        "os.open('/sys/kernel', 0) and 'done'",
        "os.open('/dev/tty', os.O_RDWR) and 'done'",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW) and 'done'",
        "socket.socket(40, socket.SOCK_STREAM) and 'done'",
        "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET) and 'done'",
        "os.pidfd_open(1) and libc.syscall(438, os.pidfd_open(1), 0, 0) >= 0 and 'done'",
    ],
)
def test_the_kernel_refuses_what_it_never_needs(code: str, bwrap: Isolation, make: Make) -> None:
    assert make(WRITER, bwrap).call("act", code) != "done"


@contextmanager
def listening(family: int, address: object) -> Iterator[list[object]]:
    """A server of this machine that records its clients."""
    came: list[object] = []
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind(address)  # type: ignore[arg-type]
        server.listen()
        server.settimeout(0.05)
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                try:
                    client, _ = server.accept()
                except TimeoutError:
                    continue
                came.append(client.getsockname())
                client.close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            came.append(server.getsockname())
            yield came
        finally:
            over.set()
            thread.join()


CALLER = """
import socket

def tcp(port):
    socket.create_connection(("127.0.0.1", port), timeout=5).close()

def udp(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("192.0.2.1", port))
        s.send(b"x")

def unix(path):
    with socket.socket(socket.AF_UNIX) as s: s.connect(path)

def abstract(name):
    with socket.socket(socket.AF_UNIX) as s: s.connect("\\0" + name)

def resolve():
    return socket.getaddrinfo("example.com", 80)
"""


def test_no_server_of_this_machine_can_be_reached(
    bwrap: Isolation, make: Make, tmp_path: Path
) -> None:
    harness = make(CALLER, bwrap)
    name = f"coevolve-{secrets.token_hex(8)}"
    path = f"/tmp/{name}"
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as came:
        port = came[0][1]  # type: ignore[index]
        for function, argument in (("tcp", port), ("udp", port)):
            with pytest.raises(HarnessFault) as caught:
                harness.call(function, argument)
            assert "OSError" in caught.value.kind or "Connection" in caught.value.kind
        assert len(came) == 1
    with listening(socket.AF_UNIX, "\0" + name) as came:
        with pytest.raises(HarnessFault, match="refused"):
            harness.call("abstract", name)
        assert len(came) == 1
    try:
        with listening(socket.AF_UNIX, path) as came:
            with pytest.raises(HarnessFault, match="No such file"):
                harness.call("unix", path)
            assert len(came) == 1
    finally:
        Path(path).unlink()
    with pytest.raises(HarnessFault):
        harness.call("resolve")


@pytest.mark.parametrize("target", ["os.getppid()", "1", "-1", "0"])
def test_signals_stay_inside(target: str, bwrap: Isolation, make: Make) -> None:
    harness = make(
        f"""
        import os, signal, time
        def fine(value): return value
        def act():
            for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
                try: os.kill({target}, number)
                except OSError: pass
            return "still here"
        """,
        bwrap,
    )
    try:
        assert harness.call("act") == "still here"
    except HarnessFault as fault:
        assert fault.kind in ("killed", "exit", "time-limit")  # noqa: PT017
    harness.end_trial()
    assert harness.call("fine", 3) == 3


def test_it_cannot_change_or_delete_its_files(isolation: Isolation, make: Make) -> None:
    harness = make(
        """
        import os
        def act():
            os.unlink(os.path.join(os.path.dirname(__file__), "harness.py"))
            return "deleted"
        def fine(value): return value
        """,
        isolation,
    )
    if isolation.name == "bwrap":
        with pytest.raises(HarnessFault, match=r"Read-only|denied"):
            harness.call("act")
    else:  # its copy, unless it has a user of its own
        with contextlib.suppress(HarnessFault):
            assert harness.call("act") == "deleted"
    harness.close()
    assert (harness.folder / "harness.py").is_file()
    assert harness.call("fine", 3) == 3


def test_each_isolation_says_what_it_does_not_protect_from() -> None:
    for kind in ("auto", "process"):
        isolation = find_isolation(kind)
        assert isolation.protects
        assert isolation.exposes
        assert all(text.endswith(".") for text in (*isolation.protects, *isolation.exposes))
    assert any("network" in text for text in find_isolation("process").exposes)
