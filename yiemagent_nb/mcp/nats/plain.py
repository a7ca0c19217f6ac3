"""The plain form at a worker: one JSON-RPC request, one JSON-RPC response."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from yiemagent_nb.mcp.nats.connecting import Broker
from yiemagent_nb.mcp.nats.frames import TOO_LARGE, FrameError, failure, read_message, write_message
from yiemagent_nb.mcp.nats.upstream import Upstream

if TYPE_CHECKING:
    from nats.aio.msg import Msg

__all__ = ["answer_plainly"]


async def answer_plainly(broker: Broker, upstream: Upstream, message: Msg, slots: asyncio.Semaphore) -> None:
    """Answer a message of the plain form, when a slot is free. Notifications are not answered.

    Raises:
        McpConnectionError: The connection is gone, so that nobody can be answered.
    """
    try:
        request = read_message(message.data)
    except FrameError as error:
        await broker.publish(message.reply, write_message(failure(None, -32700, f"Parse error: {error}.")))
        return
    if str(request.get("method")).startswith("notifications/"):
        return
    async with slots:
        response = await upstream.respond(request)
    request_id = response["id"]
    try:
        payload = write_message(response)
    except ValueError as error:
        payload = write_message(failure(request_id, -32603, f"The result cannot be sent: {error}."))
    limit = broker.client.max_payload
    if len(payload) > limit:
        text = (
            f"The result has {len(payload)} bytes; a plain answer may have {limit}, the NATS server's payload limit. "
            "Ask in the stateless form, which sends it in pieces."
        )
        payload = write_message(failure(request_id, TOO_LARGE, text))
        if len(payload) > limit:  # an id may be long too
            payload = write_message(failure(None, TOO_LARGE, text))
    await broker.publish(message.reply, payload)
