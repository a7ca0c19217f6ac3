"""A transport whose fate a test decides: when it opens, fails, hangs and ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from yiemagent_nb.core.errors import McpConnectionError, McpError
from yiemagent_nb.mcp.link import NOT_DELIVERED, Inbox, Link, OnProgress, ServerInfo


class SteeredLink:
    """Echoes each request until it is ended; ``ask`` asks a person first, and ``wait`` never answers."""

    def __init__(self, siblings: list[SteeredLink], inbox: Inbox) -> None:
        self.siblings = siblings
        self.inbox = inbox
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.silence = ""
        self.info = ServerInfo(name="steered", version="1", protocol="2025-11-25")

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109, ARG002
        on_progress: OnProgress | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        if method == "undelivered" and len(self.siblings) == 1:
            self.ended.set_result("it does not know the session any more")
            raise McpConnectionError("Not delivered.", "It was started anew.", data=NOT_DELIVERED)
        if method == "ask":
            form = {"type": "object", "properties": {"name": {"type": "string"}}}
            return await self.inbox.requested("elicitation/create", {"message": "Who?", "requestedSchema": form})
        if method == "wait":
            await asyncio.shield(self.ended)
            raise McpConnectionError(f"The server went away during {method}.")
        return {"method": method, **(params or {})}

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        pass

    async def wait_closed(self) -> str:
        return await asyncio.shield(self.ended)


class Steered:
    """A transport that does what ``plan`` says, one word for each opening; then it opens.

    ``open`` opens, ``refuse`` raises, ``hang`` never gets ready, ``group`` raises inside groups, ``login`` refuses who
    asks.
    """

    kind = "stdio"
    target = "steered"
    default_name = "steered"
    modules = ()
    patience = 0.0

    def __init__(self, *plan: str) -> None:
        self.plan = list(plan)
        self.openings = 0
        self.closings = 0
        self.links: list[SteeredLink] = []
        self.inbox: Inbox | None = None
        self.tasks: set[tuple[str, asyncio.Task[Any] | None]] = set()

    def open(self, inbox: Inbox) -> AbstractAsyncContextManager[Link]:
        return self._open(inbox)

    def end(self, why: str = "it exited with code 3") -> None:
        """End the newest link."""
        self.links[-1].ended.set_result(why)

    @asynccontextmanager
    async def _open(self, inbox: Inbox) -> AsyncGenerator[Link]:
        self.openings += 1
        self.inbox = inbox
        self.tasks.add(("enter", asyncio.current_task()))
        word = self.plan.pop(0) if self.plan else "open"
        try:
            if word == "hang":
                await asyncio.Event().wait()
            if word == "refuse":
                inbox.wrote_to_stderr("Traceback: no such table")
                raise McpConnectionError("The server exited with code 1.", "Look at its log.")
            if word == "group":
                raise ExceptionGroup("unhandled", [ExceptionGroup("more", [OSError("no route"), ValueError("x")])])
            if word == "login":
                raise McpError("It asks who you are.", "Give auth=.", data={"status": 401})
            link = SteeredLink(self.links, inbox)
            self.links.append(link)
            yield link
        finally:
            self.closings += 1
            self.tasks.add(("leave", asyncio.current_task()))
