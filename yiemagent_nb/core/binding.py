"""LoopBinding: which event loop an agent works on."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from yiemagent_nb.core.errors import AgentClosedError
from yiemagent_nb.core.runtime import CHECK_INTERVAL, LoopThread, running_loop

__all__ = ["LoopBinding"]

Value = TypeVar("Value")


class LoopBinding:
    """Keeps an agent on one event loop, and lets any thread and any loop reach it there.

    The loop is the one that runs when the agent is built, or else the first that uses it. When
    that loop has been closed, or runs no more, the next one that uses the agent takes its place.

    Args:
        on_leave: Called before another loop takes the place of one that ended.
        on_enter: Called on the new loop.
    """

    def __init__(self, on_leave: Callable[[], None], on_enter: Callable[[], None]) -> None:
        self._on_leave = on_leave
        self._on_enter = on_enter
        self._loop = running_loop()
        self._thread: LoopThread | None = None

    async def run(self, work: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """Await ``work()`` on the agent's loop, from whichever loop this is.

        Raises:
            AgentClosedError: The agent's loop was closed meanwhile.
        """
        loop = self._bind()
        if loop is asyncio.get_running_loop():
            return await work()
        future = asyncio.run_coroutine_threadsafe(work(), loop)
        waiting = asyncio.wrap_future(future)
        try:
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=CHECK_INTERVAL)
                if loop.is_closed() and not future.done():
                    raise AgentClosedError("The agent's event loop was closed while it worked.", "Prompt it again.")
        finally:
            waiting.cancel()
        if waiting.cancelled():  # by the end of that loop: nobody cancels this task
            raise AgentClosedError("The agent's event loop ended while it worked.", "Build a new agent.")
        return waiting.result()

    def call(self, callback: Callable[[], object]) -> bool:
        """Call ``callback`` soon on the agent's loop, from any thread; returns whether it has one.

        The running loop of this thread becomes the agent's where that has none, or one that ended.
        """
        if running_loop() is not None:
            self._bind()
        if self._loop is None:
            return False
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:  # it was closed
            return False
        return True

    @property
    def is_here(self) -> bool:
        """Whether this thread runs the agent's loop, or no loop has the agent yet."""
        return self._loop is None or self._loop is running_loop()

    @property
    def has_thread(self) -> bool:
        """Whether the agent works on a loop in a thread of its own."""
        return self._thread is not None

    def for_synchronous_code(self) -> asyncio.AbstractEventLoop:
        """A loop that runs in another thread: the agent's own, else one in a new thread."""
        if self._loop is None or not self._loop.is_running():
            self.move_to_thread()
        return cast("asyncio.AbstractEventLoop", self._loop)

    def move_to_thread(self) -> None:
        """Work on a loop in a thread of its own from now on."""
        self._on_leave()
        self._thread = LoopThread("yiemagent_nb agent")
        weakref.finalize(self, self._thread.stop)
        self._loop = self._thread.loop
        self._loop.call_soon_threadsafe(self._on_enter)

    def stop_thread(self) -> None:
        """End the thread, where the agent has one."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def _bind(self) -> asyncio.AbstractEventLoop:
        current = asyncio.get_running_loop()
        loop = self._loop
        if loop is not None and (loop is current or loop.is_running()):
            return loop
        self._on_leave()
        self._loop = current
        current.call_soon(self._on_enter)
        return current
