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
from yiemagent_nb.core.reading.server_errors import MAX_WORDS, is_loading, is_retryable, quote, server_error

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
    assert words in found.message


def test_a_wait_that_the_server_asks_for_is_told() -> None:
    error = server_error("slow down", status=429, retry_after=7.0)
    assert isinstance(error, BackendRateLimitedError)
    assert error.retry_after == 7.0
    assert "7 seconds" in error.hint


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
