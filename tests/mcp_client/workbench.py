"""A server whose every word a test says: raw pages, changes, crashes, progress, and answers that never come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from yiemagent_nb.core.errors import McpConnectionError, McpError
from yiemagent_nb.mcp.link import Inbox, Link, OnProgress, Progress, ServerInfo

__all__ = ["Workbench", "definition", "text_result"]


def definition(name: object, description: str = "Does it.", **fields: Any) -> dict[str, Any]:
    """A tool's raw definition."""
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **fields}


def text_result(text: str, **fields: Any) -> dict[str, Any]:
    """A raw result of one text."""
    return {"content": [{"type": "text", "text": text}], **fields}


class Workbench:
    """A ``Transport`` to a server that is on this page of the test.

    Args:
        tools: What it lists; a test may change the list at any time.
        page_size: Items of a page.
        info: What it says of itself.
    """

    kind = "workbench"
    target = "a test"
    default_name = "bench"
    modules = ()
    patience = 0.0
    silence = ""

    def __init__(self, tools: Sequence[object] = (), *, page_size: int = 1000, info: ServerInfo | None = None) -> None:
        self.tools: list[object] = list(tools)
        self.page_size = page_size
        self.info = info or ServerInfo()
        self.refusal: Exception | None = None
        """Raised instead of opening."""
        self.list_failure: McpError | None = None
        """Raised instead of a list."""
        self.page_failure: McpError | None = None
        """Raised instead of its second page."""
        self.may_list = asyncio.Event()
        self.may_list.set()
        self.answer: Callable[[str, Mapping[str, Any]], object] = lambda name, _arguments: text_result(f"{name} ran")
        self.progress: tuple[Progress, ...] = ()
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.lists = 0
        self.opened = 0
        self.is_open = False
        self.cancelled = 0
        self.called = asyncio.Event()
        self.listed = asyncio.Event()
        self._inbox: Inbox | None = None
        self._over: asyncio.Future[str] | None = None

    def open(self, inbox: Inbox) -> AbstractAsyncContextManager[Link]:
        """See ``Transport``."""
        return self._open(inbox)

    @asynccontextmanager
    async def _open(self, inbox: Inbox) -> AsyncGenerator[Link]:
        if self.refusal is not None:
            raise self.refusal
        self.opened += 1
        self.is_open = True
        self._inbox = inbox
        self._over = asyncio.get_running_loop().create_future()
        try:
            yield self
        finally:
            self.is_open = False
            self.crash("it was closed")

    # What a test makes it do

    def change(self, tools: Sequence[object] | None = None) -> None:
        """Say that the tools changed, after changing them."""
        if tools is not None:
            self.tools = list(tools)
        assert self._inbox is not None
        self._inbox.notified("notifications/tools/list_changed", {})

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the client something."""
        assert self._inbox is not None
        return await self._inbox.requested(method, params)

    def crash(self, reason: str = "exited with code 1: out of luck") -> None:
        """End the connection."""
        assert self._over is not None
        if not self._over.done():
            self._over.set_result(reason)

    # As a link

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of a link
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """See ``Link``."""
        work = asyncio.ensure_future(self._answer(method, params or {}, on_progress))
        assert self._over is not None
        try:
            await asyncio.wait({work, self._over}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise McpConnectionError(f"The server went away during {method}.")
            return work.result()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            work.cancel()

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """See ``Link``."""

    async def wait_closed(self) -> str:
        """See ``Link``."""
        assert self._over is not None
        return await asyncio.shield(self._over)

    async def _answer(self, method: str, params: Mapping[str, Any], on_progress: OnProgress | None) -> dict[str, Any]:
        if method == "tools/list":
            return await self._page(params)
        if method != "tools/call":
            raise McpError(f"Method not found: {method}", rpc_code=-32601)
        name, arguments = params["name"], params["arguments"]
        self.calls.append((name, arguments))
        self.called.set()
        for progress in self.progress:
            assert on_progress is not None
            on_progress(progress)
        answer: Any = self.answer(name, arguments)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _page(self, params: Mapping[str, Any]) -> dict[str, Any]:
        self.lists += 1
        await self.may_list.wait()
        if self.list_failure is not None:
            raise self.list_failure
        if self.page_failure is not None and params:
            raise self.page_failure
        start = int(params.get("cursor", 0))
        end = start + self.page_size
        more = {"nextCursor": str(end)} if end < len(self.tools) else {}
        self.listed.set()
        return {"tools": self.tools[start:end], **more}
