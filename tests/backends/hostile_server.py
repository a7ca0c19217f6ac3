"""A server that says back, in every way there is, the keys that it was given.

The first part of the path names the way: ``http://127.0.0.1:PORT/401-json/v1``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import html
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import quote

__all__ = ["WAYS", "HostileServer"]

CUT = 300
"""So many characters of a server's words does an error repeat."""


def _response(status: str, media_type: str, body: str | bytes, **headers: str) -> bytes:
    raw = body if isinstance(body, bytes) else body.encode()
    fields = {"content-type": media_type, "content-length": str(len(raw)), "connection": "close", **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + raw


def _refused(words: Any, status: str = "401 Unauthorized", **headers: str) -> bytes:
    return _response(status, "application/json", json.dumps({"error": {"message": words}}), **headers)


def _stream(*events: str, media_type: str = "text/event-stream") -> bytes:
    return _response("200 OK", media_type, "".join(events))


def _event(fields: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(fields)}\n\n"


def _delta(content: str, finish: str | None = None, **more: Any) -> str:
    return _event({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}], **more})


def _in_pieces(said: str) -> bytes:
    return _refused(f"Incorrect API key provided: {said[:20]}****{said[-14:]}")


def _escaped(said: str) -> bytes:
    hidden = "".join(f"\\u{ord(character):04x}" for character in said)
    return _response("401 Unauthorized", "application/json", f'{{"error": {{"message": "No: {hidden}"}}}}')


def _named_models(said: str) -> bytes:
    models = {"data": [{"id": said, "name": f"Model {said}", "owned_by": said}, {"id": "m"}]}
    return _response("200 OK", "application/json", json.dumps(models))


WAYS: Mapping[str, Callable[[str], bytes]] = {
    "401-json": lambda said: _refused(f"Incorrect API key provided: {said}"),
    "401-fields": lambda said: _response(
        "401 No",
        "application/json",
        json.dumps({"detail": [{"loc": ["header", said], "msg": f"bad {said}", "input": said}], "code": said}),
    ),
    "401-html": lambda said: _response(
        f"401 {said}", "text/html", f"<html><title>No {html.escape(said)}</title><p>{said}</p></html>"
    ),
    "401-text": lambda said: _response("401 No", "text/plain", f"Incorrect key {said}"),
    "401-pieces": _in_pieces,
    "401-escaped": _escaped,
    "401-in-json": lambda said: _refused(json.dumps({"error": json.dumps({"message": f"bad {said}"})})),
    "401-url": lambda said: _refused(f"No access to http://host/?key={quote(said, safe='')}&all={quote(said)}"),
    "401-page": lambda said: _refused(f"<b>{html.escape(said)}</b>"),
    "401-base64": lambda said: _refused(
        " ".join(base64.b64encode(f"{before}{said}, all".encode()).decode() for before in ("", "1", "22"))
    ),
    "401-headers": lambda said: _refused("No", f"401 {said}", www_authenticate=f"Bearer {said}", retry_after=said),
    "400-values": lambda said: _refused(
        f"Unsupported value: 'reasoning_effort'. Supported values are: '{said}' and '{said}'.", "400 Bad"
    ),
    "404-model": lambda said: _refused(f"model {said!r} not found", "404 Gone"),
    "429": lambda said: _refused(f"Slow down, {said}", "429 Slow", retry_after="0.001", x_key=said),
    "500": lambda said: _refused(f"Traceback of {said}", "500 Broken"),
    "307": lambda said: _response("307 Moved", "text/plain", said, location=f"http://elsewhere/?key={quote(said)}"),
    "200-error": lambda said: _response("200 OK", "application/json", json.dumps({"error": f"wrong {said}"})),
    "200-page": lambda said: _response("200 OK", "text/html", f"<html><title>Log in {said}</title></html>"),
    "200-text": lambda said: _response("200 OK", "application/json", f"wrong {said}"),
    "200-list": lambda said: _response("200 OK", "application/json", json.dumps([{"error": {"message": said}}])),
    "200-media-type": lambda said: _stream("data: {}\n\n", media_type=f"text/{quote(said, safe='')}"),
    "stream-error": lambda said: _stream(_event({"error": {"message": f"wrong {said}"}})),
    "stream-late-error": lambda said: _stream(_delta("Hel"), _event({"error": {"message": f"wrong {said}"}})),
    "stream-named-error": lambda said: _stream(_delta("Hel"), f"event: error\ndata: wrong {said}\n\n"),
    "stream-flat-error": lambda said: _stream(
        _delta("Hel"),
        _event({"object": "error", "message": base64.b64encode(f"wrong {said}, all".encode()).decode(), "code": 401}),
    ),
    "stream-choice-error": lambda said: _stream(
        _delta("Hel"), _event({"choices": [{"index": 0, "delta": {}, "error": {"message": said, "code": said}}]})
    ),
    "stream-error-at-the-end": lambda said: _stream(
        _event({"type": "response.completed", "response": {"status": "failed", "error": {"message": said}}})
    ),
    "stream-error-field": lambda said: _stream(f"error: wrong {said}\n\n"),
    "stream-unframed": lambda said: _stream(_delta("Hel"), json.dumps({"error": {"message": f"wrong {said}"}})),
    "stream-no-json": lambda said: _stream(f"data: wrong {said}\n\n"),
    "stream-no-events": lambda said: _stream(f"wrong {said}"),
    "stream-page": lambda said: _stream(f"<html><title>{said}</title>"),
    "stream-named": lambda said: _stream(
        _delta("Hello", model=said, id=said, system_fingerprint=said),
        _delta("", finish=said, model=said),
        "data: [DONE]\n\n",
    ),
    "stream-failed": lambda said: _stream(
        _event({"type": "response.created", "response": {"id": said, "model": said, "status": said}}),
        _event({"type": "response.failed", "response": {"error": {"code": said, "message": f"wrong {said}"}}}),
    ),
    "stream-incomplete": lambda said: _stream(
        _event({"type": "response.output_text.delta", "delta": "Hel", "output_index": 0}),
        _event(
            {
                "type": "response.incomplete",
                "response": {"model": said, "status": "incomplete", "incomplete_details": {"reason": said}},
            }
        ),
    ),
    "whole-named": lambda said: _response(
        "200 OK",
        "application/json",
        json.dumps({"model": said, "choices": [{"message": {"content": "Hello"}, "finish_reason": said}]}),
    ),
    "status-line": lambda said: f"HTTP/1.1 wrong {said}\r\n\r\n".encode(),
    "header-line": lambda said: f"HTTP/1.1 200 OK\r\n{said}\r\n\r\n".encode(),
    "no-http": lambda said: f"wrong {said}\r\n\r\n".encode(),
    "chunk-size": lambda said: f"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{said}\r\n\r\n".encode(),
    "content-length": lambda said: f"HTTP/1.1 200 OK\r\ncontent-length: {said}\r\n\r\n{said}".encode(),
    "broken-off": lambda said: f"HTTP/1.1 401 {said}\r\ncontent-length: 9999\r\nx-key: {said}\r\n\r\n{said}".encode(),
    "stall": lambda _: b"",
    "stall-late": lambda said: f"HTTP/1.1 200 {said}\r\nx-key: {said}\r\n\r\n{_delta('Hel')}".encode(),
    **{
        f"401-cut-{at}": lambda said, at=at: _refused("x" * (CUT - 80 + at) + said)  # where the words are cut
        for at in range(0, 80, 10)
    },
}
"""What the server answers in each way; it is given what it is to say back."""


class HostileServer:
    """Keeps what it was given in ``heard``, by way; a list of models is asked for and given like anything."""

    def __init__(self) -> None:
        self.heard: dict[str, list[str]] = defaultdict(list)
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = head.split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode("utf-8", "replace")
            path = lines[0].split(" ")[1]
            way = path.split("/")[1]
            said = " ".join(_secrets(headers, body))
            self.heard[way].append(said)
            if path.endswith("/models") and way.endswith("-named"):
                answer = _named_models(said)
            else:
                answer = WAYS.get(way, WAYS["404-model"])(said or "nothing")
            writer.write(answer)
            await writer.drain()
            if way.startswith("stall"):
                await reader.read()  # until the client goes
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def _secrets(headers: Mapping[str, str], body: str) -> list[str]:
    """What a client may have given: the credentials of its headers, and any key in the body."""
    found = [headers[name] for name in ("api-key", "x-api-key", "cookie") if name in headers]
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme == "Basic":
        found += [base64.b64decode(credentials).decode(), credentials]
    elif credentials:
        found.append(credentials)
    fields: Any = json.loads(body) if body else {}
    return found + [fields[name] for name in ("api_key",) if name in fields]
