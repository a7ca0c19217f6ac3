"""Proxies: through which one a request goes, as the environment says."""

from __future__ import annotations

import os
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

__all__ = ["Proxy", "is_loopback", "proxy_for"]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104 - recognised, not bound


class Proxy(NamedTuple):
    """A proxy as it may be shown, and the environment variable that names it."""

    shown: str
    variable: str


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    return (urlsplit(url).hostname or "") in _LOOPBACK


def proxy_for(url: str) -> Proxy | None:
    """The proxy for requests to a URL; None where they go there directly, as they do on this machine."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    scheme = next((name for name in (parts.scheme, "all") if proxies.get(name)), None)
    if scheme is None:
        return None
    address = proxies[scheme]
    named = urlsplit(address if "://" in address else f"http://{address}")
    name = f"{scheme}_proxy"
    variable = next((each for each in (name, name.upper()) if os.environ.get(each)), name.upper())
    return Proxy(named._replace(netloc=named.netloc.rpartition("@")[2]).geturl(), variable)
