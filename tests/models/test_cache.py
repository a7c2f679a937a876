"""Replies by address: kept, shared, and never silently wrong."""

import contextlib
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from coevolve.models.provider import ModelReply
from coevolve.models.response_cache import CacheError, ResponseCache
from tests.effort import effort
from tests.models.fakes import reply


def key(number: int) -> str:
    return f"{number:064x}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.db"


def test_replies_are_there_when_the_file_is_opened_again(path: Path) -> None:
    kept = reply("half \ud800", finish="length", scores={"a": -0.1}, dollars=0.25, tokens_kept=3)
    with ResponseCache(path) as cache:
        assert cache.get(key(1)) is None
        cache.put(key(1), kept)
    with ResponseCache(path) as cache:
        assert cache.get(key(1)) == kept
        assert cache.get(key(2)) is None
        assert len(cache) == 1


def test_the_first_reply_stays(path: Path) -> None:
    with ResponseCache(path) as cache:
        cache.put(key(1), reply("first"))
        cache.put(key(1), reply("second"))
        assert cache.get(key(1)) == reply("first")


def test_two_that_share_the_file_see_each_other_s_replies(path: Path) -> None:
    with ResponseCache(path) as one, ResponseCache(path) as other:
        one.put(key(1), reply("yes"))
        assert other.get(key(1)) == reply("yes")
        other.put(key(2), reply("no"))
        assert one.get(key(2)) == reply("no")


FILL = """
import sys
from pathlib import Path

from coevolve.models.response_cache import ResponseCache
from coevolve.models.provider import ModelReply

start = int(sys.argv[2])
with ResponseCache(Path(sys.argv[1])) as cache:
    for n in range(start, start + 40):
        reply = ModelReply(text=str(n), finish="stop", tokens_in=100, tokens_out=10)
        cache.put(f"{n:064x}", reply)
"""


def test_processes_may_share_a_file_from_its_first_moment(path: Path) -> None:
    commands = [[sys.executable, "-c", FILL, str(path), str(30 * n)] for n in range(3)]
    workers = [subprocess.Popen(command) for command in commands]
    assert [worker.wait(120) for worker in workers] == [0, 0, 0]
    with ResponseCache(path) as cache:
        assert [cache.get(key(n)) for n in range(100)] == [reply(str(n)) for n in range(100)]


def test_threads_may_share_a_cache(path: Path) -> None:
    with ResponseCache(path) as cache:

        def use(start: int) -> None:
            for number in range(start, start + 50):
                cache.put(key(number), reply(str(number)))
                cache.get(key(number + 1))

        threads = [threading.Thread(target=use, args=(25 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(cache) == 125


def test_nothing_is_left_beside_the_cache(path: Path) -> None:
    with ResponseCache(path) as cache:
        cache.put(key(1), reply())
    assert [file.name for file in path.parent.iterdir()] == ["cache.db"]


@pytest.mark.parametrize("content", [b"", b"not a database, whatever it is called", b"\0" * 8192])
def test_another_file_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(CacheError, match=r"cache\.db is (damaged|not a cache of coevolve)"):
        ResponseCache(path)
    assert path.read_bytes() == content


def test_another_database_is_refused(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE replies (key)")
    with pytest.raises(CacheError, match="is not a cache of coevolve"):
        ResponseCache(path)


def test_another_version_is_refused(path: Path) -> None:
    ResponseCache(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(CacheError, match="another version of coevolve"):
        ResponseCache(path)


def test_a_changed_reply_is_noticed(path: Path) -> None:
    with ResponseCache(path) as cache:
        cache.put(key(1), reply("yes"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE replies SET reply = CAST(replace(reply, 'yes', 'yea') AS BLOB)")
    with (
        ResponseCache(path) as cache,
        pytest.raises(CacheError, match=r"is damaged: the reply at 0000.*Move it .* away"),
    ):
        cache.get(key(1))


def readable(path: Path) -> dict[int, ModelReply | None]:
    with ResponseCache(path) as cache:
        return {number: cache.get(key(number)) for number in range(60)}


@settings(max_examples=effort(10, 40), deadline=None)
@given(place=st.floats(0, 0.999), damage=st.binary(min_size=1, max_size=64))
@example(place=0.1640625, damage=b"\x80")  # in the text of the table's definition
def test_damage_gives_an_error_or_nothing_false(
    tmp_path_factory: pytest.TempPathFactory, place: float, damage: bytes
) -> None:
    path = tmp_path_factory.mktemp("cache") / "cache.db"
    with ResponseCache(path) as cache:
        for number in range(60):
            cache.put(key(number), reply(f"answer {number} " * 10))
    content = bytearray(path.read_bytes())
    start = int(place * len(content))
    content[start : start + len(damage)] = damage[: len(content) - start]
    path.write_bytes(content)
    found: dict[int, ModelReply | None] = {}
    with contextlib.suppress(CacheError):
        found = readable(path)
    good = {number: reply(f"answer {number} " * 10) for number in found}
    assert all(value in (None, good[number]) for number, value in found.items())


def test_a_log_without_its_cache_is_not_written_into_a_new_one(path: Path) -> None:
    path.parent.mkdir()
    log = path.with_name("cache.db-wal")
    log.write_bytes(b"frames")
    with pytest.raises(CacheError, match="the log of a cache that is missing"):
        ResponseCache(path)
    assert log.read_bytes() == b"frames"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match=r"file.cache\.db cannot be used"):
        ResponseCache(tmp_path / "file" / "cache.db")
