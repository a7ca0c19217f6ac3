"""Server-sent events, decoded from bytes as they come.

Source of the format: the WHATWG HTML standard, section "Server-sent events", and what model servers
make of it: errors in a field named ``error``, JSON without any framing, events without the blank
lines between them, comments sent as data.
"""

from __future__ import annotations

import json

__all__ = ["SseDecoder"]

_BOM = b"\xef\xbb\xbf"
_DONE = "[DONE]"
_BARE = ("{", "[{", _DONE)
"""How lines begin that are an event, or a part of one, without being a field."""


class SseDecoder:
    """Turns chunks of bytes, cut anywhere, into events.

    An event is its name (empty for the default) and its data. Lines end at LF, CR or CRLF; the
    space after a colon is optional; data lines join with LF; comments, events without data and
    unknown fields are skipped. Beyond the standard, the last event counts without its blank line, a
    field named ``error`` is an event of that name, lines of bare JSON and a bare ``[DONE]`` are an
    event, data that begins with a colon is a comment, and after a whole JSON object a name or the
    next object begins an event.

    The time it takes grows with the bytes alone, however long a line is.
    """

    __slots__ = ("_after_cr", "_bare", "_data", "_name", "_started", "_tail", "_tried")

    def __init__(self) -> None:
        self._tail: list[bytes] = []
        self._after_cr = False
        self._started = False
        self._data: list[str] = []
        self._name = ""
        self._bare: list[str] = []
        self._tried = False
        """Whether the data so far was seen to be no whole object where one might have ended."""

    def feed(self, chunk: bytes) -> list[tuple[str, str]]:
        """Take some bytes; give back the events that they complete, each a name and its data."""
        if self._started and (event := self._quick(chunk)) is not None:
            return [event]
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[0] == 10:  # noqa: PLR2004 - the LF of a CRLF that was cut in two
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            if chunk:
                self._tail.append(chunk)
            return []
        self._after_cr = chunk.endswith(b"\r")
        if self._tail:
            self._tail.append(chunk)
            chunk = b"".join(self._tail)
            self._tail.clear()
        lines = chunk.splitlines()
        if not chunk.endswith((b"\n", b"\r")):
            self._tail.append(lines.pop())
        return self._take(lines)

    def _quick(self, chunk: bytes) -> tuple[str, str] | None:
        """One event in one piece, as most servers write them; None for anything else."""
        if not chunk.endswith(b"}\n\n") or b"\r" in chunk:
            return None
        if self._tail or self._data or self._name or self._bare or self._after_cr:
            return None
        name, line = b"", chunk
        if chunk.startswith(b"event: "):
            name, _, line = chunk[7:].partition(b"\n")
        if not line.startswith(b"data: {") or line.count(b"\n") != 2:  # noqa: PLR2004
            return None
        return name.decode("utf-8", "replace"), line[6:-2].decode("utf-8", "replace")

    def flush(self) -> list[tuple[str, str]]:
        """The events that stand there when no more bytes come."""
        lines = [b"".join(self._tail), b""]
        self._tail.clear()
        events = self._take(lines)
        if self._bare:
            events.append(("", "\n".join(self._bare)))
            self._bare.clear()
        return events

    def _take(self, lines: list[bytes]) -> list[tuple[str, str]]:
        events: list[tuple[str, str]] = []
        if not self._started and lines:
            self._started = True
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if line.startswith(b"data:"):
                text = line.decode("utf-8", "replace")
                self._take_data(text[6:] if text[5:6] == " " else text[5:], events)
            elif line:
                self._field(line.decode("utf-8", "replace"), events)
            elif self._data or self._name:
                self._end(events)
        return events

    def _take_data(self, text: str, events: list[tuple[str, str]]) -> None:
        if text.startswith(":"):
            return
        if text.rstrip() == _DONE:
            text = _DONE
        if self._data and text.startswith(("{", _DONE)) and self._is_whole():
            self._end(events)
        self._data.append(text)

    def _is_whole(self) -> bool:
        """Whether the data so far is a JSON object, to which nothing can be added."""
        if self._tried or not self._data[-1].rstrip().endswith("}"):
            return False
        try:
            json.loads("\n".join(self._data))
        except (ValueError, RecursionError):
            self._tried = True  # what goes on after it will be none either, and each look costs its length
            return False
        return True

    def _end(self, events: list[tuple[str, str]]) -> None:
        data = self._data[0] if len(self._data) == 1 else "\n".join(self._data)
        if data:
            events.append((self._name, data))
        self._data.clear()
        self._name = ""
        self._tried = False

    def _field(self, line: str, events: list[tuple[str, str]]) -> None:
        if self._bare or line.lstrip().startswith(_BARE) or line.strip() == "[":
            self._take_bare(line, events)
            return
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            if self._data and self._is_whole():
                self._end(events)
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "error":
            events.append(("error", value))

    def _take_bare(self, line: str, events: list[tuple[str, str]]) -> None:
        """A line of JSON without a field's name: an event, or a part of one that ends with the stream."""
        if not self._bare and line.strip() == _DONE:
            events.append(("", _DONE))
        elif not self._bare and line.rstrip().endswith(("}", "}]")):
            events.append(("", line))
        else:
            self._bare.append(line)
