"""Clock: the time that a request has."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

__all__ = ["Clock"]


class Clock:
    """Ends what stands inside of it when a server gives no sign of life for so long.

    It stands still while a person is asked on the server's behalf, and begins anew with each sign of
    progress. Entered and left like ``asyncio.timeout``; the loop's own time is what counts.

    Args:
        seconds: How long the server may be silent; None is without end.

    Raises:
        TimeoutError: The time was over; ``expired`` is true then.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._limit = asyncio.timeout(seconds)
        self._pauses = 0
        self._running = False

    @property
    def expired(self) -> bool:
        """Whether the time was over."""
        return self._limit.expired()

    def restart(self) -> None:
        """Begin anew."""
        if self._running and self._seconds is not None and not self._pauses and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time() + self._seconds)

    def pause(self) -> None:
        """Stand still, until ``resume`` was called as often."""
        self._pauses += 1
        if self._running and not self._limit.expired():
            self._limit.reschedule(None)

    def resume(self) -> None:
        """Go on, with the whole time."""
        self._pauses -= 1
        self.restart()

    async def __aenter__(self) -> Self:
        """Begin."""
        await self._limit.__aenter__()
        self._running = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End."""
        self._running = False
        return await self._limit.__aexit__(kind, error, trace)
