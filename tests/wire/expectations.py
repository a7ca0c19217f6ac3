"""What a case expects, in this package's own terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendError,
    BackendNotFoundError,
    BackendRateLimitedError,
    BackendTimeoutError,
    BadRequestError,
    ContextLengthError,
    MalformedResponseError,
    QuotaExceededError,
    ServerError,
    StreamInterruptedError,
)
from yiemagent_nb.core.messages import AssistantMessage, ToolCall
from yiemagent_nb.core.reading.server_errors import is_retryable

ERRORS: Mapping[str, type[BackendError]] = {
    "context_overflow": ContextLengthError,
    "rate_limited": BackendRateLimitedError,
    "quota_exceeded": QuotaExceededError,
    "auth": AuthenticationError,
    "bad_request": BadRequestError,
    "model_not_found": BackendNotFoundError,
    "model_not_loaded": BackendNotFoundError,
    "tools_unsupported": BadRequestError,
    "needs_responses_api": BadRequestError,
    "overloaded": ServerError,
    "server_error": ServerError,
    "bad_response": MalformedResponseError,
    "stream_interrupted": StreamInterruptedError,
    "timeout": BackendTimeoutError,
}
HINTS: Mapping[str, str] = {
    "model_not_found": "models()",
    "model_not_loaded": "Load a model",
    "tools_unsupported": "tool-call options",
    "needs_responses_api": "Responses API",
}


def check_message(case: Mapping[str, Any], message: AssistantMessage) -> None:
    """Compare a message with what its case expects."""
    expect = case["expect"]
    strip = str.strip if case.get("text_strip") or expect.get("text_strip") else str
    # A refusal is shown as text, in a message that says that it was filtered.
    assert strip(message.text) == strip(expect.get("refusal", expect["text"]))
    assert strip(message.reasoning) == strip(expect["reasoning"])
    stop = {"end_turn": "stop"}.get(message.stop_reason, message.stop_reason)
    assert stop in _any_of(expect["stop_reason"])
    # Only a turn that ended with its calls runs them.
    runs = message.stop_reason == "tool_calls"
    valid = [call for call in message.tool_calls if call.raw_arguments is None and runs]
    broken = [call for call in message.tool_calls if call.raw_arguments is not None]
    assert len(valid) == len(expect["tool_calls"])
    for call, wanted in zip(valid, expect["tool_calls"], strict=True):
        _check_call(call, wanted)
    for call, wanted in zip(broken, expect.get("invalid_tool_calls", []), strict=True):
        assert (call.name, call.raw_arguments, call.arguments) == (wanted["name"], wanted["raw"], {})
        assert call.id == wanted.get("id", call.id)
    ids = [call.id for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    _check_usage(expect["usage"], message)
    if "empty_response" in expect.get("warnings", ()):
        assert "empty" in (message.error_message or "")
        assert f"{expect['usage']['input']:,}" in (message.error_message or "")


def _check_call(call: ToolCall, wanted: Mapping[str, Any]) -> None:
    assert call.name == wanted["name"]
    assert call.id == wanted.get("id", call.id)
    if "arguments" in wanted:
        assert call.arguments == wanted["arguments"]
    for name, length in wanted.get("arguments_len", {}).items():
        assert len(call.arguments[name]) == length


def _check_usage(wanted: Mapping[str, int] | None, message: AssistantMessage) -> None:
    usage = message.usage
    if wanted is None:
        assert usage is None
        return
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (wanted["input"], wanted["output"])
    assert usage.cache_read_tokens == wanted.get("cached", 0)
    assert usage.reasoning_tokens == wanted.get("reasoning", 0)


def check_error(case: Mapping[str, Any], error: BackendError | None) -> None:
    """Compare an error, or its absence, with what its case expects."""
    expect = case["expect"]
    codes = _any_of(expect.get("error_code"))
    if not codes:
        assert error is None
        return
    assert error is not None
    assert isinstance(error, tuple(ERRORS[code] for code in codes))
    assert all(HINTS.get(code, "") in error.hint for code in codes)
    if "retryable" in expect:
        assert is_retryable(error) is expect["retryable"]
    if "retry_after_s" in expect:
        assert isinstance(error, BackendRateLimitedError)
        assert error.retry_after == expect["retry_after_s"]
    if "message_max_len" in expect:
        assert len(str(error)) <= expect["message_max_len"]
    for secret in _any_of(expect.get("message_must_not_contain")):
        assert secret not in str(error)


def _any_of(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return cast("list[Any]", value) if isinstance(value, list) else (value,)
