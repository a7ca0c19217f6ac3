"""Tap: the SDK's dispatcher, with a way to what it passes on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.shared.dispatcher import CallOptions, DispatchContext, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.methods import MONOLITH_NOTIFICATIONS
from pydantic import ValidationError

from yiemagent_nb.mcp.link import Inbox

__all__ = ["Tap", "first_problem"]

_IN_ANY_FORM = frozenset(
    {
        "notifications/message",
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
    }
)
"""Their mere coming says what counts, or they are text for a person."""


class Tap(Dispatcher[Any]):
    """A dispatcher that keeps the newest result as it came, and tells when the connection ended.

    Notifications go to the inbox as they came; the SDK's session would drop those with anything wrong in them,
    each with a traceback in its log.
    """

    def __init__(self, inner: JSONRPCDispatcher[TransportContext], inbox: Inbox) -> None:
        self._inner = inner
        self._inbox = inbox
        self.closed = asyncio.Event()
        self.newest: dict[str, Any] = {}
        """Valid until the task that awaited the result awaits anything else."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request, and keep its result."""
        result = await self._inner.send_raw_request(method, params, opts)
        self.newest = dict(result)
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification."""
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,  # noqa: ARG002 - the session's, which gives nothing but what is told here
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: Any = None,
    ) -> None:
        """Read until the connection ends."""
        try:
            await self._inner.run(on_request, self._hear, on_notify_intercept, task_status=task_status)
        finally:
            self.closed.set()

    async def _hear(
        self,
        _context: DispatchContext[TransportContext],
        method: str,
        params: Mapping[str, Any] | None,
    ) -> None:
        if method == "notifications/cancelled":  # the dispatcher has done what it asks
            return
        form = MONOLITH_NOTIFICATIONS.get(method)
        if form is not None and method not in _IN_ANY_FORM:
            message = {"method": method} if params is None else {"method": method, "params": params}
            try:
                form.model_validate(message)
            except ValidationError as error:
                self._inbox.wrote_rubbish(f"{method} has not the form of MCP: {first_problem(error)}")
                return
        self._inbox.notified(method, params or {})


def first_problem(error: ValidationError) -> str:
    """Where a message is wrong first, and why, without repeating it."""
    problem = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
