"""NatsTransport: a server behind a topic on NATS.

Two forms, which ``yiemagent_nb.mcp.nats.frames`` describes: plain JSON-RPC by request and reply, which
any responder speaks; and the stateless one of ``serve_on_nats``, with progress, cancellation, signs of
life, questions, and results of any size.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError, McpTimeoutError
from yiemagent_nb.mcp.link import Inbox, Link, OnProgress, ServerInfo
from yiemagent_nb.mcp.nats.connecting import Broker, check_token, open_broker, read_target, show_target
from yiemagent_nb.mcp.nats.exchange import QUESTIONS, Exchange, PlainAnswerError, Vigil, no_responders, read_result
from yiemagent_nb.mcp.nats.frames import (
    ANSWERS,
    SENDER,
    TIMEOUT,
    FrameError,
    Kind,
    as_object,
    header_bytes,
    read_frame,
    read_message,
    write_message,
)

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

__all__ = ["Binding", "NatsTransport"]

Binding = Literal["auto", "json-rpc", "stateless"]
"""``auto`` asks which form the topic answers in."""

DISCOVER_SECONDS = 2.0
DISCOVER_ATTEMPTS = 2
"""A worker of the stateless form answers at once; one that is just dying may take a request with it."""

MAX_ABANDONED = 1000
MAX_SENDER = 256
STOP_LOOKS = 30
STOP_SECONDS = 0.3
"""How long closing waits for workers that are to be told to stop, and did not say yet who they are."""

INTERRUPTED_SECONDS = 60.0
"""How long a plain request without a timeout waits after its connection was made again."""


class NatsTransport:
    """Reaches a server by a topic.

    Args:
        connection: An address such as ``nats://127.0.0.1:4222``, several of one cluster, or an open connection
            of nats-py, which stays yours.
        topic: The subject that the server answers on.
        sender_id: Who asks; it goes along as the header ``Sender-Id``.
        binding: The form of the messages.
        options: What ``nats.connect`` takes beside the address: ``user``, ``password``, ``token``, ``nkeys_seed``,
            ``user_credentials`` (a file), ``tls`` (an ``ssl.SSLContext``), ``tls_hostname`` and so on. Secrets
            may be ``SecretStr``.

    Raises:
        InvalidParametersError: One of these cannot be used.
    """

    kind = "nats"
    patience = 0.0

    def __init__(
        self,
        connection: str | Iterable[str] | Client,
        topic: str,
        sender_id: str = "",
        *,
        binding: Binding = "auto",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if binding not in get_args(Binding):
            raise InvalidParametersError(f"binding must be one of {', '.join(get_args(Binding))}, not {binding!r}.")
        if len(sender_id) > MAX_SENDER or not sender_id.isprintable():
            raise InvalidParametersError(f"sender_id must be printable text of at most {MAX_SENDER} characters.")
        self._options = dict(options or {})
        self._connection = read_target(connection, self._options)
        self._topic = check_token(topic, "topic")
        self._sender_id = sender_id
        self._binding: Binding = binding

    @property
    def target(self) -> str:
        """The topic and where it is served."""
        return f"{self._topic} at {show_target(self._connection)}"

    @property
    def default_name(self) -> str:
        """The topic."""
        return self._topic

    @property
    def modules(self) -> tuple[str, ...]:
        """nats-py; where it is not installed, ``open`` says so."""
        return ("nats.aio.client",) if find_spec("nats") is not None else ()

    def open(self, inbox: Inbox) -> AbstractAsyncContextManager[Link]:
        """See ``Transport``."""
        return self._open(inbox)

    @asynccontextmanager
    async def _open(self, inbox: Inbox) -> AsyncGenerator[Link]:
        async with open_broker(self._connection, self._options) as broker:
            link = NatsLink(broker, self._topic, self._sender_id, inbox)
            try:
                await link.start(self._binding)
                yield link
            finally:
                await link.stop()


class NatsLink:
    """A link over a topic. ``NatsTransport.open`` makes it."""

    def __init__(self, broker: Broker, topic: str, sender_id: str, inbox: Inbox) -> None:
        self._broker = broker
        self._topic = topic
        self._inbox = inbox
        self._headers = {SENDER: sender_id} if sender_id else {}
        self._replies = f"{broker.client.new_inbox()}."
        self._waiting: dict[str, Exchange | asyncio.Queue[Msg | McpError]] = {}
        self._abandoned: OrderedDict[str, Exchange] = OrderedDict()
        """Exchanges that nobody waits for, and that no worker accepted yet: who does is told to stop."""
        self._background: set[asyncio.Task[None]] = set()
        self._subscriptions: list[Any] = []
        self._plain = True
        self._info = ServerInfo()

    @property
    def info(self) -> ServerInfo:
        """What the server says of itself; nothing where it speaks the plain form."""
        return self._info

    @property
    def binding(self) -> Binding:
        """The form that is spoken."""
        return "json-rpc" if self._plain else "stateless"

    async def start(self, binding: Binding) -> None:
        """Listen for answers, and find out which form the topic answers in.

        Raises:
            McpConnectionError: Nobody is there, or in another form than was asked for.
        """
        self._subscriptions.append(await self._broker.subscribe(f"{self._replies}*", self._on_reply))
        if binding == "json-rpc":
            return
        self._plain = not await self._discover(fall_back=binding == "auto")
        if not self._plain:
            self._subscriptions.append(await self._broker.subscribe(f"{self._topic}.events", self._on_event))

    async def stop(self) -> None:
        """End what waits, tell the workers, and stop listening."""
        for waiting in self._waiting.values():
            _put(waiting, McpConnectionError("The connection to the server was closed during the request."))
            if isinstance(waiting, Exchange) and waiting.control:
                self._start(waiting.cancel(waiting.control))
        unheard = {token for token, waiting in self._waiting.items() if isinstance(waiting, Exchange)}
        for _ in range(STOP_LOOKS):  # a worker may be accepting one of them right now
            if not self._waiting and not unheard & self._abandoned.keys():
                break
            await asyncio.sleep(STOP_SECONDS / STOP_LOOKS)
        if self._background:
            await asyncio.wait(self._background, timeout=1.0)
        for task in self._background:
            task.cancel()
        for subscription in self._subscriptions:
            await self._broker.unsubscribe(subscription)

    @property
    def silence(self) -> str:
        """See ``Link``."""
        if not self._plain:
            return ""
        return (
            f"An answer larger than the NATS server's payload limit of {self._broker.client.max_payload} bytes never "
            "arrives in the plain form; serve_on_nats sends it in pieces."
        )

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the worker is told how long somebody waits
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """See ``Link``."""
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                if self._plain:
                    return await self._ask_plainly(method, params, timeout)
                return await self._ask(method, params, timeout, on_progress)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise McpTimeoutError(
                f"{self._topic} did not answer {method} within {timeout:g} seconds.",
                self.silence or "Raise the timeout if it needs longer.",
            ) from error

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """See ``Link``. One of the workers hears it."""
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "method": method,
            **({} if params is None else {"params": dict(params)}),
        }
        payload = self._fitting(message, self._headers)
        self._inbox.log.message("out", message, payload)
        await self._broker.publish(self._topic, payload, headers=self._headers or None)

    async def wait_closed(self) -> str:
        """See ``Link``."""
        return await self._broker.wait_closed()

    # The stateless form

    async def _ask(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,  # noqa: ASYNC109
        on_progress: OnProgress | None,
    ) -> dict[str, Any]:
        try:
            return await self._exchange(method, params, timeout, on_progress)
        except PlainAnswerError as answer:  # a responder of the plain form shares the topic
            return self._read_plain(answer.payload, method)

    async def _exchange(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,  # noqa: ASYNC109
        on_progress: OnProgress | None,
    ) -> dict[str, Any]:
        request_id = secrets.token_hex(16)
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id, "method": method}
        data = dict(params or {})
        if on_progress is not None:
            data["_meta"] = {**(as_object(data.get("_meta")) or {}), "progressToken": request_id}
        if data:
            message["params"] = data
        headers = dict(self._headers)
        answered = [question for question in QUESTIONS if self._inbox.answers(question)]
        if answered:
            headers[ANSWERS] = ",".join(answered)
        if timeout is not None:
            headers[TIMEOUT] = f"{max(timeout, 0.0):.3f}"
        reply = f"{self._replies}{request_id}"
        exchange = Exchange(self._broker, self._topic, reply, self._inbox, request_id)
        self._waiting[request_id] = exchange
        finished = False
        try:
            result = await exchange.run(
                message, headers, on_progress, Vigil(self._broker, method, self._topic, f"{self._replies}*")
            )
            finished = True
        except McpError as error:
            finished = not isinstance(error, McpConnectionError)
            raise
        except PlainAnswerError:
            finished = True
            raise
        else:
            return result
        finally:
            del self._waiting[request_id]
            if not finished:
                self._abandon(request_id, exchange)

    def _abandon(self, request_id: str, exchange: Exchange) -> None:
        if exchange.control:
            self._start(exchange.cancel(exchange.control))
            return
        self._abandoned[request_id] = exchange
        if len(self._abandoned) > MAX_ABANDONED:
            self._abandoned.popitem(last=False)

    async def _discover(self, *, fall_back: bool) -> bool:
        """Ask what the server is; returns whether it speaks the stateless form."""
        for attempt in range(DISCOVER_ATTEMPTS):
            try:
                async with asyncio.timeout(DISCOVER_SECONDS):
                    result = await self._exchange("server/discover", None, DISCOVER_SECONDS, None)
            except TimeoutError:
                if attempt + 1 < DISCOVER_ATTEMPTS:
                    continue
                if fall_back:
                    return False
                raise McpConnectionError(
                    f"No worker on {self._topic} answered in the stateless form.",
                    "Use binding='json-rpc' for a responder that speaks plain JSON-RPC, or 'auto'.",
                ) from None
            except PlainAnswerError:
                if fall_back:
                    return False
                raise McpConnectionError(
                    f"{self._topic} answers in plain JSON-RPC.", "Use binding='json-rpc' or 'auto'."
                ) from None
            else:
                self._info = _read_info(result)
                return True
        return False

    # The plain form

    async def _ask_plainly(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,  # noqa: ASYNC109
    ) -> dict[str, Any]:
        token = secrets.token_hex(16)
        message = {"jsonrpc": "2.0", "id": token, "method": method, "params": dict(params or {})}
        payload = self._fitting(message, self._headers)
        self._inbox.log.message("out", message, payload)
        answers: asyncio.Queue[Msg | McpError] = asyncio.Queue()
        vigil = Vigil(self._broker, method, self._topic, f"{self._replies}*")
        self._waiting[token] = answers
        try:
            await self._broker.publish(
                self._topic, payload, reply=f"{self._replies}{token}", headers=self._headers or None
            )
            while True:
                try:
                    async with asyncio.timeout(0.2):
                        answer = await answers.get()
                    break
                except TimeoutError:
                    lost = INTERRUPTED_SECONDS if timeout is None and vigil.interrupted else None
                    vigil.look(lost, f"{self._topic} did not answer {method}")
        finally:
            del self._waiting[token]
        if isinstance(answer, McpError):
            raise answer
        if answer.headers is not None and answer.headers.get("Status") == "503":
            raise no_responders(self._topic)
        return self._read_plain(answer.data, method)

    def _read_plain(self, payload: bytes, method: str) -> dict[str, Any]:
        try:
            message = read_message(payload)
            self._inbox.log.message("in", message, payload)
            return read_result(message, method)
        except FrameError as error:
            raise McpError(f"The answer to {method} is no JSON-RPC response: {error}.") from error

    def _fitting(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
        try:
            payload = write_message(message)
        except ValueError as error:
            raise McpError(f"The request cannot be sent: {error}.", rpc_code=-32602) from error
        limit, size = self._broker.client.max_payload, len(payload) + header_bytes(headers)
        if size > limit:
            raise McpError(
                f"The request has {size} bytes; a plain one may have {limit}, the NATS server's payload limit.",
                "Make it smaller, or let serve_on_nats serve the topic, which takes it in pieces.",
                rpc_code=-32602,
            )
        return payload

    # What arrives

    async def _on_reply(self, message: Msg) -> None:
        token = message.subject.rpartition(".")[2]
        waiting = self._waiting.get(token)
        if waiting is not None:
            _put(waiting, message)
            return
        abandoned = self._abandoned.pop(token, None)
        if abandoned is not None and message.reply.startswith(f"{self._topic}.control."):
            self._start(abandoned.cancel(message.reply))

    async def _on_event(self, message: Msg) -> None:
        try:
            frame = read_frame(message.headers, message.data)
            event = read_message(message.data)
        except FrameError as error:
            self._inbox.wrote_rubbish(f"{self._topic}.events: {error}")
            return
        method, params = event.get("method"), as_object(event.get("params", {}))
        is_whole = frame is not None and frame.kind is Kind.NOTIFICATION and frame.parts == 1
        if is_whole and isinstance(method, str) and method.startswith("notifications/") and params is not None:
            self._inbox.log.message("in", event, message.data)
            self._inbox.notified(method, params)
        else:
            self._inbox.wrote_rubbish(f"{self._topic}.events: a message that is no notification")

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._background.add(task)
        task.add_done_callback(self._told)

    def _told(self, task: asyncio.Task[None]) -> None:
        """A worker was told to stop; where that failed, the connection is gone, as the worker will find."""
        self._background.discard(task)
        if not task.cancelled():
            task.exception()


def _put(waiting: Exchange | asyncio.Queue[Msg | McpError], message: Msg | McpError) -> None:
    if isinstance(waiting, Exchange):
        waiting.put(message)
    else:
        waiting.put_nowait(message)


def _read_info(result: Mapping[str, Any]) -> ServerInfo:
    """What ``server/discover`` says; whatever has another form is left out."""
    about = as_object(result.get("serverInfo")) or {}
    versions = result.get("supportedVersions")
    return ServerInfo(
        name=_text(about.get("name")),
        version=_text(about.get("version")),
        protocol=_text(cast("list[object]", versions)[0]) if isinstance(versions, list) and versions else "",
        capabilities=as_object(result.get("capabilities")) or {},
        instructions=_text(result.get("instructions")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
