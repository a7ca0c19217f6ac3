"""InProcessTransport: a server object of the SDK, in this very process and event loop."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.mcp.link import Inbox, Link

if TYPE_CHECKING:
    from mcp.server import MCPServer, Server

    from yiemagent_nb.mcp.links.sdk import Protocol

__all__ = ["InProcessTransport"]


class InProcessTransport:
    """Reaches a server object.

    Args:
        server: The SDK's ``MCPServer`` or low-level ``Server``.
        protocol: ``auto`` prefers the stateless protocol of 2026; ``legacy`` shakes hands as before it,
            which servers need whose tools ask the client something in mid-call.

    Raises:
        InvalidParametersError: It is no such object.
    """

    kind = "in_process"
    modules = ("yiemagent_nb.mcp.links.sdk",)
    patience = 0.0

    def __init__(self, server: Server[Any] | MCPServer, protocol: Protocol = "auto") -> None:
        from mcp.server import MCPServer, Server  # noqa: PLC0415 - slow to import, so only where a server is named

        if not isinstance(cast("object", server), MCPServer | Server):
            raise InvalidParametersError(
                f"in_process takes an MCPServer or a Server of the mcp package, not {type(server).__name__}."
            )
        self._server = server
        self._protocol: Protocol = protocol

    @property
    def target(self) -> str:
        """The object's kind and its name."""
        return f"{type(self._server).__name__} {self._server.name!r}"

    @property
    def default_name(self) -> str:
        """The name that the object has."""
        return self._server.name or "in_process"

    def open(self, inbox: Inbox) -> AbstractAsyncContextManager[Link]:
        """See ``Transport``."""
        from yiemagent_nb.mcp.links.sdk import open_in_process  # noqa: PLC0415

        return open_in_process(self._server, inbox, protocol=self._protocol)
