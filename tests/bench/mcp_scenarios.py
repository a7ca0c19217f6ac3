"""MCP servers through McpServer, beside the official SDK's client alone or a bare NATS request.

Both sides have a server of their own, made alike, and take turns at every single request.
"""

# nats-py has types in part.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import mcp_types as types
import nats
from figures import Figure, Target, percentile
from mcp import Client, StdioServerParameters
from mcp.server import Server
from mcp_server import ADD, BIG, broker, command, paged_server, running
from nats.aio.client import Client as NatsClient
from scenarios import Sizes

from yiemagent_nb import Agent, McpServer

__all__ = ["mcp_calls", "mcp_discovery", "mcp_nats", "mcp_start"]

TRANSPORTS = ("in process", "stdio", "HTTP", "NATS")
TOPIC = "bench"
ARGUMENTS = {"a": 1, "b": 2}
SUM = "3"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: each function makes one whole request.

    Args:
        discover: Lists all tools, and gives how many there are.
        call: Calls one, and gives the text of its result.
        server: What is asked; None on the bare side.
    """

    discover: Callable[[], Awaitable[int]]
    call: Callable[[], Awaitable[str]]
    server: McpServer | None = None


async def mcp_discovery(sizes: Sizes) -> AsyncIterator[Figure]:
    """Listing all tools, in pages of 25."""
    for tools in sizes.tools:
        for transport in TRANSPORTS:
            async with _sides(transport, tools) as (ours, bare):
                repeat = 3 * sizes.repeat
                of_ours, of_bare = await _milliseconds(repeat, tools, ours.discover, bare.discover, collect=True)
                agent = partial(_tools_of_an_agent, ours.server)
                of_agent, of_bare_again = await _milliseconds(repeat, tools, agent, bare.discover, collect=True)
            name = f"{tools} tools, {transport}"
            yield Figure("mcp_discovery", name, "ms", median(of_ours), median(of_bare), Target(1.2))
            limit = Target(2000, of="figure")
            name = f"{name}, as an agent's own"
            yield Figure("mcp_discovery", name, "ms", median(of_agent), median(of_bare_again), limit)


async def _tools_of_an_agent(server: McpServer | None) -> int:
    """A whole run of an agent that did not know the server before."""
    if server is None:
        raise RuntimeError("an agent needs an McpServer")
    async with Agent(_say_done, mcp_servers=[server]) as agent:
        await agent.prompt("go")
        return sum(tool.source == server.name for tool in agent.tools.values())


async def _say_done(_messages: object) -> str:
    return "done"


async def mcp_calls(sizes: Sizes) -> AsyncIterator[Figure]:
    """Calling a tool."""
    for transport in TRANSPORTS:
        async with _sides(transport, sizes.tools[0]) as (ours, bare):
            of_ours, of_bare = await _milliseconds(sizes.tool_calls, SUM, ours.call, bare.call)
        name = f"a call, {transport}, median of {sizes.tool_calls}"
        yield Figure("mcp_calls", name, "ms", median(of_ours), median(of_bare), Target(1.2))


async def mcp_nats(sizes: Sizes) -> AsyncIterator[Figure]:
    """Calls by hand over NATS in both bindings, and a result far larger than what the broker takes at once."""
    with broker() as url, running("nats", "1", url, TOPIC), running("service", "1", url, f"{TOPIC}.service") as topic:
        async with McpServer.nats(url, TOPIC, binding="json-rpc") as plain, McpServer.nats(url, topic) as stateless:
            connection = await nats.connect(url)
            bare = _bare_over_nats(connection, TOPIC)
            sides = (partial(_call_by_hand, plain), partial(_call_by_hand, stateless), bare.call)
            *of_ours, of_bare = await _milliseconds(sizes.tool_calls, SUM, *sides)
            await connection.close()
            for binding, times in zip(("JSON-RPC", "stateless"), of_ours, strict=True):
                for percent, target in ((50, None), (99, Target(5, of="figure"))):
                    name = f"mcp(…), {binding}, {_named(percent)} of {sizes.tool_calls}"
                    figures = percentile(times, percent), percentile(of_bare, percent)
                    yield Figure("mcp_nats", name, "ms", *figures, target)
            characters = sizes.result_mib * 2**20

            async def big() -> int:
                result = await stateless.call_tool(BIG, {"characters": characters})
                return len(result["content"][0]["text"])

            (times,) = await _milliseconds(sizes.repeat, characters, big)
            yield Figure("mcp_nats", f"a result of {sizes.result_mib} MiB", "ms", median(times), None)


async def _call_by_hand(server: McpServer) -> str:
    answer = await server("tools/call", ADD, ARGUMENTS)
    text: str = answer["result"]["content"][0]["text"]
    return text


def _named(percent: int) -> str:
    return "median" if percent == 50 else f"{percent}th percentile"


async def mcp_start(sizes: Sizes) -> AsyncIterator[Figure]:
    """Starting many servers side by side, over stdio, until each has listed its tools."""
    number = sizes.servers
    words = command("stdio", "25")

    async def ours() -> int:
        servers = [McpServer.stdio(*words, name=f"server{each}") for each in range(number)]
        try:
            return sum(map(len, await asyncio.gather(*(server.list_tools() for server in servers))))
        finally:
            await asyncio.gather(*(server.close() for server in servers))

    async def bare() -> int:
        async def one() -> int:
            async with Client(_parameters(words)) as client:
                return len((await client.list_tools()).tools)

        return sum(await asyncio.gather(*(one() for _ in range(number))))

    of_ours, of_bare = await _milliseconds(sizes.heavy_repeat, 25 * number, ours, bare)
    name = f"{number} servers started, listed and ended"
    yield Figure("mcp_start", name, "ms", median(of_ours), median(of_bare), Target(1.2))


async def _milliseconds(
    repeat: int, expected: object, *sides: Callable[[], Awaitable[object]], collect: bool = False
) -> list[list[float]]:
    """How long each side takes, in turn, after a first time that does not count.

    Args:
        repeat: How often.
        expected: What each of them has to give.
        *sides: They take turns.
        collect: Whether garbage is collected before each sample, and not whenever it comes.
    """
    times: list[list[float]] = [[] for _ in sides]
    for number in range(repeat + 1):
        turn = list(zip(sides, times, strict=True))
        for side, taken in turn if number % 2 else reversed(turn):
            if collect:
                gc.collect()
            start = time.perf_counter()
            came = await side()
            taken.append(1000 * (time.perf_counter() - start))
            if came != expected:
                raise RuntimeError(f"{came} came, not {expected}")
    return [taken[1:] for taken in times]


def _sides(transport: str, tools: int) -> AbstractAsyncContextManager[tuple[Side, Side]]:
    """Ours and the bare one."""
    return _sides_over_nats(tools) if transport == "NATS" else _sides_over_sdk(transport, tools)


@asynccontextmanager
async def _sides_over_sdk(transport: str, tools: int) -> AsyncGenerator[tuple[Side, Side]]:
    target: Server[Any] | StdioServerParameters | str
    async with AsyncExitStack() as stack:
        if transport == "in process":
            server, target = McpServer.in_process(paged_server(tools)), paged_server(tools)
        elif transport == "stdio":
            words = command("stdio", str(tools))
            server, target = McpServer.stdio(*words), _parameters(words)
        else:
            target = f"http://127.0.0.1:{stack.enter_context(running('http', str(tools)))}/mcp"
            server = McpServer.http(target)
        await stack.enter_async_context(server)
        yield _ours(server), _bare(await stack.enter_async_context(Client(target)))


@asynccontextmanager
async def _sides_over_nats(tools: int) -> AsyncGenerator[tuple[Side, Side]]:
    with broker() as url, running("nats", str(tools), url, TOPIC) as topic:
        connection = await nats.connect(url)
        try:
            async with McpServer.nats(url, topic, binding="json-rpc") as server:
                yield _ours(server), _bare_over_nats(connection, topic)
        finally:
            await connection.close()


def _parameters(words: list[str]) -> StdioServerParameters:
    return StdioServerParameters(command=words[0], args=words[1:])


def _ours(server: McpServer) -> Side:
    async def discover() -> int:
        return len(await server.list_tools())

    async def call() -> str:
        result = await server.call_tool(ADD, ARGUMENTS)
        text: str = result["content"][0]["text"]
        return text

    return Side(discover, call, server)


def _bare(client: Client) -> Side:
    """The SDK's client; it gives pages, which its user has to walk."""

    async def discover() -> int:
        found, cursor = 0, None
        while True:
            page = await client.list_tools(cursor=cursor, cache_mode="refresh")
            found, cursor = found + len(page.tools), page.next_cursor
            if cursor is None:
                return found

    async def call() -> str:
        result = await client.call_tool(ADD, dict(ARGUMENTS))
        block = result.content[0]
        return block.text if isinstance(block, types.TextContent) else ""

    return Side(discover, call)


def _bare_over_nats(connection: NatsClient, topic: str) -> Side:
    """Requests written by hand."""
    ids = count(1)

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        request = {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}
        reply = await connection.request(topic, json.dumps(request).encode(), timeout=10)
        result: dict[str, Any] = json.loads(reply.data)["result"]
        return result

    async def discover() -> int:
        found, params = 0, dict[str, Any]()
        while True:
            page = await ask("tools/list", params)
            found += len(page["tools"])
            if "nextCursor" not in page:
                return found
            params = {"cursor": page["nextCursor"]}

    async def call() -> str:
        result = await ask("tools/call", {"name": ADD, "arguments": ARGUMENTS})
        text: str = result["content"][0]["text"]
        return text

    return Side(discover, call)
