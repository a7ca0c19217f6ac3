"""A real Jupyter kernel to run cells in, and what it sends meanwhile."""

# jupyter_client has types in part.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
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
    """Runs cells in a kernel of its own.

    Attributes:
        manager: Starts and ends its process.
        received: What widgets sent to their page: the contents of ``comm_msg``, in order.
    """

    def __init__(self, manager: AsyncKernelManager, client: AsyncKernelClient) -> None:
        self.manager = manager
        self.received: list[dict[str, Any]] = []
        self._client = client

    async def run(
        self,
        code: str,
        *,
        when: Callable[[dict[str, Any]], bool] | None = None,
        then: Callable[[], Awaitable[None]] | None = None,
    ) -> Cell:
        """Run a cell. At the first message for which ``when`` holds, ``then`` is done: else an interrupt."""
        cell = Cell()
        start = time.perf_counter()
        request = self._client.execute(code)  # pyright: ignore[reportUnknownMemberType]
        interrupted: float | None = None
        while True:
            message = await self._next()
            cell.messages.append(message)
            if when is not None and interrupted is None and when(message):
                interrupted = time.perf_counter()
                await (self.manager.interrupt_kernel() if then is None else then())
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

    def say_as_page(
        self, model_id: str, content: dict[str, Any], subshell: str | None = None, buffers: Sequence[bytes] = ()
    ) -> None:
        """Send a custom message to a widget, as its page does; JupyterLab does it over a sub-shell."""
        message = self._client.session.msg(
            "comm_msg", {"comm_id": model_id, "data": {"method": "custom", "content": content}}
        )
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        channel: Any = self._client.shell_channel
        channel.session.send(channel.socket, message, buffers=list(buffers))

    async def complete(self, code: str) -> list[str]:
        """What may stand at the end of some code, each with the code that it stands behind."""
        request = self._client.complete(code)
        reply = await self._client.get_shell_msg(timeout=60)
        while reply["parent_header"].get("msg_id") != request:
            reply = await self._client.get_shell_msg(timeout=60)
        content = reply["content"]
        return [code[: content["cursor_start"]] + match for match in content["matches"]]

    async def type(self, text: str) -> dict[str, Any]:
        """Answer when a cell asks for something to be typed; gives what it asked."""
        asked = await self._client.get_stdin_msg(timeout=60)
        self._client.input(text)
        return asked["content"]

    async def listen(self, until: Callable[[], bool]) -> None:
        """Take what the kernel sends while no cell runs, until ``until`` holds."""
        while not until():
            await self._next()

    async def create_subshell(self) -> str:
        """Start a sub-shell and give its id."""
        return (await self._control("create_subshell_request"))["subshell_id"]

    async def delete_subshell(self, subshell: str) -> None:
        """End a sub-shell."""
        await self._control("delete_subshell_request", subshell_id=subshell)

    async def _next(self) -> dict[str, Any]:
        message = await self._client.get_iopub_msg(timeout=60)
        if message["msg_type"] == "comm_msg":
            self.received.append(message["content"])
        return message

    async def _control(self, kind: str, **content: str) -> dict[str, Any]:
        self._client.control_channel.send(self._client.session.msg(kind, content))
        reply = (await self._client.get_control_msg(timeout=60))["content"]
        assert reply["status"] == "ok", reply
        return reply


@asynccontextmanager
async def start_kernel(
    errors: Path | None = None, packages: Path | None = None, *, debug: bool = False
) -> AsyncGenerator[Kernel]:
    """A kernel that is shut down at the end.

    Args:
        errors: Takes what its process writes to its standard error, beside what goes to cells.
        packages: A folder with packages that its process takes in place of those of the same name here.
        debug: It logs all that it does, to its standard error.
    """
    manager = AsyncKernelManager(kernel_name="python3")
    paths = filter(None, (str(packages or ""), os.environ.get("PYTHONPATH")))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with nullcontext() if errors is None else errors.open("wb") as stderr:
        arguments = ["--IPKernelApp.ip=127.0.0.1", *(["--debug"] if debug else [])]
        await manager.start_kernel(extra_arguments=arguments, stderr=stderr, env=env)
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=60)
            yield Kernel(manager, client)
        finally:
            client.stop_channels()
            await manager.shutdown_kernel(now=True)
            await asyncio.sleep(0)
