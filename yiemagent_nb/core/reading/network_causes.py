"""Network causes: why there is no connection, told by what the HTTP library raised.

The words come from the operating system and from OpenSSL; they are read here once, for everything
that speaks HTTP.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

__all__ = ["CERTIFICATE", "Cause", "cause_behind"]


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


def cause_behind(error: BaseException) -> Cause | None:
    """Why there is no connection, read from an error of httpx2 and those behind it; None where they do not say."""
    if any(kind.__name__ == "ProxyError" for kind in type(error).__mro__):
        return Cause.PROXY
    return next((found for each in _behind(error) if (found := _read(each))), None)


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
