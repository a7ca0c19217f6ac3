"""Answers put together from the pieces in which they stream."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yiemagent_nb.core.errors import (
    BackendError,
    BackendRateLimitedError,
    MalformedResponseError,
    ServerError,
    StreamInterruptedError,
)
from yiemagent_nb.core.messages import (
    AssistantMessage,
    AssistantToolCallMessage,
    ReasoningContent,
    StopReason,
    TextContent,
    ToolCall,
)
from yiemagent_nb.core.models import Cost, ModelCost
from yiemagent_nb.core.reading.assemble import Assembler
from yiemagent_nb.core.reading.blocks import Delta
from yiemagent_nb.core.reading.extract import extract
from yiemagent_nb.core.reading.fields import REASONING_FIELDS

pytestmark = pytest.mark.requirement("Y SD-009")

TOOLS = ("get_weather", "search")


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def part(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields = {key: value for key, value in (("index", index), ("id", call_id)) if value is not None}
    return {**fields, "function": function}


def assemble(*pieces: Any, **options: Any) -> tuple[AssistantMessage, list[Delta]]:
    assembler = Assembler(**options)
    deltas = [delta for piece in pieces for delta in assembler.feed(piece)]
    return assembler.finish(), deltas


def calls_of(*parts: dict[str, Any], tool_names: tuple[str, ...] = TOOLS) -> list[tuple[str, Any]]:
    message, _ = assemble(*(chunk(tool_calls=[each]) for each in parts), chunk("tool_calls"), tool_names=tool_names)
    return [
        (call.name, call.arguments if call.raw_arguments is None else call.raw_arguments) for call in message.tool_calls
    ]


def test_text_reasoning_and_calls_stand_in_the_order_in_which_they_came() -> None:
    message, deltas = assemble(
        {"api": "chat-completions", "provider": "p", "model": "asked", "thinking_sent": "low"},
        {"model": "served", **chunk(role="assistant", content="")},
        chunk(reasoning="Hm"),
        chunk(reasoning=", yes"),
        chunk(content="I "),
        chunk(content="look."),
        chunk(tool_calls=[part(0, "a", "search", "")]),
        chunk(tool_calls=[part(0, arguments='{"query":')]),
        chunk(tool_calls=[part(0, arguments='"x"}')]),
        chunk("tool_calls"),
    )
    assert message.content == (
        ReasoningContent("Hm, yes", signature="reasoning"),
        TextContent("I look."),
        ToolCall(id="a", name="search", arguments={"query": "x"}),
    )
    assert isinstance(message, AssistantToolCallMessage)
    assert (message.stop_reason, message.raw_stop_reason) == ("tool_calls", "tool_calls")
    assert (message.api, message.provider, message.model) == ("chat-completions", "p", "served")
    assert message.thinking_sent == "low"
    assert deltas == [
        Delta("reasoning", "Hm", 0, 0),
        Delta("reasoning", ", yes", 0, 2),
        Delta("text", "I ", 1, 0),
        Delta("text", "look.", 1, 2),
        Delta("tool_call", "", 2, 0, "a", "search"),
        Delta("tool_call", '{"query":', 2, 0, "a", "search"),
        Delta("tool_call", '"x"}', 2, 9, "a", "search"),
    ]


@pytest.mark.parametrize("field", REASONING_FIELDS)
def test_reasoning_remembers_the_name_under_which_it_came(field: str) -> None:
    message, _ = assemble(chunk(**{field: "why"}), chunk(content="so"), chunk("stop"))
    assert message.content == (ReasoningContent("why", signature=field), TextContent("so"))


NOTHING: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        pytest.param(
            [part(0, None, "search"), part(0, "late"), part(0, None, None, "{}")], [("search", NOTHING)], id="late-id"
        ),
        pytest.param(
            [part(0, None, "search", '{"query":"a"}'), part(0, None, "search", '{"query":"b"}')],
            [("search", {"query": "a"}), ("search", {"query": "b"})],
            id="whole-calls-without-id-at-one-index",
        ),
        pytest.param(
            [part(0, None, "search", ""), part(0, None, "get_weather", "")],
            [("search", NOTHING), ("get_weather", NOTHING)],
            id="two-offered-names-at-one-index",
        ),
        pytest.param(
            [part(0, "a", "search", '{"query":"a"}'), part(0, "a", "search", '{"query":"a"}')],
            [("search", {"query": "a"})],
            id="whole-call-repeated",
        ),
        pytest.param(
            [part(None, None, "search", "{}"), part(None, None, "search", "{}")],
            [("search", NOTHING), ("search", NOTHING)],
            id="names-without-index",
        ),
        pytest.param(
            [part(0, "a", "search"), part(1, "b", "search"), part(0, None, None, "{}"), part(1, None, None, "{}")],
            [("search", NOTHING), ("search", NOTHING)],
            id="interleaved",
        ),
        pytest.param(
            [part(0, "a", "get_"), part(0, None, "weather", "{}")], [("get_weather", NOTHING)], id="name-in-pieces"
        ),
        pytest.param(
            [part(0, "a", "get_"), part(0, None, "get_weather", "{}")], [("get_weather", NOTHING)], id="name-that-grows"
        ),
        pytest.param(
            [part(0, "a", "search", '{"q"'), part(0, "b", None, ":1}")], [("search", {"q": 1})], id="an-id-per-piece"
        ),
        pytest.param(
            [part(0, "a", "search", '{"q"'), part(0, "b", "search", ":1}")],
            [("search", {"q": 1})],
            id="an-id-and-the-name-per-piece",
        ),
        pytest.param(
            [part(0, "a", "search", '{"q":1}'), part(0, "b", "search", '{"q":2}')],
            [("search", {"q": 1}), ("search", {"q": 2})],
            id="all-at-one-index",
        ),
        pytest.param(
            [part(0, "a", "search", "{}"), part(0, None, None, '{"q":1}')], [("search", {"q": 1})], id="placeholder"
        ),
        pytest.param(
            [part(0, "a", "search", '{"q"'), part(0, None, None, '{"q":1'), part(0, None, None, '{"q":1}')],
            [("search", {"q": 1})],
            id="each-piece-holds-all-before",
        ),
        pytest.param(
            [part(0, "a", "search", '{"q"'), part(0, None, None, ":1}"), part(0, None, None, '{"q":1}')],
            [("search", {"q": 1})],
            id="the-whole-behind-its-pieces",
        ),
        pytest.param(
            [part(1, "a", "search", '{"q"'), part(0, None, None, ":1}")], [("search", {"q": 1})], id="index-lost"
        ),
        pytest.param([part(0, "a", "functions.search:0", "{}")], [("search", NOTHING)], id="namespace-and-number"),
        pytest.param([part(0, "a", "other.search", "{}")], [("other.search", NOTHING)], id="unknown-namespace"),
        pytest.param([part(0, "a", "search", "[]")], [("search", NOTHING)], id="empty-list"),
        pytest.param([part(0, "a", "search", {"query": "x"})], [("search", {"query": "x"})], id="object"),
        pytest.param([part(0, "a", "search", "null")], [("search", NOTHING)], id="null"),
        pytest.param([part(0, "a", "search", '"{\\"query\\":1}"')], [("search", {"query": 1})], id="twice-encoded"),
        pytest.param([part(0, "a", "search", '{"q":"a\nb"}')], [("search", {"q": "a\nb"})], id="control-character"),
        pytest.param([part(0, "a", "search", "[1]")], [("search", "[1]")], id="list"),
        pytest.param([part(0, "a", "search", '{"q":NaN}')], [("search", '{"q":NaN}')], id="no-json-number"),
        pytest.param([part(0, "a", "search", '{"q":1}{')], [("search", '{"q":1}{')], id="more-than-an-object"),
        pytest.param([part(0, "a", "search", "[" * 100_000)], [("search", "[" * 100_000)], id="nested-too-deep"),
        pytest.param(
            [part(0, "a", None, '{"q":1}')], [("unnamed_tool", {"q": 1})], id="a-call-without-a-name-is-not-lost"
        ),
        pytest.param([part(0, "a", "search", '{"q":"\\ud800"}')], [("search", {"q": "\ufffd"})], id="half-a-pair"),
    ],
)
def test_calls_are_told_apart_whatever_a_server_names_them_by(
    parts: list[dict[str, Any]], calls: list[tuple[str, Any]]
) -> None:
    assert calls_of(*parts) == calls


def test_an_id_that_comes_late_is_the_servers() -> None:
    message, deltas = assemble(
        chunk(tool_calls=[part(0, None, "search")]), chunk(tool_calls=[part(0, "late", None, "{}")]), chunk("stop")
    )
    assert [call.id for call in message.tool_calls] == ["late"]
    assert {delta.block for delta in deltas} == {0}


@pytest.mark.parametrize(
    ("finish", "calls", "stop"),
    [
        ("stop", False, "end_turn"),
        ("stop", True, "tool_calls"),
        ("tool_calls", False, "end_turn"),
        ("length", True, "length"),
        ("max_tokens", False, "length"),
        ("content_filter", False, "content_filter"),
        ("content_filter", True, "tool_calls"),
        ("error", True, "error"),
        ("eos", False, "end_turn"),
    ],
)
def test_the_end_is_an_error_then_length_then_calls_then_a_filter(finish: str, calls: bool, stop: StopReason) -> None:
    pieces = [chunk(tool_calls=[part(0, "a", "search", "{}")])] if calls else []
    message, _ = assemble(chunk(content="x"), *pieces, chunk(finish))
    assert (message.stop_reason, message.raw_stop_reason) == (stop, finish)


@pytest.mark.parametrize(
    "pieces",
    [
        [chunk(content="half")],
        [chunk(role="assistant")],
        [chunk(content="half"), {"done": True}],
        [chunk(tool_calls=[part(0, "a", "search", '{"q":')]), {"done": True}],
        [chunk(tool_calls=[part(0, "a", "search", "{}")])],
        [{"type": "response.output_text.delta", "output_index": 0, "delta": "half"}],
    ],
)
def test_a_stream_without_its_end_was_interrupted(pieces: list[Any]) -> None:
    assembler = Assembler()
    for piece in pieces:
        assembler.feed(piece)
    with pytest.raises(StreamInterruptedError, match="no finish_reason"):
        assembler.finish()


def test_whole_calls_and_a_done_mark_are_an_end() -> None:
    message, _ = assemble(chunk(tool_calls=[part(0, "a", "search", "{}")]), {"done": True})
    assert message.stop_reason == "tool_calls"


def test_own_pieces_need_no_end() -> None:
    message, deltas = assemble("Hel", {"content": "lo"}, {"reasoning": "why"}, {"usage": {"prompt_tokens": 3}})
    assert (message.text, message.reasoning, message.stop_reason) == ("Hello", "why", "end_turn")
    assert message.usage is not None
    assert message.usage.input_tokens == 3
    assert [delta.text for delta in deltas] == ["Hel", "lo", "why"]


def test_nothing_at_all_is_no_answer() -> None:
    with pytest.raises(MalformedResponseError, match="nothing in it"):
        Assembler().finish()
    assembler = Assembler()
    assembler.feed({"provider": "p"})
    with pytest.raises(MalformedResponseError):
        assembler.finish()


def test_an_empty_answer_is_told_from_none() -> None:
    message, _ = assemble(chunk(role="assistant", content=""), chunk("stop"))
    assert (message.content, message.stop_reason) == ((), "end_turn")
    assert "empty" in (message.error_message or "")


@pytest.mark.parametrize("piece", [None, 3, [], {}, {"foo": 1}, b"x", object(), [1], {"tool_calls": ["x"]}])
def test_an_unknown_piece_is_refused(piece: Any) -> None:
    with pytest.raises(MalformedResponseError):
        Assembler().feed(piece)


def test_a_servers_own_events_among_chunks_are_skipped() -> None:
    message, _ = assemble(chunk(content="a"), {"object": "prompt.progress", "n": 3}, chunk("stop"))
    assert message.text == "a"


@pytest.mark.parametrize(
    ("piece", "error"),
    [
        ({"error": {"message": "slow down", "code": 429}}, BackendRateLimitedError),
        ({"error": "boom"}, ServerError),
        ({"object": "error", "message": "boom", "code": 500}, ServerError),
        ({"type": "error", "code": "server_is_overloaded", "message": "busy"}, ServerError),
        ({"type": "response.failed", "response": {"error": {"message": "boom"}}}, ServerError),
    ],
)
def test_an_error_among_the_pieces_is_raised_and_what_came_is_kept(piece: Any, error: type[BackendError]) -> None:
    assembler = Assembler()
    assembler.feed(chunk(content="Once "))
    with pytest.raises(error):
        assembler.feed(piece)
    message = assembler.partial("error", "it broke")
    assert (message.text, message.stop_reason, message.error_message) == ("Once ", "error", "it broke")


def test_a_partial_answer_keeps_the_text_of_an_unfinished_call() -> None:
    assembler = Assembler()
    for piece in (chunk(content="So"), chunk(tool_calls=[part(0, "a", "search", '{"query":"fj')])):
        assembler.feed(piece)
    message = assembler.partial("aborted", "stopped")
    assert message.content == (TextContent("So"), ToolCall(id="a", name="search", raw_arguments='{"query":"fj'))
    assert message.stop_reason == "aborted"


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}, (9, 4, 0, 0, 0, 13)),
        ({"inputTokens": 9, "outputTokens": 4}, (9, 4, 0, 0, 0, 13)),
        ({"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 5}}, (9, 4, 5, 0, 0, 13)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 5}, (9, 4, 5, 0, 0, 13)),
        ({"prompt_tokens": 9, "completion_tokens": 4, "cached_tokens": 5}, (9, 4, 5, 0, 0, 13)),
        ({"input_tokens": 9, "output_tokens": 4, "cache_read_input_tokens": 5}, (14, 4, 5, 0, 0, 18)),
        ({"input_tokens": 9, "output_tokens": 4, "cache_creation_input_tokens": 5}, (14, 4, 0, 5, 0, 18)),
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 3}},
            (9, 4, 0, 0, 3, 13),
        ),
        ({"prompt_tokens": 9, "completion_tokens": None}, (9, 0, 0, 0, 0, 9)),
        ({"prompt_tokens": None}, None),
        ({"prompt_tokens": -1}, None),
        ({}, None),
        (None, None),
        ("many", None),
    ],
)
def test_usage_is_read_under_any_name_and_unknown_stays_unknown(usage: Any, counts: tuple[int, ...] | None) -> None:
    message, _ = assemble(chunk(content="x"), {**chunk("stop"), "usage": usage})
    read = message.usage
    assert counts == (
        read
        and (
            read.input_tokens,
            read.output_tokens,
            read.cache_read_tokens,
            read.cache_write_tokens,
            read.reasoning_tokens,
            read.total_tokens,
        )
    )


def test_the_last_usage_counts_wherever_it_stands_and_none_is_added_up() -> None:
    first = {**chunk(content="x"), "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
    last = {
        "choices": [
            {"index": 0, "delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
        ]
    }
    message, _ = assemble(first, last, {"choices": [], "usage": None})
    assert message.usage is not None
    assert message.usage.output_tokens == 2


def test_pairs_of_surrogates_that_were_cut_in_two_are_joined() -> None:
    message, deltas = assemble(
        chunk(content="a\ud83d"), chunk(content="\ude00b"), chunk(content="\ud83d"), chunk("stop")
    )
    assert message.text == "a😀b\ufffd"
    assert [delta.text for delta in deltas] == ["a", "😀b"]
    assert [delta.offset for delta in deltas] == [0, 1]


THOUGHT = "<think>\nadd them\n</think>\n\n5 is <think>"


@given(st.lists(st.integers(0, len(THOUGHT))))
def test_reasoning_between_tags_is_found_whatever_the_pieces(cuts: list[int]) -> None:
    places = sorted(cuts)
    pieces = [THOUGHT[start:stop] for start, stop in zip([0, *places], [*places, len(THOUGHT)], strict=True)]
    message, deltas = assemble(*[chunk(content=piece) for piece in pieces], chunk("stop"))
    assert message.content == (ReasoningContent("add them"), TextContent("5 is <think>"))
    assert "".join(delta.text for delta in deltas if delta.kind == "reasoning") == "add them"
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == "5 is <think>"


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("hidden</think>\n\nshown", "hidden", "shown"),
        ("<think>never closed", "never closed", ""),
        ("[THINK]hm[/THINK]yes", "hm", "yes"),
        ("<thinking>hm</thinking>yes", "hm", "yes"),
        ("<think></think>yes", "", "yes"),
        ("<thought>hm</thought>yes", "hm", "yes"),
        ("<seed:think>hm</seed:think>yes", "hm", "yes"),
        ("<|START_THINKING|>hm<|END_THINKING|>yes", "hm", "yes"),
        ("<|channel>thought\nhm<channel|>yes", "hm", "yes"),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>yes",
            "hm",
            "yes",
        ),
        ("<think>a</think>\n<think>b</think>c", "ab", "c"),
        ("  indented", "", "  indented"),
        ("<thin line", "", "<thin line"),
        ("the tag `</think>` ends it", "", "the tag `</think>` ends it"),
        ("<thi", "", "<thi"),
    ],
)
def test_tags_count_only_where_an_answer_starts(text: str, reasoning: str, answer: str) -> None:
    message, _ = assemble(text)
    assert (message.reasoning, message.text) == (reasoning, answer)


def test_reasoning_details_are_kept_for_the_way_back_and_counted_once() -> None:
    first = {"type": "reasoning.text", "text": "pl", "index": 0, "format": "f"}
    second = {"type": "reasoning.text", "text": "an", "index": 0, "signature": "s"}
    secret = {"type": "reasoning.encrypted", "data": "ZW5j", "index": 1}
    message, _ = assemble(
        chunk(reasoning="pl", reasoning_details=[first]),
        chunk(reasoning="an", reasoning_details=[second]),
        chunk(content="ok", reasoning_details=[secret]),
        chunk("stop"),
    )
    assert message.reasoning == "plan"
    [block] = [block for block in message.content if isinstance(block, ReasoningContent)]
    joined = '{"type":"reasoning.text","text":"plan","index":0,"format":"f","signature":"s"}'
    assert (
        block.signature
        == '{"reasoning_details":[' + joined + ',{"type":"reasoning.encrypted","data":"ZW5j","index":1}]}'
    )


def test_events_of_the_responses_api_are_assembled() -> None:
    item = {
        "id": "rs",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "why"}],
        "encrypted_content": "x",
    }
    call = {"id": "fc", "type": "function_call", "call_id": "c1", "name": "search", "arguments": ""}
    message, deltas = assemble(
        {"type": "response.created", "response": {"model": "m", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"id": "rs", "type": "reasoning"}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "why"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "I look"},
        {"type": "response.output_item.added", "output_index": 2, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"query":1}'},
        {"type": "response.unheard_of"},
        {"type": "response.output_item.done", "output_index": 2, "item": {**call, "arguments": '{"query":1}'}},
        {
            "type": "response.completed",
            "response": {"status": "completed", "output": [call], "usage": {"input_tokens": 4, "output_tokens": 2}},
        },
    )
    reasoning, text, tool_call = message.content
    assert isinstance(reasoning, ReasoningContent)
    assert (reasoning.text, text) == ("why", TextContent("I look"))
    assert '"encrypted_content":"x"' in (reasoning.signature or "")
    assert tool_call == ToolCall(id="c1", name="search", arguments={"query": 1})
    assert message.stop_reason == "tool_calls"
    assert message.usage is not None
    assert [delta.kind for delta in deltas] == ["reasoning", "text", "tool_call", "tool_call"]


@pytest.mark.parametrize(("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "content_filter")])
def test_an_incomplete_response_says_why(reason: str, stop: StopReason) -> None:
    message, _ = assemble(
        {"type": "response.output_text.delta", "output_index": 0, "delta": "half"},
        {"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}}},
    )
    assert message.stop_reason == stop


def reasoning_events(*items: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        *(
            {
                "type": f"response.output_item.{when}",
                "output_index": 0,
                "item": {"id": "rs", "type": "reasoning", **item},
            }
            for when, item in items
        ),
        {"type": "response.output_text.delta", "output_index": 1, "delta": "ok"},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]


def test_a_reasoning_item_goes_back_as_it_was_when_it_was_done() -> None:
    added: dict[str, Any] = {"summary": [], "encrypted_content": "short", "status": "in_progress"}
    done: dict[str, Any] = {"summary": [], "encrypted_content": "short and long", "status": None, "content": None}
    message, deltas = assemble(*reasoning_events(("added", added), ("done", done)))
    block = message.content[0]
    assert isinstance(block, ReasoningContent)
    assert block.text == ""
    assert json.loads(block.signature or "") == {
        "id": "rs",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "short and long",
    }
    assert [delta.kind for delta in deltas] == ["text"]


def test_a_reasoning_item_that_was_never_done_does_not_go_back() -> None:
    message, _ = assemble(*reasoning_events(("added", {"summary": [], "encrypted_content": "half"})))
    assert message.content == (TextContent("ok"),)


def test_parts_of_reasoning_stand_apart_and_only_one_of_its_kinds_counts() -> None:
    message, _ = assemble(
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "one"},
        {"type": "response.reasoning_summary_text.done", "output_index": 0, "summary_index": 0, "text": "one!"},
        {"type": "response.reasoning_text.delta", "output_index": 0, "content_index": 0, "delta": "the same"},
        {"type": "response.reasoning_summary_text.done", "output_index": 0, "summary_index": 1, "text": "two"},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    )
    assert message.reasoning == "one!\n\ntwo"


CALL_ITEM = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "search", "arguments": '{"query":"x"}'}
MESSAGE_ITEM = {"type": "message", "id": "msg", "content": [{"type": "output_text", "text": "Hello"}]}


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "response.output_item.done", "output_index": 0, "item": MESSAGE_ITEM}],
        [{"type": "response.output_text.done", "output_index": 0, "text": "Hello"}],
        [{"type": "response.content_part.done", "item_id": "msg", "part": {"type": "output_text", "text": "Hello"}}],
        [{"type": "response.output_text.delta", "output_index": 0, "delta": "Hello"}],
        [{"type": "response.output_text.delta", "item_id": "other", "delta": "Hello"}],
        [
            {"type": "response.output_text.delta", "output_index": 0, "delta": "Hel"},
            {"type": "response.output_text.done", "output_index": 0, "text": "Hello"},
        ],
        [],
    ],
)
def test_text_of_the_responses_api_is_read_once_wherever_it_stands(events: list[Any]) -> None:
    end = {"type": "response.completed", "response": {"status": "completed", "output": [MESSAGE_ITEM]}}
    message, deltas = assemble(*events, end)
    assert message.content == (TextContent("Hello"),)
    assert "".join(delta.text for delta in deltas) == "Hello"


@pytest.mark.parametrize(
    "events",
    [
        [{"type": "response.output_item.done", "output_index": 0, "item": CALL_ITEM}],
        [
            {"type": "response.output_item.added", "output_index": 0, "item": {**CALL_ITEM, "arguments": ""}},
            {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"query":"x"}'},
        ],
        [
            {"type": "response.output_item.added", "item": {**CALL_ITEM, "arguments": ""}},
            {"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": '{"query":'},
            {"type": "response.function_call_arguments.delta", "item_id": "fc", "delta": '"x"}'},
        ],
        [
            {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"query":"x"}'},
            {"type": "response.output_item.done", "output_index": 0, "item": CALL_ITEM},
        ],
        [
            {"type": "response.output_item.added", "output_index": 0, "item": {**CALL_ITEM, "arguments": "{}"}},
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": {**CALL_ITEM, "arguments": {"query": "x"}},
            },
        ],
        [],
    ],
)
def test_a_call_of_the_responses_api_is_read_once_wherever_it_stands(events: list[Any]) -> None:
    end = {"type": "response.completed", "response": {"status": "completed", "output": [CALL_ITEM]}}
    message, _ = assemble(*events, end, tool_names=TOOLS)
    assert message.content == (ToolCall(id="c1", name="search", arguments={"query": "x"}),)
    assert message.stop_reason == "tool_calls"


def test_a_failed_response_raises_what_it_says() -> None:
    failed = {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Try again in 3s"}}
    for kind in ("response.failed", "response.completed"):
        with pytest.raises(BackendRateLimitedError) as caught:
            assemble({"type": kind, "response": failed})
        assert caught.value.retry_after == 3.0


@pytest.mark.parametrize(
    ("first", "second", "stop"),
    [("length", "stop", "length"), ("error", "tool_calls", "error"), ("stop", "length", "length")],
)
def test_a_later_end_does_not_hide_a_cut_or_a_failure(first: str, second: str, stop: StopReason) -> None:
    call = chunk(first, tool_calls=[part(0, "a", "search", "{}")])
    message, _ = assemble(call, chunk(second), tool_names=TOOLS)
    assert message.stop_reason == stop


def test_a_failure_that_a_gateway_calls_a_good_end_is_one() -> None:
    end: dict[str, Any] = {
        "index": 0,
        "delta": {},
        "finish_reason": "stop",
        "native_finish_reason": "MALFORMED_FUNCTION_CALL",
    }
    message, _ = assemble(chunk(content="a"), {"choices": [end]})
    assert message.stop_reason == "error"


def test_an_error_in_a_choice_is_raised() -> None:
    with pytest.raises(ServerError):
        assemble({"choices": [{"index": 0, "delta": {}, "error": {"code": 502, "message": "gone"}}]})


def test_a_whole_message_behind_its_deltas_says_nothing_new() -> None:
    message, _ = assemble(
        chunk(content="Hi"),
        {"choices": [{"index": 0, "delta": {}, "message": {"content": "Hi"}, "finish_reason": "stop"}]},
    )
    assert message.text == "Hi"


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        ({"cost": 0.0125}, 0.0125),
        ({"cost": 0}, 0.0),
        ({"cost": 0.01, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.5}}, 0.01),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}}, 0.51),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, 0.01),
        ({"cost": {"input_tokens_cost": 0.1, "total_cost": 0.3}}, 0.3),
        ({"cost": None}, None),
        ({"cost": -1}, None),
        ({"cost": True}, None),
        ({"cost": "0.5"}, None),
        ({"cost": {"total": 3}}, None),
        ({"cost_details": {"upstream_inference_cost": 0.5}}, None),
    ],
)
def test_a_cost_that_the_server_states_is_read(usage: dict[str, Any], total: float | None) -> None:
    counted = {"prompt_tokens": 10, "completion_tokens": 5, **usage}
    message, _ = assemble(chunk(content="a"), {**chunk("stop"), "usage": counted})
    assert message.usage is not None
    cost = message.usage.cost
    assert (cost and cost.total) == total


PRICES = {"input": 2.0, "output": 8.0, "cache_read": 0.5, "cache_write": 0}


@pytest.mark.parametrize("prices", [PRICES, ModelCost(input=2.0, output=8.0, cache_read=0.5)])
def test_prices_of_the_backend_make_the_cost_where_the_server_states_none(prices: Any) -> None:
    counted = {"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
    pieces = [{"api": "chat-completions", "prices": prices}, chunk(content="a"), {**chunk("stop"), "usage": counted}]
    whole, _ = assemble(*pieces)
    stopped = Assembler()
    for piece in pieces:
        stopped.feed(piece)
    for message in (whole, stopped.so_far(), stopped.partial("aborted")):
        assert message.usage is not None
        cost = message.usage.cost
        assert cost is not None
        assert (cost.input, cost.output, cost.cache_read) == pytest.approx((0.0012, 0.0008, 0.0002))
        assert cost.total == pytest.approx(0.0022)


def test_a_stated_cost_counts_before_prices_and_no_usage_has_no_cost() -> None:
    counted = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 3.5}
    message, _ = assemble({"prices": PRICES}, chunk(content="a"), {**chunk("stop"), "usage": counted})
    assert message.usage is not None
    assert message.usage.cost == Cost(total=3.5)
    message, _ = assemble({"prices": PRICES}, chunk(content="a"), chunk("stop"))
    assert message.usage is None


@pytest.mark.parametrize("prices", [None, {}, 3, "free", {"input": "2"}, {"input": -1}])
def test_prices_that_are_none_leave_the_cost_unknown(prices: Any) -> None:
    counted = {"prompt_tokens": 1, "completion_tokens": 1}
    message, _ = assemble({"prices": prices}, chunk(content="a"), {**chunk("stop"), "usage": counted})
    assert message.usage is not None
    assert message.usage.cost is None


class Chunk:
    """As the chunks of client libraries: an object that dumps itself."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.fields = fields

    def model_dump(self) -> Mapping[str, Any]:
        return self.fields


def test_objects_that_dump_themselves_are_read() -> None:
    message, _ = assemble(Chunk(chunk(content="a")), Chunk(chunk("stop")))
    assert message.text == "a"


def test_a_whole_message_may_come_in_one_piece() -> None:
    whole = AssistantMessage("done")
    message, deltas = assemble(whole)
    assert message is whole
    assert deltas == [Delta("text", "done", 0, 0)]


KEYS = [
    *(
        "choices",
        "delta",
        "message",
        "content",
        "text",
        "reasoning",
        "reasoning_details",
        "tool_calls",
        "function_call",
    ),
    *("function", "index", "id", "name", "arguments", "type", "finish_reason", "usage", "error", "refusal", "model"),
    *("output", "item", "output_index", "response", "summary", "call_id", "status", "stop_reason", "image_url", "data"),
]
TYPES = [
    *("text", "function", "tool_call", "reasoning", "image", "message", "function_call", "refusal", "error"),
    *("response.output_text.delta", "response.output_item.added", "response.completed", "response.failed"),
]
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(TYPES) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
FIELDS: st.SearchStrategy[Any] = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4)


def mapping(required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(required, optional=optional)


CALLS = mapping({"function": FIELDS | VALUES}, index=VALUES, id=VALUES)
DELTAS = mapping({}, content=VALUES, reasoning=VALUES, tool_calls=st.lists(CALLS | VALUES, max_size=2))
CHOICES = st.lists(mapping({"delta": DELTAS | FIELDS}, index=VALUES, message=FIELDS), max_size=2)
CHUNKS = mapping({"choices": CHOICES}, usage=VALUES, error=VALUES)
EVENTS = mapping(
    {"type": st.sampled_from([kind for kind in TYPES if "." in kind])},
    delta=VALUES,
    item=FIELDS,
    output_index=VALUES,
    response=FIELDS,
    arguments=VALUES,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(CHUNKS | EVENTS | FIELDS | VALUES, max_size=4))
def test_no_piece_makes_it_fail_but_with_a_typed_error(pieces: list[Any]) -> None:
    assembler = Assembler(tool_names=TOOLS, text_tool_calls=True)
    with contextlib.suppress(BackendError):
        for piece in pieces:
            assembler.feed(piece)
        assembler.finish()
    assert assembler.partial("aborted").stop_reason == "aborted"
    for piece in pieces:
        with contextlib.suppress(BackendError):
            extract(piece, tool_names=TOOLS)
