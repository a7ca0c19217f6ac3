"""A link over HTTP, on the SDK's transports.

The SDK has no signal for a server that went away or forgot the session, so what it reads from ends here
when the client underneath (``http_client``) has met one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, cast

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError

from yiemagent_nb.core.errors import McpConnectionError, McpError, McpTimeoutError
from yiemagent_nb.core.proxies import is_loopback, proxy_for
from yiemagent_nb.core.redaction import mask_logs
from yiemagent_nb.mcp.link import NOT_DELIVERED, Inbox, Link, OnProgress, ServerInfo
from yiemagent_nb.mcp.links.http import HttpTarget
from yiemagent_nb.mcp.links.http_client import AnsweringClient, Failures
from yiemagent_nb.mcp.links.http_errors import MAX_MESSAGE_BYTES, Credentials, Place
from yiemagent_nb.mcp.links.sdk import open_sdk_link
from yiemagent_nb.mcp.links.sdk_messages import LoggedStreams
from yiemagent_nb.mcp.links.server_text import without_controls

__all__ = ["open_http_link"]

CONNECT_SECONDS = 5.0

_LIMITS: Final = httpx2.Limits(
    # A call holds a connection until it is answered. Idle ones are given up before servers close
    # theirs (uvicorn: after 5 seconds), since a request sent into a closing one is lost.
    max_connections=None,
    max_keepalive_connections=50,
    keepalive_expiry=3.0,
)
_CARRIERS = ("mcp.client.streamable_http", "mcp.client.sse", "mcp.client.auth.oauth2")
"""The SDK's loggers that write what servers answered."""


@asynccontextmanager
async def open_http_link(target: HttpTarget, inbox: Inbox) -> AsyncGenerator[Link]:
    """Open a link over HTTP.

    Args:
        target: What is reached.
        inbox: Takes what the server says by itself.

    Raises:
        McpError: The server cannot be reached, refused, or is none; the message says why.
    """
    mask_logs(*_CARRIERS)
    async with AsyncExitStack() as stack:
        client = target.client
        if client is None:
            timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
            client = await stack.enter_async_context(
                httpx2.AsyncClient(timeout=timeout, limits=_LIMITS, trust_env=not is_loopback(target.shown))
            )
        failures = Failures()
        place = _place(target, client)
        sender = AnsweringClient(
            client,
            place,
            failures,
            headers={name: value.get_secret_value() for name, value in target.headers.items()},
            auth=target.auth if target.login is None else target.login.signer(target.url.get_secret_value()),
            events_only=target.sse,
        )
        streams = LoggedStreams(_streams(target, sender, failures), inbox.log)
        opening = open_sdk_link(streams, inbox, why_closed=lambda: _reason(failures), mask=place.redacted)
        try:
            link = await stack.enter_async_context(opening)
        except Exception as error:
            causes = tuple(_mcp_errors(error))
            told = (failures.told(cause.data) for cause in causes)
            if (found := next(filter(None, told), failures.end)) is not None:
                raise found.error from None
            raise (place.read(causes[0]) if causes else error) from None
        failures.opened = True
        yield _HttpLink(link, place, failures)


@asynccontextmanager
async def _streams(target: HttpTarget, sender: AnsweringClient, failures: Failures) -> AsyncGenerator[Any]:
    """The SDK's transport, whose stream to read ends with the connection."""
    url = target.url.get_secret_value()

    def make_client(
        headers: dict[str, str] | None = None,  # noqa: ARG001 - the SDK's signature
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001
        auth: httpx2.Auth | None = None,  # noqa: ARG001
    ) -> httpx2.AsyncClient:
        return sender

    streams: AbstractAsyncContextManager[Any] = (
        sse_client(url, httpx_client_factory=make_client)
        if target.sse
        else streamable_http_client(url, http_client=sender, max_sse_event_size=MAX_MESSAGE_BYTES)
    )
    async with streams as (read, write):
        yield _EndableStream(read, failures), write


def _place(target: HttpTarget, client: httpx2.AsyncClient) -> Place:
    login = target.login
    credentials: Credentials = "none"
    if login is not None:
        credentials = "login"
    elif target.auth or client.auth or target.signed or "authorization" in client.headers:
        credentials = "token"

    def redacted(text: str) -> str:
        text = target.redacted(without_controls(text))
        return text if login is None else login.redacted(text)

    proxy = proxy_for(target.shown) if target.client is None else None  # a person's own client has its own
    return Place(target.shown, credentials, redacted, client.timeout.connect, proxy)


class _EndableStream(ObjectReceiveStream[SessionMessage | Exception]):
    """What the SDK's session reads from: the messages of a transport, until the connection is over."""

    def __init__(self, inner: Any, failures: Failures) -> None:
        self._inner = inner
        self._failures = failures
        self._over = False
        self._waiting: anyio.CancelScope | None = None
        failures.when_over = self.end

    def end(self) -> None:
        """Let whoever reads find the end."""
        self._over = True
        if self._waiting is not None:
            self._waiting.cancel()

    @property
    def last_context(self) -> object:
        """The context in which the last message was sent; the SDK asks for it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        if not self._over:
            with anyio.CancelScope() as self._waiting:
                item = await self._inner.receive()
                self._over = self._tells_the_end(item)
                return item
        raise anyio.EndOfStream

    def _tells_the_end(self, item: SessionMessage | Exception) -> bool:
        if self._failures.end is None or not isinstance(item, SessionMessage):
            return False
        message = item.message
        return isinstance(message, JSONRPCError) and self._failures.told(message.error.data) is self._failures.end

    async def aclose(self) -> None:
        """Close the transport's stream."""
        await self._inner.aclose()


class _HttpLink:
    """A link whose errors say what happened at the HTTP below it."""

    def __init__(self, inner: Link, place: Place, failures: Failures) -> None:
        self._inner = inner
        self._place = place
        self._failures = failures

    @property
    def info(self) -> ServerInfo:
        """See ``Link``."""
        return self._inner.info

    @property
    def silence(self) -> str:
        """See ``Link``."""
        return self._inner.silence

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the server is told when the time is over
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """See ``Link``."""
        end = self._failures.end
        if end is not None:
            await asyncio.sleep(0)  # so that its owner hears of it
            raise self._place.gone(end, delivered=False)
        try:
            return await self._inner.request(method, params, timeout=timeout, on_progress=on_progress)
        except McpTimeoutError:
            raise
        except McpError as error:
            raise self._explained(error) from None

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """See ``Link``."""
        await self._inner.notify(method, params)

    async def wait_closed(self) -> str:
        """See ``Link``."""
        return await self._inner.wait_closed()

    def _explained(self, error: McpError) -> McpError:
        end = self._failures.end
        told = self._failures.told(error.data)
        if end is not None and told is end:
            return self._place.gone(end, delivered=end.error.data != NOT_DELIVERED)
        if told is not None:
            return told.error
        if isinstance(error, McpConnectionError) and end is not None:
            return self._place.gone(end, delivered=True)
        if isinstance(error, McpConnectionError):
            return self._place.ended().error
        return self._place.read(error)


def _mcp_errors(error: BaseException) -> Iterator[McpError]:
    """An error of MCP, or those in a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _mcp_errors(each)
    elif isinstance(error, McpError):
        yield error


def _reason(failures: Failures) -> str:
    return "the connection ended" if failures.end is None else failures.end.reason
