"""serve_on_nats: puts an MCP server on NATS."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Coroutine, Generator, Iterable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError, describe_error
from yiemagent_nb.mcp.nats.call import Call
from yiemagent_nb.mcp.nats.connecting import Broker, check_token, open_broker, read_target, show_target
from yiemagent_nb.mcp.nats.frames import (
    BUSY,
    WORKER,
    Frame,
    FrameError,
    Kind,
    failure,
    header_bytes,
    read_frame,
    write_frames,
    write_message,
)
from yiemagent_nb.mcp.nats.plain import answer_plainly
from yiemagent_nb.mcp.nats.upstream import Upstream

if TYPE_CHECKING:
    from mcp.server import MCPServer, Server
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from yiemagent_nb.mcp.server import McpServer

__all__ = ["NatsService", "serve_on_nats"]

_log = logging.getLogger("yiemagent_nb")

REMEMBERED_SECONDS = 600.0
REMEMBERED_REQUESTS = 100_000
"""For how long, and how many, ids of requests are remembered, so that none is carried out twice."""

PENDING_REQUESTS = 65536
"""How many requests may have arrived without having been looked at; others are told that the worker is busy."""

LAST_WORDS_SECONDS = 1.0
"""How long telling callers that the worker stops may take."""

QUESTION_METHODS = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests in whose course a server may ask something."""

_current: ContextVar[Call | None] = ContextVar("yiemagent_nb_nats_call", default=None)
"""The call in whose task something happens; servers of the stateless protocol ask in there."""


def serve_on_nats(
    server: McpServer | MCPServer | Server[Any] | Any,
    connection: str | Iterable[str] | Client,
    topic: str,
    *,
    queue: str = "mcp",
    concurrency: int = 32,
    backlog: int = 256,
    keep_alive: float = 2.0,
    options: Mapping[str, Any] | None = None,
) -> NatsService:
    """Put a server on NATS: anybody there can use it by its topic.

    Workers that serve one topic with the same ``queue`` share the requests. Both forms of the wire are
    answered, plain JSON-RPC and the stateless one (``yiemagent_nb.mcp.nats.frames``). The returned
    service starts when it is awaited or entered::

        async with serve_on_nats(McpServer.stdio("uvx", "mcp-server-time"), "nats://127.0.0.1:4222", "tools.time"):
            ...
        service = await serve_on_nats(server, connection, "tools.time")
        await service.stop()

    Tools must not block the event loop: a worker that cannot give a sign of life counts as dead.

    Args:
        server: An ``McpServer``, whose ``allow``, ``deny`` and ``timeout`` count here too; a server object of the
            ``mcp`` package; or a callable. For tools that ask the caller something in mid-call, give
            ``McpServer.in_process(server, protocol="legacy")``.
        connection: An address, several of one cluster, or an open connection of nats-py, which stays yours.
        topic: The subject to answer on.
        queue: The workers' queue group.
        concurrency: How many requests are carried out at once.
        backlog: How many more may wait; others are answered with an error that says busy.
        keep_alive: Seconds between signs of life.
        options: What ``nats.connect`` takes beside the address; see ``NatsTransport``.

    Raises:
        InvalidParametersError: An argument cannot be used.
    """
    return NatsService(
        server,
        connection,
        topic,
        queue=queue,
        concurrency=concurrency,
        backlog=backlog,
        keep_alive=keep_alive,
        options=options,
    )


class NatsService:
    """A server on NATS. ``serve_on_nats`` makes it, and describes its arguments."""

    def __init__(
        self,
        server: Any,
        connection: str | Iterable[str] | Client,
        topic: str,
        *,
        queue: str,
        concurrency: int,
        backlog: int,
        keep_alive: float,
        options: Mapping[str, Any] | None,
    ) -> None:
        for name, value, least in (
            ("concurrency", concurrency, 1),
            ("backlog", backlog, 0),
            ("keep_alive", keep_alive, 0.05),
        ):
            if value < least:
                raise InvalidParametersError(f"{name} must be at least {least}, not {value}.")
        self.topic = check_token(topic, "topic")
        self.worker = secrets.token_hex(8)
        """The worker's name, in its frames and its control subject."""
        self._queue = check_token(queue, "queue")
        self._server = server
        given = dict(options or {})
        self._target = read_target(connection, given)
        self._options = given if not isinstance(self._target, str | tuple) else {"max_reconnect_attempts": -1, **given}
        self._concurrency = concurrency
        self._backlog = backlog
        self._keep_alive = keep_alive
        self._calls: dict[str, Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending: set[asyncio.Task[None]] = set()
        self._seen: OrderedDict[str, float] = OrderedDict()
        self._stack = AsyncExitStack()
        self._broker: Broker | None = None
        self._upstream: Upstream | None = None
        self._listening: Subscription | None = None
        self._slots = asyncio.Semaphore(concurrency)
        self._stopping = False

    def __repr__(self) -> str:
        """The topic, where, and what runs."""
        return f"<NatsService {self.topic} at {show_target(self._target)}, {self.running} requests>"

    @property
    def running(self) -> int:
        """How many requests are being answered, those that wait for their turn among them."""
        return len(self._tasks)

    # Its life

    def __await__(self) -> Generator[Any, None, Self]:
        """Start.

        Raises:
            McpConnectionError: NATS or the server cannot be reached, or the account may not listen to the topic.
        """
        return self._start().__await__()

    async def __aenter__(self) -> Self:
        """Start."""
        return await self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()

    async def _start(self) -> Self:
        if self._broker is not None or self._stopping:
            raise InvalidParametersError("The service was started already.", "Make another one with serve_on_nats.")
        try:
            self._broker = await self._stack.enter_async_context(
                open_broker(self._target, self._options, self._on_error)
            )
            await self._listen(self._broker)
        except BaseException:
            await self._stack.aclose()
            self._stopping = True
            raise
        return self

    async def _listen(self, broker: Broker) -> None:
        began = time.monotonic()
        self._upstream = Upstream(self._server, self._ask, self._tell)
        self._stack.push_async_callback(self._upstream.stop)
        await self._upstream.start()
        control = await broker.subscribe(f"{self.topic}.control.{self.worker}.*", self._on_control)
        self._stack.push_async_callback(broker.unsubscribe, control)
        self._listening = await broker.subscribe(
            self.topic, self._on_request, queue=self._queue, pending=PENDING_REQUESTS
        )
        self._stack.push_async_callback(broker.unsubscribe, self._listening)
        await broker.settle()
        for subject in (self.topic, f"{self.topic}.control.{self.worker}.*"):
            refusal = broker.refusal(subject, began)
            if refusal is not None:
                raise refusal
        keeper = asyncio.ensure_future(self._keep_alive_all())
        self._stack.callback(keeper.cancel)

    async def stop(self, grace: float = 5.0) -> None:
        """Take no more requests, finish those that run, and end.

        Args:
            grace: Seconds that running requests get; the callers of others are told that the worker stopped.
        """
        if self._broker is None or self._stopping:
            return
        self._stopping = True
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._finish(self._broker)
            for call in list(self._calls.values()):
                call.stop()
            for task in self._tasks - {call.task for call in self._calls.values()}:
                task.cancel()
            await _wait(self._tasks | self._sending, LAST_WORDS_SECONDS)
            for task in self._tasks:
                task.cancel()
            await _wait(self._tasks, LAST_WORDS_SECONDS)
        finally:
            await self._stack.aclose()

    async def _finish(self, broker: Broker) -> None:
        if self._listening is not None:
            await broker.drain(self._listening)
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def wait_closed(self) -> str:
        """Wait until the connection to NATS is closed for good, by ``stop`` too; returns why."""
        if self._broker is None:
            return "the service was not started"
        return await self._broker.wait_closed()

    # Requests

    async def _on_request(self, message: Msg) -> None:
        if not message.reply:
            return  # a notification, or a request whose answer nobody hears
        try:
            frame = _read_request(message)
            request_id = None if frame is None else frame.request_id
        except FrameError as error:
            await self._refuse(message.reply, -32600, f"Not a request: {error}.", in_frames=True)
            return
        if frame is not None and request_id is not None and self._was_seen(request_id):
            return  # who carries it out answers it
        if len(self._tasks) >= self._concurrency + self._backlog:
            text = f"The worker is busy with {len(self._tasks)} requests."
            await self._refuse(message.reply, BUSY, text, in_frames=frame is not None)
            return
        if frame is None or request_id is None:
            self._run(self._answer_plainly(message))
        else:
            self._seen[request_id] = time.monotonic()
            self._take(message.reply, frame)

    def _was_seen(self, request_id: str) -> bool:
        oldest = time.monotonic() - REMEMBERED_SECONDS
        while self._seen and (len(self._seen) > REMEMBERED_REQUESTS or next(iter(self._seen.values())) < oldest):
            self._seen.popitem(last=False)
        return request_id in self._seen

    def _take(self, reply: str, frame: Frame) -> None:
        broker, upstream = self._started()
        token = secrets.token_hex(8)
        control = f"{self.topic}.control.{self.worker}.{token}"
        call = Call(
            broker,
            upstream,
            worker=self.worker,
            reply=reply,
            control=control,
            first=frame,
            period=self._keep_alive,
        )
        self._calls[token] = call
        call.task = self._run(self._carry_out(call))
        call.task.add_done_callback(lambda _: self._calls.pop(token))

    async def _carry_out(self, call: Call) -> None:
        _current.set(call)
        await call.run(self._slots)

    async def _answer_plainly(self, message: Msg) -> None:
        broker, upstream = self._started()
        await answer_plainly(broker, upstream, message, self._slots)

    async def _refuse(self, reply: str, code: int, text: str, *, in_frames: bool = False) -> None:
        broker, _ = self._started()
        payload = write_message(failure(None, code, text))
        if not in_frames:
            await broker.publish(reply, payload)
            return
        limit = broker.client.max_payload
        for piece, headers in write_frames(Kind.END, payload, limit=limit, headers={WORKER: self.worker}):
            await broker.publish(reply, piece, headers=headers)

    async def _on_control(self, message: Msg) -> None:
        call = self._calls.get(message.subject.rpartition(".")[2])
        if call is None:
            return  # it ended meanwhile
        if message.headers is not None and message.headers.get("Status") == "503":
            call.lost()
            return
        try:
            frame = read_frame(message.headers, message.data)
            if frame is not None:
                call.hear(frame)
        except FrameError as error:
            _log.warning("%s: a caller sent what is no frame of its own: %s", self.topic, error)

    # What goes along with them

    async def _keep_alive_all(self) -> None:
        while True:
            await asyncio.sleep(self._keep_alive)
            for call in list(self._calls.values()):
                try:
                    await call.live()
                except McpConnectionError:
                    break  # none can be told anything now

    async def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Pass a question on to the caller whose request led to it, where there is no doubt who that is."""
        call = _current.get()
        if call is None:
            running = [call for call in self._calls.values() if call.method in QUESTION_METHODS]
            callers = {call.reply.rpartition(".")[0] for call in running}
            if len(callers) != 1 or len(self._tasks) != len(self._calls):
                return None
            call = running[-1]
        return await call.ask(method, params) if method in call.answers else None

    def _tell(self, method: str, params: Mapping[str, Any]) -> None:
        broker, _ = self._started()
        try:
            payload = write_message({"jsonrpc": "2.0", "method": method, "params": dict(params)})
        except ValueError as error:
            _log.warning("%s: %s cannot be sent: %s", self.topic, method, error)
            return
        headers = {"Mcp-Frame": Kind.NOTIFICATION.value, WORKER: self.worker}
        if len(payload) + header_bytes(headers) > broker.client.max_payload:
            _log.warning("%s: %s is too large to be sent: %d bytes", self.topic, method, len(payload))
            return
        task = asyncio.ensure_future(broker.publish(f"{self.topic}.events", payload, headers=headers))
        self._sending.add(task)
        task.add_done_callback(self._sent)

    def _sent(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        self._report(task)

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._report)
        return task

    def _report(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, McpError):
            _log.warning("%s: an answer could not be sent: %s", self.topic, error.message)
        elif error is not None:
            _log.error("%s: %s", self.topic, describe_error(error), exc_info=error)

    async def _on_error(self, error: Exception) -> None:
        """Take what went wrong on a connection of ours.

        A request that nats-py had to drop is answered: who asked would wait in vain.
        """
        from nats.errors import SlowConsumerError  # noqa: PLC0415

        if isinstance(error, SlowConsumerError) and error.subject == self.topic and error.reply:
            await self._refuse(error.reply, BUSY, "The worker is busy: more requests came than it can read.")
        elif "permissions violation" in str(error).lower():
            _log.warning("%s: the account may not do all that is needed: %s", self.topic, error)

    def _started(self) -> tuple[Broker, Upstream]:
        if self._broker is None or self._upstream is None:
            raise McpConnectionError("The service was not started.")
        return self._broker, self._upstream


async def _wait(tasks: set[asyncio.Task[None]], seconds: float) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


def _read_request(message: Msg) -> Frame | None:
    """The first frame of a request; None where it is a plain one.

    Raises:
        FrameError: It is another frame.
    """
    frame = read_frame(message.headers, message.data)
    if frame is not None and (frame.kind is not Kind.REQUEST or frame.part != 1):
        raise FrameError(f"the topic takes requests, and their first pieces, not {frame.kind} {frame.part}")
    return frame
