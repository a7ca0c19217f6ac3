"""Small web servers for tests: what answers at which path, over HTTP or TLS, and what was asked."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["LIST", "Page", "Web", "closed_port", "json_page", "serving", "silent"]


class Page(NamedTuple):
    """One answer."""

    body: bytes
    media_type: str = "text/html"
    status: int = 200
    headers: Mapping[str, str] = {}


def json_page(value: Any, status: int = 200) -> Page:
    return Page(json.dumps(value).encode(), "application/json", status)


LIST = json_page({"object": "list", "data": [{"id": "small", "object": "model"}]})
_NOT_FOUND = json_page({"detail": "Not Found"}, 404)


@dataclass
class Web:
    """A server on loopback, and what it was asked."""

    port: int
    asked: list[str] = field(default_factory=list[str])
    heads: list[str] = field(default_factory=list[str])

    def url(self, path: str = "/v1", scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@asynccontextmanager
async def serving(
    pages: Mapping[str, Page],
    *,
    context: ssl.SSLContext | None = None,
    key: str | None = None,
    host: str = "127.0.0.1",
) -> AsyncGenerator[Web]:
    """A server with these pages by path, ``*`` for any other; with ``key`` it answers 401 without."""
    web = Web(0)

    def answer(path: str, head: str) -> Page:
        if key is not None and f"bearer {key}" not in head.lower():
            return json_page({"error": {"message": "Unauthorized"}}, 401)
        return pages.get(path) or pages.get("*") or _NOT_FOUND

    talks: set[asyncio.Task[Any]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            talks.add(task)
        try:
            if context is not None:  # here, since a server with TLS leaves a refused handshake unended
                await writer.start_tls(context)
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                target = head.split(" ")[1]
                path = "/" + target.partition("://")[2].partition("/")[2] if "://" in target else target
                web.asked.append(path)
                web.heads.append(head)
                page = answer(path, head)
                more = "".join(f"{name}: {value}\r\n" for name, value in page.headers.items())
                writer.write(
                    f"HTTP/1.1 {page.status} Said\r\nContent-Type: {page.media_type}\r\n{more}"
                    f"Content-Length: {len(page.body)}\r\n\r\n".encode()
                    + page.body
                )
                await writer.drain()
        except (EOFError, asyncio.LimitOverrunError, OSError, UnicodeDecodeError):
            pass  # the client is gone, or speaks something else
        finally:
            writer.close()

    server = await asyncio.start_server(talk, host, 0)
    web.port = server.sockets[0].getsockname()[1]
    async with server:
        yield web
    await asyncio.gather(*talks)


@asynccontextmanager
async def silent(first: bytes | None = None) -> AsyncGenerator[Web]:
    """A server that never answers; with ``first`` one that says this at once and hangs up."""
    ended = asyncio.Event()

    async def hold(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if first is None:
            await ended.wait()
        else:
            writer.write(first)
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        yield Web(server.sockets[0].getsockname()[1])
        ended.set()


def closed_port(host: str = "127.0.0.1") -> int:
    """A port at which nothing listens."""
    with socket.socket() as taken:
        taken.bind((host, 0))
        return taken.getsockname()[1]
