from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, cast, get_args, get_origin

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from unit.strategies import by_type, messages, wild_text

from yiemagent_nb.core.errors import InvalidMessageRoleError, InvalidParametersError, MalformedResponseError
from yiemagent_nb.core.messages import (
    AssistantContent,
    AssistantMessage,
    AssistantToolCallMessage,
    CustomMessage,
    ImageContent,
    Message,
    ReasoningContent,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    dump_message,
)
from yiemagent_nb.core.openai_form import from_openai, parse_messages, system_to_openai, to_openai, tool_to_openai
from yiemagent_nb.core.request import RequestBuilder, RequestMessages, WireMessage
from yiemagent_nb.core.tools import tool

PNG = "iVBORw0KGgo="
IMAGE = ImageContent(data=PNG, mime_type="image/png")
IMAGE_URL = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
CALL = ToolCall(id="call_1", name="add", arguments={"a": 1, "b": None})
CALL_FORM = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":null}'}}


def types_in(annotation: Any) -> set[type[Any]]:
    if get_origin(annotation) is Annotated:
        return types_in(get_args(annotation)[0])
    arguments = get_args(annotation)
    return {each for argument in arguments for each in types_in(argument)} if arguments else {annotation}


def result(content: Any = "7", call_id: str = "call_1", **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id=call_id, tool_name="add", content=content, **fields)


def calling(*ids: str, content: Any = (), **fields: Any) -> AssistantToolCallMessage:
    return AssistantToolCallMessage(content, tool_calls=[ToolCall(id=each, name="add") for each in ids], **fields)


# --- One message, both ways --------------------------------------------------------------------

FORMS: dict[type[Any], tuple[Message, dict[str, Any]]] = {
    UserMessage: (
        UserMessage(["see", IMAGE]),
        {"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE_URL]},
    ),
    AssistantMessage: (
        AssistantMessage(["so", IMAGE]),
        {"role": "assistant", "content": [{"type": "text", "text": "so"}, IMAGE_URL]},
    ),
    AssistantToolCallMessage: (
        AssistantToolCallMessage("adding", tool_calls=[CALL]),
        {"role": "assistant", "content": [{"type": "text", "text": "adding"}], "tool_calls": [CALL_FORM]},
    ),
    ToolResultMessage: (
        result(["7", IMAGE]),
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "7"}, IMAGE_URL]},
    ),
}

BLOCKS: dict[type[Any], tuple[Any, dict[str, Any]]] = {
    TextContent: (TextContent("so"), {"type": "text", "text": "so"}),
    ImageContent: (IMAGE, IMAGE_URL),
    ReasoningContent: (
        ReasoningContent("hm", signature="reasoning"),
        {"type": "reasoning", "text": "hm", "signature": "reasoning"},
    ),
    ToolCall: (CALL, CALL_FORM),
}


@pytest.mark.requirement("Y FR-006", "Y KPI-003")
def test_every_type_of_message_has_its_form_in_the_table() -> None:
    assert {*FORMS, CustomMessage} == types_in(Message)


@pytest.mark.requirement("Y FR-006", "Y KPI-003")
def test_every_type_of_content_has_its_form_in_the_table() -> None:
    assert set(BLOCKS) == types_in(UserContent) | types_in(AssistantContent)


@pytest.mark.requirement("Y SP-012", "Y SP-013", "Y SP-014", "Y SP-015", "Y FR-006", "Y KPI-003")
@pytest.mark.parametrize("kind", FORMS)
def test_a_message_has_the_form_of_the_reference(kind: type[Any]) -> None:
    message, form = FORMS[kind]
    assert to_openai(message) == form


@pytest.mark.requirement("Y SP-012", "Y SP-013", "Y SP-014", "Y SP-015", "Y FR-006", "Y KPI-003")
@pytest.mark.parametrize("kind", FORMS)
def test_a_message_is_read_from_the_form_of_the_reference(kind: type[Any]) -> None:
    message, form = FORMS[kind]
    read = from_openai(form, {"call_1": "add"})
    assert type(read) is kind
    assert to_openai(read) == form
    assert read.model_copy(update={"timestamp": message.timestamp}) == message


@pytest.mark.requirement("Y SP-012", "Y SP-013", "Y SP-014", "Y FR-006", "Y KPI-003")
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_content_block_goes_both_ways(kind: type[Any]) -> None:
    block, form = BLOCKS[kind]
    if kind is ToolCall:
        message: AssistantMessage = AssistantToolCallMessage(tool_calls=[block])
        assert to_openai(message) == {"role": "assistant", "content": None, "tool_calls": [form]}
    else:
        message = AssistantMessage([block])
        assert to_openai(message) == {"role": "assistant", "content": [form]}
    assert cast("AssistantMessage", from_openai(to_openai(message))).content == (block,)
    if kind in types_in(UserContent):
        assert to_openai(UserMessage(block)) == {"role": "user", "content": [form]}
        assert cast("UserMessage", from_openai({"role": "user", "content": [form]})).content == (block,)


def joined(content: Iterable[Any]) -> list[Any]:
    """Content blocks as they stand after reading: text that follows text is one, calls come last."""
    blocks: list[Any] = []
    for block in sorted(content, key=lambda block: isinstance(block, ToolCall)):
        last = blocks[-1] if blocks else None
        if isinstance(block, TextContent) and isinstance(last, TextContent):
            blocks[-1] = TextContent(last.text + block.text)
        elif block != ReasoningContent():
            blocks.append(block)
    return blocks


plain_text = st.text(st.characters(codec="utf-8", exclude_characters="<"), min_size=1).filter(str.strip)
assistant_blocks = (
    st.builds(TextContent, plain_text)
    | st.just(IMAGE)
    | st.builds(ToolCall, id=plain_text, name=st.sampled_from(["add", "f"]), arguments=st.just({"a": [None, "ü"]}))
)


@pytest.mark.requirement("Y SP-013", "Y FR-006", "Y KPI-003")
@given(st.lists(assistant_blocks, min_size=1, max_size=6))
def test_any_answer_comes_back_from_its_form(content: list[Any]) -> None:
    has_calls = any(isinstance(block, ToolCall) for block in content)
    message = AssistantToolCallMessage(content) if has_calls else AssistantMessage(content)
    read = cast("AssistantMessage", from_openai(json.loads(json.dumps(to_openai(message)))))
    assert type(read) is type(message)
    assert joined(read.content) == joined(message.content)


@pytest.mark.requirement("Y SP-012", "Y SP-015", "Y FR-006", "Y KPI-003")
@given(by_type[UserMessage] | by_type[ToolResultMessage])
def test_any_message_of_a_user_or_a_tool_comes_back_from_its_form(message: UserMessage | ToolResultMessage) -> None:
    names = {message.tool_call_id: message.tool_name} if isinstance(message, ToolResultMessage) else {}
    read = from_openai(json.loads(json.dumps(to_openai(message))), names)
    assert type(read) is type(message)
    assert cast("UserMessage | ToolResultMessage", read).content == message.content
    if isinstance(message, ToolResultMessage) and isinstance(read, ToolResultMessage):
        assert (read.tool_call_id, read.tool_name) == (message.tool_call_id, message.tool_name)


@pytest.mark.requirement("Y SP-014", "Y FR-006")
def test_arguments_that_did_not_parse_go_back_as_an_empty_object() -> None:
    message = AssistantToolCallMessage(tool_calls=[ToolCall(id="a", name="f", raw_arguments='{"a": ')])
    assert to_openai(message)["tool_calls"][0]["function"]["arguments"] == "{}"


@pytest.mark.requirement("Y SP-014", "Y FR-006")
def test_numbers_beyond_all_bounds_go_back_as_null() -> None:
    message = AssistantToolCallMessage(tool_calls=[ToolCall(id="a", name="f", arguments={"a": float("inf")})])
    assert to_openai(message)["tool_calls"][0]["function"]["arguments"] == '{"a":null}'


@pytest.mark.requirement("Y SP-011", "Y FR-006")
def test_a_system_prompt_is_one_text_block() -> None:
    assert system_to_openai("Be brief.") == {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}


@pytest.mark.requirement("Y SP-016", "Y FR-006")
def test_a_tool_has_the_form_of_a_function() -> None:
    @tool
    def add(a: int, b: int = 0) -> int:
        """Add two numbers."""
        return a + b

    assert tool_to_openai(add) == {
        "type": "function",
        "function": {"name": "add", "description": "Add two numbers.", "parameters": dict(add.input_schema)},
    }
    json.dumps(tool_to_openai(add))


@pytest.mark.requirement("Y FR-006")
def test_a_note_has_no_form_and_says_so() -> None:
    with pytest.raises(InvalidMessageRoleError, match="CustomMessage has no OpenAI form"):
        to_openai(CustomMessage(kind="note"))


@pytest.mark.requirement("Y SP-012", "Y FR-006")
@pytest.mark.parametrize(
    "content",
    [
        "hi",
        ["hi"],
        [{"type": "text", "text": "hi"}],
        [{"type": "input_text", "text": "hi"}, {"type": "text", "text": ""}],
    ],
)
def test_a_users_text_is_read_in_every_form(content: object) -> None:
    assert cast("UserMessage", from_openai({"role": "user", "content": content})).content == (TextContent("hi"),)


@pytest.mark.requirement("Y SP-013", "Y FR-006")
@pytest.mark.parametrize("fields", [{}, {"content": None}, {"content": ""}, {"content": [], "tool_calls": []}])
def test_an_empty_answer_is_read_as_one(fields: dict[str, Any]) -> None:
    assert cast("AssistantMessage", from_openai({"role": "assistant", **fields})).content == ()


@pytest.mark.requirement("Y SP-013", "Y FR-006")
@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"refusal": "no"}, (TextContent("no"),)),
        ({"reasoning_content": "hm"}, (ReasoningContent("hm", signature="reasoning_content"),)),
        ({"thinking": "hm"}, (ReasoningContent("hm", signature="thinking"),)),
        ({"content": None, "tool_calls": [CALL_FORM]}, (CALL,)),
    ],
)
def test_an_answer_without_text_keeps_what_it_has(fields: dict[str, Any], content: tuple[Any, ...]) -> None:
    assert cast("AssistantMessage", from_openai({"role": "assistant", **fields})).content == content


BAD_FORMS: list[tuple[Any, type[Exception], str]] = [
    ({"role": "system", "content": "x"}, InvalidMessageRoleError, "system_prompt"),
    ({"role": "developer", "content": "x"}, InvalidMessageRoleError, "system_prompt"),
    ({"role": "function", "content": "x"}, InvalidMessageRoleError, "'function' cannot stand in a history"),
    ({}, InvalidMessageRoleError, "None"),
    (5, InvalidParametersError, "int is no message"),
    ({"role": "user", "content": 5}, InvalidParametersError, "content of a message is int"),
    (
        {"role": "user", "content": {"type": "text", "text": "x"}},
        InvalidParametersError,
        "content of a message is dict",
    ),
    ({"role": "user", "content": [5]}, InvalidParametersError, "neither text nor an image"),
    ({"role": "user", "content": [{"type": "text"}]}, InvalidParametersError, "neither text nor an image"),
    ({"role": "user", "content": [{"type": "input_audio"}]}, InvalidParametersError, "'input_audio'"),
    (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
        InvalidParametersError,
        "base64 data URL",
    ),
    ({"role": "user", "content": [{"type": "image_url", "image_url": 5}]}, InvalidParametersError, "base64 data URL"),
    ({"role": "user", "content": [{"type": "image_url"}]}, InvalidParametersError, "base64 data URL"),
    (
        {"role": "tool", "content": [{"type": "image_url", "image_url": "data:image/png;base64,!!"}]},
        ValidationError,
        "image data must be base64",
    ),
    ({"role": "assistant", "content": 5}, MalformedResponseError, "int"),
]


@pytest.mark.requirement("Y FR-006", "A SPEC-7.1")
@pytest.mark.parametrize(("form", "error", "text"), BAD_FORMS)
def test_a_form_that_is_none_is_refused_with_a_typed_error(form: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        from_openai(form)


# --- Mixtures ----------------------------------------------------------------------------------


@pytest.mark.requirement("Y FR-006")
def test_any_mixture_of_forms_is_read_as_one_history() -> None:
    history = parse_messages(
        [
            "hi",
            {"role": "assistant", "content": None, "tool_calls": [CALL_FORM]},
            {"role": "tool", "tool_call_id": "call_1", "content": "7"},
            dump_message(AssistantMessage("so")),
            UserMessage("thanks"),
            {"role": "custom", "kind": "note"},
        ]
    )
    assert [type(message) for message in history] == [
        UserMessage,
        AssistantToolCallMessage,
        ToolResultMessage,
        AssistantMessage,
        UserMessage,
        CustomMessage,
    ]
    assert cast("ToolResultMessage", history[2]).tool_name == "add"


@pytest.mark.requirement("Y FR-006")
@given(st.lists(messages, max_size=5))
def test_messages_and_their_json_forms_are_read_alike(history: list[Message]) -> None:
    assert parse_messages(history) == history
    assert parse_messages(map(dump_message, history)) == history
    assert all(read is given for read, given in zip(parse_messages(tuple(history)), history, strict=True))


NO_HISTORIES: list[Any] = ["hi", {"role": "user", "content": "hi"}, UserMessage("hi"), 5, None]


@pytest.mark.requirement("A SPEC-7.1")
@pytest.mark.parametrize("items", NO_HISTORIES, ids=lambda items: type(items).__name__)
def test_a_single_message_is_no_history(items: Any) -> None:
    with pytest.raises(InvalidParametersError, match=r"is no list of messages\. Write \[message\] around"):
        parse_messages(items)


@pytest.mark.requirement("A SPEC-7.1")
def test_what_is_no_message_is_refused_in_a_history() -> None:
    with pytest.raises(InvalidParametersError, match="float is no message"):
        parse_messages(cast("list[Any]", [1.5]))


# --- A whole request ---------------------------------------------------------------------------


def check_request(request: RequestMessages) -> None:
    """Assert what the strictest of providers ask for."""
    assert json.loads(b"[%s]" % request.encoded) == request
    open_calls: list[str] = []
    for wire in request:
        assert json.loads(wire.encoded) == wire
        assert wire.encoded in request.encoded
        role, content = wire["role"], wire["content"]
        if role == "tool":
            assert wire["tool_call_id"] in open_calls, "a result without its call"
            open_calls.remove(wire["tool_call_id"])
            assert isinstance(content, str)
            assert content
            continue
        assert not open_calls, f"a message of role {role} came before the results of {open_calls}"
        if role == "assistant":
            check_answer(wire)
            open_calls = [call["id"] for call in wire.get("tool_calls", ())]
            assert len(set(open_calls)) == len(open_calls)
        else:
            assert role in ("user", "system")
            check_content(content)
    assert not open_calls, "a call without its result"


def check_answer(wire: Mapping[str, Any]) -> None:
    assert wire["content"] is None or isinstance(wire["content"], str)
    calls = wire.get("tool_calls")
    if calls is None:
        assert cast("str", wire["content"]).strip()
        return
    assert calls
    for call in calls:
        assert call["type"] == "function"
        assert 0 < len(call["id"]) <= 40
        name = call["function"]["name"]
        assert 0 < len(name) <= 64
        assert all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name)
        assert isinstance(json.loads(call["function"]["arguments"]), dict)


def check_content(content: Any) -> None:
    assert content
    if isinstance(content, str):
        return
    assert any(block["type"] == "image_url" for block in content), "text alone is a plain string"
    for block in content:
        assert block["type"] in ("text", "image_url")
        if block["type"] == "text":
            assert block["text"]


@st.composite
def likely_histories(draw: st.DrawFn) -> list[Message]:
    """Histories as they come, with results that are there, missing, repeated, and of no call."""
    history: list[Message] = []
    for _ in range(draw(st.integers(0, 6))):
        message = draw(messages)
        history.append(message)
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                answers = draw(st.lists(by_type[ToolResultMessage], max_size=2))
                history.extend(answer.model_copy(update={"tool_call_id": call.id}) for answer in answers)
                if draw(st.booleans()):
                    history.append(draw(by_type[CustomMessage]))
    return history


histories = likely_histories() | st.lists(messages, max_size=8)
providers = st.sampled_from(["", "openai", "vllm"])


@pytest.mark.requirement("Y FR-003", "Y FR-006", "Y SP-011", "Y SP-012", "Y SP-013", "Y SP-014", "Y SP-015")
@given(wild_text, histories, providers)
def test_any_history_makes_a_request_that_every_provider_takes(
    system_prompt: str, history: list[Message], provider: str
) -> None:
    request = RequestBuilder().build(system_prompt, history, provider)
    check_request(request)
    assert [wire["role"] for wire in request[:1]] == ["system"] or not system_prompt
    request.encoded.decode()


@pytest.mark.requirement("Y FR-003")
@given(st.lists(st.tuples(wild_text, providers, st.integers(0, 8)), min_size=1, max_size=6), histories, st.data())
def test_a_builder_that_goes_on_makes_the_same_as_a_fresh_one(
    steps: list[tuple[str, str, int]], history: list[Message], data: st.DataObject
) -> None:
    builder = RequestBuilder()
    for system_prompt, provider, length in steps:
        prefix = history[:length]
        request = builder.build(system_prompt, prefix, provider)
        assert request == RequestBuilder().build(system_prompt, prefix, provider)
        check_request(request)
        if history and data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(history) - 1))
            history = [*history[:place], data.draw(messages), *history[place + 1 :]]


@pytest.mark.requirement("Y FR-003")
@given(histories)
@example([UserMessage("hi"), calling("a", "b"), result("1", "a"), result("2", "b"), AssistantMessage("so")])
def test_each_prefix_of_a_growing_history_is_a_request(history: list[Message]) -> None:
    builder = RequestBuilder()
    for length in range(len(history) + 1):
        request = builder.build("be brief", history[:length])
        check_request(request)
        assert request == RequestBuilder().build("be brief", history[:length])


def from_history(request: Sequence[WireMessage], history: Sequence[Message]) -> list[WireMessage]:
    """The messages of a request that stand in a history too, without what repairs it."""
    texts = {cast("Any", message).text for message in history}
    return [wire for wire in request if wire["content"] in texts]


@pytest.mark.requirement("Y FR-003")
def test_a_message_is_encoded_once_and_kept_from_request_to_request() -> None:
    history: list[Message] = [UserMessage("hi"), calling("a", content="adding"), result("7", "a")]
    builder = RequestBuilder()
    first = builder.build("", history)
    second = builder.build("", [*history, AssistantMessage("so")])
    again = builder.build("", [UserMessage("earlier"), *history])
    assert [id(wire) for wire in second[:3]] == [id(wire) for wire in first]
    assert [id(wire) for wire in again[1:]] == [id(wire) for wire in first]
    assert [id(wire) for wire in from_history(second, history)] == [id(wire) for wire in first]


@pytest.mark.requirement("Y FR-003")
def test_an_edited_history_is_sent_as_it_is_now() -> None:
    builder = RequestBuilder()
    builder.build("", [UserMessage("one"), AssistantMessage("two")])
    assert builder.build("", [UserMessage("three")]) == [{"role": "user", "content": "three"}]


@pytest.mark.requirement("Y FR-003")
def test_a_copy_of_a_message_with_details_that_cannot_be_compared_is_sent() -> None:
    builder = RequestBuilder()
    call = calling("a")
    first = result("7", "a", details=pd.DataFrame({"a": [1, 2]}))
    builder.build("", [call, first])
    second = first.model_copy(update={"details": pd.DataFrame({"a": [1, 2]})})
    assert builder.build("", [call, second])[-1]["content"] == "7"


@pytest.mark.requirement("Y FR-003")
def test_a_call_without_a_result_gets_one_before_anything_else() -> None:
    request = RequestBuilder().build("", [calling("a", "b"), result("7", "b"), UserMessage("and?")])
    assert [wire["role"] for wire in request] == ["assistant", "tool", "tool", "user"]
    assert [wire.get("tool_call_id") for wire in request] == [None, "b", "a", None]
    assert "No result" in request[2]["content"]


@pytest.mark.requirement("Y FR-003")
def test_a_result_without_its_call_is_left_out() -> None:
    late = [calling("a"), UserMessage("and?"), result("7", "a"), result("8", "x")]
    assert [wire["role"] for wire in RequestBuilder().build("", late)] == ["assistant", "tool", "user"]


@pytest.mark.requirement("Y FR-003")
@pytest.mark.parametrize("stop_reason", ["error", "aborted"])
@pytest.mark.parametrize("content", [(), " \n", ReasoningContent("hm")], ids=["empty", "blank", "reasoning"])
def test_a_broken_answer_without_usable_content_is_left_out(stop_reason: str, content: Any) -> None:
    history: list[Message] = [UserMessage("hi"), AssistantMessage(content, stop_reason=stop_reason), UserMessage("so?")]
    assert [wire["role"] for wire in RequestBuilder().build("", history)] == ["user", "user"]


@pytest.mark.requirement("Y FR-003")
def test_a_broken_answer_with_text_is_kept() -> None:
    request = RequestBuilder().build("", [AssistantMessage("half an ans", stop_reason="aborted")])
    assert request == [{"role": "assistant", "content": "half an ans"}]


@pytest.mark.requirement("Y FR-003")
def test_empty_messages_and_notes_are_left_out() -> None:
    history: list[Message] = [UserMessage(), AssistantMessage(), CustomMessage(kind="note", data="x")]
    assert RequestBuilder().build("", history) == []


@pytest.mark.requirement("Y SP-015", "Y FR-003")
def test_images_of_results_follow_as_one_user_message_after_all_results() -> None:
    request = RequestBuilder().build(
        "", [calling("a", "b"), result(["seen", IMAGE], "a"), result(IMAGE, "b"), AssistantMessage("so")]
    )
    assert [wire["role"] for wire in request] == ["assistant", "tool", "tool", "user", "assistant"]
    assert [wire["content"] for wire in request[1:3]] == ["seen", "The images of this result follow."]
    assert [block["type"] for block in request[3]["content"]] == ["text", "image_url", "text", "image_url"]


@pytest.mark.requirement("Y SP-015", "Y FR-003")
def test_images_that_come_later_change_no_request_that_was_made() -> None:
    builder = RequestBuilder()
    history: list[Message] = [calling("a", "b"), result(IMAGE, "a")]
    first = builder.build("", history)
    builder.build("", [*history, result(IMAGE, "b")])
    check_request(first)


@pytest.mark.requirement("Y SP-014", "Y FR-003")
@pytest.mark.parametrize(
    ("name", "sent"),
    [("", "unknown"), ("a b.c", "a_b_c"), ("ä", "_"), ("x" * 100, "x" * 64), ("fine-name", "fine-name")],
)
def test_a_name_that_a_model_made_up_goes_back_in_a_form_that_servers_take(name: str, sent: str) -> None:
    message = AssistantToolCallMessage(tool_calls=[ToolCall(id="a", name=name)])
    request = RequestBuilder().build("", [message])
    assert request[0]["tool_calls"][0]["function"]["name"] == sent
    assert message.tool_calls[0].name == name


@pytest.mark.requirement("Y SP-014", "Y SP-015", "Y FR-003")
def test_long_ids_are_sent_shorter_and_alike_in_the_call_and_its_result() -> None:
    ids = [f"{'x' * 60}{number}" for number in range(2)]
    request = RequestBuilder().build("", [calling(*ids), result("7", ids[1])])
    sent = [call["id"] for call in request[0]["tool_calls"]]
    assert [len(each) for each in sent] == [40, 40]
    assert [wire["tool_call_id"] for wire in request[1:]] == [sent[1], sent[0]]
    assert sent[0] != sent[1]


DETAILS = '{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}'


@pytest.mark.requirement("Y SP-013", "Y FR-003")
@pytest.mark.parametrize(
    ("signature", "fields"),
    [
        ("reasoning", {"reasoning": "hm"}),
        ("reasoning_content", {"reasoning_content": "hm"}),
        ("thinking", {"thinking": "hm"}),
        (DETAILS, json.loads(DETAILS)),
        ('{"type":"reasoning","id":"rs_1"}', {}),
        ("gibberish", {}),
        (None, {}),
    ],
)
def test_reasoning_goes_back_under_its_own_name_to_its_own_provider(
    signature: str | None, fields: dict[str, Any]
) -> None:
    message = AssistantMessage([ReasoningContent("hm", signature=signature), "so"], provider="vllm")
    plain = {"role": "assistant", "content": "so"}
    assert RequestBuilder().build("", [message], "vllm") == [{**plain, **fields}]
    assert RequestBuilder().build("", [message], "openai") == [plain]


@pytest.mark.requirement("Y FR-003")
def test_surrogates_are_replaced_in_what_is_sent_and_pairs_joined() -> None:
    request = RequestBuilder().build("\ud800", [UserMessage("a\ud83d\ude00b\ud800")])
    assert request == [{"role": "system", "content": "\ufffd"}, {"role": "user", "content": "a\U0001f600b\ufffd"}]
    check_request(request)


def set_item(wire: Any) -> None:
    wire["content"] = "x"


def delete_item(wire: Any) -> None:
    del wire["content"]


def clear(wire: Any) -> None:
    wire.clear()


def update(wire: Any) -> None:
    wire.update(content="x")


def pickled(wire: Any) -> Any:
    return pickle.loads(pickle.dumps(wire))  # noqa: S301 - it was pickled right here


COPIES: list[Callable[[Any], Any]] = [dict, copy.copy, copy.deepcopy, pickled]


@pytest.mark.parametrize("change", [set_item, delete_item, clear, update])
def test_a_sent_message_cannot_be_changed_in_place(change: Callable[[Any], object]) -> None:
    wire = RequestBuilder().build("", [UserMessage("hi")])[0]
    with pytest.raises(TypeError, match="read-only: copy one to change it"):
        change(wire)


@pytest.mark.parametrize("duplicate", COPIES)
def test_a_copy_of_a_sent_message_is_a_dict_that_can_be_changed(duplicate: Callable[[Any], Any]) -> None:
    wire = RequestBuilder().build("", [UserMessage(["hi", IMAGE])])[0]
    changed = duplicate(wire)
    changed["content"] = "x"
    assert type(changed) is dict
    assert wire["content"] != "x"


def add_one(request: Any) -> None:
    request.append({"role": "user", "content": "x"})


def put_first(request: Any) -> None:
    request[0] = {"role": "user", "content": "x"}


def add_in_place(request: Any) -> None:
    request += [{"role": "user", "content": "x"}]


@pytest.mark.parametrize("change", [add_one, put_first, add_in_place, clear])
def test_the_messages_of_a_request_cannot_be_changed_in_place_but_copied(change: Callable[[Any], object]) -> None:
    request = RequestBuilder().build("", [UserMessage("hi")])
    with pytest.raises(TypeError, match=r"read-only: copy one to change it.*\[\*messages, …\]"):
        change(request)
    duplicates: list[Callable[[Any], Any]] = [list, copy.copy, copy.deepcopy, pickled]
    for duplicate in duplicates:
        changed = duplicate(request)
        change(changed)
        assert type(changed) is list
    assert request == [{"role": "user", "content": "hi"}]


def test_what_stands_in_a_sent_message_cannot_be_changed_either() -> None:
    request = RequestBuilder().build("", [UserMessage(["see", IMAGE]), calling("a"), result("7", "a")])
    with pytest.raises(TypeError, match="read-only"):
        request[0]["content"][0]["text"] = "x"
    with pytest.raises(TypeError, match="read-only"):
        request[1]["tool_calls"][0]["function"]["name"] = "x"
    changed: Any = copy.deepcopy(request)
    changed[0]["content"][0]["text"] = "x"
    assert request[0]["content"][0]["text"] == "see"


def adding(a: int) -> int:
    """Add one."""
    return a + 1


@pytest.mark.requirement("Y SP-016")
def test_tools_of_a_request_cannot_be_changed_in_place_but_copied() -> None:
    tools = RequestBuilder().build_tools({"adding": tool(adding)})
    assert tools is not None
    with pytest.raises(TypeError, match="read-only"):
        tools[0]["function"]["strict"] = True
    with pytest.raises(TypeError, match="read-only"):
        tools.append({})
    changed: Any = copy.deepcopy(tools)
    changed[0]["function"]["strict"] = True
    assert "strict" not in tools[0]["function"]


@pytest.mark.requirement("Y SP-016")
def test_tools_are_converted_again_only_when_they_change() -> None:
    def f() -> None:
        """Do nothing."""

    first, second = tool(f), tool(f, name="g")
    builder = RequestBuilder()
    forms = builder.build_tools({"f": first})
    assert builder.build_tools({"f": first}) is forms
    assert [form["function"]["name"] for form in builder.build_tools({"f": first, "g": second}) or ()] == ["f", "g"]
    assert builder.build_tools({}) is None
