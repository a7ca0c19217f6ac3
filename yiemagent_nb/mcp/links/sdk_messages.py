"""The SDK's messages on their way: written into the log of their server as they cross."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest

from yiemagent_nb.mcp.log_writer import LogWriter

__all__ = ["LoggedStreams", "fields_of"]


def fields_of(message: JSONRPCMessage) -> dict[str, Any]:
    """A message as the JSON object that it is on the wire; its params and its result are not copied."""
    match message:
        case JSONRPCRequest():
            fields = {"jsonrpc": "2.0", "id": message.id, "method": message.method}
        case JSONRPCNotification():
            fields = {"jsonrpc": "2.0", "method": message.method}
        case JSONRPCError():
            error = message.error
            more = {} if error.data is None else {"data": error.data}
            return {"jsonrpc": "2.0", "id": message.id, "error": {"code": error.code, "message": error.message, **more}}
        case _:
            return {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    return fields if message.params is None else {**fields, "params": message.params}


class LoggedStreams:
    """A transport of the SDK whose messages are logged.

    Args:
        inner: The transport, not entered yet: yields a stream to read and one to write.
        log: Where they are logged.
    """

    def __init__(self, inner: Any, log: LogWriter) -> None:
        self._inner = inner
        self._log = log

    async def __aenter__(self) -> tuple[_Incoming, _Outgoing]:
        read, write = await self._inner.__aenter__()
        return _Incoming(read, self._log), _Outgoing(write, self._log)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class _Outgoing(ObjectSendStream[SessionMessage]):
    """Passes messages on to a stream."""

    def __init__(self, inner: Any, log: LogWriter) -> None:
        self._inner = inner
        self._log = log

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        self._log.message("out", fields_of(item.message))
        await self._inner.send(item)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()


class _Incoming(ObjectReceiveStream[SessionMessage | Exception]):
    """Passes on what a stream brings."""

    def __init__(self, inner: Any, log: LogWriter) -> None:
        self._inner = inner
        self._log = log

    @property
    def last_context(self) -> object:
        """The context in which the last message was sent; the SDK asks for it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        item: SessionMessage | Exception = await self._inner.receive()
        if isinstance(item, SessionMessage):
            self._log.message("in", fields_of(item.message))
        return item

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()
