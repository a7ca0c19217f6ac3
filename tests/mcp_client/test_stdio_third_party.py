"""Servers that no one here wrote, by the SDK's own client over our streams."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from mcp import Client
from mcp_client.watching import Recorder, alive
from mcp_types import TextContent

from yiemagent_nb.mcp.links.stdio import StdioTransport

pytestmark = pytest.mark.requirement("Y SP-009", "Y SD-004")


def family() -> list[int]:
    """The supervisor and its server, which no other child of this process is."""
    started = [
        child for child in psutil.Process().children(recursive=True) if "supervisor.py" in " ".join(child.cmdline())
    ]
    return [process.pid for parent in started for process in (parent, *parent.children(recursive=True))]


async def test_the_clock_server_in_python_answers_and_is_gone(python_servers: Path) -> None:
    transport = StdioTransport(python_servers / "mcp-server-time", ["--local-timezone=Europe/Lisbon"])
    assert transport.default_name == "mcp-server-time"
    async with Client(transport.streams(Recorder())) as client:
        processes = family()
        result = await client.call_tool("get_current_time", {"timezone": "Asia/Tokyo"})
    assert isinstance(result.content[0], TextContent)
    assert "Asia/Tokyo" in result.content[0].text
    assert len(processes) == 2
    assert alive(processes) == []


async def test_the_reference_server_in_node_answers_and_is_gone(node: Path, node_servers: Path) -> None:
    program = node_servers / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    inbox = Recorder()
    transport = StdioTransport(node, [program])
    assert transport.default_name == "server-everything"
    async with Client(transport.streams(inbox)) as client:
        processes = family()
        result = await client.call_tool("echo", {"message": "hello"})
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert isinstance(result.content[0], TextContent)
    assert "hello" in result.content[0].text
    assert "get-sum" in names
    assert inbox.rubbish == []
    assert alive(processes) == []
