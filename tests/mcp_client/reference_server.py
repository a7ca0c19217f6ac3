"""The protocol's reference server for tests that start it from elsewhere, such as from a notebook's cell."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from mcp_client.installing import NODE, npm_ci
from mcp_client.third_party_servers import everything_command, everything_listening

__all__ = ["reference_command", "reference_in_a_cell", "reference_over_http"]

_THIRD_PARTY = Path(__file__).with_name("third_party")


def reference_command() -> tuple[str, ...]:
    """The command of the reference server over stdio, which is installed where it is missing."""
    return tuple(map(str, everything_command(NODE, npm_ci(_THIRD_PARTY))))


def reference_in_a_cell(variable: str = "server", *, name: str = "everything") -> str:
    """Python for a notebook's cell that makes a variable of the reference server over stdio.

    Args:
        variable: The variable.
        name: The server's name.
    """
    words = ", ".join(map(repr, reference_command()))
    return f"from yiemagent_nb import McpServer\n{variable} = McpServer.stdio({words}, name={name!r})\n"


@asynccontextmanager
async def reference_over_http() -> AsyncGenerator[str]:
    """The address of the reference server over streamable HTTP, for as long as the block lasts."""
    async with everything_listening(reference_command(), "streamableHttp") as address:
        yield f"{address}/mcp"
