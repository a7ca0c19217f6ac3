"""HTTP to a model server: everything of httpx2 stands behind this module.

One ``AsyncClient`` serves one event loop, with keep-alive. Errors leave it typed, with the server's
own words and without keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import ssl
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast
from urllib.parse import urlsplit

import httpx2

from yiemagent_nb.backends.bodies import parse_json, plain_text
from yiemagent_nb.backends.redaction import Redactor, checked_key
from yiemagent_nb.backends.retry import Attempts, RetryPolicy, read_retry_after
from yiemagent_nb.core.errors import (
    BackendConnectionError,
    BackendError,
    BackendTimeoutError,
    InvalidParametersError,
    StreamInterruptedError,
)
from yiemagent_nb.core.reading.server_errors import quote, server_error

__all__ = ["NOTHING_LISTENS", "Answer", "AsyncHttpClient", "HttpConnection", "Timeouts", "is_loopback"]

NOTHING_LISTENS = "Nothing listens there: start the server, or check host and port."
"""What to do where a connection was refused."""

_MAX_ERROR_BYTES = 65_536
_OK, _REDIRECT, _ERROR = 200, 300, 400
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - recognised, not bound


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds that each phase of a request may take; None waits without end.

    Args:
        connect: To open a connection.
        first_byte: Until the answer begins; a server may first load its model.
        between_bytes: From one piece of a streamed answer to the next.
        write: To send each part of the request.
    """

    connect: float | None = 5.0
    first_byte: float | None = 600.0
    between_bytes: float | None = 120.0
    write: float | None = 60.0


class AsyncHttpClient(Protocol):
    """What is used of an ``httpx.AsyncClient`` or ``httpx2.AsyncClient``."""

    def build_request(self, method: str, url: str, *, content: bytes | None, headers: Mapping[str, str]) -> Any:
        """Make a request, with the client's own headers and timeouts."""
        ...

    async def send(self, request: Any, *, stream: bool) -> Any:
        """Send it; with ``stream`` the body is left to be read."""
        ...


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    return (urlsplit(url).hostname or "") in _LOOPBACK


class HttpConnection:
    """Requests to one server.

    Args:
        base_url: The server's address, without a path's last slash.
        headers: Sent with each request.
        key: Gives the API key, asked at each request; it is sent as a bearer token, and no error
            repeats it.
        timeouts: By phase.
        retries: How often a request is repeated.
        client: A user's own client, used as it is and never closed here; its timeouts count.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        key: Callable[[], str | None] = lambda: None,
        timeouts: Timeouts,
        retries: RetryPolicy,
        client: AsyncHttpClient | None = None,
    ) -> None:
        if urlsplit(base_url).scheme not in {"http", "https"} or not urlsplit(base_url).hostname:
            raise InvalidParametersError(
                f"base_url {quote(base_url, 100)!r} is no web address.", "Give it as http://host:port/v1."
            )
        if client is not None and not inspect.iscoroutinefunction(getattr(client, "send", None)):
            raise InvalidParametersError(
                f"http_client is {type(client).__name__}; expected an httpx.AsyncClient or httpx2.AsyncClient."
            )
        self.base_url = base_url
        self.shown = _shown(base_url)
        self._headers = {
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "yiemagent_nb",
            **headers,
        }
        self._key = key
        self.redacted = Redactor(base_url, headers)
        """Masks the keys of this connection in a text."""
        self._timeouts = timeouts
        self._retries = retries
        self._client = client
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient]
        self._clients = weakref.WeakKeyDictionary()
        self._urls: dict[str, tuple[httpx2.URL, list[tuple[bytes, bytes]]]] = {}

    def attempts(self) -> Attempts:
        """A count of the attempts at one request."""
        return Attempts(self._retries, self._timeouts.first_byte or float("inf"))

    async def open(self, path: str, body: bytes | None, attempts: Attempts) -> Answer:
        """Send a request (POST with a body, else GET) and wait for the head of its answer.

        The answer is a context manager that gives the connection back.

        Raises:
            BackendError: There is no answer, or it is an error.
        """
        key = checked_key(self._key() or "")
        self.redacted.add(key)
        try:
            response = await self._send(path, body, key)
        except Exception as error:
            # Not "from error": the frames behind it hold the request's headers.
            raise self._wrap(error, began=False) from None
        answer = Answer(self, response, None if self._client is not None else self._timeouts.between_bytes)
        if _OK <= answer.status < _REDIRECT:
            return answer
        async with answer:
            words = await answer.read(_MAX_ERROR_BYTES)
        attempts.retry_after = read_retry_after(answer.headers)
        raise self._refusal(answer, words, attempts.retry_after)

    async def read_json(self, path: str, body: bytes | None = None) -> Any:
        """Send a request and read its answer as JSON, asking again where that may help.

        Raises:
            BackendError: There is no answer, it is an error, or it is no JSON.
        """
        attempts = self.attempts()
        while True:
            try:
                async with await self.open(path, body, attempts) as answer:
                    return parse_json(await answer.read(), answer.media_type)
            except BackendError as error:
                self.redact(error)
                if not await attempts.again(error):
                    raise

    def redact(self, error: BackendError) -> None:
        """Take keys out of an error that repeats what a server said."""
        error.message = self.redacted(error.message)
        error.args = (error.message, error.hint)

    async def aclose(self) -> None:
        """Close the connections of this event loop. A later request opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _send(self, path: str, body: bytes | None, key: str) -> Any:
        method = "GET" if body is None else "POST"
        authorization = {"Authorization": f"Bearer {key}"} if key else {}
        if self._client is not None:
            request = self._client.build_request(
                method, self.base_url + path, content=body, headers={**self._headers, **authorization}
            )
            return await self._client.send(request, stream=True)
        # Built by hand: the client's own way to a request costs as much as a tool call.
        made = self._urls.get(path)
        if made is None:
            url = httpx2.URL(self.base_url + path)
            fixed = {"Host": url.netloc.decode("ascii"), "Connection": "keep-alive", **self._headers}
            made = self._urls[path] = (url, [(key.encode(), value.encode()) for key, value in fixed.items()])
        url, pairs = made
        content = body or b""
        headers = [*pairs, (b"Content-Length", b"%d" % len(content))]
        headers += [(name.encode(), value.encode()) for name, value in authorization.items()]
        limits = self._timeouts
        phases = {"connect": limits.connect, "read": limits.first_byte, "write": limits.write, "pool": None}
        request = httpx2.Request(
            method,
            url,
            headers=headers,
            stream=httpx2.ByteStream(content),
            extensions={"timeout": phases},
        )
        return await self._own_client().send(request, stream=True)

    def _own_client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            secure = self.base_url.startswith("https:")
            client = self._clients[loop] = httpx2.AsyncClient(
                # A plain connection needs no certificates, which take longer to load than all else.
                verify=True if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                trust_env=not is_loopback(self.base_url),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0),
            )
        return client

    def _refusal(self, answer: Answer, content: bytes, retry_after: float | None) -> BackendError:
        if answer.status < _ERROR:
            target = quote(self.redacted(answer.headers.get("location", "nowhere")), 200)
            return server_error(f"moved to {target}", status=404)
        text = self._decode(content)
        try:
            body: object = json.loads(text)
        except (ValueError, RecursionError):
            body = plain_text(text) or f"no words, only status {answer.status}"
        return server_error(body, status=answer.status, retry_after=retry_after)

    def _decode(self, content: bytes) -> str:
        return self.redacted(content.decode("utf-8", "replace"))

    def _wrap(self, error: Exception, *, began: bool) -> BackendError:
        """The typed error for what httpx or httpx2 raised, told by its name, which both share."""
        kinds = {kind.__name__ for kind in type(error).__mro__}
        where = self.shown
        words = self._decode(str(error).encode("utf-8", "replace"))
        if "ConnectTimeout" in kinds:
            return BackendConnectionError(
                f"No connection to {where} within {self._timeouts.connect} seconds.",
                "Check the address, and that the server can be reached from here.",
            )
        if "TimeoutException" in kinds or isinstance(error, TimeoutError):
            return _timeout(where, self._timeouts, began=began)
        if "ConnectError" in kinds or "ProxyError" in kinds:
            return BackendConnectionError(f"No connection to {where}: {quote(words, 150)}.", _unreachable(words))
        if "TransportError" in kinds or "StreamError" in kinds:
            if began:
                return StreamInterruptedError(
                    f"The connection to {where} broke within the answer: {quote(words, 150) or type(error).__name__}.",
                    "Ask again; what has come is kept.",
                )
            return BackendConnectionError(
                f"The connection to {where} broke: {quote(words, 150) or type(error).__name__}.",
                "See whether the server still runs, then ask again.",
            )
        return BackendError(f"The request to {where} failed: {type(error).__name__}: {quote(words, 150)}.")

    def interrupted(self, error: Exception) -> BackendError:
        """The typed error for what was raised while a body was read."""
        return self._wrap(error, began=True)

    def silent(self) -> BackendTimeoutError:
        """The error for a body that stopped coming."""
        return _timeout(self.shown, self._timeouts, began=True)


class Answer:
    """The answer to one request: its head, and its body as it comes.

    Args:
        connection: Whose errors it raises.
        response: httpx's response, its body unread.
        between_bytes: Seconds from one chunk of the body to the next; None leaves it to the client.
    """

    def __init__(self, connection: HttpConnection, response: Any, between_bytes: float | None) -> None:
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._connection = connection
        self._response = response
        encoded = self.headers.get("content-encoding", "identity") != "identity"
        body = response.aiter_bytes() if encoded or response.is_stream_consumed else response.stream
        self._chunks = cast("AsyncGenerator[bytes, None]", aiter(body))
        self._next = self._chunks.__anext__
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
        watch = self._watch
        try:
            if watch is None:
                return await self._next()
            watch.turn += 1
            watch.task = asyncio.current_task()
            chunk = await self._next()
            watch.task = None
        except StopAsyncIteration:
            return b""
        except asyncio.CancelledError:
            if watch is not None and watch.expired():
                raise self._connection.silent() from None
            raise
        except Exception as error:
            raise self._connection.interrupted(error) from None
        return chunk

    async def read(self, limit: int | None = None) -> bytes:
        """The rest of the body, or its first ``limit`` bytes.

        Raises:
            BackendError: As in ``chunk``.
        """
        chunks: list[bytes] = []
        size = 0
        while (limit is None or size < limit) and (chunk := await self.chunk()):
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks)

    async def aclose(self) -> None:
        """Give the connection back, or close it where the body was not read to its end."""
        if self._watch is not None:
            self._watch.stop()
        await self._chunks.aclose()
        await self._response.aclose()

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


def _shown(base_url: str) -> str:
    """An address without the name and password that may stand in it."""
    parts = urlsplit(base_url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _timeout(where: str, timeouts: Timeouts, *, began: bool) -> BackendTimeoutError:
    if began:
        return BackendTimeoutError(
            f"The answer of {where} stopped: nothing came for {timeouts.between_bytes} seconds.",
            "Ask again, or allow more time with Timeouts(between_bytes=…); what has come is kept.",
        )
    return BackendTimeoutError(
        f"{where} did not begin to answer within {timeouts.first_byte} seconds.",
        "See what the server is doing, or allow more time with Timeouts(first_byte=…).",
    )


def _unreachable(words: str) -> str:
    lowered = words.lower()
    if any(said in lowered for said in ("name or service", "nodename", "getaddrinfo", "name resolution", "no address")):
        return "No such host is known: check the name in the base URL and the network."
    if "certificate" in lowered or "ssl" in lowered or "tls" in lowered:
        return "The server's certificate is not trusted, or it speaks no TLS: check https or http in the base URL."
    return NOTHING_LISTENS
