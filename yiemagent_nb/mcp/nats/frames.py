"""Frames: the wire form of MCP on NATS, and reading and writing it.

A topic answers two kinds of requests. Either is one message with a reply subject, published to the
topic; the workers that serve it share a queue group, so one of them takes it.

**Plain**, without headers of this form: a JSON-RPC 2.0 request; the reply is one JSON-RPC response.
A header ``Sender-Id`` may say who asks. A reply must fit the payload limit of the NATS server::

    PUB tools.weather  reply _INBOX.9f.1
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "now", "arguments": {}}}
    MSG _INBOX.9f.1
        {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "sunny"}]}}

**Stateless**, with a header ``Mcp-Frame``: the worker answers with several frames. Payloads are plain
JSON-RPC messages, or empty. Subjects::

    <topic>                             requests, to the workers' queue group
    <topic>.control.<worker>.<token>    from the caller to the worker that took its request
    <topic>.events                      from the workers to all: notifications that belong to no request
    the request's reply subject         from the worker to the caller

Frames of the caller, by ``Mcp-Frame``:

- ``request``, to the topic. Headers: ``Mcp-Request``, an id that no other request has, 8 to 64 letters,
  digits, ``-`` or ``_`` (a request whose id was seen within the last minutes is not carried out
  again); and optionally ``Sender-Id``; ``Mcp-Timeout``, seconds after which nobody waits any more;
  ``Mcp-Answers``, the questions that the caller answers, such as ``sampling/createMessage,roots/list``.
  Who wants progress puts a ``progressToken`` into ``params._meta``, as MCP has it.
- ``cancel``, to the control subject, empty: stop, nobody waits any more.
- ``answer``, to the control subject: the JSON-RPC response to a question.

Frames of the worker, each with ``Mcp-Worker``, its name, and with the control subject as its reply
subject, where the NATS server tells the worker (status 503) that its caller is gone:

- ``accepted``, at once, empty. ``Mcp-Period`` says how many seconds apart the signs of life are.
- ``alive``, every period while the worker works, empty. Silence of three periods means it is dead.
- ``notification``: a JSON-RPC notification, such as ``notifications/progress``.
- ``question``: a JSON-RPC request to the caller.
- ``end``: the JSON-RPC response. Nothing comes after it. A worker that refuses a request, since it is busy
  for instance, sends it alone, without ``accepted`` and without a reply subject.

A payload that does not fit one message is cut. Each piece is a frame of the same kind, with
``Mcp-Part: 2/40``, counted from 1, and ``Mcp-Size``, the bytes of the whole. Pieces come in order; those
of another cut payload never come between, ``alive`` may. A piece that is missing spoils the exchange.
The first piece of a request goes to the topic, the others to the control subject after ``accepted``::

    PUB tools.weather  reply _INBOX.9f.2         Mcp-Frame: request   Mcp-Request: 5a0c61f02b7d4e19
        {"jsonrpc": "2.0", "id": "5a0c61f02b7d4e19", "method": "tools/list"}
    MSG _INBOX.9f.2                              Mcp-Frame: accepted  Mcp-Worker: w1  Mcp-Period: 2
            reply tools.weather.control.w1.77
    MSG _INBOX.9f.2                              Mcp-Frame: end       Mcp-Worker: w1  Mcp-Part: 1/2  Mcp-Size: 700000
        {"jsonrpc": "2.0", "id": "5a0c61f02b7d4e19", "result": {"tools": [ …
    MSG _INBOX.9f.2                              Mcp-Frame: end       Mcp-Worker: w1  Mcp-Part: 2/2  Mcp-Size: 700000
        … ]}}

The method ``server/discover`` asks what the server is; its result is MCP's. A responder that answers it
without ``Mcp-Frame``, or with the request's own headers sent back, speaks the plain form.

Error codes beside JSON-RPC's: -32010 busy, -32011 larger than the payload limit, -32012 stopping.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from yiemagent_nb.core.json_values import read_json

__all__ = [
    "ANSWERS",
    "BUSY",
    "CHUNK_BYTES",
    "REQUEST_ID",
    "SENDER",
    "STOPPING",
    "TOO_LARGE",
    "WORKER",
    "Assembly",
    "Frame",
    "FrameError",
    "Kind",
    "as_object",
    "failure",
    "header_bytes",
    "read_frame",
    "read_message",
    "write_frames",
    "write_message",
]

BUSY = -32010
TOO_LARGE = -32011
STOPPING = -32012

CHUNK_BYTES = 512 * 1024
"""The largest piece of a payload, where the NATS server would take more."""

FRAME = "Mcp-Frame"
REQUEST_ID = "Mcp-Request"
WORKER = "Mcp-Worker"
PERIOD = "Mcp-Period"
TIMEOUT = "Mcp-Timeout"
ANSWERS = "Mcp-Answers"
PART = "Mcp-Part"
SIZE = "Mcp-Size"
SENDER = "Sender-Id"

_PART = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})", re.ASCII)
_SIZE = re.compile(r"[0-9]{1,15}", re.ASCII)
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}", re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)


class FrameError(Exception):
    """A message does not have the wire form; its text says what is wrong."""


class Kind(StrEnum):
    """What a frame is, as ``Mcp-Frame`` says it."""

    REQUEST = "request"
    CANCEL = "cancel"
    ANSWER = "answer"
    ACCEPTED = "accepted"
    ALIVE = "alive"
    NOTIFICATION = "notification"
    QUESTION = "question"
    END = "end"


_KINDS = frozenset(kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of the stateless form.

    Args:
        kind: What it is.
        payload: The whole payload, or a piece.
        part: Which piece, from 1.
        parts: How many pieces there are.
        size: Bytes of the whole payload.
        headers: All headers.
    """

    kind: Kind
    payload: bytes = b""
    part: int = 1
    parts: int = 1
    size: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def request_id(self) -> str:
        """The request's id.

        Raises:
            FrameError: It has none, or one of another form.
        """
        text = self.headers.get(REQUEST_ID, "")
        if not _REQUEST_ID.fullmatch(text):
            raise FrameError(f"{REQUEST_ID} must be 8 to 64 letters, digits, '-' or '_'")
        return text

    def seconds(self, header: str) -> float | None:
        """The number of seconds in a header; None where it is not there.

        Raises:
            FrameError: It is no number.
        """
        text = self.headers.get(header)
        if text is None:
            return None
        if not _SECONDS.fullmatch(text):
            raise FrameError(f"{header} must be a number of seconds, such as 2.5")
        return float(text)


def read_frame(headers: Mapping[str, str] | None, payload: bytes) -> Frame | None:
    """Read a message; None where it is a plain one.

    Raises:
        FrameError: It says that it is a frame, and is none.
    """
    kind = None if headers is None else headers.get(FRAME)
    if headers is None or kind is None:
        return None
    if kind not in _KINDS:
        raise FrameError(f"{FRAME} must be one of {', '.join(Kind)}")
    if PART not in headers:
        return Frame(Kind(kind), payload, size=len(payload), headers=headers)
    part = _PART.fullmatch(headers[PART])
    if part is None or int(part[1]) > int(part[2]):
        raise FrameError(f"{PART} must be a number and how many there are, such as 2/40")
    size = headers.get(SIZE, "")
    if not _SIZE.fullmatch(size):
        raise FrameError(f"{SIZE} must be the number of bytes of the whole payload")
    return Frame(Kind(kind), payload, int(part[1]), int(part[2]), int(size), headers)


def header_bytes(headers: Mapping[str, str]) -> int:
    """What headers take of the payload limit, in bytes."""
    return 12 + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items()) if headers else 0


def write_frames(
    kind: Kind, payload: bytes = b"", *, limit: int, headers: Mapping[str, str] | None = None
) -> Iterator[tuple[bytes, dict[str, str]]]:
    """The payload and the headers of each message that carries a payload.

    Args:
        kind: What it is.
        payload: The whole payload.
        limit: The NATS server's payload limit, in bytes; headers count too.
        headers: Further headers; the pieces after the first do without.

    Raises:
        FrameError: The limit leaves no room.
    """
    first = {FRAME: kind.value, **(headers or {})}
    widest = {**first, PART: "999999999/999999999", SIZE: "9" * 15}
    room = min(CHUNK_BYTES, limit - header_bytes(widest))
    if room < 1:
        raise FrameError(f"the NATS server's payload limit of {limit} bytes leaves no room for a frame")
    if len(payload) <= room:
        yield payload, first
        return
    parts = -(-len(payload) // room)
    repeated = {name: first[name] for name in (FRAME, REQUEST_ID, WORKER) if name in first}
    for part in range(1, parts + 1):
        counted = {PART: f"{part}/{parts}", SIZE: str(len(payload))}
        yield payload[(part - 1) * room : part * room], {**(first if part == 1 else repeated), **counted}


class Assembly:
    """Puts the pieces of one payload together.

    Args:
        max_bytes: The largest payload that is taken.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._received = 0
        self._first: Frame | None = None

    def add(self, frame: Frame) -> bytes | None:
        """Take the next piece; returns the payload when it is whole.

        Raises:
            FrameError: A piece is missing, belongs to another payload, or is more than was said.
        """
        if frame.size > self._max_bytes:
            raise FrameError(f"{frame.size} bytes are more than the {self._max_bytes} that are taken")
        first = self._first or frame
        if (frame.kind, frame.parts, frame.size) != (first.kind, first.parts, first.size):
            raise FrameError(f"a piece of another payload came within one of {first.parts} pieces")
        if frame.part != len(self._pieces) + 1:
            raise FrameError(f"piece {len(self._pieces) + 1} of {frame.parts} is missing: {frame.part} came")
        self._received += len(frame.payload)
        if self._received > frame.size or (frame.parts > 1 and not frame.payload):
            raise FrameError(f"piece {frame.part} of {frame.parts} does not fit the size of {frame.size} bytes")
        self._first = first
        self._pieces.append(frame.payload)
        if frame.part < frame.parts:
            return None
        if self._received != frame.size:
            raise FrameError(f"{self._received} of {frame.size} bytes came")
        whole = b"".join(self._pieces)
        self._pieces, self._received, self._first = [], 0, None
        return whole


def write_message(message: Mapping[str, Any]) -> bytes:
    """A JSON-RPC message as bytes.

    Raises:
        ValueError: It holds what JSON cannot.
    """
    try:
        return json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, UnicodeEncodeError, RecursionError) as error:
        try:
            return json.dumps(read_json(message), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, RecursionError):
            raise ValueError(f"it is no JSON: {error}") from error


def read_message(payload: bytes) -> dict[str, Any]:
    """The JSON object in a payload.

    Raises:
        FrameError: It holds none.
    """
    try:
        message: object = json.loads(payload, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"the payload is no JSON: {str(error)[:200]}") from error
    read = as_object(message)
    if read is None:
        raise FrameError(f"the payload must be a JSON object, not a {type(message).__name__}")
    return read


def failure(request_id: object, code: int, text: str) -> dict[str, Any]:
    """A JSON-RPC response that is an error."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}


def as_object(value: object) -> dict[str, Any] | None:
    """A JSON object; None where it is something else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")
