"""The protocol log of servers over each transport, their latency, and connecting anew."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_client.agents_with_servers import agent_with, discovered, message_text, names, results
from mcp_client.http_server import GOOD, running
from mcp_client.steered import Steered
from mcp_client.watching import FAULTY_SERVER, until
from mcp_client.workbench import Workbench, definition
from pydantic import BaseModel, SecretStr

from yiemagent_nb import McpServer
from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError, McpTimeoutError
from yiemagent_nb.mcp.protocol_log import MAX_ENTRIES, LogEntry
from yiemagent_nb.testing import call

pytestmark = pytest.mark.requirement("Y FR-004", "Y SD-004", "Y P-002")

KEY = "sk-live-0123456789abcdef"

NOTING_SERVER = """
import json, sys
file = open(sys.argv[1], "wb")
def say(**message):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    file.write(b"in " + data + b"\\n")
    sys.stdout.buffer.write(data + b"\\n")
    sys.stdout.buffer.flush()
for line in sys.stdin.buffer:
    file.write(b"out " + line)
    file.flush()
    message = json.loads(line)
    if message.get("method") == "initialize":
        say(id=message["id"], result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo":
            {"name": "noting", "version": "1"}})
    elif message.get("method") == "tools/call":
        token = message["params"]["_meta"]["progressToken"]
        say(method="notifications/progress", params={"progressToken": token, "progress": 0.50, "message": "\u00e4"})
        say(id="q", method="roots/list")
        say(id=message["id"], result={"content": []})
    elif "method" in message and "id" in message:
        say(id=message["id"], error={"code": -32601, "message": "Method not found"})
"""


def faulty(**options: Any) -> McpServer:
    """The faulty server over stdio."""
    return McpServer.stdio(sys.executable, "-I", "-S", FAULTY_SERVER, **options)


def crossed(server: McpServer) -> list[LogEntry]:
    """The messages of its log."""
    return [entry for entry in server.log.entries(limit=MAX_ENTRIES) if entry.direction in ("out", "in")]


def content(entry: LogEntry) -> Any:
    return json.loads(entry.text)


# What crosses


async def test_over_stdio_each_line_is_logged_to_the_byte_in_the_order_of_the_wire(tmp_path: Path) -> None:
    async with McpServer.stdio(sys.executable, "-I", "-S", "-c", NOTING_SERVER, tmp_path / "wire") as server:
        await server.call_tool("any")
        await server.check()
        answered = [entry for entry in crossed(server) if entry.id == "q"]
        assert [(entry.direction, entry.method) for entry in answered] == [("in", "roots/list"), ("out", "roots/list")]
    wire = (tmp_path / "wire").read_text().splitlines()
    logged = [f"{entry.direction} {entry.text}" for entry in crossed(server)]
    for direction in ("out ", "in "):
        assert [line for line in logged if line.startswith(direction)] == [
            line for line in wire if line.startswith(direction)
        ]
    assert {entry.size for entry in crossed(server)} == {len(line.partition(" ")[2].encode()) for line in wire}


class Place(BaseModel):
    city: str


def asking() -> MCPServer:
    """Reports progress, asks a person, and fails."""
    server = MCPServer("asking")

    @server.tool()
    async def where(ctx: Context[Any, Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        """Ask a person."""
        await ctx.report_progress(1, 2, "asking")
        answer = await ctx.elicit("Which city?", Place)
        return f"{answer.action}: {getattr(getattr(answer, 'data', None), 'city', '')}"

    @server.tool()
    async def fail() -> str:  # pyright: ignore[reportUnusedFunction]
        """Fail."""
        raise ValueError("no luck")

    return server


async def test_in_this_process_what_crosses_by_the_older_protocol_is_logged_with_its_ids() -> None:
    def elicit(_message: str, _schema: object) -> dict[str, Any]:
        return {"city": "Lisbon"}

    async with McpServer.in_process(asking(), protocol="legacy", on_elicitation=elicit) as server:
        await server.request("tools/call", {"name": "where", "arguments": {}}, on_progress=lambda _: None)
        await server.call_tool("fail")
        seen = [(entry.direction, entry.method, entry.id, entry.is_error) for entry in crossed(server)]
        assert seen == [
            ("out", "initialize", 1, False),
            ("in", "initialize", 1, False),
            ("out", "notifications/initialized", None, False),
            ("out", "tools/call", 2, False),
            ("in", "notifications/progress", None, False),
            ("in", "elicitation/create", 1, False),
            ("out", "elicitation/create", 1, False),
            ("in", "tools/call", 2, False),
            ("out", "tools/call", 3, False),
            ("in", "tools/call", 3, True),
        ]
        assert "Lisbon" in crossed(server)[7].text


async def test_in_this_process_the_calls_that_the_newest_protocol_makes_are_logged_as_messages() -> None:
    server = MCPServer("quick")
    began = asyncio.Event()

    @server.tool()
    async def steps(ctx: Context[Any, Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        """Report progress."""
        await ctx.report_progress(1, 2, "half")
        return "done"

    @server.tool()
    async def wait() -> str:  # pyright: ignore[reportUnusedFunction]
        """Wait without end."""
        began.set()
        await asyncio.Event().wait()
        return "never"

    async with McpServer.in_process(server) as quick:
        await quick.call_tool("steps")
        with pytest.raises(McpError):
            await quick.request("no/such")
        waiting = asyncio.create_task(quick.call_tool("wait"))
        await began.wait()
        waiting.cancel()
        await asyncio.wait({waiting})
        seen = [(each.direction, each.method) for each in crossed(quick) if "subscriptions" not in each.method]
        assert seen[2:] == [
            ("out", "tools/call"),
            ("in", "notifications/progress"),
            ("in", "tools/call"),
            ("out", "no/such"),
            ("in", "no/such"),
            ("out", "tools/call"),
            ("out", "notifications/cancelled"),
        ]
        told = content(next(each for each in crossed(quick) if each.method == "notifications/progress"))
        asked = next(each for each in crossed(quick) if each.method == "tools/call")
        assert told["params"] == {"progressToken": asked.id, "progress": 1, "total": 2, "message": "half"}


async def test_a_function_is_logged_by_the_messages_that_its_calls_stand_for() -> None:
    def function(method: str, *arguments: Any) -> dict[str, Any]:
        if method != "tools/call":
            return {"jsonrpc": "2.0", "id": 99, "error": {"code": -32601, "message": f"no {method}"}}
        return {"content": [{"type": "text", "text": str(arguments)}]}

    server = McpServer(function)
    await server("tools/call", "add", {"a": 1})
    await server("tools/list")
    assert [content(entry) for entry in crossed(server)] == [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}},
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "('add', {'a': 1})"}]}},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
        {"jsonrpc": "2.0", "id": 2, "error": {"code": -32601, "message": "no tools/list"}},
    ]


@pytest.mark.parametrize("ways", [("--handshake",), ("--handshake", "--json"), ()], ids=["events", "json", "newest"])
async def test_over_http_each_call_is_logged_with_its_answer_though_many_go_on_at_once(
    tmp_path: Path, ways: tuple[str, ...]
) -> None:
    with running(tmp_path, *ways) as web:
        async with McpServer.http(web.url()) as server:
            await asyncio.gather(*(server.call_tool("add", {"a": number, "b": 1000}) for number in range(30)))
            entries = [entry for entry in crossed(server) if entry.method == "tools/call"]
            asked = {entry.id: content(entry)["params"] for entry in entries if entry.direction == "out"}
            given = {entry.id: content(entry)["result"] for entry in entries if entry.direction == "in"}
            assert len(asked) == len(given) == 30
            for request_id, params in asked.items():
                assert given[request_id]["content"][0]["text"] == str(params["arguments"]["a"] + 1000)
            assert all(entry.seconds for entry in entries if entry.direction == "in")


async def test_a_request_that_is_given_up_is_logged_as_cancelled() -> None:
    async with faulty() as server:
        with pytest.raises(McpTimeoutError):
            await server.call_tool("never", timeout=0.1)
        asked, cancelled = crossed(server)[-2:]
        assert (asked.direction, asked.method) == ("out", "tools/call")
        assert (cancelled.direction, cancelled.method) == ("out", "notifications/cancelled")
        assert content(cancelled)["params"]["requestId"] == asked.id


async def test_rubbish_and_standard_error_stand_among_the_messages() -> None:
    async with faulty() as server:
        await server.call_tool("raw", {"hex": b"what is this\n".hex()})
        await server.call_tool("speak", {"text": "I am well\n"})
        await until(lambda: server.stderr)
        beside = [
            (each.direction, each.text) for each in server.log.entries() if each.direction in ("rubbish", "stderr")
        ]
        assert beside == [("rubbish", "what is this"), ("stderr", "I am well")]


# How much of it


@pytest.mark.parametrize("carrier", ["stdio", "in_process"])
async def test_a_result_of_20_mb_is_not_kept(carrier: Literal["stdio", "in_process"]) -> None:
    size = 20_000_000
    large = MCPServer("large")

    @large.tool()
    def big(size: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """A text of so many characters."""
        return "x" * size

    server = faulty() if carrier == "stdio" else McpServer.in_process(large)
    async with server:
        result = await server.call_tool("big", {"size": size})
        assert len(result["content"][0]["text"]) == size
        entry = crossed(server)[-1]
        assert entry.size > size
        assert entry.method == "tools/call"
        assert sum(len(each.content) for each in server.log.entries(limit=MAX_ENTRIES)) < 100_000
        assert f"({entry.left_out:,} bytes left out)" in entry.text


async def test_in_a_flood_the_newest_entries_stay_and_the_server_answers() -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
    async with faulty() as server:
        heard: list[int] = []
        undo = server.log.subscribe(lambda entry: heard.append(entry.number))
        await server.call_tool("raw", {"hex": (line * 3_000).hex()})
        await server.call_tool("raw_flood", {"lines": 1_000})
        undo()
        assert (await server.call_tool("echo", {"text": "fine"}))["content"][0]["text"] == "fine"
        assert len(server.log) == MAX_ENTRIES
        assert len(heard) > 4_000
        assert heard == list(range(heard[0], heard[0] + len(heard)))
        assert server.log.entries(limit=1)[0].number == heard[-1] + 2


# Keys


async def test_no_key_of_a_servers_environment_is_in_its_log() -> None:
    async with faulty(env={"SERVICE_API_KEY": SecretStr(KEY)}) as server:
        await server.call_tool("log", {"text": "I was given {SERVICE_API_KEY}"})
        await server.call_tool("fail", {"text": "no: {SERVICE_API_KEY}"})
        await server.call_tool("speak", {"text": f"stderr has {KEY}\n"})
        await until(lambda: server.stderr)
        entries = server.log.entries(limit=MAX_ENTRIES)
        shown = "\n".join(f"{e!r} {e.text} {e.beginning()} {server.log.entry(e.number)}" for e in entries)
        assert "I was given [key]" in shown
        assert "stderr has [key]" in shown
        assert KEY not in shown


async def test_no_token_of_a_server_over_http_is_in_its_log(tmp_path: Path) -> None:
    with running(tmp_path) as web:
        async with McpServer.http(web.url(), auth=GOOD, headers={"X-Api-Key": SecretStr(KEY)}) as server:
            told = await server.call_tool("headers")
            assert KEY in str(told)
            entries = server.log.entries(limit=MAX_ENTRIES)
            assert "[key]" in entries[-1].text
            shown = "\n".join(f"{entry!r} {entry.text} {entry.beginning()}" for entry in entries)
            assert KEY not in shown
            assert GOOD not in shown


# States


async def test_the_log_goes_on_over_a_lost_connection_and_says_why_it_was_lost() -> None:
    async with faulty() as server:
        with pytest.raises(McpConnectionError):
            await server.call_tool("end", {"code": 3})
        await server.call_tool("echo", {"text": "again"})
        states = [entry for entry in server.log.entries(limit=MAX_ENTRIES) if entry.direction == "state"]
        assert [entry.method for entry in states] == ["connecting", "ready", "backoff", "connecting", "ready"]
        assert states[1].text == "ready: protocol 2025-11-25"
        assert "exited with code 3" in states[2].text
        assert [entry.is_error for entry in states] == [False, False, True, False, False]
        assert all(entry.seconds is not None for entry in crossed(server) if entry.direction == "in")


async def test_a_server_that_cannot_be_reached_has_that_in_its_log(tmp_path: Path) -> None:
    server = McpServer.stdio(tmp_path / "nowhere")
    with pytest.raises(McpConnectionError):
        await server.open()
    assert [entry.method for entry in server.log.entries()] == ["connecting", "failed"]
    assert "nowhere" in server.log.entry(2)


# Latency


async def test_the_latency_is_that_of_the_newest_small_request() -> None:
    server = faulty()
    assert server.latency is None
    async with server:
        assert server.latency is None
        await server.call_tool("echo", {"text": "x"})
        assert server.latency is None
        await server.list_tools()
        first = server.latency
        assert first is not None
        assert 0 < first < 5
        seconds = await server.check()
        assert server.latency == seconds != first
        assert 0 < seconds < 5


async def test_a_server_that_answers_no_ping_is_asked_for_its_tools_from_then_on() -> None:
    bench = Workbench([definition("one")])
    async with McpServer(bench) as server:
        await server.check()
        await server.check()
        assert bench.lists == 2
        bench.list_failure = McpError("Method not found", rpc_code=-32601)
        assert await server.check() > 0


async def test_checking_a_server_that_is_silent_ends_in_time() -> None:
    async with faulty() as server:
        await server.call_tool("go_deaf")
        with pytest.raises(McpTimeoutError, match=r"within 0\.2 seconds"):
            await server.check(0.2)
        assert server.latency is None
    with pytest.raises(InvalidParametersError, match="timeout"):
        await server.check(0)


async def test_checking_a_silent_server_does_not_wait_for_a_person_who_is_asked_on_its_behalf() -> None:
    bench = Workbench()
    asked = asyncio.Event()

    async def elicit(_message: str, _schema: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with McpServer(bench, on_elicitation=elicit) as server:
        bench.may_list.clear()
        checking = asyncio.create_task(server.check(0.2))
        question = asyncio.create_task(bench.ask("elicitation/create", {"message": "Who?", "requestedSchema": {}}))
        await asked.wait()
        async with asyncio.timeout(5):
            with pytest.raises(McpTimeoutError, match="tools/list within"):
                await checking
        question.cancel()


async def test_checking_a_server_that_cannot_be_reached_says_so() -> None:
    with pytest.raises(McpConnectionError, match="exited"):
        await McpServer(Steered("refuse")).check()


async def test_a_latency_is_known_after_checking_from_another_loop() -> None:
    async with faulty() as server:
        seconds = await asyncio.to_thread(lambda: asyncio.run(server.check()))
        assert server.latency == seconds


# Connecting anew

Anew = Callable[[McpServer], Awaitable[object]]


def here(server: McpServer) -> Awaitable[object]:
    return server.reconnect()


def in_another_thread(server: McpServer) -> Awaitable[object]:
    return asyncio.to_thread(lambda: asyncio.run(server.reconnect()))


@pytest.mark.parametrize("anew", [here, in_another_thread])
@pytest.mark.parametrize("carrier", ["stdio", "http"])
async def test_a_call_that_goes_on_ends_with_a_clear_error_when_its_server_is_connected_anew(
    tmp_path: Path, carrier: str, anew: Anew
) -> None:
    with running(tmp_path, "--handshake") as web:
        server, tool = (faulty(), "never") if carrier == "stdio" else (McpServer.http(web.url()), "wait")
        async with server:
            waiting = asyncio.create_task(server.call_tool(tool, {"seconds": 60}))
            await until(lambda: crossed(server)[-1].method == "tools/call")
            await anew(server)
            with pytest.raises(McpConnectionError, match="was closed before the answer came"):
                await waiting
            assert server.state == "ready"
            await server.check()
            states = [entry.method for entry in server.log.entries() if entry.direction == "state"]
            assert states == ["connecting", "ready", "closed", "connecting", "ready"]
            assert server.restarts == 0


@pytest.mark.parametrize("is_sync", [True, False])
async def test_a_call_of_a_function_that_goes_on_ends_when_its_server_is_connected_anew(is_sync: bool) -> None:
    began, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def blocks(*_: Any) -> dict[str, Any]:
        loop.call_soon_threadsafe(began.set)
        go_on.wait()
        return {}

    async def waits(*_: Any) -> dict[str, Any]:
        began.set()
        await asyncio.Event().wait()
        return {}

    async with McpServer(blocks if is_sync else waits) as server:
        waiting = asyncio.create_task(server.call_tool("any"))
        await began.wait()
        await server.reconnect()
        go_on.set()
        with pytest.raises(McpConnectionError, match="was closed before the answer came"):
            await waiting


async def test_a_server_that_was_never_connected_or_failed_is_connected_by_connecting_it_anew() -> None:
    transport = Steered("refuse", "open", "open")
    server = McpServer(transport)
    with pytest.raises(McpConnectionError):
        await server.reconnect()
    assert (await server.reconnect()).state == "ready"
    await asyncio.gather(server.reconnect(), server.reconnect())
    assert server.state == "ready"
    assert transport.openings - transport.closings == 1
    await server.close()


async def test_connecting_anew_tells_when_it_fails() -> None:
    async with McpServer(Steered("open", "refuse")) as server:
        with pytest.raises(McpConnectionError, match="exited with code 1"):
            await server.reconnect()
        assert server.state == "failed"
        server.enabled = False
        with pytest.raises(McpConnectionError, match="switched off"):
            await server.reconnect()


async def test_an_agent_goes_on_using_a_server_that_was_connected_anew() -> None:
    bench = Workbench([definition("first")])
    server = McpServer(bench)
    async with agent_with(server, answers=[[call("first")], "done", [call("second")], "done"]) as agent:
        await agent.prompt("go")
        bench.tools = [definition("first"), definition("second")]
        await server.reconnect()
        await discovered(agent)
        assert names(agent) == ["first", "second"]
        await agent.prompt("go on")
        assert [message_text(result) for result in results(agent)] == ["first ran", "second ran"]
        assert server.in_use
    assert not bench.is_open


async def test_connecting_anew_a_server_whose_loop_ended_connects_it_here() -> None:
    server = McpServer(Steered())
    await asyncio.to_thread(lambda: asyncio.run(server.open()))
    await server.reconnect()
    assert await server.request("ping") == {"method": "ping"}
    await server.close()
