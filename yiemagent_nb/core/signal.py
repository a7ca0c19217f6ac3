"""AbortSignal: a flag that tools and hooks read and wait for, set from any thread."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

__all__ = ["AbortSignal"]

_log = logging.getLogger("yiemagent_nb")


class AbortSignal:
    """Says that the work in hand should stop.

    ``aborted`` can be read from any thread, ``wait_threadsafe`` waits in a worker thread and
    ``wait`` in a coroutine. A signal is set once and stays set; each run has its own.

    Args:
        parent: A signal that sets this one too, when it is set.
    """

    __slots__ = ("_callbacks", "_detach", "_event", "_lock", "reason")

    def __init__(self, parent: AbortSignal | None = None) -> None:
        self.reason = ""
        self._event: threading.Event | None = None
        self._lock = threading.Lock()
        self._callbacks: dict[object, Callable[[], object]] | None = {}
        self._detach: Callable[[], None] | None = None
        if parent is not None:
            self._detach = parent.on_abort(lambda: self.abort(parent.reason))

    def __repr__(self) -> str:
        """The flag alone."""
        return f"AbortSignal(aborted={self.aborted})"

    @property
    def aborted(self) -> bool:
        """Whether the work should stop."""
        return self._callbacks is None

    def abort(self, reason: str = "aborted") -> None:
        """Set the flag and run the callbacks, in the calling thread. A second call does nothing."""
        with self._lock:
            if self._callbacks is None:
                return
            self.reason = reason  # before the flag, which is read without the lock
            callbacks, self._callbacks = self._callbacks, None
            if self._event is not None:
                self._event.set()
        for callback in callbacks.values():
            try:
                callback()
            except Exception:  # of a tool or a hook: the others must hear of the abort all the same
                _log.exception("what waits for an abort raised")

    def on_abort(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call ``callback`` when the flag is set, at once if it is; returns what takes it back.

        It runs in the thread that aborts. What it raises there is logged.
        """
        key = object()
        with self._lock:
            callbacks = self._callbacks
            if callbacks is not None:
                callbacks[key] = callback
        if callbacks is None:
            callback()

        def forget() -> None:
            with self._lock:
                if self._callbacks is not None:
                    self._callbacks.pop(key, None)

        return forget

    def detach(self) -> None:
        """Stop following the parent, so that a long-lived parent does not keep this signal."""
        if self._detach is not None:
            self._detach()
            self._detach = None

    async def wait(self) -> None:
        """Wait in a coroutine until the flag is set."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not future.done():
                future.set_result(None)

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle)

        forget = self.on_abort(wake)
        try:
            await future
        finally:
            forget()

    def wait_threadsafe(self, timeout: float | None = None) -> bool:
        """Wait in a worker thread, at most ``timeout`` seconds; returns whether the flag is set."""
        with self._lock:
            if self._event is None:
                self._event = threading.Event()
                if self._callbacks is None:
                    self._event.set()
        return self._event.wait(timeout)
