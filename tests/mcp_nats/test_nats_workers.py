"""Workers that share a topic, and what happens when one dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from uuid import uuid4

import pytest
from mcp_nats.broker import BrokerServer
from mcp_nats.helpers import Function, connected, text_of, worker_process

from yiemagent_nb.core.errors import McpConnectionError, McpError
from yiemagent_nb.mcp.nats import call
from yiemagent_nb.mcp.nats.service import serve_on_nats
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y SD-004", "Y risk table")


async def test_two_workers_share_the_load_and_one_that_is_killed_costs_its_calls_only(broker: BrokerServer) -> None:
    topic = f"tools.{uuid4().hex[:8]}"
    async with (
        worker_process(broker.url, topic) as first,
        worker_process(broker.url, topic) as second,
        McpServer.nats(broker.url, topic) as server,
    ):
        pids = Counter([text_of(await server.call_tool("pid")) for _ in range(60)])
        assert set(pids) == {str(first.pid), str(second.pid)}
        assert min(pids.values()) >= 10

        calls = [asyncio.ensure_future(_outcome(server, "sleep")) for _ in range(10)]
        await asyncio.wait(calls, timeout=0.5)
        os.kill(first.pid, signal.SIGKILL)
        killed_at = asyncio.get_running_loop().time()
        answers = await asyncio.gather(*(_outcome(server, "pid") for _ in range(50)))
        assert answers.count(str(second.pid)) >= 49

        outcomes = await asyncio.gather(*calls)
        assert asyncio.get_running_loop().time() - killed_at < 10
        died = [outcome for outcome in outcomes if "died during tools/call" in outcome]
        assert 1 <= len(died) <= 9
        assert outcomes.count(str(second.pid)) == 10 - len(died)


async def _outcome(server: McpServer, tool: str) -> str:
    try:
        return text_of(await server.call_tool(tool, {"seconds": 3}))
    except McpError as error:
        return error.message


async def test_a_caller_that_is_gone_does_not_keep_its_call_running(
    broker: BrokerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"tools.{uuid4().hex[:8]}"
    function = Function()
    monkeypatch.setattr(call, "ABSENT_SECONDS", 0.3)
    async with serve_on_nats(function, broker.url, topic, keep_alive=0.1), connected(broker.url) as client:
        server = McpServer.nats(client, topic)
        lost = asyncio.ensure_future(server.call_tool("wait"))
        await function.started.wait()
        await client.close()  # as a process that is killed: nobody says cancel
        async with asyncio.timeout(10):
            await function.cancelled.wait()
        with pytest.raises(McpConnectionError):
            await lost
        await server.close()
