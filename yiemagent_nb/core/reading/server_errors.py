"""What a server's error says: one typed error for each kind, with the server's own words."""

from __future__ import annotations

import re

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
from yiemagent_nb.core.reading.error_words import error_body, read_error

__all__ = ["MAX_WORDS", "error_body", "is_loading", "is_retryable", "quote", "server_error"]

MAX_WORDS = 300
"""How many characters of a server's own words an error repeats."""

_KEY = re.compile(r"(?i)\b(sk|pk|rk|key|hf|gsk|xai|nvapi)[-_][\w-]{8,}|(?<=bearer )\S{8,}")

_OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size|limit)|max(imum)? context|max_model_len|n_ctx|n_keep|exceed_context"
    r"|maximum (prompt|input) length|range of input length|only supports up to|must have less than \d+ tokens"
    r"|(prompt|input)( is)? too (long|large)|too many (input )?tokens|reduce the length"
    r"|more than max tokens allowed|max_new_tokens` must be|model token limit"
    r"|(prompt|input|request)[^.]{0,60}(exceed(s|ed|ing)?|longer than)[^.]{0,60}(tokens?|model|maximum|the limit of)"
)
_PER_TIME = re.compile(
    r"per[ _-]?(second|sec|minute|min|hour|day)\b|\b[tr]p[mdh]\b|throttl"
    r"|rate[ _-]?limit(ed|[ _](exceeded|error|reached))"
)
_QUOTA = re.compile(
    r"insufficient[ _]?(quota|credit|balance|funds)|billing[ _](hard[ _]limit|not[ _]active)|out of credits"
    r"|balance is too low|requires more credits|余额不足"
)
_MAYBE_QUOTA = re.compile(r"exceeded your current quota|billing details")
"""What some servers say of limits per minute too."""
_RATE = re.compile(r"rate[ _-]?limit|too many requests|slow down|throttl|resource[_ ]exhausted")
_AUTH = re.compile(
    r"unauthori[sz]ed|invalid[ _]api[ _]key|incorrect api key|authentication|permission[ _]denied|forbidden"
)
_BAD_KEY = re.compile(
    r"(invalid|incorrect|missing)[ _]api[ _]?key|api[ _]?key\b.{0,20}(not valid|invalid|missing|expired)"
)
_NOT_LOADED = re.compile(
    r"no models? (is |are )?(currently )?loaded|model (is )?not loaded|load a model|failed to load (the )?model"
)
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]found|model\b.{0,80}\b(not found|does not exist|not exist)|unknown model|no such model"
    r"|(not a valid|invalid) model( id| name|\b)|no endpoints found for"
)
_NO_PATH = re.compile(r"unexpected endpoint|invalid url|(unknown|no such) (endpoint|route|path)|cannot (post|get) /")
_NO_TOOLS = re.compile(
    r"enable-auto-tool-choice|tool-call-parser|support tool use"
    r"|(does not|doesn't|do not) support (\w+ )?(tools?|functions?)\b"
    r"|(tools?|functions?)[ _](use|call(s|ing)) (is|are) not"
    r"|tools? .{0,30}requires? --jinja"
)
_NO_IMAGES = re.compile(
    r"(image|vision|multimodal)( input|_url)?s? (is|are) not supported"
    r"|(does not|doesn't|do not) support (image|vision|multimodal)"
)
_RESPONSES = re.compile(r"(use|in|via|with|through|to) (the )?(\W?v1/responses|/responses\b|responses (api|endpoint))")
_LOADING = re.compile(r"(?<!error )(?<!failed )loading model|(currently|still) loading|model is loading")
_OVERLOADED = re.compile(r"overload|loading|temporarily unavailable|at capacity|unavailable_error")
_REFUSED = re.compile(
    r"invalid[ _-]?(request|argument|prompt)|bad ?request|unsupported|not supported|validation|invalid[ _]param"
)

_TOOLS_HINT = "Start the server with its tool-call options, choose a model with tools, or set text_tool_calls=True."

_HTTP_AUTH = frozenset({401, 403})
_HTTP_RATE = frozenset({None, 400, 403, 503})
_BAD_REQUEST, _PAYMENT, _NOT_FOUND, _REQUEST_TIMEOUT, _TOO_LARGE = 400, 402, 404, 408, 413
_TOO_MANY, _SERVER = 429, 500
_RETRYABLE = frozenset({408, 409, 425, 429})
_PASSING = (BackendRateLimitedError, BackendConnectionError, BackendTimeoutError, StreamInterruptedError)


def quote(words: str, limit: int = MAX_WORDS) -> str:
    """A server's words on one line, cut to ``limit`` characters, without anything like a key."""
    line = " ".join(_KEY.sub("[key]", words[: 20 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _kind(status: int | None, text: str, wait: float | None) -> tuple[type[BackendError], str]:
    """The class of an error, and what to do about it; the first row that fits."""
    unknown = status is None
    refused = status is not None and _BAD_REQUEST <= status < _SERVER and status not in _RETRYABLE
    # Limits per minute speak of tokens, quotas and billing too, but pass.
    passing = status != _TOO_LARGE and _PER_TIME.search(text) is not None
    quota = _QUOTA.search(text) or (_MAYBE_QUOTA.search(text) and not passing and wait is None)
    rows: tuple[tuple[object, type[BackendError], str], ...] = (
        (quota or status == _PAYMENT, QuotaExceededError, "Check the account's plan and billing first."),
        (
            status == _TOO_LARGE or (_OVERFLOW.search(text) and not passing),
            ContextLengthError,
            "Shorten the conversation, or load the model with more context.",
        ),
        (
            status == _TOO_MANY or (unknown and _RATE.search(text)) or (passing and status in _HTTP_RATE),
            BackendRateLimitedError,
            "Wait, then ask again.",
        ),
        (
            status in _HTTP_AUTH or _BAD_KEY.search(text) or (unknown and _AUTH.search(text)),
            AuthenticationError,
            "Check the API key.",
        ),
        (_RESPONSES.search(text), BadRequestError, "Use the Responses API for this model, or turn thinking off."),
        (_NO_TOOLS.search(text), BadRequestError, _TOOLS_HINT),
        (_NO_IMAGES.search(text), BadRequestError, "Choose a model that sees images, or leave them out."),
        (_NOT_LOADED.search(text), BackendNotFoundError, "Load a model on the server first."),
        (_NO_MODEL.search(text), BackendNotFoundError, "Ask `await backend.models()` for the names it serves."),
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
        status: The HTTP status; where it is missing or a success, one that ``body`` names counts.
        retry_after: How many seconds the server asks to wait; None takes what ``body`` says of it.

    Returns:
        The error, to be raised by the caller. Its message repeats the server's words, cut to
        ``MAX_WORDS`` and without keys; its hint says what to do.
    """
    words = read_error(body)
    if status is None or status < _BAD_REQUEST:
        status = words.status
    quoted = quote(words.text).rstrip(".")
    said = f'The server said{f" (status {status})" if status else ""}: "{quoted}".'
    kind, hint = _kind(status, " ".join([words.text[:4000], *words.labels]).lower(), words.wait)
    wait = words.wait if retry_after is None else retry_after
    if kind is BackendRateLimitedError and wait is not None:
        hint = f"Wait {wait:g} seconds, then ask again."
    error = kind(said, hint, status)
    error.retry_after, error.words = wait, quoted
    error.param, error.labels = words.param, tuple(words.labels)
    return error


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
