from __future__ import annotations

import asyncio
import base64
import gc
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_client.asking import (
    NAME_SCHEMA,
    SAMPLE,
    VISIT,
    Person,
    allow,
    allow_session,
    elicit,
    handler_of,
    refused,
    running,
    sample,
    say_ada,
    say_yes,
)

from yiemagent_nb.core.agent import Agent
from yiemagent_nb.core.errors import InvalidParametersError, McpError, RateLimitedError
from yiemagent_nb.core.events import ApprovalRequested, QuestionAsked
from yiemagent_nb.core.json_schema import compile_schema
from yiemagent_nb.core.limits import Limits
from yiemagent_nb.core.messages import AssistantMessage, ImageContent, TextContent
from yiemagent_nb.core.models import LlmModel, ModelCost, Usage
from yiemagent_nb.core.questions import Answer
from yiemagent_nb.mcp.elicitation import Form
from yiemagent_nb.mcp.requests import RequestHandler, read_roots
from yiemagent_nb.testing import Scripted, assistant

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n0000").decode()


# --- By functions ------------------------------------------------------------------------------

SAMPLERS: list[Callable[[dict[str, Any]], Any]] = [
    lambda _: "42",
    lambda _: AssistantMessage("42"),
    lambda _: {"content": {"type": "text", "text": "42"}},
    lambda _: {"content": "42"},
]


@pytest.mark.parametrize("function", SAMPLERS)
async def test_a_function_answers_what_a_model_is_asked(function: Any) -> None:
    result = await sample(RequestHandler("maths", on_sampling=function))
    assert result["role"] == "assistant"
    assert result["content"] == {"type": "text", "text": "42"}
    assert result["model"]


async def test_a_function_sees_all_that_the_server_sent() -> None:
    seen: list[Any] = []

    async def answer(params: dict[str, Any]) -> str:
        seen.append(params)
        return "42"

    await sample(RequestHandler("maths", on_sampling=answer), temperature=0.5, includeContext="none")
    assert seen == [{**SAMPLE, "temperature": 0.5, "includeContext": "none"}]


async def test_a_result_of_a_function_s_own_goes_to_the_server_as_it_is() -> None:
    own = {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "m", "stopReason": "endTurn"}
    assert await sample(RequestHandler("maths", on_sampling=lambda _: own)) == own


async def test_a_sync_function_may_block_without_stopping_the_loop() -> None:
    release = threading.Event()
    task = asyncio.create_task(sample(RequestHandler("maths", on_sampling=lambda _: str(release.wait(5)))))
    await asyncio.sleep(0)
    release.set()
    async with asyncio.timeout(5):
        assert (await task)["content"]["text"] == "True"


async def test_a_function_that_gives_nothing_rejects_the_request() -> None:
    with refused(-1, "rejected"):
        await sample(RequestHandler("maths", on_sampling=lambda _: None))


async def test_what_goes_wrong_in_a_function_is_told_here_and_not_to_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: dict[str, Any]) -> str:
        raise RuntimeError("the secret is 1234")

    with caplog.at_level(logging.WARNING, "yiemagent_nb"):
        with pytest.raises(McpError) as caught:
            await sample(RequestHandler("maths", on_sampling=fail))
        with pytest.raises(McpError, match="failed to answer"):
            await sample(RequestHandler("maths", on_sampling=lambda _: 42))  # pyright: ignore[reportArgumentType] - wrong on purpose
    assert caught.value.rpc_code == -32603
    assert "1234" not in str(caught.value)
    assert "RuntimeError: the secret is 1234" in caplog.text
    assert "on_sampling returned 42; expected a text" in caplog.text


async def test_a_function_answers_a_form() -> None:
    seen: list[Any] = []

    def answer(message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        seen.append((message, schema))
        return {"name": "Ada"}

    handler = RequestHandler("greeter", on_elicitation=answer)
    assert await elicit(handler) == {"action": "accept", "content": {"name": "Ada"}}
    assert seen == [("Who are you?", NAME_SCHEMA)]


def answering(answer: Any) -> Callable[[str, Any], Any]:
    return lambda _message, _schema: answer


async def test_a_form_without_a_mode_is_one_too() -> None:
    handler = RequestHandler("greeter", on_elicitation=answering({"name": "Ada"}))
    assert (await elicit(handler, {"message": "Who?", "requestedSchema": NAME_SCHEMA}))["action"] == "accept"


@pytest.mark.parametrize(
    ("answer", "action"),
    [(None, "decline"), (False, "decline"), (Answer("decline"), "decline"), (Answer("cancel"), "cancel")],
)
async def test_a_function_may_decline_or_cancel(answer: Any, action: str) -> None:
    handler = RequestHandler("greeter", on_elicitation=answering(answer))
    assert await elicit(handler) == {"action": action}


@pytest.mark.parametrize("answer", [{}, {"name": 3.5}, {"name": "Ada", "age": 3}, True, "Ada", 3], ids=repr)
async def test_an_answer_that_does_not_fit_is_told_here_and_never_sent(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler = RequestHandler("greeter", on_elicitation=answering(answer))
    with caplog.at_level(logging.WARNING, "yiemagent_nb"):
        assert await elicit(handler) == {"action": "cancel"}
    assert "on_elicitation of greeter" in caplog.text


async def test_a_function_is_given_the_address_and_the_server_s_name_where_it_asks_for_them() -> None:
    async def answer(message: str, schema: Any, *, url: str, source: str) -> bool:
        return (message, schema, url, source) == ("Sign in.", None, "https://example.org/in", "bank")

    assert await elicit(RequestHandler("bank", on_elicitation=answer), VISIT) == {"action": "accept"}


async def test_a_function_that_knows_no_addresses_is_not_asked_to_visit_one() -> None:
    handler = RequestHandler("bank", on_elicitation=answering(Answer("accept")))
    assert await elicit(handler, VISIT) == {"action": "cancel"}


def test_what_cannot_be_called_is_no_function() -> None:
    with pytest.raises(InvalidParametersError, match="on_sampling must be a function or None"):
        RequestHandler("maths", on_sampling="42")  # pyright: ignore[reportArgumentType] - wrong on purpose


# --- Where nobody is there, and what is not understood ----------------------------------------


async def test_where_nobody_is_there_nothing_is_sampled_and_nobody_has_declined() -> None:
    handler = RequestHandler("maths")
    with refused(-1, "nobody is there"):
        await sample(handler)
    assert await elicit(handler) == {"action": "cancel"}
    assert await elicit(handler, VISIT) == {"action": "cancel"}
    assert await handler.handle("roots/list", {}) == {"roots": []}


async def test_an_unknown_method_is_refused_as_that() -> None:
    with refused(-32601, "does not answer"):
        await RequestHandler("maths").handle("tools/call", {})


BAD_SAMPLES: list[dict[str, Any]] = [
    {"messages": None},
    {"messages": []},
    {"messages": ["hi"]},
    {"messages": [{"role": "system", "content": {"type": "text", "text": "hi"}}]},
    {"messages": [{"role": "user", "content": "hi"}]},
    {"messages": [{"role": "user", "content": {"type": "text", "text": 3}}]},
    {"messages": [{"role": "user", "content": {"type": "image", "data": "?", "mimeType": "image/png"}}]},
    {"messages": [{"role": "user", "content": {"type": "image", "data": PIXEL, "mimeType": "text/html"}}]},
    {"messages": [{"role": "user", "content": {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"}}]},
    {"messages": [{"role": "user", "content": [{"type": "tool_result", "toolUseId": "1", "content": []}]}]},
    {"systemPrompt": 3},
    {"maxTokens": 0},
    {"maxTokens": "many"},
    {"maxTokens": True},
    {"temperature": -1},
    {"temperature": "hot"},
    {"stopSequences": [3]},
    {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
    {"toolChoice": {"mode": "required"}},
]


@pytest.mark.parametrize("changes", BAD_SAMPLES, ids=repr)
async def test_a_request_to_sample_that_is_not_understood_is_refused(changes: dict[str, Any]) -> None:
    with refused(-32602):
        await sample(RequestHandler("maths", on_sampling=lambda _: "42"), **changes)


BAD_FORMS: list[Any] = [
    None,
    "name",
    {"type": "string"},
    {"type": "object", "properties": {"name": {"type": "text"}}},
    {"type": "object", "properties": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}}},
    {"type": "object", "properties": {"people": {"type": "array", "items": {"type": "object"}}}},
    {"type": "object", "properties": {"table": {"type": "array", "items": {"type": "array"}}}},
    {"type": "object", "properties": {"list": {"type": "array"}}},
    {"type": "object", "properties": {"any": True}},
    {"type": "object", "properties": {"other": {"$ref": "#/$defs/Person"}}, "$defs": {"Person": {"type": "object"}}},
    {"type": "object", "properties": {"deep": {"anyOf": [{"anyOf": [{"anyOf": [{"anyOf": [{"type": "null"}]}]}]}]}}},
]
BAD_ELICITATIONS: list[dict[str, Any]] = [
    {"message": "Who?", "mode": "form", "requestedSchema": schema} for schema in BAD_FORMS
] + [
    {"mode": "form", "requestedSchema": NAME_SCHEMA},
    {"message": 3, "requestedSchema": NAME_SCHEMA},
    {"message": "Who?", "mode": "video"},
    {"message": "Who?", "mode": "url"},
    {"message": "Who?", "mode": "url", "url": "javascript:alert(1)"},
    {"message": "Who?", "mode": "url", "url": "file:///etc/passwd"},
    {"message": "Who?", "mode": "url", "url": "https://"},
    {"message": "Who?", "mode": "url", "url": "https://[oops"},
    {"message": "Who?", "mode": "url", "url": "https://example.org/\u202egpj.exe"},
]


@pytest.mark.parametrize("params", BAD_ELICITATIONS, ids=repr)
async def test_an_elicitation_that_is_not_understood_is_refused(params: dict[str, Any]) -> None:
    handler = RequestHandler("maths", on_elicitation=answering({"name": "Ada"}))
    with refused(-32602):
        await elicit(handler, params)


# --- Roots -------------------------------------------------------------------------------------


async def test_roots_are_given_as_addresses_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    roots: list[Any] = [tmp_path / "a b", "~/c", "d", "file:///e/f", {"uri": "file:///g", "name": "Gee"}]
    handler = RequestHandler("files", roots=roots)
    assert await handler.handle("roots/list", {}) == {
        "roots": [
            {"uri": f"file://{tmp_path}/a%20b", "name": "a b"},
            {"uri": f"file://{tmp_path}/c", "name": "c"},
            {"uri": f"file://{tmp_path}/d", "name": "d"},
            {"uri": "file:///e/f", "name": "f"},
            {"uri": "file:///g", "name": "Gee"},
        ]
    }


@pytest.mark.parametrize("root", ["", "https://example.org", 3, None, {}, {"uri": "http://x/y"}], ids=repr)
def test_what_is_no_root_is_refused(root: Any) -> None:
    with pytest.raises(InvalidParametersError, match="is no root"):
        read_roots([root])


def test_a_single_root_is_no_list_of_them() -> None:
    with pytest.raises(InvalidParametersError, match="roots is a list"):
        read_roots("/tmp")  # noqa: S108 - nothing is written there


# --- Forms -------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


def form(field: Mapping[str, Any], *, required: bool = False) -> Form:
    return Form({"type": "object", "properties": {"x": field}, "required": ["x"] if required else []})


TITLED = {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]}
LEGACY = {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}, "minItems": 1, "maxItems": 2}
SEVERAL_TITLED = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Alpha"}, {"const": "b", "title": "B"}]}}

FITTING: list[tuple[Any, Any, Any]] = [
    ({"type": "string"}, "text", "text"),
    ({"type": "string"}, 1000, "1000"),
    ({"type": "string", "minLength": 2, "maxLength": 3}, "abc", "abc"),
    ({"type": "string", "format": "email"}, "ada@example.org", "ada@example.org"),
    ({"type": "string", "format": "uri"}, "https://example.org/a?b", "https://example.org/a?b"),
    ({"type": "string", "format": "date"}, "2026-01-31", "2026-01-31"),
    ({"type": "string", "format": "date"}, date(2026, 1, 31), "2026-01-31"),
    ({"type": "string", "format": "date-time"}, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
    ({"type": "string", "format": "date-time"}, datetime(2026, 1, 31, tzinfo=UTC), "2026-01-31T00:00:00Z"),
    ({"type": "string", "format": "colour"}, "any", "any"),
    ({"type": "integer"}, 3, 3),
    ({"type": "integer"}, 3.0, 3),
    ({"type": "integer"}, " -3 ", -3),
    ({"type": "number"}, 3, 3),
    ({"type": "number"}, "3", 3),
    ({"type": "number"}, "2.5", 2.5),
    ({"type": "number", "minimum": 0, "maximum": 1}, 0.5, 0.5),
    ({"type": "boolean"}, True, True),
    ({"type": "boolean"}, "True", True),
    ({"type": "boolean"}, "false", False),
    ({"type": "string", "enum": ["red", "green"]}, "red", "red"),
    ({"type": "string", "enum": ["red", "green"]}, Colour.RED, "red"),
    (TITLED, "#f00", "#f00"),
    (TITLED, "Green", "#0f0"),
    (LEGACY, "Red", "r"),
    (LEGACY, "g", "g"),
    (SEVERAL, ["a", "c"], ["a", "c"]),
    (SEVERAL, ("b",), ["b"]),
    (SEVERAL, "b", ["b"]),
    (SEVERAL_TITLED, ["Alpha", "b"], ["a", "b"]),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 3),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
]


@pytest.mark.parametrize(("field", "given", "sent"), FITTING, ids=repr)
def test_an_answer_is_sent_in_the_type_of_its_field(field: Any, given: Any, sent: Any) -> None:
    read = form(field, required=True).read({"x": given})
    assert read == {"x": sent}
    assert type(read["x"]) is type(sent)


UNFITTING: list[tuple[Any, Any, str]] = [
    ({"type": "string"}, True, "x should be a string, got true"),
    ({"type": "string"}, [], "x should be a string"),
    ({"type": "string", "minLength": 2}, "a", "x should fit"),
    ({"type": "string", "format": "email"}, "ada", 'x should be an e-mail address, got "ada"'),
    ({"type": "string", "format": "uri"}, "example.org", "x should be an address with its scheme"),
    ({"type": "string", "format": "uri"}, "https://[oops", "x should be an address with its scheme"),
    ({"type": "string", "format": "date"}, "31.1.2026", "x should be a date such as"),
    ({"type": "string", "format": "date"}, "2026-02-30", "x should be a date such as"),
    ({"type": "string", "format": "date"}, "20260131", "x should be a date such as"),
    ({"type": "string", "format": "date-time"}, "2026-01-31T12:00:00", "x should be a date and a time with its zone"),
    ({"type": "integer"}, "three", "x should be an integer"),
    ({"type": "integer"}, 3.5, "x should be an integer"),
    ({"type": "integer"}, True, "x should be an integer"),
    ({"type": "number"}, "", "x should be a number"),
    ({"type": "number"}, float("nan"), "x should be a number"),
    ({"type": "boolean"}, "yes", "x should be a boolean"),
    ({"type": "boolean"}, 1, "x should be a boolean"),
    ({"type": "string", "enum": ["red"]}, "blue", "x should be one of"),
    (TITLED, "Blue", "x should fit"),
    (SEVERAL, [], "x should fit"),
    (SEVERAL, ["a", "b", "c"], "x should fit"),
    (SEVERAL, ["d"], r"x\[0\] should be one of"),
    ({"type": "string"}, None, "x is missing"),
    ({}, {"a": 1}, "x should be a plain value"),
]


@pytest.mark.parametrize(("field", "given", "words"), UNFITTING, ids=repr)
def test_an_answer_that_does_not_fit_is_refused_in_a_sentence(field: Any, given: Any, words: str) -> None:
    with pytest.raises(InvalidParametersError, match=f"The answer does not fit: {words}"):
        form(field, required=True).read({"x": given})


def test_an_answer_to_what_was_not_asked_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidParametersError, match="nmae is not asked for; asked for are name"):
        Form(NAME_SCHEMA).read({"name": "Ada", "nmae": "Ada"})


def test_a_title_that_two_choices_have_stands_for_none_of_them() -> None:
    field = {"type": "string", "oneOf": [{"const": "a", "title": "Same"}, {"const": "b", "title": "Same"}]}
    with pytest.raises(InvalidParametersError, match="does not fit"):
        form(field).read({"x": "Same"})


DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 36},
        "score": {"type": "number", "default": 0.5},
        "member": {"type": "boolean", "default": True},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "green"},
        "letters": {**SEVERAL, "default": ["a", "b"]},
        "note": {"type": "string"},
    },
    "required": ["name", "age"],
}


def test_a_default_is_matched_against_its_pattern_in_time_that_does_not_run_away() -> None:
    code = (
        "from yiemagent_nb.mcp.elicitation import Form\n"
        "field = {'type': 'string', 'pattern': '^(a+)+$'}\n"
        "fields = {'good': {**field, 'default': 'aaa'}, 'bad': {**field, 'default': 'a' * 60 + '!'}}\n"
        "form = Form({'type': 'object', 'properties': fields})\n"
        "assert form.read({}) == {'good': 'aaa'}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


def test_a_form_that_no_person_can_fill_in_is_refused() -> None:
    fields = {f"f{number}": {"type": "string", "default": "x"} for number in range(201)}
    with pytest.raises(InvalidParametersError, match="more than 200 fields"):
        Form({"type": "object", "properties": fields})
    fields.popitem()
    assert len(Form({"type": "object", "properties": fields}).read({})) == 200


async def test_fields_left_out_get_the_server_s_defaults() -> None:
    handler = RequestHandler("form", on_elicitation=answering({"age": 3, "score": None}))
    params = {"message": "Fill in.", "requestedSchema": DEFAULTS}
    assert (await elicit(handler, params))["content"] == {
        "name": "Ada",
        "age": 3,
        "score": 0.5,
        "member": True,
        "colour": "green",
        "letters": ["a", "b"],
    }


def test_who_answers_need_not_give_what_has_a_default() -> None:
    assert Form(DEFAULTS).schema["required"] == []
    assert Form(NAME_SCHEMA).schema["required"] == ["name"]


@pytest.mark.parametrize(
    "field",
    [
        {"type": "integer", "default": "many"},
        {"type": "string", "enum": ["a"], "default": "b"},
        {"type": "string", "format": "email", "default": "nobody"},
        {"type": "string", "default": None},
    ],
    ids=repr,
)
def test_a_default_that_does_not_fit_its_own_field_is_none(field: Any) -> None:
    assert form(field).read({}) == {}
    with pytest.raises(InvalidParametersError, match="x is missing"):
        form(field, required=True).read({})


words = st.text(max_size=6)
choices = st.lists(words, min_size=1, max_size=4, unique=True)
formats = st.sampled_from(["email", "uri", "date", "date-time"])
small, few = st.integers(-9, 9), st.integers(0, 4)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-20, 20),
    st.floats(),
    words,
    st.lists(words, max_size=3),
    st.binary(max_size=3),
)


@st.composite
def plain_fields(draw: st.DrawFn) -> dict[str, Any]:
    several = draw(choices)
    low, more = draw(small), draw(few)
    kinds: list[dict[str, Any]] = [
        {"type": "string", "minLength": more, "maxLength": more + draw(few)},
        {"type": "string", "format": draw(formats)},
        {"type": "integer", "minimum": low, "maximum": low + more},
        {"type": "number", "minimum": low, "maximum": low + more},
        {"type": "boolean"},
        {"type": "string", "enum": several},
        {"type": "string", "oneOf": [{"const": item, "title": item * 2} for item in several]},
        {"type": "array", "items": {"type": "string", "enum": several}, "maxItems": 2},
        {"type": "array", "items": {"anyOf": [{"const": item, "title": "t"} for item in several]}},
    ]
    field = draw(st.sampled_from(kinds))
    return {**field, "default": draw(values)} if draw(st.booleans()) else field


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    fields = draw(st.dictionaries(words, plain_fields(), max_size=4))
    required = [name for name in fields if draw(st.booleans())]
    return {"type": "object", "properties": fields, "required": required}


@settings(max_examples=300)
@given(schema=schemas(), data=st.data())
def test_whatever_is_answered_what_is_sent_fits_or_nothing_is_sent(schema: dict[str, Any], data: st.DataObject) -> None:
    fields: dict[str, Any] = schema["properties"]
    names = st.sampled_from(sorted(fields)) | words if fields else words
    try:
        sent = Form(schema).read(data.draw(st.dictionaries(names, values, max_size=4)))
    except InvalidParametersError:
        return
    assert compile_schema(schema)(sent) == []
    assert sent.keys() <= fields.keys()
    for value in sent.values():
        assert isinstance(value, str | int | float | bool) or all(isinstance(item, str) for item in value)


@settings(max_examples=300)
@given(schema=schemas(), data=st.data())
def test_what_fits_a_form_already_is_sent_as_it_is(schema: dict[str, Any], data: st.DataObject) -> None:
    fields: dict[str, Any] = schema["properties"]
    content = data.draw(st.fixed_dictionaries(dict.fromkeys(fields, values)))
    drawn = [*content.values(), *(field.get("default") for field in fields.values())]
    plain = all(not isinstance(value, bytes) and value == value for value in drawn)  # noqa: PLR0124 - no NaN
    if plain and not compile_schema(schema)(content) and not any("format" in field for field in fields.values()):
        assert Form(schema).read(content) == content


# --- Through an agent --------------------------------------------------------------------------


@pytest.mark.requirement("Y US-002")
async def test_an_agent_s_model_answers_after_a_person_s_word() -> None:
    backend = Scripted([assistant("42", model="tiny")])
    agent = Agent(backend, system_prompt="Be kind.", messages=["earlier"])
    person = Person(agent, allow)
    result = await sample(handler_of(agent), systemPrompt="Be brief.", temperature=0, stopSequences=["."])
    assert result == {
        "role": "assistant",
        "content": {"type": "text", "text": "42"},
        "model": "tiny",
        "stopReason": "endTurn",
    }
    (request,) = backend.requests
    assert [dict(message) for message in request.messages] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is 17 + 25?"},
    ]
    assert request.tools == ()
    assert {name: request.options[name] for name in ("max_tokens", "temperature", "stop")} == {
        "max_tokens": 100,
        "temperature": 0,
        "stop": ["."],
    }
    (asked,) = person.asked
    assert isinstance(asked, ApprovalRequested)
    assert (asked.source, asked.tool_name) == ("maths", "sampling/createMessage")
    assert asked.args["messages"] == SAMPLE["messages"]
    assert len(agent.messages) == 1, "nothing of it joins the conversation"
    assert person.events.types() == [], "nor is it told as an answer of the agent"


async def test_the_agent_s_own_options_count_where_the_server_says_nothing() -> None:
    backend = Scripted(["42"])
    agent = Agent(backend, options={"seed": 7, "max_tokens": 5000})
    Person(agent, allow)
    await sample(handler_of(agent))
    assert backend.requests[0].options["seed"] == 7
    assert backend.requests[0].options["max_tokens"] == 100


async def test_images_go_to_the_model_and_come_from_it() -> None:
    image = ImageContent(data=PIXEL, mime_type="image/png")
    backend = Scripted([AssistantMessage([image])])
    agent = Agent(backend)
    Person(agent, allow)
    block = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Redder!"}, block]},
        {"role": "assistant", "content": {"type": "text", "text": "Which red?"}},
        {"role": "user", "content": {"type": "text", "text": "Any."}},
    ]
    assert (await sample(handler_of(agent), messages=messages))["content"] == block
    sent = backend.requests[0].messages
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[0]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"


async def test_a_person_is_shown_no_megabytes_of_an_image_and_the_model_gets_them_all() -> None:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(10_000)).decode()
    backend = Scripted(["a pixel"])
    agent = Agent(backend)

    def edit(agent: Agent, request: ApprovalRequested) -> None:
        assert len(repr(request)) < 1_500
        agent.approvals.resolve(request.request_id, "allow_edited", arguments={**request.args, "systemPrompt": "Kind!"})

    Person(agent, edit)
    await sample(
        handler_of(agent),
        messages=[{"role": "user", "content": {"type": "image", "data": data, "mimeType": "image/png"}}],
    )
    system, user = backend.requests[0].messages
    assert system["content"] == "Kind!"
    assert user["content"][0]["image_url"]["url"].endswith(data)


async def test_a_person_may_reject_with_a_reason() -> None:
    backend = Scripted([])
    agent = Agent(backend)
    Person(agent, lambda agent, request: agent.approvals.resolve(request.request_id, "deny", "too dear"))
    with refused(-1, "The person rejected the request: too dear"):
        await sample(handler_of(agent))
    assert backend.requests == []


async def test_what_is_allowed_for_the_session_is_allowed_to_one_server() -> None:
    backend = Scripted(["1", "2", "3"])
    async with running(backend) as agent:
        person = Person(agent, allow_session)
        for server in ("maths", "maths", "other"):
            await sample(handler_of(agent, name=server))
    assert [request.source for request in person.asked] == ["maths", "other"]


async def test_without_a_person_only_what_was_allowed_for_the_session_is_sampled() -> None:
    async with running(Scripted(["1", "2"])) as agent:
        handler = handler_of(agent)
        with refused(-1, "nobody is there"):
            await sample(handler)
        person = Person(agent, allow_session)
        assert (await sample(handler))["content"]["text"] == "1"
        person.leave()
        assert (await sample(handler))["content"]["text"] == "2"


async def test_a_backend_s_error_reaches_the_server_in_its_words_and_nobody_else() -> None:
    agent = Agent(Scripted([ValueError("no such model")]))
    person = Person(agent, allow)
    with refused(-32603, "no such model"):
        await sample(handler_of(agent))
    assert person.events.types(everything=True) == ["ApprovalRequested", "ApprovalResolved"]
    assert agent.state.error_message is None


STOPS: list[tuple[Any, str]] = [("end_turn", "endTurn"), ("length", "maxTokens"), ("content_filter", "contentFilter")]


@pytest.mark.parametrize(("reason", "word"), STOPS)
async def test_why_a_model_stopped_is_told_in_mcp_s_words(reason: Any, word: str) -> None:
    agent = Agent(Scripted([assistant("4", stop_reason=reason)]))
    Person(agent, allow)
    result = await sample(handler_of(agent))
    assert (result["stopReason"], result["model"]) == (word, "scripted")


async def test_what_a_server_has_the_model_say_counts_as_spent() -> None:
    model = LlmModel(id="dear", cost=ModelCost(input=0.5))
    backend = Scripted([assistant("1", usage=Usage(input_tokens=1_000_000)), "2"])
    agent = Agent(backend, model=model, limits=Limits(max_cost=0.5))
    Person(agent, allow)
    await sample(handler_of(agent))
    with refused(-32603, r"spent \$0\.5000, which reaches Limits\.max_cost"):
        await sample(handler_of(agent))


async def test_what_is_spent_in_mid_run_counts_too() -> None:
    backend = Scripted([])
    agent = Agent(backend, model=LlmModel(id="dear", cost=ModelCost(input=0.5)), limits=Limits(max_cost=1))
    half = assistant("half", usage=Usage(input_tokens=1_000_000))

    async def ask_aside(_: Any) -> Any:
        await agent.complete(["aside"])
        return half

    backend.answers = (ask_aside, half, "never asked")
    await agent.prompt("hi")
    with pytest.raises(RateLimitedError, match=r"spent \$1\.0000"):
        await agent.complete(["once more"])


@pytest.mark.requirement("Y US-002")
async def test_a_person_answers_a_server_s_form() -> None:
    agent = Agent(Scripted([]))
    person = Person(agent, say_ada)
    assert await elicit(handler_of(agent, name="greeter")) == {"action": "accept", "content": {"name": "Ada"}}
    (question,) = person.asked
    assert isinstance(question, QuestionAsked)
    assert (question.source, question.message, question.schema) == ("greeter", "Who are you?", NAME_SCHEMA)


async def test_an_answer_that_does_not_fit_is_refused_where_it_was_given_and_the_question_waits() -> None:
    agent = Agent(Scripted([]))
    told: list[str] = []

    def answer(agent: Agent, question: QuestionAsked) -> None:
        try:
            agent.questions.answer(question.request_id, {"mail": "ada"})
        except InvalidParametersError as error:
            told.append(error.message)
        agent.questions.answer(question.request_id, {"mail": "ada@example.org", "age": "36"})

    Person(agent, answer)
    fields = {
        "mail": {"type": "string", "format": "email"},
        "age": {"type": "integer"},
        "lang": {"type": "string", "default": "en"},
    }
    params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": fields, "required": ["lang"]}}
    assert (await elicit(handler_of(agent), params))["content"] == {
        "mail": "ada@example.org",
        "age": 36,
        "lang": "en",
    }
    assert told == ['The answer does not fit: mail should be an e-mail address, got "ada".']


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_decline_or_put_a_form_away(action: str) -> None:
    agent = Agent(Scripted([]))
    Person(agent, lambda agent, question: getattr(agent.questions, action)(question.request_id))
    assert await elicit(handler_of(agent)) == {"action": action}


async def test_an_address_is_shown_to_the_person_and_never_opened() -> None:
    agent = Agent(Scripted([]))
    person = Person(agent, lambda agent, question: agent.questions.answer(question.request_id))
    assert await elicit(handler_of(agent), VISIT) == {"action": "accept"}
    (question,) = person.asked
    assert isinstance(question, QuestionAsked)
    assert (question.url, question.schema) == ("https://example.org/in", None)


async def test_where_nobody_hears_the_agent_a_form_is_cancelled() -> None:
    assert await elicit(handler_of(Agent(Scripted([])))) == {"action": "cancel"}


async def test_an_agent_that_is_gone_or_closed_answers_nothing() -> None:
    closed = Agent(Scripted([]))
    Person(closed, say_ada)
    handler = handler_of(closed, Agent(Scripted([])))
    gc.collect()
    await closed.shutdown()
    assert await elicit(handler) == {"action": "cancel"}
    with refused(-1):
        await sample(handler)


async def test_the_newest_agent_answers_unless_another_is_at_work() -> None:
    release = asyncio.Event()

    async def wait(_: Any) -> str:
        await release.wait()
        return "done"

    old, new = Agent(Scripted([wait])), Agent(Scripted([]))
    persons = [Person(agent, say_ada) for agent in (old, new)]
    handler = handler_of(old, new)
    await elicit(handler)
    assert [len(person.asked) for person in persons] == [0, 1]
    run = asyncio.create_task(old.prompt("hi"))
    while not old.is_running:  # noqa: ASYNC110 - the run begins within a few steps of the loop
        await asyncio.sleep(0)
    await elicit(handler)
    assert [len(person.asked) for person in persons] == [1, 1]
    release.set()
    await run


@pytest.mark.requirement("Y SP-022")
@pytest.mark.parametrize("ask", [sample, elicit])
async def test_an_abort_of_the_run_ends_what_the_server_asked(ask: Callable[..., Any]) -> None:
    agent = Agent(Scripted([lambda _: asyncio.Event().wait()]))
    Person(agent, lambda agent, _: agent.abort())
    run = asyncio.create_task(agent.prompt("hi"))
    while not agent.is_running:  # noqa: ASYNC110 - the run begins within a few steps of the loop
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        if ask is elicit:
            assert await ask(handler_of(agent)) == {"action": "cancel"}
        else:
            with refused(-1, "the run was aborted"):
                await ask(handler_of(agent))
        assert (await run).stop_reason == "aborted"


async def test_an_abort_stops_a_model_that_answers_a_server() -> None:
    asked = asyncio.Event()

    async def stuck(_: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(Scripted([stuck, stuck]))
    Person(agent, allow)
    run = asyncio.create_task(agent.prompt("hi"))
    await asked.wait()
    asked.clear()
    task = asyncio.create_task(sample(handler_of(agent)))
    await asked.wait()
    agent.abort()
    async with asyncio.timeout(5):
        with refused(-1, "stopped"):
            await task
        await run


@pytest.mark.parametrize("ask", [sample, elicit])
async def test_a_server_that_asks_no_more_leaves_nothing_waiting(ask: Callable[..., Any]) -> None:
    agent = Agent(Scripted([]))
    asked = threading.Event()
    Person(agent, lambda _agent, _event: asked.set())
    task = asyncio.create_task(ask(handler_of(agent)))
    await asyncio.to_thread(asked.wait, 5)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert agent.questions.pending == ()
    assert agent.approvals.pending == ()


async def test_an_agent_on_another_loop_answers_there() -> None:
    backend = Scripted(["42"])
    agent = Agent(backend, runtime="thread")
    Person(agent, say_yes)
    handler = handler_of(agent)
    async with asyncio.timeout(5):
        assert (await elicit(handler))["content"] == {"name": "Ada"}
        assert (await sample(handler))["content"]["text"] == "42"
    await agent.shutdown()


async def test_an_agent_completes_beside_its_conversation() -> None:
    backend = Scripted(["aside", "hello"])
    agent = Agent(backend)
    answer = await agent.complete(["Say something."], "Be brief.", max_tokens=9)
    assert answer.content == (TextContent("aside"),)
    assert agent.messages == ()
    assert (await agent.prompt("hi")).text == "hello"
