"""Diagnosis: what is wrong with a server that does not answer as it should, in a sentence or two.

What went wrong is told by the error; what would be right is looked for: at the usual ports of this
machine, at the other paths of the same server, at the other one of ``http`` and ``https``. Looking
takes two seconds at most and uses nothing but GET. Keys go along only where scheme, host and port
are the user's own.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urljoin, urlsplit

from yiemagent_nb.backends.engine.habits import Habits
from yiemagent_nb.backends.engine.model_list import shown_names
from yiemagent_nb.backends.engine.probing import find_local_servers
from yiemagent_nb.backends.http.connection import HttpConnection
from yiemagent_nb.backends.http.network_errors import CERTIFICATE, Cause, cause_of, speaks_tls
from yiemagent_nb.backends.http.urls import origin_of
from yiemagent_nb.backends.kinds import USUAL_PORTS
from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendConnectionError,
    BackendError,
    BackendNotFoundError,
    BackendTimeoutError,
    BadRequestError,
    MalformedResponseError,
    ServerError,
    YiemAgentError,
    describe_error,
)
from yiemagent_nb.core.models import LlmModel
from yiemagent_nb.core.proxies import Proxy, is_loopback, proxy_for
from yiemagent_nb.core.reading.fields import as_mapping
from yiemagent_nb.core.reading.server_errors import error_body, is_loading, quote, server_error

__all__ = ["diagnose", "unknown_model"]

_PATIENCE = 2.0
"""Seconds for all of it."""
_MOMENT = 1.0
"""Seconds for one answer."""
_MOST_ALIKE = 3
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")

_USUAL_PATHS: Final = ("/v1", "/api/v1", "/openai/v1", "/api")
_ENDPOINTS = re.compile(r"/(chat/completions|completions|responses|models|chat|embeddings)$")
_LOGIN = re.compile(r"\b(log|sign)[ _-]?(in|on)\b|\b(sso|oauth2?|saml|authenticat\w*|authorize)\b", re.IGNORECASE)
_GATEWAY: Final = frozenset({502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 530})
_GATEWAY_WORDS = re.compile(
    r"gateway|nginx|cloudflare|upstream|origin|backend fetch|no server is available"
    r"|503 service|temporarily unavailable|web server is"
)
_FORBIDDEN = 403
_OPEN_UP: Final[Mapping[str, str]] = {
    "ollama": "set OLLAMA_HOST=0.0.0.0 there and start it anew",
    "lmstudio": 'turn on "Serve on Local Network" in its server settings',
}
"""How a server is made to listen to other machines, where not by ``--host 0.0.0.0``."""

_log = logging.getLogger(__name__)

_Seen = Literal["models", "key", "nothing"]


async def diagnose(http: HttpConnection, habits: Habits, error: BackendError) -> str:
    """Say what is wrong and what to do, in a sentence or two. It never raises.

    Args:
        http: The connection whose server could not list its models.
        habits: The server's kind.
        error: How it failed.
    """
    sentence = ""
    try:
        async with asyncio.timeout(_PATIENCE):
            sentence = await _Diagnosis(http, habits, error).sentence()
    except Exception as failure:
        # What was looked for was not found in time; the error itself still says what happened.
        _log.debug("looking what is wrong with %s failed: %s", http.shown, http.redacted(describe_error(failure)))
    return http.redacted(sentence or _plain(error))


def unknown_model(where: str, wanted: str, models: Sequence[LlmModel]) -> str:
    """Say that a server has no such model, and which it has that are called alike.

    Args:
        where: The server's address, as it may be shown.
        wanted: The model that was asked for.
        models: Those that it lists.
    """
    names = [quote(model.id, 100) for model in models]
    alike = [repr(name) for name in _alike(wanted, names)]
    question = f" Did you mean {' or '.join(alike)}?" if alike else ""
    return f"{where} answers, but lists no model {quote(wanted, 100)!r}.{question} It has {shown_names(models)}."


class _Diagnosis:
    """One error, and what can be found out about it."""

    def __init__(self, http: HttpConnection, habits: Habits, error: BackendError) -> None:
        self._http = http
        self._habits = habits
        self._error = error
        self._where = http.shown
        parts = urlsplit(http.shown)
        self._host = parts.hostname or ""
        self._port = origin_of(http.shown)[2]
        self._origin = f"{parts.scheme}://{parts.netloc}"

    async def sentence(self) -> str:
        """What is wrong and what to do; empty where the error's own words are the best there are."""
        error, found = self._error, ""
        match error:
            case _ if speaks_tls(error):
                found = await self._other_scheme() or f"{self._where} wants TLS. Use https:// in base_url."
            case AuthenticationError(status=int()):
                found = self._key()
            case BackendConnectionError():
                found = await self._connection(cause_of(error))
            case BackendTimeoutError(status=None):
                found = (
                    f"{_plain(error)} It took the connection: it may be loading a model or be busy, or what listens "
                    "there is no model server."
                )
            case ServerError():
                found = self._failing()
            case BackendNotFoundError() | MalformedResponseError() | BadRequestError():
                found = await self._wrong_path()
            case _:
                pass
        return found

    def _key(self) -> str:
        error, hint = self._error, self._habits.key_hint
        if not self._http.has_key:
            return f"{self._where} wants an API key, and none is sent (status {error.status}). {hint}"
        if error.status == _FORBIDDEN:
            return (
                f"{self._where} takes no request with this key (status 403): it may lack a permission, or a "
                f"firewall refuses it. {_said(error)} {hint}"
            )
        return f"{self._where} refuses the API key that is sent (status {error.status}). {_said(error)} {hint}"

    async def _connection(self, cause: Cause | None) -> str:
        proxy = None if cause in CERTIFICATE else proxy_for(self._where)
        if proxy is not None:
            return self._proxy(proxy, cause)
        if cause is Cause.REFUSED:
            return await self._nothing_here() if is_loopback(self._where) else self._nothing_there()
        if cause in {Cause.NO_TLS, Cause.NO_HTTP, Cause.CLOSED, Cause.SLOW}:
            return await self._other_scheme() or ("" if cause is not Cause.SLOW else self._out_of_reach())
        if cause is Cause.UNKNOWN_HOST:
            return f"No host is called {self._host!r}: check its spelling in {self._where}, and the network or VPN."
        if cause is Cause.OTHER_HOST:
            return (
                f"The certificate of {self._where} is not made for {self._host!r}. Use the name that it is made for in "
                "base_url, or have one made for this name."
            )
        return ""

    async def _nothing_here(self) -> str:
        ports = [port for port in USUAL_PORTS if port != self._port]
        servers = await find_local_servers(ports, _MOMENT)
        if servers:
            found = " ".join(f"{server.name} answers at {server.base_url}." for server in servers)
            return f'Nothing listens at {self._where}. {found} Use base_url="{servers[0].base_url}".'
        start = f"{_plain(self._error)} No model server is at the usual ports of this machine either."
        if _in_container():
            start += (
                f" This notebook runs in a container, where {self._host} is the container itself; for a server on the "
                "machine around it, use host.docker.internal or that machine's address."
            )
        return start

    def _nothing_there(self) -> str:
        open_up = _OPEN_UP.get(self._habits.provider, "start it with --host 0.0.0.0")
        return (
            f"{self._host} can be reached, but nothing listens at its port {self._port}: check the port. If the server "
            f"runs there, it listens to its own machine only: {open_up}."
        )

    def _out_of_reach(self) -> str:
        return (
            f"{self._host} does not answer at port {self._port}: it is off, a firewall is between, or it is reached "
            f"through a VPN only. Check host and port in {self._where}."
        )

    def _proxy(self, proxy: Proxy, cause: Cause | None) -> str:
        wrong = self._error.message if cause is Cause.PROXY else f"No connection to the proxy {proxy.shown}."
        return (
            f"{wrong} The environment variable {proxy.variable} sends requests to {self._host} through the proxy "
            f"{proxy.shown}: correct it, or add {self._host} to NO_PROXY to go there directly."
        )

    async def _other_scheme(self) -> str:
        """Where the same host and port answer over the other one of http and https; empty where they do not."""
        is_secure = self._where.startswith("https:")
        rest = self._where.partition("://")[2]
        address = f"http://{rest}" if is_secure else f"https://{rest}"
        failure = await _first_error(self._http.at(address, _MOMENT))
        cause = cause_of(failure) if failure is not None else None
        answers = failure is None or cause in CERTIFICATE or (failure.status is not None and not speaks_tls(failure))
        if not answers:
            return ""
        spoken = "speaks plain HTTP, not TLS" if is_secure else "speaks TLS, not plain HTTP"
        also = "" if cause is None or failure is None else f" There, {cause}. {failure.hint}"
        return f'{self._host}:{self._port} {spoken}: use base_url="{address}".{also}'

    def _failing(self) -> str:
        error = self._error
        if is_loading(error):
            return f"{self._where} is still loading its model (status {error.status}). Ask again in a while."
        proxy = proxy_for(self._where)
        words = _GATEWAY_WORDS.search(error.message.lower())
        if error.status not in _GATEWAY or not (words or proxy):
            return ""
        through = (
            f" Requests go through the proxy {proxy.shown} of {proxy.variable}: add {self._host} to NO_PROXY to go "
            "there directly."
            if proxy is not None
            else ""
        )
        return (
            f"A gateway answers in place of the model server behind {self._where}, which is down, starting or too "
            f"slow. {_said(error)} Start the server, or ask again in a while.{through}"
        )

    async def _wrong_path(self) -> str:
        error = self._error
        target = self._target()
        if target and not _LOGIN.search(target) and urlsplit(target).hostname != self._host:
            return (
                f"{self._where} sends on to another host: {target}. If you know it, give its address as base_url, "
                "without the /models at its end."
            )
        places = self._places(target)
        seen = await asyncio.gather(*(self._look(place) for place in places))
        found = next((place for place, what in zip(places, seen, strict=True) if what == "models"), None)
        if found is not None:
            return f'{self._where} is not where the models are. They are at {found}: use base_url="{found}".'
        guarded = next((place for place, what in zip(places, seen, strict=True) if what == "key"), None)
        if guarded is not None:
            sent = "refuses the API key that is sent" if self._http.has_key else "wants an API key, and none is sent"
            return f"{guarded} {sent}; {self._where} itself lists no models. {self._habits.key_hint}"
        if _LOGIN.search(target) or (isinstance(error, MalformedResponseError) and _LOGIN.search(error.message)):
            return (
                f"{self._where} shows people a login page instead of listing models. {_plain(error)} Ask who runs it "
                "for the address of its API, and for a key."
            )
        return f"No list of models is at {self._where}. {_plain(error)} Looked also at {_join(places)}."

    def _target(self) -> str:
        """Where the server sends requests instead; empty where it sends them nowhere."""
        location = self._error.location if isinstance(self._error, BackendNotFoundError) else None
        return urljoin(f"{self._where}/models", location) if location else ""

    def _places(self, target: str) -> list[str]:
        """Where the models could be instead: with a path that was left out, or without one that is too much."""
        base = _ENDPOINTS.sub("", self._where)
        is_here = urlsplit(target).hostname == self._host and not _LOGIN.search(target)
        moved = [_ENDPOINTS.sub("", target.rstrip("/"))] if is_here else []
        places = [*moved, base, f"{base}/v1", *(self._origin + path for path in _USUAL_PATHS)]
        return [place for place in dict.fromkeys(places) if place != self._where]

    async def _look(self, base_url: str) -> _Seen:
        try:
            async with asyncio.timeout(_MOMENT), aclosing(self._http.at(base_url, _MOMENT)) as connection:
                listed: object = await connection.read_json("/models")
        except AuthenticationError:
            return "key"
        except (YiemAgentError, TimeoutError):
            return "nothing"
        if (said := error_body(listed)) is not None:
            return "key" if isinstance(server_error(said), AuthenticationError) else "nothing"
        fields = as_mapping(listed)
        entries = listed if fields is None else fields.get("data")
        return "models" if isinstance(entries, list) else "nothing"


def _in_container() -> bool:
    return any(Path(mark).exists() for mark in _CONTAINER_MARKS)


async def _first_error(connection: HttpConnection) -> BackendError | None:
    """How a server fails to list its models; None where it does not fail. The connection is closed afterwards."""
    try:
        async with aclosing(connection), await connection.open("/models"):
            return None
    except BackendError as error:
        return error


def _plain(error: BackendError) -> str:
    return f"{error.message} {error.hint}".rstrip()


def _said(error: BackendError) -> str:
    """The server's own words, as a sentence."""
    return f'It said: "{error.words}".'


def _join(places: Sequence[str]) -> str:
    *most, last = places
    return f"{', '.join(most)} and {last}" if most else last


def _alike(wanted: str, names: Sequence[str]) -> list[str]:
    """The names that are most like one, without regard to folders, suffixes, case and punctuation."""
    folded = {name: _folded(name) for name in names}
    sought = _folded(wanted)
    close = difflib.get_close_matches(sought, folded.values(), n=_MOST_ALIKE, cutoff=0.6)
    parts = [each for each in folded.values() if sought and each and (sought in each or each in sought)]
    ranked = list(dict.fromkeys([*close, *parts]))
    found = [name for name in names if folded[name] in ranked]
    return sorted(found, key=lambda name: ranked.index(folded[name]))[:_MOST_ALIKE]


def _folded(name: str) -> str:
    last = re.split(r"[/\\]", name.lower().removesuffix(".gguf"))[-1]
    return re.sub(r"[^a-z0-9.]+", "-", last).strip("-")
