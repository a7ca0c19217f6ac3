"""Servers that no one here wrote, through an agent: every tool called, every kind of content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mcp_client.third_party_servers import SERVERS, Call, Place

from yiemagent_nb import Agent, Tool, ToolResultMessage
from yiemagent_nb.testing import Scripted, call

pytestmark = pytest.mark.timeout(300)  # the first test on a machine installs the servers


def tool_of(agent: Agent, server: str, tool: str) -> Tool:
    """A tool by its name at the server."""
    tools = [each for each in agent.state.tools.values() if (each.source, each.original_name) == (server, tool)]
    assert tools, f"no {tool} among {sorted(agent.state.tools)}"
    return tools[0]


def calling(agent: Callable[[], Agent], server: str, wanted: Call) -> Callable[[Any], Any]:
    """A model's answer that calls a tool, by the name that it has when it is needed."""
    return lambda _messages: [call(tool_of(agent(), server, wanted.tool).name, **wanted.arguments)]


def check(wanted: Call, result: ToolResultMessage) -> None:
    """A result is what it should be."""
    said = f"{wanted.tool}: {result.text}"
    assert result.is_error == wanted.is_error, said
    assert wanted.text in result.text, said
    details: dict[str, Any] = result.details or {}
    if not wanted.is_error:
        kinds = tuple(block["type"] for block in details.get("content", ()) if block["type"] != "text")
        assert kinds == wanted.blocks, said
        assert ("structured_content" in details) == wanted.structured, said
        assert "does not fit" not in result.text


@pytest.mark.requirement("Y SP-009", "Y SP-010", "Y FR-004", "Y US-002")
@pytest.mark.parametrize("which", SERVERS)
async def test_an_agent_calls_every_tool_of_a_server(which: str, place: Place) -> None:
    calls = SERVERS[which].calls(place)
    async with SERVERS[which].connect(place) as server:
        answers = [calling(lambda: agent, server.name, wanted) for wanted in calls]
        agent = Agent(Scripted([*answers, "done"]), mcp_servers=[server])
        async with agent:
            assert (await agent.prompt("Call all of them.")).text == "done"
            offered = {tool.original_name for tool in agent.state.tools.values() if tool.source == server.name}
        assert offered == {wanted.tool for wanted in calls}
        results = [message for message in agent.messages if isinstance(message, ToolResultMessage)]
        for wanted, result in zip(calls, results, strict=True):
            check(wanted, result)
