from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref
from functools import partial

import pytest

from yiemagent_nb.core.signal import AbortSignal


@pytest.mark.requirement("Y SP-022")
def test_a_signal_is_set_once_and_keeps_its_first_reason() -> None:
    signal = AbortSignal()
    assert not signal.aborted
    assert signal.reason == ""
    signal.abort("enough")
    signal.abort("again")
    assert signal.aborted
    assert signal.reason == "enough"
    assert repr(signal) == "AbortSignal(aborted=True)"


@pytest.mark.requirement("Y SP-022")
def test_callbacks_run_once_in_their_order() -> None:
    signal = AbortSignal()
    told: list[str] = []
    signal.on_abort(lambda: told.append("a"))
    signal.on_abort(lambda: told.append("b"))
    signal.abort()
    signal.abort()
    assert told == ["a", "b"]


@pytest.mark.requirement("Y SP-022")
def test_a_callback_on_a_set_signal_runs_at_once() -> None:
    signal = AbortSignal()
    signal.abort()
    told: list[str] = []
    signal.on_abort(lambda: told.append("a"))()
    assert told == ["a"]


@pytest.mark.requirement("Y SP-022")
def test_a_callback_that_was_taken_back_does_not_run_and_takes_no_other_with_it() -> None:
    signal = AbortSignal()
    told: list[int] = []

    def callback() -> None:
        told.append(1)

    forget = signal.on_abort(callback)
    signal.on_abort(callback)
    forget()
    forget()
    signal.abort()
    assert told == [1]


@pytest.mark.requirement("Y SP-022")
def test_a_callback_that_raises_is_logged_and_keeps_nobody_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    signal = AbortSignal()
    told: list[str] = []

    def broken() -> None:
        raise RuntimeError("of a tool")

    signal.on_abort(broken)
    signal.on_abort(lambda: told.append("b"))
    with caplog.at_level(logging.ERROR):
        signal.abort()
    assert told == ["b"]
    assert "of a tool" in caplog.text


@pytest.mark.requirement("Y SP-022")
def test_a_child_follows_its_parent_and_not_the_other_way() -> None:
    parent = AbortSignal()
    child, other = AbortSignal(parent), AbortSignal(parent)
    other.abort("only me")
    assert not parent.aborted
    parent.abort("all")
    assert (child.aborted, child.reason, other.reason) == (True, "all", "only me")


@pytest.mark.requirement("Y SP-022")
def test_a_child_of_a_set_parent_is_set() -> None:
    parent = AbortSignal()
    parent.abort("early")
    assert AbortSignal(parent).reason == "early"


@pytest.mark.requirement("Y SP-022")
def test_a_detached_child_is_let_go_and_follows_no_more() -> None:
    class Follower:
        """Lives as long as the child's callback."""

    parent = AbortSignal()
    child, follower = AbortSignal(parent), Follower()
    child.on_abort(partial(id, follower))
    seen = weakref.ref(follower)
    child.detach()
    child.detach()
    parent.abort()
    assert not child.aborted
    del child, follower
    gc.collect()
    assert seen() is None


@pytest.mark.requirement("Y SP-022")
async def test_coroutines_on_the_loop_wake_by_an_abort_of_another_thread() -> None:
    signal = AbortSignal()
    waiters = [asyncio.ensure_future(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    threading.Thread(target=signal.abort).start()
    async with asyncio.timeout(5):
        await asyncio.gather(*waiters)
    await signal.wait()


@pytest.mark.requirement("Y SP-022")
async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    signal = AbortSignal()
    waiter = asyncio.ensure_future(signal.wait())
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.wait({waiter})
    assert waiter.cancelled()
    assert not signal._callbacks  # pyright: ignore[reportPrivateUsage]


@pytest.mark.requirement("Y SP-022")
def test_threads_wait_for_the_flag_or_for_their_time() -> None:
    signal = AbortSignal()
    assert not signal.wait_threadsafe(0.001)
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(signal.wait_threadsafe(5))) for _ in range(3)]
    for thread in threads:
        thread.start()
    signal.abort()
    for thread in threads:
        thread.join()
    assert answers == [True, True, True]
    assert signal.wait_threadsafe()


@pytest.mark.requirement("Y SP-022")
def test_aborts_of_many_threads_run_each_callback_once() -> None:
    signal = AbortSignal()
    told: list[str] = []
    signal.on_abort(lambda: told.append(signal.reason))
    start = threading.Barrier(8)

    def abort(reason: str) -> None:
        start.wait()
        signal.abort(reason)

    threads = [threading.Thread(target=abort, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [signal.reason]


def test_an_abort_after_the_waiting_loop_was_closed_does_no_harm() -> None:
    signal = AbortSignal()
    loop = asyncio.new_event_loop()
    task = loop.create_task(signal.wait())
    loop.run_until_complete(asyncio.sleep(0))
    told: list[str] = []
    signal.on_abort(lambda: told.append("heard"))
    task.cancel()
    loop.run_until_complete(asyncio.wait({task}))
    loop.close()
    signal.abort()
    assert told == ["heard"]
