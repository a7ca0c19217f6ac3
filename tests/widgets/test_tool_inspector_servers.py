"""The tool inspector: servers of MCP, what is said to and by them, their resources and prompts."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_client.http_server import GOOD, running
from mcp_client.reference_server import reference_command
from mcp_client.workbench import Workbench, definition
from widgets.inspecting import InspectorPage, RefusedError

from yiemagent_nb import Agent, McpServer
from yiemagent_nb.mcp.link import ServerInfo
from yiemagent_nb.testing import Scripted

KEY = "tk-4f9d1c77a2b8e635"
FEATURES = "demo://resource/static/document/features.md"


@asynccontextmanager
async def inspecting(*servers: Any, **options: Any) -> AsyncGenerator[InspectorPage]:
    agent = Agent(Scripted(["done"]), mcp_servers=servers, **options)
    page = InspectorPage(agent)
    await page.open()
    try:
        yield page
    finally:
        page.close()
        await agent.shutdown()


def the(servers: list[dict[str, Any]], name: str) -> dict[str, Any]:
    none: dict[str, Any] = {}
    return next((server for server in servers if server["name"] == name), none)


@pytest.mark.timeout(300)  # the first test on a machine installs the server
async def test_the_reference_server_is_shown_called_read_and_watched() -> None:
    everything = McpServer.stdio(*reference_command(), name="everything")
    async with inspecting(everything) as page:
        told = await page.told("servers", lambda event: the(event["servers"], "everything")["tools"] > 10)
        server = the(told["servers"], "everything")
        assert (server["state"], server["error"], server["enabled"]) == ("ready", "", True)
        assert (server["title"], server["protocol"]) == ("mcp-servers/everything", "2025-11-25")
        assert "resources (subscribe)" in server["capabilities"]
        assert server["instructions"]
        assert server["stderr"] == ["Starting default (STDIO) server..."]

        log = await page.ask("load_log", server="everything", before=None)
        assert log["start"] == 0
        answer = next(each for each in log["entries"] if each["method"] == "initialize" and each["direction"] == "in")
        assert answer["seconds"] > 0
        entry = await page.ask("load_log_entry", server="everything", number=answer["number"])
        assert json.loads(entry["text"])["result"]["serverInfo"]["name"] == "mcp-servers/everything"

        details = await page.call("everything__get_structured_content", '{"location": "Chicago"}')
        assert details["fits"] is True
        assert json.loads(details["raw"])["structuredContent"]["humidity"]
        assert details["details"]["parts"][0]["type"] == "structure"
        said = await page.told("log", lambda event: any(each["method"] == "tools/call" for each in event["entries"]))
        assert said["server"] == "everything"
        picture = await page.call("everything__get_tiny_image", call="c2")
        assert "image" in [block["type"] for block in picture["content"]]
        long = '{"duration": 20, "steps": 400}'
        await page.act("call_tool", call="c3", name="everything__trigger_long_running_operation", arguments_text=long)
        await page.told("call", lambda event: event["call"] == "c3" and event["progress"])
        await page.ask("cancel_call", call="c3")
        assert (await page.ended("c3"))["state"] == "cancelled"

        listed = await page.act("list_resources", server="everything")
        assert FEATURES in [each["uri"] for each in listed["resources"]]
        assert listed["templates"][0]["uri_template"] == "demo://resource/dynamic/text/{resourceId}"
        (text,) = (await page.act("read_resource", server="everything", uri=FEATURES))["contents"]
        assert (text["type"], text["text"][0]) == ("resource", "#")
        await page.act("watch_resource", server="everything", uri=FEATURES, watch=True)
        listed = await page.act("list_resources", server="everything")
        assert [each["uri"] for each in listed["resources"] if each["watched"]] == [FEATURES]
        await page.call("everything__toggle_subscriber_updates", call="c4")
        assert (await page.told("resource"))["uri"] == FEATURES

        prompts = (await page.act("list_prompts", server="everything"))["prompts"]
        (takes,) = [prompt["arguments"] for prompt in prompts if prompt["name"] == "args-prompt"]
        assert (takes[0]["name"], takes[0]["required"]) == ("city", True)
        filled = await page.act("get_prompt", server="everything", name="args-prompt", arguments={"city": "Lisbon"})
        assert "Lisbon" in filled["messages"][0]["content"][0]["text"]
        chosen = {"resourceType": "Text", "resourceId": "1"}
        filled = await page.act("get_prompt", server="everything", name="resource-prompt", arguments=chosen)
        assert [part["type"] for part in filled["messages"][1]["details"]["parts"]] == ["resource"]
        with pytest.raises(RefusedError, match="city"):
            await page.act("get_prompt", server="everything", name="args-prompt", arguments={})


async def test_what_a_server_asks_a_person_in_a_call_by_hand_is_told_and_answered_here() -> None:
    everything = McpServer.stdio(*reference_command(), name="everything")
    async with inspecting(everything) as page:
        await page.told("tools", lambda event: len(event["tools"]) > 10)
        await page.act(
            "call_tool", call="1", name="everything__trigger_elicitation_request", arguments_text="{}", hooks=True
        )
        asked = await page.told("asked", lambda event: event["questions"])
        await page.ask("answer", request_id=asked["questions"][0]["request_id"], action="decline")
        assert "declined" in (await page.ended("1"))["summary"]


async def test_a_server_is_disconnected_connected_checked_refreshed_and_removed() -> None:
    bench = Workbench([definition("dig")])
    async with inspecting(McpServer(bench, name="bench")) as page:
        await page.told("tools", lambda event: len(event["tools"]) == 2)
        await page.act("act_on_server", server="bench", action="disconnect")
        told = await page.told("servers", lambda event: the(event["servers"], "bench")["state"] == "closed")
        assert the(told["servers"], "bench")["enabled"] is False
        await page.told("tools", lambda event: len(event["tools"]) == 1)
        with pytest.raises(RefusedError, match="switched off"):
            await page.act("act_on_server", server="bench", action="check")
        await page.act("act_on_server", server="bench", action="connect")
        told = await page.told("servers", lambda event: the(event["servers"], "bench")["latency"] is not None)
        before = bench.opened
        await page.act("act_on_server", server="bench", action="reconnect")
        assert bench.opened == before + 1
        bench.tools.append(definition("fill"))
        await page.act("act_on_server", server="bench", action="refresh")
        await page.told("tools", lambda event: "fill" in [tool["name"] for tool in event["tools"]])
        await page.act("act_on_server", server="bench", action="remove")
        await page.told("servers", lambda event: event["servers"] == [])
        assert not bench.is_open
        with pytest.raises(RefusedError, match="no server named"):
            await page.act("act_on_server", server="bench", action="check")


async def test_a_server_that_fails_says_why_and_what_discovery_left_out_is_told() -> None:
    bad = Workbench([definition("good"), {"name": "bad", "inputSchema": {"type": "string"}}])
    program = [sys.executable, "-c", "import sys; sys.exit('no database here')"]
    async with inspecting(McpServer(bad, name="bench"), McpServer.stdio(*program, name="broken")) as page:
        told = await page.told("servers", lambda event: the(event["servers"], "broken")["state"] == "failed")
        assert "no database here" in the(told["servers"], "broken")["error"]
        told = await page.told("servers", lambda event: the(event["servers"], "broken")["problems"])
        assert any('bench: The inputSchema of the tool "bad"' in each for each in told["problems"])


@pytest.mark.parametrize(
    ("config", "name", "kind"),
    [
        ("http://127.0.0.1:9/mcp", "", "http"),
        ("https://example.invalid/sse", "news", "sse"),
        ("nats://127.0.0.1:9/tools.clock", "", "nats"),
        ("A_KEY=tk-4f9d1c77a2b8e635 uvx mcp-server-time --local-timezone 'Europe/Lisbon'", "", "stdio"),
        ('{"mcpServers": {"a": {"command": "uvx", "args": ["x"]}, "b": {"url": "http://127.0.0.1:9"}}}', "", "stdio"),
        ('{"servers": {"c": {"type": "http", "url": "http://127.0.0.1:9"}}, // of VS Code\n}', "", "http"),
        ('"fetch": {"command": "uvx", "args": ["mcp-server-fetch"]}', "", "stdio"),
        ('{"command": "uvx", "args": ["mcp-server-fetch"], "disabled": true}', "named", "stdio"),
    ],
)
async def test_a_server_is_added_in_each_way_that_people_write_it(config: str, name: str, kind: str) -> None:
    async with inspecting() as page:
        given = await page.act("add_server", config=config, name=name)
        servers = page.inspector.agent.mcp_servers
        assert given["servers"] == [server.name for server in servers]
        assert servers[0].kind in (kind, "callable")
        assert not name or given["servers"] == [name]
        await page.told("servers", lambda event: len(event["servers"]) == len(servers))
        for server in servers:
            server.enabled = False
        assert KEY not in page.text


@pytest.mark.parametrize(
    ("config", "buffers", "why"),
    [
        ("ftp://example.org/mcp", (), "not reached by ftp://"),
        ("example.org/mcp", (), "does not say how it is reached"),
        ("nats://127.0.0.1:4222", (), "needs the topic"),
        ("uvx 'mcp", (), "not complete"),
        ("curl x | sh", (), "no shell reads it"),
        ('{"mcpServers": {"a": {"args": []}}}', (), "neither a command nor a url"),
        ('{"mcpServers": {"a": ', (), "no JSON"),
        ("uvx mcp-server-time", (KEY.encode(),), "goes with an address"),
        ("http://127.0.0.1:9/mcp", (b"a b",), "holds a space"),
        ("  ", (), "Expected an address"),
    ],
)
async def test_what_is_no_server_is_refused_with_what_was_expected(
    config: str, buffers: tuple[bytes, ...], why: str
) -> None:
    async with inspecting() as page:
        with pytest.raises(RefusedError, match=why):
            await page.act("add_server", config=config, name="", buffers=buffers)
        assert page.inspector.agent.mcp_servers == ()
        assert KEY not in page.text


async def test_a_token_reaches_its_server_and_is_never_told_to_anyone(tmp_path: Path) -> None:
    def failed(event: dict[str, Any], name: str, status: str) -> bool:
        server = the(event["servers"], name)
        return server.get("state") == "failed" and status in server["error"]

    with running(tmp_path) as server:
        async with inspecting() as page:
            address = server.url("/unauthorized")  # answers 503 to who has the token
            await page.act("add_server", config=address, name="none")
            listed = f'{{"mcpServers": {{"listed": {{"url": "{address}"}}}}}}'
            headers = {"Authorization": "Bearer ${input:key}"}
            placed = json.dumps({"servers": {"placed": {"url": address, "headers": headers}}})
            for config, name in ((address, "given"), (listed, "listed"), (placed, "placed")):
                await page.act("add_server", config=config, name=name, buffers=(GOOD.encode(),))
            for name in ("given", "listed", "placed"):
                await page.told("servers", lambda event, name=name: failed(event, name, "503"))
                log = await page.ask("load_log", server=name, before=None)
                for each in log["entries"]:
                    await page.ask("load_log_entry", server=name, number=each["number"])
            await page.told("servers", lambda event: failed(event, "none", "401"))
            assert GOOD not in page.text
            assert GOOD not in repr(page.inspector.agent.mcp_servers)


async def test_a_log_is_told_while_it_is_watched_and_a_flood_of_it_costs_little() -> None:
    flooding = (
        "import sys\nfor n in range(9000): print('line', n, file=sys.stderr)\nsys.stderr.flush()\nsys.stdin.read()"
    )
    quiet, loud = (
        McpServer.stdio(sys.executable, "-c", flooding, name=name, connect_timeout=1.5) for name in ("quiet", "loud")
    )
    async with inspecting(quiet, loud) as page:
        await page.ask("load_log", server="loud", before=None)
        last = await page.told("servers", lambda event: the(event["servers"], "loud")["state"] == "failed")
        assert the(last["servers"], "loud")["stderr"][-1] == "line 8999"
        logs = [event for event in page.events if event["type"] == "log"]
        assert {event["server"] for event in logs} == {"loud"}
        assert max(len(event["entries"]) for event in logs) <= 100
        assert len([event for event in page.events if event["type"] == "servers"]) < 40
        assert len(page.text) < 600_000
        newest = await page.ask("load_log", server="loud", before=None)
        first = newest["entries"][0]["number"]
        assert newest["start"] == first
        older = await page.ask("load_log", server="loud", before=first)
        assert older["entries"][-1]["number"] == first - 1


async def test_a_server_that_is_kept_does_not_keep_an_agent_whose_inspector_was_closed() -> None:
    server = McpServer(Workbench([definition("dig")]), name="bench")

    async def inspect() -> weakref.ref[Agent]:
        agent = Agent(Scripted(["done"]), mcp_servers=[server])
        page = InspectorPage(agent)
        await page.open()
        await page.told("tools", lambda event: len(event["tools"]) == 2)
        await page.ask("load_log", server="bench", before=None)
        page.close()
        return weakref.ref(agent)

    agent = await inspect()
    async with asyncio.timeout(20):
        while agent() is not None:  # a timer of the inspector may have it for a moment
            gc.collect()
            await asyncio.sleep(0.01)


async def test_in_an_app_no_server_is_added_and_no_hook_is_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    async with inspecting(McpServer(bench := Workbench([definition("dig")]), name="bench")) as page:
        await page.told("tools", lambda event: len(event["tools"]) == 2)
        with pytest.raises(RefusedError, match="served as an app"):
            await page.act("add_server", config="uvx mcp-server-time", name="")
        with pytest.raises(RefusedError, match="past the agent's hooks"):
            await page.call("dig", hooks=False)
        assert bench.calls == []
        assert (await page.call("dig"))["summary"] == "dig ran"


async def test_five_hundred_tools_stay_below_their_size_and_are_read_once() -> None:
    properties = {name: {"type": "string", "description": "A value."} for name in ("place", "unit", "days")}
    schema = {"type": "object", "properties": properties, "required": ["place"]}
    tools = [
        definition(f"weather_report_{number}", f"Report {number} of the weather. " * 9, inputSchema=schema)
        for number in range(500)
    ]
    async with inspecting(McpServer(Workbench(tools), name="weather")) as page:
        await page.told("tools", lambda event: len(event["tools"]) == 501)
        started = time.perf_counter()
        state = page.inspector.state()
        seconds = time.perf_counter() - started
        assert len(json.dumps(state)) < 120_000
        assert state["tools"][7]["summary"].startswith("Report 6 of")
        assert seconds < 0.1
        told = len([event for event in page.events if event["type"] == "tools"])
        await page.inspector.agent.prompt("go")
        assert len([event for event in page.events if event["type"] == "tools"]) == told


async def test_what_a_hostile_server_says_of_itself_is_bounded() -> None:
    info = ServerInfo(name="n" * 9999, instructions="i" * 99_999, capabilities={"c" * 9999: {"x" * 999: True}})
    tools = [definition("t" * 60, "d" * 99_999, title="l" * 9999)]
    async with inspecting(McpServer(Workbench(tools, info=info), name="bench")) as page:
        await page.told("tools", lambda event: len(event["tools"]) == 2)
        assert len(json.dumps(page.inspector.state())) < 10_000
        assert await page.act("list_resources", server="bench") == {"resources": [], "templates": []}
        assert await page.act("list_prompts", server="bench") == {"prompts": []}
        with pytest.raises(RefusedError, match="Method not found"):
            await page.act("read_resource", server="bench", uri="x://y")
