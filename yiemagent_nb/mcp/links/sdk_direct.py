"""The SDK's client of a server in this process, whose requests and answers are logged.

They are no messages there, but calls: what is logged is the messages that they stand for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import count
from typing import Any

from mcp import Client
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    Dispatcher,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext

from yiemagent_nb.mcp.log_writer import LogWriter

__all__ = ["LoggedClient"]


class LoggedClient(Client):
    """The SDK's client, all of whose calls go through a log.

    Args:
        *args: The client's.
        log: Where they are logged.
        **options: The client's.
    """

    def __init__(self, *args: Any, log: LogWriter, **options: Any) -> None:
        super().__init__(*args, **options)
        connect = self._connect  # the SDK has no other place at which all passes

        async def connect_logged(*given: Any) -> Dispatcher[Any]:
            return _Logged(await connect(*given), log)

        self._connect = connect_logged


class _Logged(Dispatcher[Any]):
    """A dispatcher that logs what it passes on. It gives requests their ids."""

    def __init__(self, inner: Dispatcher[Any], log: LogWriter) -> None:
        self._inner = inner
        self._log = log
        self._ids = count(1)
        self._tells_progress = isinstance(inner, JSONRPCDispatcher)
        """Whether progress comes as a notification too, as it does in the older protocol."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request."""
        options: CallOptions = {**opts} if opts else {}
        request_id = options.get("request_id")
        if request_id is None:
            request_id = options["request_id"] = next(self._ids)
        on_progress = options.get("on_progress")
        if on_progress is not None and not self._tells_progress:
            options["on_progress"] = self._logged_progress(request_id, on_progress)
        log = self._log
        log.late_message("out", _call(method, params, request_id))
        try:
            result = await self._inner.send_raw_request(method, params, options)
        except MCPError as error:
            log.late_message("in", _failure(request_id, error))
            raise
        except asyncio.CancelledError:
            log.late_message("out", _call("notifications/cancelled", {"requestId": request_id}))
            raise
        log.late_message("in", {"jsonrpc": "2.0", "id": request_id, "result": result})
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification."""
        self._log.late_message("out", _call(method, params))
        await self._inner.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: Any = None,
    ) -> None:
        """Take what the server asks and says, until the end."""
        log = self._log

        async def asked(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            log.late_message("in", _call(method, params, context.request_id))
            try:
                result = await on_request(context, method, params)
            except MCPError as error:
                log.late_message("out", _failure(context.request_id, error))
                raise
            log.late_message("out", {"jsonrpc": "2.0", "id": context.request_id, "result": result})
            return result

        def intercepted(method: str, params: Mapping[str, Any] | None) -> bool:
            log.late_message("in", _call(method, params))
            return on_notify_intercept is not None and on_notify_intercept(method, params)

        await self._inner.run(asked, on_notify, intercepted, task_status=task_status)

    def _logged_progress(self, request_id: str | int, on_progress: ProgressFnT) -> ProgressFnT:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            told = {"progressToken": request_id, "progress": progress, "total": total, "message": message}
            params = {name: value for name, value in told.items() if value is not None}
            self._log.late_message("in", _call("notifications/progress", params))
            await on_progress(progress, total, message)

        return report


def _call(method: str, params: Mapping[str, Any] | None, request_id: str | int | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if request_id is not None:
        message["id"] = request_id
    message["method"] = method
    if params is not None:
        message["params"] = params
    return message


def _failure(request_id: str | int | None, error: MCPError) -> dict[str, Any]:
    more = {} if error.data is None else {"data": error.data}
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": error.code, "message": error.message, **more}}
