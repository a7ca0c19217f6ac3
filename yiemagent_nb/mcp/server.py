"""McpServer: a server of tools, whatever carries it, as a person holds it."""

from __future__ import annotations

import asyncio
import logging
import math
import weakref
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError
from yiemagent_nb.core.runtime import CHECK_INTERVAL
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.mcp.connection import Connection, ServerState
from yiemagent_nb.mcp.link import NOT_DELIVERED, OnProgress, ServerInfo, Transport
from yiemagent_nb.mcp.links.callable import CallableTransport
from yiemagent_nb.mcp.log_writer import LogWriter
from yiemagent_nb.mcp.named_requests import NamedRequests, params_of
from yiemagent_nb.mcp.protocol_log import ProtocolLog
from yiemagent_nb.mcp.requests import Answerer, RequestHandler, read_roots

if TYPE_CHECKING:
    import httpx2
    from mcp.server import MCPServer, Server
    from nats.aio.client import Client as NatsClient

    from yiemagent_nb.mcp.links.nats import Binding
    from yiemagent_nb.mcp.links.sdk import Protocol
    from yiemagent_nb.mcp.oauth import OAuth

__all__ = ["McpServer", "ServerEvent"]

EventKind = Literal[
    "state",
    "tools_changed",
    "prompts_changed",
    "resources_changed",
    "resource_updated",
    "log",
    "stderr",
    "rubbish",
]

T = TypeVar("T")

MAX_NAME = 100

STATELESS_SINCE = "2026"
"""The versions of the protocol from then on ask for the roots when they need them, and are told nothing."""

_log = logging.getLogger("yiemagent_nb")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Something that happened at a server.

    ``data`` holds, by kind: ``state`` (state, error), ``log`` and ``resource_updated`` (the params of
    the notification), ``stderr`` and ``rubbish`` (line). All of it is untrusted.
    """

    kind: EventKind
    server: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


class McpServer(NamedRequests):
    """An MCP server: a callable that takes a method of MCP and its arguments.

    Nothing starts before it is used: the first request connects, and a connection that gets lost is
    opened again. It lives on in a task of its own, so cells may come and go. Made by ``stdio``,
    ``http``, ``sse``, ``in_process`` and ``nats``, or of any callable that answers ``("tools/list",)``
    and ``("tools/call", name, arguments)``.

    Args:
        transport: How to reach it: a callable, or a ``Transport``.
        name: What tools, approvals and messages call it. Default: made of the command or address.
        timeout: Seconds that the server may be silent while it works on a request; None waits without end.
            Each sign of progress begins them anew, and they stand still while a person is asked. A worker
            behind NATS has a time of its own beside it.
        connect_timeout: Seconds that connecting may take.
        enabled: False keeps it in the list without connecting.
        allow: The tools that may be used, by their names at the server; patterns such as ``read_*``
            too. Default: all.
        deny: Those that may not.
        roots: Folders that the server may know of: paths or ``file://`` addresses.
        on_sampling: Answers when the server asks for a model's answer: ``(params) -> answer``. Default:
            the agent that uses the server, after a person's approval.
        on_elicitation: Answers when the server asks a person something: ``(message, schema) -> values``.
            Default: the agent's ``questions``.
        max_result_characters: How much text of a result reaches a model; the rest is left out.

    Example::

        time = McpServer.stdio("uvx", "mcp-server-time")
        await time("tools/call", "get_current_time", {"timezone": "Europe/Lisbon"})
        agent = Agent(mcp_servers=[time])

    Raises:
        InvalidParametersError: An argument is wrong; the error names it.
    """

    def __init__(
        self,
        transport: Transport | Callable[..., Any],
        *,
        name: str | None = None,
        timeout: float | None = 60.0,
        connect_timeout: float = 30.0,
        enabled: bool = True,
        allow: Collection[str] | None = None,
        deny: Collection[str] = (),
        roots: Iterable[str | Path | Mapping[str, Any]] = (),
        on_sampling: Callable[..., Any] | None = None,
        on_elicitation: Callable[..., Any] | None = None,
        max_result_characters: int = 100_000,
    ) -> None:
        self._transport = _as_transport(transport)
        self.name = _default_name(self._transport) if name is None else _checked_name(name)
        self.timeout = None if timeout is None else _positive("timeout", timeout)
        self.connect_timeout = _positive("connect_timeout", connect_timeout)
        self._enabled = enabled
        self._allow = None if allow is None else _names("allow", allow)
        self._deny = _names("deny", deny)
        self.max_result_characters = int(_positive("max_result_characters", max_result_characters))
        self.answerers: list[Answerer] = []
        """Who answers what the server asks, the newest last; an agent puts itself here."""
        self._handler = RequestHandler(
            name=self.name,
            roots=roots,
            on_sampling=on_sampling,
            on_elicitation=on_elicitation,
            answerers=self.answerers,
        )
        self._connection: Connection | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._listeners: tuple[Callable[[ServerEvent], None], ...] = ()
        self._users: set[int] = set()
        self._held = False
        self._ids = count(1)
        self.log = ProtocolLog()
        """What crossed the connection, message by message."""

    @classmethod
    def stdio(
        cls,
        command: str | Path,
        *args: str | Path,
        env: Mapping[str, Any] | None = None,
        cwd: str | Path | None = None,
        **options: Any,
    ) -> Self:
        """A program that speaks MCP over its standard input and output.

        It starts with a small part of this process's environment; what it needs beside, such as keys,
        is given by ``env``, whose values may be ``SecretStr``. It ends with the connection, with
        everything that it started, and when this process dies.

        Args:
            command: The program.
            *args: Its arguments.
            env: Further variables.
            cwd: Where it runs. Default: here.
            **options: Those of ``McpServer``.
        """
        from yiemagent_nb.mcp.links.stdio import StdioTransport  # noqa: PLC0415 - only where it is needed

        return cls(StdioTransport(command, args, env=env, cwd=cwd), **options)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, Any] | None = None,
        auth: httpx2.Auth | OAuth | Any = None,
        client: httpx2.AsyncClient | None = None,
        **options: Any,
    ) -> Self:
        """A server at an address, over streamable HTTP.

        Args:
            url: The address, such as ``https://example.org/mcp``.
            headers: Sent with each request; values may be ``SecretStr``.
            auth: A bearer token (``SecretStr`` or ``str``), an ``OAuth``, or an ``httpx2.Auth``.
            client: Your own ``httpx2.AsyncClient``; it is not closed.
            **options: Those of ``McpServer``.
        """
        from yiemagent_nb.mcp.links.http import HttpTransport  # noqa: PLC0415

        return cls(HttpTransport(url, headers=headers, auth=auth, client=client), **options)

    @classmethod
    def sse(
        cls,
        url: str,
        *,
        headers: Mapping[str, Any] | None = None,
        auth: httpx2.Auth | OAuth | Any = None,
        client: httpx2.AsyncClient | None = None,
        **options: Any,
    ) -> Self:
        """A server at an address, over the older transport of HTTP with server-sent events."""
        from yiemagent_nb.mcp.links.http import HttpTransport  # noqa: PLC0415

        return cls(HttpTransport(url, headers=headers, auth=auth, client=client, sse=True), **options)

    @classmethod
    def in_process(cls, server: Server[Any] | MCPServer, *, protocol: Protocol = "auto", **options: Any) -> Self:
        """A server object of the ``mcp`` package, in this process.

        Args:
            server: An ``MCPServer`` or a low-level ``Server``.
            protocol: ``legacy`` for tools that ask the client something in mid-call.
            **options: Those of ``McpServer``.
        """
        from yiemagent_nb.mcp.links.in_process import InProcessTransport  # noqa: PLC0415

        return cls(InProcessTransport(server, protocol), **options)

    @classmethod
    def nats(
        cls,
        connection: NatsClient | str | Iterable[str],
        topic: str,
        sender_id: str = "",
        *,
        binding: Binding = "auto",
        connect_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """A server, or a group of workers, behind NATS.

        Args:
            connection: A client of nats-py, which is not closed, or addresses such as ``nats://host:4222``.
            topic: The subject on which the server listens.
            sender_id: Who asks, as the server is told.
            binding: ``json-rpc`` for plain request and reply, ``stateless`` for ``serve_on_nats``; ``auto``
                finds out.
            connect_options: Keywords for ``nats.connect``, such as ``token`` or ``tls``.
            **options: Those of ``McpServer``.
        """
        from yiemagent_nb.mcp.links.nats import NatsTransport  # noqa: PLC0415

        transport = NatsTransport(connection, topic, sender_id, binding=binding, options=connect_options)
        return cls(transport, **options)

    # What it is

    def __repr__(self) -> str:
        """Its name, how it is reached, and its state."""
        return f"<McpServer {self.name!r}, {self.kind} {self.target}, {self.state}>"

    @property
    def kind(self) -> str:
        """``stdio``, ``http``, ``sse``, ``nats``, ``in_process`` or ``callable``."""
        return self._transport.kind

    @property
    def target(self) -> str:
        """What is reached: a command or an address, without secrets."""
        return self._transport.target

    @property
    def state(self) -> ServerState:
        """``new``, ``connecting``, ``ready``, ``backoff`` (it tries again soon), ``failed`` or ``closed``."""
        return "new" if self._connection is None else self._connection.state

    @property
    def error(self) -> McpError | None:
        """Why it is not ready, where it failed or got lost."""
        return None if self._connection is None else self._connection.error

    @property
    def info(self) -> ServerInfo:
        """What it says of itself; empty before the first connection."""
        return ServerInfo() if self._connection is None else self._connection.info

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines that its process wrote to its standard error, 200 at most."""
        return () if self._connection is None else tuple(self._connection.stderr)

    @property
    def rubbish(self) -> int:
        """How many lines came that are no messages."""
        return 0 if self._connection is None else self._connection.rubbish

    @property
    def restarts(self) -> int:
        """How often it was connected again."""
        return 0 if self._connection is None else self._connection.restarts

    @property
    def latency(self) -> float | None:
        """The seconds that the newest small request took: a ping or a page of a list. None before the first."""
        return None if self._connection is None else self._connection.latency

    @property
    def in_use(self) -> bool:
        """Whether an agent uses it, or it was opened by hand."""
        return self._held or bool(self._users)

    # What may be used of it, which may change at any time

    @property
    def enabled(self) -> bool:
        """Whether it may be used at all. False disconnects it, and takes its tools away."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._enabled = enabled
        if not enabled and self._connection is not None:
            self._connection.close_soon()
        self._happened("tools_changed", {})

    @property
    def allow(self) -> tuple[str, ...] | None:
        """The tools that may be used, by names and patterns; None is all."""
        return self._allow

    @allow.setter
    def allow(self, allow: Collection[str] | None) -> None:
        self._allow = None if allow is None else _names("allow", allow)
        self._happened("tools_changed", {})

    @property
    def deny(self) -> tuple[str, ...]:
        """The tools that may not be used, by names and patterns."""
        return self._deny

    @deny.setter
    def deny(self, deny: Collection[str]) -> None:
        self._deny = _names("deny", deny)
        self._happened("tools_changed", {})

    @property
    def roots(self) -> tuple[Mapping[str, Any], ...]:
        """The folders that it may know of, in MCP's form."""
        return self._handler.roots

    async def set_roots(self, roots: Iterable[str | Path | Mapping[str, Any]]) -> None:
        """Let it know of other folders from now on; one that is connected is told that they changed.

        Raises:
            InvalidParametersError: One is no folder and no ``file://`` address; nothing was changed.
        """
        self._handler.roots = read_roots(roots)
        if self.state == "ready" and self.info.protocol < STATELESS_SINCE:
            await self.notify("notifications/roots/list_changed")

    def admits(self, tool: str) -> bool:
        """Whether a tool, by its name at the server, may be used: ``allow`` and ``deny``."""
        return (self._allow is None or _is_listed(tool, self._allow)) and not _is_listed(tool, self._deny)

    # Its life

    async def open(self) -> Self:
        """Connect now, and stay connected until ``close``.

        Raises:
            McpConnectionError: It cannot be reached, or did not start; with its last lines.
        """
        self._held = True
        await self._on_its_loop(lambda connection: connection.link())
        return self

    async def close(self) -> None:
        """Disconnect, and end what was started. A later request connects again."""
        self._held = False
        connection = self._connection
        if connection is None or not connection.usable:
            return
        if connection.loop is asyncio.get_running_loop():
            await connection.close()
        else:
            await _elsewhere(connection.close(), connection.loop)

    async def reconnect(self) -> Self:
        """Disconnect and connect again, from any event loop. Whoever uses it goes on using it.

        A request that waits for its answer ends with a ``McpConnectionError``.

        Raises:
            McpConnectionError: It cannot be reached, or did not start; with its last lines.
        """
        await self._on_its_loop(lambda connection: connection.reopen())
        return self

    async def check(self, timeout: float = 10.0) -> float:  # noqa: ASYNC109 - the server is told when the time is over
        """Connect where it is not connected, and see how long an answer takes.

        It is sent a ``ping``; one that answers none is asked for the first page of its tools.

        Args:
            timeout: The seconds that an answer may take.

        Returns:
            The seconds that it took; ``latency`` from then on.

        Raises:
            McpTimeoutError: It did not answer in time.
            McpConnectionError: It cannot be reached, or went away.
        """
        seconds = _positive("timeout", timeout)
        return await self._on_its_loop(lambda connection: connection.check(seconds))

    def refresh(self) -> None:
        """Have those who use it ask for its tools again, in the background, and connect where it is not connected."""
        self._happened("tools_changed", {})

    async def __aenter__(self) -> Self:
        """Connect."""
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        await self.close()

    def acquire(self, user: object) -> None:
        """Count a user, such as an agent: the server is closed when the last one lets go."""
        self._users.add(id(user))

    def release(self, user_id: int) -> None:
        """Let go, by the ``id`` of the user; from any thread."""
        self._users.discard(user_id)
        if not self._users and not self._held and self._connection is not None:
            self._connection.close_soon()

    # Asking it

    async def __call__(self, method: str, *arguments: Any) -> dict[str, Any]:
        """Send a request; returns the JSON-RPC envelope. What the server does wrong is in it, not raised.

        Args:
            method: A method of MCP, such as ``tools/list``.
            *arguments: ``tools/list`` takes a cursor, ``tools/call`` a name, arguments and the id of a
                session, ``prompts/get`` a name and arguments, ``resources/read`` a URI; any method takes
                its params as one mapping.

        Returns:
            ``{"jsonrpc": "2.0", "id": …, "result": {…}}``, or with ``"error": {"code", "message"}`` instead.

        Raises:
            InvalidParametersError: The arguments do not fit the method.
        """
        envelope: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self._ids)}
        params = params_of(method, arguments)
        try:
            return {**envelope, "result": await self.request(method, params)}
        except McpError as error:
            text = error.message if type(error) is McpError else str(error)
            failure: dict[str, Any] = {"code": error.rpc_code, "message": text}
            if error.data is not None:
                failure["data"] = error.data
            return {**envelope, "error": failure}

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the server is told when the time is over
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Send a request; returns its raw result.

        Args:
            method: A method of MCP.
            params: Its params, in MCP's JSON form.
            timeout: Seconds; default: the server's.
            on_progress: Called with each ``Progress``, on the server's event loop.

        Raises:
            McpError: The server answered with an error.
            McpTimeoutError: It did not answer in time, and was told so.
            McpConnectionError: It cannot be reached, or went away. The request is sent again only where the
                server has certainly not carried it out.
        """
        seconds = self.timeout if timeout is None else _positive("timeout", timeout)

        async def send(connection: Connection) -> dict[str, Any]:
            try:
                return await connection.send(method, params, seconds, on_progress)
            except McpConnectionError as error:
                if error.data != NOT_DELIVERED:
                    raise
            await connection.until_over()
            return await connection.send(method, params, seconds, on_progress)

        return await self._on_its_loop(send)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification.

        Raises:
            McpConnectionError: The server cannot be reached.
        """

        async def send(connection: Connection) -> None:
            link = await connection.link()
            await link.notify(method, params)

        await self._on_its_loop(send)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call ``listener(event)`` for what happens, on the server's event loop; returns what takes it back."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return unsubscribe

    # Underneath

    async def _on_its_loop(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        """Await ``work(connection)`` on the server's loop; this loop becomes the server's where it has none."""
        if not self.enabled:
            raise McpConnectionError(
                f"The server {self.name!r} is switched off.", "Make it with enabled=True, or set server.enabled."
            )
        connection = self._connection
        if connection is None or not connection.usable:
            connection = self._connect_here()
        if connection.loop is asyncio.get_running_loop():
            return await work(connection)
        return await _elsewhere(work(connection), connection.loop)

    def _connect_here(self) -> Connection:
        happened = weakref.WeakMethod(self._happened)  # the connection must not keep the server alive

        def tell(kind: str, data: Mapping[str, Any]) -> None:
            take = happened()
            if take is not None:
                take(cast("EventKind", kind), data)

        if self._finalizer is not None:
            self._finalizer()
        handler = self._handler
        connection = Connection(
            self._transport,
            connect_timeout=self.connect_timeout,
            log=LogWriter(self.log),
            tell=tell,
            requested=handler.handle,
        )
        self._connection = connection
        self._finalizer = weakref.finalize(self, connection.close_soon)
        return connection

    def _happened(self, kind: EventKind, data: Mapping[str, Any]) -> None:
        event = ServerEvent(kind, self.name, data)
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # of one listener: the others must hear of it all the same
                _log.exception("a listener of the MCP server %s raised", self.name)


async def _elsewhere(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Await ``work`` on another loop, which may end meanwhile."""
    over = McpConnectionError("The event loop of the server ended meanwhile.", "Ask again.")
    try:
        future = asyncio.run_coroutine_threadsafe(work, loop)
    except RuntimeError as error:  # it was closed in this very moment
        work.close()
        raise over from error
    waiting = asyncio.wrap_future(future)
    try:
        while not waiting.done():
            await asyncio.wait({waiting}, timeout=CHECK_INTERVAL)
            if not waiting.done() and not loop.is_running():
                raise over
        if waiting.cancelled():  # by the end of that loop: nobody cancels this task
            raise over
    finally:
        waiting.cancel()
    return waiting.result()


def _as_transport(given: object) -> Transport:
    if isinstance(given, McpServer):
        raise InvalidParametersError("This is an McpServer already.", "Use it as it is.")
    if all(hasattr(given, name) for name in ("kind", "target", "default_name", "open")):
        return cast("Transport", given)
    if callable(given):
        return CallableTransport(given)
    raise InvalidParametersError(
        f"McpServer takes a callable or a transport, not {shorten(given)}.",
        "Use McpServer.stdio(…), .http(…), .in_process(…) or .nats(…).",
    )


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InvalidParametersError(f"The name of a server must be text, not {shorten(name)}.")
    if len(name) > MAX_NAME or not name.isprintable():
        raise InvalidParametersError(
            f"The name of a server must be one line of at most {MAX_NAME} characters, not {shorten(name)}."
        )
    if name in _TAKEN_NAMES:
        raise InvalidParametersError(f"A server cannot have the name {name!r}: other tools come from there.")
    return name


_TAKEN_NAMES = ("python", "yiemagent_nb")


def _default_name(transport: Transport) -> str:
    name = "".join(letter if letter.isprintable() else "_" for letter in transport.default_name)[:MAX_NAME].strip()
    return f"{name}-server" if name in _TAKEN_NAMES else name or transport.kind


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InvalidParametersError(f"{name} must be a number above 0, not {shorten(value)}.")
    return value


def _is_listed(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(tool == pattern or fnmatchcase(tool, pattern) for pattern in patterns)


def _names(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InvalidParametersError(f"{name} must be a list of names of tools, not {shorten(value)}.")
    names = tuple(cast("Collection[object]", value))
    if not all(isinstance(each, str) for each in names):
        raise InvalidParametersError(f"{name} must be a list of names of tools, not {shorten(list(names))}.")
    return cast("tuple[str, ...]", names)
