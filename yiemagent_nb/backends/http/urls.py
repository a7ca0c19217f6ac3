"""Addresses of model servers, taken apart; what they show never holds a login."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.reading.server_errors import quote

__all__ = ["origin_of", "split_url", "without_login"]

_BEGINNING = re.compile(r"^((?:[a-z][a-z0-9+.-]*:)?(?://)?[^/]*).*$", re.IGNORECASE | re.DOTALL)
"""Scheme and host of what is meant for an address; a path may hold a key."""


def split_url(url: str) -> SplitResult:
    """The parts of a web address.

    Raises:
        InvalidParametersError: It is none, or has a query. The error does not repeat what may be a
            password or a key in it.
    """
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        is_address = is_address and "@" not in parts.path  # what stands before is the rest of a password
    except ValueError:
        parts = None
        is_address = False
    if parts is None or not is_address:
        shown = quote(_BEGINNING.sub(r"\1", url.rpartition("@")[2].partition("?")[0]), 100)
        raise InvalidParametersError(f"base_url {shown!r} is no web address.", "Give it as http://host:port/v1.")
    if parts.query or parts.fragment:
        raise InvalidParametersError(
            f"The base_url of {parts.hostname} has a query or a fragment, behind which no path can stand.",
            "Leave it out: keys go into api_key or headers, all else into extra_body. At Azure use "
            "https://NAME.openai.azure.com/openai/v1, with the key as api_key and the deployment as model.",
        )
    return parts


def origin_of(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a web address.

    Raises:
        InvalidParametersError: It is none.
    """
    parts = split_url(url)
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def without_login(url: str) -> str:
    """A web address without the name and password that may stand in it."""
    parts = split_url(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
