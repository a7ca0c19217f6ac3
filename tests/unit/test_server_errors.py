"""What servers say when they fail, as typed errors."""

from __future__ import annotations

from typing import Any

import pytest

from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendError,
    BackendNotFoundError,
    BackendRateLimitedError,
    BackendTimeoutError,
    BadRequestError,
    ContextLengthError,
    QuotaExceededError,
    ServerError,
)
from yiemagent_nb.core.reading.server_errors import (
    MAX_WORDS,
    error_body,
    is_loading,
    is_retryable,
    quote,
    server_error,
)

pytestmark = pytest.mark.requirement("Y FR-002", "A SPEC-7.2")


@pytest.mark.parametrize(
    ("body", "status", "error", "retryable"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 400, ContextLengthError, False),
        ("This model's maximum context length is 4096 tokens", 400, ContextLengthError, False),
        ("This model's maximum context length is 4096 tokens", 429, ContextLengthError, False),
        ("context size exceeded", 500, ContextLengthError, False),
        ("Payload Too Large", 413, ContextLengthError, False),
        ("Insufficient credits", 402, QuotaExceededError, False),
        ("You exceeded your current quota", 429, QuotaExceededError, False),
        ("slow down", 429, BackendRateLimitedError, True),
        ({"message": "Rate limit reached", "code": "rate_limit_exceeded"}, None, BackendRateLimitedError, True),
        ("nope", 401, AuthenticationError, False),
        ("nope", 403, AuthenticationError, False),
        ("API key not valid. Please pass a valid API key.", 400, AuthenticationError, False),
        ("registry.ollama.ai/x does not support tools", 400, BadRequestError, False),
        ("No endpoints found that support tool use", 404, BadRequestError, False),
        ("tools param requires --jinja flag", 500, BadRequestError, False),
        ("No models loaded", 404, BackendNotFoundError, False),
        ("The model `x` does not exist.", 404, BackendNotFoundError, False),
        ("Unexpected endpoint or method. (POST /chat/completions)", None, BackendNotFoundError, False),
        ("Not Found", 404, BackendNotFoundError, False),
        (
            {"detail": [{"loc": ["body", "model"], "msg": "field required", "type": "extra_forbidden"}]},
            422,
            BadRequestError,
            False,
        ),
        ("nope", 400, BadRequestError, False),
        ("late", 408, BackendTimeoutError, True),
        ("conflict", 409, ServerError, True),
        ("busy", 503, ServerError, True),
        ("overloaded", 529, ServerError, True),
        ({"message": "Provider disconnected", "code": 502}, None, ServerError, True),
        ({"message": "bad", "code": 400}, 200, BadRequestError, False),
        ({"error": {"error": {"message": "deep", "code": 401}}}, None, AuthenticationError, False),
        ({}, 500, ServerError, True),
        ("", 500, ServerError, True),
        ("Range of input length should be [1, 30720]", 400, ContextLengthError, False),
        (
            "The input token count (1100000) exceeds the maximum number of tokens allowed",
            400,
            ContextLengthError,
            False,
        ),
        ("request (9000 tokens) exceeds the available context size (8192 tokens)", 400, ContextLengthError, False),
        ("`inputs` must have less than 4096 tokens. Given: 5000", 422, ContextLengthError, False),
        ("tokens to keep from the initial prompt is greater than the context length", 400, ContextLengthError, False),
        ({"error": {"type": "exceed_context_size_error", "message": "too big"}}, 400, ContextLengthError, False),
        ("Rate limit: too many tokens per minute (TPM) for your context size", 429, BackendRateLimitedError, True),
        ("ThrottlingException: too many tokens, please wait", 400, BackendRateLimitedError, True),
        ("You exceeded your current quota. Please retry in 5.5s.", 429, BackendRateLimitedError, True),
        ("Your credit balance is too low to access the API", 400, QuotaExceededError, False),
        ({"error": {"code": "insufficient_quota", "message": "no"}}, 429, QuotaExceededError, False),
        ({"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}, 429, QuotaExceededError, False),
        ("This model is only supported in v1/responses", 404, BadRequestError, False),
        (
            [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "wait"}}],
            None,
            BackendRateLimitedError,
            True,
        ),
        ({"error": '{"error":{"message":"maximum context length is 10","code":400}}'}, None, ContextLengthError, False),
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": '{"error":{"message":"prompt is too long"}}'},
                }
            },
            400,
            ContextLengthError,
            False,
        ),
        ({"status_code": 1008, "status_msg": "insufficient balance"}, None, QuotaExceededError, False),
    ],
)
def test_an_error_has_its_kind_and_the_servers_words(
    body: Any, status: int | None, error: type[BackendError], retryable: bool
) -> None:
    found = server_error(body, status=status)
    assert type(found) is error
    assert is_retryable(found) is retryable
    assert found.hint
    words = body if isinstance(body, str) else ""
    assert words.rstrip(".") in found.message


def test_a_wait_that_the_server_asks_for_is_told() -> None:
    error = server_error("slow down", status=429, retry_after=7.0)
    assert isinstance(error, BackendRateLimitedError)
    assert error.retry_after == 7.0
    assert "7 seconds" in error.hint


@pytest.mark.parametrize(
    ("body", "wait"),
    [
        ({"error": {"message": "quota", "details": [{"retryDelay": "34.5s"}]}}, 34.5),
        ("Rate limit reached. Please try again in 1m30s.", 90.0),
        ("Rate limit reached. Please try again in 250ms.", 0.25),
        ("Rate limit reached, try again in 1 hour 2 minutes", 3720.0),
        ({"message": "busy", "retry_after_seconds": 4}, 4.0),
        ("Too many requests, retry after 12 seconds", 12.0),
        ("Rate limit reached. Try again in a while.", None),
        ({"message": "busy", "retry_after": -3}, None),
        ({"message": "busy", "retry_after": True}, None),
    ],
)
def test_a_wait_that_stands_in_the_words_is_told(body: Any, wait: float | None) -> None:
    error = server_error(body, status=429)
    assert isinstance(error, BackendRateLimitedError)
    assert error.retry_after == wait
    stated = server_error(body, status=429, retry_after=1.0)
    assert isinstance(stated, BackendRateLimitedError)
    assert stated.retry_after == 1.0


@pytest.mark.parametrize(
    "value",
    [
        {"error": "no"},
        {"error": {"message": "no"}, "choices": []},
        [{"error": {"message": "no"}}],
        {"object": "error", "message": "no", "code": 400},
        {"type": "error", "error": {"message": "no"}},
        {"type": "error", "code": "x", "message": "no"},
        {"type": "response.failed", "response": {"error": {"message": "no"}}},
        {"detail": "Not Found"},
        {"detail": [{"loc": ["body"], "msg": "no"}]},
        {"code": 40001, "message": "no"},
        {"success": False, "errors": [{"message": "no"}]},
        {"base_resp": {"status_code": 1008, "status_msg": "no"}, "choices": None},
    ],
)
def test_an_error_is_known_in_any_form(value: object) -> None:
    assert error_body(value) is not None


NO_ERRORS: list[Any] = [
    None,
    3,
    "error",
    [],
    [1],
    {},
    {"error": None},
    {"error": {}, "choices": [{}]},
    {"choices": [{"delta": {"content": "x"}}], "detail": "d"},
    {"type": "response.output_text.delta", "delta": "error"},
    {"type": "response.completed", "response": {"error": None}},
    {"message": {"content": "x"}, "code": 0},
    {"code": 0, "message": "success"},
    {"output": [], "error": None, "status": "completed"},
    {"base_resp": {"status_code": 0, "status_msg": ""}, "choices": [{}]},
]


@pytest.mark.parametrize("value", NO_ERRORS)
def test_what_is_no_error_is_none(value: object) -> None:
    assert error_body(value) is None


def test_words_in_words_are_said_once() -> None:
    inner = '{"error":{"message":"prompt is too long","code":400}}'
    said = server_error({"error": {"message": inner, "metadata": {"raw": inner}}}).message
    assert said.count("prompt is too long") == 1


def test_endless_errors_are_read_to_an_end() -> None:
    body: dict[str, Any] = {}
    body["error"] = body
    assert isinstance(server_error(body, status=500), ServerError)


def test_words_are_cut_and_keys_left_out() -> None:
    said = "Incorrect API key provided: sk-proj-abcdef0123456789. " + "x" * 5000
    error = server_error(said, status=401)
    assert "sk-proj" not in str(error)
    assert len(error.message) < MAX_WORDS + 60
    assert quote("Bearer abcdefgh12345") == "Bearer [key]"
    assert quote("a\n  b") == "a b"


def test_a_server_that_loads_its_model_is_told_from_one_that_fails() -> None:
    assert is_loading(server_error({"message": "Loading model", "code": 503}))
    assert is_loading(server_error("Model x is currently loading", status=503))
    assert not is_loading(server_error("Internal error", status=500))
