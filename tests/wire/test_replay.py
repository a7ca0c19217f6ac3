"""What a server sent in a way of its own goes back so that it accepts it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from wire.case_server import CaseServer, load_cases

from yiemagent_nb.backends.openai_compatible import OpenAICompatible
from yiemagent_nb.core.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.request import RequestBuilder

pytestmark = pytest.mark.requirement("Y SP-018", "Y SD-009")

CASES = [case for case in load_cases() if "replay" in case["expect"] or "ids" in case["expect"]]


async def answer(backend: OpenAICompatible, messages: Any) -> AssistantMessage:
    assembler = Assembler(tool_names=["get_weather", "search"], text_tool_calls=True)
    async for piece in cast("AsyncIterator[Any]", backend(messages)):
        assembler.feed(piece)
    return assembler.finish()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
async def test_the_next_request_carries_what_the_server_wants_back(case: dict[str, Any]) -> None:
    api: Any = "responses" if case["endpoint"] == "responses" else "chat-completions"
    async with CaseServer(case) as server, OpenAICompatible(server.base_url, "m-1", api=api) as backend:
        builder = RequestBuilder()
        history: list[Any] = [UserMessage("hi")]
        message = await answer(backend, builder.build("", history, backend.provider))
        history.append(message)
        history += [
            ToolResultMessage(tool_call_id=call.id, tool_name=call.name, content=(TextContent("ok"),))
            for call in message.tool_calls
        ]
        await answer(backend, builder.build("", history, backend.provider))
    wanted = case["expect"].get("replay", {})
    if api == "responses":
        _, reasoning, call, result = server.requests[-1].body["input"]
        assert reasoning["encrypted_content"] == wanted["encrypted_content"]
        assert call["call_id"] == result["call_id"]
        return
    _, sent, *results = server.requests[-1].body["messages"]
    ids = [call["id"] for call in sent["tool_calls"]]
    assert ids == [result["tool_call_id"] for result in results]
    assert all(0 < len(each) <= case["expect"].get("ids", {}).get("replay_max_len", 64) for each in ids)
    if "reasoning_details_types" in wanted:
        assert [detail["type"] for detail in sent["reasoning_details"]] == wanted["reasoning_details_types"]
