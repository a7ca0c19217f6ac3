"""Bodies of requests, made of whatever may stand in a conversation."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from unit.test_openai_form import histories
from wire.case_server import CaseServer
from wire.published import check_body

from yiemagent_nb import (
    Agent,
    AssistantMessage,
    AssistantToolCallMessage,
    ImageContent,
    OpenAICompatible,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    to_openai,
    tool,
)
from yiemagent_nb.backends.engine.chat_request import ChatRequest
from yiemagent_nb.backends.engine.responses_request import ResponsesRequest
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.messages import Message
from yiemagent_nb.core.request import RequestBuilder, RequestMessages, WireMessage

pytestmark = pytest.mark.requirement("Y FR-002", "Y FR-003", "Y SD-009")

Encode = Callable[..., bytes]

FIELDS = {"model": "m"}
PICTURE = "data:image/png;base64,iVBORw0KGgo="
IMAGE = ImageContent(data="iVBORw0KGgo=", mime_type="image/png")
INPUT_IMAGE = {"type": "input_image", "image_url": PICTURE, "detail": "auto"}


def both_encoders() -> list[Encode]:
    return [ChatRequest().encode, ResponsesRequest("openai").encode]


encoders = pytest.mark.parametrize("number", [0, 1], ids=["chat", "responses"])


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def reasoning(number: int) -> ReasoningContent:
    item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x" * 1000}
    return ReasoningContent("", signature=json.dumps(item))


def rounds(count: int) -> list[Message]:
    """A question, and rounds of a thought, a call and its result."""
    history: list[Message] = [UserMessage("go")]
    for number in range(count):
        call = ToolCall(id=f"call_{number}", name="add", arguments={"a": number, "b": 1})
        history += [
            AssistantToolCallMessage([reasoning(number), "adding"], tool_calls=[call], provider="openai"),
            ToolResultMessage(tool_call_id=call.id, tool_name="add", content=(TextContent("r" * 300),)),
        ]
    return history


def items_of(body: bytes) -> list[dict[str, Any]]:
    read = json.loads(body)
    return read["input"]


def sent(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The items of a conversation in OpenAI's chat form; the body is one that OpenAI documents."""
    body = json.loads(ResponsesRequest("openai").encode(messages, None, FIELDS))
    check_body("openai-responses", body)
    return body["input"]


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


# --- What was encoded once -----------------------------------------------------------------------


@encoders
def test_messages_and_tools_that_were_changed_are_sent_as_they_are_now(number: int) -> None:
    encode = both_encoders()[number]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "one"}]
    tools: list[dict[str, Any]] = [{"type": "function", "function": {"name": "first"}}]
    encode(messages, tools, FIELDS)
    messages[0]["content"] = "two"
    tools[0]["function"]["name"] = "second"
    body = encode(messages, tools, FIELDS)
    assert b"two" in body
    assert b"one" not in body
    assert b"second" in body
    assert b"first" not in body


@encoders
@given(histories)
def test_a_request_is_the_same_bytes_however_its_messages_are_held(number: int, history: list[Message]) -> None:
    encode = both_encoders()[number]
    builder = RequestBuilder()
    for length in range(len(history) + 1):
        request = builder.build("be brief", history[:length], "openai")
        body = encode(request, None, FIELDS)
        json.loads(body)
        assert body == encode(list(request), None, FIELDS)
        assert body == encode(RequestBuilder().build("be brief", history[:length], "openai"), None, FIELDS)


@given(histories)
def test_ids_of_items_are_unique_and_a_message_is_the_same_bytes_in_each_request(history: list[Message]) -> None:
    encode, builder = ResponsesRequest("openai").encode, RequestBuilder()
    history = [*history, *history]  # the same words twice
    before: list[dict[str, Any]] = []
    for length in range(len(history) + 1):
        request = builder.build("", history[:length], "openai")
        items = items_of(encode(request, None, FIELDS))
        said = [item["id"] for item in items if item["type"] == "message" and item["role"] == "assistant"]
        assert len(set(said)) == len(said)
        settled = items_of(encode(list(request)[: request.lasting], None, FIELDS))
        assert settled[: len(before)] == before
        before = settled


@encoders
def test_an_earlier_request_can_be_sent_after_a_later_one(number: int) -> None:
    encode, builder = both_encoders()[number], RequestBuilder()
    history = rounds(3)
    first = builder.build("be brief", history[:-2], "openai")
    body = encode(first, None, FIELDS)
    later = encode(builder.build("be brief", history, "openai"), None, FIELDS)
    assert encode(first, None, FIELDS) == body
    assert encode(builder.build("be brief", history, "openai"), None, FIELDS) == later


def kept(request: RequestMessages) -> list[object]:
    return [message.kept for message in request]


def test_items_are_made_once_whatever_other_agents_ask() -> None:
    encode, builder, other = ResponsesRequest("openai").encode, RequestBuilder(), RequestBuilder()
    history = rounds(5)
    request = builder.build("be brief", history, "openai")
    first = encode(request, None, FIELDS)
    before = kept(request)
    encode(other.build("", rounds(1), "openai"), None, FIELDS)
    again = builder.build("be brief", [*history, UserMessage("and?")], "openai")
    assert encode(again, None, FIELDS).startswith(first[:-2])
    assert encode(list(request), None, FIELDS) == first
    assert [id(each) for each in kept(request)] == [id(each) for each in before]
    assert b"encrypted_content" in first


def test_only_new_messages_are_looked_at_and_a_long_conversation_is_joined_of_few_pieces() -> None:
    builder = RequestBuilder()
    looked_at: list[int] = []

    def encode(position: int, message: WireMessage) -> bytes:
        looked_at.append(position)
        return message.encoded

    history: list[Message] = []
    for number in range(500):
        history = [*history, UserMessage(f"and {number}?")]
        request = builder.build("be brief", history)
        pieces = request.pieces("form", encode)
        assert b",".join(pieces) == request.encoded
        assert len(pieces) <= 20
    assert looked_at == list(range(501))


@encoders
def test_a_backend_keeps_no_history_alive(number: int) -> None:
    encode = both_encoders()[number]
    history = rounds(2)
    message = weakref.ref(history[-1])
    encode(RequestBuilder().build("", history, "openai"), None, FIELDS)
    del history
    gc.collect()
    assert message() is None


@encoders
def test_tools_of_an_agent_are_encoded_once_and_those_of_anyone_else_each_time(number: int) -> None:
    encode = both_encoders()[number]
    tools = RequestBuilder().build_tools({"add": add})
    assert tools is not None
    body = encode([], tools, FIELDS)
    (known,) = tools.kept.values()
    assert encode([], tools, FIELDS) == encode([], list(tools), FIELDS) == body
    assert [id(each) for each in tools.kept.values()] == [id(known)]


# --- Messages that hooks write ---------------------------------------------------------------------


def test_reasoning_in_the_form_of_to_openai_is_no_part_of_an_answer() -> None:
    message = to_openai(AssistantMessage([ReasoningContent("SECRET"), "so"], provider="openai"))
    (item,) = sent([message])
    assert item["content"] == [{"type": "output_text", "text": "so", "annotations": []}]
    body = json.loads(ChatRequest().encode([message], None, FIELDS))
    check_body("openai-chat", body)
    assert body["messages"] == [{"role": "assistant", "content": [{"type": "text", "text": "so"}]}]


@encoders
def test_an_answer_of_reasoning_alone_is_left_out(number: int) -> None:
    messages = [{"role": "user", "content": "a"}, to_openai(AssistantMessage(ReasoningContent("SECRET")))]
    body = json.loads(both_encoders()[number](messages, None, FIELDS))
    assert len(body.get("messages") or body["input"]) == 1


@encoders
def test_a_call_behind_reasoning_alone_is_sent(number: int) -> None:
    call = ToolCall(id="call_1", name="add", arguments={})
    message = to_openai(AssistantToolCallMessage(ReasoningContent("SECRET"), tool_calls=[call]))
    body = both_encoders()[number]([message], None, FIELDS)
    check_body("openai-chat" if number == 0 else "openai-responses", json.loads(body))
    assert b"call_1" in body
    assert b"SECRET" not in body


def test_images_in_the_result_of_a_tool_are_sent() -> None:
    result = ToolResultMessage(tool_call_id="call_1", tool_name="look", content=(TextContent("seen"), IMAGE))
    (item,) = sent([to_openai(result)])
    assert item["output"] == [{"type": "input_text", "text": "seen"}, INPUT_IMAGE]
    (item,) = sent(
        [to_openai(ToolResultMessage(tool_call_id="c", tool_name="look", content=tuple(map(TextContent, "ab"))))]
    )
    assert item["output"] == "ab"


@pytest.mark.parametrize(
    ("block", "there"),
    [
        ("hi", {"type": "input_text", "text": "hi"}),
        ({"type": "text", "text": "hi"}, {"type": "input_text", "text": "hi"}),
        ({"type": "input_text", "text": "hi"}, {"type": "input_text", "text": "hi"}),
        ({"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}, {**INPUT_IMAGE, "detail": "low"}),
        ({"type": "image_url", "image_url": {"url": PICTURE}}, INPUT_IMAGE),
        ({"image_url": PICTURE}, INPUT_IMAGE),
        ({"type": "input_image", "file_id": "f"}, {"type": "input_image", "file_id": "f", "detail": "auto"}),
        ({"type": "input_file", "file_id": "f"}, {"type": "input_file", "file_id": "f"}),
        (
            {"type": "file", "file": {"file_data": "data:x", "filename": "x.pdf"}},
            {"type": "input_file", "file_data": "data:x", "filename": "x.pdf"},
        ),
    ],
)
def test_a_block_of_either_api_is_sent_whole(block: Any, there: Mapping[str, Any]) -> None:
    (item,) = sent([user(block)])
    assert item["content"] == [there]


def test_sound_is_sent_as_it_is() -> None:
    # The API's reference describes such blocks; the published request does not list them yet.
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    (item,) = items_of(ResponsesRequest("openai").encode([user(sound)], None, FIELDS))
    assert item["content"] == [sound]


def test_what_an_answer_refused_and_showed_stays_in_it() -> None:
    content = [{"type": "refusal", "refusal": "no"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
    (item,) = sent([{"role": "assistant", "content": content}])
    assert item["content"] == [content[0], {"type": "output_text", "text": "(image)", "annotations": []}]


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
@pytest.mark.parametrize(
    ("block", "kind"), [({"type": "video_url"}, "video_url"), (5, "int"), ({"type": None}, "None")]
)
def test_a_block_of_an_unknown_type_is_refused_by_its_name(role: str, block: object, kind: str) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "a"}, {"role": role, "content": [block]}]
    with pytest.raises(InvalidParametersError, match=f"type '{kind}'"):
        ResponsesRequest("openai").encode(messages, None, FIELDS)


@encoders
@pytest.mark.parametrize("place", [0, 1])
def test_a_message_of_the_history_is_refused_with_the_way_to_turn_it(number: int, place: int) -> None:
    messages: list[Any] = [{"role": "user", "content": "a"}]
    messages.insert(place, UserMessage("b"))
    with pytest.raises(InvalidParametersError, match=r"UserMessage is no message in OpenAI's form.* to_openai"):
        both_encoders()[number](messages, None, FIELDS)


async def test_a_hook_that_returns_the_history_as_it_is_ends_in_an_error_that_says_how() -> None:
    def as_it_is(context: AgentContext) -> Any:
        return context.messages

    async with CaseServer({"body": "data: [DONE]\n\n"}) as server, OpenAICompatible(server.base_url, "m") as backend:
        answer = await Agent(backend, format_messages=as_it_is).prompt("hi")
    assert answer.stop_reason == "error"
    assert "to_openai" in (answer.error_message or "")
    assert not server.requests


# --- Fields beside the messages --------------------------------------------------------------------

SEARCH = {"type": "web_search"}


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no key stands twice."""
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@encoders
@pytest.mark.parametrize("has_functions", [True, False])
def test_tools_that_the_server_runs_stand_beside_functions(number: int, has_functions: bool) -> None:
    tools = RequestBuilder().build_tools({"add": add} if has_functions else {})
    body = both_encoders()[number]([{"role": "user", "content": "a"}], tools, {**FIELDS, "tools": [SEARCH]})
    read = json.loads(body, object_pairs_hook=once)
    assert [each["type"] for each in read["tools"]] == ["function"] * has_functions + ["web_search"]
    if number == 1:
        check_body("openai-responses", read)


@encoders
@pytest.mark.parametrize("name", ["messages", "input"])
def test_messages_cannot_be_given_as_an_option(number: int, name: str) -> None:
    with pytest.raises(InvalidParametersError, match=f"A request's {name} cannot be given as an option"):
        both_encoders()[number]([], None, {**FIELDS, name: []})


@encoders
@pytest.mark.parametrize("tools", ["web_search", {"type": "web_search"}, ["web_search"]])
def test_tools_among_the_options_are_a_list_of_mappings(number: int, tools: Any) -> None:
    with pytest.raises(InvalidParametersError, match="The option tools is no list of mappings"):
        both_encoders()[number]([], None, {**FIELDS, "tools": tools})


async def test_an_extra_body_with_tools_reaches_the_server_beside_those_of_the_agent() -> None:
    async with (
        CaseServer({"body": "data: [DONE]\n\n"}) as server,
        OpenAICompatible(server.base_url, "m", extra_body={"tools": [SEARCH]}) as backend,
    ):
        await Agent(backend, tools=[add]).prompt("hi")
    body = cast("dict[str, Any]", server.requests[0].body)
    assert [each["type"] for each in body["tools"]] == ["function", "web_search"]
