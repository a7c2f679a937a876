"""Run a command with a private Docker engine, which ends with it.

    python tools/docker_engine.py COMMAND [ARGUMENT ...]

The engine is made of Debian's packages, which are unpacked into the cache and not installed. It
has namespaces of its own for processes, mounts and networks: when its first process ends, the
kernel ends containers, mounts and networks with it. It has no network, and pulls nothing. Images
that our tasks and Harbor name are made here, see `docker_images.py`.

The command sees `DOCKER_HOST`, `DOCKER_CONFIG` and `PATH` of this engine. Other engines of the
machine are not touched. `COEVOLVE_CACHE` says where packages are kept.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

from docker_images import import_images, name_by_digest
from docker_packages import EngineError, unpacked_programs

from coevolve.models.response_cache import cache_folder

START_SECONDS = 60
STOP_SECONDS = 20
_PREFIX = "engine-"
_NEEDED = ("apt-get", "dpkg-deb", "setpriv", "unshare", "tar")


def why_not() -> str:
    """Why an engine cannot be started here; empty if it can."""
    if sys.platform != "linux":
        return f"an engine needs Linux, and this is {sys.platform}"
    if os.geteuid() != 0:
        return "an engine needs root; run it with sudo, or as root in a virtual machine"
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not found; an engine is made of Debian's packages"
    return ""


class DockerEngine:
    """A private engine: started, used and stopped.

    Args:
        folder: A new folder for everything that it writes; removed by `stop`.
        programs: The unpacked packages.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder, self._programs = folder, programs
        self._group = f"coevolve-docker-{os.getpid()}"
        self._process: subprocess.Popen[bytes] | None = None
        plugins = folder / "config" / "cli-plugins"
        plugins.mkdir(parents=True)
        for plugin in programs.glob("usr/libexec/docker/cli-plugins/*"):
            (plugins / plugin.name).symlink_to(plugin)

    @property
    def variables(self) -> dict[str, str]:
        """Variables with which `docker` finds this engine."""
        own = [str(self._programs / "usr" / name) for name in ("bin", "sbin")]
        return {
            "DOCKER_HOST": f"unix://{self._folder}/d.sock",
            "DOCKER_CONFIG": str(self._folder / "config"),
            "PATH": os.pathsep.join([*own, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]),
        }

    def start(self) -> None:
        """Start the engine and wait until it answers.

        Raises:
            EngineError: It ended, or does not answer.
        """
        libraries = ":".join(map(str, self._programs.glob("usr/lib/*-linux-gnu")))
        environment = {**os.environ, **self.variables, "LD_LIBRARY_PATH": libraries}
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                (*_SPACES, "docker-init", "--", "dockerd", *self._options()),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while self.docker("version", check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                text = (self._folder / "log").read_text(errors="replace")[-1500:]
                raise EngineError(f"the engine does not start; the end of its log:\n{text}")
            time.sleep(0.1)

    def _options(self) -> tuple[str, ...]:
        return (
            f"--data-root={self._folder}/data",
            f"--exec-root={self._folder}/exec",
            f"--host=unix://{self._folder}/d.sock",
            f"--pidfile={self._folder}/d.pid",
            f"--cgroup-parent=/{self._group}",
            "--exec-opt=native.cgroupdriver=cgroupfs",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-masq=false",
        )

    def docker(
        self, *arguments: str, check: bool = True, stdin: int | None = subprocess.DEVNULL
    ) -> subprocess.CompletedProcess[str]:
        """Call `docker` with this engine.

        Raises:
            EngineError: The command failed, and `check` is set.
        """
        done = subprocess.run(
            ("docker", *arguments),
            env={**os.environ, **self.variables, "DOCKER_BUILDKIT": "1"},
            stdin=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            said = (done.stdout + done.stderr).strip()[-1500:]
            raise EngineError(f"`docker {' '.join(arguments)}` failed: {said}")
        return done

    def halt(self) -> None:
        """End the engine, its containers and namespaces; its folder stays."""
        process, self._process = self._process, None
        if process is None:
            return
        for child in _children(process.pid):  # the first process in the namespaces
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """End the engine and remove everything that it wrote."""
        self.halt()
        remove_groups(self._group)
        shutil.rmtree(self._folder, ignore_errors=True)


_SPACES = (
    *("setpriv", "--pdeathsig", "KILL"),
    *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
)
"""The engine ends with us, and everything that it started ends with its first process."""


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def remove_groups(name: str) -> None:
    """Remove the control groups of an engine whose processes have ended."""
    for top in (Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*")):
        group = top / name
        if group.is_dir():
            below = [path for path in group.rglob("*") if path.is_dir()]
            for path in (*sorted(below, reverse=True), group):
                with contextlib.suppress(OSError):  # a process is ending; the next sweep gets it
                    path.rmdir()


def sweep(cache: Path) -> None:
    """Remove what engines have left whose process was killed."""
    for folder in cache.glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX)
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            remove_groups(f"coevolve-docker-{pid}")
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_engine() -> Iterator[DockerEngine]:
    """An engine with all images, stopped at the end.

    Raises:
        EngineError: It cannot be started here; the text says why.
    """
    if reason := why_not():
        raise EngineError(reason)
    cache = cache_folder() / "docker"
    cache.mkdir(parents=True, exist_ok=True)
    sweep(cache)
    programs = unpacked_programs(cache, say)
    folder = cache / f"{_PREFIX}{os.getpid()}"
    if len(str(folder)) > 90:  # the kernel takes 107 characters as the address of a socket
        raise EngineError(f"the path {folder} is too long; set COEVOLVE_CACHE to a shorter one")
    folder.mkdir()
    engine = DockerEngine(folder, programs)
    try:
        engine.start()
        probe = import_images(engine.docker, cache, programs, say)
        engine.halt()
        name_by_digest(folder / "data", probe)
        engine.start()
        say("the engine runs")
        yield engine
    finally:
        engine.stop()


def say(text: str) -> None:
    """Tell what happens."""
    print(f"docker engine: {text}", file=sys.stderr, flush=True)


def _ended(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def run(command: list[str], more: Mapping[str, str] | None = None) -> int:
    """Run a command with an engine; its exit status."""
    signal.signal(signal.SIGTERM, _ended)
    signal.signal(signal.SIGHUP, _ended)
    with running_engine() as engine:
        variables = {**os.environ, **engine.variables, **(more or {})}
        with subprocess.Popen(command, env=variables) as process:
            try:
                return process.wait()
            except BaseException:
                process.terminate()
                raise


def main() -> int:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run with the engine")
    command = parser.parse_args().command
    if not command:
        parser.error("say which command to run")
    try:
        return run(command)
    except EngineError as error:
        print(f"docker engine: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
