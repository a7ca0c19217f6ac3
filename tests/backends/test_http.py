"""Connections to a server: none outlives its event loop, and an answer that is cut still tells its error."""

from __future__ import annotations

import asyncio
import gc
import json
import warnings
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from yiemagent_nb import connect
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.core.errors import AuthenticationError, BackendRateLimitedError, ServerError

pytestmark = pytest.mark.requirement("Y FR-002")

FAST = RetryPolicy(retries=3, first_delay=0.0)


@dataclass
class Counted:
    """A server, its open connections, and how many requests came."""

    base_url: str = ""
    requests: int = 0
    connections: int = 0
    open: int = 0
    change: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until_none_is_open(self) -> None:
        async with asyncio.timeout(5), self.change:
            await self.change.wait_for(lambda: not self.open)


@asynccontextmanager
async def counted(answer: bytes, *, hangs_up: bool = False) -> AsyncGenerator[Counted]:
    """A server that says the same to all, and counts its connections."""
    server = Counted()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        server.open += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                await reader.readexactly(int(length or 0))
                server.requests += 1
                writer.write(answer)
                await writer.drain()
                if hangs_up:
                    return
        except (EOFError, ConnectionError):
            pass  # the client has closed it
        finally:
            writer.close()
            async with server.change:
                server.open -= 1
                server.change.notify_all()

    listening = await asyncio.start_server(talk, "127.0.0.1", 0)
    server.base_url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    async with listening:
        yield server


def reply(value: Any, status: int = 200, *, cut: int | None = None) -> bytes:
    """An answer; with ``cut`` only so many bytes of the body that its head announces."""
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body[:cut]


HELLO = reply({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]})
MODELS = reply({"object": "list", "data": [{"id": "m", "object": "model"}]})


async def ask(backend: OpenAICompatible) -> None:
    async for _ in cast("AsyncIterator[Any]", backend([{"role": "user", "content": "hi"}])):
        pass


async def test_connections_are_closed_when_their_event_loop_ends() -> None:
    async with counted(HELLO) as server:
        backend = OpenAICompatible(server.base_url, "m")
        for _ in range(3):
            await asyncio.to_thread(asyncio.run, ask(backend))
            await server.until_none_is_open()
        assert (server.requests, server.connections) == (3, 3)


async def test_an_event_loop_that_was_closed_at_once_is_not_kept() -> None:
    async with counted(HELLO) as server:
        backend = OpenAICompatible(server.base_url, "m")

        def ask_and_close() -> None:
            loop = asyncio.new_event_loop()
            loop.run_until_complete(ask(backend))
            loop.close()  # without the steps by which asyncio.run ends one

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # for what such a loop leaves open
            await asyncio.to_thread(ask_and_close)
            assert server.open == 1
            await asyncio.to_thread(asyncio.run, ask(backend))
            gc.collect()
            await server.until_none_is_open()


async def test_looking_after_a_server_leaves_no_connection() -> None:
    for answer in (MODELS, reply({"detail": "Not Found"}, 404), reply({"error": "No"}, 401)):
        async with counted(answer) as server:
            backend = OpenAICompatible(server.base_url, "m", retries=0)
            await backend.health()
            await connect(server.base_url)
            assert server.connections > 1
            await server.until_none_is_open()


async def test_a_refusal_that_is_cut_off_is_told_by_its_status_and_what_came_of_it() -> None:
    body = {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}}
    async with (
        counted(reply(body, 401, cut=45), hangs_up=True) as server,
        OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
    ):
        with pytest.raises(AuthenticationError, match="Incorrect API key") as caught:
            await ask(backend)
        assert caught.value.status == 401
        assert server.requests == 1


@pytest.mark.parametrize(("status", "kind"), [(429, BackendRateLimitedError), (500, ServerError)])
async def test_a_refusal_without_any_of_its_body_is_told_by_its_status(status: int, kind: type[Exception]) -> None:
    async with (
        counted(reply({"error": "It broke"}, status, cut=0), hangs_up=True) as server,
        OpenAICompatible(server.base_url, "m", retries=FAST) as backend,
    ):
        with pytest.raises(kind, match=f"no words, only status {status}"):
            await ask(backend)
        assert server.requests == 4
