from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from yiemagent_nb.core import concurrency
from yiemagent_nb.core.concurrency import (
    Interrupted,
    Outcome,
    iterate_in_thread,
    run_abortable,
    run_cancellable,
    run_in_thread,
    start_task,
)
from yiemagent_nb.core.signal import AbortSignal

RUNNERS = [run_abortable, run_cancellable]


def raising(error: BaseException) -> Callable[[], None]:
    def function() -> None:
        raise error

    return function


async def raise_later(error: BaseException, steps: int = 1) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)
    raise error


async def value_after(steps: int) -> str:
    for _ in range(steps):
        await asyncio.sleep(0)
    return "value"


# --- In a thread -------------------------------------------------------------------------------


@pytest.mark.requirement("A SPEC-3.1")
async def test_a_function_runs_in_a_daemon_thread_with_the_callers_context() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")
    who.set("caller")

    def look(suffix: str) -> tuple[bool, str]:
        thread = threading.current_thread()
        return thread.daemon and thread is not threading.main_thread(), who.get() + suffix

    assert await run_in_thread(look, "!") == (True, "caller!")


@pytest.mark.requirement("A SPEC-3.1")
async def test_an_error_in_a_thread_is_raised_where_it_is_awaited() -> None:
    with pytest.raises(ValueError, match="in the thread"):
        await run_in_thread(raising(ValueError("in the thread")))


@pytest.mark.requirement("Y NFR-202")
@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), StopIteration(2), GeneratorExit()], ids=lambda e: type(e).__name__
)
async def test_what_a_future_cannot_hold_comes_wrapped(error: BaseException) -> None:
    with pytest.raises(Outcome) as caught:
        await run_in_thread(raising(error))
    assert caught.value.args == (error,)


@pytest.mark.requirement("Y NFR-202")
def test_a_thread_that_ends_after_its_loop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    go, threads = threading.Event(), list[threading.Thread]()

    def slow() -> None:
        threads.append(threading.current_thread())
        go.wait(5)

    async def leave() -> None:
        future = run_in_thread(slow)
        future.cancel()

    asyncio.run(leave())
    with caplog.at_level(logging.WARNING, "yiemagent_nb"):
        go.set()
        while not threads:
            threading.Event().wait(0.001)
        threads[0].join(5)
    assert "ended after its event loop was closed" in caplog.text


# --- Until an abort or a timeout ---------------------------------------------------------------


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("run", RUNNERS)
@pytest.mark.parametrize("steps", [0, 3])
async def test_what_ends_by_itself_gives_its_value(run: Any, steps: int) -> None:
    assert await run(value_after(steps), AbortSignal()) == "value"


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("run", RUNNERS)
@pytest.mark.parametrize("steps", [0, 3])
async def test_what_raises_raises(run: Any, steps: int) -> None:
    with pytest.raises(ValueError, match="mine"):
        await run(raise_later(ValueError("mine"), steps), AbortSignal())


@pytest.mark.requirement("Y SP-022", "Y NFR-202")
@pytest.mark.parametrize("run", RUNNERS)
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()], ids=lambda e: type(e).__name__
)
async def test_what_would_stop_the_loop_comes_wrapped(run: Any, steps: int, error: BaseException) -> None:
    with pytest.raises(Outcome) as caught:
        await run(raise_later(error, steps), AbortSignal())
    assert type(caught.value.args[0]) is type(error)


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("run", RUNNERS)
async def test_work_does_not_start_when_the_signal_is_set(run: Any) -> None:
    signal, started = AbortSignal(), list[str]()
    signal.abort()

    async def work() -> None:
        started.append("started")

    with pytest.raises(Interrupted):
        await run(work(), signal)
    assert started == []


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("run", RUNNERS)
@pytest.mark.parametrize("from_thread", [False, True])
async def test_an_abort_cancels_what_runs(run: Any, *, from_thread: bool) -> None:
    signal, ended = AbortSignal(), list[str]()

    async def work() -> None:
        abort = threading.Thread(target=signal.abort).start if from_thread else signal.abort
        asyncio.get_running_loop().call_soon(abort)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    async with asyncio.timeout(5):
        with pytest.raises(Interrupted):
            await run(work(), signal)
    assert ended == ["ended"]
    assert cast("asyncio.Task[Any]", asyncio.current_task()).cancelling() == 0


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("run", RUNNERS)
async def test_what_finishes_in_spite_of_an_abort_counts(run: Any) -> None:
    signal = AbortSignal()

    async def work() -> str:
        asyncio.get_running_loop().call_soon(signal.abort)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "finished all the same"
        return "never"

    assert await run(work(), signal) == "finished all the same"
    await asyncio.sleep(0)
    assert cast("asyncio.Task[Any]", asyncio.current_task()).cancelling() == 0


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("run", RUNNERS)
async def test_a_cancelled_caller_is_cancelled_and_so_is_its_work(run: Any) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    caller = asyncio.create_task(run(work(), AbortSignal()))
    await started.wait()
    caller.cancel()
    await asyncio.wait({caller})
    assert caller.cancelled()
    async with asyncio.timeout(5):
        await ended.wait()


@pytest.mark.requirement("Y FR-005")
async def test_work_whose_time_is_over_is_cancelled() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    with pytest.raises(TimeoutError):
        await run_abortable(work(), AbortSignal(), 0.01)
    assert ended == ["ended"]


@pytest.mark.requirement("Y FR-005", "Y SP-022")
@pytest.mark.parametrize("ends", ["abort", "timeout"])
async def test_what_swallows_its_cancellation_is_left_behind_after_its_grace(
    ends: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(concurrency, "ABORT_GRACE", 0.01)
    signal, release = AbortSignal(), asyncio.Event()
    tasks: list[asyncio.Task[Any]] = []

    async def work() -> None:
        tasks.append(cast("asyncio.Task[Any]", asyncio.current_task()))
        if ends == "abort":
            asyncio.get_running_loop().call_soon(signal.abort)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("at last")

    with pytest.raises(Interrupted if ends == "abort" else TimeoutError):
        await run_abortable(work(), signal, None if ends == "abort" else 0.01)
    with caplog.at_level(logging.WARNING, "yiemagent_nb"):
        release.set()
        await asyncio.wait(tasks)
        await asyncio.sleep(0)
    assert "at last" in caplog.text


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("run", RUNNERS)
async def test_nothing_listens_to_the_signal_afterwards(run: Any) -> None:
    signal = AbortSignal()
    await run(value_after(2), signal)
    assert not signal._callbacks  # pyright: ignore[reportPrivateUsage]


async def test_a_started_task_gives_its_value() -> None:
    assert await start_task(value_after(0)) == "value"
    assert await start_task(value_after(2)) == "value"


# --- A blocking iterator -----------------------------------------------------------------------


async def read_all(iterator: Iterator[Any], signal: AbortSignal | None = None) -> list[Any]:
    return [item async for item in iterate_in_thread(iterator, signal or AbortSignal())]


async def test_all_items_of_a_blocking_iterator_come_in_order() -> None:
    assert await read_all(iter(range(500))) == list(range(500))


async def test_an_error_of_an_iterator_comes_after_its_items() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("in the middle")

    reading = iterate_in_thread(items(), AbortSignal())
    assert await anext(reading) == 1
    with pytest.raises(ValueError, match="in the middle"):
        await anext(reading)


class Endless:
    """An iterator without end that knows how far it went and that it was closed."""

    def __init__(self) -> None:
        self.count = 0
        self.most_ahead = 0
        self.read = 0
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.count += 1
        self.most_ahead = max(self.most_ahead, self.count - self.read)
        return self.count

    def close(self) -> None:
        self.closed.set()


async def test_an_iterator_runs_no_more_than_64_items_ahead_and_is_closed_when_its_reader_leaves() -> None:
    endless = Endless()
    reading = iterate_in_thread(endless, AbortSignal())
    async for item in reading:
        endless.read = item
        if item == 1000:
            break
    await reading.aclose()
    assert await asyncio.to_thread(endless.closed.wait, 5)
    assert endless.most_ahead <= 64 + 2  # one that was read just now, and one that waits for room


@pytest.mark.requirement("Y SP-022")
async def test_an_abort_ends_a_blocking_iterator() -> None:
    endless, signal = Endless(), AbortSignal()
    reading = iterate_in_thread(endless, signal)
    async with asyncio.timeout(5):
        async for item in reading:
            if item == 3:
                signal.abort()
    assert await asyncio.to_thread(endless.closed.wait, 5)
