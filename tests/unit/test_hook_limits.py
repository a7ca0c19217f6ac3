"""Code that a person wrote ends, whatever it does, and nothing else is ever hit."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

import pytest

from yiemagent_nb.hooks import limited
from yiemagent_nb.hooks.limited import LimitedCall, TookTooLongError, line_of
from yiemagent_nb.hooks.watchdog import Ended, Overtime, Watchdog

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

LIMIT = 0.05


def spin() -> None:
    while True:
        pass


async def spin_async() -> None:
    while True:
        pass


async def wait_for_nothing() -> None:
    await asyncio.Event().wait()


async def catch_all() -> None:
    while True:
        try:
            while True:
                pass
        except BaseException:  # noqa: S110 - that is the point
            pass


catching = threading.Event()


async def catch_cancellations() -> None:
    while catching.is_set():
        with contextlib.suppress(BaseException):
            await asyncio.sleep(60)


def _made_by(function: Callable[[], Any]) -> Any:
    """What a function that is not async gives: something to await."""
    return function()


def line_in(function: Callable[..., Any]) -> range:
    first = function.__code__.co_firstlineno
    return range(first, first + 7)


@pytest.mark.parametrize("function", [spin, spin_async, wait_for_nothing, catch_all, catch_cancellations])
async def test_code_that_never_returns_is_ended_and_its_line_is_known(function: Callable[..., Any]) -> None:
    catching.set()
    with pytest.raises(TookTooLongError, match=r"within 0\.05 s") as caught:
        await LimitedCall(LIMIT, __file__).run(function)
    assert caught.value.line in line_in(function)
    catching.clear()
    while limited.left_behind:  # it ignored that it was closed
        limited.left_behind.pop().close()


async def test_code_that_waits_inside_c_in_a_thread_is_left_behind() -> None:
    may_end = threading.Event()

    def wait() -> None:
        may_end.wait()

    with pytest.raises(TookTooLongError) as caught:
        await LimitedCall(LIMIT, __file__).run(wait)
    assert caught.value.line in line_in(wait)
    may_end.set()


async def test_values_and_errors_come_through() -> None:
    async def later() -> int:
        await asyncio.sleep(0)
        return 5

    def fail() -> None:
        raise LookupError("no")

    assert await LimitedCall(10, "").run(lambda: 4) == 4
    assert await LimitedCall(10, "").run(later) == 5
    assert await LimitedCall(10, "").run(partial(_made_by, later)) == 5
    with pytest.raises(LookupError) as caught:
        await LimitedCall(10, "").run(fail)
    assert line_of(caught.value, __file__) == fail.__code__.co_firstlineno + 1
    assert line_of(caught.value, "another file") is None


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])
async def test_what_would_stop_an_event_loop_only_fails_the_call(error: BaseException) -> None:
    async def fail() -> None:
        raise error

    def fail_in_thread() -> None:
        raise error

    for function in (fail, fail_in_thread):
        with pytest.raises((SystemExit, RuntimeError, KeyboardInterrupt)):
            await LimitedCall(10, "").run(function)
    await asyncio.sleep(0)


async def test_time_in_a_pause_does_not_count_but_a_step_that_blocks_does() -> None:
    call = LimitedCall(LIMIT, __file__)

    async def ask() -> str:
        with call.pause():
            await asyncio.sleep(4 * LIMIT)
        return "answered"

    assert await call.run(ask) == "answered"
    blocking = LimitedCall(LIMIT, __file__)

    async def block() -> None:
        with blocking.pause():
            spin()

    with pytest.raises(TookTooLongError):
        await blocking.run(block)


async def test_a_cancelled_call_may_clean_up_and_its_thread_is_ended() -> None:
    cleaned: list[str] = []
    all_cleaned = threading.Event()
    began = threading.Event()

    async def wait() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("async")

    def wait_in_thread() -> None:
        try:
            began.set()
            spin()
        finally:
            cleaned.append("thread")
            all_cleaned.set()

    for function in (wait, wait_in_thread):
        began.clear()
        task = asyncio.ensure_future(LimitedCall(30, "").run(function))
        await asyncio.to_thread(began.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await asyncio.to_thread(all_cleaned.wait, 10)
    assert cleaned == ["async", "thread"]


async def test_each_piece_of_an_iterator_has_the_whole_time() -> None:
    async def pieces() -> AsyncIterator[int]:
        for number in range(4):
            await asyncio.sleep(3 * LIMIT)
            yield number

    def blocking() -> Iterator[int]:
        yield 1
        while True:
            pass

    async def waiting() -> AsyncIterator[int]:
        yield 1
        await asyncio.Event().wait()

    assert [piece async for piece in LimitedCall(10 * LIMIT, "").iterate(pieces())] == [0, 1, 2, 3]
    for endless in (blocking, waiting):
        given = LimitedCall(LIMIT, __file__).iterate(endless())
        assert await anext(given) == 1
        with pytest.raises(TookTooLongError) as caught:
            await anext(given)
        assert caught.value.line in line_in(endless)


async def test_an_iterator_that_is_left_is_closed_in_its_own_task() -> None:
    tasks: list[object] = []

    async def pieces() -> AsyncIterator[int]:
        try:
            while True:
                tasks.append(asyncio.current_task())
                yield 1
        finally:
            tasks.append(asyncio.current_task())

    iterating = LimitedCall(10, "").iterate(pieces())
    assert await anext(iterating) == 1
    await iterating.aclose()
    assert len(tasks) >= 2
    assert len(set(map(id, tasks))) == 1


def test_the_exception_hits_the_watched_call_and_nothing_around_it() -> None:
    """The call ends just when its time is over, again and again, while threads are switched as often as can be."""
    hits = misses = strays = 0
    stop = threading.Event()
    other = threading.Thread(target=lambda: [time.sleep(0.0001) for _ in iter(stop.is_set, True)])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    other.start()
    try:
        until = time.monotonic() + 3
        number = 0
        while time.monotonic() < until:
            number += 1
            limit = 0.0005 + number % 50 * 0.00002
            watchdog = Watchdog(limit, int)
            try:
                ended = watchdog.call(_work_for, limit * (0.7 + number % 7 * 0.1))
                # Code of others, in the same thread, right behind the call:
                for _ in range(30):
                    str(number)
            except Overtime:
                strays += 1
                continue
            finally:
                watchdog.end()
            assert isinstance(ended, Ended)
            if isinstance(ended.error, Overtime):
                hits += 1
            else:
                assert ended.value == "done"
                misses += 1
        for _ in range(10_000):
            str(number)
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        other.join()
    assert strays == 0
    assert min(hits, misses) > 10, (hits, misses)


@pytest.mark.parametrize("times", range(3))
def test_code_that_catches_everything_is_ended_by_its_next_line(times: int) -> None:
    def catch() -> None:
        for _ in range(times):
            ""
        while True:
            try:
                while True:
                    pass
            except BaseException:  # noqa: S110
                pass

    before = sys.gettrace()
    watchdog = Watchdog(0.01, int)
    assert isinstance(watchdog.call(catch).error, Overtime)
    watchdog.end()
    assert sys.gettrace() is before


def _work_for(seconds: float) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    return "done"


TRACED = """
import sys, threading, time
from yiemagent_nb.hooks.watchdog import Watchdog

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

for number in range(300):
    watchdog = Watchdog(0.001, lambda: None)
    watchdog.call(spin, 0.0008 + number % 5 * 0.0001)
    watchdog.end()

stuck = threading.Event()
waiting = Watchdog(0.01, stuck.set)
threading.Thread(target=waiting.call, args=(time.sleep, 30), daemon=True).start()
stuck.wait()

def add(a, b):
    return a + b

sys.settrace(lambda *_: None)
print(sum(add(number, 1) for number in range(10_000)))
"""


def test_a_tracer_goes_on_after_code_was_interrupted_and_beside_code_that_cannot_be() -> None:
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == str(sum(range(1, 10_001))), done.stderr
