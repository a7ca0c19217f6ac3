"""What a server's error says: one typed error for each kind, with the server's own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendConnectionError,
    BackendError,
    BackendNotFoundError,
    BackendRateLimitedError,
    BackendTimeoutError,
    BadRequestError,
    ContextLengthError,
    QuotaExceededError,
    ServerError,
    StreamInterruptedError,
)

__all__ = ["MAX_WORDS", "error_body", "is_loading", "is_retryable", "quote", "server_error"]

MAX_WORDS = 300
"""How many characters of a server's own words an error repeats."""

_KEY = re.compile(r"(?i)\b(sk|pk|rk|key|hf|gsk|xai|nvapi)[-_][\w-]{8,}|(?<=bearer )\S{8,}")

_MESSAGE_KEYS = ("message", "detail", "msg", "error_message", "title")
_OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size|limit)|maximum context|max_model_len|n_ctx|n_keep"
    r"|prompt is too long|input is too long|too many (input )?tokens|reduce the length|exceed_context"
    r"|(prompt|input|request)[^.]{0,60}(exceeds|longer than)[^.]{0,60}(tokens?|model|maximum)"
)
_QUOTA = re.compile(r"insufficient[ _]?(quota|credit|balance|funds)|exceeded your current quota|billing|out of credits")
_RATE = re.compile(r"rate[ _-]?limit|too many requests|slow down")
_AUTH = re.compile(
    r"unauthori[sz]ed|invalid[ _]api[ _]key|incorrect api key|authentication|permission[ _]denied|forbidden"
)
_BAD_KEY = re.compile(
    r"(invalid|incorrect|missing)[ _]api[ _]?key|api[ _]?key\b.{0,20}(not valid|invalid|missing|expired)"
)
_NOT_LOADED = re.compile(r"no models? (is |are )?(currently )?loaded|model (is )?not loaded|load a model")
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]found|model\b.{0,80}\b(not found|does not exist|not exist)|unknown model|no such model"
)
_NO_PATH = re.compile(r"unexpected endpoint|(unknown|no such) (endpoint|route|path)|cannot (post|get) /")
_NO_TOOLS = re.compile(
    r"enable-auto-tool-choice|tool-call-parser|(does not|doesn't) support (tools|functions)|support tool use"
    r"|tools? .{0,30}requires? --jinja"
)
_RESPONSES = re.compile(r"/v1/responses|use the responses api")
_LOADING = re.compile(r"loading model|(currently|still) loading|model is loading")
_OVERLOADED = re.compile(r"overload|loading|temporarily unavailable|at capacity|unavailable_error")
_REFUSED = re.compile(r"invalid[ _]?request|bad ?request|unsupported|not supported|validation|invalid[ _]param")

_TOOLS_HINT = "Start the server with its tool-call options, choose a model with tools, or set text_tool_calls=True."

_HTTP_AUTH = frozenset({401, 403})
_BAD_REQUEST, _PAYMENT, _NOT_FOUND, _REQUEST_TIMEOUT, _TOO_LARGE = 400, 402, 404, 408, 413
_TOO_MANY, _SERVER, _NO_STATUS = 429, 500, 600
_RETRYABLE = frozenset({408, 409, 425, 429})
_PASSING = (BackendRateLimitedError, BackendConnectionError, BackendTimeoutError, StreamInterruptedError)


def quote(words: str, limit: int = MAX_WORDS) -> str:
    """A server's words on one line, cut to ``limit`` characters, without anything like a key."""
    line = " ".join(_KEY.sub("[key]", words[: 20 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def error_body(value: Mapping[str, Any]) -> object:
    """What stands in ``value`` as an error, or None where it is none.

    An error is a non-empty ``error``; an object whose ``type`` or ``object`` is ``error``; or a
    failed response of the Responses API.
    """
    error: object = value.get("error")
    if error:
        return error
    if value.get("object") == "error" or value.get("type") == "error":
        return value
    if value.get("type") == "response.failed":
        response: object = value.get("response")
        error = cast("Mapping[str, Any]", response).get("error") if isinstance(response, Mapping) else None
        return error or "the response failed"
    return None


def _words(body: object) -> tuple[str, str, str]:
    """The message of an error, its code and its type."""
    if isinstance(body, Mapping):
        fields = cast("Mapping[str, Any]", body)
        inner = fields.get("error")
        if inner and (isinstance(inner, str) or not fields.get("message")):
            return _words(inner)
        message = next((str(fields[key]) for key in _MESSAGE_KEYS if fields.get(key)), "")
        code, kind = fields.get("code"), fields.get("type")
        return message or str(dict(fields)), "" if code is None else str(code), "" if kind is None else str(kind)
    return str(body), "", ""


def _kind(status: int | None, text: str) -> tuple[type[BackendError], str]:
    """The class of an error, and what to do about it; the first row that fits."""
    unknown = status is None
    refused = status is not None and _BAD_REQUEST <= status < _SERVER and status not in _RETRYABLE
    rows: tuple[tuple[object, type[BackendError], str], ...] = (
        (_QUOTA.search(text) or status == _PAYMENT, QuotaExceededError, "Check the account's plan and billing first."),
        (
            _OVERFLOW.search(text) or status == _TOO_LARGE,
            ContextLengthError,
            "Shorten the conversation, or load the model with more context.",
        ),
        (status == _TOO_MANY or (unknown and _RATE.search(text)), BackendRateLimitedError, "Wait, then ask again."),
        (
            status in _HTTP_AUTH or _BAD_KEY.search(text) or (unknown and _AUTH.search(text)),
            AuthenticationError,
            "Check the API key.",
        ),
        (_NO_TOOLS.search(text), BadRequestError, _TOOLS_HINT),
        (_NOT_LOADED.search(text), BackendNotFoundError, "Load a model on the server first."),
        (_NO_MODEL.search(text), BackendNotFoundError, "Ask `await backend.models()` for the names it serves."),
        (_RESPONSES.search(text), BadRequestError, "Use the Responses API for this model, or turn thinking off."),
        (
            status == _NOT_FOUND or _NO_PATH.search(text),
            BackendNotFoundError,
            "Check the base URL (it usually ends in /v1) and the model's name.",
        ),
        (status == _REQUEST_TIMEOUT, BackendTimeoutError, "Ask again."),
        (refused or (unknown and _REFUSED.search(text)), BadRequestError, "Change what it names, then ask again."),
        (_OVERLOADED.search(text), ServerError, "It is overloaded or still loading: ask again in a while."),
    )
    found = next(((error, hint) for fits, error, hint in rows if fits), None)
    return found or (ServerError, "Ask again; if it stays, look at the server's log.")


def server_error(body: object, *, status: int | None = None, retry_after: float | None = None) -> BackendError:
    """The typed error for what a server said.

    Args:
        body: The error: text, OpenAI's error object, or the whole body around it.
        status: The HTTP status; where it is missing or a success, a numeric code in ``body`` counts.
        retry_after: How many seconds the server asks to wait.

    Returns:
        The error, to be raised by the caller. Its message repeats the server's words, cut to
        ``MAX_WORDS`` and without keys; its hint says what to do.
    """
    message, code, kind = _words(body)
    if status is not None and status < _BAD_REQUEST:
        status = None
    if status is None and code.isdigit() and _BAD_REQUEST <= int(code) < _NO_STATUS:
        status = int(code)
    said = f'The server said{f" (status {status})" if status else ""}: "{quote(message)}".'
    error, hint = _kind(status, f"{message[:4000]} {code} {kind}".lower())
    if error is BackendRateLimitedError:
        hint = hint if retry_after is None else f"Wait {retry_after:g} seconds, then ask again."
        return BackendRateLimitedError(said, hint, status, retry_after)
    return error(said, hint, status)


def is_loading(error: BackendError) -> bool:
    """Whether a server says that it is still loading its model."""
    return isinstance(error, ServerError) and _LOADING.search(error.message.lower()) is not None


def is_retryable(error: BackendError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, QuotaExceededError | ContextLengthError):
        return False
    if isinstance(error, _PASSING):
        return True
    if isinstance(error, ServerError):
        return error.status is None or error.status >= _SERVER or error.status in _RETRYABLE
    return error.status in _RETRYABLE
