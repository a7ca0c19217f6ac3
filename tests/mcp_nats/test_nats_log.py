"""The protocol log of servers behind NATS, in both forms."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from mcp_nats.broker import BrokerServer
from mcp_nats.helpers import Function, asking_server, connected, hear, text_of, until
from nats.aio.msg import Msg

from yiemagent_nb.core.errors import McpConnectionError
from yiemagent_nb.mcp.nats.service import NatsService, serve_on_nats
from yiemagent_nb.mcp.protocol_log import MAX_ENTRIES
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y SD-004", "Y SP-009", "Y FR-004")


@pytest.fixture
def topic() -> str:
    return f"tools.{uuid4().hex[:8]}"


@pytest.fixture
async def function() -> Function:
    return Function()


@pytest.fixture
async def service(broker: BrokerServer, topic: str, function: Function) -> AsyncIterator[NatsService]:
    async with serve_on_nats(function, broker.url, topic, keep_alive=0.2) as service:
        yield service


def crossed(server: McpServer) -> list[tuple[str, str, bool]]:
    """What went which way, states left aside, and whether it answers something."""
    entries = server.log.entries(limit=MAX_ENTRIES)
    return [(each.direction, each.method, each.seconds is not None) for each in entries if each.direction != "state"]


async def test_in_the_plain_form_the_payloads_are_logged_to_the_byte(broker: BrokerServer, topic: str) -> None:
    payloads: list[tuple[str, bytes]] = []

    async with connected(broker.url) as client:

        async def respond(message: Msg) -> None:
            request = json.loads(message.data)
            answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"tools": []}}).encode()
            payloads.extend([("out", message.data), ("in", answer)])
            await message.respond(answer)

        await hear(client, topic, respond)
        async with McpServer.nats(broker.url, topic, binding="json-rpc") as server:
            await asyncio.gather(*(server.request("tools/list") for _ in range(20)))
            entries = [entry for entry in server.log.entries() if entry.direction != "state"]
            for direction in ("out", "in"):
                logged = sorted(entry.text.encode() for entry in entries if entry.direction == direction)
                assert logged == sorted(payload for way, payload in payloads if way == direction)
            assert sum(entry.seconds is not None for entry in entries) == 20


@pytest.mark.usefixtures("service")
async def test_in_the_stateless_form_each_message_is_logged_and_who_took_it(broker: BrokerServer, topic: str) -> None:
    async with McpServer.nats(broker.url, topic, binding="stateless") as server:
        assert text_of(await server.call_tool("echo", {"text": "ä"})) == "ä"
        assert (await server("tools/call", "fail", {}))["error"]
        call = [("out", "tools/call", False), ("in", "accepted", False), ("in", "tools/call", True)]
        assert crossed(server)[-6:] == call * 2
        assert server.log.entries()[-1].is_error
        assert await server.check() > 0


async def test_questions_progress_and_notifications_are_logged_in_order(broker: BrokerServer, topic: str) -> None:
    def elicit(_message: str, _schema: object) -> dict[str, Any]:
        return {"city": "Lisbon"}

    async with (
        serve_on_nats(McpServer.in_process(asking_server(), protocol="legacy"), broker.url, topic, keep_alive=0.2),
        McpServer.nats(broker.url, topic, binding="stateless", on_elicitation=elicit) as server,
    ):
        assert text_of(await server.call_tool("where")) == "accept: Lisbon"
        assert crossed(server)[-5:] == [
            ("out", "tools/call", False),
            ("in", "accepted", False),
            ("in", "elicitation/create", False),
            ("out", "elicitation/create", True),
            ("in", "tools/call", True),
        ]
        await server.call_tool("steps")
        assert crossed(server)[-4:-1] == [("in", "notifications/progress", False)] * 3
        await server.call_tool("grow")
        await until(lambda: ("in", "notifications/tools/list_changed", False) in crossed(server))


@pytest.mark.usefixtures("service")
async def test_a_request_that_is_given_up_is_logged_as_cancelled(
    broker: BrokerServer, topic: str, function: Function
) -> None:
    async with McpServer.nats(broker.url, topic, binding="stateless") as server:
        call = asyncio.create_task(server.call_tool("wait"))
        await function.started.wait()
        call.cancel()
        await function.cancelled.wait()
        assert crossed(server)[-1] == ("out", "cancel", False)


@pytest.mark.usefixtures("service")
async def test_a_large_result_is_not_kept(broker: BrokerServer, topic: str) -> None:
    async with McpServer.nats(broker.url, topic, binding="stateless") as server:
        await server.call_tool("big", {"size": 5_000_000})
        entry = server.log.entries()[-1]
        assert entry.size > 5_000_000
        assert len(entry.content) < 100_000
        assert "bytes left out" in entry.text


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("form", ["json-rpc", "stateless"])
async def test_a_call_that_goes_on_ends_with_a_clear_error_when_the_server_is_connected_anew(
    broker: BrokerServer, topic: str, function: Function, form: Any
) -> None:
    async with McpServer.nats(broker.url, topic, binding=form) as server:
        call = asyncio.create_task(server.call_tool("wait"))
        await function.started.wait()
        await server.reconnect()
        with pytest.raises(McpConnectionError, match="was closed before the answer came"):
            await call
        assert text_of(await server.call_tool("echo", {"text": "again"})) == "again"
        function.go_on.set()
