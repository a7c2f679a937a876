"""The program that makes and keeps the namespaces of one task environment.

It runs as root in its own process, with an empty environment, and uses the standard library only.
It mounts the root folder, starts bubblewrap, and then forks one process per request into the
namespaces. That process drops its privileges before it runs a program of the task. File
transfers run no program of the task at all, so a task that replaces `tar` cannot forge a file.

All ends when the owner closes the socket or dies: processes, mounts, control groups, folder. If
this program is killed, the kernel ends the processes (`bwrap --die-with-parent`) and the mounts;
`namespace_leftovers.sweep_leftovers` removes the rest.

Requests come as JSON in a memory file, with the descriptors that they need; see `task_namespace`.
Nothing may be imported after `Keeper._enter`: the files of the task are then at `/`. For the same
reason, users are read from `/etc/passwd` and not with the C library, which would load libraries
of the task.
"""

import base64
import contextlib
import fcntl
import json
import os
import resource
import selectors
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from coevolve.benchmarks.harbor.kernel_calls import (
    KeeperError,
    allow_set_user_id,
    escaped,
    hide_memory,
    limit_powers,
    loopback_up,
    make_mounts_private,
    mount,
    mount_mapped,
    mount_memory,
    mount_sysfs,
    set_capabilities,
    unmount,
)
from coevolve.benchmarks.harbor.namespace_files import find_user, pack, unpack

_PLACE = "/tmp"
"""Where the root is assembled, in a mount namespace that only this program sees."""

_FIRST_PROGRAM = (
    "echo started; exec </dev/null >/dev/null 2>&1; "
    "env --ignore-signal=CHLD true && exec env --ignore-signal=CHLD sleep infinity; "
    "exec sleep infinity"
)
"""What Harbor runs in a container. Where `env` can ignore the signal, ended orphans vanish."""

_LONGEST_START = 20.0
_LONGEST_KILL = 5.0
_OPEN_FILES = 1 << 20
_NOT_FOUND, _NOT_RUNNABLE = 127, 126


class Keeper:
    """One environment.

    Args:
        control: The socket to the owner.
        wanted: What to make.
    """

    def __init__(self, control: socket.socket, wanted: dict[str, Any]) -> None:
        self.control = control
        self.wanted = wanted
        self.first_id = int(wanted["first_id"])
        self.filter = base64.b64decode(wanted["filter"])
        self.folder = str(wanted["folder"])
        self.users = self.init = self.bwrap = -1
        self.helpers: list[subprocess.Popen[bytes]] = []
        self.keep = False
        self.nothing = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        self.running: dict[int, int] = {}
        """The process of each request under way."""

    def start(self) -> None:
        """Make the namespaces and wait until their first process runs."""
        for group in self.wanted["groups"]:
            Path(group["folder"]).mkdir(exist_ok=True)
            for name, value in group["files"].items():
                Path(group["folder"], name).write_text(value)
        os.unshare(os.CLONE_NEWNS)
        make_mounts_private()
        self.users = self._user_namespace()
        self._assemble()
        first = self._launch()
        self.init = os.pidfd_open(first)
        if self.wanted["network"] == "slirp4netns":
            self._start_slirp(first)
        space = os.open(f"/proc/{first}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        os.setns(space, os.CLONE_NEWPID)  # counts for its children
        os.close(space)
        self._finish()

    def _user_namespace(self) -> int:
        """A new user namespace with the ids mapped."""
        ready, done = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(ready)
            os.unshare(os.CLONE_NEWUSER)
            os.write(done, b"x")
            while True:
                signal.pause()
        os.close(done)
        try:
            if not os.read(ready, 1):
                raise KeeperError("a user namespace cannot be made here")
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{pid}/{name}").write_text(f"0 {self.first_id} {self.wanted['ids']}")
            return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            os.close(ready)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _assemble(self) -> None:
        """Mount the layers over each other at `_PLACE/root`."""
        above = self.folder
        if self.wanted["disk_bytes"]:
            above = f"{self.folder}/disk"
            self._mount_disk(f"{self.folder}/disk.image", above)
        # Where this is, the root of the namespace may pass; other folders may be private to us.
        opened = os.open(above, os.O_PATH | os.O_CLOEXEC)
        lowers = [
            [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in tree["layers"]]
            for tree in self.wanted["trees"]
        ]
        bases = [os.open(tree["base"], os.O_PATH | os.O_CLOEXEC) for tree in self.wanted["trees"]]
        mount_memory(_PLACE)
        for name in ("root", "sys"):
            Path(_PLACE, name).mkdir()
        for number, tree in enumerate(self.wanted["trees"]):
            base = f"{_PLACE}/base{number}"
            Path(base).mkdir()
            mount_mapped(f"/proc/self/fd/{bases[number]}", base, self.users)
            name = tree["name"]
            beside = f"/proc/self/fd/{opened}"
            for kind in ("upper", "work"):
                Path(beside, kind, name).mkdir(parents=True, exist_ok=True)
            os.chown(f"{beside}/upper/{name}", self.first_id, self.first_id)
            mode = stat.S_IMODE(Path(base).stat().st_mode)
            Path(beside, "upper", name).chmod(mode)
            lower = ":".join([*(f"/proc/self/fd/{fd}" for fd in lowers[number]), escaped(base)])
            place = f"{_PLACE}/root/{tree['at']}".rstrip("/")
            if Path(place).resolve() != Path(place):
                raise KeeperError(f"the root has a link where /{tree['at']} should be a folder")
            work = f"upperdir={beside}/upper/{name},workdir={beside}/work/{name}"
            mount("overlay", place, "overlay", 0, f"lowerdir={lower},{work}")
        for fd in (opened, *bases, *(fd for several in lowers for fd in several)):
            os.close(fd)

    def _mount_disk(self, image: str, place: str) -> None:
        """A file system of limited size, in a file that takes only the space in use."""
        Path(place).mkdir()
        with open(image, "wb") as file:  # noqa: PTH123
            file.truncate(self.wanted["disk_bytes"])
        make = ("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-b", "4096")
        self._tool(*make, "-E", "lazy_itable_init=1,nodiscard", image)
        self._tool("mount", "-o", "loop,noatime", image, place)

    def _tool(self, *argv: str) -> None:
        done = subprocess.run(argv, capture_output=True, check=False)
        if done.returncode:
            raise KeeperError(f"{argv[0]} failed: {done.stderr.decode(errors='replace').strip()}")

    def _launch(self) -> int:
        """Start bubblewrap in the user namespace; its first process, once that runs."""
        facts, facts_end = os.pipe()
        ready, ready_end = os.pipe()
        argv = [
            *(self.wanted["bwrap"], "--bind", f"{_PLACE}/root", "/", *self.wanted["arguments"]),
            *("--ro-bind", f"{_PLACE}/sys", "/sys", "--info-fd", str(facts_end), "--", "/bin/sh"),
            *("-c", _FIRST_PROGRAM),
        ]
        self.bwrap = os.fork()
        if not self.bwrap:
            try:
                self._become_bwrap(argv, ready_end, facts_end)
            except BaseException as error:
                os.write(ready_end, str(error).encode())
                os._exit(1)
        os.close(facts_end)
        os.close(ready_end)
        text = _read_until(ready, b"started\n")
        fact = os.read(facts, 4096) if text.endswith(b"started\n") else b""
        os.close(facts)
        os.close(ready)
        if not fact:
            raise KeeperError(f"bwrap did not start: {text.decode(errors='replace').strip()}")
        return int(json.loads(fact)["child-pid"])

    def _become_bwrap(self, argv: list[str], out: int, facts: int) -> NoReturn:
        self._join_groups()
        os.setsid()
        _open_files()
        os.setns(self.users, os.CLONE_NEWUSER)
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        os.unshare(os.CLONE_NEWNS)
        if self.wanted["network"] != "host":
            os.unshare(os.CLONE_NEWNET)
            loopback_up()
            with contextlib.suppress(KeeperError):  # a container may not show all of its own
                mount_sysfs(f"{_PLACE}/sys")
        for number, fd in enumerate((self.nothing, out, out)):
            os.dup2(fd, number)
        os.set_inheritable(facts, True)
        _usual_signals()
        os.chdir("/")
        os.execve(argv[0], argv, {"PATH": os.defpath})

    def _start_slirp(self, first: int) -> None:
        """Start a network in user mode: the outside, but not the addresses of this machine."""
        ready, ready_end = os.pipe()
        tool = ("slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback")
        kept = ("--enable-sandbox", f"--ready-fd={ready_end}", str(first), "tap0")
        self.helpers.append(
            subprocess.Popen(
                (*tool, *kept),
                pass_fds=(ready_end,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        os.close(ready_end)
        answer = _read_until(ready, b"1")
        os.close(ready)
        if not answer:
            raise KeeperError("slirp4netns did not start; try network = 'loopback'")

    def _finish_root(self) -> None:
        """Write the files that a container engine writes, as the root of the namespace."""
        for tree in self.wanted["trees"]:
            # bwrap forbids set-user-id programs, such as su, which a container has.
            allow_set_user_id(f"/{tree['at']}")
        _become_root()
        for name, text in self.wanted["files"].items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_text(text)
            path.chmod(0o644)
        Path(self.wanted["workdir"]).mkdir(parents=True, exist_ok=True)
        for name in self.wanted["open_folders"]:
            Path(name).mkdir(parents=True, exist_ok=True)
            Path(name).chmod(0o777)

    def serve(self) -> None:
        """Answer requests until the owner or the environment ends."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.control, selectors.EVENT_READ, "owner")
            waiting.register(os.pidfd_open(os.getppid()), selectors.EVENT_READ, "end")
            while True:
                for key, _ in waiting.select():
                    if key.data == "end":
                        return
                    if key.data != "owner":
                        waiting.unregister(key.fd)
                        self._ended(*key.data)
                        os.close(key.fd)
                        continue
                    request, fds = _receive(self.control)
                    if request is None or request["op"] == "stop":
                        self.keep = request is not None and request["keep"]
                        return
                    self._answer(request, fds, waiting)

    def _answer(
        self, request: dict[str, Any], fds: list[int], waiting: selectors.BaseSelector
    ) -> None:
        number = request["id"]
        if request["op"] == "kill":
            self._kill(self.running.get(number))
            return
        actions: dict[str, Callable[[], None]] = {
            "exec": lambda: self._execute(request, fds[0]),
            "pack": lambda: self._transfer(lambda: pack(request, fds[0]), fds[1]),
            "unpack": lambda: self._transfer(lambda: unpack(request, fds[0]), fds[1]),
            "end_processes": self._end_processes,
        }
        try:
            grouped = request["op"] == "exec"
            pid = self._fork(actions[request["op"]], grouped=grouped, keep=fds)
        except OSError as error:
            self._send({"id": number, "failed": f"the environment has ended ({error.strerror})"})
        else:
            self.running[number] = pid
            waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (number, pid))
        for fd in fds:
            os.close(fd)

    def _ended(self, number: int, pid: int) -> None:
        _, status = os.waitpid(pid, 0)
        del self.running[number]
        code = os.waitstatus_to_exitcode(status)
        self._send({"id": number, "exit": 128 - code if code < 0 else code})

    def _kill(self, pid: int | None) -> None:
        if pid is not None:
            for kill in (os.kill, os.killpg):
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)

    def _send(self, reply: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the owner has gone: the next select says so
            self.control.send(json.dumps(reply).encode(), socket.MSG_NOSIGNAL)

    def _fork(
        self, action: Callable[[], None], *, grouped: bool = False, keep: list[int] | None = None
    ) -> int:
        """Run an action in the namespaces, in a process of its own."""
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            if grouped:
                self._join_groups()
                for name, value in self.wanted["rlimits"].items():
                    resource.setrlimit(getattr(resource, name), (value, value))
            self._enter(keep or [])
            action()
            code = 0
        except KeeperError as error:
            os.write(2, f"{error}\n".encode())
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)

    def _finish(self) -> None:
        messages, messages_end = os.pipe()

        def action() -> None:
            os.dup2(messages_end, 2)
            self._finish_root()

        pid = self._fork(action)
        os.close(messages_end)
        text = os.read(messages, 4096).decode(errors="replace").strip()
        os.close(messages)
        _, status = os.waitpid(pid, 0)
        if status:
            raise KeeperError(f"the root folder cannot be finished: {text}")

    def _join_groups(self) -> None:
        for group in self.wanted["groups"]:
            Path(group["folder"], "cgroup.procs").write_text("0")

    def _enter(self, keep: list[int]) -> None:
        os.setsid()
        _open_files()
        for fd in keep:
            with contextlib.suppress(OSError):
                os.fchown(fd, self.first_id, self.first_id)
        spaces = os.CLONE_NEWUSER | os.CLONE_NEWNS | os.CLONE_NEWIPC | os.CLONE_NEWUTS
        if self.wanted["network"] != "host":
            spaces |= os.CLONE_NEWNET
        if self.wanted["cgroup_namespace"]:
            spaces |= os.CLONE_NEWCGROUP
        os.setns(self.init, spaces)
        os.umask(0o022)

    def _transfer(self, action: Callable[[], None], errors: int) -> None:
        os.dup2(errors, 2)
        limit_powers(self.filter, self.wanted["capabilities"])
        _become_root()
        set_capabilities(self.wanted["capabilities"])
        action()

    def _end_processes(self) -> None:
        """End every process except the first, and this one."""
        deadline = time.monotonic() + _LONGEST_KILL
        while True:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            if not _others_alive():
                return
            if time.monotonic() > deadline:
                raise KeeperError("processes of the environment cannot be ended")
            time.sleep(0.005)

    def _execute(self, request: dict[str, Any], out: int) -> NoReturn:
        try:
            os.dup2(out, 2)
            os.dup2(out, 1)
            os.dup2(self.nothing, 0)
            limit_powers(self.filter, self.wanted["capabilities"])
            user = find_user(request["user"])
            os.fchown(1, user.uid, user.gid)  # for scripts that open /dev/stdout
            os.setgroups(user.groups)
            os.setresgid(user.gid, user.gid, user.gid)
            os.setresuid(user.uid, user.uid, user.uid)
            set_capabilities(self.wanted["capabilities"] if user.uid == 0 else [])
            try:
                os.chdir(request["cwd"])
            except OSError as error:
                raise KeeperError(
                    f"chdir to {request['cwd']!r} failed: {error.strerror}"
                ) from error
            os.closerange(3, 1 << 16)
            _usual_signals()
            _run_program(request["argv"], {"HOME": user.home} | request["env"])
        except (KeeperError, OSError, ValueError) as error:  # as data: a task chooses the words
            os.write(2, f"{error}\n".encode(errors="replace"))
        os._exit(_NOT_RUNNABLE)

    def clean(self) -> None:
        """End the processes; remove mounts, control groups and the folder."""
        if self.init >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
        for helper in self.helpers:
            helper.kill()
        if self.bwrap > 0:
            if self.init < 0:
                os.kill(self.bwrap, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.bwrap, 0)
        for pid in self.running.values():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        for place in (_PLACE, f"{self.folder}/disk"):
            unmount(place)
        for group in self.wanted["groups"]:
            _remove_group(group["folder"])
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def _others_alive() -> bool:
    own = {"1", str(os.getpid())}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and name not in own:
            with contextlib.suppress(OSError):
                text = Path("/proc", name, "stat").read_bytes()
                if text[text.rindex(b")") + 2 :][:1] not in (b"Z", b"X"):
                    return True
    return False


def _become_root() -> None:
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _usual_signals() -> None:
    """Undo what Python has changed."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def _open_files() -> None:
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))


def _run_program(argv: list[str], environment: dict[str, str]) -> None:
    """Become a program found on the PATH; write why not and exit otherwise."""
    program = argv[0]
    folders = [""] if "/" in program else environment.get("PATH", os.defpath).split(":")
    failed: OSError | None = None
    for folder in folders:
        try:
            os.execve(f"{folder}/{program}" if folder else program, argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            failed = error
            break
    if failed is None:
        os.write(2, f"{program}: not found\n".encode())
        os._exit(_NOT_FOUND)
    os.write(2, f"{program}: {failed.strerror}\n".encode())
    os._exit(_NOT_RUNNABLE)


def _remove_group(folder: str) -> None:
    deadline = time.monotonic() + _LONGEST_KILL
    while time.monotonic() < deadline:
        try:
            Path(folder).rmdir()
        except FileNotFoundError:
            return
        except OSError:  # a process has ended, but the kernel still counts it
            time.sleep(0.002)
        else:
            return


def _read_until(fd: int, end: bytes) -> bytes:
    text = b""
    deadline = time.monotonic() + _LONGEST_START
    with selectors.DefaultSelector() as waiting:
        waiting.register(fd, selectors.EVENT_READ)
        while not text.endswith(end) and (left := deadline - time.monotonic()) > 0:
            if waiting.select(left):
                piece = os.read(fd, 4096)
                if not piece:
                    break
                text += piece
    return text


def _receive(control: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """One request and its descriptors; the request is None when the owner has gone."""
    try:
        data, fds, _, _ = socket.recv_fds(control, 64, 8)
    except ConnectionResetError:
        return None, []
    if not data:
        return None, []
    with os.fdopen(fds[0], "rb") as file:
        file.seek(0)
        request: dict[str, Any] = json.load(file)
    return request, fds[1:]


def main() -> None:
    """Serve one environment over the socket whose number is the first argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    wanted, _ = _receive(control)
    if wanted is None:
        return
    hide_memory()
    lock = os.open(f"{wanted['folder']}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    keeper = Keeper(control, wanted)
    try:
        try:
            keeper.start()
        except (KeeperError, OSError) as error:
            control.send(json.dumps({"id": 0, "failed": str(error)}).encode())
            return
        control.send(json.dumps({"id": 0, "exit": 0}).encode())
        keeper.serve()
    finally:
        keeper.clean()
