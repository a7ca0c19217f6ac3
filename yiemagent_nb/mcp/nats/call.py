"""Call: one request of the stateless form at the worker that took it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from yiemagent_nb.core.errors import McpConnectionError
from yiemagent_nb.mcp.link import Progress
from yiemagent_nb.mcp.links.callable import read_envelope
from yiemagent_nb.mcp.nats.connecting import Broker
from yiemagent_nb.mcp.nats.frames import (
    ANSWERS,
    PERIOD,
    STOPPING,
    TIMEOUT,
    WORKER,
    Assembly,
    Frame,
    FrameError,
    Kind,
    failure,
    read_message,
    write_frames,
    write_message,
)
from yiemagent_nb.mcp.nats.upstream import Upstream

__all__ = ["Call"]

PIECE_SECONDS = 10.0
"""How long the next piece of a request may take."""

DOWN_SECONDS = 30.0
"""How long a frame waits for a connection that is being made again."""

ABSENT_SECONDS = 15.0
"""How long a caller may be away before its call is given up: it may be connecting again."""

LOOK_SECONDS = 0.05
MAX_BYTES = 64 * 1024 * 1024
"""The largest request, and the largest answer to a question."""

MAX_NOTES = 1000
"""How many progress notifications of a call may wait to be sent; further ones are left out."""

MAX_TIMEOUT = 24 * 3600.0


class Call:
    """A request and what is sent back.

    Args:
        broker: The connection.
        upstream: The server.
        worker: The worker's name.
        reply: Where answers go.
        control: The subject on which the caller is heard.
        first: The request's first frame.
        period: Seconds between signs of life.
    """

    def __init__(
        self, broker: Broker, upstream: Upstream, *, worker: str, reply: str, control: str, first: Frame, period: float
    ) -> None:
        self._broker = broker
        self._upstream = upstream
        self._headers = {WORKER: worker}
        self.reply = reply
        self._control = control
        self._first = first
        self._period = period
        self.method = ""
        self.answers = frozenset(first.headers.get(ANSWERS, "").split(","))
        self.task: asyncio.Task[None] | None = None
        self._stopped = False
        self._absent = asyncio.Event()
        self._absent_since: float | None = None
        self._reconnects: int = broker.reconnects
        self._pieces: asyncio.Queue[Frame] = asyncio.Queue()
        self._answer_pieces = Assembly(MAX_BYTES)
        self._questions: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._question_ids = count(1)
        self._notes: deque[dict[str, Any]] = deque()
        self._noting: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    # What the service tells it

    def hear(self, frame: Frame) -> None:
        """Take a frame of the caller.

        Raises:
            FrameError: It is none that a caller sends.
        """
        if frame.kind is Kind.CANCEL:
            self.cancel()
        elif frame.kind is Kind.REQUEST:
            self._pieces.put_nowait(frame)
        elif frame.kind is Kind.ANSWER:
            whole = self._answer_pieces.add(frame)
            if whole is not None:
                self._settle(read_message(whole))
        else:
            raise FrameError(f"a caller sends no frame of kind {frame.kind}")

    def lost(self) -> None:
        """Nobody listened to the last sign of life."""
        self._absent.set()

    def cancel(self) -> None:
        """Stop: nobody waits any more."""
        if self.task is not None:
            self.task.cancel()

    def stop(self) -> None:
        """Stop, and tell the caller that the worker does."""
        self._stopped = True
        self.cancel()

    async def live(self) -> None:
        """Give a sign of life; a caller who is not there for long is not waited for."""
        now = time.monotonic()
        if not self._absent.is_set():
            self._absent_since = None
        elif self._absent_since is None:
            self._absent_since = now
        elif now - self._absent_since > ABSENT_SECONDS:
            self.cancel()
            return
        self._absent.clear()
        if self._broker.client.is_connected:
            await self._publish(Kind.ALIVE)

    # Its life

    async def run(self, slots: asyncio.Semaphore) -> None:
        """Accept the request, carry it out when a slot is free, and answer.

        Raises:
            McpConnectionError: The connection is gone, so that nobody can be answered.
        """
        try:
            await self._publish(Kind.ACCEPTED, headers={PERIOD: f"{self._period:g}"})
            try:
                message = read_message(await self._whole())
                seconds = self._first.seconds(TIMEOUT)
            except FrameError as error:
                await self._end(failure(None, -32600, f"Not a request: {error}."))
                return
            self.method = str(message.get("method"))
            async with slots:
                response = await self._upstream.respond(
                    message,
                    timeout=None if seconds is None else min(max(seconds, 0.001), MAX_TIMEOUT),
                    on_progress=lambda progress: self._note(message, progress),
                )
            if self._noting is not None:
                await self._noting
            await self._end(response)
        except asyncio.CancelledError:
            if self._stopped:
                text = "The worker was stopped before the request was done."
                await self._send(Kind.END, write_message(failure(None, STOPPING, text)))
        finally:
            if self._noting is not None:
                self._noting.cancel()

    async def _whole(self) -> bytes:
        """The request, once all its pieces are there."""
        assembly = Assembly(MAX_BYTES)
        whole = assembly.add(self._first)
        while whole is None:
            try:
                async with asyncio.timeout(PIECE_SECONDS):
                    piece = await self._pieces.get()
            except TimeoutError as error:
                raise FrameError(f"no further piece came within {PIECE_SECONDS:g} seconds") from error
            whole = assembly.add(piece)
        return whole

    # Progress

    def _note(self, message: dict[str, Any], progress: Progress) -> None:
        if len(self._notes) >= MAX_NOTES:
            return
        params: dict[str, Any] = {"progressToken": message["params"]["_meta"]["progressToken"]}
        params["progress"] = progress.progress
        if progress.total is not None:
            params["total"] = progress.total
        if progress.message is not None:
            params["message"] = progress.message
        self._notes.append({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        if self._noting is None or self._noting.done():
            self._noting = asyncio.ensure_future(self._send_notes())
            self._noting.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _send_notes(self) -> None:
        while self._notes:
            await self._send(Kind.NOTIFICATION, write_message(self._notes.popleft()))

    # Questions

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the caller something, and wait for the answer.

        Raises:
            McpError: It was refused.
        """
        question_id = str(next(self._question_ids))
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._questions[question_id] = answered
        try:
            await self._send(
                Kind.QUESTION,
                write_message({"jsonrpc": "2.0", "id": question_id, "method": method, "params": dict(params)}),
            )
            return read_envelope(await answered, method)
        finally:
            del self._questions[question_id]

    def _settle(self, response: dict[str, Any]) -> None:
        answered = self._questions.get(str(response.get("id")))
        if answered is not None and not answered.done():
            answered.set_result(response)

    # Sending

    async def _end(self, response: dict[str, Any]) -> None:
        try:
            payload = write_message(response)
        except ValueError as error:
            payload = write_message(failure(response.get("id"), -32603, f"The result cannot be sent: {error}."))
        if self._broker.reconnects != self._reconnects or not self._broker.client.is_connected:
            await self._find_caller()
        await self._send(Kind.END, payload)

    async def _find_caller(self) -> None:
        """Wait until the caller listens again, where the connection broke meanwhile."""
        deadline = time.monotonic() + ABSENT_SECONDS
        while time.monotonic() < deadline:
            await self._until_connected()
            self._absent.clear()
            await self._publish(Kind.ALIVE)
            await self._broker.settle()  # what the server says to that frame comes before this round trip ends
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._absent.wait()
            except TimeoutError:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _send(self, kind: Kind, payload: bytes) -> None:
        async with self._writing:  # pieces of two payloads must not mix
            for piece, headers in self._cut(kind, payload):
                await self._until_connected()
                await self._broker.publish(self.reply, piece, reply=self._control, headers=headers)

    async def _publish(self, kind: Kind, headers: Mapping[str, str] | None = None) -> None:
        for payload, all_headers in self._cut(kind, b"", headers):
            await self._broker.publish(self.reply, payload, reply=self._control, headers=all_headers)

    def _cut(
        self, kind: Kind, payload: bytes, headers: Mapping[str, str] | None = None
    ) -> Iterator[tuple[bytes, dict[str, str]]]:
        limit = self._broker.client.max_payload
        return write_frames(kind, payload, limit=limit, headers={**self._headers, **(headers or {})})

    async def _until_connected(self) -> None:
        client = self._broker.client
        deadline = time.monotonic() + DOWN_SECONDS
        while not client.is_connected:
            if client.is_closed or time.monotonic() > deadline:
                raise McpConnectionError("The connection to NATS is gone.")
            await asyncio.sleep(LOOK_SECONDS)
