"""Where tools come from that come and go: the servers that an agent is given, beside its own tools.

The core knows no protocol. The package says at import what makes a source of ``mcp_servers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.signal import AbortSignal
from yiemagent_nb.core.tools import Tool

if TYPE_CHECKING:
    from yiemagent_nb.core.agent import Agent

__all__ = ["ToolSource", "merge_tools", "set_tool_source", "tool_source"]


class ToolSource(Protocol):
    """Gives one agent tools, and keeps them in step with their servers.

    It calls ``agent.refresh_tools()`` on the agent's loop when ``tools`` changed.
    """

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that can be called now, by name."""
        ...

    @property
    def servers(self) -> tuple[Any, ...]:
        """The servers, in the order in which they were given."""
        ...

    @property
    def problems(self) -> Mapping[str, tuple[str, ...]]:
        """By server, why it gives no tools, and what of them was left out; only those that have such."""
        ...

    def attach(self, agent: Agent) -> None:
        """Serve this agent. Called once, when it is built, perhaps outside of an event loop."""
        ...

    def add(self, servers: Iterable[Any]) -> None:
        """Take further servers.

        Raises:
            InvalidParametersError: One is no server, or a name is taken; nothing was changed.
        """
        ...

    async def remove(self, server: Any) -> None:
        """Let go of a server, given as it is or by its name; its tools are gone at once. Called on the agent's loop.

        Raises:
            InvalidParametersError: There is none; the error names those that there are.
        """
        ...

    def start(self) -> None:
        """Begin to connect. Called on the agent's loop."""
        ...

    async def ready(self, signal: AbortSignal) -> None:
        """Wait until each server's tools are known, or that it has none to give. Never raises."""
        ...

    async def close(self) -> None:
        """Let go of the servers. Never raises."""
        ...


_factories: list[Callable[[Iterable[Any]], ToolSource]] = []


def set_tool_source(factory: Callable[[Iterable[Any]], ToolSource]) -> None:
    """Say what makes a source of an agent's ``mcp_servers``. The package does so at import."""
    _factories[:] = [factory]


def tool_source(servers: Iterable[Any]) -> ToolSource:
    """A source of these servers' tools.

    Raises:
        InvalidParametersError: One of them is no server, or nothing was set.
    """
    if not _factories:
        raise InvalidParametersError(
            "This agent knows no MCP servers.", "Import Agent from yiemagent_nb, or pass the servers' tools as tools=."
        )
    return _factories[0](servers)


def merge_tools(own: Mapping[str, Tool], source: Mapping[str, Tool]) -> dict[str, Tool]:
    """An agent's own tools, then those of its servers.

    Raises:
        InvalidParametersError: Both have a tool of one name; the error names it.
    """
    if both := own.keys() & source.keys():
        name = min(both)
        raise InvalidParametersError(
            f"the name {name!r} is taken by a tool of the server {source[name].source!r}.",
            f"Give your own another: tool(function, name={name + '_2'!r}).",
        )
    return {**own, **source}
