"""Every wire case through the backend, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from itertools import pairwise
from typing import Any, cast

import pytest
from wire.case_server import CaseServer, bytes_of, load_cases
from wire.expectations import check_error, check_message

from yiemagent_nb.backends.http.connection import Timeouts
from yiemagent_nb.backends.http.retry import RetryPolicy
from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.core.errors import BackendError
from yiemagent_nb.core.messages import AssistantMessage
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.blocks import Delta
from yiemagent_nb.core.reading.extract import extract

pytestmark = pytest.mark.requirement("Y SP-017", "Y SP-018", "Y FR-002", "Y US-005", "Y SD-009", "Y P-003")

MESSAGES = [{"role": "user", "content": "How is the weather?"}]
SHORT = 8_000
SECOND = 1 / 5
"""The seconds that a case asks the client to wait for bytes, made shorter."""


def by_id(case: Mapping[str, Any]) -> str:
    return case["id"]


def tools_of(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}, "query": {"type": "string"}}}
    return [
        {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters}}
        for name in case["tools"]
    ]


async def play(
    case: Mapping[str, Any], server: CaseServer, *, stream: bool
) -> tuple[AssistantMessage, BackendError | None]:
    options = case.get("options", {})
    silence = options["read_timeout_s"] * SECOND if "read_timeout_s" in options else 5.0
    backend = OpenAICompatible(
        server.base_url,
        "m-1",
        api_key="sk-wire-test-0123456789",
        timeout=Timeouts(between_bytes=silence),
        retries=RetryPolicy(retries=2, first_delay=0.01),
        text_tool_calls=options.get("text_tool_fallback", False),
        api="responses" if case.get("endpoint") == "responses" else "chat-completions",
    )
    assembler = Assembler(tool_names=case["tools"])
    deltas: list[Delta] = []
    async with backend:
        response = backend(MESSAGES, tools=tools_of(case), stream=stream)
        try:
            if not stream:
                whole = await cast("Any", response)
                return extract(whole, tool_names=case["tools"]), None
            async for piece in cast("AsyncIterator[Any]", response):
                deltas += assembler.feed(piece)
            message = assembler.finish()
        except BackendError as error:
            return assembler.partial("error", str(error)), error
    check_deltas(deltas, message)
    return message, None


def check_deltas(deltas: list[Delta], message: AssistantMessage) -> None:
    """What was told piece by piece is what the message holds, and offsets have no gaps."""
    told: dict[int, str] = {}
    for delta in deltas:
        assert delta.offset == len(told.get(delta.block, ""))
        told[delta.block] = told.get(delta.block, "") + delta.text
    kinds = {delta.block: delta.kind for delta in deltas}
    assert "".join(text for block, text in told.items() if kinds[block] == "text") == message.text
    assert "".join(text for block, text in told.items() if kinds[block] == "reasoning") == message.reasoning
    names = {delta.block: delta.tool_name for delta in deltas if delta.kind == "tool_call"}
    assert list(names.values()) == [call.name for call in message.tool_calls]


def check(case: Mapping[str, Any], server: CaseServer, message: AssistantMessage, error: BackendError | None) -> None:
    check_error(case, error)
    check_message(case, message)
    expect = case["expect"]
    assert len(server.requests) == expect.get("requests", len(server.requests))
    if "min_wait_ms" in expect:
        waits = [later.moment - earlier.moment for earlier, later in pairwise(server.requests)]
        assert sum(waits) * 1000 >= expect["min_wait_ms"]
    assert error is None or "sk-wire-test" not in str(error)


@pytest.mark.parametrize("case", load_cases(), ids=by_id)
async def test_case_is_read_as_expected(case: Mapping[str, Any]) -> None:
    async with CaseServer(case) as server:
        message, error = await play(case, server, stream=case["kind"].startswith("stream"))
        check(case, server, message, error)


@pytest.mark.parametrize("case", load_cases("error"), ids=by_id)
async def test_error_is_the_same_where_a_stream_was_asked_for(case: Mapping[str, Any]) -> None:
    async with CaseServer(case) as server:
        message, error = await play(case, server, stream=True)
        check(case, server, message, error)


@pytest.mark.parametrize("case", [case for case in load_cases("stream") if len(bytes_of(case)) < SHORT], ids=by_id)
async def test_case_is_the_same_whatever_the_writes_of_the_server(case: Mapping[str, Any]) -> None:
    async with CaseServer(case, seed=len(case["id"])) as server:
        message, error = await play(case, server, stream=True)
        check(case, server, message, error)
