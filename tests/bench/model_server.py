"""A deterministic model server for benchmarks: OpenAI's endpoints, at once, over loopback.

What it answers stands in the model's name, which ends with the name of one conversation:

- ``rounds/<rounds>/<calls>/<conversation>``: so many answers with so many calls of ``add`` each,
  then a last one, ``done``
- ``deltas/<count>/<conversation>``: one answer in so many pieces

The Responses API answers ``deltas`` only.

Of a request's body it reads the start only, so its own cost does not grow with the history: a
client writes the model and whether it wants a stream before the messages.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

__all__ = ["running_server", "tool_calls"]

_HEAD_BYTES = 512
"""So much of a body is read."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model": ?"([^"]+)"')
_STREAM = re.compile(rb'"stream": ?true')
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}

_turns: dict[str, int] = {}
"""How many answers each conversation has had."""


@contextmanager
def running_server() -> Generator[str]:
    """Run the server in a process of its own; gives the address for clients."""
    with subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        port = int(server.stdout.readline())
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.stdin.close()  # which ends it


def tool_calls(turn: int, count: int) -> list[dict[str, Any]]:
    """The calls of one answer."""
    return [
        {
            "id": f"call_{turn}_{number}",
            "type": "function",
            "function": {"name": "add", "arguments": f'{{"a":{turn},"b":{number}}}'},
        }
        for number in range(count)
    ]


def _next_answer(model: str) -> tuple[list[dict[str, Any]], int]:
    """The calls of a conversation's next answer, and the number of pieces in which its text comes."""
    kind, count, *rest = model.split("/")
    if kind == "deltas":
        return [], int(count)
    turn = _turns.get(model, 0)
    if turn < int(count):
        _turns[model] = turn + 1
        return tool_calls(turn, int(rest[0])), 0
    _turns.pop(model, None)
    return [], 1


def _pieces(count: int) -> list[str]:
    return ["done"] if count == 1 else [f"word {number} " for number in range(count)]


def _whole(model: str, calls: list[dict[str, Any]], pieces: int) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(_pieces(pieces)) or None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    body = {"id": "chat-1", "object": "chat.completion", "created": 1, "model": model}
    return json.dumps({**body, "choices": [choice], "usage": _USAGE}).encode()


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _data({"choices": [choice]})


def _data(fields: dict[str, Any]) -> bytes:
    body = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "bench", **fields}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _call_events(calls: list[dict[str, Any]]) -> Iterator[bytes]:
    for index, call in enumerate(calls):
        function = call["function"]
        yield _event({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        yield _event({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]})


@lru_cache
def _text_events(count: int) -> tuple[bytes, ...]:
    return tuple(_event({"content": piece}) for piece in _pieces(count))


def _streamed(calls: list[dict[str, Any]], pieces: int) -> bytes:
    events = [
        _event({"role": "assistant", "content": ""}),
        *(_call_events(calls) if calls else _text_events(pieces)),
        _event({}, "tool_calls" if calls else "stop"),
        _data({"choices": [], "usage": _USAGE}),
        b"data: [DONE]\n\n",
    ]
    return _chunked(events)


def _chunked(events: Iterable[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"


def _responses_event(number: int, kind: str, **fields: Any) -> bytes:
    body = {"type": f"response.{kind}", "sequence_number": number, **fields}
    return b"event: response.%b\ndata: %b\n\n" % (kind.encode(), json.dumps(body).encode())


@lru_cache
def _responses(pieces: int) -> bytes:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    item: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "output": [], "model": "bench"}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    return _chunked(
        [
            _responses_event(0, "created", response=response),
            _responses_event(1, "output_item.added", output_index=0, item=item),
            *(
                _responses_event(number, "output_text.delta", **place, delta=piece)
                for number, piece in enumerate(_pieces(pieces), 2)
            ),
            _responses_event(pieces + 2, "completed", response={**response, "status": "completed", "usage": usage}),
        ]
    )


class _Connection(asyncio.Protocol):
    """Requests with a ``Content-Length``, one after the other, on a connection that stays open."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._received = bytearray()
        self._body_start = 0
        self._end = 0

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._end:
            at = self._received.find(b"\r\n\r\n")
            if at < 0:
                return
            length = _LENGTH.search(self._received, 0, at)
            self._body_start = at + 4
            self._end = self._body_start + (int(length[1]) if length else 0)
        if len(self._received) >= self._end:
            head = bytes(self._received[self._body_start : self._body_start + _HEAD_BYTES])
            is_responses = self._received.startswith(b"POST /v1/responses ")
            self._received.clear()
            self._end = 0
            self._answer(head, is_responses=is_responses)

    def _answer(self, head: bytes, *, is_responses: bool) -> None:
        model = _MODEL.search(head)
        if model is None:
            self._send(b"400 Bad Request", b"application/json", b'{"error":{"message":"no model"}}')
            return
        name = model[1].decode()
        calls, pieces = _next_answer(name)
        if is_responses:
            self._send(b"200 OK", b"text/event-stream", _responses(pieces), chunked=True)
        elif _STREAM.search(head):
            self._send(b"200 OK", b"text/event-stream", _streamed(calls, pieces), chunked=True)
        else:
            self._send(b"200 OK", b"application/json", _whole(name, calls, pieces))

    def _send(self, status: bytes, media_type: bytes, body: bytes, *, chunked: bool = False) -> None:
        framing = b"transfer-encoding: chunked" if chunked else b"content-length: %d" % len(body)
        self._transport.write(b"HTTP/1.1 %b\r\ncontent-type: %b\r\n%b\r\n\r\n%b" % (status, media_type, framing, body))


async def _serve() -> None:
    """Tell the port on standard output, and serve until standard input ends."""
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", 0, backlog=512)
    async with server:
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(_serve())
