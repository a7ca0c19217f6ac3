"""Calling code that a person has just written: with a time limit, and knowing at which line it failed.

A function that is not async runs in a worker thread, an async one on the event loop, in a task of its
own, step by step under a ``Watchdog``. So a loop without an end ends in both, and so does an ``await``
of something that never comes. Tasks that such code starts by itself are not watched.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
import threading
import traceback
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from typing import Any

from yiemagent_nb.core.concurrency import run_in_thread, start_task
from yiemagent_nb.core.execution import is_async_callable
from yiemagent_nb.hooks.static import is_a, type_name
from yiemagent_nb.hooks.texts import error_text, plain_error_text
from yiemagent_nb.hooks.watchdog import SLOW, Ended, Overtime, Watchdog

__all__ = ["BLOCKED", "BLOCKS_HINT", "LONGEST_MESSAGE", "LimitedCall", "TookTooLongError", "line_of"]

LONGEST_MESSAGE = 1000
BLOCKED = f"It held up everything else for more than {SLOW:g} s."
BLOCKS_HINT = (
    "An async hook shares the event loop: use `await asyncio.sleep` and an async client such as httpx2, or leave "
    "out `async`."
)

CLEAN_UP = 1.0
"""Seconds that code has to clean up when it is cancelled."""

left_behind: list[Any] = []
"""What did not end when it was closed: Python complains where it is forgotten."""


class TookTooLongError(TimeoutError):
    """Code did not end in its time.

    Args:
        seconds: The limit.
        line: Where it was then, in its own file; None where that is not known.
    """

    def __init__(self, seconds: float, line: int | None) -> None:
        super().__init__(f"it did not return within {seconds:g} s")
        self.seconds = seconds
        self.line = line


def line_of(error: BaseException, filename: str) -> int | None:
    """The innermost line of a file at which an error happened; None where it did not happen there."""
    if type(error) is TookTooLongError:
        return error.line
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == filename]
    return lines[-1] if lines else None


class LimitedCall:
    """One call of a function that may take some seconds. Made on the event loop.

    Args:
        seconds: The limit.
        filename: The name of the code whose lines are told.
    """

    def __init__(self, seconds: float, filename: str) -> None:
        self._seconds = seconds
        self._filename = filename
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._task: asyncio.Task[Any] | None = None
        self._leaving = False
        self._watchdog = Watchdog(seconds, self._tell_over, self._look)
        self._loop_thread = threading.get_ident()
        self._told: tuple[BaseException, str] | None = None
        self._blocked: tuple[int | None] | None = None

    @property
    def blocked(self) -> tuple[int | None] | None:
        """The line at which async code held up the event loop, if that is known; None where it did not."""
        return self._blocked

    def describe(self, error: BaseException) -> str:
        """An error that was raised here, in words that were made within the limit."""
        if self._told is not None and self._told[0] is error:
            return self._told[1]
        return plain_error_text(error, LONGEST_MESSAGE)

    def pause(self) -> contextlib.AbstractContextManager[None]:
        """Count no time meanwhile."""
        return self._watchdog.pause()

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns, awaited where it can be.

        Raises:
            TookTooLongError: Its time was over.
            BaseException: Whatever it raises.
            asyncio.CancelledError: The caller was cancelled.
        """
        try:
            if is_async_callable(function):
                value, more = self._called(self._call(_and_whether_awaitable, function, *arguments))
            else:
                value, more = await self._in_thread(_and_whether_awaitable, function, *arguments)
            if more:
                value = await self._in_task(value)
        finally:
            self._watchdog.end()
        return value

    async def iterate(self, pieces: Any) -> AsyncGenerator[Any, None]:
        """The pieces of an iterator, async or not, each of which may take the whole time.

        Raises:
            TookTooLongError: The time of a piece was over.
            BaseException: Whatever the iterator raises.
        """
        queue: asyncio.Queue[Ended | None] = asyncio.Queue(1)
        task = self._task = start_task(self._pump(pieces, queue))

        def ended(task: asyncio.Task[None]) -> None:
            if task.cancelled() and queue.empty():  # before its first step
                queue.put_nowait(Ended(error=TookTooLongError(self._seconds, None)))

        task.add_done_callback(ended)
        try:
            while (entry := await queue.get()) is not None:
                yield self._value(entry)
                queue.task_done()
        finally:
            if not task.done():
                await self._leave(task)
            self._watchdog.end()

    async def _pump(self, pieces: Any, queue: asyncio.Queue[Ended | None]) -> None:
        """Iterate in this one task, since an async generator may hold on to it."""
        last: Ended | None = None
        iterator: Any = None
        try:
            iterator, is_async = self._value(self._call(_iterator_of, pieces))
            while True:
                self._watchdog.restart()
                if is_async:
                    piece = await self._steps(self._value(self._call(_anext, iterator)), iterator)
                else:
                    piece = await self._in_thread(_next, iterator)
                with self.pause():
                    await queue.put(Ended(piece))
                    await queue.join()  # the next one is only made when it is asked for
        except (StopAsyncIteration, _NoMoreError):
            pass
        except asyncio.CancelledError as error:
            if self._leaving:
                raise
            last = Ended(error=_cancelled_itself(error))
        except BaseException as error:
            last = Ended(error=error)
        finally:
            if callable(close := getattr(iterator, "aclose", None)):
                self._watchdog.restart(CLEAN_UP)
                with contextlib.suppress(Exception):  # how it ended before is what counts
                    await self._steps(close(), iterator)
        with self.pause():
            if last is not None:
                await queue.put(last)
            await queue.put(None)

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        ending = run_in_thread(self._call, function, *arguments)
        await asyncio.wait({ending, self._over}, return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            return self._called(ending.result())
        raise self._too_long(self._frames_now())

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Ended:
        """Call something under the watchdog; what it raises is put in words there too."""
        return self._watchdog.call(self._telling, function, *arguments)

    def _telling(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (Overtime, _NoMoreError):
            raise
        except BaseException as error:
            if type(error) is not StopIteration:  # how a coroutine returns
                self._told = error, error_text(error, LONGEST_MESSAGE)
            raise

    def _look(self) -> None:
        """A step is slow: where it is on the event loop, everything else waits for it."""
        if self._watchdog.thread == self._loop_thread and self._blocked is None:
            self._blocked = (self._line_among(self._frames_now()),)

    def _frames_now(self) -> list[tuple[Any, int]]:
        frame = sys._current_frames().get(self._watchdog.thread)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - no other way
        return [] if frame is None else list(traceback.walk_stack(frame))

    async def _in_task(self, awaitable: Awaitable[Any]) -> Any:
        task = self._task = start_task(self._contain(awaitable))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            await self._leave(task)
            raise
        finally:
            if task.cancelled() and callable(close := getattr(awaitable, "close", None)):
                close()  # it may have been cancelled before its first step
        if task.cancelled():
            raise TookTooLongError(self._seconds, None)
        return self._value(task.result())

    async def _contain(self, awaitable: Awaitable[Any]) -> Ended:
        """Nothing that it raises may reach the event loop, which ``SystemExit`` would stop."""
        try:
            return Ended(await self._steps(awaitable, awaitable))
        except asyncio.CancelledError as error:
            if self._leaving:
                raise
            return Ended(error=_cancelled_itself(error))
        except BaseException as error:
            return Ended(error=error)

    @types.coroutine
    def _steps(self, awaitable: Any, whole: object) -> Generator[Any, Any, Any]:
        """Await something, each step from one wait to the next under the watchdog."""
        watchdog = self._watchdog
        steps: Any = self._value(self._call(_awaiting, awaitable))
        throw = getattr(steps, "throw", _raise)
        step: Callable[[], Any] = partial(next, steps)
        while True:
            ended = self._call(step)
            if type(ended.error) is StopIteration:
                return ended.error.value
            waited_for = self._value(ended)
            try:
                sent = yield waited_for
            except BaseException as thrown:
                if watchdog.over or isinstance(thrown, GeneratorExit):
                    error = self._too_long(_waiting_at(whole)) if watchdog.over else thrown
                    watchdog.restart(CLEAN_UP)
                    ended = self._call(throw, GeneratorExit())  # close() does not reach into an async generator
                    if ended.error is None:
                        left_behind.append(steps)
                    raise error from None
                step = partial(throw, thrown)
            else:
                step = partial(next, steps) if sent is None else partial(steps.send, sent)

    async def _leave(self, task: asyncio.Task[Any]) -> None:
        """Cancel what goes on; it may clean up for a while."""
        self._leaving = True
        self._watchdog.restart(CLEAN_UP)
        task.cancel()
        await asyncio.wait({task}, timeout=2 * CLEAN_UP)

    def _called(self, ended: Ended) -> Any:
        """What a call gave, which nobody can have cancelled."""
        if ended.error is not None and is_a(ended.error, asyncio.CancelledError):
            raise _cancelled_itself(ended.error)
        return self._value(ended)

    def _value(self, ended: Ended) -> Any:
        if ended.error is not None and is_a(ended.error, Overtime):
            raise self._too_long(list(traceback.walk_tb(ended.error.__traceback__))[::-1])
        if ended.error is not None:
            raise self._own(ended.error)
        return ended.value

    def _own(self, error: BaseException) -> BaseException:
        """An error of the code; one that means something to who awaits this, though nobody sent it, as another."""
        on_main_thread = self._watchdog.thread == threading.main_thread().ident
        if is_a(error, GeneratorExit) or (is_a(error, KeyboardInterrupt) and not on_main_thread):
            return RuntimeError(f"it raised {type_name(error)}").with_traceback(error.__traceback__)
        return error

    def _too_long(self, frames: list[tuple[Any, int]]) -> TookTooLongError:
        """The error of what was at these lines, the innermost first."""
        return TookTooLongError(self._seconds, self._line_among(frames))

    def _line_among(self, frames: list[tuple[Any, int]]) -> int | None:
        return next((line for frame, line in frames if frame.f_code.co_filename == self._filename), None)

    def _tell_over(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
        if self._task is not None:
            self._task.cancel()


def _waiting_at(awaitable: object) -> list[tuple[Any, int]]:
    """The frames of coroutines that wait for one another, the innermost first."""
    frames: list[tuple[Any, int]] = []
    while awaitable is not None:
        frame = getattr(awaitable, "cr_frame", None) or getattr(awaitable, "ag_frame", None)
        if frame is not None:
            frames.append((frame, frame.f_lineno))
        awaitable = getattr(awaitable, "cr_await", None) or getattr(awaitable, "ag_await", None)
    return frames[::-1]


class _NoMoreError(Exception):
    """An iterator has no more."""


def _and_whether_awaitable(function: Callable[..., Any], *arguments: Any) -> tuple[Any, bool]:
    value = function(*arguments)
    return value, inspect.isawaitable(value)


def _awaiting(awaitable: Any) -> Any:
    return awaitable.__await__()


def _anext(iterator: Any) -> Any:
    return iterator.__anext__()


def _iterator_of(pieces: Any) -> tuple[Any, bool]:
    is_async = hasattr(pieces, "__aiter__")
    return (pieces.__aiter__() if is_async else iter(pieces)), is_async


def _next(iterator: Any) -> Any:
    try:
        return next(iterator)
    except StopIteration:
        raise _NoMoreError from None


def _raise(error: BaseException) -> None:
    raise error


def _cancelled_itself(error: BaseException) -> RuntimeError:
    """No one else cancelled it."""
    own = RuntimeError("it raised CancelledError, though nobody cancelled it")
    return own.with_traceback(error.__traceback__)
