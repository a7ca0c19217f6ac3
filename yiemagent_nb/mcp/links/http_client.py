"""The HTTP client under the SDK's transports: it answers where another one would raise.

The SDK's transports end a whole connection with an exception group for one request that found no
server, and tell an unexpected answer in words that help nobody. This client stands between them and
the network. What is no message of MCP becomes a JSON-RPC error for the one request that met it; what
means that the server or the session is gone is remembered, and ends the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, cast

import httpx2
from mcp.client.auth import OAuthFlowError

from yiemagent_nb.core.errors import McpError
from yiemagent_nb.mcp.links.http_errors import Answer, Failure, Place

__all__ = ["AnsweringClient", "Failures"]

GOODBYE_SECONDS = 2.0
"""How long the end of a session may take at the server."""

MAX_REFUSAL_BYTES = 65_536
"""So much of an answer that is an error is read."""

OLDER_EVENT_BYTES = 2**20
"""The SDK's limit for a message over the older transport, which cannot be changed."""

_SESSION: Final = "mcp-session-id"
_SERVER_ERROR: Final = -32000
_JSON, _EVENTS = "application/json", "text/event-stream"


class Failures:
    """What went wrong on one connection, and so whether it is over."""

    def __init__(self) -> None:
        self.end: Failure | None = None
        """Why the connection is over; None while it is not."""
        self.opened = False
        """Whether the handshake is done; before that, a refusal that nothing mends is the end."""
        self.when_over: Callable[[], None] = lambda: None
        """Called when the connection is over and nothing comes from it any more."""
        self._mark = secrets.token_hex(8)  # no server can name it
        self._told: list[Failure] = []

    def note(self, failure: Failure) -> None:
        """Remember a failure of which no answer tells; one that ends the connection does so at once."""
        self._remember(failure)
        if self.end is not None:
            self.when_over()

    def tell(self, failure: Failure) -> httpx2.Response:
        """A failure as the answer to a request: a JSON-RPC error, after which a connection that is over ends."""
        self._remember(failure)
        self._told.append(failure)
        data = {self._mark: len(self._told) - 1}
        error = {"code": _SERVER_ERROR, "message": failure.error.message, "data": data}
        return httpx2.Response(HTTPStatus.BAD_GATEWAY, json={"jsonrpc": "2.0", "id": None, "error": error})

    def told(self, data: object) -> Failure | None:
        """The failure that became an error with this ``data``."""
        if not isinstance(data, dict) or self._mark not in data:
            return None
        return self._told[cast("dict[str, int]", data)[self._mark]]

    def _remember(self, failure: Failure) -> None:
        if self.end is None and (failure.ends or (failure.final and not self.opened)):
            self.end = failure


class AnsweringClient(httpx2.AsyncClient):
    """Sends through another client, and turns what is no message of MCP into a JSON-RPC error.

    Args:
        inner: Sends the requests. It is not closed.
        place: The server's address, for errors.
        failures: Take what goes wrong.
        headers: Sent with each request.
        auth: Signs each request; None leaves it to ``inner``.
        events_only: Whether answers come on one stream of events, as in the older transport: then a request
            that fails ends the connection, and the stream that does not open raises.
    """

    def __init__(
        self,
        inner: httpx2.AsyncClient,
        place: Place,
        failures: Failures,
        *,
        headers: dict[str, str],
        auth: httpx2.Auth | None,
        events_only: bool,
    ) -> None:
        super().__init__(transport=httpx2.AsyncBaseTransport(), max_redirects=inner.max_redirects)
        self._inner = inner
        self._place = place
        self._failures = failures
        self._own_headers = headers
        if auth is None and any(name.lower() == "authorization" for name in headers):
            auth = httpx2.Auth()  # which adds nothing: a login in the address or the client's would replace the header
        self._own_auth = httpx2.USE_CLIENT_DEFAULT if auth is None else auth
        self._events_only = events_only
        self._listened = False
        # A stream of events may be silent for hours; a request has a timeout of its own above this.
        self._own_timeout = httpx2.Timeout(None, connect=place.connect_timeout).as_dict()

    def build_request(self, method: str, url: httpx2.URL | str, **options: Any) -> httpx2.Request:
        """A request with what the inner client sends always, and this one's headers."""
        request = self._inner.build_request(method, url, **options)
        given = httpx2.Headers(options.get("headers"))
        for name, value in self._own_headers.items():
            if name not in given:
                request.headers[name] = value
        request.extensions["timeout"] = dict(self._own_timeout)
        return request

    async def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        auth: Any = None,
        follow_redirects: Any = False,
    ) -> httpx2.Response:
        """Send a request; returns the server's answer, or one that says what went wrong.

        Raises:
            McpError: A stream of events cannot be opened; the SDK takes it.
        """
        del stream, auth, follow_redirects  # the transports read every answer as a stream and follow nothing
        if request.method == "DELETE":
            return await self._say_goodbye(request)
        failure = self._failures.end
        if failure is None:
            answer = await self._ask(request)
            if isinstance(answer, httpx2.Response):
                return answer
            failure = answer
        if self._events_only:
            failure = replace(failure, ends=True)
        elif request.method == "POST" and _asks(request):
            response = self._failures.tell(failure)
            response.request = request
            return response
        self._failures.note(failure)
        if request.method == "GET":
            raise failure.error
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)

    async def _ask(self, request: httpx2.Request) -> httpx2.Response | Failure:
        try:
            response = await self._send(request)
            return await (self._read_stream(request, response) if request.method == "GET" else self._read(response))
        except OAuthFlowError as error:
            return self._place.login_failed(error)
        except McpError as error:
            return Failure(error, "the login failed", final=True)
        except Exception as error:  # of the network, or of a person's own client or auth
            return self._place.broken(error) if self._failures.opened else self._place.unreachable(error)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        return await self._inner.send(request, stream=True, auth=self._own_auth, follow_redirects=False)

    async def _read_stream(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response | Failure:
        """The answer to a request for a stream of events."""
        if response.status_code == HTTPStatus.OK and _media_type(response) == _EVENTS:
            self._listened = True
            if self._events_only:
                response.stream = _QuietStream(cast("httpx2.AsyncByteStream", response.stream), self._end_of_stream)
            return response
        if self._events_only:
            return response if self._may_follow(response) else self._place.refusal(await _read_refusal(response))
        if self._listened and _SESSION in request.headers:
            failure = self._place.refusal(await _read_refusal(response))
            if failure.ends:
                return failure
            return httpx2.Response(response.status_code, request=request)
        return response  # many servers have no such stream, and the SDK does without

    async def _read(self, response: httpx2.Response) -> httpx2.Response | Failure:
        """The answer to a message."""
        media_type = _media_type(response)
        if response.is_success:
            if response.status_code == HTTPStatus.ACCEPTED or media_type == _EVENTS:
                return response
            if media_type == _JSON and b'"jsonrpc"' in await response.aread():
                return response
            if not _asks(response.request):
                return response
        elif self._may_follow(response):
            return response
        answer = await _read_refusal(response)
        failure = self._place.refusal(answer)
        if not (failure.ends or answer.location or self._events_only) and _is_error(answer):
            return httpx2.Response(
                answer.status, headers={"content-type": _JSON}, text=answer.body, request=response.request
            )
        return failure

    def _may_follow(self, response: httpx2.Response) -> bool:
        """Whether the SDK follows a redirect: at the same server, with the message kept."""
        following = response.next_request
        if following is None or following.method != response.request.method:
            return False
        here, there = response.request.url, following.url
        upgraded = (here.scheme, here.port, there.scheme, there.port) == ("http", None, "https", None)
        return here.host == there.host and (upgraded or (here.scheme, here.port) == (there.scheme, there.port))

    async def _say_goodbye(self, request: httpx2.Request) -> httpx2.Response:
        """End the session at the server, if it still listens; a session that does not end so expires there."""
        if self._failures.end is None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await (await self._send(request)).aclose()
        return httpx2.Response(HTTPStatus.NO_CONTENT, request=request)

    def _end_of_stream(self, error: Exception | None) -> None:
        if isinstance(error, _EventTooLargeError):
            failure = self._place.too_large(OLDER_EVENT_BYTES)
        elif error is None:
            failure = self._place.ended()
        else:
            failure = self._place.broken(error)
        self._failures.note(replace(failure, ends=True))


class _EventTooLargeError(Exception):
    """A server-sent event is larger than what the SDK reads."""


class _QuietStream(httpx2.AsyncByteStream):
    """A stream of events, which ends where another one would raise.

    Args:
        inner: The stream.
        ended: Called at its end, with the error that was not raised.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, ended: Callable[[Exception | None], None]) -> None:
        self._inner = inner
        self._ended = ended

    async def __aiter__(self) -> AsyncIterator[bytes]:
        failure: Exception | None = None
        size = 0
        try:
            async for chunk in self._inner:
                event_end = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\r\n\r\n"))
                size = len(chunk) - event_end if event_end >= 0 else size + len(chunk)
                if size > OLDER_EVENT_BYTES:
                    failure = _EventTooLargeError()
                    break
                yield chunk
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            failure = error
        self._ended(failure)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _read_refusal(response: httpx2.Response) -> Answer:
    """The beginning of an answer that is no message of MCP; its connection is given back."""
    content = b""
    try:
        if response.is_stream_consumed:
            content = response.content[:MAX_REFUSAL_BYTES]
        else:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) >= MAX_REFUSAL_BYTES:
                    break
    finally:
        await response.aclose()
    following = response.next_request
    location = "" if following is None else str(following.url.copy_with(userinfo=b"", query=None, fragment=None))
    return Answer(
        status=response.status_code,
        media_type=_media_type(response),
        body=content[:MAX_REFUSAL_BYTES].decode("utf-8", "replace"),
        challenge=response.headers.get("www-authenticate", ""),
        location=location,
        in_session=_SESSION in response.request.headers,
    )


def _is_error(answer: Answer) -> bool:
    """Whether an answer is a JSON-RPC error, which tells more than its status."""
    if answer.media_type != _JSON or answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return False
    return isinstance(_fields(answer.body).get("error"), dict) and "jsonrpc" in answer.body


def _asks(request: httpx2.Request) -> bool:
    """Whether a message wants an answer: a JSON-RPC request, no notification."""
    fields = _fields(request.content)
    return "id" in fields and "method" in fields


def _fields(text: str | bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
