"""The NATS server is killed and started again: nothing hangs, and nothing happens twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp_nats.broker import BrokerServer
from mcp_nats.helpers import Function, connected, text_of, until

from yiemagent_nb.core.errors import McpConnectionError, McpError
from yiemagent_nb.mcp.nats.service import serve_on_nats
from yiemagent_nb.mcp.server import McpServer

pytestmark = pytest.mark.requirement("Y SD-004", "Y risk table")

FAST: dict[str, Any] = {"reconnect_time_wait": 0.1}


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerServer]:
    with BrokerServer(tmp_path) as server:
        yield server


async def _quiet(_: Exception) -> None:
    pass


@pytest.mark.parametrize("binding", ["json-rpc", "stateless"])
async def test_a_call_in_flight_completes_after_a_restart(
    own_broker: BrokerServer, binding: Literal["json-rpc", "stateless"]
) -> None:
    function = Function()
    async with (
        serve_on_nats(function, own_broker.url, "tools", keep_alive=0.2, options=FAST),
        McpServer.nats(own_broker.url, "tools", binding=binding, connect_options=FAST) as server,
    ):
        call = asyncio.ensure_future(server.call_tool("wait", {"text": "late"}))
        await function.started.wait()
        await asyncio.to_thread(own_broker.restart)
        await _until_answered(server)
        function.go_on.set()
        async with asyncio.timeout(20):
            assert text_of(await call) == "late"
    assert Counter(function.calls)["wait"] == 1


async def _until_answered(server: McpServer) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                await server.call_tool("echo", timeout=1)
            except McpError:
                await asyncio.sleep(0.05)
            else:
                return


async def test_a_result_of_many_pieces_that_is_due_while_nats_is_down_arrives_after_it(
    own_broker: BrokerServer,
) -> None:
    function = Function()

    async def late(method: str, *arguments: Any) -> dict[str, Any]:
        if method == "tools/call":
            function.started.set()
            await function.go_on.wait()
            return {"content": [{"type": "text", "text": "x" * 5_000_000}]}
        return await function(method, *arguments)

    async with (
        connected(own_broker.url, error_cb=_quiet, **FAST) as worker,
        serve_on_nats(late, worker, "tools", keep_alive=0.2),
        McpServer.nats(own_broker.url, "tools", connect_options={"reconnect_time_wait": 1.0}) as server,
    ):
        call = asyncio.ensure_future(server.call_tool("big"))
        await function.started.wait()
        own_broker.kill()
        await until(lambda: not worker.is_connected)
        function.go_on.set()
        await asyncio.to_thread(own_broker.start)  # the worker is there again before its caller
        async with asyncio.timeout(20):
            assert len(text_of(await call)) == 5_000_000


async def test_restarts_under_load_answer_each_call_once_or_fail_it(own_broker: BrokerServer) -> None:
    executed: Counter[str] = Counter()

    async def count(method: str, *arguments: Any) -> dict[str, Any]:
        if method == "tools/call":
            executed[arguments[1]["text"]] += 1
            await asyncio.sleep(0.02)
            return {"content": [{"type": "text", "text": arguments[1]["text"]}]}
        return {"tools": []}

    answered: Counter[str] = Counter()
    failed: list[str] = []
    async with (
        serve_on_nats(count, own_broker.url, "tools", keep_alive=0.2, options=FAST),
        serve_on_nats(count, own_broker.url, "tools", keep_alive=0.2, options=FAST),
        McpServer.nats(own_broker.url, "tools", connect_options=FAST) as server,
    ):

        async def call(number: int) -> None:
            try:
                answered[text_of(await server.call_tool("echo", {"text": str(number)}))] += 1
            except McpConnectionError as error:
                failed.append(error.message)

        async def load(lane: int) -> None:
            for number in range(60):
                await call(1000 * lane + number)

        load_of_all = asyncio.gather(*(load(lane) for lane in range(8)))
        for _ in range(3):
            await asyncio.wait({load_of_all}, timeout=0.3)
            await asyncio.to_thread(own_broker.restart)
        async with asyncio.timeout(60):
            await load_of_all
        assert text_of(await server.call_tool("echo", {"text": "after"})) == "after"
    answered.pop("after", None)
    assert max(executed.values()) == 1
    assert max(answered.values()) == 1
    assert sum(answered.values()) + len(failed) == 480
    assert len(failed) < 100


async def test_a_broker_that_stays_away_ends_the_call(own_broker: BrokerServer) -> None:
    function = Function()
    async with serve_on_nats(function, own_broker.url, "tools", keep_alive=0.2):
        server = McpServer.nats(
            own_broker.url, "tools", connect_options={"reconnect_time_wait": 0.1, "max_reconnect_attempts": 3}
        )
        call = asyncio.ensure_future(server.call_tool("wait"))
        await function.started.wait()
        own_broker.kill()
        async with asyncio.timeout(10):
            with pytest.raises(McpConnectionError, match="was closed"):
                await call
        await asyncio.to_thread(own_broker.start)
        await _until_answered(server)  # the server connects again by itself
        await server.close()
        function.go_on.set()


async def test_without_a_broker_the_error_comes_at_once(own_broker: BrokerServer) -> None:
    own_broker.kill()
    server = McpServer.nats([own_broker.url, own_broker.url], "tools")
    async with asyncio.timeout(10):
        with pytest.raises(McpConnectionError, match="There is no connection to NATS at nats://127") as caught:
            await server.request("tools/list")
    assert "whether the NATS server runs" in caught.value.hint
    with pytest.raises(McpConnectionError, match="There is no connection to NATS"):
        await serve_on_nats(Function(), own_broker.url, "tools")


async def test_a_user_connection_survives_a_restart_too(own_broker: BrokerServer) -> None:
    async with connected(own_broker.url, reconnect_time_wait=0.1, error_cb=_quiet) as client:
        function = Function()
        async with serve_on_nats(function, client, "tools"), McpServer.nats(client, "tools") as server:
            call = asyncio.ensure_future(server.call_tool("wait", {"text": "late"}))
            await function.started.wait()
            await asyncio.to_thread(own_broker.restart)
            await _until_answered(server)
            function.go_on.set()
            async with asyncio.timeout(10):
                assert text_of(await call) == "late"
