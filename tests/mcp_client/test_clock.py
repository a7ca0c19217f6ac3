"""The time that a request has: it stands still while a person is asked, and progress begins it anew."""

from __future__ import annotations

import asyncio

import pytest

from yiemagent_nb.mcp.clock import Clock

SHORT = 0.05


async def test_silence_ends_the_wait() -> None:
    clock = Clock(SHORT)
    with pytest.raises(TimeoutError):
        async with clock:
            await asyncio.Event().wait()
    assert clock.expired


async def test_without_seconds_there_is_no_end() -> None:
    async with Clock(None) as clock:
        clock.restart()
        clock.pause()
        clock.resume()
        await asyncio.sleep(SHORT)
    assert not clock.expired


async def test_each_sign_of_progress_begins_it_anew() -> None:
    async with Clock(10 * SHORT) as clock:
        for _ in range(20):
            await asyncio.sleep(SHORT)
            clock.restart()
    assert not clock.expired


async def test_it_stands_still_until_every_question_is_answered() -> None:
    async with Clock(SHORT) as clock:
        clock.pause()
        clock.pause()
        await asyncio.sleep(3 * SHORT)
        clock.resume()
        clock.restart()
        await asyncio.sleep(3 * SHORT)
    assert not clock.expired


async def test_after_the_last_answer_it_goes_on() -> None:
    async def asked_and_silent() -> None:
        async with clock:
            clock.pause()
            clock.resume()
            await asyncio.Event().wait()

    clock = Clock(SHORT)
    with pytest.raises(TimeoutError):
        await asked_and_silent()
    assert clock.expired


async def test_after_its_end_nothing_moves_it() -> None:
    async with Clock(SHORT) as clock:
        pass
    clock.restart()
    clock.pause()
    clock.resume()
    await asyncio.sleep(2 * SHORT)
    assert not clock.expired


async def test_an_error_of_ones_own_passes_through() -> None:
    clock = Clock(10)
    with pytest.raises(TimeoutError, match="of its own"):
        async with clock:
            raise TimeoutError("of its own")
    assert not clock.expired
