"""HTTP to a model server: everything of httpx2 stands behind this module.

One ``AsyncClient`` serves one event loop, with keep-alive. Errors leave it typed, with the server's
own words and without keys: neither their text nor the variables of their tracebacks hold one, which
is why nothing is raised here while another exception is handled, or beside what a server said.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import inspect
import json
import ssl
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes, urlsplit

import httpx2
from pydantic import SecretStr

from yiemagent_nb.backends.http.answer import Answer
from yiemagent_nb.backends.http.bodies import parse_json
from yiemagent_nb.backends.http.network_errors import connection_error, connection_timeout
from yiemagent_nb.backends.http.retry import Attempts, RetryPolicy, read_retry_after
from yiemagent_nb.backends.http.tap import WireTap, masked
from yiemagent_nb.backends.http.urls import origin_of, split_url, without_login
from yiemagent_nb.core.errors import (
    BackendError,
    BackendNotFoundError,
    BackendTimeoutError,
    InvalidParametersError,
    StreamInterruptedError,
)
from yiemagent_nb.core.proxies import is_loopback
from yiemagent_nb.core.reading.error_words import plain_text
from yiemagent_nb.core.reading.server_errors import quote, server_error
from yiemagent_nb.core.redaction import Redactor, checked_key, mask_logs

__all__ = [
    "AsyncHttpClient",
    "HttpConnection",
    "RequestBody",
    "Timeouts",
]

_MAX_ERROR_BYTES = 65_536
_OK, _REDIRECT, _ERROR = 200, 300, 400


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

    def at_most(self, seconds: float) -> Timeouts:
        """These, none of them longer than ``seconds``."""
        phases = (self.connect, self.first_byte, self.between_bytes, self.write)
        return Timeouts(*(seconds if phase is None else min(phase, seconds) for phase in phases))


class AsyncHttpClient(Protocol):
    """What is used of an ``httpx.AsyncClient`` or ``httpx2.AsyncClient``."""

    def build_request(self, method: str, url: str, *, content: bytes | None, headers: Mapping[str, str]) -> Any:
        """Make a request, with the client's own headers and timeouts."""
        ...

    async def send(self, request: Any, *, stream: bool) -> Any:
        """Send it; with ``stream`` the body is left to be read."""
        ...


class RequestBody(bytes):
    """A request's body, of which tracebacks show no more than its size."""

    def __repr__(self) -> str:
        """The size."""
        return f"<{len(self)} bytes>"


class HttpConnection:
    """Requests to one server.

    Args:
        base_url: The server's address, without a path's last slash. A name and a password in it are
            sent as ``Authorization: Basic``, and shown nowhere.
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
        login = split_url(base_url).netloc.rpartition("@")[0]
        if client is not None and not inspect.iscoroutinefunction(getattr(client, "send", None)):
            raise InvalidParametersError(
                f"http_client is {type(client).__name__}; expected an httpx.AsyncClient or httpx2.AsyncClient."
            )
        headers = _checked_headers(headers)
        self.base_url = without_login(base_url)
        self.shown = self.base_url
        self._headers = {
            "Accept": "application/json, text/event-stream",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": "yiemagent_nb",
            **headers,
        }
        self._key = key
        self._login = SecretStr(_basic(login))
        self.redacted = Redactor()
        """Masks the keys of this connection in a text."""
        self.redacted.add_fields(headers)
        self.redacted.add_login(login)
        mask_logs()
        self._timeouts = timeouts
        self._retries = retries
        self._client = client
        self._clients: dict[asyncio.AbstractEventLoop, tuple[httpx2.AsyncClient, AsyncGenerator[None]]]
        self._clients = {}
        self._urls: dict[str, tuple[httpx2.URL, list[tuple[bytes, bytes]]]] = {}

    def beside(self, path: str) -> HttpConnection:
        """The same server with another path as its base; key, headers and open connections are shared."""
        other = copy.copy(self)
        other.base_url = urlsplit(self.base_url)._replace(path=path).geturl()
        return other

    @property
    def has_users_client(self) -> bool:
        """Whether requests go through a user's own client, which belongs to one event loop."""
        return self._client is not None

    @property
    def has_key(self) -> bool:
        """Whether requests carry a key, a login, or a header with one.

        Raises:
            AuthenticationError: The key is to come from a variable that is not set.
        """
        names = {name.lower() for name in (*self._headers, *getattr(self._client, "headers", ()))}
        return bool(self._key() or self._login) or not names.isdisjoint({"authorization", "api-key", "x-api-key"})

    def at(self, base_url: str, seconds: float) -> HttpConnection:
        """A connection to look what is at an address, with no more patience than this, asking once.

        Keys, headers and a user's client go along only where scheme, host and port are the same.
        """
        is_same = origin_of(base_url) == origin_of(self.base_url)
        other = HttpConnection(
            base_url,
            headers=self._headers if is_same else {},
            key=self._key if is_same else lambda: None,
            timeouts=self._timeouts.at_most(seconds),
            retries=RetryPolicy(0),
            client=self._client if is_same else None,
        )
        if is_same:
            other._login = self._login
        other.redacted = self.redacted
        return other

    def attempts(self) -> Attempts:
        """A count of the attempts at one request."""
        return Attempts(self._retries, self._timeouts.first_byte or float("inf"))

    async def open(self, path: str, body: bytes | None = None) -> Answer:
        """Send a request (POST with a body, else GET) and wait for the head of its answer.

        The answer is a context manager that gives the connection back.

        Raises:
            BackendError: There is no answer, or it is an error.
        """
        key = checked_key(self._key() or "")
        self.redacted.add(key.get_secret_value())
        answer = await self._ask(path, body, key, WireTap.now(self.redacted))
        if isinstance(answer, Answer) and not _OK <= answer.status < _REDIRECT:
            answer = await self._refusal(answer)
        if isinstance(answer, Answer):
            return answer
        try:
            raise answer
        finally:
            del answer  # its traceback holds this frame

    async def read_json(self, path: str, body: bytes | None = None) -> Any:
        """Send a request and read its answer as JSON, without keys, asking again where that may help.

        Raises:
            BackendError: There is no answer, it is an error, or it is no JSON.
        """
        attempts = self.attempts()
        while True:
            try:
                async with await self.open(path, body) as answer:
                    return parse_json(await answer.read(), answer.media_type, self.redacted)
            except BackendError as error:
                self.redact(error)
                if not await attempts.again(error):
                    raise

    def redact(self, error: BackendError) -> None:
        """Take keys out of an error that repeats what a server said."""
        error.message, error.hint = self.redacted(error.message), self.redacted(error.hint)
        error.words = self.redacted(error.words)
        error.args = (error.message, error.hint)

    async def aclose(self) -> None:
        """Close the connections of this event loop. A later request opens new ones."""
        client, end = self._clients.pop(asyncio.get_running_loop(), (None, None))
        if client is not None and end is not None:
            await end.aclose()

    async def _ask(self, path: str, body: bytes | None, key: SecretStr, tap: WireTap | None) -> Answer | BaseException:
        try:
            response = await self._send(path, body, key, tap)
        except Exception as error:
            failure = self._wrap(error, began=False)
            if tap is not None:
                tap.ends(failure.message)
            return failure
        except BaseException as error:
            if tap is not None:
                tap.ends("It was stopped before an answer came.")
            return error.with_traceback(None)  # the frames behind it hold the request's headers
        return Answer(self, response, None if self._client is not None else self._timeouts.between_bytes, tap)

    async def _send(self, path: str, body: bytes | None, key: SecretStr, tap: WireTap | None) -> Any:
        method = "GET" if body is None else "POST"
        if self._login:
            authorization = {"Authorization": f"Basic {self._login.get_secret_value()}"}
        else:
            authorization = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        if self._client is not None:
            request = self._client.build_request(
                method, self.base_url + path, content=body, headers={**self._headers, **authorization}
            )
            if tap is not None:
                self.redacted.add_fields(request.headers)
                tap.sends(method, str(request.url), masked(request.headers), body or b"")
            try:
                return await self._client.send(request, stream=True)
            finally:
                self.redacted.add_fields(request.headers)  # those of the client, and of its auth
                if tap is not None:
                    tap.sent(masked(request.headers))
        # Built by hand: the client's own way to a request costs as much as a tool call.
        address = self.base_url + path
        made = self._urls.get(address)
        if made is None:
            url = httpx2.URL(address)
            fixed = {"Host": url.netloc.decode("ascii"), "Connection": "keep-alive", **self._headers}
            made = self._urls[address] = (url, [(name.encode(), value.encode()) for name, value in fixed.items()])
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
        if tap is not None:
            tap.sends(method, address, [*headers[: len(pairs) + 1], *masked(authorization)], content)
        return await (await self._own_client()).send(request, stream=True)

    async def _own_client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        client, _ = self._clients.get(loop, (None, None))
        if client is None or client.is_closed:
            for other in tuple(self._clients):
                if other.is_closed():
                    self._clients.pop(other, None)
            secure = self.base_url.startswith("https:")
            client = httpx2.AsyncClient(
                # A plain connection needs no certificates, which take longer to load than all else.
                # Made here, since SSL_CERT_FILE counts on this machine too, where no proxy does.
                verify=httpx2.create_ssl_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                trust_env=not is_loopback(self.base_url),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0),
            )
            end = _close_with_loop(weakref.ref(client))
            await anext(end)
            self._clients[loop] = client, end
        return client

    async def _refusal(self, answer: Answer) -> BaseException:
        """The typed error for an answer that is one, or what was raised while it was read."""
        async with answer:
            content, failure = await answer.read_or_failure(_MAX_ERROR_BYTES)
        if failure is not None and not isinstance(failure, BackendError):
            return failure
        # Where the body was cut, the status and what came of it still say more than that it was.
        if answer.status < _ERROR:
            location = quote(self.redacted(answer.headers.get("location", "")), 200)
            return BackendNotFoundError(
                f"{self.shown} has moved to {location or 'nowhere'} (status {answer.status}).",
                "Give the new address as base_url.",
                answer.status,
                location=location or None,
            )
        text = content.decode("utf-8", "replace")
        try:
            body = self.redacted.clean(json.loads(text))
        except (ValueError, RecursionError):
            body = plain_text(self.redacted(text)) or f"no words, only status {answer.status}"
        return server_error(body, status=answer.status, retry_after=read_retry_after(answer.headers, answer.status))

    def _wrap(self, error: Exception, *, began: bool) -> BackendError:
        """The typed error for what httpx or httpx2 raised, told by its name, which both share."""
        kinds = {kind.__name__ for kind in type(error).__mro__}
        where = self.shown
        words = self.redacted(str(error))
        if "ConnectTimeout" in kinds:
            return connection_timeout(where, self._timeouts.connect)
        if "TimeoutException" in kinds or isinstance(error, TimeoutError):
            return _timeout(where, self._timeouts, began=began)
        if kinds & {"TransportError", "StreamError", "OSError"}:
            if began:
                return StreamInterruptedError(
                    f"The connection to {where} broke within the answer: {quote(words, 150) or type(error).__name__}.",
                    "Ask again; what has come is kept.",
                )
            return connection_error(error, where, words)
        return BackendError(f"The request to {where} failed: {type(error).__name__}: {quote(words, 150)}.")

    def interrupted(self, error: Exception) -> BackendError:
        """The typed error for what was raised while a body was read."""
        return self._wrap(error, began=True)

    def silent(self) -> BackendTimeoutError:
        """The error for a body that stopped coming."""
        return _timeout(self.shown, self._timeouts, began=True)


async def _close_with_loop(kept: weakref.ref[httpx2.AsyncClient]) -> AsyncGenerator[None]:
    """Close a client when its event loop ends: asyncio then closes the generators that were begun on it.

    The client is not kept by this. One that nobody uses any more is gone before the generator is.
    """
    try:
        yield
    finally:
        client = kept()
        if client is not None:
            await client.aclose()


def _basic(login: str) -> str:
    """The credentials of a name and password, as they stand in a URL."""
    name, _, password = login.partition(":")
    return base64.b64encode(unquote_to_bytes(f"{name}:{password}")).decode() if login else ""


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers without the white space around their values.

    Raises:
        InvalidParametersError: One holds a line break or the like; the error does not repeat its value.
    """
    headers = {name: str(value).strip() for name, value in headers.items()}
    odd = [name for name, value in headers.items() if not (name + value.replace("\t", "")).isprintable()]
    if odd:
        raise InvalidParametersError(
            f"The header {odd[0]!r} holds a line break or another character that no header may hold.",
            "Give its value alone, without white space around it.",
        )
    return headers


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
