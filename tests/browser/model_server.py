"""A model server on loopback whose answers the test writes, piece by piece, while the page looks on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, Self


class Exchange:
    """One request, and its answer in the making."""

    def __init__(self, body: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.body = body
        self.over = asyncio.Event()
        """The answer has been given, or the client has gone."""
        self._writer = writer
        self._begun = False

    async def write(self, **delta: Any) -> None:
        """Stream a delta."""
        await self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    async def call(self, index: int, *, name: str = "", arguments: str = "") -> None:
        """Stream a piece of a tool call; its first has the name."""
        piece: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
        if name:
            piece |= {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        await self.write(tool_calls=[piece])

    async def finish(self, reason: str, **usage: Any) -> None:
        """End the answer."""
        await self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if usage:
            await self._send({"choices": [], "usage": usage})
        self._writer.write(b"data: [DONE]\n\n")
        await self._close()

    async def answer(self, text: str, **usage: Any) -> None:
        """Answer with a text."""
        await self.write(content=text)
        await self.finish("stop", **usage)

    async def refuse(self, status: int, **error: Any) -> None:
        """Answer with an error."""
        body = json.dumps({"error": error}).encode()
        head = f"HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        await self._close()

    def cut(self) -> None:
        """Break the connection in the middle of the answer."""
        self._writer.transport.abort()
        self.over.set()

    async def _send(self, chunk: dict[str, Any]) -> None:
        if not self._begun:
            self._begun = True
            self._writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        chunk |= {"object": "chat.completion.chunk", "model": self.body["model"]}
        self._writer.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await self._writer.drain()

    async def _close(self) -> None:
        await self._writer.drain()
        self.over.set()


class ModelServer:
    """Hands each request to the test. ``async with ModelServer() as server: exchange = await server.asked()``."""

    def __init__(self) -> None:
        self.base_url = ""
        self._exchanges: asyncio.Queue[Exchange] = asyncio.Queue()
        self._clients: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def asked(self) -> Exchange:
        """The next request."""
        async with asyncio.timeout(20):
            return await self._exchanges.get()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            size = int(head.partition("content-length:")[2].split("\r\n", 1)[0] or 0)
            exchange = Exchange(json.loads(await reader.readexactly(size)), writer)
            self._exchanges.put_nowait(exchange)
            await self._until_over(exchange, reader)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server is closed
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _until_over(self, exchange: Exchange, reader: asyncio.StreamReader) -> None:
        waiting: set[asyncio.Future[Any]] = {
            asyncio.ensure_future(reader.read()),
            asyncio.ensure_future(exchange.over.wait()),
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            exchange.over.set()
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
