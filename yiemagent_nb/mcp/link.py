"""Link: one open connection to a server, whatever carries it.

Everything above a link speaks the methods of MCP with their params and results as plain JSON
objects, so that stdio, HTTP, in-process servers, NATS and a user's own callable are one thing to
the rest. A ``Transport`` knows how to reach a server and opens links to it; the ``Connection``
alone enters and leaves them. What a server says by itself goes to an ``Inbox``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from yiemagent_nb.mcp.log_writer import LogWriter

__all__ = ["NOT_DELIVERED", "Inbox", "Link", "OnProgress", "Progress", "ServerInfo", "Transport"]


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself. All of it is untrusted.

    Args:
        name: Its name; empty where it does not say.
        version: Its version.
        protocol: The protocol version that was negotiated, such as ``2025-11-25``; empty where none was.
        capabilities: Its capabilities in MCP's JSON form.
        instructions: How it wants to be used.
    """

    name: str = ""
    version: str = ""
    protocol: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request has come. ``total`` is None where the server does not know it."""

    progress: float
    total: float | None = None
    message: str | None = None


NOT_DELIVERED: Final = {"delivered": False}
"""The ``data`` of an error after which a request may be sent again: the server has not carried it out."""

OnProgress = Callable[[Progress], None]


class Inbox(Protocol):
    """What a link hands up. All of it is called on the connection's event loop, and none of it raises."""

    @property
    def log(self) -> LogWriter:
        """Where a link writes each message as it crosses."""
        ...

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """The server sent a notification, such as ``notifications/tools/list_changed``."""
        ...

    async def requested(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The server asks something: ``sampling/createMessage``, ``elicitation/create`` or ``roots/list``.

        Raises:
            McpError: It cannot or will not be answered; ``rpc_code`` goes to the server.
        """
        ...

    def answers(self, method: str) -> bool:
        """Whether requests of this method are answered at all, which is what the server is told at the start."""
        ...

    def wrote_to_stderr(self, line: str) -> None:
        """A server's process wrote a line to its standard error."""
        ...

    def wrote_rubbish(self, line: str) -> None:
        """The server sent something that is no message."""
        ...


class Link(Protocol):
    """An open connection. It belongs to the event loop on which it was opened."""

    @property
    def info(self) -> ServerInfo:
        """What the server says of itself."""
        ...

    @property
    def silence(self) -> str:
        """What it may mean, beside a slow server, that no answer comes; empty where nothing is known."""
        ...

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the server is told when the time is over
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Send a request and wait for its raw result. Cancelling the caller cancels it at the server.

        Raises:
            McpError: The server answered with an error, or with something that is no result.
            McpTimeoutError: It did not answer within ``timeout`` seconds.
            McpConnectionError: The connection ended meanwhile.
        """
        ...

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        ...

    async def wait_closed(self) -> str:
        """Wait until the connection ends by itself; returns why, in a few words."""
        ...


class Transport(Protocol):
    """How to reach a server; it may be opened again and again, one link at a time."""

    @property
    def kind(self) -> str:
        """``stdio``, ``http``, ``sse``, ``nats``, ``in_process`` or ``callable``."""
        ...

    @property
    def target(self) -> str:
        """What is reached, to show: a command or an address, without secrets."""
        ...

    @property
    def default_name(self) -> str:
        """A name for the server, where the person gave none."""
        ...

    @property
    def modules(self) -> tuple[str, ...]:
        """What ``open`` imports, which may take long: it is imported in a thread before, so that all else goes on."""
        ...

    @property
    def patience(self) -> float:
        """Seconds that opening may take beyond the connection's deadline, for a person who logs in."""
        ...

    def open(self, inbox: Inbox) -> AbstractAsyncContextManager[Link]:
        """Connect, and negotiate where the protocol asks for it.

        Entering may take long; the connection has a deadline for it and cancels it then. Leaving ends
        everything that was started, in bounded time.

        Raises:
            McpConnectionError: It cannot be reached, or does not speak MCP; the message says why.
        """
        ...
