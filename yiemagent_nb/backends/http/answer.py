"""The answer to one request: its head, and its body as it comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

from yiemagent_nb.core.errors import BackendError

if TYPE_CHECKING:
    from yiemagent_nb.backends.http.connection import HttpConnection
    from yiemagent_nb.backends.http.tap import WireTap

__all__ = ["Answer"]


class Answer:
    """The answer to one request: its head, and its body as it comes.

    Args:
        connection: Whose errors it raises.
        response: httpx's response, its body unread.
        between_bytes: Seconds from one chunk of the body to the next; None leaves it to the client.
        tap: Writes down what comes.
    """

    def __init__(
        self, connection: HttpConnection, response: Any, between_bytes: float | None, tap: WireTap | None = None
    ) -> None:
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._connection = connection
        self._response = response
        encoded = self.headers.get("content-encoding", "identity") != "identity"
        body = response.aiter_bytes() if encoded or response.is_stream_consumed else response.stream
        self._chunks = cast("AsyncGenerator[bytes, None]", aiter(body))
        self._next = self._chunks.__anext__
        self._tap = tap
        if tap is not None:
            tap.answers(self.status, response.headers.raw)
        self._watch = None if between_bytes is None else _IdleWatch(between_bytes)

    async def __aenter__(self) -> Self:
        """The answer itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give the connection back."""
        await self.aclose()

    async def chunk(self) -> bytes:
        """The next chunk of the body; empty at its end.

        Raises:
            BackendError: The connection broke, or nothing came for too long.
        """
        chunk = await self.chunk_or_failure()
        if isinstance(chunk, bytes):
            return chunk
        try:
            raise chunk
        finally:
            del chunk  # its traceback holds this frame

    async def read(self, limit: int | None = None) -> bytes:
        """The rest of the body, or its first ``limit`` bytes.

        Raises:
            BackendError: As in ``chunk``.
        """
        content, failure = await self.read_or_failure(limit)
        if failure is None:
            return content
        try:
            raise failure
        finally:
            del failure

    async def read_or_failure(self, limit: int | None = None) -> tuple[bytes, BaseException | None]:
        """The rest of the body, or its first ``limit`` bytes; and what ``read`` would raise after them."""
        chunks: list[bytes] = []
        size = 0
        while limit is None or size < limit:
            chunk = await self.chunk_or_failure()
            if not isinstance(chunk, bytes):
                return b"".join(chunks), chunk
            if not chunk:
                break
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks), None

    async def chunk_or_failure(self) -> bytes | BaseException:
        """The next chunk of the body, empty at its end; or what ``chunk`` would raise."""
        watch = self._watch
        try:
            if watch is None:
                chunk = await self._next()
            else:
                watch.turn += 1
                watch.task = asyncio.current_task()
                chunk = await self._next()
                watch.task = None
        except StopAsyncIteration:
            self._ended("")
            return b""
        except Exception as error:
            return self._failed(self._connection.interrupted(error))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and watch is not None and watch.expired():
                return self._failed(self._connection.silent())
            return error.with_traceback(None)
        if self._tap is not None:
            self._tap.take(chunk)
        return chunk

    async def aclose(self) -> None:
        """Give the connection back, or close it where the body was not read to its end."""
        if self._watch is not None:
            self._watch.stop()
        self._ended("The answer was not read to its end.")
        await self._chunks.aclose()
        await self._response.aclose()

    def _failed(self, error: BackendError) -> BackendError:
        self._ended(error.message)
        return error

    def _ended(self, error: str) -> None:
        if self._tap is not None:
            self._tap.ends(error)

    async def drain(self, seconds: float = 0.25) -> None:
        """Read to the end of the body, which the server has announced, so that the connection stays.

        One that does not end the body in time costs its connection and nothing else.
        """
        with contextlib.suppress(TimeoutError, BackendError):
            async with asyncio.timeout(seconds):
                while await self.chunk():
                    pass


class _IdleWatch:
    """Wakes a task that waits too long for a chunk.

    One timer looks four times in ``seconds`` whether the reader still has its ``turn`` from before,
    instead of one timer a chunk. It cancels the ``task`` that waits, as ``asyncio.timeout`` does,
    and ``expired`` takes that back.
    """

    def __init__(self, seconds: float) -> None:
        self.turn = 0
        self.task: asyncio.Task[Any] | None = None
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._seen = 0
        self._cancelled: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._timer = self._loop.call_later(seconds / 4, self._look)

    def expired(self) -> bool:
        """Whether the cancellation that ended the wait was the watch's own."""
        self.task = None
        cancelled, self._cancelled = self._cancelled, None
        return cancelled is not None and cancelled.uncancel() <= self._cancelling

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        if self.turn != self._seen or self.task is None:
            self._seen, self._since = self.turn, now
        elif now >= self._since + self._seconds:
            self._cancelled, self._cancelling = self.task, self.task.cancelling()
            self.task.cancel()
            return
        self._timer = self._loop.call_later(self._seconds / 4, self._look)
