"""When a model server is asked again."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from email.utils import formatdate
from typing import Any, cast

import httpx2
import pytest
import trustme
from backends.web import Page, closed_port, json_page, serving, silent

from yiemagent_nb.backends.http.network_errors import CERTIFICATE, Cause, cause_of
from yiemagent_nb.backends.http.retry import Attempts, RetryPolicy, read_retry_after
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
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
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.server_errors import server_error

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
        ({"x-ratelimit-reset": "30", "x-ratelimit-remaining": "0"}, 30.0),
        ({"x-ratelimit-reset": "30", "x-ratelimit-remaining": "99"}, None),
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
    error = BackendRateLimitedError("x", status=429, retry_after=61.0)
    assert not await Attempts(RetryPolicy(max_delay=60.0), 0).again(error)


def test_limits_that_were_not_reached_say_nothing_of_another_error() -> None:
    headers = {"x-ratelimit-reset": "3600", "x-ratelimit-remaining": "0"}
    assert read_retry_after(headers, 429) == 3600
    assert read_retry_after(headers, 503) is None
    assert read_retry_after({**headers, "retry-after": "7"}, 503) == 7


async def ask(address: str, **options: Any) -> str:
    """What a model says when it is asked by these options."""
    assembler = Assembler()
    async with OpenAICompatible(address, "m", **options) as backend, asyncio.timeout(20):
        async for piece in cast("AsyncIterator[Any]", backend([{"role": "user", "content": "hi"}])):
            assembler.feed(piece)
    return assembler.finish().text


class InTurn(Mapping[str, Page]):
    """Pages that come one after another, whatever is asked."""

    def __init__(self, *pages: Page) -> None:
        self._pages = list(pages)

    def __getitem__(self, path: str) -> Page:
        return self._pages.pop(0)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return len(self._pages)


def event_stream(*events: Any) -> Page:
    return Page("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode(), "text/event-stream")


HELLO = event_stream({"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]})


def limited(wait: str) -> dict[str, Any]:
    return {"error": {"message": f"Rate limit reached. Please try again in {wait}.", "code": "rate_limit_exceeded"}}


def refused(wait: str) -> Page:
    return json_page(limited(wait), 429)


def refused_in_a_stream(wait: str) -> Page:
    return event_stream(limited(wait))


@pytest.mark.parametrize("refusal", [refused, refused_in_a_stream])
async def test_a_wait_that_stands_in_the_body_counts(refusal: Callable[[str], Page]) -> None:
    async with serving(InTurn(refusal("1ms"), HELLO)) as web:
        assert await ask(web.url(), retries=RetryPolicy(first_delay=1000, max_delay=1000)) == "Hello"
    async with serving(InTurn(refusal("3s"), HELLO)) as web:
        with pytest.raises(BackendRateLimitedError) as caught:
            await ask(web.url(), retries=RetryPolicy(first_delay=0, max_delay=2))
        assert caught.value.retry_after == 3
        assert len(web.asked) == 1


async def test_a_failing_server_is_asked_again_whatever_it_says_of_limits() -> None:
    failing = json_page({"error": {"message": "upstream connect error"}}, 503)
    limits = {"x-ratelimit-remaining": "99", "x-ratelimit-reset": str(int(time.time() + 3600))}
    async with serving(InTurn(failing._replace(headers=limits), HELLO)) as web:
        assert await ask(web.url(), retries=RetryPolicy(first_delay=0)) == "Hello"
    async with serving(InTurn(failing._replace(headers={"retry-after": "3600"}), HELLO)) as web:
        with pytest.raises(ServerError) as caught:
            await ask(web.url(), retries=RetryPolicy(first_delay=0))
        assert caught.value.retry_after == 3600
        assert len(web.asked) == 1


async def test_polling_a_server_that_loads_uses_up_no_attempts() -> None:
    loading = json_page({"error": {"message": "Loading model"}}, 503)
    failing = json_page({"error": {"message": "It broke."}}, 500)
    async with serving(InTurn(*[loading] * 8, failing, HELLO)) as web:
        assert await ask(web.url(), retries=RetryPolicy(retries=1, first_delay=0)) == "Hello"
        assert len(web.asked) == 10


async def test_a_server_may_load_for_as_long_as_it_likes() -> None:
    attempts = Attempts(RetryPolicy(first_delay=0.0), float("inf"))
    for _ in range(1100):
        assert await attempts.again(server_error("Loading model", status=503))


async def count_requests(url: str, **options: Any) -> tuple[int, BackendConnectionError]:
    """How often a server is asked that cannot be reached, and with which error that ends."""
    requests: list[httpx2.Request] = []

    async def count(request: httpx2.Request) -> None:
        requests.append(request)

    async with httpx2.AsyncClient(event_hooks={"request": [count]}, timeout=0.5, **options) as client:
        with pytest.raises(BackendConnectionError) as caught:
            await ask(url, http_client=client, retries=RetryPolicy(retries=3, first_delay=0.0))
    return len(requests), caught.value


class TestConnections:
    async def test_a_refused_one_is_tried_once_more(self) -> None:
        count, error = await count_requests(f"http://127.0.0.1:{closed_port()}/v1")
        assert (count, error.cause) == (2, Cause.REFUSED)

    async def test_one_that_takes_too_long_is_tried_once_more(self) -> None:
        async with silent() as web:
            count, error = await count_requests(web.url(scheme="https"))
        assert (count, error.cause) == (2, Cause.SLOW)

    async def test_one_that_is_closed_is_tried_as_often_as_may_be(self) -> None:
        async with silent(b"") as web:
            count, error = await count_requests(web.url())
        assert (count, error.cause) == (4, Cause.CLOSED)

    async def test_tls_where_none_is_spoken_is_tried_once(self) -> None:
        async with silent(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as web:
            count, error = await count_requests(web.url(scheme="https"))
        assert (count, error.cause) == (1, Cause.NO_TLS)

    async def test_an_unknown_certificate_is_tried_once(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.tempfile() as path:
            context.load_cert_chain(path)
        async with serving({"*": HELLO}, context=context) as web:
            count, error = await count_requests(web.url(scheme="https"))
        assert count == 1
        assert cause_of(error) in CERTIFICATE

    async def test_an_unknown_host_is_tried_once(self) -> None:
        count, error = await count_requests("http://no-such-host.invalid/v1")
        assert (count, error.cause) == (1, Cause.UNKNOWN_HOST)
