"""What the tests of servers' processes share: waiting for what will be, and looking at the process table."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from yiemagent_nb.core.errors import McpError
from yiemagent_nb.mcp.link import Link
from yiemagent_nb.mcp.links.stdio import StdioTransport
from yiemagent_nb.mcp.log_writer import LogWriter
from yiemagent_nb.mcp.protocol_log import ProtocolLog

__all__ = ["FAULTY_SERVER", "Recorder", "alive", "call", "family", "faulty", "said", "until", "zombies"]

FAULTY_SERVER = Path(__file__).with_name("faulty_server.py")


class Recorder:
    """An inbox that keeps what it gets."""

    def __init__(self) -> None:
        self.notifications: list[tuple[str, Mapping[str, Any]]] = []
        self.stderr: list[str] = []
        self.rubbish: list[str] = []
        self.messages = ProtocolLog()
        self.log = LogWriter(self.messages)

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        self.notifications.append((method, params))

    async def requested(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise McpError(f"nobody answers {method} with {params}", rpc_code=-32601)

    def answers(self, method: str) -> bool:
        return method == "roots/list"

    def wrote_to_stderr(self, line: str) -> None:
        self.stderr.append(line)

    def wrote_rubbish(self, line: str) -> None:
        self.rubbish.append(line)


def faulty(*options: str, **settings: Any) -> StdioTransport:
    """The faulty server with some of its faults."""
    return StdioTransport(sys.executable, ["-I", "-S", str(FAULTY_SERVER), *options], **settings)


async def call(link: Link, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool; it has 30 seconds."""
    return await link.request("tools/call", {"name": tool, "arguments": arguments}, timeout=30)


def said(result: Mapping[str, Any]) -> str:
    """The text of a result."""
    return result["content"][0]["text"]


async def family(link: Link) -> dict[str, int]:
    """The processes that the faulty server is and has started, and what supervises it."""
    processes: dict[str, int] = json.loads(said(await call(link, "family")))
    return {"supervisor": psutil.Process(processes["server"]).ppid(), **processes}


def alive(processes: Iterable[int]) -> list[int]:
    """Those that are there, zombies included."""
    return [process for process in processes if psutil.pid_exists(process)]


def zombies() -> list[psutil.Process]:
    """The children of this process that nobody has waited for."""
    return [child for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something is so; fails when it is not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not become so in time"
        await asyncio.sleep(0.01)
