"""When to ask a model server again, and how long to wait before."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from yiemagent_nb.core.errors import BackendError, BackendTimeoutError
from yiemagent_nb.core.reading.server_errors import is_loading, is_retryable

__all__ = ["Attempts", "RetryPolicy", "read_retry_after"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH = 1e9
"""A number above this is a moment, not a duration; a thousand times as much, one in milliseconds."""

_RATE_LIMITS = ("requests", "tokens")
_LOADING_PAUSE = 2.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a request is repeated after errors that may pass.

    Args:
        retries: How often at most.
        first_delay: Seconds before the first repetition; each further one waits twice as long.
        max_delay: Seconds that it waits at most. A server that asks for more is not asked again:
            the error says how long it wants.
    """

    retries: int = 3
    first_delay: float = 0.5
    max_delay: float = 60.0


class Attempts:
    """The attempts at one request.

    Args:
        policy: How often, how long.
        patience: Seconds for which a server that is still loading its model is asked again.
    """

    def __init__(self, policy: RetryPolicy, patience: float) -> None:
        self.retry_after: float | None = None
        """How many seconds the last answer asked to wait."""
        self.lessons = 0
        """How often the request was written anew, since something of it was refused."""
        self._policy = policy
        self._failed = 0
        self._give_up = time.monotonic() + patience

    async def again(self, error: BackendError) -> bool:
        """Whether to ask again after ``error``; waits as long as is due before it says yes."""
        delay = self._delay(error)
        if delay is None:
            return False
        await asyncio.sleep(delay)
        self.retry_after = None
        return True

    def _delay(self, error: BackendError) -> float | None:
        policy = self._policy
        if not is_retryable(error) or (isinstance(error, BackendTimeoutError) and error.status is None):
            return None  # a server that answered nothing for minutes may still be at it
        self._failed += 1
        delay = policy.first_delay * 2 ** (self._failed - 1)
        if is_loading(error) and time.monotonic() < self._give_up and policy.retries:
            return min(delay, _LOADING_PAUSE)
        if self._failed > policy.retries:
            return None
        if self.retry_after is not None:
            return self.retry_after if self.retry_after <= policy.max_delay else None
        # Clients that failed together should not come back together.
        return min(delay, policy.max_delay) * random.uniform(0.75, 1.0)  # noqa: S311 - no secret


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds a server asks to wait; None where it does not say.

    Reads ``retry-after-ms``, ``Retry-After`` (seconds or a date) and ``x-ratelimit-reset-*`` of the
    limits that have nothing remaining.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if value:
        return _number(value) if _number(value) is not None else _until(value)
    resets = [
        _duration(headers.get(f"x-ratelimit-reset-{limit}", ""))
        for limit in _RATE_LIMITS
        if headers.get(f"x-ratelimit-remaining-{limit}", "0") == "0"
    ]
    resets.append(_duration(headers.get("x-ratelimit-reset", "")))
    return max((reset for reset in resets if reset is not None), default=None)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if value < float("inf") else None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time())


def _duration(text: str) -> float | None:
    """``1s``, ``6m0s``, plain seconds, or a moment in seconds or milliseconds since 1970."""
    number = _number(text)
    if number is None:
        parts = _DURATION.findall(text)
        return sum(float(value) * _SECONDS[unit] for value, unit in parts) if parts else None
    if number > _EPOCH:
        moment = number / 1000 if number > _EPOCH * 100 else number
        return max(0.0, moment - time.time())
    return number
