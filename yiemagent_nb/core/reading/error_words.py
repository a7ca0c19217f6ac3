"""What stands in a server's error, whatever its form: the words, the codes, the status, the wait.

Forms: OpenAI's ``error`` object, a bare string, FastAPI's and RFC 9457's ``detail``, lists of errors
(Google, Cloudflare), an error in the text of another one (gateways), and OpenRouter's ``metadata.raw``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

__all__ = ["ErrorWords", "error_body", "plain_text", "read_error"]

_MAX_DEPTH = 9
_MAX_ERRORS = 5
"""So many errors of a list are read."""
_MAX_LABEL = 100

_WORD_KEYS = (
    *("message", "error", "errors", "detail", "msg", "error_message", "error_msg", "errorMessage", "status_msg"),
    *("title", "metadata", "raw", "response", "innererror", "inner_error"),
)
_LABEL_KEYS = ("code", "type", "status", "reason", "error_code", "error_type")
_STATUS_KEYS = ("code", "status", "status_code", "statusCode", "http_code")
_WAIT_KEYS = ("retryDelay", "retry_after", "retry_after_seconds", "resets_in_seconds")
_FAILED = ("error", "response.failed", "response.error")
_ANSWER_KEYS = ("output", "content", "message", "response", "tool_calls")
_FINE = (None, "", 0, 200, "0", "200", "success")

_FIRST_ERROR, _LAST_ERROR = 400, 599
_WAIT = re.compile(r"(?:try again|retry|reset\w*)[^.]{0,20}? (?:in|after) ((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*)+)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_LONGEST_WAIT = 1e9
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(slots=True)
class ErrorWords:
    """What an error says.

    ``labels`` are its codes and types, ``param`` is the field of the request that it names, ``status``
    the first HTTP status, ``wait`` the seconds to wait; the last two are None where it does not say.
    """

    messages: list[str] = field(default_factory=list[str])
    labels: list[str] = field(default_factory=list[str])
    param: str = ""
    status: int | None = None
    wait: float | None = None

    @property
    def text(self) -> str:
        """The messages, from the outermost to the innermost, none of them twice."""
        kept: list[str] = []
        for message in self.messages:
            if not any(message in other for other in kept):
                kept.append(message)
        return ": ".join(kept)


def plain_text(text: str) -> str:
    """The title of a web page, else its text without markup; other text as it is."""
    title = _TITLE.search(text)
    return " ".join((title[1] if title else _MARKUP.sub(" ", text)).split())


def error_body(value: object) -> object:
    """What stands in ``value`` as an error, or None where it is none.

    An error is a non-empty ``error``; an object whose ``type`` or ``object`` is ``error``; a failed
    response of the Responses API; a ``detail``, or a message beside a code, without an answer; a
    ``base_resp`` whose code is not 0 (MiniMax); or a list that begins with one of these (Google).
    """
    if isinstance(value, list) and value:
        value = cast("list[object]", value)[0]
    if not isinstance(value, Mapping):
        return None
    fields = cast("Mapping[str, Any]", value)
    if error := fields.get("error"):
        return error if fields.keys().isdisjoint(_STATUS_KEYS) else fields
    kind = fields.get("type")
    if isinstance(kind, str) and kind.startswith(("response.", "error")):
        return fields if kind in _FAILED else None
    if not fields.get("choices"):
        return _flat_error(fields)
    return None


def _flat_error(fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An error without an ``error`` around it."""
    base = fields.get("base_resp")
    if isinstance(base, Mapping) and cast("Mapping[str, Any]", base).get("status_code") not in _FINE:
        return cast("Mapping[str, Any]", base)
    if any(isinstance(fields.get(key), (list, Mapping)) for key in _ANSWER_KEYS):
        return None
    said = any(isinstance(fields.get(key), str) for key in ("message", "msg")) or bool(fields.get("errors"))
    failed = fields.get("success") is False or fields.get("code") not in _FINE
    is_error = fields.get("object") == "error" or fields.get("detail") or (failed and said)
    return fields if is_error else None


def read_error(body: object) -> ErrorWords:
    """Read an error of any form, a text or the JSON around it. It never raises."""
    words = ErrorWords()
    _collect(body, words, _MAX_DEPTH)
    if not words.messages and body:
        failed = isinstance(body, Mapping) and cast("Mapping[str, Any]", body).get("type") in _FAILED
        words.messages.append("the response failed" if failed else str(cast("object", body)))
    if words.wait is None and (stated := _WAIT.search(words.text[:2000].lower())) is not None:
        words.wait = _seconds(stated[1])
    return words


def _collect(value: object, words: ErrorWords, depth: int) -> None:
    if not depth or not value:
        return
    if isinstance(value, str):
        inner = _json_in(value)
        if inner is None:
            words.messages.append(value.strip())
        else:
            _collect(inner, words, depth - 1)
    elif isinstance(value, Mapping):
        _collect_fields(cast("Mapping[str, Any]", value), words, depth)
    elif isinstance(value, Sequence):
        for each in cast("Sequence[object]", value)[:_MAX_ERRORS]:
            _collect(each, words, depth - 1)


def _collect_fields(fields: Mapping[str, Any], words: ErrorWords, depth: int) -> None:
    for key in _LABEL_KEYS:
        label = fields.get(key)
        if isinstance(label, str | int) and not isinstance(label, bool):
            words.labels.append(str(label)[:_MAX_LABEL])
    if isinstance(param := fields.get("param"), str):
        words.param = words.param or param[:_MAX_LABEL]
    for key in _STATUS_KEYS:
        code = str(fields.get(key))
        if words.status is None and code.isdecimal() and _FIRST_ERROR <= int(code[:4]) <= _LAST_ERROR:
            words.status = int(code[:4])
    details = fields.get("details")
    _read_wait([fields, *(cast("list[object]", details) if isinstance(details, list) else [])], words)
    place = fields.get("loc")
    if isinstance(place, list | tuple) and isinstance(message := fields.get("msg"), str):
        words.messages.append(f"{'.'.join(map(str, cast('Sequence[object]', place)))}: {message}")
        return
    for key in _WORD_KEYS:
        _collect(fields.get(key), words, depth - 1)


def _read_wait(places: Iterable[object], words: ErrorWords) -> None:
    for place in places:
        for key in _WAIT_KEYS if isinstance(place, Mapping) else ():
            value = cast("Mapping[str, Any]", place).get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LONGEST_WAIT:
                words.wait = float(value)
            elif isinstance(value, str) and (seconds := _seconds(value.lower())) is not None:
                words.wait = seconds


def _seconds(text: str) -> float | None:
    """``1m30s``, ``7.5 seconds``, ``250ms``."""
    parts = _DURATION.findall(re.sub(r"(?<=[a-z])(?=\d)", " ", text))
    if not parts:
        return None
    return sum(float(number) * _SECONDS["ms" if unit.startswith(("ms", "mil")) else unit[0]] for number, unit in parts)


def _json_in(text: str) -> object:
    """The JSON that a text is, where it is an object or a list; gateways wrap errors so."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
