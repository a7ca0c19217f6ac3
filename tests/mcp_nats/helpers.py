"""Servers to put on NATS, an inbox that keeps what it hears, and workers in processes of their own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from pydantic import BaseModel

from yiemagent_nb.core.errors import McpError
from yiemagent_nb.mcp.log_writer import LogWriter
from yiemagent_nb.mcp.protocol_log import ProtocolLog

__all__ = ["Function", "KeepingInbox", "asking_server", "connected", "hear", "text_of", "until", "worker_process"]

WORKER = Path(__file__).with_name("worker_program.py")


class KeepingInbox:
    """An ``Inbox`` that keeps what it hears, and answers with what it was given."""

    def __init__(self, answers: Mapping[str, dict[str, Any]] | None = None) -> None:
        self._answers = dict(answers or {})
        self.notes: list[tuple[str, Mapping[str, Any]]] = []
        self.rubbish: list[str] = []
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.messages = ProtocolLog()
        self.log = LogWriter(self.messages)

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        self.notes.append((method, params))

    async def requested(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((method, params))
        if method not in self._answers:
            raise McpError("no", rpc_code=-1)
        return self._answers[method]

    def answers(self, method: str) -> bool:
        return method in self._answers

    def wrote_to_stderr(self, line: str) -> None:
        raise AssertionError(line)

    def wrote_rubbish(self, line: str) -> None:
        self.rubbish.append(line)


class Function:
    """A callable server with the tools ``echo``, ``big`` of ``size`` characters, and ``wait``, until it is let go."""

    __name__ = "function"

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.cancelled = asyncio.Event()
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.at_once = self.most_at_once = 0

    async def __call__(self, method: str, *arguments: Any) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "big", "wait")]}
        if method != "tools/call":
            raise McpError(f"no {method}", rpc_code=-32601)
        name, values = arguments[0], arguments[1]
        self.calls.append(name)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if name == "big":
                return text_result("x" * values["size"])
            if name == "wait":
                self.started.set()
                await self.go_on.wait()
                await asyncio.sleep(0)
            if name == "fail":
                raise ValueError("it broke")
            return text_result(str(values.get("text", "")))
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            self.at_once -= 1


def text_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def text_of(result: Mapping[str, Any]) -> str:
    """The text of a tool's result."""
    return result["content"][0]["text"]


class City(BaseModel):
    city: str


def asking_server() -> MCPServer:
    """A server of the SDK whose tools ask the caller, report progress, and add a tool."""
    server = MCPServer("asking", instructions="Ask away.")

    @server.tool()
    async def where(ctx: Context[Any, Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        """Ask a person."""
        answer = await ctx.elicit("Which city?", City)
        return f"{answer.action}: {getattr(getattr(answer, 'data', None), 'city', '')}"

    @server.tool()
    async def steps(ctx: Context[Any, Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        """Report progress."""
        for step in range(1, 4):
            await ctx.report_progress(step, 3, f"step {step}")
        return "done"

    @server.tool()
    async def grow(ctx: Context[Any, Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        """Add a tool."""

        def another() -> str:
            return "another"

        server.add_tool(another)
        await ctx.notify_tools_changed()  # in the stateless protocol
        await ctx.session.send_tool_list_changed()  # in those before it
        return "grown"

    return server


@asynccontextmanager
async def connected(url: str, **options: Any) -> AsyncGenerator[Client]:
    """A connection of one's own."""
    client = Client()
    await client.connect(url, **options)
    try:
        yield client
    finally:
        await client.close()


async def hear(client: Client, subject: str, take: Callable[[Msg], Awaitable[None]] | None = None) -> Subscription:
    """Subscribe to a subject; what arrives goes to ``take``, or waits for ``next_msg``."""
    untyped: Any = client  # the method's types are incomplete
    return await untyped.subscribe(subject, cb=take)


async def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(seconds):
        while True:
            if holds():
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def worker_process(url: str, topic: str, keep_alive: float = 0.3) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A worker in a process of its own, which serves when this is entered."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        WORKER,
        url,
        topic,
        str(keep_alive),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()
