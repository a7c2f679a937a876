"""Prompts go where their beginning is remembered."""

import asyncio

from coevolve.models.embedded.scoring import Slots


def test_a_prompt_gets_the_slot_that_knows_its_beginning() -> None:
    async def numbers() -> list[int]:
        slots, got = Slots(3), []
        for tokens in ([1, 2, 3], [7, 8, 9], [1, 2, 4], [7, 8], [5], [1, 2, 3]):
            async with slots.slot(tokens) as slot:
                got.append(slot.number)
        return got

    assert asyncio.run(numbers()) == [0, 1, 0, 1, 2, 0]


def test_no_two_prompts_share_a_slot_and_none_waits_forever() -> None:
    async def most() -> tuple[int, int]:
        slots, busy, done = Slots(2), set[int](), []

        async def use(number: int) -> None:
            async with slots.slot([number % 3]) as slot:
                assert slot.number not in busy
                busy.add(slot.number)
                done.append(number)
                await asyncio.sleep(0)
                busy.remove(slot.number)

        await asyncio.gather(*map(use, range(20)))
        return len(done), len(busy)

    assert asyncio.run(most()) == (20, 0)


def test_a_slot_comes_back_after_an_error() -> None:
    async def twice() -> int:
        slots = Slots(1)
        try:
            async with slots.slot([1]):
                raise RuntimeError
        except RuntimeError:
            async with slots.slot([1]) as slot:
                return slot.number

    assert asyncio.run(twice()) == 0
