"""Throttle: what is told often is told a few times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Throttle"]


class Throttle:
    """Calls a function when it is poked: at once, and then at most once in so many seconds.

    After the last poke comes a call. Pokes cost next to nothing while a call is due.

    Args:
        call: Called in the thread that pokes, or in a timer's; never twice at once.
        seconds: Between two calls at least.
    """

    def __init__(self, call: Callable[[], object], seconds: float) -> None:
        self._call = call
        self._seconds = seconds
        self._lock = threading.Lock()
        self._due = False
        self._is_calling = False
        self._last = float("-inf")

    def poke(self) -> None:
        """Have it called; from any thread."""
        if self._due:
            return
        with self._lock:
            if self._due:
                return
            self._due = True
            wait = self._last + self._seconds - time.monotonic()
        self._run() if wait <= 0 else self._run_in(wait)

    def _run_in(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self._run)
        timer.daemon = True
        timer.start()

    def _run(self) -> None:
        with self._lock:  # which is not held while it is called: that may wait for who pokes
            late = self._is_calling
            if not late:
                self._is_calling = True
                self._due = False  # what changes from now on is told again
                self._last = time.monotonic()
        if late:
            self._run_in(self._seconds)
            return
        try:
            self._call()
        finally:
            self._is_calling = False
