"""Bounded channels that any thread and any event loop can put into and take from."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Self, TypeVar, final

from yiemagent_nb.core.errors import ChannelClosed, ChannelFull

__all__ = ["SHUTDOWN", "Channel", "Shutdown"]


@final
class Shutdown:
    """The type of ``SHUTDOWN``."""

    def __repr__(self) -> str:
        """The marker's name."""
        return "SHUTDOWN"


SHUTDOWN: Final = Shutdown()
"""Put on an agent's input channel, it ends the agent's loop after the work in hand."""


Item = TypeVar("Item")
Accepted = TypeVar("Accepted")

_Wake = Callable[[], bool | None]
"""Wakes one waiter; False where it can no longer be reached."""


def _wake(waiters: deque[_Wake]) -> None:
    while waiters and waiters.popleft()() is False:
        pass


class Channel(Generic[Item, Accepted]):
    """A bounded queue with backpressure. Items leave in the order in which they came.

    Args:
        capacity: How many items fit, at least 1.
        convert: Turns what is put into an item; what it raises, the put raises.
        admit: Called with each item just before it is stored; what it raises, the put raises.
        on_change: Called after each change of the contents, in the thread that made it. It must
            not raise and not wait.
        lossy_until_read: Until someone first takes, a put into a full channel drops the oldest
            item instead of waiting, and ``dropped`` counts it.

    Example::

        channel = Channel(2)
        await channel.put("a")
        assert await channel.take() == "a"
    """

    def __init__(
        self,
        capacity: int,
        *,
        convert: Callable[[Accepted], Item],
        admit: Callable[[Item], None] | None = None,
        on_change: Callable[[], None] | None = None,
        lossy_until_read: bool = False,
    ) -> None:
        if capacity < 1:
            msg = f"a channel's capacity is at least 1, not {capacity}"
            raise ValueError(msg)
        self.capacity: Final = capacity
        self.dropped = 0
        self._convert = convert
        self._admit = admit
        self._on_change = on_change
        self._lossy = lossy_until_read
        self._items: deque[Item] = deque()
        self._lock = threading.Lock()
        self._takers: deque[_Wake] = deque()
        self._putters: deque[_Wake] = deque()
        self._closed = False

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._items)

    def __repr__(self) -> str:
        """How full it is, not what is in it."""
        return f"Channel({len(self._items)}/{self.capacity}{', closed' if self._closed else ''})"

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def items(self) -> tuple[Item, ...]:
        """What waits, oldest first; nothing is taken."""
        with self._lock:
            return tuple(self._items)

    def put_nowait(self, value: Accepted) -> None:
        """Put without waiting, from any thread.

        Raises:
            ChannelFull: There is no room.
            ChannelClosed: The channel was closed.
        """
        if not self._try_put(self._convert(value), None):
            raise self._full()

    async def put(self, value: Accepted) -> None:
        """Put, waiting while the channel is full.

        Raises:
            ChannelClosed: The channel was closed, before or while waiting.
        """
        item = self._convert(value)
        while True:
            waiter = _AsyncWaiter()
            if self._try_put(item, waiter.wake):
                return
            try:
                await waiter.wait()
            except BaseException:
                self._forget(self._putters, waiter.wake)
                raise

    def put_threadsafe(self, value: Accepted, timeout: float | None = None) -> None:
        """Put from any thread, which waits while the channel is full.

        Args:
            value: What to put.
            timeout: Seconds to wait at most; None waits without end.

        Raises:
            ChannelFull: There was no room in that time, or this thread runs an event loop, which
                must not be made to wait.
            ChannelClosed: The channel was closed, before or while waiting.
        """
        item = self._convert(value)
        if asyncio._get_running_loop() is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            if not self._try_put(item, None):
                raise self._full()
            return
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            event = threading.Event()
            wake = event.set
            if self._try_put(item, wake):
                return
            woken = False
            try:
                woken = event.wait(None if end is None else max(0.0, end - time.monotonic()))
            finally:  # after an interrupt too
                if not woken:
                    self._forget(self._putters, wake)
            if not woken:
                raise self._full()

    async def take(self) -> Item:
        """Take the oldest item, waiting while there is none.

        Raises:
            ChannelClosed: The channel is closed and empty.
        """
        while True:
            waiter = _AsyncWaiter()
            taken = self._try_take(waiter.wake)
            if taken:
                return taken[0]
            try:
                await waiter.wait()
            except BaseException:
                self._forget(self._takers, waiter.wake)
                raise

    def take_nowait(self) -> Item | None:
        """Take the oldest item, or None where there is none."""
        taken = self._try_take(None)
        return taken[0] if taken else None

    def remove(self, item: Item) -> bool:
        """Take a particular item, known by its identity, from any thread; returns whether it was there."""
        with self._lock:
            place = next((place for place, each in enumerate(self._items) if each is item), None)
            if place is None:
                return False
            del self._items[place]
            _wake(self._putters)
        self._changed()
        return True

    def put_back(self, item: Item) -> None:
        """Put an item that was taken before all others, from any thread, whether there is room or not."""
        with self._lock:
            self._items.appendleft(item)
            _wake(self._takers)
        self._changed()

    def clear(self) -> tuple[Item, ...]:
        """Take everything at once."""
        with self._lock:
            items = tuple(self._items)
            self._items.clear()
            while self._putters:
                self._putters.popleft()()
        self._changed()
        return items

    def close(self) -> None:
        """Refuse further puts. What waits can still be taken; then readers end."""
        with self._lock:
            self._closed = True
            for waiters in (self._takers, self._putters):
                while waiters:
                    waiters.popleft()()
        self._changed()

    def __aiter__(self) -> Self:
        """Iterate over items as they come, until the channel is closed and empty."""
        return self

    async def __anext__(self) -> Item:
        """The next item."""
        try:
            return await self.take()
        except ChannelClosed:
            raise StopAsyncIteration from None

    def _try_put(self, item: Item, wake: _Wake | None) -> bool:
        with self._lock:
            if self._closed:
                msg = "the channel is closed, so nothing can be put into it."
                raise ChannelClosed(msg, "Build a new agent, or keep this one from shutting down.")
            full = len(self._items) >= self.capacity
            if full and not self._lossy:
                if wake is not None:
                    self._putters.append(wake)
                return False
            if self._admit is not None:
                try:
                    self._admit(item)
                except BaseException:
                    _wake(self._putters)  # the room is still there, for another
                    raise
            if full:
                self._items.popleft()
                self.dropped += 1
            self._items.append(item)
            _wake(self._takers)
        self._changed()
        return True

    def _try_take(self, wake: _Wake | None) -> tuple[Item] | tuple[()]:
        with self._lock:
            self._lossy = False
            if not self._items:
                if self._closed and wake is not None:
                    msg = "the channel is closed and empty."
                    raise ChannelClosed(msg)
                if wake is not None:
                    self._takers.append(wake)
                return ()
            item = self._items.popleft()
            _wake(self._putters)
        self._changed()
        return (item,)

    def _forget(self, waiters: deque[_Wake], wake: _Wake) -> None:
        """Take a waiter back; one that was woken and left hands its turn to the next."""
        with self._lock:
            if wake in waiters:
                waiters.remove(wake)
            else:
                _wake(waiters)

    def _full(self) -> ChannelFull:
        return ChannelFull(
            f"the channel holds {self.capacity} items and is full.",
            "Wait with `await channel.put(...)`, or try again when the agent has taken some.",
        )

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()


class _AsyncWaiter:
    """One waiting coroutine, woken from any thread."""

    __slots__ = ("_future", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    async def wait(self) -> None:
        await self._future

    def wake(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # the loop was closed while its coroutine waited here
            return False
        return True

    def _settle(self) -> None:
        if not self._future.done():
            self._future.set_result(None)
