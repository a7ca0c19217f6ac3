from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image
from pydantic import BaseModel, ValidationError
from unit.strategies import by_type, messages, timestamps, wild_text

from yiemagent_nb.core.json_values import MAX_DEPTH, clean_text, json_form, read_json
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    CustomMessage,
    ImageContent,
    Message,
    ReasoningContent,
    StopReason,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    dump_message,
    load_message,
    new_id,
    now,
)
from yiemagent_nb.core.models import Cost, Usage

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
MOMENT = datetime(2026, 11, 30, 8, 15, 30, 123000, tzinfo=UTC)
MOMENT_MS = 1796026530123


def picture_bytes(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 3)).save(buffer, kind)
    return buffer.getvalue()


def refused(build: Callable[[], object]) -> str:
    """The names of the fields that were refused, with the messages."""
    with pytest.raises(ValidationError) as caught:
        build()
    return "; ".join(
        f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in caught.value.errors(include_url=False)
    )


def result(content: Any, **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(tool_call_id="a", tool_name="f", content=content, **fields)


# --- Content -----------------------------------------------------------------------------------


@pytest.mark.requirement("Y SP-005", "A SPEC-8.1")
def test_empty_text_is_refused() -> None:
    assert refused(lambda: TextContent("")).startswith("text: String should have at least 1 character")


@pytest.mark.requirement("Y SP-005", "A SPEC-8.1")
@pytest.mark.parametrize(
    "data", ["", "AAA", "AAAAA", "AA=A", "A===", "====", "AA==AA==", "AAA-", "AA_A", "AA AA", "AAAA\n", "ÄÄÄÄ", "AAAA="]
)
def test_broken_base64_is_refused(data: str) -> None:
    assert "data: Value error, image data must be base64" in refused(
        lambda: ImageContent(data=data, mime_type="image/png")
    )


@pytest.mark.requirement("Y SP-006", "A SPEC-8.1")
@pytest.mark.parametrize(
    "mime_type",
    ["", "png", "image", "image/", "text/html", "image/png; charset=x", "image/png\n", "IMAGE /png", "image//"],
)
def test_a_wrong_mime_type_is_refused(mime_type: str) -> None:
    assert refused(lambda: ImageContent(data=PNG, mime_type=mime_type)).startswith("mime_type: ")


@pytest.mark.requirement("Y SP-006", "A SPEC-1.4")
@pytest.mark.parametrize("mime_type", ["image/png", "image/svg+xml", "image/vnd.ms-photo", "image/x-icon"])
def test_every_kind_of_image_type_is_taken(mime_type: str) -> None:
    assert ImageContent(data=PNG, mime_type=mime_type).mime_type == mime_type


@given(st.binary(min_size=1))
@pytest.mark.requirement("Y SP-006")
def test_any_bytes_in_base64_are_taken(data: bytes) -> None:
    image = ImageContent.from_bytes(data, "image/png")
    assert base64.b64decode(image.data) == data


@pytest.mark.requirement("Y SP-006")
@pytest.mark.parametrize(
    ("kind", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif"), ("WEBP", "image/webp")]
)
def test_an_image_from_a_file_has_the_type_of_its_bytes(tmp_path: Path, kind: str, mime: str) -> None:
    path = tmp_path / "picture"
    path.write_bytes(picture_bytes(kind))
    image = ImageContent.from_file(path)
    assert (image.mime_type, base64.b64decode(image.data)) == (mime, path.read_bytes())


@pytest.mark.requirement("Y SP-006")
def test_bytes_of_no_known_image_ask_for_a_type() -> None:
    with pytest.raises(ValueError, match="neither PNG, JPEG, GIF nor WebP: give mime_type"):
        ImageContent.from_bytes(b"plain text")


class Shown:
    def __init__(self, png: object) -> None:
        self._png = png

    def _repr_png_(self) -> object:
        return self._png


@pytest.mark.requirement("Y SP-006")
@pytest.mark.parametrize(
    "value",
    [
        Image.new("RGB", (2, 2)),
        Figure(),
        Shown(picture_bytes("PNG")),
        Shown((picture_bytes("PNG"), {"width": 2})),
        Shown(base64.encodebytes(picture_bytes("PNG")).decode()),
    ],
    ids=["pil", "matplotlib", "bytes", "with metadata", "base64"],
)
def test_what_shows_as_an_image_becomes_one(value: object) -> None:
    image = ImageContent.from_display(value)
    assert image.mime_type == "image/png"
    assert base64.b64decode(image.data).startswith(b"\x89PNG")


@pytest.mark.parametrize("value", [3, "text", Shown(None), Image.Image, pd.DataFrame()], ids=lambda v: type(v).__name__)
def test_what_shows_as_no_image_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="shows as no image"):
        ImageContent.from_display(value)


@pytest.mark.requirement("A SPEC-1.4")
def test_reprs_leave_out_image_data_and_signatures() -> None:
    shown = repr([ImageContent(data=PNG, mime_type="image/png"), ReasoningContent("hm", signature="opaque")])
    assert PNG not in shown
    assert "opaque" not in shown


@pytest.mark.requirement("Y SP-003")
def test_a_call_without_an_id_gets_one() -> None:
    first, second = ToolCall(name="f"), ToolCall(id="", name="f")
    assert first.id.startswith("call_")
    assert second.id.startswith("call_")
    assert first.id != second.id


@pytest.mark.requirement("Y SP-003")
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("{}", "valid dictionary"),
        ([1], "valid dictionary"),
        (None, "valid dictionary"),
        ({"a": object()}, "a object is no JSON value"),
        ({"a": {1, 2}}, "a set is no JSON value"),
        ({"a": {1: 2}}, "keys of a JSON object are strings"),
    ],
)
def test_arguments_that_are_no_json_object_are_refused(arguments: object, why: str) -> None:
    text = refused(lambda: ToolCall(name="f", arguments=cast("dict[str, Any]", arguments)))
    assert text.startswith("arguments: ")
    assert why in text


@pytest.mark.requirement("Y SP-003")
def test_arguments_that_are_nested_without_end_are_refused() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    assert f"nested more than {MAX_DEPTH} levels" in refused(lambda: ToolCall(name="f", arguments=endless))


@pytest.mark.requirement("Y SP-003")
def test_a_call_keeps_its_own_copy_of_the_arguments() -> None:
    given = {"list": [1], "pair": (1, 2)}
    call = ToolCall(name="f", arguments=given)
    cast("list[int]", given["list"]).append(2)
    assert call.arguments == {"list": [1], "pair": [1, 2]}


# --- Messages with defaults --------------------------------------------------------------------


@pytest.mark.requirement("Y SP-001", "A SPEC-2.2")
def test_a_user_message_is_built_of_a_string() -> None:
    before = now()
    message = UserMessage("hi")
    assert message.role == "user"
    assert message.content == (TextContent("hi"),)
    assert message.text == "hi"
    assert before <= message.timestamp <= now()


@pytest.mark.requirement("Y SP-001", "A SPEC-2.2")
def test_user_content_is_strings_blocks_and_mappings_mixed() -> None:
    image = ImageContent(data=PNG, mime_type="image/png")
    message = UserMessage(["see", image, {"type": "text", "text": "this"}, ""])
    assert message.content == (TextContent("see"), image, TextContent("this"))
    assert UserMessage(image).content == (image,)
    assert UserMessage("").content == UserMessage().content == ()


@pytest.mark.requirement("Y SP-002", "A SPEC-2.3")
def test_an_answer_has_defaults_for_all_its_fields() -> None:
    assert AssistantMessage(timestamp=MOMENT).model_dump() == {
        "role": "assistant",
        "content": (),
        "api": "",
        "provider": "",
        "model": "",
        "usage": None,
        "stop_reason": "end_turn",
        "raw_stop_reason": None,
        "thinking_sent": None,
        "error_message": None,
        "timestamp": MOMENT,
    }


@pytest.mark.requirement("Y SP-002", "A SPEC-2.3")
def test_the_views_of_an_answer_read_its_content() -> None:
    first, second = ToolCall(id="a", name="f"), ToolCall(id="b", name="g")
    message = AssistantToolCallMessage(
        [ReasoningContent("think "), "one ", first, ReasoningContent("more"), "two", second]
    )
    assert message.text == "one two"
    assert message.reasoning == "think more"
    assert message.tool_calls == (first, second)


@pytest.mark.requirement("Y SP-003", "A SPEC-2.3")
def test_tool_calls_come_after_the_content() -> None:
    call = ToolCall(id="a", name="f")
    message = AssistantToolCallMessage("see", tool_calls=[call, {"type": "function", "id": "b", "name": "g"}])
    assert [block.type for block in message.content] == ["text", "function", "function"]
    assert message.stop_reason == "tool_calls"
    assert isinstance(message, AssistantMessage)


@pytest.mark.requirement("Y SP-003", "A SPEC-2.3")
def test_repeated_call_ids_are_replaced() -> None:
    message = AssistantToolCallMessage(tool_calls=[ToolCall(id="a", name=name) for name in "fgh"])
    ids = [call.id for call in message.tool_calls]
    assert ids[0] == "a"
    assert len(set(ids)) == 3
    assert [call.name for call in message.tool_calls] == ["f", "g", "h"]


@pytest.mark.requirement("Y SP-004", "A SPEC-2.4")
def test_a_result_has_defaults_for_what_need_not_be_said() -> None:
    message = result("7", timestamp=MOMENT)
    assert message.model_dump() == {
        "role": "toolResult",
        "tool_call_id": "a",
        "tool_name": "f",
        "content": ({"type": "text", "text": "7"},),
        "details": None,
        "usage": None,
        "added_tool_names": None,
        "is_error": False,
        "timestamp": MOMENT,
    }
    assert message.text == "7"


def test_a_note_keeps_any_data() -> None:
    frame = pd.DataFrame({"a": [1]})
    assert CustomMessage(kind="chart", data=frame).data is frame


# --- What is refused ---------------------------------------------------------------------------

CALL = ToolCall(id="a", name="f")


BAD: list[tuple[type[BaseModel], dict[str, Any], str]] = [
    (UserMessage, {"content": 5}, "content"),
    (UserMessage, {"content": None}, "content"),
    (UserMessage, {"content": b"x"}, "content"),
    (UserMessage, {"content": [ReasoningContent("x")]}, "content.0"),
    (UserMessage, {"content": [5]}, "content.0"),
    (UserMessage, {"content": [{"type": "video"}]}, "content.0"),
    (UserMessage, {"content": [{"type": "text", "text": ""}]}, "content.0.text.text"),
    (UserMessage, {"role": "assistant"}, "role"),
    (UserMessage, {"extra": 1}, "extra"),
    (AssistantMessage, {"stop_reason": "stop"}, "stop_reason"),
    (AssistantMessage, {"usage": 5}, "usage"),
    (AssistantMessage, {"usage": {"input_tokens": -1}}, "usage.input_tokens"),
    (AssistantMessage, {"content": [CALL]}, "content"),
    (AssistantMessage, {"tool_calls": [CALL]}, "tool_calls"),
    (AssistantToolCallMessage, {"content": "x"}, "content"),
    (AssistantToolCallMessage, {"content": 5, "tool_calls": [CALL]}, "content"),
    (AssistantToolCallMessage, {"tool_calls": [{"type": "function", "id": "a"}]}, "content.0.function.name"),
    (ToolResultMessage, {"tool_name": "f"}, "tool_call_id"),
    (ToolResultMessage, {"tool_call_id": "a"}, "tool_name"),
    (ToolResultMessage, {"tool_call_id": "a", "tool_name": "f", "content": [CALL]}, "content.0"),
    (ToolResultMessage, {"tool_call_id": "a", "tool_name": "f", "is_error": "perhaps"}, "is_error"),
    (CustomMessage, {"data": 1}, "kind"),
    (CustomMessage, {"kind": ""}, "kind"),
]


@pytest.mark.requirement("Y SP-001", "Y SP-002", "Y SP-003", "Y SP-004", "A SPEC-2.2", "A SPEC-2.3", "A SPEC-2.4")
@pytest.mark.parametrize(("kind", "fields", "field"), BAD)
def test_a_bad_value_is_refused_by_the_name_of_its_field(
    kind: type[BaseModel], fields: dict[str, Any], field: str
) -> None:
    assert f"{field}: " in refused(lambda: kind(**fields))


@pytest.mark.requirement("Y SP-003")
@pytest.mark.parametrize("calls", [None, 5, "f", {"a": 1}])
def test_tool_calls_that_are_no_list_are_refused_by_name(calls: Any) -> None:
    assert "tool_calls is a list of calls, not" in refused(lambda: AssistantToolCallMessage(tool_calls=calls))


@pytest.mark.requirement("Y SP-001", "A SPEC-2.2")
@pytest.mark.parametrize(
    "timestamp",
    [
        0, -1, 1.5, True, "2026-11-30T00:00:00Z", "17", None, float("nan"), float("inf"), 10**30,
        MOMENT.replace(tzinfo=None), datetime(1969, 12, 31, tzinfo=UTC), datetime.min.replace(tzinfo=UTC),
    ],
    ids=str,
)  # fmt: skip
def test_a_timestamp_without_a_meaning_is_refused(timestamp: object) -> None:
    text = refused(lambda: UserMessage("x", timestamp=timestamp))
    assert text.startswith("timestamp: ")
    assert "timestamp" in text.removeprefix("timestamp: ")


@pytest.mark.requirement("Y SP-001", "A SPEC-2.2")
def test_a_timestamp_is_a_datetime_in_python_and_milliseconds_in_json() -> None:
    message = UserMessage("x", timestamp=MOMENT_MS)
    assert message.timestamp == MOMENT
    assert message.timestamp.tzinfo is UTC
    assert dump_message(message)["timestamp"] == MOMENT_MS
    assert UserMessage("x", timestamp=float(MOMENT_MS)).timestamp == MOMENT


@pytest.mark.requirement("Y SP-001")
@given(timestamps)
def test_any_moment_comes_back_from_json(moment: datetime) -> None:
    stamp = dump_message(UserMessage("x", timestamp=moment))["timestamp"]
    assert isinstance(stamp, int)
    assert stamp > 0
    assert load_message({"role": "user", "timestamp": stamp}).timestamp == moment


@pytest.mark.requirement("Y SP-001")
def test_a_timestamp_keeps_its_zone_and_drops_its_microseconds() -> None:
    zone = timezone(timedelta(hours=-9, minutes=-30))
    message = UserMessage("x", timestamp=MOMENT.astimezone(zone).replace(microsecond=123999))
    assert message.timestamp == MOMENT
    assert message.timestamp.tzinfo is zone


@pytest.mark.requirement("Y SP-001", "Y SD-006")
def test_messages_are_immutable() -> None:
    message = UserMessage("x")
    with pytest.raises(ValidationError, match="frozen"):
        setattr(message, "content", ())  # noqa: B010 - pyright knows that it cannot be set
    with pytest.raises(ValidationError, match="frozen"):
        setattr(message.content[0], "text", "y")  # noqa: B010 - pyright knows that it cannot be set


def annotations_in(annotation: Any) -> set[Any]:
    """The types that stand in an annotation."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    arguments = get_args(annotation)
    if not arguments:
        return {annotation}
    return {each for argument in arguments for each in annotations_in(argument)}


@pytest.mark.requirement("Y SD-006", "A SPEC-1.4")
def test_no_dicts_stand_in_messages_but_a_calls_arguments() -> None:
    models = [*by_type, TextContent, ImageContent, ReasoningContent, ToolCall, Usage, Cost]
    loose = {
        f"{model.__name__}.{name}"
        for model in models
        for name, field in cast("type[BaseModel]", model).model_fields.items()
        if {get_origin(each) or each for each in annotations_in(field.annotation)} & {dict, Any}
        or (get_origin(field.annotation) is dict)
    }
    assert loose == {"ToolCall.arguments", "ToolResultMessage.details", "CustomMessage.data"}


def test_the_strategies_know_every_type_of_message() -> None:
    assert set(by_type) == annotations_in(Message)


@pytest.mark.parametrize("reason", get_args(StopReason))
@pytest.mark.requirement("A SPEC-2.3")
def test_every_stop_reason_is_taken(reason: StopReason) -> None:
    assert AssistantMessage("x", stop_reason=reason).stop_reason == reason


# --- JSON --------------------------------------------------------------------------------------


@pytest.mark.requirement("Y SP-001", "Y SP-002", "Y SP-003", "Y SP-004", "A SPEC-2.2", "A SPEC-2.3", "A SPEC-2.4")
@given(messages)
def test_every_message_comes_back_from_its_json_form(message: Message) -> None:
    form = dump_message(message)
    assert load_message(form) == message
    assert type(load_message(form)) is type(message)


@pytest.mark.requirement("Y SP-001", "Y SP-002", "Y SP-003", "Y SP-004")
@given(messages)
def test_every_message_comes_back_from_json_text_in_utf8(message: Message) -> None:
    text = json.dumps(dump_message(message), ensure_ascii=False, allow_nan=False)
    assert load_message(text) == message
    assert load_message(text.encode()) == message


@pytest.mark.requirement("Y SP-003")
def test_none_in_arguments_survives_the_round_trip() -> None:
    call = ToolCall(id="a", name="f", arguments={"x": None, "y": [None, {"z": None}], "ü": "☃"})
    message = AssistantToolCallMessage(tool_calls=[call])
    loaded = load_message(json.dumps(dump_message(message)))
    assert cast("AssistantToolCallMessage", loaded).tool_calls[0].arguments == call.arguments


@pytest.mark.requirement("Y SP-001")
def test_the_json_form_is_snake_case_and_without_nothings() -> None:
    message = result("x", timestamp=MOMENT)
    assert dump_message(message) == {
        "role": "toolResult",
        "tool_call_id": "a",
        "tool_name": "f",
        "content": [{"type": "text", "text": "x"}],
        "is_error": False,
        "timestamp": MOMENT_MS,
    }


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def cyclic() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def deep() -> list[Any]:
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    return nested


@pytest.mark.requirement("Y SP-004", "A SPEC-2.4")
@pytest.mark.parametrize(
    ("details", "shown"),
    [
        (float("nan"), "NaN"),
        ({"a": float("inf")}, {"a": "Infinity"}),
        (b"\xff\x00", "_wA="),
        ({"a": "\ud800"}, {"a": "\ufffd"}),
        ({"\ud83d\ude00": 1, "n": float("nan")}, {"\U0001f600": 1, "n": "NaN"}),
        (3 + 4j, "3+4j"),
        (Cost(input=1.0), {"input": 1.0, "output": 0.0, "cache_read": 0.0, "cache_write": 0.0, "total": 0.0}),
        (Hostile(), "a Hostile whose repr fails"),
        ([Hostile()], ["a Hostile whose repr fails"]),
        (cyclic(), "[[...]]"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_details_that_json_cannot_hold_are_shown_another_way(details: object, shown: object) -> None:
    message = result("x", details=details)
    form = dump_message(message)
    assert form["details"] == shown
    assert message.details is details
    load_message(json.dumps(form, allow_nan=False, ensure_ascii=False).encode())


@pytest.mark.requirement("Y SP-004")
@pytest.mark.parametrize(
    "value", [deep(), pd.DataFrame({"a": [1]}), object(), Hostile, os, 10**5000], ids=lambda v: type(v).__name__
)
def test_anything_has_a_json_form(value: object) -> None:
    json.dumps(json_form(value), allow_nan=False, ensure_ascii=False).encode()
    json.dumps(json_form({"in": [value]}), allow_nan=False, ensure_ascii=False).encode()


@given(wild_text)
@settings(max_examples=500)
def test_clean_text_can_be_encoded_and_stays_as_it_is_where_it_could_before(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    try:
        text.encode()
    except UnicodeEncodeError:
        assert cleaned != text
    else:
        assert cleaned == text


def test_a_pair_of_surrogates_becomes_its_character() -> None:
    assert clean_text("a\ud83d\ude00b\ud83d") == "a\U0001f600b\ufffd"


def test_arguments_may_be_as_deep_as_the_limit() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert read_json(value) == value
    with pytest.raises(ValueError, match="nested more than"):
        read_json([value])


@pytest.mark.requirement("Y SP-001", "Y SP-002", "Y SP-003")
def test_lone_surrogates_in_text_are_replaced_everywhere() -> None:
    message = AssistantToolCallMessage(
        ["\ud800", ReasoningContent("\ud800", signature="\ud800")],
        tool_calls=[ToolCall(id="\ud800", name="\ud800", arguments={"\ud800": ["\ud800"]}, raw_arguments="\ud800")],
        error_message="\ud800",
        raw_stop_reason="\ud800",
        thinking_sent="\ud800",
    )
    assert "\ud800" not in json.dumps(dump_message(message), ensure_ascii=False)
    assert message.text == "\ufffd"


NO_MESSAGES: list[Any] = [
    {},
    {"role": "system"},
    {"role": ["user"]},
    {"role": None},
    {"role": 5},
    [],
    None,
    5,
    "[]",
    '{"role": "tool"}',
    "no json",
    b"\xff",
    {"role": "assistant", "content": 5},
    {"role": "assistant", "content": None},
    {"role": "assistant", "tool_calls": 5},
    {"role": "assistant", "content": {"type": "function"}},
    {"role": "user", "content": [{}]},
    {"role": "toolResult"},
]


@pytest.mark.requirement("Y SP-001", "A SPEC-2.2")
@pytest.mark.parametrize("data", NO_MESSAGES, ids=repr)
def test_what_is_no_message_is_refused(data: Any) -> None:
    with pytest.raises(ValidationError):
        load_message(data)


def test_a_wrong_role_is_told_with_the_right_ones() -> None:
    with pytest.raises(ValidationError, match="a message's role is user, assistant, toolResult or custom"):
        load_message({"role": "tool", "content": "x"})


def test_an_answer_is_read_as_the_type_that_its_calls_make_it() -> None:
    call = {"type": "function", "id": "a", "name": "f"}
    assert type(load_message({"role": "assistant", "content": [call]})) is AssistantToolCallMessage
    assert type(load_message({"role": "assistant", "tool_calls": [call]})) is AssistantToolCallMessage
    assert type(load_message({"role": "assistant", "content": CALL})) is AssistantToolCallMessage
    assert type(load_message({"role": "assistant", "content": "f"})) is AssistantMessage


def test_new_ids_differ() -> None:
    assert len({new_id("x") for _ in range(1000)}) == 1000
    assert new_id("call").startswith("call_")
