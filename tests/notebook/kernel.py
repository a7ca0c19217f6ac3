"""A real Jupyter kernel to run cells in, and what it sends meanwhile."""

# jupyter_client has types in part.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager

__all__ = ["Cell", "Kernel", "start_kernel"]


@dataclass
class Cell:
    """What became of a cell: its outputs, its error, and how long it took in seconds."""

    status: str = ""
    error: str = ""
    seconds: float = 0.0
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def text(self) -> str:
        """Everything printed, displayed as plain text, or given as the cell's value."""
        parts: list[str] = []
        for message in self.messages:
            content = message["content"]
            if message["msg_type"] == "stream":
                parts.append(content["text"])
            elif message["msg_type"] in ("execute_result", "display_data", "update_display_data"):
                parts.append(content["data"].get("text/plain", ""))
        return "\n".join(parts)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The contents of the messages of one type."""
        return [message["content"] for message in self.messages if message["msg_type"] == kind]


class Kernel:
    """Runs cells in a kernel of its own."""

    def __init__(self, manager: AsyncKernelManager, client: AsyncKernelClient) -> None:
        self.manager = manager
        self._client = client

    async def run(self, code: str, *, when: Callable[[dict[str, Any]], bool] | None = None) -> Cell:
        """Run a cell. At the first message for which ``when`` holds, the kernel is interrupted."""
        cell = Cell()
        start = time.perf_counter()
        request = self._client.execute(code)  # pyright: ignore[reportUnknownMemberType]
        interrupted: float | None = None
        while True:
            message = await self._client.get_iopub_msg(timeout=60)
            cell.messages.append(message)
            if when is not None and interrupted is None and when(message):
                interrupted = time.perf_counter()
                await self.manager.interrupt_kernel()
            done = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
            if done and message["parent_header"].get("msg_id") == request:
                break
        reply = await self._client.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != request:
            reply = await self._client.get_shell_msg(timeout=60)
        cell.status = reply["content"]["status"]
        cell.error = f"{reply['content'].get('ename', '')}: {reply['content'].get('evalue', '')}"
        cell.seconds = time.perf_counter() - (start if interrupted is None else interrupted)
        return cell

    async def restart(self) -> None:
        """Restart it; what was defined is gone."""
        await self.manager.restart_kernel()
        await self._client.wait_for_ready(timeout=60)

    async def must(self, code: str) -> Cell:
        """Run a cell that has to succeed."""
        cell = await self.run(code)
        assert cell.status == "ok", f"{cell.error}\n{cell.text}"
        return cell

    def say_as_page(self, model_id: str, content: dict[str, Any]) -> None:
        """Send a custom message to a widget, as its page does."""
        message = self._client.session.msg(
            "comm_msg", {"comm_id": model_id, "data": {"method": "custom", "content": content}}
        )
        self._client.shell_channel.send(message)


@asynccontextmanager
async def start_kernel(errors: Path | None = None) -> AsyncGenerator[Kernel]:
    """A kernel that is shut down at the end.

    Args:
        errors: Takes what its process writes to its standard error, beside what goes to cells.
    """
    manager = AsyncKernelManager(kernel_name="python3")
    with nullcontext() if errors is None else errors.open("wb") as stderr:
        await manager.start_kernel(extra_arguments=["--IPKernelApp.ip=127.0.0.1"], stderr=stderr)
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=60)
            yield Kernel(manager, client)
        finally:
            client.stop_channels()
            await manager.shutdown_kernel(now=True)
            await asyncio.sleep(0)
