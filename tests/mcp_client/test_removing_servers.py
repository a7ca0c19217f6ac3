"""Servers that are taken from an agent, at any time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.server import MCPServer
from mcp_client.agents_with_servers import add, agent_with, discovered, message_text, names, registry, results
from mcp_client.waiting import next_tools
from mcp_client.watching import until
from mcp_client.workbench import Workbench, definition, text_result

from yiemagent_nb import Agent, McpServer, ToolsChanged
from yiemagent_nb.core.errors import InvalidParametersError, McpError
from yiemagent_nb.core.events import AgentError
from yiemagent_nb.testing import EventRecorder, Scripted, call

pytestmark = pytest.mark.requirement("Y FR-004", "Y US-002", "Y SD-004")


def bench(*tools: str) -> Workbench:
    return Workbench([definition(name) for name in tools])


@pytest.mark.parametrize("by_name", [True, False])
async def test_the_tools_of_a_server_that_is_removed_are_gone_at_once_and_it_is_disconnected(by_name: bool) -> None:
    first, second = bench("one", "two"), bench("three")
    a, b = McpServer(first, name="a"), McpServer(second, name="b")
    async with agent_with(a, b, tools=[add]) as agent:
        await discovered(agent)
        recorder = EventRecorder()
        agent.subscribe(recorder)
        await agent.remove_mcp_server("a" if by_name else a)
        assert names(agent) == ["add", "three"]
        assert registry(agent).servers == (b,)
        assert not first.is_open
        assert not a.in_use
        assert a.answerers == []
        await until(lambda: recorder.of(ToolsChanged))
        assert recorder.of(ToolsChanged) == [ToolsChanged(("add", "list_tools", "three"))]
        assert second.is_open


async def test_a_server_that_others_use_stays_connected() -> None:
    shared = bench("one")
    server = McpServer(shared)
    async with agent_with(server) as agent, agent_with(server) as other:
        await discovered(agent)
        await discovered(other)
        await agent.remove_mcp_server(server)
        assert shared.is_open
        assert names(other) == ["one"]
        await server.open()
        await other.remove_mcp_server(server)
        assert shared.is_open  # it was opened by hand
    await server.close()


async def test_removing_what_is_not_there_is_an_error_that_names_what_is() -> None:
    async with agent_with(McpServer(bench("one"), name="here")) as agent:
        await discovered(agent)
        for wrong in ("there", McpServer(bench(), name="elsewhere"), None, 7):
            with pytest.raises(InvalidParametersError, match="It has these: here"):
                await agent.remove_mcp_server(wrong)
        await agent.remove_mcp_server("here")
        with pytest.raises(InvalidParametersError, match="It has none"):
            await agent.remove_mcp_server("here")
        assert names(agent) == []


async def test_a_server_that_comes_back_has_its_tools_under_the_names_that_they_had() -> None:
    first, second = McpServer(bench("look"), name="first"), McpServer(bench("look"), name="second")
    async with agent_with(first, second) as agent:
        await discovered(agent)
        before = names(agent)
        assert len(before) == 2
        await agent.remove_mcp_server("first")
        assert names(agent) == before[1:]
        agent.add_mcp_servers(first)
        await discovered(agent)
        assert sorted(names(agent)) == sorted(before)
        assert {tool.name: tool.source for tool in agent.tools.values() if tool.name in before} == {
            before[0]: "first",
            before[1]: "second",
        }


async def test_a_server_may_be_removed_while_its_tools_are_asked_for() -> None:
    slow = bench("one")
    slow.may_list.clear()
    async with agent_with(McpServer(slow, name="slow"), McpServer(bench("two")), answers=["done"]) as agent:
        recorder = EventRecorder()
        agent.subscribe(recorder)
        run = asyncio.create_task(agent.prompt("go"))
        await until(lambda: slow.lists)
        await agent.remove_mcp_server("slow")
        async with asyncio.timeout(10):
            assert (await run).text == "done"
        assert names(agent) == ["two"]
        assert not slow.is_open
        slow.may_list.set()
        assert recorder.of(AgentError) == []
        assert names(agent) == ["two"]


async def test_a_server_that_changes_in_the_moment_of_its_removal_is_not_asked_again() -> None:
    changing = bench("one")
    async with agent_with(McpServer(changing, name="changing")) as agent:
        await discovered(agent)
        changing.change([definition("one"), definition("two")])
        await agent.remove_mcp_server("changing")
        await asyncio.sleep(0)
        assert names(agent) == []
        assert not changing.is_open


async def test_a_call_that_goes_on_ends_with_an_error_and_the_run_goes_on_without_the_tools() -> None:
    waiting = bench("wait")
    server = McpServer(waiting, name="waiting")

    async def never(_name: str, _arguments: object) -> Any:
        await asyncio.Event().wait()

    waiting.answer = never
    backend = Scripted([[call("wait")], [call("wait")], "done"])
    async with Agent(backend, mcp_servers=[server]) as agent:
        run = asyncio.create_task(agent.prompt("go"))
        await waiting.called.wait()
        await agent.remove_mcp_server(server)
        async with asyncio.timeout(10):
            assert (await run).text == "done"
        lost, unknown = results(agent)
        assert lost.is_error
        assert "was closed before the answer came" in message_text(lost)
        assert unknown.is_error
        assert "wait" in message_text(unknown)
        assert len(waiting.calls) == 1
        assert [tool["function"]["name"] for tool in backend.requests[1].tools] == ["list_tools"]


async def test_a_server_may_be_removed_from_another_thread() -> None:
    removed = bench("one")
    async with agent_with(McpServer(removed, name="it")) as agent:
        await discovered(agent)
        await asyncio.to_thread(lambda: asyncio.run(agent.remove_mcp_server("it")))
        assert names(agent) == []
        assert not removed.is_open


async def test_a_removed_server_may_be_used_by_hand() -> None:
    server = McpServer(bench("one"), name="it")
    async with agent_with(server) as agent:
        await discovered(agent)
        await agent.remove_mcp_server("it")
        assert await server.call_tool("one") == text_result("one ran")
    assert server.state == "ready"
    await server.close()


# Tools that a person switched off


async def test_a_tool_that_a_person_switched_off_stays_off_when_its_server_is_asked_again() -> None:
    changing = bench("one", "two")
    server = McpServer(changing)
    async with agent_with(server, answers=[[call("list_tools")], "done"]) as agent:
        await discovered(agent)
        agent.set_tool_active("one", active=False)
        with next_tools(agent) as told:
            changing.change([definition("one", "Does it otherwise."), definition("two"), definition("three")])
            await told.over()
        assert names(agent) == ["two", "three"]
        assert agent.registered_tools["one"].description == "Does it otherwise."
        await server.reconnect()
        await discovered(agent)
        assert names(agent) == ["two", "three"]
        await agent.prompt("go")
        listed = message_text(results(agent)[0])
        assert "two (" in listed
        assert "one (" not in listed
        agent.set_tool_active("one", active=True)
        assert "one" in names(agent)


async def test_a_tool_of_ones_own_that_is_switched_off_keeps_its_name_from_servers() -> None:
    async with agent_with(McpServer(bench("add"), name="other"), tools=[add]) as agent:
        agent.set_tool_active("add", active=False)
        await discovered(agent)
        assert names(agent) == ["other__add"]
        assert agent.registered_tools["add"].source != "other"


async def test_the_tools_of_a_server_that_is_not_there_any_more_do_not_come_back_with_a_failure() -> None:
    failing = bench("one")
    async with agent_with(McpServer(failing, name="failing"), McpServer(bench("two"))) as agent:
        await discovered(agent)
        failing.list_failure = McpError("out of order")
        failing.change()
        await agent.remove_mcp_server("failing")
        await discovered(agent)
        assert names(agent) == ["two"]
        assert registry(agent).problems == {}


async def test_a_server_of_the_sdk_is_removed_as_any_other() -> None:
    sdk = MCPServer("sdk")

    @sdk.tool()
    def one() -> str:  # pyright: ignore[reportUnusedFunction]
        """Say one."""
        return "one"

    async with agent_with(McpServer.in_process(sdk)) as agent:
        await discovered(agent)
        await agent.remove_mcp_server("sdk")
        assert names(agent) == []
