"""Harbor's Docker environment, for agents that are not trusted.

Harbor mounts folders of the host into the container, where the agent is root: a link that it puts
there leads to a file of this machine. Harbor also keeps all output of a command in memory. Here no
folder for logs is mounted. Files leave the container as an archive that the container engine
writes and we read with care, and what is kept of an output is limited.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
from pathlib import Path
from typing import IO, Any, override

from harbor.environments.base import ExecResult, OutputCallback
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.environments.docker import write_mounts_compose_file
from harbor.environments.docker.docker import DockerEnvironment

from coevolve.benchmarks.harbor.transfer_archives import (
    TransferError,
    extract_file,
    extract_folder,
)

OUTPUT_BYTES = 16 << 20
"""How much output of one command is kept; the rest is dropped with a note."""
_PIECE = 1 << 16
_LOGS = "/logs/"
_MAIN = "main"


class GuardedDockerEnvironment(DockerEnvironment):
    """A task in Docker, without mounts for logs and with bounds on what leaves the container.

    Args:
        args: Those of Harbor's Docker environment.
        transfer_mb: The maximum size of one download.
        kwargs: Those of Harbor's Docker environment.
    """

    def __init__(self, *args: Any, transfer_mb: int = 1024, **kwargs: Any) -> None:
        self._transfer_bytes = transfer_mb << 20
        super().__init__(*args, **kwargs)

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return super().capabilities.model_copy(update={"mounted": False})

    @override
    def _write_mounts_compose_file(self) -> Path:
        """Mount what the user asks for, and none of Harbor's folders for logs."""
        self._cleanup_mounts_compose_file()
        self._mounts_compose_temp_dir = tempfile.TemporaryDirectory()
        path = Path(self._mounts_compose_temp_dir.name) / "docker-compose-mounts.json"
        kept = [mount for mount in self._mounts if not str(mount.get("target")).startswith(_LOGS)]
        return write_mounts_compose_file(path, kept)

    @override
    async def prepare_logs_for_host(self) -> None:
        """Do nothing: the logs are not in a folder of this machine."""

    @override
    async def stop(self, delete: bool) -> None:
        if delete and not self._keep_containers:
            # The first process in a container ignores the request to end, which takes 10 seconds.
            await self._run_docker_compose_command(["kill"], check=False)
        await super().stop(delete)

    @staticmethod
    @override
    async def _collect_buffered_output(
        process: asyncio.subprocess.Process,
        *,
        timeout_sec: int | None,
        stdin_data: bytes | None = None,
    ) -> ExecResult:
        return await _collected(process, timeout_sec, stdin_data, None)

    @staticmethod
    @override
    async def _collect_streamed_output(
        process: asyncio.subprocess.Process,
        *,
        timeout_sec: int | None,
        stdin_data: bytes | None = None,
        on_output: OutputCallback,
    ) -> ExecResult:
        return await _collected(process, timeout_sec, stdin_data, on_output)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        with tempfile.TemporaryFile() as archive:
            await self._read_archive(source_path, archive)
            await asyncio.to_thread(extract_file, archive, Path(target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        with tempfile.TemporaryFile() as archive:
            await self._read_archive(f"{source_dir.rstrip('/')}/.", archive)
            await asyncio.to_thread(
                extract_folder, archive, Path(target_dir), self._transfer_bytes, links="skip"
            )

    async def _read_archive(self, source: str, archive: IO[bytes]) -> None:
        """Let the engine write a file or a folder of the container to an archive.

        The engine follows links inside the container, and no program of the task runs.
        """
        found = await self._run_docker_compose_command(["ps", "--all", "--quiet", _MAIN])
        container = (found.stdout or "").strip().splitlines()
        if not container:
            raise TransferError("the container of the task has ended.")
        process = await asyncio.create_subprocess_exec(
            *type(self)._engine_cmd("cp", "--follow-link", f"{container[-1]}:{source}", "-"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            while piece := await process.stdout.read(_PIECE):
                archive.write(piece)
                if archive.tell() > self._transfer_bytes + (1 << 20):
                    raise TransferError(
                        f"{source} is too large: the limit is {self._transfer_bytes >> 20} MB; "
                        "raise `transfer_mb` in environment_options."
                    )
            said = (await process.stderr.read(2000)).decode(errors="replace").strip()
            if await process.wait():
                raise TransferError(f"{source} could not be copied: {said}")
        finally:
            await _ended(process)
        archive.seek(0)


async def _collected(
    process: asyncio.subprocess.Process,
    seconds: float | None,
    stdin_data: bytes | None,
    on_output: OutputCallback | None,
) -> ExecResult:
    """What a command writes, up to the limit; it ends with us."""
    kept, dropped = bytearray(), 0

    async def write() -> None:
        if stdin_data is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                process.stdin.write(stdin_data)
                await process.stdin.drain()
            process.stdin.close()

    async def read() -> None:
        nonlocal dropped
        assert process.stdout is not None
        while piece := await process.stdout.read(_PIECE):
            room = OUTPUT_BYTES - len(kept)
            kept.extend(piece[:room])
            dropped += max(0, len(piece) - room)
            if on_output is not None and room > 0:
                await on_output(piece[:room].decode(errors="replace"), "stdout")

    try:
        async with asyncio.timeout(seconds or None):
            await asyncio.gather(write(), read())
            await process.wait()
    except TimeoutError:
        raise RuntimeError(f"Command timed out after {seconds} seconds") from None
    finally:
        await _ended(process)
    text = kept.decode(errors="replace")
    if dropped:
        text += f"\n[{dropped} more bytes of output were dropped]\n"
    return ExecResult(stdout=text or None, stderr=None, return_code=process.returncode or 0)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End a process of ours that is still at work, with its children.

    `docker compose` is a child of `docker`, and would keep our pipe open.
    """
    if process.returncode is not None:
        return
    for pid in reversed(_family(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()


def _family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found
