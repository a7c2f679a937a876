"""Messages arrive whole however their bytes are cut; anything else is refused."""

import asyncio
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevolve.executors.channel import (
    MOST_BYTES,
    AsyncPipe,
    Pipe,
    PipeError,
    pack,
    worker_inbox,
)


@given(
    st.lists(st.dictionaries(st.text(), st.text() | st.integers(), max_size=3), max_size=5),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_messages_arrive_whole_and_in_order(messages: list[Any], cuts: list[int]) -> None:
    data = b"".join(map(pack, messages))
    inbox, arrived, number = worker_inbox(), [], 0
    while data:
        size = cuts[number % len(cuts)]
        inbox.feed(data[:size])
        data, number = data[size:], number + 1
        while (message := inbox.take()) is not None:
            arrived.append(message)
    assert arrived == messages


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff\xff\xff", "was announced"),
        (b"\0\0\0\x02{]", "is not JSON"),
        (b"\0\0\0\x02\xff\xfe", "is not JSON"),
        (b"\0\0\0\x02[]", "not a JSON object"),
    ],
)
def test_garbage_is_refused(data: bytes, reason: str) -> None:
    inbox = worker_inbox()
    inbox.feed(data)
    with pytest.raises(PipeError, match=reason):
        inbox.take()


@pytest.mark.parametrize(
    ("value", "reason"),
    [("x" * MOST_BYTES, "at most 16,000,000"), ({1}, "plain JSON"), (float("nan"), "plain JSON")],
)
def test_what_cannot_be_sent_is_refused_before_it_is(value: Any, reason: str) -> None:
    with pytest.raises(PipeError, match=reason):
        pack({"value": value})


def test_both_ends_talk_until_one_closes() -> None:
    async def talk() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            engine, worker = AsyncPipe(ours), Pipe(theirs)
            large = {"value": "x" * 3_000_000}
            sending = asyncio.ensure_future(engine.send(pack(large)))
            assert await asyncio.to_thread(worker.receive) == large
            await sending
            worker.send({"n": 1})
            worker.send({"n": 2})
            assert [await engine.receive(), await engine.receive()] == [{"n": 1}, {"n": 2}]
            engine.close()
            assert worker.receive() is None

    asyncio.run(talk())
