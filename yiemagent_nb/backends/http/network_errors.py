"""Network errors: why there was no answer, told by what httpx or httpx2 raised.

The words that these raise come from the operating system and from OpenSSL; they are read here once
and said in plain sentences, each with what to do.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from yiemagent_nb.core.errors import BackendConnectionError, BackendError
from yiemagent_nb.core.reading.server_errors import quote

__all__ = [
    "CERTIFICATE",
    "NOTHING_LISTENS",
    "Cause",
    "cause_of",
    "connection_error",
    "connection_timeout",
    "speaks_tls",
]

NOTHING_LISTENS: Final = "Nothing listens there: start the server, or check host and port."
"""What to do where a connection was refused."""


class Cause(StrEnum):
    """Why there is no connection: the ``cause`` of a ``BackendConnectionError``, and words of its message."""

    REFUSED = "the connection was refused"
    UNKNOWN_HOST = "no host of that name is known"
    NO_ROUTE = "there is no way to that host from here"
    SLOW = "it was not there within"
    PROXY = "the proxy said"
    NO_TLS = "what listens there speaks no TLS"
    NO_HTTP = "what listens there speaks no HTTP"
    CLOSED = "it closed the connection without an answer"
    SELF_SIGNED = "its certificate is self-signed"
    UNKNOWN_AUTHORITY = "its certificate comes from an authority that is not known here"
    EXPIRED = "its certificate has expired"
    NOT_YET_VALID = "its certificate is not valid yet"
    OTHER_HOST = "its certificate is for another host name"
    CERTIFICATE = "its certificate was not accepted"
    OWN_CERTIFICATE = "it wants a certificate from this side"


CERTIFICATE: Final = frozenset(
    {
        Cause.SELF_SIGNED,
        Cause.UNKNOWN_AUTHORITY,
        Cause.EXPIRED,
        Cause.NOT_YET_VALID,
        Cause.OTHER_HOST,
        Cause.CERTIFICATE,
    }
)
"""The causes for which TLS was spoken, and only the certificate does not do."""

_WORDS: Final[tuple[tuple[str, Cause], ...]] = (
    # Windows and macOS check certificates by themselves, in words of their own.
    (r"alert (certificate required|bad certificate|unknown ca)", Cause.OWN_CERTIFICATE),
    (r"certificate has expired|certificates? (is|are) expired|expired certificate|validity period", Cause.EXPIRED),
    (r"certificate is not yet valid", Cause.NOT_YET_VALID),
    (r"hostname mismatch|ip address mismatch|not valid for '|cn name does not match|name mismatch", Cause.OTHER_HOST),
    (r"self[- ]signed certificate in certificate chain", Cause.UNKNOWN_AUTHORITY),
    (r"self[- ]signed certificate", Cause.SELF_SIGNED),
    (r"unable to get (local )?issuer|not trusted by the trust provider|certificate is not trusted|root certificate",
     Cause.UNKNOWN_AUTHORITY),
    (r"certificate.verify.failed|certificate", Cause.CERTIFICATE),
    (r"wrong.version.number|record layer failure|unknown protocol|http request\b", Cause.NO_TLS),
    (r"illegal status line|invalid http|malformed|bad status line", Cause.NO_HTTP),
    (r"name or service|nodename nor servname|getaddrinfo|name resolution|no address associated", Cause.UNKNOWN_HOST),
    (r"unreachable|no route to host", Cause.NO_ROUTE),
    (r"connect call failed|refused", Cause.REFUSED),
    (r"without sending a response|unexpected.eof|eof occurred|connection (was )?(reset|closed|aborted)|broken pipe",
     Cause.CLOSED),
)  # fmt: skip

_CODES: Final = {
    errno.ECONNREFUSED: Cause.REFUSED,
    errno.EHOSTUNREACH: Cause.NO_ROUTE,
    errno.ENETUNREACH: Cause.NO_ROUTE,
    errno.ECONNRESET: Cause.CLOSED,
    errno.EPIPE: Cause.CLOSED,
}

_TRUST: Final = (
    "set SSL_CERT_FILE to a file with {what} before the notebook starts, or give "
    'http_client=httpx2.AsyncClient(verify=ssl.create_default_context(cafile="…"), timeout=600).'
)
_HINTS: Final = {
    Cause.REFUSED: NOTHING_LISTENS,
    Cause.UNKNOWN_HOST: "Check the spelling of the host in base_url, and the network or VPN.",
    Cause.NO_ROUTE: "Check the network or VPN, and the host in base_url.",
    Cause.SLOW: "Check host and port, whether a firewall or VPN is between, and https or http in base_url.",
    Cause.PROXY: "Check HTTPS_PROXY and HTTP_PROXY, or add the host to NO_PROXY to go there directly.",
    Cause.NO_TLS: "Use http:// in base_url, or the port at which the server speaks TLS.",
    Cause.NO_HTTP: "Check the port; a server with TLS needs https:// in base_url.",
    Cause.CLOSED: "See whether the server still runs; one with TLS needs https:// in base_url, one without http://.",
    Cause.SELF_SIGNED: f"If you trust it: {_TRUST.format(what='that certificate')}",
    Cause.UNKNOWN_AUTHORITY: f"If you trust it: {_TRUST.format(what='the certificate of that authority')}",
    Cause.EXPIRED: "Have it renewed on the server, or set this machine's clock.",
    Cause.NOT_YET_VALID: "Set this machine's clock, or the server's and have the certificate made anew.",
    Cause.OTHER_HOST: "Use the name that the certificate is for in base_url, or have one made for this name.",
    Cause.OWN_CERTIFICATE: (
        "Load yours into an ssl.SSLContext with load_cert_chain, and give "
        "http_client=httpx2.AsyncClient(verify=that_context, timeout=600)."
    ),
    Cause.CERTIFICATE: f"If you trust the server: {_TRUST.format(what='the certificate of its authority')}",
}
_TLS_IS_SPOKEN = re.compile(
    r"plain http request was sent to https port|http request to an https server|speaking plain http to an ssl"
    r"|combination of host and port requires tls|client sent an http request"
)


def connection_error(error: Exception, base_url: str, words: str) -> BackendConnectionError:
    """The typed error for a connection that did not come about, or brought no answer.

    Args:
        error: What the HTTP library raised.
        base_url: Where it was to go, as it may be shown.
        words: The error's text, without keys.
    """
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "ProxyError" in kinds:
        cause: Cause | None = Cause.PROXY
    else:
        cause = next((found for each in _behind(error) if (found := _read(each))), None)
    said = quote(words, 150)
    if cause is None:
        return BackendConnectionError(
            f"The connection to {base_url} broke: {said or type(error).__name__}.",
            "See whether the server still runs, then ask again.",
        )
    detail = f' "{said}"' if cause is Cause.PROXY else f" ({said})" if cause is Cause.CERTIFICATE and said else ""
    if cause is Cause.CLOSED and urlsplit(base_url).scheme == "https":
        detail = " in TLS"
    return BackendConnectionError(f"No connection to {base_url}: {cause}{detail}.", _HINTS[cause], cause=cause)


def connection_timeout(base_url: str, seconds: float | None) -> BackendConnectionError:
    """The typed error for a connection that did not come about in time.

    Args:
        base_url: Where it was to go, as it may be shown.
        seconds: How long was waited.
    """
    return BackendConnectionError(
        f"No connection to {base_url}: {Cause.SLOW} {seconds} seconds.", _HINTS[Cause.SLOW], cause=Cause.SLOW
    )


def cause_of(error: BackendError) -> Cause | None:
    """Why there was no connection; None where there was one, or nothing is known of it."""
    if not isinstance(error, BackendConnectionError) or error.cause is None:
        return None
    return Cause(error.cause)


def speaks_tls(error: BackendError) -> bool:
    """Whether an answer to plain HTTP says that only HTTPS is spoken there."""
    return error.status is not None and _TLS_IS_SPOKEN.search(error.message.lower()) is not None


def _behind(error: BaseException) -> Iterator[BaseException]:
    """An error and those behind it, the first cause last; a group's come in its place."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += getattr(each, "exceptions", ())  # a group's
        waiting.append(each.__cause__ or each.__context__)


def _read(error: BaseException) -> Cause | None:
    if isinstance(error, socket.gaierror):
        return Cause.UNKNOWN_HOST
    if isinstance(error, OSError) and error.errno in _CODES:
        return _CODES[error.errno]
    words = str(error).lower()
    return next((cause for pattern, cause in _WORDS if re.search(pattern, words)), None)
