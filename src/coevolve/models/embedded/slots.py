"""Which slot answers which prompt: the one that remembers most of it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager


class Slot:
    """A place for one prompt at a time; `tokens` is what it read last."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tokens: Sequence[int] = ()


class Slots:
    """Gives out slots, first come first served.

    Of the free slots, a prompt gets the one whose last prompt begins most like it, since the
    model need not read that beginning again; among equals, the one that was idle longest.
    """

    def __init__(self, count: int) -> None:
        self._free = deque(Slot(number) for number in range(count))
        self._turns = asyncio.Semaphore(count)

    @asynccontextmanager
    async def slot(self, tokens: Sequence[int]) -> AsyncIterator[Slot]:
        """A slot of one's own for a prompt."""
        async with self._turns:
            chosen = max(self._free, key=lambda slot: common(slot.tokens, tokens))
            self._free.remove(chosen)
            try:
                chosen.tokens = tokens
                yield chosen
            finally:
                self._free.append(chosen)


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many items two sequences begin with alike.

    >>> common([1, 2, 3], [1, 2, 4, 5])
    2
    """
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return place
    return min(len(one), len(other))
