"""Plays the wire cases over a real loopback socket.

A case is one JSON file in ``cases/``: what a server was seen to answer, byte for byte, and what a
client must make of it. Its fields: ``kind`` (``stream``, ``json``, ``error``, ``stream_json``),
``tools`` (the names that are offered), ``http`` (status, headers, framing) and ``body`` or, for
several requests, ``sequence``; ``paths`` (answers to GET, by path); ``options``, ``expect``. A body
is a string or a list of writes: a string, ``{"b64"}``, ``{"text", "repeat"}``, ``{"sleep_ms"}``, ``{"abort"}``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

CASES = Path(__file__).parent / "cases"


def load_cases(*kinds: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = [json.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*.json"))]
    return [case for case in cases if not kinds or case["kind"] in kinds]


def writes_of(answer: Mapping[str, Any]) -> Iterator[bytes | float | None]:
    """The writes of an answer: bytes, seconds to pause, or None to cut the connection."""
    body: Any = answer["body"]
    for item in cast("list[Any]", body) if isinstance(body, list) else [body]:
        if isinstance(item, str):
            yield item.encode()
        elif "b64" in item:
            yield base64.b64decode(item["b64"])
        elif "text" in item:
            yield (item["text"] * item.get("repeat", 1)).encode()
        elif "sleep_ms" in item:
            yield item["sleep_ms"] / 1000
        else:
            yield None


def bytes_of(case: Mapping[str, Any]) -> bytes:
    """All bytes of a case's last answer."""
    answer = case["sequence"][-1] if "sequence" in case else case
    return b"".join(write for write in writes_of(answer) if isinstance(write, bytes))


def cut_randomly(data: bytes, seed: int, longest: int = 40) -> list[bytes]:
    """``data`` in pieces of 1 to ``longest`` bytes."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    pieces: list[bytes] = []
    while data:
        size = dice.randint(1, longest)
        pieces.append(data[:size])
        data = data[size:]
    return pieces


@dataclass
class Request:
    path: str
    headers: Mapping[str, str]
    body: Any
    raw: bytes
    moment: float = field(default_factory=time.monotonic)


class CaseServer:
    """Answers every request with one case; with ``seed`` its writes are cut at random places."""

    def __init__(self, case: Mapping[str, Any], seed: int | None = None) -> None:
        self.requests: list[Request] = []
        self.base_url = ""
        self.connections = 0
        self._answers: list[Mapping[str, Any]] = case.get("sequence") or [case]
        self._paths: Mapping[str, Mapping[str, Any]] = case.get("paths", {})
        self._seed = seed
        self._clients: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server is closed
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        path = head[0].split(" ")[1]
        if path in self._paths:
            return await self._answer(self._paths[path], writer)
        self.requests.append(Request(path, headers, json.loads(raw) if raw else None, raw))
        answer = self._answers[min(len(self.requests), len(self._answers)) - 1]
        return await self._answer(answer, writer)

    async def _answer(self, answer: Mapping[str, Any], writer: asyncio.StreamWriter) -> bool:
        http = answer.get("http", {})
        is_stream = isinstance(answer["body"], list)
        framing = http.get("framing", "chunked" if is_stream else "length")
        writes: list[bytes | float | None] = []
        for write in writes_of(answer):
            if self._seed is not None and isinstance(write, bytes):
                writes += cut_randomly(write, self._seed)
            else:
                writes.append(write)
        headers = {
            "content-type": "text/event-stream" if is_stream else "application/json",
            **{name.lower(): value for name, value in http.get("headers", {}).items()},
        }
        if framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        elif framing == "length":
            headers["content-length"] = str(sum(len(write) for write in writes if isinstance(write, bytes)))
        else:
            headers["connection"] = "close"
        lines = [f"HTTP/1.1 {http.get('status', 200)} Case", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        for write in writes:
            if write is None:
                return False
            if isinstance(write, float):
                await writer.drain()
                await asyncio.sleep(write)
            elif isinstance(write, bytes) and write:
                writer.write(b"%x\r\n%s\r\n" % (len(write), write) if framing == "chunked" else write)
                await writer.drain()
        if framing == "chunked":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return framing != "close"
