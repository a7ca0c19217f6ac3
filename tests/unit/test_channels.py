from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Self

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.channels import SHUTDOWN, Channel
from yiemagent_nb.core.errors import ChannelClosed, ChannelFull


def same(value: Any) -> Any:
    return value


def channel_of(capacity: int, **options: Any) -> Channel[Any, Any]:
    fields: dict[str, Any] = {"convert": same, **options}
    return Channel(capacity, **fields)


async def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task that has come to its first wait."""
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    return task


async def within_time(task: asyncio.Task[Any]) -> Any:
    async with asyncio.timeout(5):
        return await task


# --- One after the other -----------------------------------------------------------------------


@pytest.mark.requirement("Y FR-001", "Y SD-001", "Y SD-002", "Y SD-003")
def test_the_channels_of_an_agent_have_the_capacities_of_the_contract() -> None:
    agent = Agent(same)
    assert agent.input_channel.capacity == 16
    assert agent.follow_up_channel.capacity == 32
    assert agent.output_channel.capacity == 16


@pytest.mark.requirement("Y SD-001")
async def test_items_leave_in_the_order_in_which_they_came() -> None:
    channel = channel_of(3)
    await channel.put("a")
    channel.put_nowait("b")
    channel.put_threadsafe("c")
    assert len(channel) == 3
    assert channel.items() == ("a", "b", "c")
    assert [await channel.take(), channel.take_nowait(), await channel.take()] == ["a", "b", "c"]
    assert channel.take_nowait() is None


@pytest.mark.requirement("Y NFR-103")
async def test_a_full_channel_refuses_those_who_do_not_wait() -> None:
    channel = channel_of(1)
    channel.put_nowait("a")
    with pytest.raises(ChannelFull, match=r"holds 1 items and is full.*await channel\.put"):
        channel.put_nowait("b")
    with pytest.raises(ChannelFull):  # this thread runs an event loop, which must not wait
        channel.put_threadsafe("b")
    assert channel.items() == ("a",)


@pytest.mark.requirement("Y NFR-103")
async def test_a_put_waits_while_the_channel_is_full() -> None:
    channel = channel_of(1)
    await channel.put("a")
    putting = await start(channel.put("b"))
    assert not putting.done()
    assert await channel.take() == "a"
    await within_time(putting)
    assert channel.items() == ("b",)


@pytest.mark.requirement("Y SD-001")
async def test_a_take_waits_while_the_channel_is_empty() -> None:
    channel = channel_of(1)
    taking = await start(channel.take())
    assert not taking.done()
    channel.put_nowait("a")
    assert await within_time(taking) == "a"


@pytest.mark.requirement("Y SD-001")
@pytest.mark.parametrize("capacity", [0, -1])
def test_a_channel_without_room_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match="capacity is at least 1"):
        channel_of(capacity)


def test_reprs_show_how_full_a_channel_is_and_nothing_of_its_items() -> None:
    channel = channel_of(2)
    channel.put_nowait("secret")
    assert repr(channel) == "Channel(1/2)"
    channel.close()
    assert repr(channel) == "Channel(1/2, closed)"
    assert repr(SHUTDOWN) == "SHUTDOWN"


# --- Closing -----------------------------------------------------------------------------------


@pytest.mark.requirement("Y NFR-003", "Y SD-003")
async def test_iteration_ends_when_the_channel_is_closed_and_empty() -> None:
    channel = channel_of(3)
    channel.put_nowait("a")
    channel.put_nowait("b")
    channel.close()
    assert [item async for item in channel] == ["a", "b"]
    assert channel.closed


@pytest.mark.requirement("Y NFR-003")
async def test_a_closed_channel_takes_nothing_more_and_gives_what_it_has() -> None:
    channel = channel_of(2)
    channel.put_nowait("a")
    channel.close()
    channel.close()
    for put in (channel.put_nowait, channel.put_threadsafe):
        with pytest.raises(ChannelClosed, match="nothing can be put"):
            put("b")
    with pytest.raises(ChannelClosed):
        await channel.put("b")
    assert await channel.take() == "a"
    assert channel.take_nowait() is None
    with pytest.raises(ChannelClosed, match="closed and empty"):
        await channel.take()


@pytest.mark.requirement("Y NFR-003")
async def test_closing_wakes_waiting_takers_and_putters() -> None:
    empty, full = channel_of(1), channel_of(1)
    full.put_nowait("a")
    waiting = [await start(empty.take()), await start(empty.take()), await start(full.put("b"))]
    iterating = await start(anext(empty))
    empty.close()
    full.close()
    for task in waiting:
        with pytest.raises(ChannelClosed):
            await within_time(task)
    with pytest.raises(StopAsyncIteration):
        await within_time(iterating)


@pytest.mark.requirement("Y NFR-003", "Y FR-001")
def test_closing_wakes_a_waiting_thread() -> None:
    channel = channel_of(1)
    channel.put_nowait("a")
    errors: list[Exception] = []

    def put() -> None:
        try:
            channel.put_threadsafe("b")
        except ChannelClosed as error:
            errors.append(error)

    thread = threading.Thread(target=put)
    thread.start()
    channel.close()
    thread.join(5)
    assert len(errors) == 1


# --- Leaving early -----------------------------------------------------------------------------


@pytest.mark.requirement("Y NFR-103")
async def test_a_cancelled_put_puts_nothing_and_hands_its_turn_on() -> None:
    channel = channel_of(1)
    channel.put_nowait("a")
    first, second = await start(channel.put("b")), await start(channel.put("c"))
    assert await channel.take() == "a"  # wakes the first
    first.cancel()
    await within_time(second)
    assert first.cancelled()
    assert channel.items() == ("c",)


@pytest.mark.requirement("Y NFR-103")
async def test_a_cancelled_take_takes_nothing_and_hands_its_turn_on() -> None:
    channel = channel_of(1)
    first, second = await start(channel.take()), await start(channel.take())
    channel.put_nowait("a")  # wakes the first
    first.cancel()
    assert await within_time(second) == "a"
    assert first.cancelled()


@pytest.mark.requirement("Y NFR-103")
def test_a_thread_waits_for_room_no_longer_than_it_may() -> None:
    channel = channel_of(1)
    channel.put_nowait("a")
    start_time = time.monotonic()
    with pytest.raises(ChannelFull):
        channel.put_threadsafe("b", timeout=0.02)
    assert time.monotonic() - start_time >= 0.02
    assert channel.take_nowait() == "a"
    channel.put_threadsafe("b", timeout=0)


@pytest.mark.requirement("Y NFR-103")
def test_a_thread_that_waits_is_let_in_when_there_is_room() -> None:
    channel = channel_of(1)
    channel.put_nowait("a")
    thread = threading.Thread(target=channel.put_threadsafe, args=("b", 5))
    thread.start()
    assert channel.take_nowait() == "a"
    thread.join(5)
    assert channel.items() == ("b",)


@pytest.mark.requirement("Y NFR-103")
async def test_clear_gives_everything_and_lets_all_putters_in() -> None:
    channel = channel_of(2)
    channel.put_nowait("a")
    channel.put_nowait("b")
    putting = [await start(channel.put("c")), await start(channel.put("d"))]
    assert channel.clear() == ("a", "b")
    await asyncio.gather(*map(within_time, putting))
    assert channel.items() == ("c", "d")


# --- Converting and admitting ------------------------------------------------------------------


def refuse_odd(item: int) -> None:
    if item % 2:
        raise ValueError(f"{item} is odd")


@pytest.mark.requirement("Y FR-001")
async def test_what_is_put_is_converted_first() -> None:
    channel = channel_of(3, convert=int)
    await channel.put("1")
    channel.put_nowait("2")
    channel.put_threadsafe("3")
    assert channel.items() == (1, 2, 3)


@pytest.mark.requirement("Y FR-001", "A SPEC-9.2")
@pytest.mark.parametrize("option", ["convert", "admit"])
async def test_what_refuses_an_item_raises_at_the_putter_and_loses_nothing(option: str) -> None:
    def check(item: int) -> int:
        refuse_odd(item)
        return item

    channel = channel_of(2, **{option: check})
    channel.put_nowait(2)
    for put in (channel.put_nowait, channel.put_threadsafe):
        with pytest.raises(ValueError, match="1 is odd"):
            put(1)
    with pytest.raises(ValueError, match="3 is odd"):
        await channel.put(3)
    await channel.put(4)
    assert channel.items() == (2, 4)


@pytest.mark.requirement("Y NFR-103", "A SPEC-9.2")
async def test_a_refused_putter_that_waited_hands_its_turn_on() -> None:
    channel = channel_of(1, admit=refuse_odd)
    channel.put_nowait(0)
    refused, welcome = await start(channel.put(1)), await start(channel.put(2))
    assert await channel.take() == 0
    with pytest.raises(ValueError, match="1 is odd"):
        await within_time(refused)
    await within_time(welcome)
    assert channel.items() == (2,)


@pytest.mark.requirement("Y SD-001")
async def test_every_change_is_told_and_nothing_else() -> None:
    told: list[tuple[Any, ...]] = []
    channel: Channel[Any, Any] = channel_of(1, on_change=lambda: told.append(channel.items()))
    channel.put_nowait("a")
    with pytest.raises(ChannelFull):
        channel.put_nowait("b")
    await channel.take()
    channel.take_nowait()
    channel.put_nowait("c")
    channel.clear()
    channel.close()
    assert told == [("a",), (), ("c",), (), ()]


# --- Lossy until it is read --------------------------------------------------------------------


@pytest.mark.requirement("Y SD-003")
async def test_a_channel_that_nobody_reads_keeps_the_newest_and_counts_the_rest() -> None:
    channel = channel_of(2, lossy_until_read=True)
    for item in range(5):
        await channel.put(item)
    assert channel.items() == (3, 4)
    assert channel.dropped == 3


@pytest.mark.requirement("Y SD-003", "Y NFR-103")
async def test_from_the_first_reader_on_a_put_waits_and_nothing_is_dropped() -> None:
    channel = channel_of(2, lossy_until_read=True)
    for item in range(3):
        channel.put_nowait(item)
    assert await channel.take() == 1
    channel.put_nowait(3)
    with pytest.raises(ChannelFull):
        channel.put_nowait(4)
    putting = await start(channel.put(4))
    assert [await channel.take(), await channel.take()] == [2, 3]
    await within_time(putting)
    assert channel.dropped == 1


# --- Many threads and loops --------------------------------------------------------------------

THREADS = 4
EACH = 2000


class Watch:
    """Looks at the length of a channel from a thread of its own."""

    def __init__(self, channel: Channel[Any, Any]) -> None:
        self.longest = 0
        self._channel = channel
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.0005):  # leaves the interpreter to the others meanwhile
            self.longest = max(self.longest, len(self._channel), len(self._channel.items()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def put_all(channel: Channel[Any, Any], number: int) -> None:
    for count in range(EACH):
        channel.put_threadsafe((number, count))


async def take_all(channel: Channel[Any, Any]) -> list[tuple[int, int]]:
    return [item async for item in channel]


def in_order(items: list[tuple[int, int]]) -> bool:
    return all(
        counts == sorted(counts)
        for counts in ([count for number, count in items if number == each] for each in range(THREADS))
    )


@pytest.mark.requirement("Y FR-001", "Y NFR-003", "Y NFR-103", "Y SD-001")
async def test_puts_of_four_threads_lose_nothing_and_keep_their_order_and_the_capacity() -> None:
    channel = channel_of(7)
    putters = [threading.Thread(target=put_all, args=(channel, number)) for number in range(THREADS)]
    with Watch(channel) as watch:
        taking = await start(take_all(channel))
        for putter in putters:
            putter.start()
        await asyncio.gather(*(asyncio.to_thread(putter.join) for putter in putters))
        channel.close()
        taken = await taking
    assert sorted(taken) == [(number, count) for number in range(THREADS) for count in range(EACH)]
    assert in_order(taken)
    assert 0 < watch.longest <= 7


@pytest.mark.requirement("Y FR-001", "Y NFR-003", "Y NFR-103", "Y SD-001")
def test_takers_on_two_loops_share_what_four_threads_put() -> None:
    channel = channel_of(5)
    shares: list[list[tuple[int, int]]] = []

    async def take_with_two() -> None:
        shares.extend(await asyncio.gather(take_all(channel), take_all(channel)))

    takers = [threading.Thread(target=lambda: asyncio.run(take_with_two())) for _ in range(2)]
    putters = [threading.Thread(target=put_all, args=(channel, number)) for number in range(THREADS)]
    with Watch(channel) as watch:
        for thread in (*takers, *putters):
            thread.start()
        for thread in putters:
            thread.join()
        channel.close()
        for thread in takers:
            thread.join()
    assert len(shares) == 4
    assert sorted(item for share in shares for item in share) == [
        (number, count) for number in range(THREADS) for count in range(EACH)
    ]
    assert all(map(in_order, shares))
    assert 0 < watch.longest <= 5


@pytest.mark.requirement("Y FR-001", "Y NFR-103")
def test_coroutines_of_two_loops_and_threads_put_together() -> None:
    channel = channel_of(3)

    async def put_asynchronously(number: int) -> None:
        for count in range(500):
            await channel.put((number, count))

    async def take() -> list[tuple[int, int]]:
        return [await channel.take() for _ in range(4 * 500)]

    def put_synchronously(number: int) -> None:
        for count in range(500):
            channel.put_threadsafe((number, count))

    threads = [
        threading.Thread(target=lambda: asyncio.run(put_asynchronously(0))),
        threading.Thread(target=lambda: asyncio.run(put_asynchronously(1))),
        threading.Thread(target=put_synchronously, args=(2,)),
        threading.Thread(target=put_synchronously, args=(3,)),
    ]
    for thread in threads:
        thread.start()
    taken = asyncio.run(take())
    for thread in threads:
        thread.join()
    assert sorted(taken) == [(number, count) for number in range(4) for count in range(500)]
    assert in_order(taken)


@pytest.mark.requirement("Y SD-001")
def test_waiters_of_a_closed_loop_are_passed_over() -> None:
    channel = channel_of(1)
    lost = channel.take()

    async def begin_to_wait() -> None:
        lost.send(None)

    dead = asyncio.new_event_loop()
    dead.run_until_complete(begin_to_wait())
    dead.close()

    async def put_and_take() -> str:
        taking = await start(channel.take())
        await channel.put("a")
        return await within_time(taking)

    assert asyncio.run(put_and_take()) == "a"
    lost.close()


# --- Against a model ---------------------------------------------------------------------------


class RefusedError(Exception):
    """What ``admit`` raises for an item that is not welcome."""


class ChannelMachine(RuleBasedStateMachine):
    """A channel beside two lists: what was accepted, in order, and what was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.accepted: list[int] = []
        self.taken: list[int] = []
        self.cleared = 0
        self.number = 0
        self.channel: Channel[int, int] = Channel(2, convert=same, admit=self._admit)
        self.putting: deque[asyncio.Task[None]] = deque()
        self.taking: deque[asyncio.Task[int]] = deque()

    def _admit(self, item: int) -> None:
        if item < 0:
            raise RefusedError
        self.accepted.append(item)

    def _next(self, *, welcome: bool) -> int:
        self.number += 1
        return self.number if welcome else -self.number

    def _settle(self) -> None:
        for _ in range(20):
            self.loop.run_until_complete(asyncio.sleep(0))
        for tasks in (self.putting, self.taking):
            for task in [task for task in tasks if task.done()]:
                tasks.remove(task)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
                error = None if task.cancelled() else task.exception()
                if error is not None:
                    assert isinstance(error, RefusedError) or (self.channel.closed and isinstance(error, ChannelClosed))
                elif not task.cancelled() and isinstance(item := task.result(), int):
                    self.taken.append(item)

    @rule(welcome=st.booleans())
    def put_nowait(self, *, welcome: bool) -> None:
        item = self._next(welcome=welcome)
        full, closed = len(self.channel) == 2, self.channel.closed
        try:
            self.channel.put_nowait(item)
        except ChannelFull:
            assert full
        except ChannelClosed:
            assert closed
        except RefusedError:
            assert not welcome
        else:
            assert welcome
            assert not full
        self._settle()

    @rule(welcome=st.booleans())
    def put(self, *, welcome: bool) -> None:
        self.putting.append(self.loop.create_task(self.channel.put(self._next(welcome=welcome))))
        self._settle()

    @rule(count=st.integers(1, 3))
    def puts_at_once(self, count: int) -> None:
        for _ in range(count):
            self.putting.append(self.loop.create_task(self.channel.put(self._next(welcome=True))))
        self._settle()

    @rule(count=st.integers(1, 3))
    def takes_at_once(self, count: int) -> None:
        for _ in range(count):
            self.taking.append(self.loop.create_task(self.channel.take()))
        self._settle()

    @rule()
    def take_nowait(self) -> None:
        item = self.channel.take_nowait()
        if item is not None:
            self.taken.append(item)
        self._settle()

    @rule(data=st.data(), settled=st.booleans())
    @precondition(lambda self: self.putting or self.taking)
    def cancel(self, data: st.DataObject, *, settled: bool) -> None:
        tasks: list[asyncio.Task[Any]] = [*self.putting, *self.taking]
        if not settled:  # cancelled in the very step in which it may be woken
            item = self.channel.take_nowait()
            if item is not None:
                self.taken.append(item)
        data.draw(st.sampled_from(tasks)).cancel()
        self._settle()

    @rule()
    def clear(self) -> None:
        items = self.channel.clear()
        self.taken.extend(items)
        self._settle()

    @rule()
    @precondition(lambda self: self.number > 10)
    def close(self) -> None:
        self.channel.close()
        self._settle()

    @invariant()
    def nothing_is_lost_or_out_of_order(self) -> None:
        assert self.taken + list(self.channel.items()) == self.accepted

    @invariant()
    def the_capacity_is_kept(self) -> None:
        assert len(self.channel) <= 2

    @invariant()
    def nobody_waits_without_need(self) -> None:
        assert not self.putting or (len(self.channel) == 2 and not self.channel.closed)
        assert not self.taking or (len(self.channel) == 0 and not self.channel.closed)

    def teardown(self) -> None:
        self.channel.close()
        self.channel.clear()
        self._settle()
        assert not self.putting
        assert not self.taking
        self.loop.close()


ChannelMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
test_a_channel_behaves_as_its_model = pytest.mark.requirement("Y FR-001", "Y NFR-103", "Y SD-001")(
    ChannelMachine.TestCase
)


@pytest.mark.requirement("Y SD-001")
@pytest.mark.parametrize("put", [Channel[Any, Any].put_nowait, Channel[Any, Any].put_threadsafe])
def test_a_channel_works_where_no_loop_runs(put: Callable[[Channel[Any, Any], str], None]) -> None:
    channel = channel_of(2)
    put(channel, "a")
    assert channel.take_nowait() == "a"
