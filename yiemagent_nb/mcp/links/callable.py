"""CallableTransport: a function of the user's that answers the methods of MCP.

It is called as ``function(method, *arguments)``: ``("tools/list",)`` or ``("tools/list", cursor)``,
``("tools/call", name, arguments)``, and else ``(method, params)``. It gives back the JSON-RPC envelope,
``{"result": …}`` or ``{"error": {"code": …, "message": …}}``, or the bare result, and may be sync (it
then runs in a thread) or async.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from typing import Any, cast

from yiemagent_nb.core.concurrency import Outcome, run_in_thread
from yiemagent_nb.core.errors import McpConnectionError, McpError, McpTimeoutError, describe_error
from yiemagent_nb.core.execution import is_async_callable
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.mcp.link import Inbox, Link, OnProgress, ServerInfo
from yiemagent_nb.mcp.links.server_text import ServerText
from yiemagent_nb.mcp.log_writer import LogWriter

__all__ = ["CallableTransport", "read_envelope"]

_TEXT = ServerText()


class CallableTransport:
    """Reaches a server that is a function.

    Args:
        function: The function.
    """

    kind = "callable"
    modules = ()
    patience = 0.0

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @property
    def target(self) -> str:
        """The function's name."""
        return self.default_name

    @property
    def default_name(self) -> str:
        """The function's name."""
        name: str = getattr(self._function, "__name__", type(self._function).__name__)
        return "callable" if name == "<lambda>" else name

    def open(self, inbox: Inbox) -> AbstractAsyncContextManager[Link]:
        """See ``Transport``. A function says nothing by itself."""
        return _open(self._function, inbox.log)


@asynccontextmanager
async def _open(function: Callable[..., Any], log: LogWriter) -> AsyncGenerator[Link]:
    link = CallableLink(function, log)
    try:
        yield link
    finally:
        link.close()


class CallableLink:
    """A link that calls a function. What is logged is the messages that its calls stand for."""

    def __init__(self, function: Callable[..., Any], log: LogWriter) -> None:
        self._function = function
        self._log = log
        self._ids = count(1)
        self._limits: set[asyncio.Timeout] = set()
        """Those of the calls that go on."""
        self._closed = False
        self._is_async = is_async_callable(function)

    @property
    def info(self) -> ServerInfo:
        """Nothing is known."""
        return ServerInfo()

    @property
    def silence(self) -> str:
        """See ``Link``."""
        return ""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - one signature for all links
        on_progress: OnProgress | None = None,  # noqa: ARG002 - a function reports none
    ) -> dict[str, Any]:
        """See ``Link``."""
        request_id = next(self._ids)
        self._log.message("out", {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})
        try:
            answer = await self._answer(method, params, timeout)
            result = read_envelope(answer, method)
        except McpError as error:
            failure = {"code": error.rpc_code, "message": error.message}
            self._log.message("in", {"jsonrpc": "2.0", "id": request_id, "error": failure})
            raise
        self._log.message("in", {"jsonrpc": "2.0", "id": request_id, "result": result})
        return result

    async def _answer(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,  # noqa: ASYNC109
    ) -> Any:
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                self._limits.add(limit)
                return await self._call(method, *_positional(method, dict(params or {})))
        except TimeoutError as error:
            if limit.expired() and self._closed:
                raise McpConnectionError(f"The connection to the function was closed during {method}.") from error
            if limit.expired():
                raise McpTimeoutError(f"The function did not answer {method} within {timeout} seconds.") from error
            raise McpError(f"The function failed: {describe_error(error)}.") from error
        except McpError:
            raise
        except (Exception, Outcome) as error:
            raise McpError(f"The function failed: {describe_error(error)}.") from error
        finally:
            self._limits.discard(limit)

    def close(self) -> None:
        """End the calls that go on. A function that runs in a thread does so on its own."""
        self._closed = True
        for limit in self._limits:
            limit.reschedule(asyncio.get_running_loop().time())

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """A function is told nothing."""

    async def wait_closed(self) -> str:
        """It never ends."""
        await asyncio.Event().wait()
        return ""

    async def _call(self, *arguments: Any) -> Any:
        answer = self._function(*arguments) if self._is_async else await run_in_thread(self._function, *arguments)
        return await answer if inspect.isawaitable(answer) else answer


def _positional(method: str, params: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments, as the lineage passes them."""
    match method:
        case "tools/list":
            return (params["cursor"],) if params.get("cursor") else ()
        case "tools/call":
            return (params.get("name"), params.get("arguments") or {})
        case _:
            return (params,) if params else ()


def read_envelope(answer: object, method: str) -> dict[str, Any]:
    """The result in a JSON-RPC envelope, or in what a function gave back without one.

    Raises:
        McpError: It holds an error, or is no object at all.
    """
    if not isinstance(answer, Mapping):
        raise McpError(f"The answer to {method} must be an object with a result or an error, not {shorten(answer)}.")
    envelope = cast("Mapping[str, Any]", answer)
    error = envelope.get("error")
    if isinstance(error, Mapping):
        failure = cast("Mapping[str, Any]", error)
        code = failure.get("code")
        text = str(failure.get("message") or "The server answered with an error that says nothing.")
        raise McpError(
            _TEXT.message(text),
            rpc_code=code if isinstance(code, int) else -32603,
            data=_TEXT.data(failure.get("data")),
        )
    result = envelope.get("result", envelope)
    if not isinstance(result, Mapping):
        raise McpError(f"The result of {method} must be an object, not {shorten(result)}.")
    return dict(cast("Mapping[str, Any]", result))
