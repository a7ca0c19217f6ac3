"""An MCP server with many tools in pages, for benchmarks: in process, over stdio, HTTP, or plain NATS.

As a program it is one such server: ``mcp_server.py stdio TOOLS``, ``mcp_server.py http TOOLS``,
``mcp_server.py nats TOOLS URL TOPIC`` or, with ``serve_on_nats``, ``mcp_server.py service TOOLS URL TOPIC``. All
but the first write where they listen as a line, and end with their input.
"""

# nats-py has types in part.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mcp_types as types
import nats
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from nats.aio.msg import Msg

from yiemagent_nb import serve_on_nats

__all__ = ["ADD", "BIG", "PAGE", "broker", "command", "paged_server", "running"]

PAGE = 25
"""Tools of a page."""

ADD = "add_0"
"""A tool that adds ``a`` and ``b``."""

BIG = "big"
"""Not listed: gives so many ``characters`` of text."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
_Context = ServerRequestContext[Any]


def paged_server(tools: int) -> Server[Any]:
    """A server with so many tools."""

    async def list_tools(_: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(_page(tools, None if params is None else params.cursor))

    async def call_tool(_: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult.model_validate(_call(params.name, params.arguments or {}))

    return Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)


def command(*arguments: str) -> list[str]:
    """The command that runs such a server."""
    return [sys.executable, __file__, *arguments]


@contextmanager
def running(*arguments: str) -> Generator[str]:
    """Run one over HTTP or NATS in a process of its own; gives the line that it wrote."""
    with subprocess.Popen(command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()  # which ends it


@contextmanager
def broker() -> Generator[str]:
    """Run a NATS server; gives its address."""
    program = Path(sys.executable).with_name("nats-server")
    with TemporaryDirectory() as folder:
        options = ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder, "-l", str(Path(folder) / "log")]
        with subprocess.Popen([program, *options]) as server:
            try:
                yield _address(Path(folder), server)
            finally:
                server.terminate()


def _address(folder: Path, server: subprocess.Popen[bytes]) -> str:
    while server.poll() is None:
        for file in folder.glob("*.ports"):
            try:
                address: str = json.loads(file.read_text())["nats"][0]
            except (ValueError, LookupError):
                continue  # it is being written
            return address
    raise RuntimeError((folder / "log").read_text())


def _page(tools: int, cursor: str | None) -> dict[str, Any]:
    start = int(cursor or 0)
    numbers = range(start, min(start + PAGE, tools))
    page: dict[str, Any] = {
        "tools": [
            {"name": f"add_{number}", "description": f"Add two numbers, way {number}.", "inputSchema": _SCHEMA}
            for number in numbers
        ]
    }
    return page if numbers.stop >= tools else {**page, "nextCursor": str(numbers.stop)}


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    text = "x" * arguments["characters"] if name == BIG else str(arguments["a"] + arguments["b"])
    return {"content": [{"type": "text", "text": text}]}


async def _serve_stdio(tools: int) -> None:
    server = paged_server(tools)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


async def _serve_http(tools: int) -> None:
    # asyncio turns Nagle's algorithm off only where the protocol is named.
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # before the port is told: uvicorn does so only when it has started
        server = uvicorn.Server(uvicorn.Config(paged_server(tools).streamable_http_app(), log_level="warning"))
        serving = asyncio.ensure_future(server.serve([listening]))
        print(listening.getsockname()[1], flush=True)
        await _end_of_input()
        server.should_exit = True
        await serving


async def _serve_nats(tools: int, url: str, topic: str) -> None:
    async def respond(message: Msg) -> None:
        request: dict[str, Any] = json.loads(message.data)
        params: dict[str, Any] = request.get("params") or {}
        if request["method"] == "tools/list":
            result = _page(tools, params.get("cursor"))
        else:
            result = _call(params["name"], params["arguments"])
        await message.respond(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())

    connection = await nats.connect(url)
    await connection.subscribe(topic, cb=respond)
    await connection.flush()
    print(topic, flush=True)
    await _end_of_input()
    await connection.close()


async def _serve_on_nats(tools: int, url: str, topic: str) -> None:
    async with serve_on_nats(paged_server(tools), url, topic):
        print(topic, flush=True)
        await _end_of_input()


async def _end_of_input() -> None:
    await asyncio.to_thread(sys.stdin.read)


def _main(transport: str, tools: str, *where: str) -> None:
    if transport == "nats":
        asyncio.run(_serve_nats(int(tools), *where))
    elif transport == "service":
        asyncio.run(_serve_on_nats(int(tools), *where))
    elif transport == "http":
        asyncio.run(_serve_http(int(tools)))
    else:
        asyncio.run(_serve_stdio(int(tools)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
