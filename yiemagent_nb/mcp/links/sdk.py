"""Links over the official SDK: opening them, which includes the handshake."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

from mcp.client import ClientSession
from mcp.server import MCPServer, Server
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from pydantic import ValidationError

from yiemagent_nb.core.errors import McpConnectionError, describe_error
from yiemagent_nb.mcp.link import Inbox, Link
from yiemagent_nb.mcp.links.sdk_callbacks import Callbacks
from yiemagent_nb.mcp.links.sdk_direct import LoggedClient
from yiemagent_nb.mcp.links.sdk_dispatcher import Tap
from yiemagent_nb.mcp.links.sdk_link import SdkLink, as_mcp_error, is_closed
from yiemagent_nb.mcp.links.sdk_listening import listening
from yiemagent_nb.mcp.links.sdk_logging import speaking_for
from yiemagent_nb.mcp.links.server_text import MaskedInbox, ServerText

__all__ = ["Protocol", "Streams", "open_in_process", "open_sdk_link"]

Protocol = Literal["auto", "legacy"]
"""``auto`` prefers the stateless protocol of 2026; ``legacy`` always shakes hands as before it."""

Streams = AbstractAsyncContextManager[Any]
"""An SDK transport: yields a stream of ``SessionMessage | Exception`` to read and one to write."""


@asynccontextmanager
async def open_sdk_link(
    streams: Streams,
    inbox: Inbox,
    *,
    protocol: Protocol = "auto",
    why_closed: Callable[[], str] | None = None,
    mask: Callable[[str], str] | None = None,
) -> AsyncGenerator[Link]:
    """Open a link over an SDK transport. It counts as closed when the stream to read ends.

    Args:
        streams: The transport, not entered yet.
        inbox: Takes what the server says by itself.
        protocol: How to negotiate.
        why_closed: Says why the connection ended, in a few words (``the server closed it``). Default: the
            last thing that the transport yielded, if that was a ``McpConnectionError``.
        mask: Takes keys out of a text. Errors, notifications and results that tell of a failure go through it.

    Raises:
        McpError: The server refused the handshake.
        McpConnectionError: It went away during the handshake.
    """
    text = ServerText() if mask is None else ServerText(mask)
    inbox = MaskedInbox(inbox, text)
    with speaking_for(inbox):
        async with streams as (read, write):
            inner: JSONRPCDispatcher[TransportContext] = JSONRPCDispatcher[TransportContext](read, write)
            tap = Tap(inner, inbox)
            callbacks = Callbacks(inbox)
            # Set here, since the session looks for it on the SDK's own dispatcher only.
            inner.on_stream_exception = callbacks.broken
            async with ClientSession(dispatcher=tap, log_level="info", **callbacks.options()) as session:
                await _negotiate(session, protocol, text)
                link = SdkLink(session, tap, inbox, text, why_closed or callbacks.why_closed)
                async with listening(link, inbox):
                    yield link


@asynccontextmanager
async def open_in_process(
    server: Server[Any] | MCPServer, inbox: Inbox, *, protocol: Protocol = "auto"
) -> AsyncGenerator[Link]:
    """Open a link to a server object in this very event loop."""
    callbacks = Callbacks(inbox)
    options = callbacks.options()
    client = LoggedClient(server, mode=protocol, cache=None, log_level="info", log=inbox.log, **options)
    with speaking_for(inbox):
        async with client, listening(SdkLink(client.session, None, inbox, ServerText()), inbox) as link:
            yield link


async def _negotiate(session: ClientSession, protocol: Protocol, text: ServerText) -> None:
    """Ask for the stateless protocol; a server that does not know it gets the older handshake."""
    try:
        if protocol == "auto":
            try:
                await session.discover()
            except (MCPError, ValidationError, RuntimeError) as error:
                if isinstance(error, MCPError) and is_closed(error):
                    raise
            else:
                return
        await session.initialize()
    except MCPError as error:
        raise as_mcp_error(error, "the handshake", text) from None
    except (ValidationError, RuntimeError) as error:
        raise McpConnectionError(f"The handshake failed: {text.message(describe_error(error))}.") from None
