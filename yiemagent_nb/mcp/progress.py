"""A call's progress as updates of its tool, at a pace that people can follow."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from types import TracebackType
from typing import Self

from yiemagent_nb.core.execution import ToolUpdate
from yiemagent_nb.core.results import ToolResult
from yiemagent_nb.mcp.link import Progress
from yiemagent_nb.mcp.plain_text import cut_plain

__all__ = ["INTERVAL", "ProgressReporter"]

INTERVAL = 0.05
"""Seconds between two updates, at least; what came meanwhile is told by the newest alone."""

MAX_MESSAGE = 300


class ProgressReporter:
    """Passes on the progress of one call, from any thread.

    It is entered on the event loop of the call. When it is left, the newest progress is told if it was
    not yet, and nothing after that.

    Args:
        on_update: Takes each update: a ``ToolResult`` such as ``3/10: reading``, with ``progress`` and
            ``total`` in its ``details``, each a number or None.
    """

    def __init__(self, on_update: ToolUpdate) -> None:
        self._on_update = on_update
        self._loop = asyncio.get_running_loop()
        self._lock = threading.RLock()
        self._newest: Progress | None = None
        self._next = 0.0
        self._timed = False
        self._ended = False

    def __enter__(self) -> Self:
        """Itself, which is what a request takes as ``on_progress``."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Tell what was not told, and be silent from now on."""
        with self._lock:
            self._tell()
            self._ended = True

    def __call__(self, progress: Progress) -> None:
        """Take a progress of the server."""
        with self._lock:
            if self._ended:
                return
            self._newest = progress
            if self._timed:
                return
            wait = self._next - time.monotonic()
            if wait <= 0:
                self._tell()
            else:
                self._timed = True
                self._loop.call_soon_threadsafe(self._loop.call_later, wait, self._time_is_up)

    def _time_is_up(self) -> None:
        with self._lock:
            self._timed = False
            if not self._ended:
                self._tell()

    def _tell(self) -> None:
        progress, self._newest = self._newest, None
        if progress is not None:
            self._next = time.monotonic() + INTERVAL
            details = {"progress": _finite(progress.progress), "total": _finite(progress.total)}
            self._on_update(ToolResult(_in_words(progress), details=details))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _in_words(progress: Progress) -> str:
    """Such as ``3/10: reading``."""
    amount = _number(progress.progress)
    if progress.total is not None:
        amount = f"{amount}/{_number(progress.total)}"
    return f"{amount}: {cut_plain(progress.message, MAX_MESSAGE)}" if progress.message else amount


def _number(value: float) -> str:
    return f"{value:,.10g}" if math.isfinite(value) else "?"
