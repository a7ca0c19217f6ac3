"""The chunks of a streamed answer, of either endpoint, read from its bytes.

What a server said may repeat a key, and tracebacks show the variables of a function that raises. So
errors are given back, and raised where nothing of the stream stands beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from yiemagent_nb.backends.http.bodies import no_json, response_or_error
from yiemagent_nb.backends.http.sse import SseDecoder
from yiemagent_nb.core.errors import BackendError, MalformedResponseError, StreamInterruptedError
from yiemagent_nb.core.reading.fields import REASONING_FIELDS
from yiemagent_nb.core.reading.server_errors import error_body, quote, server_error
from yiemagent_nb.core.redaction import Redactor

__all__ = ["StreamReader"]

_DONE = "[DONE]"
_PAGE_BYTES = 200
"""Enough of a body to know a web page by."""

_decode = json.JSONDecoder().raw_decode
_KEEP_ALIVE_EVENTS = frozenset({"ping", "keepalive", "keep-alive", "heartbeat"})
_DELTA_KEYS = ("content", "tool_calls", "refusal", "function_call", "reasoning_details", *REASONING_FIELDS)
_ENDS = frozenset({"response.completed", "response.incomplete", "response.done", "response.cancelled"})
_ERRORS = frozenset({"error", "response.failed", "response.error"})


class StreamReader:
    """Reads one answer, be it a stream of events or, against the request, JSON or a page in one piece.

    ``shown`` says whether something of the answer was given back, ``done`` whether the server said
    that it is over, ``over`` whether nothing more is to be read.

    Args:
        redactor: Masks keys in what errors repeat, and beside the content.
    """

    __slots__ = (
        "_body",
        "_decoder",
        "_is_whole",
        "_last",
        "_media_type",
        "_page",
        "_redactor",
        "done",
        "error",
        "over",
        "shown",
    )

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor()
        self.shown = False
        self.done = False
        self.over = False
        self._decoder = SseDecoder()
        self.error: BackendError | None = None
        """What the next call of ``feed`` raises, whatever it is given."""
        self._last: Mapping[str, Any] | None = None
        self._page = b""
        """The start of what may be no event stream."""
        self._media_type = ""
        self._is_whole = False
        self._body: list[bytes] = []

    def begin(self, media_type: str) -> None:
        """Set how the body is read: JSON and web pages whole, all else as events."""
        self._media_type = media_type
        if media_type in {"application/json", "text/html"}:
            self._is_whole = True

    @property
    def ended(self) -> bool:
        """Whether the answer is complete, with or without the last formalities."""
        if self.done:
            return True
        last = self._last or {}
        choices: object = last.get("choices")
        if isinstance(choices, list) and choices:
            choice: object = cast("list[object]", choices)[0]
            return isinstance(choice, dict) and bool(cast("dict[str, Any]", choice).get("finish_reason"))
        return bool(last.get("usage"))

    def feed(self, data: bytes | BaseException) -> list[Mapping[str, Any]]:
        """The chunks that ``data`` completes; no bytes are the end of the body, an exception is raised.

        Raises:
            BackendError: The stream carries an error, or ended before it began. What came before
                the error is given back first; the next call raises.
        """
        if self.error is not None:
            raise self.error
        if not isinstance(data, bytes):
            raise data
        chunks: list[Mapping[str, Any]] = []
        self.error = (self._read_whole if self._is_whole else self._read)(data, chunks)
        if self.error is not None:
            self.over = False  # the error is to be read
            del data
            if not chunks:
                raise self.error
        return chunks

    def _read_whole(self, data: bytes, chunks: list[Mapping[str, Any]]) -> BackendError | None:
        self._body.append(data)
        if data:
            return None
        self.over = True
        response = response_or_error(b"".join(self._body), self._media_type, self._redactor)
        if isinstance(response, BackendError):
            return response
        chunks.append(response)
        return None

    def _read(self, data: bytes, chunks: list[Mapping[str, Any]]) -> BackendError | None:
        """Add the chunks that ``data`` completes; gives back the error behind them."""
        if data:
            events = self._decoder.feed(data)
        else:
            events = self._decoder.flush()
            self.over = True
        if self._last is None and len(self._page) < _PAGE_BYTES:
            self._page += data[:_PAGE_BYTES]
        for name, text in events:
            if text == _DONE:
                self.done = self.over = True
                chunks.append({"done": True})
                return None
            chunk = self._chunk(name, text)
            if isinstance(chunk, BackendError):
                return chunk
            if chunk:
                self._last = chunk
                if not self.shown:
                    self.shown = _shows_something(chunk)
                chunks.append(chunk)
                kind = chunk.get("type")
                if isinstance(kind, str) and kind in _ENDS:
                    self.done = self.over = True
                    return None
        return self._nothing() if self.over and not self.shown and not self.ended else None

    def _chunk(self, name: str, text: str) -> Mapping[str, Any] | BackendError | None:
        try:
            value, end = _decode(text)
            if end != len(text):
                value = json.loads(text)
        except (ValueError, RecursionError):
            value = self._odd(name, text)
            if isinstance(value, BackendError):
                return value
        if name:
            if name == "error":
                return self._said(value)
            if name in _KEEP_ALIVE_EVENTS:
                return None
        if type(value) is not dict:
            return None
        chunk = cast("dict[str, Any]", value)
        kind = chunk.get("type")
        if type(kind) is str and kind.startswith("response."):
            may_fail = "error" in chunk or kind in _ERRORS
        else:
            may_fail = "error" in chunk or "choices" not in chunk
        if may_fail and (error := error_body(chunk)) is not None:
            return self._said(error)
        return self._redactor.clean_labels(chunk) if self._redactor.found_in(text) else chunk

    def _said(self, error: object) -> BackendError:
        """The typed error; keys go before its words are cut."""
        return server_error(self._redactor.clean(error))

    def _odd(self, name: str, text: str) -> object:
        """What an event means whose data is no plain JSON; an error where it means nothing."""
        try:
            return json.loads(text)  # with white space around it
        except (ValueError, RecursionError):
            if name == "error":
                return text
            if name in _KEEP_ALIVE_EVENTS:
                return None
            words = quote(self._redactor(text), 120)
            return MalformedResponseError(
                f'An event of the stream is no JSON: "{words}".', "Ask again, or look at the server's log."
            )

    def _nothing(self) -> MalformedResponseError | StreamInterruptedError:
        page = self._page.lstrip()
        if page.startswith(b"<") or (page and self._media_type.startswith("text/") and "event" not in self._media_type):
            return no_json(self._page, "text/html" if page.startswith(b"<") else self._media_type, self._redactor)
        return StreamInterruptedError(
            "The server closed the connection before its answer began.", "Ask again, or look at the server's log."
        )


def _shows_something(chunk: Mapping[str, Any]) -> bool:
    kind: object = chunk.get("type")
    if isinstance(kind, str) and kind.startswith("response."):
        # Events of the Responses API: all but those that only say how far it is, and empty items.
        return kind.endswith(".delta") or kind.startswith("response.output_item.") or kind in _ENDS
    choices: object = chunk.get("choices")
    choice: object = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return choices is None and "usage" not in chunk
    fields = cast("dict[str, Any]", choice)
    delta: object = fields.get("delta") or fields.get("message")
    if not isinstance(delta, dict):
        return bool(fields.get("text"))
    return any(cast("dict[str, Any]", delta).get(key) for key in _DELTA_KEYS)
