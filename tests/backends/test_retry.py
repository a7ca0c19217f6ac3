"""When a model server is asked again."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from yiemagent_nb.backends.retry import Attempts, RetryPolicy, read_retry_after
from yiemagent_nb.core.errors import (
    BackendConnectionError,
    BackendError,
    BackendRateLimitedError,
    BackendTimeoutError,
    BadRequestError,
    ContextLengthError,
    QuotaExceededError,
    ServerError,
)

pytestmark = pytest.mark.requirement("Y FR-002")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-tokens": "90ms", "x-ratelimit-reset-requests": "1s"}, 1.0),
        (
            {
                "x-ratelimit-reset-tokens": "90ms",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-requests": "1h",
                "x-ratelimit-remaining-requests": "5",
            },
            0.09,
        ),
        ({}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == pytest.approx(seconds)


def test_a_moment_is_read_as_the_time_until_then() -> None:
    moment = time.time() + 100
    for headers in (
        {"retry-after": formatdate(moment, usegmt=True)},
        {"x-ratelimit-reset": str(int(moment))},
        {"x-ratelimit-reset": str(int(moment * 1000))},
    ):
        assert read_retry_after(headers) == pytest.approx(100, abs=3)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ServerError("x", status=500), True),
        (BackendConnectionError("x"), True),
        (BackendRateLimitedError("x", status=429), True),
        (BackendTimeoutError("x", status=408), True),
        (BackendTimeoutError("x"), False),
        (BadRequestError("x", status=400), False),
        (QuotaExceededError("x", status=429), False),
        (ContextLengthError("x", status=500), False),
    ],
)
async def test_only_what_may_pass_is_tried_again(error: BackendError, again: bool) -> None:
    assert await Attempts(RetryPolicy(first_delay=0.0), 0).again(error) is again
    assert not await Attempts(RetryPolicy(retries=0), 0).again(error)


async def test_a_wait_beyond_the_ceiling_is_not_waited_for() -> None:
    attempts = Attempts(RetryPolicy(max_delay=60.0), 0)
    attempts.retry_after = 61.0
    assert not await attempts.again(BackendRateLimitedError("x", status=429))
