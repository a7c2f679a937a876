"""One running task environment: start it, run commands in it, copy files, stop it.

This is the side of the owner; `namespace_keeper` is the other side. It does not use Harbor.
"""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from coevolve.benchmarks.harbor.command_output import PIECE, CommandOutput, OnOutput
from coevolve.benchmarks.harbor.namespace_leftovers import new_name, remove_environment
from coevolve.benchmarks.harbor.namespace_limits import (
    NamespaceLimits,
    control_groups,
    process_limits,
)
from coevolve.benchmarks.harbor.transfer_archives import (
    NamespaceError,
    TransferError,
    extract_file,
    extract_folder,
    plain,
)
from coevolve.executors.isolation.seccomp import container_filter

FIRST_ID = 200_000
"""The user of this machine that is root in an environment; 65,536 ids from here are in use."""

IDS = 65_536
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHARED_MEMORY = 64 << 20
_LONGEST_STOP = 20.0
# What Docker leaves to a container: chown, dac_override, fowner, fsetid, kill, setgid, setuid,
# setpcap, net_bind_service, net_raw, sys_chroot, mknod, audit_write, setfcap.
CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
_PROGRAM = """
import sys, types
for name in ("coevolve", "coevolve.benchmarks", "coevolve.benchmarks.harbor"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [sys.argv[2]]
from coevolve.benchmarks.harbor.namespace_keeper import main
main()
"""

type Network = Literal["loopback", "slirp4netns", "host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A part of the root: a folder of this machine, the layers above it, and where it is.

    Args:
        base: The lowest folder. Its owner 0 is root in the environment.
        layers: Folders above it, highest first, as an environment has written them.
        at: Where it is in the root; empty for the root itself.
    """

    base: Path
    layers: tuple[Path, ...] = ()
    at: str = ""

    @property
    def name(self) -> str:
        """The name of the folder with what is written to this tree."""
        return self.at.replace("/", "-") or "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespacePlan:
    """What an environment is made of.

    Args:
        trees: The parts of its root, outer parts first.
        limits: What its processes may use together.
        network: `loopback` has no way out; `slirp4netns` reaches the outside but not this
            machine; `host` shares the network of this machine and is for trusted builds only.
        hostname: Its name for itself.
        workdir: The folder in which commands start.
        open_folders: Folders to make, writable for every user of the task.
        keep: Keep what was written, in `upper` in the folder of the environment.
    """

    trees: tuple[Tree, ...]
    limits: NamespaceLimits = field(default_factory=NamespaceLimits)
    network: Network = "loopback"
    hostname: str = "task"
    workdir: str = "/"
    open_folders: tuple[str, ...] = ()
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The end of a command: its output, standard error included, and its exit status."""

    output: str
    code: int


class TaskNamespace:
    """A running environment.

    Args:
        plan: What it is made of.
        folder: Where the folders of environments are.
        output_bytes: How much output of a command is kept.
        transfer_bytes: How much one transfer may copy.
    """

    def __init__(
        self,
        plan: NamespacePlan,
        folder: Path,
        *,
        output_bytes: int = 16 << 20,
        transfer_bytes: int = 1 << 30,
    ) -> None:
        self.plan = plan
        self.name = new_name()
        self.folder = folder / self.name
        self._output_bytes = output_bytes
        self._transfer_bytes = transfer_bytes
        self._keeper: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._drains: set[int] = set()
        self._last = 0

    async def start(self) -> None:
        """Make it and wait until it runs."""
        self.folder.mkdir(parents=True)
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own.setblocking(False)
        with other:
            fd = str(other.fileno())
            argv = (sys.executable, "-I", "-S", "-c", _PROGRAM, fd, str(Path(__file__).parent))
            self._keeper = subprocess.Popen(
                argv,
                pass_fds=(other.fileno(),),
                env={"PATH": PATH},
                cwd="/",
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._control = own
        self._listener = asyncio.create_task(self._listen())
        try:
            answer = self._expect(0)
            _send(own, self._request())
            reply = await answer
            if "failed" in reply:
                raise NamespaceError(f"the environment cannot be started: {reply['failed']}")
        except BaseException:
            await asyncio.shield(self.stop())
            raise

    def _request(self) -> dict[str, Any]:
        plan = self.plan
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise NamespaceError("the program bwrap is missing; install the package bubblewrap")
        share_cgroup = not Path("/proc/self/ns/cgroup").exists()
        arguments = [
            *("--proc", "/proc", "--dev", "/dev", "--perms", "1777"),
            *("--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm", "--mqueue", "/dev/mqueue"),
            *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", plan.hostname),
            *(() if share_cgroup else ("--unshare-cgroup",)),
            *("--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--chdir", "/"),
        ]
        disk = plan.limits.disk_mb
        return {
            "folder": str(self.folder),
            "first_id": FIRST_ID,
            "ids": IDS,
            "trees": [
                {
                    "base": str(tree.base),
                    "layers": [str(layer) for layer in tree.layers],
                    "at": tree.at,
                    "name": tree.name,
                }
                for tree in plan.trees
            ],
            "groups": control_groups(self.name, plan.limits),
            "disk_bytes": 0 if disk is None else disk << 20,
            "network": plan.network,
            "files": _engine_files(plan.hostname, plan.network),
            "workdir": plan.workdir,
            "open_folders": list(plan.open_folders),
            "rlimits": process_limits(plan.limits),
            "bwrap": bwrap,
            "arguments": arguments,
            "cgroup_namespace": not share_cgroup,
            "capabilities": list(CAPABILITIES),
            "filter": base64.b64encode(container_filter()).decode(),
        }

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | int | None = None,
        timeout: float | None = None,
        on_output: OnOutput | None = None,
    ) -> Execution:
        """Run a command and wait for it, but not for what it leaves in the background.

        Raises:
            TimeoutError: It has not ended in time; its process group was killed.
        """
        variables = {"PATH": PATH, "HOSTNAME": self.plan.hostname, **(env or {})}
        reader, writer = os.pipe()
        collected = CommandOutput(reader, self._output_bytes, on_output)
        request = {
            "op": "exec",
            "argv": list(argv),
            "cwd": cwd or self.plan.workdir,
            "env": variables,
            "user": user,
        }
        try:
            code = await self._call(request, [writer], timeout=timeout)
            await collected.rest()
        except BaseException:
            collected.close()
            raise
        self._drain(collected)
        return Execution(output=collected.text(), code=code)

    async def end_processes(self) -> None:
        """Kill every process in the environment except its first."""
        if await self._call({"op": "end_processes"}, []):
            raise NamespaceError(f"processes of the environment {self.name} could not be ended.")

    async def put_file(
        self, source: Path, target: str, *, owner: str | None = None, mode: int | None = None
    ) -> None:
        """Copy a file of this machine to a path in the environment, or into a folder there."""

        def fill(file: IO[bytes]) -> None:
            with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
                info = archive.gettarinfo(str(source.resolve(strict=True)), "file")
                with source.open("rb") as content:
                    archive.addfile(info, content)

        await self._put(fill, target, folder=False, name=source.name, owner=owner, mode=mode)

    async def put_folder(
        self, source: Path, target: str, *, owner: str | None = None, mode: int | None = None
    ) -> None:
        """Copy the contents of a folder of this machine into a folder of the environment."""

        def fill(file: IO[bytes]) -> None:
            with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
                archive.add(source, ".", filter=plain)

        if not source.is_dir():
            raise TransferError(f"{source} is not a folder.")
        await self._put(fill, target, folder=True, name="", owner=owner, mode=mode)

    async def _put(self, fill: Callable[[IO[bytes]], None], target: str, **facts: Any) -> None:
        with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as errors:
            await asyncio.to_thread(fill, file)
            file.flush()
            if file.tell() > self._transfer_bytes + (1 << 20):
                raise TransferError(
                    f"the files for {target} exceed the limit of {self._transfer_bytes >> 20} MB; "
                    "raise `transfer_mb` in environment_options."
                )
            request = {"op": "unpack", "path": target, **facts}
            await self._move(request, file, errors)

    async def get_file(self, source: str, target: Path) -> None:
        """Copy a file of the environment to a path of this machine."""
        if target.is_dir():
            target /= PurePosixPath(source).name
        async with self._got(source, folder=False) as (file, _):
            await asyncio.to_thread(extract_file, file, target)

    async def get_folder(self, source: str, target: Path) -> str:
        """Copy the files and folders in a folder of the environment.

        Links are left out, and so is what exceeds the limit; the result says so then.
        """
        async with self._got(source, folder=True) as (file, note):
            await asyncio.to_thread(extract_folder, file, target, self._transfer_bytes)
            return note

    @contextlib.asynccontextmanager
    async def _got(self, source: str, *, folder: bool) -> AsyncIterator[tuple[IO[bytes], str]]:
        with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as errors:
            request = {"op": "pack", "path": source, "limit": self._transfer_bytes}
            note = await self._move({**request, "folder": folder}, file, errors)
            file.seek(0)
            yield file, note

    async def _move(self, request: dict[str, Any], file: IO[bytes], errors: IO[bytes]) -> str:
        fds = [os.dup(file.fileno()), os.dup(errors.fileno())]
        code = await self._call(request, fds)
        errors.seek(0)
        text = errors.read(4096).decode(errors="replace").strip()
        if code:
            raise TransferError(f"files could not be copied: {text}.")
        return text

    async def stop(self) -> None:
        """End it, with all that belongs to it."""
        if self._control is not None:
            with contextlib.suppress(OSError):  # it has ended by itself
                _send(self._control, {"op": "stop", "keep": self.plan.keep})
            self._control.close()
            self._control = None
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None
        for fd in self._drains:
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)
        self._drains.clear()
        if self._keeper is not None:
            try:
                await asyncio.to_thread(self._keeper.wait, _LONGEST_STOP)
            except subprocess.TimeoutExpired:
                self._keeper.kill()
                self._keeper.wait()
            if self._keeper.returncode:
                await asyncio.to_thread(remove_environment, self.folder.parent, self.name)
            self._keeper = None
        self._fail_all("the environment was stopped")

    async def _call(
        self, request: dict[str, Any], fds: list[int], *, timeout: float | None = None
    ) -> int:
        """Send a request with descriptors, which it closes; the exit status of its process."""
        try:
            if self._control is None:
                raise NamespaceError(f"the environment {self.name} has ended.")
            self._last += 1
            number = self._last
            answer = self._expect(number)
            _send(self._control, {**request, "id": number}, fds)
        except OSError as error:
            raise NamespaceError(f"the environment {self.name} has ended ({error}).") from error
        finally:
            for fd in fds:
                os.close(fd)
        try:
            reply = await asyncio.wait_for(answer, timeout)
        except (TimeoutError, asyncio.CancelledError):
            if self._control is not None:
                with contextlib.suppress(OSError):
                    _send(self._control, {"op": "kill", "id": number})
            raise
        finally:
            self._replies.pop(number, None)
        if "failed" in reply:
            raise NamespaceError(f"{self.name}: {reply['failed']}.")
        return int(reply["exit"])

    def _expect(self, number: int) -> asyncio.Future[dict[str, Any]]:
        answer = asyncio.get_running_loop().create_future()
        self._replies[number] = answer
        return answer

    async def _listen(self) -> None:
        control = self._control
        assert control is not None
        loop = asyncio.get_running_loop()
        try:
            while data := await loop.sock_recv(control, 1 << 16):
                reply = json.loads(data)
                answer = self._replies.get(reply["id"])
                if answer is not None and not answer.done():
                    answer.set_result(reply)
        except OSError:
            pass  # the same as its end, below
        self._fail_all("the environment has ended")

    def _fail_all(self, why: str) -> None:
        for answer in self._replies.values():
            if not answer.done():
                answer.set_result({"failed": why})

    def _drain(self, collected: CommandOutput) -> None:
        """Read and forget what background processes still write, else they would be killed."""
        fd = collected.detach()
        if fd is None:
            return
        loop = asyncio.get_running_loop()
        self._drains.add(fd)

        def forget() -> None:
            with contextlib.suppress(BlockingIOError):
                if not os.read(fd, PIECE):
                    loop.remove_reader(fd)
                    self._drains.discard(fd)
                    os.close(fd)

        loop.add_reader(fd, forget)


def _engine_files(hostname: str, network: Network) -> dict[str, str]:
    """The files that a container engine writes into each container."""
    hosts = (
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        "fe00::0\tip6-localnet",
        "ff00::0\tip6-mcastprefix",
        "ff02::1\tip6-allnodes",
        "ff02::2\tip6-allrouters",
        f"127.0.1.1\t{hostname}",
    )
    if network == "host":
        servers = Path("/etc/resolv.conf").read_text()
    else:
        servers = "nameserver 10.0.2.3\n" if network == "slirp4netns" else ""
    return {
        "/etc/hosts": "".join(f"{line}\n" for line in hosts),
        "/etc/hostname": f"{hostname}\n",
        "/etc/resolv.conf": servers,
    }


def _send(control: socket.socket, request: dict[str, Any], fds: Sequence[int] = ()) -> None:
    memory = os.memfd_create("request", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(memory), "wb") as file:
            file.write(json.dumps(request).encode())
        socket.send_fds(control, [b"x"], [memory, *fds])
    finally:
        os.close(memory)
