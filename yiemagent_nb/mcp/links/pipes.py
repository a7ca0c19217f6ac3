"""The kernel's ends of a server's standard streams, as asyncio protocols.

Each does no more in one callback than one read brings, so that no flood starves the event loop, and
holds a bounded amount, so that none fills the memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

__all__ = ["Line", "LineReader", "StderrReader", "Writer"]

HELD_BYTES = 1 << 20
"""So much is read ahead of who reads the lines."""

HEAD_BYTES = 4_000
"""So much is kept of each end of a line that is too long."""

QUIET_SECONDS = 0.25
"""A pipe that brings nothing for so long, after its writer ended, brings nothing more."""

STDERR_CHARACTERS = 2_000
STDERR_LINES = 200
STDERR_SECONDS = 0.05
"""Of a flood at standard error, the last lines are passed on at this pace."""

UNSENT_BYTES = 1 << 20
UNREAD_SECONDS = 30.0
"""How much a server that does not read leaves unsent before the sender waits, and how long that waits."""


class Line(NamedTuple):
    """A line without its end.

    Args:
        data: Its bytes; both ends of it alone where it is too long.
        size: How many bytes it has.
    """

    data: bytes
    size: int

    @property
    def whole(self) -> bool:
        """Whether nothing of it was dropped."""
        return len(self.data) == self.size


class LineReader(asyncio.Protocol):
    """Splits what comes into lines, and stops reading while nobody takes them.

    Args:
        longest: The bytes of a line; of a longer one only both ends are kept.
    """

    def __init__(self, longest: int) -> None:
        self.connected = False
        self.closed = asyncio.Event()
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._tail = b""
        self._lines: deque[Line] = deque()
        self._held = 0
        self._arrived = asyncio.Event()
        self._news = False
        self._over = False
        self._discarding = False
        self._paused = False
        self._transport: asyncio.ReadTransport | None = None

    async def next(self) -> Line | None:
        """Wait for the next line; None after the last."""
        while not self._lines:
            if self._over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        line = self._lines.popleft()
        self._held -= len(line.data)
        if self._paused and self._held < HELD_BYTES // 2:
            self._read_on()
        return line

    def end_when_quiet(self) -> None:
        """End when nothing more comes, though others than the writer may hold the pipe open."""
        self._news = False
        asyncio.get_running_loop().call_later(QUIET_SECONDS, self._end_if_quiet)

    def discard(self) -> None:
        """Read on without keeping anything, so that the writer is not held up."""
        self._discarding = True
        self._lines.clear()
        self._held = 0
        self._end()
        if self._paused:
            self._read_on()

    def close(self) -> None:
        """Stop reading."""
        self._end()
        if self._transport is not None:
            self._transport.close()

    # asyncio's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        self.connected = True
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        if self._discarding:
            return
        self._news = True
        *finished, rest = data.split(b"\n")
        for piece in finished:
            self._add(piece)
            self._finish()
        self._add(rest)
        if finished:
            self._arrived.set()
        if self._held > HELD_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - any end is the end
        """See ``asyncio.Protocol``."""
        self._transport = None
        if self._size:
            self._finish()
        self._end()
        self.closed.set()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._longest:
            self._pieces.append(piece)
            return
        self._pieces = [b"".join(self._pieces[:2])[:HEAD_BYTES] or piece[:HEAD_BYTES]]
        self._tail = (self._tail + piece)[-HEAD_BYTES:]

    def _finish(self) -> None:
        if not self._discarding:
            data = b"".join((*self._pieces, self._tail))
            self._lines.append(Line(data, self._size))
            self._held += len(data)
        self._pieces, self._tail, self._size = [], b"", 0

    def _end_if_quiet(self) -> None:
        if not self._over and (self._news or self._paused):
            self.end_when_quiet()
        else:
            self._end()

    def _end(self) -> None:
        self._over = True
        self._arrived.set()

    def _read_on(self) -> None:
        self._paused = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


class StderrReader(asyncio.Protocol):
    """Passes on the lines of a server's standard error; of a flood, the last ones.

    Args:
        deliver: Takes a line, cut to 2,000 characters.
    """

    def __init__(self, deliver: Callable[[str], None]) -> None:
        self.connected = False
        self.closed = asyncio.Event()
        self._deliver = deliver
        self._partial = b""
        self._lines: deque[bytes] = deque(maxlen=STDERR_LINES)
        self._left_out = 0
        self._delivery: asyncio.TimerHandle | None = None
        self._earliest = 0.0
        self._transport: asyncio.BaseTransport | None = None

    def close(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()

    def flush(self) -> None:
        """Deliver what has come."""
        if self._delivery is not None:
            self._delivery.cancel()
            self._delivery = None
        self._earliest = asyncio.get_running_loop().time() + STDERR_SECONDS
        if self._left_out:
            self._deliver(f"({self._left_out:,} lines left out)")
            self._left_out = 0
        while self._lines:
            self._deliver(_shown(self._lines.popleft()))

    # asyncio's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        self.connected = True
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``. A carriage return ends a line, since progress is shown so."""
        *lines, partial = (self._partial + data).replace(b"\r", b"\n").split(b"\n")
        self._partial = partial[: 4 * STDERR_CHARACTERS + 1]
        self._keep([line for line in lines if line])
        if self._lines and self._delivery is None:
            self._delivery = asyncio.get_running_loop().call_at(self._earliest, self.flush)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - any end is the end
        """See ``asyncio.Protocol``."""
        self._transport = None
        if self._partial:
            self._keep([self._partial])
        self.flush()
        self.closed.set()

    def _keep(self, lines: list[bytes]) -> None:
        self._left_out += max(0, len(self._lines) + len(lines) - STDERR_LINES)
        self._lines.extend(lines[-STDERR_LINES:])


def _shown(line: bytes) -> str:
    text = line[: 4 * STDERR_CHARACTERS + 1].decode("utf-8", "replace")
    return text if len(text) <= STDERR_CHARACTERS else f"{text[: STDERR_CHARACTERS - 1]}…"


class Writer(asyncio.BaseProtocol):
    """Writes to a server's standard input, and waits for one that does not read.

    Args:
        broken: Called when the server's end was closed.
    """

    def __init__(self, broken: Callable[[], None]) -> None:
        self.connected = False
        self.closed = asyncio.Event()
        self._broken = broken
        self._free = asyncio.Event()
        self._free.set()
        self._closing = False
        self._transport: asyncio.WriteTransport | None = None

    async def write(self, data: bytes) -> None:
        """Write, and wait while more than a MiB is unsent.

        Raises:
            TimeoutError: The server read nothing for long enough.
            BrokenPipeError: It cannot be written to any more.
        """
        if self._closing or self._transport is None or self._transport.is_closing():
            raise BrokenPipeError
        self._transport.write(data)
        if not self._free.is_set():
            async with asyncio.timeout(UNREAD_SECONDS):
                await self._free.wait()

    def end(self) -> None:
        """Close the pipe when everything is written."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        """Close the pipe at once."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    # asyncio's protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        self.connected = True
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.set_write_buffer_limits(UNSENT_BYTES)

    def pause_writing(self) -> None:
        """See ``asyncio.Protocol``."""
        self._free.clear()

    def resume_writing(self) -> None:
        """See ``asyncio.Protocol``."""
        self._free.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - any end is the end
        """See ``asyncio.Protocol``."""
        self._transport = None
        self._free.set()
        self.closed.set()
        if not self._closing:
            self._broken()
