"""A worker: ``worker_program.py URL TOPIC KEEP_ALIVE``. Serves until its input ends."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from yiemagent_nb.mcp.nats.service import serve_on_nats


async def tools(method: str, *arguments: Any) -> dict[str, Any]:
    """``pid`` tells the process's number, ``sleep`` takes ``seconds``."""
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("pid", "sleep")]}
    if arguments[0] == "sleep":
        await asyncio.sleep(arguments[1]["seconds"])
    return {"content": [{"type": "text", "text": str(os.getpid())}]}


async def main(url: str, topic: str, keep_alive: str) -> None:
    async with serve_on_nats(tools, url, topic, keep_alive=float(keep_alive)):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
