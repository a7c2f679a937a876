"""The model's process: private, mortal, and never in the way."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coevolve.errors import ConfigError
from coevolve.models.embedded import EmbeddedProvider
from coevolve.models.embedded.model_process import Child, ModelProcess, post
from coevolve.models.model_errors import ModelUnavailable
from coevolve.models.provider import ModelRequest

REQUEST = ModelRequest(prompt="One, two, three,", max_tokens=4)
LONG = ModelRequest(prompt="word " * 3000, max_tokens=50)
ORPHAN = """
import asyncio, sys
from coevolve.models.embedded import EmbeddedProvider
async def main():
    provider = EmbeddedProvider(slots=1)
    await provider.count(["ready"])
    print(provider._process.pid, provider._process._child.socket.parent, flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int, seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_alive(pid)


@pytest.mark.usefixtures("weights")
def test_a_crash_costs_the_request_in_flight_and_no_more() -> None:
    async def crash() -> None:
        provider = EmbeddedProvider(slots=1)
        try:
            before = await provider.complete(REQUEST)
            flight = asyncio.create_task(provider.complete(LONG))
            await asyncio.sleep(0.2)
            pid = provider._process.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(ModelUnavailable, match="ended with exit status -9"):
                await flight
            assert await provider.complete(REQUEST) == before
            assert provider._process.pid != pid
        finally:
            await provider.close()

    asyncio.run(crash())


@pytest.mark.usefixtures("weights")
def test_closing_ends_the_process_and_a_request_in_flight() -> None:
    async def close() -> int | None:
        provider = EmbeddedProvider(slots=1)
        await provider.complete(REQUEST)
        pid = provider._process.pid
        flight = asyncio.create_task(provider.complete(LONG))
        await asyncio.sleep(0.2)
        await provider.close()
        with pytest.raises(ModelUnavailable):
            await flight
        await provider.close()
        return pid

    pid = asyncio.run(close())
    assert pid is not None
    assert not is_alive(pid)


@pytest.mark.usefixtures("weights")
def test_it_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().decode().split()
        assert is_alive(int(pid))
        assert Path(folder).exists()
        parent.kill()
    assert gone(int(pid))
    assert not Path(folder).exists()


@pytest.mark.usefixtures("weights")
def test_a_cancelled_request_frees_its_slot() -> None:
    async def cancel() -> None:
        provider = EmbeddedProvider(slots=1)
        try:
            before = await provider.complete(REQUEST)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await provider.complete(LONG)
            again = await provider.complete(REQUEST)
            assert (again.text, again.tokens_in) == (before.text, before.tokens_in)
        finally:
            await provider.close()

    asyncio.run(cancel())


def test_only_this_user_can_reach_it_and_only_with_the_key(weights: Path) -> None:
    child = Child(weights, slots=1, threads=1)
    try:
        child.wait_until_ready()
        assert stat.S_IMODE(child.socket.parent.stat().st_mode) == 0o700
        body = {"prompt": "x", "n_predict": 1}
        assert asyncio.run(post(child.socket, "/completion", body, "a guess"))[0] == 401
        assert asyncio.run(post(child.socket, "/completion", body, child.key))[0] == 200
        assert child.key not in Path(f"/proc/{child.process.pid}/cmdline").read_text()
        assert child.key not in Path(f"/proc/{child.process.pid}/environ").read_text()
        assert not listening(child.process.pid)
    finally:
        child.end()
    assert not child.socket.parent.exists()


def listening(pid: int) -> list[str]:
    """Sockets of a process that listen on a port."""
    own = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
    rows = [row.split() for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]


def test_weights_that_cannot_be_loaded(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the embedded model's runtime is not installed")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF and no more")

    async def load() -> None:
        process = ModelProcess(lambda: tmp_path / "bad.gguf", slots=1, threads=1)
        try:
            for _ in range(2):
                with pytest.raises(ConfigError, match="cannot be loaded"):
                    await process.post("/tokenize", {"content": "x"})
                assert process.pid is None
        finally:
            await process.close()

    asyncio.run(load())


def test_missing_weights_say_how_to_get_them(tmp_path: Path) -> None:
    async def ask() -> None:
        provider = EmbeddedProvider(folder=tmp_path)
        try:
            await provider.complete(REQUEST)
        finally:
            await provider.close()

    with pytest.raises(ConfigError, match="coevolve model get"):
        asyncio.run(ask())


@pytest.mark.parametrize("given", [{"slots": 0}, {"threads": 0}])
def test_arguments_that_make_no_sense(given: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be 1 or more, got 0"):
        EmbeddedProvider(**given)  # type: ignore[arg-type]
