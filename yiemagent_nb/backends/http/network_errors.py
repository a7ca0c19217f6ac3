"""Network errors: why there was no answer, told by what httpx or httpx2 raised.

Each cause is said in a plain sentence, with what to do.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from yiemagent_nb.core.errors import BackendConnectionError, BackendError
from yiemagent_nb.core.reading.network_causes import CERTIFICATE, Cause, cause_behind
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
    cause = cause_behind(error)
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
