"""Broker: a connection to a NATS server, the user's own or one made from an address.

nats-py has habits that are mended here: it tries an address that is refused again and again before it
says so, prints what goes wrong later, swallows a cancellation that comes while it writes, tells what
the account forbids to a callback only, and stops reading when a flush is cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, describe_error

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

__all__ = ["Broker", "NatsTarget", "check_token", "open_broker", "read_target", "show_target"]

NatsTarget = "str | Iterable[str] | Client"
"""An address, several of one cluster, or a connection of the user's."""

CLOSE_SECONDS = 2.0
"""How long a connection of ours may take to close."""

LOOK_SECONDS = 0.2
"""How often a connection is looked at, to see whether it was closed for good."""

PENDING = 65536
"""How many messages of a subscription may wait to be handled."""

DEFAULTS: Mapping[str, Any] = {
    "connect_timeout": 5,
    "reconnect_time_wait": 0.5,
    "max_reconnect_attempts": 60,
    "ping_interval": 20,
}
_OURS = ("servers", "error_cb", "disconnected_cb", "closed_cb", "reconnected_cb", "discovered_server_cb")
_SECRETS = ("password", "token", "nkeys_seed_str")

T = TypeVar("T")


class _UnreachableError(Exception):
    """Each address was tried once."""


def read_target(target: object, options: Mapping[str, Any]) -> str | tuple[str, ...] | Client:
    """Check what a connection is to be made from.

    Raises:
        InvalidParametersError: It is neither an address nor a connection, or options do not belong to it.
    """
    refused = [name for name in options if name in _OURS]
    if refused:
        raise InvalidParametersError(
            f"The options of a NATS connection cannot have {', '.join(refused)}.",
            "For callbacks of your own, connect with nats.connect and pass the connection.",
        )
    if isinstance(target, str) and target:
        return target
    if isinstance(target, Iterable) and not isinstance(target, str):
        addresses = tuple(cast("Iterable[object]", target))
        if addresses and all(isinstance(address, str) and address for address in addresses):
            return cast("tuple[str, ...]", addresses)
    if not all(hasattr(cast("object", target), name) for name in ("subscribe", "publish", "max_payload")):
        raise InvalidParametersError(
            f"NATS needs an address such as 'nats://127.0.0.1:4222', a list of them, or a connection of nats-py, "
            f"not {type(cast('object', target)).__name__}."
        )
    if options:
        raise InvalidParametersError("A NATS connection that is open already takes no options.")
    return cast("Client", target)


def show_target(target: str | tuple[str, ...] | Client) -> str:
    """Where a connection leads, without secrets."""
    if isinstance(target, str):
        parts = urlsplit(target if "://" in target else f"nats://{target}")
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if isinstance(target, tuple):
        return ", ".join(map(show_target, target))
    url = target.connected_url
    return "a NATS connection" if url is None else f"{url.scheme}://{url.netloc.rpartition('@')[2]}"


def check_token(value: object, what: str, *, wildcard: str = " \t\r\n*>") -> str:
    """A subject, or a part of one.

    Raises:
        InvalidParametersError: It cannot be one.
    """
    if not isinstance(value, str) or not value.isprintable() or any(char in wildcard for char in value):
        raise InvalidParametersError(f"{what} must be text without spaces and wildcards, not {value!r}.")
    if not all(value.split(".")):
        raise InvalidParametersError(f"{what} must be names joined by dots, such as 'tools.weather', not {value!r}.")
    return value


class Broker:
    """An open connection.

    Args:
        client: nats-py's connection.
        where: Where it leads, to show.
    """

    def __init__(self, client: Client, where: str) -> None:
        self.client = client
        self.where = where
        self._refusals: deque[tuple[float, str]] = deque(maxlen=100)
        self._last_error = client.last_error

    @property
    def reconnects(self) -> int:
        """How often the connection was made again."""
        return self.client.stats["reconnects"]

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        """Publish a message; during a reconnection it is held until the end of it.

        Raises:
            McpConnectionError: The connection was closed, or holds too much already.
        """
        from nats.errors import Error  # noqa: PLC0415

        try:
            await _cancellable(self.client.publish(subject, payload, reply=reply, headers=headers))
        except (Error, OSError) as error:
            raise McpConnectionError(
                f"Nothing can be sent to NATS at {self.where}: {describe_error(error)}."
            ) from error

    async def subscribe(
        self, subject: str, callback: Callable[[Msg], Awaitable[None]], *, queue: str = "", pending: int = PENDING
    ) -> Subscription:
        """Subscribe to a subject; of more than ``pending`` messages that were not handled yet, some get lost.

        Raises:
            McpConnectionError: The connection was closed.
        """
        from nats.errors import Error  # noqa: PLC0415

        try:
            client: Any = self.client  # the method's types are incomplete
            return cast(
                "Subscription",
                await _cancellable(client.subscribe(subject, queue=queue, cb=callback, pending_msgs_limit=pending)),
            )
        except (Error, OSError) as error:
            raise McpConnectionError(
                f"NATS at {self.where} cannot be subscribed to: {describe_error(error)}."
            ) from error

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription, unless the connection did already."""
        from nats.errors import Error  # noqa: PLC0415

        try:
            await _cancellable(subscription.unsubscribe())
        except (Error, OSError):
            return  # the connection is closed or about to be, and its subscriptions with it

    async def drain(self, subscription: Subscription) -> None:
        """End a subscription after what was delivered already was handled; may be cancelled."""
        from nats.errors import Error  # noqa: PLC0415

        if not self.client.is_connected:
            return await self.unsubscribe(subscription)
        try:
            return await _unharmed(subscription.drain())
        except (Error, OSError):
            return None  # as above

    async def settle(self) -> None:
        """Wait until the server has read what was sent, and what it said to that was heard.

        Raises:
            McpConnectionError: It does not answer.
        """
        from nats.errors import Error  # noqa: PLC0415

        try:
            await _unharmed(self.client.flush())
        except (Error, OSError) as error:
            raise McpConnectionError(f"NATS at {self.where} does not answer: {describe_error(error)}.") from error

    def refusal(self, subject: str, since: float) -> McpConnectionError | None:
        """What the server said since a ``time.monotonic``, if the account may not use a subject."""
        self._look()
        for when, text in self._refusals:
            if when >= since and f'"{subject.lower()}"' in text:
                return McpConnectionError(
                    f"The account at {self.where} may not use {subject}: {text}.",
                    "Give it the permission in the NATS server's configuration, or use another account.",
                )
        return None

    async def hear(self, error: Exception) -> None:
        """Take what nats-py tells its error callback."""
        self._note(error)

    async def wait_closed(self) -> str:
        """Wait until the connection is closed for good; returns why."""
        while True:  # only a connection of ours would call back
            if self.client.is_closed:
                error = self.client.last_error
                return f"the connection to NATS at {self.where} was closed" + ("" if error is None else f": {error}")
            await asyncio.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        """The user's own connection tells its own callback; the newest error is public, though."""
        error = self.client.last_error
        if error is not None and error is not self._last_error:
            self._note(error)
        self._last_error = error

    def _note(self, error: Exception) -> None:
        text = str(error).lower()
        if "permissions violation" in text and (not self._refusals or self._refusals[-1][1] != text):
            self._refusals.append((time.monotonic(), text.removeprefix("nats: ")))
        elif "permissions violation" in text:
            self._refusals[-1] = (time.monotonic(), self._refusals[-1][1])


async def _cancellable(awaitable: Awaitable[T]) -> T:
    """Wait, and do not lose a cancellation that nats-py swallows."""
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    result = await awaitable
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError
    return result


async def _unharmed(coroutine: Coroutine[Any, Any, None]) -> None:
    """Wait for a round trip, which must not be cancelled: nats-py would stop reading at its answer."""
    task = asyncio.ensure_future(coroutine)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.shield(task)


@asynccontextmanager
async def open_broker(
    target: str | tuple[str, ...] | Client,
    options: Mapping[str, Any],
    on_error: Callable[[Exception], Awaitable[None]] | None = None,
) -> AsyncGenerator[Broker]:
    """Connect, or take the user's own connection, which stays open afterwards.

    Args:
        target: An address, several, or a connection.
        options: What ``nats.connect`` takes beside them; secrets may be ``SecretStr``.
        on_error: Takes what goes wrong later, on a connection of ours.

    Raises:
        McpConnectionError: There is no NATS server at any of the addresses, or it refuses the account; or the
            user's connection is closed, or belongs to another event loop.
        InvalidParametersError: An option is none of ``nats.connect``.
    """
    where = show_target(target)
    try:
        from nats.aio.client import Client  # noqa: PLC0415 - only where NATS is used
    except ImportError as error:
        raise McpConnectionError("NATS needs nats-py, which is not installed.", "Run: pip install nats-py") from error
    if not isinstance(target, str | tuple):
        yield Broker(_usable(target, where), where)
        return
    client = Client()
    broker = Broker(client, where)

    async def hear(error: Exception) -> None:
        await broker.hear(error)
        if on_error is not None:
            await on_error(error)

    try:
        await _connect(client, target, options, hear, where)
        yield broker
    finally:
        closing = asyncio.ensure_future(client.close())
        done, _ = await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
        if not done:
            closing.cancel()
        elif closing.exception() is not None and client.is_connected:
            closing.result()


def _usable(client: Client, where: str) -> Client:
    reader = getattr(client, "_reading_task", None)
    if (
        isinstance(reader, asyncio.Task)
        and cast("asyncio.Task[None]", reader).get_loop() is not asyncio.get_running_loop()
    ):
        raise McpConnectionError(
            "The NATS connection belongs to another event loop than the one that runs now.",
            "Connect with nats.connect in this loop (in a notebook: in a cell, with await), or pass the address.",
        )
    if client.is_closed or not (client.is_connected or client.is_reconnecting):
        raise McpConnectionError(
            f"The NATS connection that was given ({where}) is closed.",
            "Connect again with nats.connect, or pass the address.",
        )
    return client


async def _connect(
    client: Client,
    target: str | tuple[str, ...],
    options: Mapping[str, Any],
    on_error: Callable[[Exception], Awaitable[None]],
    where: str,
) -> None:
    from nats.errors import Error  # noqa: PLC0415

    addresses = [target] if isinstance(target, str) else list(target)
    revealed: dict[str, Any] = {
        name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in options.items()
    }
    attempts: list[Exception] = []
    connected = False

    async def hear(error: Exception) -> None:
        if connected:
            return await on_error(error)
        attempts.append(error)
        # Where a server refuses and hangs up, its words may be lost: once more, then.
        if len(attempts) >= len(addresses) * (2 if isinstance(error, ConnectionResetError) else 1):
            raise _UnreachableError
        return None

    try:
        settings: dict[str, Any] = {**DEFAULTS, **revealed}
        await client.connect(servers=addresses, error_cb=hear, **settings)
    except TypeError as error:
        raise InvalidParametersError(
            f"An option is none of nats.connect: {describe_error(error)}.",
            "Options are, for instance, user, password, token, nkeys_seed, user_credentials, tls and tls_hostname.",
        ) from error
    except ImportError as error:
        raise McpConnectionError("Keys of NATS need the package nkeys.", "Run: pip install nkeys") from error
    except (_UnreachableError, Error, OSError, ValueError) as error:
        reasons = "; ".join(dict.fromkeys(map(_reason, attempts or [error])))
        raise McpConnectionError(
            f"There is no connection to NATS at {where}: {_hide(reasons, addresses, revealed)}.", _advice(reasons)
        ) from None  # what caused it may hold the secrets of the address
    if not client.is_connected:
        raise McpConnectionError(f"NATS at {where} closed the connection at once.", "Look into the NATS server's log.")
    connected = True


def _reason(error: Exception) -> str:
    text = str(error).removeprefix("nats: ").strip().strip("'")
    return text or type(error).__name__


def _hide(text: str, addresses: Sequence[str], options: Mapping[str, Any]) -> str:
    secrets = [value for name in _SECRETS if isinstance(value := options.get(name), str)]
    for address in addresses:
        parts = urlsplit(address if "://" in address else f"nats://{address}")
        secrets += [parts.password or parts.username or ""]  # a name without a password is a token
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _advice(reasons: str) -> str:
    lowered = reasons.lower()
    if "authorization" in lowered or "authentication" in lowered:
        return "Check the user, the password, the token or the credentials file."
    if "certificate" in lowered or "ssl" in lowered or "tls" in lowered:
        return "Check the TLS context (option tls) and the name in the server's certificate (option tls_hostname)."
    return "Check the address, and whether the NATS server runs there."
