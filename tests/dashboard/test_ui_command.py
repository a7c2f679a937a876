"""`coevolve ui` as users start and stop it."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.command import coevolve

pytest.importorskip("starlette", reason="starlette is missing")
pytest.importorskip("uvicorn", reason="uvicorn is missing")


@contextmanager
def started(*words: object, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command while it works, and the address that it printed."""
    command = [sys.executable, "-m", "coevolve", "ui", *map(str, words)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | environment,
    )
    with process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.startswith("Open http://"), first + (process.communicate()[1])
            yield process, first.split()[1]
        finally:
            process.kill()


def fetched(url: str, **headers: str) -> tuple[int, str]:
    """The status and the text of an answer; redirects are not followed."""

    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *given: object) -> None:
            return None

    opener = urllib.request.build_opener(Stay, urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("set-cookie", "") + error.read().decode()


def taken() -> tuple[socket.socket, int]:
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    held.listen()
    return held, held.getsockname()[1]


def test_it_prints_its_address_and_ends_quietly_with_open_pages(finished: Path) -> None:
    with started(finished.parent, "--port", 0) as (process, url):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Stop with Ctrl-C")
        assert fetched(url)[0] == 307  # to the only run of the folder
        status, text = fetched(f"{url}runs/sample")
        assert status == 200
        assert "r1-0 won" in text
        # A page that is open: its stream waits for events.
        stream = urllib.request.urlopen(f"{url}runs/sample/stream", timeout=20)
        with stream:
            assert stream.readline().startswith(b"retry")
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=20)
        assert (out.strip(), errors) == ("", "")
        assert process.returncode in (0, 130)


def test_a_taken_port_is_an_error_or_the_next_one_is_used(finished: Path) -> None:
    held, port = taken()
    with held:
        done = coevolve("ui", finished, "--port", port)
        assert done.returncode == 2
        assert f"cannot listen on 127.0.0.1 port {port}" in " ".join(done.stderr.split())
    # Without --port, the first free one from 8100 on is used.
    with socket.socket() as first:
        with suppress(OSError):  # somebody else has it, which serves as well
            first.bind(("127.0.0.1", 8100))
            first.listen()
        with started(finished) as (_, url):
            assert ":8100/" not in url
            assert fetched(f"{url}runs/sample")[0] == 200


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("nowhere",), "nowhere does not exist"),
        (("past.csv",), "is not JSON"),
        ((".", "--token", ""), "--token must have"),
        ((".", "--port", "70000"), "65535"),
        ((".", "--host", "192.0.2.1", "--port", "0"), "cannot listen on 192.0.2.1"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    (tmp_path / "past.csv").write_text("candidate,task\n")
    done = coevolve("ui", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert expected in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


def test_another_address_than_loopback_needs_a_token(finished: Path) -> None:
    with started(finished, "--host", "0.0.0.0", "--port", 0) as (_, url):
        found = re.fullmatch(r"(http://localhost:\d+/)\?token=([\w%-]{20,})", url)
        assert found is not None
        base, token = found[1].replace("localhost", "127.0.0.1"), found[2]
        status, text = fetched(f"{base}runs/sample")
        assert (status, "needs a token" in text) == (401, True)
        assert fetched(f"{base}runs/sample?token=wrong")[0] == 401
        status, cookie = fetched(f"{base}runs/sample?token={token}")
        assert status == 303
        name = cookie.partition(";")[0]
        assert fetched(f"{base}runs/sample", cookie=name)[0] == 200
    with started(finished, "--port", 0, COEVOLVE_UI_TOKEN="of-my-own") as (_, url):
        assert url.endswith("/?token=of-my-own")
        assert fetched(url.partition("?")[0])[0] == 401
