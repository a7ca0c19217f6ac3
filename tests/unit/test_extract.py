"""Whole responses, in every form in which they come."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from yiemagent_nb.core.errors import (
    AuthenticationError,
    BackendError,
    BackendNotFoundError,
    ContextLengthError,
    MalformedResponseError,
)
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    ImageContent,
    ReasoningContent,
    TextContent,
    ToolCall,
)
from yiemagent_nb.core.models import Usage
from yiemagent_nb.core.reading.extract import extract

pytestmark = pytest.mark.requirement("Y FR-002", "Y SD-009")

CALL = ToolCall(id="call_1", name="get_weather", arguments={"city": "Bangkok"})
AS_TEXT = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Bangkok"}'}}
AS_OBJECT = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Bangkok"}}}
FLAT = {"id": "call_1", "name": "get_weather", "arguments": {"city": "Bangkok"}}


class Answer(BaseModel):
    """As a client library's object."""

    content: str
    tool_calls: list[dict[str, Any]] | None = None


@pytest.mark.requirement("Y SP-017")
@pytest.mark.parametrize("call", [AS_TEXT, AS_OBJECT])
def test_nested_message_with_calls(call: dict[str, Any]) -> None:
    message = extract(
        {
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "", "reasoning_content": "I need it", "tool_calls": [call]},
        }
    )
    assert isinstance(message, AssistantToolCallMessage)
    assert message.content == (ReasoningContent("I need it", signature="reasoning_content"), CALL)
    assert message.stop_reason == "tool_calls"


@pytest.mark.requirement("Y SP-017")
def test_nested_message_without_calls() -> None:
    message = extract({"finish_reason": "stop", "message": {"role": "assistant", "content": "It's 22°C"}})
    assert type(message) is AssistantMessage
    assert (message.text, message.stop_reason) == ("It's 22°C", "end_turn")


@pytest.mark.requirement("Y SP-018")
@pytest.mark.parametrize(
    "block",
    [
        pytest.param({"type": "tool_calls", "tool_calls": [AS_OBJECT]}, id="SP-018.1"),
        pytest.param({"type": "tool_calls", "tool_calls": [AS_TEXT]}, id="SP-018.1-text"),
        pytest.param({"type": "tool_call", **FLAT}, id="SP-018.2"),
        pytest.param(
            {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Bangkok"}}, id="tool_use"
        ),
        pytest.param({"type": "toolCall", **FLAT}, id="toolCall"),
        pytest.param(AS_TEXT, id="function"),
        pytest.param(CALL, id="our-own"),
    ],
)
def test_content_blocks_with_calls(block: Any) -> None:
    assert extract({"content": [block]}).content == (CALL,)
    assert extract([{"type": "text", "text": "So:"}, block]).content == (TextContent("So:"), CALL)


@pytest.mark.requirement("Y SP-018")
@pytest.mark.parametrize(
    "content", ["It's 22°C", [{"type": "text", "text": "It's 22°C"}], ["It's ", "22°C"], [{"text": "It's 22°C"}]]
)
def test_content_with_text_only(content: Any) -> None:
    assert extract({"content": content}).content == (TextContent("It's 22°C"),)


@pytest.mark.requirement("Y SP-018")
@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "text": "why"},
        {"type": "thinking", "thinking": "why"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]},
        {"type": "reasoning", "reasoning": "why"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why"}]},
        {"type": "reasoning_content", "reasoning_content": "why"},
    ],
)
def test_content_blocks_with_reasoning_under_any_name(block: dict[str, Any]) -> None:
    assert extract({"content": [block, {"type": "text", "text": "so"}]}).content == (
        ReasoningContent("why"),
        TextContent("so"),
    )


@pytest.mark.requirement("Y SP-018")
@pytest.mark.parametrize(
    "form",
    [
        {"content": "x"},
        {"message": {"content": "x"}},
        {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]},
        {"content": [{"type": "text", "text": "x"}]},
        {"output": [{"type": "message", "content": [{"type": "output_text", "text": "x"}]}]},
    ],
)
def test_extras_are_read_in_every_form(form: dict[str, Any]) -> None:
    extras = {
        "api": "openai",
        "provider": "anthropic",
        "model": "gpt-4",
        "usage": {"inputTokens": 100, "outputTokens": 50},
        "thinking_sent": "high",
        "error_message": "only half",
    }
    message = extract({**form, **extras})
    assert (message.api, message.provider, message.model) == ("openai", "anthropic", "gpt-4")
    assert message.usage == Usage(input_tokens=100, output_tokens=50)
    assert (message.thinking_sent, message.error_message, message.text) == ("high", "only half", "x")


def test_an_error_message_alone_is_a_failed_answer() -> None:
    message = extract({"error_message": "the line is down"})
    assert (message.stop_reason, message.error_message) == ("error", "the line is down")


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ({"content": None}, ""),
        ({"text": "old completion"}, "old completion"),
        ({"choices": [{"text": "old completion", "finish_reason": "stop"}]}, "old completion"),
        (
            {
                "choices": [
                    {"index": 0, "message": {"content": "first"}},
                    {"index": 1, "message": {"content": "second"}},
                ]
            },
            "first",
        ),
        ({"message": {"role": "assistant", "content": "native"}, "done": True, "eval_count": 2}, "native"),
        (Answer(content="object"), "object"),
        ({"message": Answer(content="object")}, "object"),
        ({"choices": [{"message": {"content": None, "refusal": "I can't."}}]}, "I can't."),
        ({"content": "\ud83d\ude00 \ud800"}, "😀 \ufffd"),
    ],
)
def test_other_forms_of_text(response: Any, text: str) -> None:
    assert extract(response).text == text


def test_a_message_of_ours_stays_as_it_is() -> None:
    message = AssistantMessage("x")
    assert extract(message) is message


def test_a_response_of_the_responses_api() -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "why"}]}
    message = extract(
        {
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [
                item,
                {"type": "message", "content": [{"type": "output_text", "text": "so"}]},
                {"type": "web_search_call", "id": "ws"},
                {
                    "type": "function_call",
                    "id": "fc",
                    "call_id": "call_1",
                    "name": "get_weather",
                    "arguments": '{"city":"Bangkok"}',
                },
            ],
            "usage": {"input_tokens": 3, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}},
        }
    )
    reasoning, *rest = message.content
    assert isinstance(reasoning, ReasoningContent)
    assert (reasoning.text, rest) == ("why", [TextContent("so"), CALL])
    assert message.usage == Usage(input_tokens=3, output_tokens=2, cache_read_tokens=1)
    assert message.stop_reason == "tool_calls"


def test_images_are_kept_and_addresses_left_out() -> None:
    pixel = "R0lGODlhAQABAAAAACwAAAAAAQABAAA="
    message = extract(
        {
            "content": [
                {"type": "image", "data": pixel, "mime_type": "image/gif"},
                {"type": "image_url", "image_url": {"url": f"data:image/gif;base64,{pixel}"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/x.gif"}},
            ]
        }
    )
    assert message.content == (ImageContent(data=pixel, mime_type="image/gif"),) * 2


def test_missing_and_repeated_ids_are_made() -> None:
    calls = [
        {"function": {"name": "a"}},
        {"id": "", "function": {"name": "b"}},
        *[{"id": "x", "function": {"name": "c"}}] * 2,
    ]
    ids = [call.id for call in extract({"content": "", "tool_calls": calls}).tool_calls]
    assert len(set(ids)) == 4
    assert ids[2] == "x"
    assert all(ids)


def test_arguments_that_do_not_parse_keep_their_text_and_the_other_call_its_own() -> None:
    broken, good = extract(
        {"tool_calls": [{"name": "a", "arguments": '{"city": Bergen"}'}, {"name": "b", "arguments": "{}"}]}
    ).tool_calls
    assert (broken.arguments, broken.raw_arguments) == ({}, '{"city": Bergen"}')
    assert good.raw_arguments is None


@pytest.mark.parametrize(
    ("response", "came"),
    [
        (None, "None"),
        (42, "int (42)"),
        ([], "list ([])"),
        ({}, "an empty mapping"),
        ({"foo": 1, "bar": 2}, "the keys foo, bar"),
        (b"bytes", "bytes"),
        ({"message": "text"}, "the keys message"),
        ([None], "None"),
        ([{"foo": 1}], "the keys foo"),
        (object, "type"),
    ],
)
def test_what_is_no_answer_is_refused_with_what_came_what_was_expected_and_what_to_return(
    response: Any, came: str
) -> None:
    with pytest.raises(MalformedResponseError) as caught:
        extract(response)
    assert came in caught.value.message
    assert "expected a string" in caught.value.message
    assert "Return the text itself" in caught.value.hint


def test_an_envelope_with_nothing_in_it_is_refused() -> None:
    with pytest.raises(MalformedResponseError, match="nothing in it"):
        extract({"choices": []})


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ({"error": "Unauthorized"}, AuthenticationError),
        ({"error": {"message": "no", "code": 404}}, BackendNotFoundError),
        ({"error": {"message": "maximum context length is 4096", "code": 400}}, ContextLengthError),
        ([{"error": {"message": "no", "code": 401}}], AuthenticationError),
        ({"object": "error", "message": "The model `x` does not exist.", "code": 404}, BackendNotFoundError),
        ({"choices": [{"error": {"message": "no", "code": 401}, "message": {"content": ""}}]}, AuthenticationError),
        ({"status": "failed", "output": [], "error": {"message": "prompt is too long"}}, ContextLengthError),
    ],
)
def test_an_error_mapping_raises_its_error(response: Any, error: type[BackendError]) -> None:
    with pytest.raises(error):
        extract(response)
