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

from yiemagent_nb.backends.http.network_errors import Cause, cause_of
from yiemagent_nb.core.errors import BackendError, BackendTimeoutError
from yiemagent_nb.core.reading.server_errors import is_loading, is_retryable

__all__ = ["Attempts", "RetryPolicy", "read_retry_after"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH = 1e9
"""A number above this is a moment, not a duration; a thousand times as much, one in milliseconds."""

_RATE_LIMITS = ("", "-requests", "-tokens")
_TOO_MANY = 429
_LOADING_PAUSE = 2.0
_MOST_DOUBLINGS = 30
"""Beyond these any delay is longer than anybody waits, and at 1,024 longer than a float can hold."""

_PASSING = frozenset({Cause.CLOSED, Cause.NO_ROUTE})
_PASSING_ONCE = frozenset({Cause.REFUSED, Cause.SLOW})
"""A server that was just starting is there at the second attempt; one that is not, is off."""


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
        self._policy = policy
        self._failed = 0
        self._polled = 0
        self._causes: set[Cause] = set()
        self._give_up = time.monotonic() + patience

    async def again(self, error: BackendError) -> bool:
        """Whether to ask again after ``error``; waits as long as is due before it says yes."""
        delay = self._delay(error)
        if delay is None:
            return False
        await asyncio.sleep(delay)
        return True

    def _delay(self, error: BackendError) -> float | None:
        policy = self._policy
        if not self._may_pass(error):
            return None
        if is_loading(error) and policy.retries and time.monotonic() < self._give_up:
            self._polled += 1
            return min(self._doubled(self._polled), _LOADING_PAUSE)
        self._failed += 1
        if self._failed > policy.retries:
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= policy.max_delay else None
        # Clients that failed together should not come back together.
        return min(self._doubled(self._failed), policy.max_delay) * random.uniform(0.75, 1.0)  # noqa: S311 - no secret

    def _may_pass(self, error: BackendError) -> bool:
        if not is_retryable(error) or (isinstance(error, BackendTimeoutError) and error.status is None):
            return False  # a server that answered nothing for minutes may still be at it
        cause = cause_of(error)
        if cause is None:
            return True
        is_new = cause not in self._causes
        self._causes.add(cause)
        return cause in _PASSING or (cause in _PASSING_ONCE and is_new)

    def _doubled(self, count: int) -> float:
        return self._policy.first_delay * 2 ** min(count - 1, _MOST_DOUBLINGS)


def read_retry_after(headers: Mapping[str, str], status: int = 429) -> float | None:
    """How many seconds a server asks to wait; None where it does not say.

    Reads ``retry-after-ms``, ``Retry-After`` (seconds or a date), and where too much was asked
    ``x-ratelimit-reset`` and ``x-ratelimit-reset-*`` of the limits that have nothing remaining.

    Args:
        headers: Those of the answer, their names in lower case or without regard to it.
        status: The answer's; with any but 429, limits say nothing of what went wrong.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if value:
        return _number(value) if _number(value) is not None else _until(value)
    if status != _TOO_MANY:
        return None
    resets = [
        _duration(headers.get(f"x-ratelimit-reset{limit}", ""))
        for limit in _RATE_LIMITS
        if not _number(headers.get(f"x-ratelimit-remaining{limit}", "0"))
    ]
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
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time())
    except (ValueError, TypeError, IndexError, OverflowError):  # what the standard library makes of odd dates
        return None


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
