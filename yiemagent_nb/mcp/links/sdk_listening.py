"""Listening for changes: in the stateless protocol they are told on a stream that the client asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError

from yiemagent_nb.core.errors import describe_error
from yiemagent_nb.mcp.link import Inbox
from yiemagent_nb.mcp.links.sdk_link import SdkLink

__all__ = ["listening"]

RELISTEN_SECONDS = 1.0


@asynccontextmanager
async def listening(link: SdkLink, inbox: Inbox) -> AsyncGenerator[SdkLink]:
    """Listen for as long as the link is open, where the protocol is the stateless one."""
    if not link.stateless:
        yield link
        return
    async with AsyncExitStack() as stack:
        task = asyncio.get_running_loop().create_task(_listen(link, inbox))
        stack.push_async_callback(_end, task)
        yield link


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


async def _listen(link: SdkLink, inbox: Inbox) -> None:
    """Keep a stream of changes open, for what the server can tell of."""
    can = link.info.capabilities
    tools, prompts, resources = (_tells_changes(can, name) for name in ("tools", "prompts", "resources"))
    while True:
        link.subscriptions_changed.clear()
        if not (tools or prompts or resources or link.subscribed):
            await link.subscriptions_changed.wait()
            continue
        reading = asyncio.ensure_future(_read_changes(link, tools=tools, prompts=prompts, resources=resources))
        changing = asyncio.ensure_future(link.subscriptions_changed.wait())
        try:
            await asyncio.wait({reading, changing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (reading, changing):
                task.cancel()
            await asyncio.wait({reading, changing})
        if not reading.cancelled():
            error = reading.exception()
            if error is not None and not isinstance(error, MCPError | SubscriptionLost | TimeoutError):
                inbox.wrote_rubbish(f"listening for changes ended: {describe_error(error)}")
            await asyncio.sleep(RELISTEN_SECONDS)
            if not isinstance(error, MCPError):
                for kind in ("tools", "prompts", "resources"):  # whatever changed meanwhile was not told
                    inbox.notified(f"notifications/{kind}/list_changed", {})


async def _read_changes(link: SdkLink, *, tools: bool, prompts: bool, resources: bool) -> None:
    async with listen(
        link.session,
        tools_list_changed=tools,
        prompts_list_changed=prompts,
        resources_list_changed=resources,
        resource_subscriptions=sorted(link.subscribed),
    ) as changes:
        async for _ in changes:
            pass  # the session hands each one to the message handler too


def _tells_changes(capabilities: Mapping[str, Any], name: str) -> bool:
    part = capabilities.get(name)
    return isinstance(part, dict) and bool(cast("dict[str, Any]", part).get("listChanged"))
