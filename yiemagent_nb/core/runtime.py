"""An event loop in a thread of its own, and waiting for it from plain synchronous code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Generator
from types import FrameType
from typing import Any, TypeVar

from yiemagent_nb.core.errors import AgentClosedError, InvalidParametersError

__all__ = ["LoopThread", "ask_in_thread", "ask_nested", "can_be_nested", "running_loop"]

Value = TypeVar("Value")

LEAVE_SECONDS = 4.0
"""How long the tasks of a loop that is stopped may clean up, such as by ending servers."""

CHECK_INTERVAL = 0.25
"""Seconds between looks at whether the other loop still lives."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """This thread's running loop, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class LoopThread:
    """An event loop that runs in a daemon thread until ``stop``."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            if tasks := asyncio.all_tasks(self.loop):
                for task in tasks:
                    task.cancel()
                self.loop.run_until_complete(asyncio.wait(tasks, timeout=LEAVE_SECONDS))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def stop(self) -> None:
        """Stop the loop and wait for its thread, unless this is that thread."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5)


def ask_in_thread(
    loop: asyncio.AbstractEventLoop, start: Callable[[], Coroutine[Any, Any, Value]], abort: Callable[[], None]
) -> Value:
    """Run a coroutine on a loop of another thread and wait for it here; Ctrl-C aborts it first.

    Raises:
        AgentClosedError: The other loop was closed meanwhile.
        KeyboardInterrupt: Ctrl-C was pressed; the coroutine has ended.
    """
    with _interrupts(abort) as interrupted:
        value = _wait(asyncio.run_coroutine_threadsafe(start(), loop), loop)
    if interrupted():
        raise KeyboardInterrupt
    return value


def _wait(future: concurrent.futures.Future[Value], loop: asyncio.AbstractEventLoop) -> Value:
    while True:
        with contextlib.suppress(concurrent.futures.TimeoutError):
            if future.done():
                return future.result()
            return future.result(CHECK_INTERVAL)
        if loop.is_closed():
            raise AgentClosedError("The agent's event loop was closed while it worked.", "Prompt it again.")


def can_be_nested(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a run can be nested in the loop: uvloop's cannot."""
    return isinstance(loop, asyncio.BaseEventLoop)


def ask_nested(
    loop: asyncio.AbstractEventLoop, start: Callable[[], Coroutine[Any, Any, Value]], abort: Callable[[], None]
) -> Value:
    """Run a coroutine inside the running loop of this thread; Ctrl-C aborts it first.

    Raises:
        InvalidParametersError: The loop cannot be nested (uvloop).
        KeyboardInterrupt: Ctrl-C was pressed; the coroutine has ended.
    """
    import nest_asyncio2  # noqa: PLC0415 - patches asyncio, so only when it is needed

    try:
        nest_asyncio2.apply(loop)  # pyright: ignore[reportUnknownMemberType] - it has no types
    except ValueError as error:
        raise InvalidParametersError(
            f"ask() cannot run inside a {type(loop).__module__} event loop.",
            'Use `await agent.prompt(...)`, or build the agent with runtime="thread".',
        ) from error
    with _interrupts(lambda: loop.call_soon_threadsafe(abort)) as interrupted:  # a signal alone does not wake the loop
        value = loop.run_until_complete(start())
    if interrupted():
        raise KeyboardInterrupt
    return value


@contextlib.contextmanager
def _interrupts(abort: Callable[[], object]) -> Generator[Callable[[], bool]]:
    """Turn the first Ctrl-C into ``abort``; a second one raises at once."""
    pressed = 0
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            raise KeyboardInterrupt
        abort()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield lambda: pressed > 0
    finally:
        signal.signal(signal.SIGINT, before)
