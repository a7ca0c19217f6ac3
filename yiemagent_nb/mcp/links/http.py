"""MCP over HTTP: the streamable transport, and the older one with a stream of server-sent events.

What stands here knows the address and what is sent; ``http_link`` opens it, and loads the SDK.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.reading.server_errors import quote as shorten
from yiemagent_nb.core.redaction import Redactor
from yiemagent_nb.mcp.link import Inbox, Link

if TYPE_CHECKING:
    import httpx2

    from yiemagent_nb.mcp.oauth import OAuth

__all__ = ["HttpTarget", "HttpTransport"]

_SECRET_NAME = re.compile(r"(?i)auth|key|token|secret|password|credential|session|signature|^sig$|^code$")
_SECRET_VALUE = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[\w.~+=-]{20,}")
_ENDPOINTS = frozenset({"mcp", "sse"})


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """What is reached, and what is sent there.

    Args:
        url: The address.
        shown: The same without secrets.
        sse: Whether it speaks the older transport.
        headers: Sent with each request.
        signed: Whether they tell who asks.
        login: What logs in at it, or None.
        auth: What signs each request, or None.
        client: The person's own client, or None.
        redacted: Masks what must not be shown.
    """

    url: SecretStr
    shown: str
    sse: bool
    headers: Mapping[str, SecretStr]
    signed: bool
    login: OAuth | None
    auth: httpx2.Auth | None
    client: httpx2.AsyncClient | None
    redacted: Redactor


class HttpTransport:
    """Reaches a server at an address.

    Args:
        url: The address, such as ``https://example.org/mcp``.
        headers: Sent with each request; values may be ``SecretStr``.
        auth: A bearer token, an ``OAuth``, or an ``httpx2.Auth``.
        client: Sends the requests, with its own proxies and certificates; it is not closed. Its timeout for
            connecting counts, the others do not: an answer may take as long as the request has time.
        sse: Whether to speak the older transport.

    Raises:
        InvalidParametersError: An argument is wrong; the error names it.
    """

    modules = ("yiemagent_nb.mcp.links.http_link",)
    """See ``Transport``."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str | SecretStr] | None = None,
        auth: httpx2.Auth | OAuth | SecretStr | str | None = None,
        client: httpx2.AsyncClient | None = None,
        sse: bool = False,
    ) -> None:
        parts = _split(url)
        redacted = Redactor()
        _protect_address(redacted, parts)
        sent = _checked(headers or {}, redacted)
        if isinstance(auth, str | SecretStr):
            if any(name.lower() == "authorization" for name in sent):
                raise InvalidParametersError("auth and the header Authorization were both given.", "Give one of them.")
            sent["Authorization"] = SecretStr(f"Bearer {_checked_token(auth, redacted)}")
        login = auth if _is_login(auth) else None
        self.kind = "sse" if sse else "http"
        self.target = _shown(parts)
        self.default_name = _name(parts)
        self._target = HttpTarget(
            url=SecretStr(url),
            shown=self.target,
            sse=sse,
            headers=sent,
            signed=any(_SECRET_NAME.search(name) for name in sent),
            login=login,
            auth=None if login is not None or isinstance(auth, str | SecretStr) else _checked_auth(auth),
            client=client,
            redacted=redacted,
        )

    def __repr__(self) -> str:
        """The address without secrets."""
        return f"<HttpTransport {self.kind} {self.target}>"

    @property
    def patience(self) -> float:
        """See ``Transport``."""
        login = self._target.login
        return 0.0 if login is None else login.patience

    def open(self, inbox: Inbox) -> AbstractAsyncContextManager[Link]:
        """See ``Transport``."""
        from yiemagent_nb.mcp.links.http_link import open_http_link  # noqa: PLC0415 - it loads the SDK

        return open_http_link(self._target, inbox)


def _is_login(auth: object) -> TypeGuard[OAuth]:
    module = sys.modules.get("yiemagent_nb.mcp.oauth")  # loaded where somebody has an OAuth
    return module is not None and isinstance(auth, module.OAuth)


def _checked_auth(auth: object) -> httpx2.Auth | None:
    if auth is None:
        return None
    import httpx2  # noqa: PLC0415 - loaded where somebody has an Auth

    if not isinstance(auth, httpx2.Auth):
        raise InvalidParametersError(
            f"auth must be a token, an OAuth or an httpx2.Auth, not {type(auth).__name__}.",
            'Give auth="…" or auth=OAuth().',
        )
    return auth


def _checked_token(given: str | SecretStr, redacted: Redactor) -> str:
    token = given if isinstance(given, str) else given.get_secret_value()
    token = token.strip().removeprefix("Bearer ").strip()
    if not token or not all("!" <= character <= "~" for character in token):
        raise InvalidParametersError(
            "auth is empty, or holds a space, a line break or a character outside ASCII.", "Give the token alone."
        )
    redacted.add(token)
    return token


def _checked(headers: Mapping[str, str | SecretStr], redacted: Redactor) -> dict[str, SecretStr]:
    """Headers without white space around their values; what is secret in them is masked from now on.

    Raises:
        InvalidParametersError: One cannot be sent; the error does not repeat its value.
    """
    checked: dict[str, SecretStr] = {}
    for name, value in headers.items():
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - it comes from a person
            raise InvalidParametersError(
                f"The header {name!r} must be text or a SecretStr, not {type(value).__name__}."
            )
        text = text.strip()
        if not (name + text.replace("\t", "")).isprintable():
            raise InvalidParametersError(
                f"The header {name!r} holds a line break or another character that no header may hold.",
                "Give its value alone.",
            )
        if isinstance(value, SecretStr):
            redacted.add(text)
        redacted.add_fields({name: text})
        checked[name] = SecretStr(text)
    return checked


def _protect_address(redacted: Redactor, parts: SplitResult) -> None:
    """Mask what is secret in an address."""
    if "@" in parts.netloc:
        redacted.add_login(parts.netloc.rpartition("@")[0])
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _is_secret(name, value):
            redacted.add(value)
    for segment in parts.path.split("/"):
        if _SECRET_VALUE.fullmatch(segment):
            redacted.add(unquote(segment))


def _split(url: object) -> SplitResult:
    parts = None
    if isinstance(url, str):
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            parts = None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        shown = shorten(str(url).rpartition("@")[2].partition("?")[0], 100)
        raise InvalidParametersError(f"{shown!r} is no web address.", "Give it as https://host/mcp.")
    return parts


def _shown(parts: SplitResult) -> str:
    """An address as it may be shown: without a login, and without what looks like a key."""
    path = "/".join("[key]" if _SECRET_VALUE.fullmatch(each) else each for each in parts.path.split("/"))
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    query = "&".join(
        f"{quote(name)}={'[key]' if _is_secret(name, value) else quote(value, safe='/:,')}" for name, value in pairs
    )
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{path}{f'?{query}' if query else ''}"


def _is_secret(name: str, value: str) -> bool:
    return bool(value) and bool(_SECRET_NAME.search(name) or _SECRET_VALUE.fullmatch(value))


def _name(parts: SplitResult) -> str:
    """The host and the path, without the usual ``/mcp`` at the end and without anything like a key."""
    segments = [each for each in parts.path.split("/") if each and not _SECRET_VALUE.fullmatch(each)]
    while segments and segments[-1].lower() in _ENDPOINTS:
        segments.pop()
    return "/".join([parts.netloc.rpartition("@")[2].lower(), *segments])
