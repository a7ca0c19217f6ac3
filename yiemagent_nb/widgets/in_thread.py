"""Work beside the kernel: a coroutine in a thread of its own, with an event loop of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from yiemagent_nb.core.concurrency import Interrupted, run_abortable
from yiemagent_nb.core.signal import AbortSignal

__all__ = ["in_thread"]

_log = logging.getLogger(__name__)


def in_thread(work: Callable[[], Coroutine[Any, Any, object]], signal: AbortSignal | None = None) -> None:
    """Run ``work()`` in a thread of its own, and return at once.

    It does not block the kernel, and goes on while a cell blocks it.

    Args:
        work: Makes the coroutine.
        signal: Cancels it when it is set.
    """
    until = AbortSignal() if signal is None else signal

    def run() -> None:
        try:
            asyncio.run(run_abortable(work(), until))
        except Interrupted:
            pass  # nobody waits for it any more
        except Exception:
            _log.exception("work beside the kernel failed")

    threading.Thread(target=run, daemon=True, name="yiemagent_nb widget").start()
