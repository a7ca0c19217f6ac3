"""What goes wrong between here and an MCP server over HTTP, each in one sentence with what to do.

The SDK tells most of it as "Server returned an error response", or as an exception group. So the
answers are read here, before it sees them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final, Literal, cast
from urllib.parse import urlsplit

from yiemagent_nb.core.errors import McpConnectionError, McpError, describe_error
from yiemagent_nb.core.proxies import Proxy
from yiemagent_nb.core.reading.error_words import plain_text, read_error
from yiemagent_nb.core.reading.network_causes import Cause, cause_behind
from yiemagent_nb.core.reading.server_errors import quote
from yiemagent_nb.mcp.link import NOT_DELIVERED

__all__ = ["MAX_MESSAGE_BYTES", "Answer", "Credentials", "Failure", "Place"]

Credentials = Literal["none", "token", "login"]
"""What is sent to show who asks: nothing, something that the person gave, or what a login brought."""

MAX_MESSAGE_BYTES = 256 * 2**20
"""The largest message that is read from a stream of events."""

_METHOD_NOT_FOUND = -32601
_SHOWN = 200
_TLS = 'give client=httpx2.AsyncClient(verify=ssl.create_default_context(cafile="…"))'
_HINTS: Final = {
    Cause.REFUSED: "Nothing listens there: start the server, or check host and port.",
    Cause.UNKNOWN_HOST: "Check the spelling of the host, and the network or VPN.",
    Cause.NO_ROUTE: "Check the network or VPN, and the host.",
    Cause.SLOW: "Check host and port, and whether a firewall or VPN is between.",
    Cause.PROXY: "Check HTTPS_PROXY and HTTP_PROXY, or add the host to NO_PROXY to go there directly.",
    Cause.NO_TLS: "Use http://, or the port at which the server speaks TLS.",
    Cause.NO_HTTP: "Check the port; a server with TLS needs https://.",
    Cause.CLOSED: "See whether the server still runs; one with TLS needs https://, one without http://.",
    Cause.EXPIRED: "Have it renewed on the server, or set this machine's clock.",
    Cause.NOT_YET_VALID: "Set this machine's clock, or the server's and have the certificate made anew.",
    Cause.OTHER_HOST: "Use the name that the certificate is for, or have one made for this name.",
    Cause.OWN_CERTIFICATE: (
        "Load yours into an ssl.SSLContext with load_cert_chain, and give client=httpx2.AsyncClient(verify=it)."
    ),
    **dict.fromkeys(
        (Cause.SELF_SIGNED, Cause.UNKNOWN_AUTHORITY, Cause.CERTIFICATE),
        f"If you trust it: set SSL_CERT_FILE to a file with its certificate before the notebook starts, or {_TLS}.",
    ),
}
_ONE_ATTEMPT: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})
"""Errors of httpx2 that come before a request was sent."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that went wrong.

    Args:
        error: What the caller gets.
        reason: The same in a few words, for why the connection ended.
        ends: Whether the connection is over.
        final: Whether asking in another way is of no use, as for want of a login.
    """

    error: McpError
    reason: str
    ends: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the server's that is no message of MCP.

    Args:
        status: Its HTTP status.
        media_type: Its content type, without parameters.
        body: What stands in it, or the beginning of that.
        challenge: Its ``WWW-Authenticate``.
        location: Where it redirects to.
        in_session: Whether the request named a session.
    """

    status: int
    media_type: str = ""
    body: str = ""
    challenge: str = ""
    location: str = ""
    in_session: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A server's address, as errors tell of it.

    Args:
        shown: The address without secrets.
        credentials: What is sent to show who asks.
        redacted: Masks secrets in a text.
        connect_timeout: Seconds that reaching it may take.
        proxy: Through which proxy it is reached, as the environment says; None where it is reached directly.
    """

    shown: str
    credentials: Credentials
    redacted: Callable[[str], str]
    connect_timeout: float | None
    proxy: Proxy | None = None

    def unreachable(self, error: Exception) -> Failure:
        """What the HTTP library raised instead of an answer."""
        names = {kind.__name__ for kind in type(error).__mro__}
        said = quote(self.redacted(str(error)), 150)
        if "ConnectTimeout" in names:
            reason = f"{Cause.SLOW} {self.connect_timeout:g} seconds" if self.connect_timeout else "it is too slow"
            hint = _HINTS[Cause.SLOW]
        elif (cause := cause_behind(error)) is not None:
            detail = f' "{said}"' if cause is Cause.PROXY else f" ({said})" if cause is Cause.CERTIFICATE else ""
            reason, hint = f"{cause}{detail}", _HINTS[cause]
        else:
            reason = f"the connection broke ({said or describe_error(error)})"
            hint = "See whether the server still runs, then ask again."
        sent = not names & _ONE_ATTEMPT
        where = self.shown
        if self.proxy is not None and not sent:
            where = f"{where} through the proxy {self.proxy.shown}, which {self.proxy.variable} names"
            hint = _HINTS[Cause.PROXY]
        return Failure(
            McpConnectionError(f"No connection to {where}: {reason}.", hint, data=None if sent else NOT_DELIVERED),
            reason,
            ends=not sent,
        )

    def broken(self, error: Exception) -> Failure:
        """The same, on a connection that has been good: what was sent may have been carried out."""
        failure = self.unreachable(error)
        return failure if failure.ends else replace(self.ended(), reason=failure.reason)

    def login_failed(self, error: Exception) -> Failure:
        """The login did not come about."""
        words = quote(self.redacted(str(error)), _SHOWN)
        return Failure(
            McpError(
                f"The login for {self.shown} failed: {words.rstrip('.')}.",
                "Ask again to begin a new one.",
                data={"status": HTTPStatus.UNAUTHORIZED},
            ),
            "the login failed",
            final=True,
        )

    def forgotten(self) -> Failure:
        """The server does not know the session any more, as after a restart."""
        error = McpConnectionError(
            f"{self.shown} does not know this session any more.", "It was started anew; ask again.", data=NOT_DELIVERED
        )
        return Failure(error, "it does not know the session any more", ends=True)

    def gone(self, end: Failure, *, delivered: bool) -> McpConnectionError:
        """The error of a request that met the end of the connection."""
        return McpConnectionError(
            f"The connection to {self.shown} ended: {end.reason}.",
            end.error.hint,
            data=None if delivered else NOT_DELIVERED,
        )

    def ended(self) -> Failure:
        """The stream of an answer ended before the answer was complete."""
        error = McpConnectionError(
            f"{self.shown} broke off before it had answered.", "It is not known whether the request was carried out."
        )
        return Failure(error, "the answer broke off")

    def too_large(self, limit: int) -> Failure:
        """A message is larger than what is read."""
        error = McpError(
            f"{self.shown} sent a message of more than {limit // 2**20} MiB.", "Ask for less, or for a page at a time."
        )
        return Failure(error, "it sent a message that is too large")

    def read(self, error: McpError) -> McpError:
        """What the SDK tells in words alone, for which it has no codes."""
        if error.message.startswith("SSE stream ended"):
            return self.ended().error
        if error.message.startswith("SSE stream failed"):
            return self.too_large(MAX_MESSAGE_BYTES).error
        if error.message.startswith("Failed to parse"):
            return McpError(f"{self.shown} sent an answer that is no message of MCP.", "Look at server.rubbish.")
        return error

    def refusal(self, answer: Answer) -> Failure:
        """An answer that is no message of MCP."""
        if answer.in_session and _forgets(answer):
            return self.forgotten()
        status, words = answer.status, self._words(answer)
        says = f"{self.shown} answered with HTTP {status}{f': {words}' if words else ''}".rstrip(".") + "."
        if status < HTTPStatus.MULTIPLE_CHOICES:
            return self._no_mcp(answer, words)
        if answer.location:
            text = f"{self.shown} redirects to {self.redacted(answer.location)}."
            return Failure(McpError(text, "If that is the server you mean, give its address."), "it redirects")
        if status == HTTPStatus.UNAUTHORIZED:
            whom = {"none": "asks who you are", "token": "does not accept the token", "login": "refuses the login"}
            says = f"{self.shown} {whom[self.credentials]} (HTTP 401{f': {words}' if words else ''})."
        hints: dict[int, str] = {
            HTTPStatus.UNAUTHORIZED: self._login_hint(answer),
            HTTPStatus.FORBIDDEN: (
                "Give auth= with a token that may do this." if self.credentials == "none" else "Check its rights."
            ),
            HTTPStatus.BAD_REQUEST: self._path_hint(),
            HTTPStatus.NOT_FOUND: self._path_hint(),
            HTTPStatus.METHOD_NOT_ALLOWED: f"A server of the older HTTP+SSE needs McpServer.sse. {self._path_hint()}",
            HTTPStatus.PROXY_AUTHENTICATION_REQUIRED: _HINTS[Cause.PROXY],
            HTTPStatus.MISDIRECTED_REQUEST: "It does not accept this host name: add it to those that it allows.",
            HTTPStatus.TOO_MANY_REQUESTS: "Wait, then ask again.",
        }
        hint = hints.get(status, "See the server's log.")
        final = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        return Failure(McpError(says, hint, data={"status": status}), f"it answered with HTTP {status}", final=final)

    def _no_mcp(self, answer: Answer, words: str) -> Failure:
        body = answer.body.lstrip()
        if answer.media_type == "text/html" or body.startswith("<"):
            what = f"is a web page{f' ({words!r})' if words else ''}, no MCP server"
        elif not body:
            what = "answers with nothing"
        else:
            what = f"answers with something that is no MCP: {quote(self.redacted(answer.body), 120)}"
        return Failure(McpError(f"{self.shown} {what}.", self._path_hint()), "it speaks no MCP")

    def _words(self, answer: Answer) -> str:
        """The server's own words, on one line."""
        try:
            value: object = json.loads(answer.body)
        except (ValueError, RecursionError):
            return quote(plain_text(self.redacted(answer.body)), _SHOWN)
        described = cast("dict[str, object]", value).get("error_description") if isinstance(value, dict) else None
        text = described if isinstance(described, str) else read_error(cast("object", value)).text
        return quote(self.redacted(text), _SHOWN)

    def _login_hint(self, answer: Answer) -> str:
        if self.credentials == "token":
            return "See whether it is the right one, and still valid."
        if self.credentials == "login":
            return "Log in again with a new OAuth(); a storage may hold an old login."
        if "resource_metadata" in answer.challenge:
            return "Give auth=OAuth() to log in with a browser, or auth= with a token."
        return 'Give auth= with a token, headers={"Authorization": …}, or auth=OAuth() to log in with a browser.'

    def _path_hint(self) -> str:
        parts = urlsplit(self.shown)
        if parts.path in ("", "/"):
            return f"Most servers answer at /mcp: try {parts._replace(path='/mcp').geturl()}."
        return "Check the address, its path too."


def _forgets(answer: Answer) -> bool:
    """Whether an answer says that a session is unknown: by 404, as MCP has it, or by 400 as many servers do."""
    words = answer.body.lower()
    if answer.status == HTTPStatus.NOT_FOUND:
        return str(_METHOD_NOT_FOUND) not in words
    return answer.status == HTTPStatus.BAD_REQUEST and ("session" in words or "not initialized" in words)
