"""Limits of an agent, and what counts against them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields

from yiemagent_nb.core.errors import InvalidParametersError, RateLimitedError

__all__ = ["Limits", "MessageMeter", "Throttle"]

MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What an agent may do; None lifts a limit.

    Args:
        messages_per_session: Messages that people send (prompt, steer, follow-up) until ``reset``.
        messages_per_minute: The same within any 60 seconds.
        concurrent_tool_calls: Calls of one batch that run at a time.
        storage_reads_per_second: Reads of a session store; further ones wait.
        storage_writes_per_second: Flushes of a session store; further ones wait.
        max_turns: LLM calls of one run; then it ends with a visible reason.
        max_cost: US dollars that an agent may spend; then its run ends with a visible reason.
    """

    messages_per_session: int | None = 1000
    messages_per_minute: int | None = 100
    concurrent_tool_calls: int | None = 10
    storage_reads_per_second: int | None = 1000
    storage_writes_per_second: int | None = 100
    max_turns: int | None = 50
    max_cost: float | None = None

    def __post_init__(self) -> None:
        """Refuse a limit that nothing could pass.

        Raises:
            InvalidParametersError: A limit is zero, negative or no number; the error names it.
        """
        for each in fields(self):
            value = getattr(self, each.name)
            kind = int | float if each.name == "max_cost" else int
            if value is not None and (not isinstance(value, kind) or isinstance(value, bool) or not value > 0):
                expected = "a number" if each.name == "max_cost" else "a whole number"
                raise InvalidParametersError(
                    f"Limits.{each.name} must be {expected} greater than 0, not {value!r}.",
                    "Use None to lift the limit.",
                )


class MessageMeter:
    """Counts what people send. ``admit`` may be called from any thread.

    Args:
        limits: Read at each call, so that they can be changed.
        clock: Monotonic seconds.
    """

    def __init__(self, limits: Callable[[], Limits], clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._recent: deque[float] = deque()
        self.count = 0

    def admit(self, messages: int = 1) -> None:
        """Count ``messages``, all or none.

        Raises:
            RateLimitedError: A limit is reached; nothing was counted.
        """
        limits = self._limits()
        with self._lock:
            moment = self._clock()
            while self._recent and self._recent[0] <= moment - MINUTE:
                self._recent.popleft()
            if limits.messages_per_session is not None and self.count + messages > limits.messages_per_session:
                raise RateLimitedError(
                    f"This session has reached its {limits.messages_per_session} messages; nothing was sent.",
                    "It does not pass with time: call reset(), or raise Limits.messages_per_session.",
                )
            allowed = limits.messages_per_minute
            if allowed is not None and messages > allowed:
                raise RateLimitedError(
                    f"{messages} messages at once, and {allowed} are allowed within a minute; nothing was sent.",
                    "Send fewer at once, or raise Limits.messages_per_minute.",
                )
            if allowed is not None and len(self._recent) + messages > allowed:
                wait = self._recent[len(self._recent) + messages - allowed - 1] + MINUTE - moment
                raise RateLimitedError(
                    f"More than {allowed} messages within a minute; nothing was sent.",
                    f"Try again in {wait:.0f} s, or raise Limits.messages_per_minute.",
                    retry_after=wait,
                )
            self._recent.extend([moment] * messages)
            self.count += messages

    def release(self, messages: int = 1) -> None:
        """Count ``messages`` less: they were taken back before the agent read them."""
        with self._lock:
            self.count -= messages
            for _ in range(min(messages, len(self._recent))):
                self._recent.pop()

    def reset(self, count: int = 0) -> None:
        """Start a new session that already holds ``count`` messages; the minute goes on."""
        with self._lock:
            self.count = count


class Throttle:
    """Lets through at most ``rate`` operations in any second; further ones wait their turn.

    Args:
        rate: Operations a second; None lets all through.
        clock: Monotonic seconds.
        sleep: Waits some seconds.
    """

    def __init__(
        self,
        rate: int | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.rate = rate
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._recent: deque[float] = deque()

    def _reserve(self) -> float:
        """Take the next turn; returns the seconds until it comes."""
        if self.rate is None:
            return 0.0
        with self._lock:
            moment = self._clock()
            turn = moment
            if len(self._recent) >= self.rate:
                turn = max(moment, self._recent.popleft() + 1.0)
            self._recent.append(turn)
            return turn - moment

    def wait(self) -> None:
        """Wait in this thread until the operation may go on."""
        if (seconds := self._reserve()) > 0:
            self._sleep(seconds)

    async def wait_async(self) -> None:
        """Wait in a coroutine until the operation may go on."""
        if (seconds := self._reserve()) > 0:
            await asyncio.sleep(seconds)
