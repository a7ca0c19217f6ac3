"""Agents with servers, and what the tests of both look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from yiemagent_nb import Agent, Scripted, ToolResultMessage, tool
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.mcp.registry import McpTools
from yiemagent_nb.testing import Answer

__all__ = ["add", "agent_with", "discovered", "message_text", "names", "registry", "results"]


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def agent_with(*servers: Any, answers: Sequence[Answer] = (), **options: Any) -> Agent:
    """An agent with these servers that gives these answers."""
    return Agent(Scripted(answers), mcp_servers=servers, **options)


def registry(agent: Agent) -> McpTools:
    """What gives the agent its servers' tools."""
    return cast("McpTools", agent._toolbox.source)  # pyright: ignore[reportPrivateUsage]


async def discovered(agent: Agent) -> McpTools:
    """The agent's registry, when every server was discovered once."""
    source = registry(agent)
    await source.ready(AbortSignal())
    return source


def results(agent: Agent) -> list[ToolResultMessage]:
    """The results in the agent's history."""
    return [message for message in agent.messages if isinstance(message, ToolResultMessage)]


def message_text(message: ToolResultMessage) -> str:
    """The text of a result."""
    return "".join(getattr(block, "text", "") for block in message.content)


def names(agent: Agent) -> list[str]:
    """The agent's tools, ``list_tools`` left aside."""
    return [name for name in agent.tools if name != "list_tools"]
