"""Waiting for one another across threads and event loops.

Each thread of an agent has an event loop of its own, while asyncio's locks and futures belong to
one. What is here may be used on any number of loops at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

__all__ = ["SharedWork", "Turns"]

Value = TypeVar("Value")


def _uncancellable() -> Future[Any]:
    """A future that no one who waits for it cancels by giving up."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


class Turns:
    """Lets only one at a time do something, in the order in which they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = _uncancellable()
        self._last.set_result(None)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for those who came before; who comes later waits for the end of this."""
        mine = _uncancellable()
        with self._lock:
            before, self._last = self._last, mine
        try:
            await asyncio.wrap_future(before)
            yield
        finally:
            # Whoever gives up before its turn has come leaves the next one waiting for the same.
            before.add_done_callback(lambda _: mine.set_result(None))


class _AbandonedError(Exception):
    """The loop that did the work ended before it was done."""


@dataclass(eq=False, slots=True)
class _Job:
    loop: asyncio.AbstractEventLoop
    outcome: Future[Any] = field(default_factory=_uncancellable)
    task: asyncio.Task[Any] | None = None
    waiting: int = 0


class SharedWork(Generic[Value]):
    """Work that is done once for all who want it at the same time.

    It goes on as long as anybody waits for it, and is cancelled when the last one gives up. What
    comes of it is not kept.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[Hashable, _Job] = {}

    async def get(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """What comes of the work, which begins here where it is not being done already.

        Args:
            key: What is wanted.
            work: Does it, on the event loop of the one who wanted it first. Where that loop ends
                before, another one who waits begins anew.

        Raises:
            Exception: What the work raised, for all who wait for it.
        """
        while True:
            job = self._join(key, work)
            try:
                return await asyncio.wrap_future(job.outcome)
            except _AbandonedError:
                continue
            finally:
                self._leave(key, job)

    def _join(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, Value]]) -> _Job:
        loop = asyncio.get_running_loop()
        with self._lock:
            job = self._jobs.get(key)
            begins = job is None or job.loop.is_closed()
            if job is None or begins:
                job = self._jobs[key] = _Job(loop)
            job.waiting += 1
        if begins:
            begun = job
            job.task = loop.create_task(work())
            job.task.add_done_callback(lambda task: self._end(key, begun, task))
        return job

    def _leave(self, key: Hashable, job: _Job) -> None:
        with self._lock:
            job.waiting -= 1
            is_wanted = job.waiting > 0 or job.outcome.done()
            if not is_wanted:
                self._forget(key, job)
        if not is_wanted and job.task is not None:
            with contextlib.suppress(RuntimeError):  # its loop has ended, and the work with it
                job.loop.call_soon_threadsafe(job.task.cancel)

    def _end(self, key: Hashable, job: _Job, task: asyncio.Task[Any]) -> None:
        with self._lock:
            self._forget(key, job)
        error = _AbandonedError() if task.cancelled() else task.exception()
        if error is None:
            job.outcome.set_result(task.result())
        else:
            job.outcome.set_exception(error if isinstance(error, Exception) else _AbandonedError())

    def _forget(self, key: Hashable, job: _Job) -> None:
        if self._jobs.get(key) is job:
            del self._jobs[key]
