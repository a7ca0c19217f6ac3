"""Running what others wrote: in a thread, or in a task that an abort or a timeout ends."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

from yiemagent_nb.core.signal import AbortSignal

__all__ = [
    "ABORT_GRACE",
    "Interrupted",
    "Outcome",
    "iterate_in_thread",
    "run_abortable",
    "run_cancellable",
    "run_in_thread",
    "start_task",
]

ABORT_GRACE = 1.0
"""Seconds that something cancelled has to clean up before it is left behind."""

Value = TypeVar("Value")

_left_behind: set[asyncio.Task[Any]] = set()
_log = logging.getLogger("yiemagent_nb")


if sys.version_info >= (3, 12):

    def start_task(work: Coroutine[Any, Any, Value]) -> asyncio.Task[Value]:
        """Start a task at once: work that waits for nothing is done when this returns."""
        return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)

else:

    def start_task(work: Coroutine[Any, Any, Value]) -> asyncio.Task[Value]:
        """Start a task. From Python 3.12 on it begins at once."""
        return asyncio.get_running_loop().create_task(work)


class Interrupted(Exception):  # noqa: N818 - never leaves this package
    """What ran was cancelled by an abort or a timeout before it gave a value."""


class Outcome(Exception):  # noqa: N818
    """Carries a ``BaseException`` that must not reach the event loop, such as ``SystemExit``."""


def run_in_thread(function: Callable[..., Value], *arguments: Any) -> asyncio.Future[Value]:
    """Run a function in a thread of its own, with the caller's context variables.

    The thread is a daemon: one that hangs blocks neither a pool nor the interpreter's exit.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Value] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        elif isinstance(error, StopIteration) or not isinstance(error, Exception):
            future.set_exception(Outcome(error))  # neither may be set on a future
        else:
            future.set_exception(error)

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(function, *arguments)
        except BaseException as caught:
            error = caught
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:
            _log.warning("%r ended after its event loop was closed; its result is lost", function)

    name = getattr(function, "__name__", type(function).__name__)
    threading.Thread(target=work, name=f"yiemagent_nb {name}", daemon=True).start()
    return future


async def iterate_in_thread(iterator: Iterator[Value], signal: AbortSignal) -> AsyncGenerator[Value, None]:
    """Iterate over a blocking iterator in a thread; at most 64 items run ahead of the reader."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[Value] | None] = asyncio.Queue()
    room = threading.Semaphore(64)
    left = threading.Event()

    def pump() -> None:
        try:
            for item in iterator:
                room.acquire()
                if signal.aborted or left.is_set():
                    break
                loop.call_soon_threadsafe(queue.put_nowait, (item,))
        finally:
            if callable(close := getattr(iterator, "close", None)):
                close()
            loop.call_soon_threadsafe(queue.put_nowait, None)

    pumping = run_in_thread(pump)
    forget = signal.on_abort(room.release)
    try:
        while (entry := await queue.get()) is not None:
            room.release()
            yield entry[0]
        await pumping
    finally:
        forget()
        left.set()
        room.release()
        if not pumping.done():
            pumping.cancel()
        elif not pumping.cancelled():
            pumping.exception()  # what it raised after its reader left is of no interest


async def run_abortable(work: Coroutine[Any, Any, Value], signal: AbortSignal, seconds: float | None = None) -> Value:
    """Await ``work`` in a task of its own that ``signal`` or ``seconds`` cancel.

    Something that swallows its cancellation is left behind after ``ABORT_GRACE`` seconds. What
    finishes in spite of the cancellation counts.

    Args:
        work: The coroutine.
        signal: Cancels it when set; set before, ``work`` does not start.
        seconds: How long it may take; None waits without end.

    Raises:
        Interrupted: It was cancelled by the signal.
        TimeoutError: It was cancelled because its time was over.
        Outcome: It raised a ``BaseException`` that is no ``Exception``.
    """
    if signal.aborted:
        work.close()
        raise Interrupted
    watch = _Watch(signal)
    task = watch.start(work)
    if task.done() and not task.cancelled():
        return task.result()
    try:
        await watch.until_over(seconds)
    except asyncio.CancelledError:
        _leave_behind(task)
        raise
    return watch.value()


async def run_cancellable(work: Coroutine[Any, Any, Value], signal: AbortSignal) -> Value:
    """Await ``work`` in this very task; ``signal`` cancels it. For work that heeds its cancellation.

    Raises:
        Interrupted: It was cancelled by the signal.
        Outcome: It raised a ``BaseException`` that is no ``Exception``.
    """
    if signal.aborted:
        work.close()
        raise Interrupted
    scope = _CancelScope(signal)
    try:
        return await work
    except asyncio.CancelledError:
        if scope.leave():
            raise Interrupted from None
        if scope.cancelled:
            raise
        raise Outcome(asyncio.CancelledError("it cancelled itself")) from None
    except (Exception, GeneratorExit):
        raise
    except BaseException as error:
        raise Outcome(error) from error
    finally:
        scope.leave()


class _CancelScope:
    """Cancels the task that made it when the signal is set, until it is left."""

    def __init__(self, signal: AbortSignal) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._before = self._task.cancelling()
        self._fired = False
        self._left = False
        self._forget = signal.on_abort(self._on_abort)

    def leave(self) -> bool:
        """Take the cancellation back; returns whether it was this scope's alone."""
        if self._left:
            return False
        self._left = True
        self._forget()
        return self._fired and self._task.uncancel() <= self._before

    @property
    def cancelled(self) -> bool:
        """Whether someone else asked the task to cancel."""
        return self._task.cancelling() > self._before

    def _on_abort(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if not self._left and not self._fired:
            self._fired = True
            self._task.cancel()


class _Watch:
    """A task, and what may end it early."""

    task: asyncio.Task[Any]
    _work: Coroutine[Any, Any, Any]

    def __init__(self, signal: AbortSignal) -> None:
        self._signal = signal
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._late = False

    def start(self, work: Coroutine[Any, Any, Value]) -> asyncio.Task[Value]:
        """Start the task."""
        self._work = work
        self.task = task = start_task(self._contain(work))
        return task

    async def until_over(self, seconds: float | None) -> None:
        """Wait until the task has ended, or had its time to clean up."""
        self._over = self._loop.create_future()
        self.task.add_done_callback(self._settle)
        deadline = None if seconds is None else self._loop.call_later(seconds, self._expire)
        forget = self._signal.on_abort(self._on_abort)
        try:
            await self._over
        finally:
            forget()
            for timer in (deadline, self._grace):
                if timer is not None:
                    timer.cancel()

    def value(self) -> Any:
        """What the task gave; raises where it gave nothing."""
        if not self.task.done():
            _leave_behind(self.task)
        elif not self.task.cancelled():
            return self.task.result()
        elif not self._late and not self._signal.aborted:
            raise Outcome(asyncio.CancelledError("it cancelled itself"))
        raise TimeoutError if self._late else Interrupted

    async def _contain(self, work: Awaitable[Value]) -> Value:
        """Keep what would stop the event loop (``SystemExit``, ``KeyboardInterrupt``) inside the task."""
        try:
            return await work
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as error:
            raise Outcome(error) from error
        finally:
            self._end()  # wakes who waits in this very step, where a done callback would take another

    def _settle(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._work.close()  # it may have been cancelled before its first step
        self._end()

    def _end(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def _cancel(self) -> None:
        if not self.task.done():
            self.task.cancel()
            self._grace = self._loop.call_later(ABORT_GRACE, self._end)

    def _expire(self) -> None:
        self._late = True
        self._cancel()

    def _on_abort(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)


def _leave_behind(task: asyncio.Task[Any]) -> None:
    """Cancel a task and keep it alive until it ends, so that its end is seen."""

    def ended(task: asyncio.Task[Any]) -> None:
        _left_behind.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a cancelled task ended with %r", error)

    if not task.done():
        task.cancel()
    _left_behind.add(task)
    task.add_done_callback(ended)
