"""WireTap: writes down what crosses the wire, where somebody observes the exchange that it belongs to."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload
from urllib.parse import parse_qsl, urlencode, urlsplit

from yiemagent_nb.core.exchange import Exchange, WireExchange, current_exchange
from yiemagent_nb.core.redaction import Redactor, mask_field

__all__ = ["MaskedHeaders", "WireTap", "masked"]

Headers = Iterable[tuple[Any, Any]]
"""Names and values, as texts or as they go over the wire."""


class WireTap:
    """One HTTP request and its answer, written down as they go.

    Keys stand neither in the address nor in the headers that are kept. Bodies are kept as they are, and
    ``WireExchange.redacted`` takes the keys out of them when they are read.

    Args:
        exchange: What it belongs to.
        redactor: Knows the connection's keys.
    """

    def __init__(self, exchange: Exchange, redactor: Redactor) -> None:
        self._exchange = exchange
        self._redactor = redactor
        self._wire: WireExchange | None = None

    @classmethod
    def now(cls, redactor: Redactor) -> WireTap | None:
        """A tap for the request that is made now; None where nobody observes."""
        exchange = current_exchange.get()
        return None if exchange is None else cls(exchange, redactor)

    def sends(self, method: str, url: str, headers: Headers, body: bytes) -> None:
        """The request goes out."""
        address = _without_keys(url, self._redactor)
        self._wire = WireExchange(method, address, self._masked(headers), body, self._redactor)
        self._exchange.wire.append(self._wire)

    def sent(self, headers: Headers) -> None:
        """The request has gone out, with these headers: a client may add some."""
        if self._wire is not None:
            self._wire.headers = self._masked(headers)

    def answers(self, status: int, headers: Headers) -> None:
        """The head of the answer has come."""
        if self._wire is not None:
            self._wire.status = status
            self._wire.answer_headers = self._masked(headers)

    def take(self, chunk: bytes) -> None:
        """A chunk of the answer's body has come."""
        wire = self._wire
        if wire is not None:
            if wire.first is None:
                wire.first = time.perf_counter()
            wire.pieces.append(chunk)

    def ends(self, error: str = "") -> None:
        """Nothing more comes."""
        wire = self._wire
        if wire is not None and wire.ended is None:
            wire.ended = time.perf_counter()
            wire.error = self._redactor(error)

    def _masked(self, headers: Headers) -> MaskedHeaders:
        return MaskedHeaders(headers, self._redactor)


class MaskedHeaders(Sequence[tuple[str, str]]):
    """Names and values of headers, masked when they are read."""

    __slots__ = ("_pairs", "_redactor")

    def __init__(self, headers: Headers, redactor: Redactor) -> None:
        self._pairs = [*headers]
        self._redactor = redactor

    def __repr__(self) -> str:
        """The headers, masked."""
        return repr([*self])

    def __len__(self) -> int:
        """How many there are."""
        return len(self._pairs)

    @overload
    def __getitem__(self, index: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[str, str]]: ...
    def __getitem__(self, index: int | slice) -> tuple[str, str] | list[tuple[str, str]]:
        """One of them, or several."""
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        name, value = map(_text, self._pairs[index])
        return self._redactor(name), self._redactor(mask_field(name, value))


def masked(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Headers without what is secret by its name, for keeping."""
    return [(name, mask_field(name, value)) for name, value in headers.items()]


def _text(part: str | bytes) -> str:
    return part.decode("latin-1") if isinstance(part, bytes) else part


def _without_keys(url: str, redactor: Redactor) -> str:
    """An address without the keys of its query, which are masked everywhere from now on."""
    if "?" not in url:
        return redactor(url)
    parts = urlsplit(url)
    if parts.query:
        fields = parse_qsl(parts.query, keep_blank_values=True)
        redactor.add_fields(dict(fields))
        masked = [(name, mask_field(name, value)) for name, value in fields]
        if masked != fields:
            url = parts._replace(query=urlencode(masked, safe="[]")).geturl()
    return redactor(url)
