"""Waiting for what agents and servers tell, rather than for time to pass."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.events import Event, ToolsChanged
from yiemagent_nb.mcp.server import McpServer, ServerEvent

__all__ = ["next_state", "next_tools"]

SECONDS = 10


class _Wait:
    """Something that is to happen; awaited, it gives what happened."""

    def __init__(self) -> None:
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def happened(self, value: Any) -> None:
        if not self.future.done():
            self.future.set_result(value)

    async def over(self) -> Any:
        async with asyncio.timeout(SECONDS):
            return await self.future


@contextmanager
def next_tools(agent: Agent) -> Generator[_Wait]:
    """The next ``ToolsChanged`` of an agent, from here on."""
    wait = _Wait()

    def listen(event: Event, _signal: object) -> None:
        if isinstance(event, ToolsChanged):
            wait.happened(event.names)

    unsubscribe = agent.subscribe(listen)
    try:
        yield wait
    finally:
        unsubscribe()


@contextmanager
def next_state(server: McpServer, state: str) -> Generator[_Wait]:
    """The next time that a server comes into a state, from here on."""
    wait = _Wait()

    def listen(event: ServerEvent) -> None:
        if event.kind == "state" and event.data["state"] == state:
            wait.happened(state)

    unsubscribe = server.subscribe(listen)
    try:
        yield wait
    finally:
        unsubscribe()
