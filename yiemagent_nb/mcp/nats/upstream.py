"""Upstream: the server that a service puts on NATS, as requests from there may use it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from yiemagent_nb.core.errors import InvalidParametersError, McpConnectionError, McpError, describe_error
from yiemagent_nb.mcp.link import OnProgress

if TYPE_CHECKING:
    from yiemagent_nb.mcp.server import McpServer, ServerEvent

__all__ = ["METHODS", "Asker", "Upstream"]

METHODS = frozenset(
    {
        *("initialize", "ping", "server/discover"),
        *("tools/list", "tools/call", "prompts/list", "prompts/get", "completion/complete", "logging/setLevel"),
        *("resources/list", "resources/templates/list", "resources/read"),
        *("resources/subscribe", "resources/unsubscribe"),
    }
)
"""The requests that pass. The first three are answered here."""

PROTOCOL = "2025-11-25"
"""What ``initialize`` is answered with for a server that negotiated nothing."""

_NOTIFICATIONS: Mapping[str, str] = {
    "tools_changed": "notifications/tools/list_changed",
    "prompts_changed": "notifications/prompts/list_changed",
    "resources_changed": "notifications/resources/list_changed",
    "resource_updated": "notifications/resources/updated",
    "log": "notifications/message",
}

Asker = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any] | None]]
"""Passes a question of the server on to the caller whose request led to it; None where that cannot be told."""


class Upstream:
    """A server behind a service.

    Args:
        server: An ``McpServer``, a server object of the ``mcp`` package, or a callable.
        ask: Passes questions on.
        tell: Takes notifications that belong to no request, as a method and its params.

    Raises:
        InvalidParametersError: It is none of these.
    """

    def __init__(self, server: object, ask: Asker, tell: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._server, self._is_ours = _as_server(server)
        self._answerer = _Questions(ask, asyncio.get_running_loop())
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._unsubscribe: Callable[[], None] | None = None
        self._was_ready = False

    async def start(self) -> None:
        """Connect to the server.

        Raises:
            McpConnectionError: It cannot be reached, or did not start.
        """
        server = self._server
        server.acquire(self)
        server.answerers.append(self._answerer)
        self._unsubscribe = server.subscribe(self._happened)
        if server.kind == "callable":
            return
        try:
            await server.request("ping", timeout=server.connect_timeout)
        except McpConnectionError:
            raise
        except McpError:
            return  # it is there, and knows no ping

    async def stop(self) -> None:
        """Let go of the server; one that nobody else uses is closed."""
        server = self._server
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._answerer in server.answerers:
            server.answerers.remove(self._answerer)
        server.release(id(self))
        if self._is_ours:
            await server.close()

    async def respond(
        self,
        message: Mapping[str, Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - it is the server that is told
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """The JSON-RPC response to a JSON-RPC request, whatever either of them is."""
        request_id = message.get("id")
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id if _is_id(request_id) else None}
        try:
            method, params = _read_request(message)
            return {**response, "result": await self._ask(method, params, timeout, on_progress)}
        except McpError as error:
            return {**response, "error": error_object(error)}
        except Exception as error:
            return {**response, "error": {"code": -32603, "message": f"The server failed: {describe_error(error)}."}}

    async def _ask(
        self,
        method: str,
        params: dict[str, Any],
        timeout: float | None,  # noqa: ASYNC109
        on_progress: OnProgress | None,
    ) -> dict[str, Any]:
        if method == "ping":
            return {}
        if method in ("server/discover", "initialize"):
            return self._describe(method)
        server = self._server
        if method == "tools/call" and not server.admits(str(params.get("name"))):
            raise McpError(f"Unknown tool: {str(params.get('name'))[:100]}", rpc_code=-32602)
        wants_progress, params = _take_token(params)
        report = None if on_progress is None or not wants_progress else self._here(on_progress)
        result = await server.request(method, params or None, timeout=timeout, on_progress=report)
        if method == "tools/list" and isinstance(result.get("tools"), list):
            tools = cast("list[Any]", result["tools"])
            return {**result, "tools": [tool for tool in tools if server.admits(_name_of(tool))]}
        return result

    def _describe(self, method: str) -> dict[str, Any]:
        info = self._server.info
        about = {"name": info.name or self._server.name, "version": info.version or "0"}
        protocol = info.protocol or PROTOCOL
        described: dict[str, Any] = {"capabilities": dict(info.capabilities) or {"tools": {}}, "serverInfo": about}
        if info.instructions:
            described["instructions"] = info.instructions
        if method == "initialize":
            return {"protocolVersion": protocol, **described}
        return {"supportedVersions": [protocol], "resultType": "complete", **described}

    def _here(self, on_progress: OnProgress) -> OnProgress:
        """``on_progress``, called on this loop: a server may live on another."""
        return lambda progress: _on(self._loop, lambda: on_progress(progress))

    def _happened(self, event: ServerEvent) -> None:
        method, params = _NOTIFICATIONS.get(event.kind), dict(event.data)
        if event.kind == "state" and params.get("state") == "ready":
            if self._was_ready:  # it was started anew, and may have other tools now
                method, params = _NOTIFICATIONS["tools_changed"], {}
            self._was_ready = True
        if method is not None:
            _on(self._loop, lambda: self._tell(method, params))


class _Questions:
    """Answers what the server asks, by asking the caller. An ``Answerer`` of ``McpServer``."""

    busy = True

    def __init__(self, ask: Asker, loop: asyncio.AbstractEventLoop) -> None:
        self._ask = ask
        self._loop = loop

    async def sampling(self, server: str, params: Mapping[str, Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """See ``Answerer``."""
        return await self._pass_on("sampling/createMessage", params)

    async def elicitation(self, server: str, params: Mapping[str, Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """See ``Answerer``."""
        return await self._pass_on("elicitation/create", params)

    async def _pass_on(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        asking = self._ask(method, params)
        if asyncio.get_running_loop() is self._loop:
            return await asking
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_awaited(asking), self._loop))


async def _awaited(awaitable: Awaitable[dict[str, Any] | None]) -> dict[str, Any] | None:
    return await awaitable


def error_object(error: McpError) -> dict[str, Any]:
    """An error as JSON-RPC has it."""
    failure: dict[str, Any] = {"code": error.rpc_code, "message": error.message}
    return failure if error.data is None else {**failure, "data": error.data}


def _as_server(server: object) -> tuple[McpServer, bool]:
    """The server as an ``McpServer``, and whether it was made here."""
    from yiemagent_nb.mcp.server import McpServer  # noqa: PLC0415 - it reaches servers over NATS too

    if isinstance(server, McpServer):
        return server, False
    if type(server).__module__.startswith("mcp.server"):
        return McpServer.in_process(cast("Any", server), timeout=None), True
    if callable(server):
        return McpServer(server, timeout=None), True
    raise InvalidParametersError(
        f"serve_on_nats takes an McpServer, a server object of the mcp package or a callable, not "
        f"{type(server).__name__}."
    )


def _read_request(message: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The method and the params of a request.

    Raises:
        McpError: It is none that passes; ``rpc_code`` says why.
    """
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str) or message.get("jsonrpc", "2.0") != "2.0":
        raise McpError("Not a JSON-RPC 2.0 request: a method as text is needed.", rpc_code=-32600)
    if method not in METHODS:
        raise McpError(f"Method not found: {method[:100]}", rpc_code=-32601)
    if params is not None and not isinstance(params, dict):
        raise McpError("params must be an object.", rpc_code=-32602)
    return method, dict(cast("dict[str, Any]", params or {}))


def _take_token(params: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether progress is wanted, and the params without the caller's token: the server gets one of its own."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or "progressToken" not in meta:
        return False, params
    kept = {key: value for key, value in cast("dict[str, Any]", meta).items() if key != "progressToken"}
    return True, {
        **{key: value for key, value in params.items() if key != "_meta"},
        **({"_meta": kept} if kept else {}),
    }


def _is_id(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _name_of(tool: object) -> str:
    return str(cast("dict[str, Any]", tool).get("name")) if isinstance(tool, dict) else ""


def _on(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    try:
        here = asyncio.get_running_loop() is loop
    except RuntimeError:
        here = False
    if here:
        function()
    elif not loop.is_closed():
        loop.call_soon_threadsafe(function)
