"""Interrupts that wake the event loop of a kernel."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable

__all__ = ["wake_on_interrupt"]


def wake_on_interrupt() -> Callable[[], None]:
    """Let a signal wake the running loop, which otherwise sleeps on in an idle ``await``."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a terminal: no loop runs between cells
        return lambda: None
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)

    def drain() -> None:
        with contextlib.suppress(BlockingIOError):
            reader.recv(4096)

    loop.add_reader(reader, drain)
    before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

    def restore() -> None:
        with contextlib.suppress(ValueError, OSError):  # the descriptor that stood there is gone
            signal.set_wakeup_fd(before)
        if not loop.is_closed():
            loop.remove_reader(reader)
        reader.close()
        writer.close()

    return restore
