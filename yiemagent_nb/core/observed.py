"""Observed: an answer that fills its exchange while somebody reads it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, cast

from yiemagent_nb.core.errors import describe_error
from yiemagent_nb.core.exchange import Exchange, current_exchange

__all__ = ["ObservedPieces", "ObservedSyncPieces", "failed", "observed"]


def observed(exchange: Exchange, response: object) -> object:
    """What a backend gave, which stands in its exchange now, or will as it is read."""
    if isinstance(response, AsyncIterable):
        return ObservedPieces(exchange, cast("AsyncIterable[Any]", response))
    if isinstance(response, Iterator):
        return ObservedSyncPieces(exchange, cast("Iterator[Any]", response))
    exchange.response = response
    exchange.ended = time.perf_counter()
    return response


def failed(exchange: Exchange, error: BaseException) -> None:
    """The backend raised. What ends it from outside is told by the message."""
    if isinstance(error, Exception):
        exchange.ended = time.perf_counter()
        exchange.error = describe_error(error)
    elif not isinstance(error, asyncio.CancelledError | GeneratorExit):
        exchange.error = describe_error(error)


class _Observed:
    """What both kinds share; whatever else the source has is passed through."""

    def __init__(self, exchange: Exchange, source: Any) -> None:
        self.exchange = exchange
        self._source = source
        self.append = exchange.pieces.append
        """Takes a further piece."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_source"], name)

    def take(self, piece: object) -> None:
        """A piece has come, perhaps the first."""
        if self.exchange.first is None:
            self.exchange.first = time.perf_counter()
        self.append(piece)

    def _end(self) -> None:
        if self.exchange.ended is None:
            self.exchange.ended = time.perf_counter()


class ObservedPieces(_Observed):
    """Pieces of an answer.

    Args:
        exchange: Takes what comes. It is the current one in each step, and in no other.
        source: Gives the pieces.
    """

    def __init__(self, exchange: Exchange, source: AsyncIterable[Any]) -> None:
        self.plain = aiter(source)
        """Gives the pieces to who fills the exchange by ``take`` and ``append``, which costs less."""
        super().__init__(exchange, self.plain)

    def __aiter__(self) -> AsyncIterator[Any]:
        """Itself."""
        return self

    async def __anext__(self) -> Any:
        """The next piece."""
        exchange = self.exchange
        before = current_exchange.get()
        if before is not exchange:
            current_exchange.set(exchange)
        try:
            piece = await anext(self.plain)
        except StopAsyncIteration:
            self._end()
            raise
        except BaseException as error:
            failed(exchange, error)
            raise
        finally:
            if before is not exchange:
                current_exchange.set(before)
        self.take(piece)
        return piece

    async def aclose(self) -> None:
        """Read no more of it."""
        self._end()
        if callable(close := getattr(self._source, "aclose", None)):
            await cast("Callable[[], Awaitable[None]]", close)()


class ObservedSyncPieces(_Observed):
    """Pieces of an answer that come without an event loop; see ``ObservedPieces``."""

    def __init__(self, exchange: Exchange, source: Iterator[Any]) -> None:
        super().__init__(exchange, source)

    def __iter__(self) -> Iterator[Any]:
        """Itself."""
        return self

    def __next__(self) -> Any:
        """The next piece."""
        exchange = self.exchange
        before = current_exchange.get()
        current_exchange.set(exchange)
        try:
            piece = next(self._source)
        except StopIteration:
            self._end()
            raise
        except BaseException as error:
            failed(exchange, error)
            raise
        finally:
            current_exchange.set(before)
        self.take(piece)
        return piece

    def close(self) -> None:
        """Read no more of it."""
        self._end()
        if callable(close := getattr(self._source, "close", None)):
            close()
