"""Answers that no server should give: bytes of no meaning, spoilt wire cases, and HTTP that is none.

What is drawn is a few numbers that say what is done to which case, so that hypothesis can make a
failing answer small. Numbers count around the end: each fits any answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal, Self, cast

from hypothesis import strategies as st
from wire.case_server import bytes_of, load_cases

__all__ = [
    "ANSWERS",
    "CUTS",
    "GOOD",
    "HTTP_ANSWERS",
    "MEDIA_TYPES",
    "NUMBERS",
    "SPOILT",
    "WAITS",
    "FuzzServer",
    "HttpAnswer",
    "bodies",
    "cut",
]

LONGEST_CASE = 20_000

_ODD_WORDS = r"""
null true false 0 -1 1 0.5 1e999 -1e999 NaN 9007199254740993 "" "x" "\u0000" "\ud800" "\udc00\ud800"
"{" "}" "{}" "{\"a\":" "{\"a\":1}" "[DONE]" "error" "length" "stop" "tool_calls" "content_filter" "add"
"<think>" "</think>" "<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>" "response.done" [] {} [null]
[[]] [0] ["x"] [{}] {"":null} {"error":"no"} {"error":{}} {"message":"no"} {"type":"error"}
{"type":"text","text":"t"} [{"type":"text","text":1}] {"name":"add","arguments":{"a":1}}
{"index":0,"id":"c","function":{"name":"add"}}
"""
ODD_JSON = (
    *_ODD_WORDS.split(),
    "1" + "0" * 400,
    "9" * 5000,
    "[" * 90 + "]" * 90,
    '{"a":' * 300 + "1" + "}" * 300,
    "[" * 980 + "]" * 980,
    "[" * 20_000 + "]" * 20_000,
    '"' + "x" * 20_000 + '"',
    json.dumps({str(number): number for number in range(300)}),
)
ODD_BYTES = (
    *(
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b"\r\n\r\n",
        b"{",
        b"}",
        b"[",
        b'"',
        b"\\",
        b"null",
        b"[DONE]",
        b"data: [DONE]\n\n",
    ),
    *(b"data: ", b"data:", b"data", b"event: error\n", b"event: response.completed\n", b"error: no\n", b": ping\n"),
    *(b"\xff", b"\xef\xbb\xbf", b"\x00", b"\xc3", b"\xf0\x9f", b"<html>", b"<think>", b"</think>", b"id: 1\n"),
    *(b'data: {"error": {"message": "no"}}\n\n', b'{"error": "no"}', b'data: {"choices": []}\n\n', b"data: {}\n\n"),
    b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0}]}}]}\n\n',
    b'data: {"type": "response.completed", "response": {"status": "completed", "output": []}}\n\n',
    b"x" * 5000,
)
OPERATIONS = ("delete", "double", "swap", "cut", "splice", "insert", "flip", "value", "drop", "move", "rename", "event")
NAMES = ("index", "id", "content", "error", "type", "choices", "delta", "text", "arguments", "")
_PLACE = "\x00place\x00"


@cache
def bodies() -> list[bytes]:
    """What the cases answer."""
    found = [bytes_of(case) for case in load_cases() if not isinstance(case.get("body"), dict)]
    return sorted({body for body in found if 0 < len(body) < LONGEST_CASE})


def spoil(body: bytes, operations: Iterable[tuple[str, int, int, int]]) -> bytes:
    """An answer after some operations on it, each with three numbers that say where and what."""
    for name, one, two, three in operations:
        if name in {"value", "drop", "move", "rename"}:
            body = _spoil_json(name, body, one, two, three)
        elif name == "event":
            body = _spoil_events(body, one, two, three)
        else:
            body = _spoil_bytes(name, body, one, two, three)
    return body[: 4 * LONGEST_CASE]


def _spoil_bytes(name: str, body: bytes, one: int, two: int, three: int) -> bytes:
    """Delete, double, change or move a piece, put something in its place, or cut off what comes after."""
    start = one % (len(body) + 1)
    end = min(len(body), start + two % 200)
    before, piece, after = body[:start], body[start:end], body[end:]
    match name:
        case "delete":
            piece = b""
        case "double":
            piece *= 2
        case "swap":
            at = three % (len(after) + 1)
            piece, after = after[:at] + piece, after[at:]
        case "cut":
            piece = after = b""
        case "splice":
            other = bodies()[three % len(bodies())]
            piece, after = other[two % (len(other) + 1) :], b""
        case "insert":
            piece = ODD_BYTES[three % len(ODD_BYTES)] + piece
        case _:
            piece = bytes(byte ^ (1 << three % 8) for byte in piece[:1]) + piece[1:]
    return before + piece + after


def _spoil_events(body: bytes, one: int, two: int, three: int) -> bytes:
    """Move, double or leave out a whole event."""
    events = body.split(b"\n\n")
    event = events[one % len(events)]
    if three % 3:
        events.remove(event)
    if three % 3 != 1:
        events.insert(two % (len(events) + 1), event)
    return b"\n\n".join(events)


def _spoil_json(name: str, body: bytes, one: int, two: int, three: int) -> bytes:
    """Change a value, or the name of one, in the JSON of an event or of the whole answer."""
    parts = re.split(rb"(\n\n|(?<=data: )|\n)", body)
    places = [index for index, part in enumerate(parts) if part.lstrip().startswith((b"{", b"["))]
    if not places:
        return body
    place = places[one % len(places)]
    try:
        value: Any = json.loads(parts[place])
    except (ValueError, RecursionError):
        return body
    holders = _holders(value)
    if not holders:
        return body
    holder, key = holders[two % len(holders)]
    match name:
        case "value":
            holder[key] = _PLACE
        case "drop":
            del holder[key]
        case "move":
            other, other_key = holders[three % len(holders)]
            holder[key] = json.loads(json.dumps(other[other_key]))
        case _:
            if isinstance(holder, dict):
                fields = cast("dict[str, Any]", holder)
                fields[NAMES[three % len(NAMES)]] = fields.pop(key)
    text = json.dumps(value).replace(json.dumps(_PLACE), ODD_JSON[three % len(ODD_JSON)])
    return b"".join([*parts[:place], text.encode(), *parts[place + 1 :]])


def _holders(value: Any) -> list[tuple[Any, Any]]:
    """Each place in some JSON: the object or list that holds it, and its name or index there."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder: Any = waiting.pop()
        inner: list[tuple[Any, Any]] = []
        if isinstance(holder, dict):
            inner = list(cast("dict[str, Any]", holder).items())
        elif isinstance(holder, list):
            inner = list(enumerate(cast("list[Any]", holder)))
        found += [(holder, key) for key, _ in inner]
        waiting += [each for _, each in inner]
    return found


def _spoilt_case(number: int, operations: list[tuple[str, int, int, int]]) -> bytes:
    return spoil(bodies()[number % len(bodies())], operations)


NUMBERS = st.integers(0, 2**16)
SPOILT = st.builds(
    _spoilt_case,
    NUMBERS,
    st.lists(st.tuples(st.sampled_from(OPERATIONS), NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=5),
)
ANSWERS = st.one_of(SPOILT, SPOILT, SPOILT, st.binary(max_size=300))
CUTS = st.lists(NUMBERS, max_size=12)
MEDIA_TYPES = st.sampled_from(["text/event-stream"] * 6 + ["application/json", "text/html", "", "application/x-ndjson"])


def cut(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Data in pieces, none of them empty."""
    places = sorted({0, len(data), *(number % (len(data) + 1) for number in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


ODD_HEADS = (
    b"",
    b"\n",
    b"<html>",
    b"SSH-2.0-x\r\n",
    b"\xff\xfe\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01",
    b"HTTP/1.1 200 OK\n\n",
    b"HTTP/1.1 100 C\r\n\r\n" * 50,
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    *(
        f"{line}\r\n\r\n".encode()
        for line in (
            *("", "HTTP/1.1", "HTTP/1.1 200", "HTTP/1.1 OK", "HTTP/2 200 OK", "HTTP/1.0 200 OK", "ICY 200 OK"),
            *(f"HTTP/1.1 {status} X" for status in (999, 100, 101, 204, 304, 301)),
        )
    ),
)
ODD_HEADERS = (
    *r"""
    content-length: 0
    content-length: 10
    content-length: 1000000
    content-length: -1
    content-length: x
    transfer-encoding: chunked
    transfer-encoding: gzip, chunked
    transfer-encoding: x
    content-encoding: gzip
    content-encoding: deflate
    content-encoding: gzip, deflate, br
    content-encoding: x
    content-type: application/json
    content-type: application/json; charset=x
    content-type: text/html
    content-type: text/event-stream; charset=utf-16
    content-type:
    content-type: ÿ
    location: /
    location: ::
    location: ÿ
    retry-after: x
    retry-after: -1
    retry-after: 1e999
    retry-after: nan
    retry-after: 0
    retry-after: Thu, 99 Foo 99999 99:99:99 GMT
    retry-after: Fri, 31 Dec 9999 23:59:59 -2359
    retry-after-ms: x
    x-ratelimit-reset: 1e308
    x-ratelimit-reset-tokens: 99999999999999d
    set-cookie: a=b
    set-cookie: ÿ
    www-authenticate: Digest x
    upgrade: h2c
    connection: close
    : x
    x
    x y: z
    """.strip().splitlines(),
    "content-length: 1\r\ncontent-length: 2",
    " x: y",
    "x\x00: y",
    "x: \x00",
    "x-ratelimit-reset-requests: " + "9" * 400,
)
STATUSES = (200, 200, 200, 200, 201, 204, 206, 301, 304, 400, 401, 404, 408, 413, 422, 429, 499, 500, 503, 529, 599, 42)
Framing = Literal["close", "length", "chunked", "odd chunks", "long", "raw"]


@dataclass(frozen=True)
class HttpAnswer:
    """What a server writes for a request: a head, a body in pieces, and how it leaves."""

    head: bytes
    pieces: tuple[bytes, ...]
    resets: bool = False


def http_answer(
    *, body: bytes, cuts: list[int], framing: Framing, status: int, headers: list[str], odd: int, resets: bool
) -> HttpAnswer:
    """An answer, more or less as HTTP has it."""
    pieces = cut(body, cuts)
    if framing == "raw":
        return HttpAnswer(ODD_HEADS[odd % len(ODD_HEADS)], tuple(pieces), resets)
    lines = [f"HTTP/1.1 {status} X", *headers]
    if not any(header.startswith("content-type") for header in headers):
        lines.append("content-type: text/event-stream")
    if framing in {"length", "long"}:
        lines.append(f"content-length: {len(body) + (odd if framing == 'long' else 0)}")
    elif framing != "close":
        lines.append("transfer-encoding: chunked")
        sizes = [b"%x" % len(piece) for piece in pieces]
        if framing == "odd chunks" and sizes:
            wrong = (b"%x" % odd, b"-1", b"x", b"", b"0", b"f" * 20, b"1;x=y", b"\xff", b"0x1")
            sizes[odd % len(sizes)] = wrong[odd % len(wrong)]
        pieces = [size + b"\r\n" + piece + b"\r\n" for size, piece in zip(sizes, pieces, strict=True)]
        pieces.append(b"0\r\n\r\n")
    return HttpAnswer("\r\n".join([*lines, "", ""]).encode("latin-1"), tuple(pieces), resets)


HTTP_ANSWERS = st.builds(
    http_answer,
    body=ANSWERS,
    cuts=st.lists(NUMBERS, max_size=4),
    framing=st.sampled_from([*("close", "length", "chunked") * 4, "odd chunks", "long", "raw"]),
    status=st.sampled_from(STATUSES),
    headers=st.lists(st.sampled_from([header.strip(" ") for header in ODD_HEADERS]), max_size=2) | st.just([]),
    odd=NUMBERS,
    resets=st.booleans(),
)
GOOD = HttpAnswer(
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
    (
        b'data: {"choices": [{"index": 0, "delta": {"content": "well"}, "finish_reason": "stop"}]}\n\n',
        b"data: [DONE]\n\n",
    ),
)


class FuzzServer:
    """Gives each request the next of its answers, the last one to all that follow, and then hangs up."""

    def __init__(self, *answers: HttpAnswer) -> None:
        self.bodies: list[Any] = []
        self.base_url = ""
        self._answers = answers
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

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            self.bodies.append(json.loads(body or b"{}"))
            answer = self._answers[min(len(self.bodies), len(self._answers)) - 1]
            for piece in (answer.head, *answer.pieces):
                writer.write(piece)
                await writer.drain()
            if answer.resets:
                writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has seen enough, or the server is closed
        finally:
            writer.close()


WORDS_OF_DATES = st.sampled_from(
    [
        *("Mon,", "1", "31", "Dec", "9999", "0001", "3000000000", "00:00:00", "99:99", "GMT", "+9999", "-2359"),
        *(",", ":", "-", " ", "e", "ms", "s", "m", "h", "d", ".", "nan", "inf", "\u0663", "9" * 20),
    ]
)
WAITS = st.one_of(
    st.text(max_size=30),
    st.lists(WORDS_OF_DATES, max_size=9).map(" ".join),
    st.lists(WORDS_OF_DATES, max_size=9).map("".join),
)
