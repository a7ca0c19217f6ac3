"""What went wrong in hooks: each failure once, with how often it happened."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from yiemagent_nb.hooks.kinds import HookName

__all__ = ["Failure", "Failures"]

KEPT = 20
TOLD_EACH = 0.25
"""Seconds between two times that one failure is told, so that a hook that fails at each call does not flood."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that a hook did wrong.

    Args:
        hook: Which hook.
        version: Which version of it.
        line: The line of its code; None where that is not known.
        message: What happened.
        hint: What to do next; may be empty.
        action: What the run did then.
        count: How often it happened.
        time: When it last did, in ms since 1970.
    """

    hook: HookName
    version: int
    line: int | None
    message: str
    hint: str
    action: str
    count: int = 1
    time: int = 0

    def form(self) -> dict[str, Any]:
        """As a page gets it."""
        return asdict(self)


class Failures:
    """The newest failures of all hooks of an agent. From any thread.

    Args:
        tell: Takes a failure that is new, and from time to time one that goes on happening.
    """

    def __init__(self, tell: Callable[[Failure], None]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._kept: dict[tuple[HookName, int, int | None, str], Failure] = {}
        self._told: dict[tuple[HookName, int, int | None, str], float] = {}

    def of(self, hook: HookName) -> list[Failure]:
        """The newest failures of a hook, oldest first."""
        with self._lock:
            return [failure for failure in self._kept.values() if failure.hook == hook][-KEPT:]

    def add(self, failure: Failure) -> None:
        """Note that something went wrong."""
        key = failure.hook, failure.version, failure.line, failure.message
        now = time.time()
        with self._lock:
            before = self._kept.pop(key, None)
            count = 1 if before is None else before.count + 1
            failure = replace(failure, count=count, time=int(now * 1000))
            self._kept[key] = failure
            told = now - self._told.get(key, 0.0) >= TOLD_EACH
            if told:
                self._told[key] = now
            same = [each for each in self._kept if each[0] == failure.hook]
            for old in same[:-KEPT]:
                del self._kept[old]
                self._told.pop(old, None)
        if told:
            self._tell(failure)

    def clear(self, hook: HookName) -> None:
        """Forget those of a hook."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == hook]:
                del self._kept[key]
                self._told.pop(key, None)
