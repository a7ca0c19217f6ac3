from __future__ import annotations

import dataclasses
import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from unit.strategies import (
    answers_with_calls,
    by_type,
    clean_texts,
    images,
    json_objects,
    json_values,
    messages,
    plain_answers,
    text_blocks,
    user_messages,
)

from yiemagent_nb.core.events import (
    AgentEnd,
    AgentError,
    AgentStart,
    ApprovalChoice,
    ApprovalRequested,
    ApprovalResolved,
    BackendChanged,
    DeltaKind,
    EndReason,
    Event,
    HistoryChanged,
    HooksChanged,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    QuestionAction,
    QuestionAnswered,
    QuestionAsked,
    QueueChanged,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolsChanged,
    Trace,
    TurnEnd,
    TurnStart,
    dump_event,
    load_event,
)
from yiemagent_nb.core.messages import AssistantToolCallMessage, ToolCall, ToolResultMessage
from yiemagent_nb.core.results import ToolResult

KINDS: tuple[type[Any], ...] = get_args(Event)

names = clean_texts
counts = st.integers(0, 10**6)
several_messages = st.lists(messages, max_size=3).map(tuple)
tool_results = st.builds(
    ToolResult,
    st.lists(text_blocks | images, max_size=2),
    details=json_values(clean_texts),
    is_error=st.booleans(),
    terminate=st.booleans(),
)
queued = st.lists(user_messages, max_size=2).map(tuple)

BY_KIND: dict[type[Any], st.SearchStrategy[Any]] = {
    AgentStart: st.just(AgentStart()),
    AgentEnd: st.builds(AgentEnd, several_messages, st.sampled_from(get_args(EndReason))),
    TurnStart: st.just(TurnStart()),
    TurnEnd: st.builds(
        TurnEnd, plain_answers | answers_with_calls, st.lists(by_type[ToolResultMessage], max_size=2).map(tuple)
    ),
    MessageStart: st.builds(MessageStart, names, messages),
    MessageUpdate: st.builds(
        MessageUpdate,
        names,
        st.sampled_from(get_args(DeltaKind)),
        clean_texts,
        counts,
        counts,
        st.none() | names,
        st.none() | names,
    ),
    MessageEnd: st.builds(MessageEnd, names, messages),
    ToolExecutionStart: st.builds(ToolExecutionStart, names, names, json_objects(clean_texts)),
    ToolExecutionUpdate: st.builds(ToolExecutionUpdate, names, names, tool_results),
    ToolExecutionEnd: st.builds(
        ToolExecutionEnd, names, names, tool_results, st.booleans(), st.floats(0, 1e6, allow_subnormal=False)
    ),
    ToolsChanged: st.builds(ToolsChanged, st.lists(names, max_size=3).map(tuple)),
    BackendChanged: st.builds(BackendChanged, names, st.none() | names),
    HistoryChanged: st.builds(HistoryChanged, st.integers(0, 1000)),
    HooksChanged: st.builds(HooksChanged, st.lists(st.text(max_size=9), max_size=3).map(tuple)),
    QueueChanged: st.builds(QueueChanged, queued, queued),
    ApprovalRequested: st.builds(
        ApprovalRequested,
        names,
        names,
        names,
        json_objects(clean_texts),
        source=names,
        description=names,
        label=names,
        hints=st.lists(names).map(tuple),
    ),
    ApprovalResolved: st.builds(ApprovalResolved, names, names, st.sampled_from(get_args(ApprovalChoice)), names),
    QuestionAsked: st.builds(QuestionAsked, names, names, names, st.none() | json_objects(clean_texts), names),
    QuestionAnswered: st.builds(QuestionAnswered, names, st.sampled_from(get_args(QuestionAction))),
    AgentError: st.builds(AgentError, names, names),
    Trace: st.builds(Trace, names, json_objects(clean_texts)),
}

events: st.SearchStrategy[Event] = st.one_of(*BY_KIND.values())


@pytest.mark.requirement("A SPEC-5.1")
def test_the_strategies_know_every_kind_of_event() -> None:
    assert set(BY_KIND) == set(KINDS)


@pytest.mark.requirement("A SPEC-5.1")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.data())
def test_every_event_comes_back_from_its_json_form(kind: type[Any], data: st.DataObject) -> None:
    event = data.draw(BY_KIND[kind])
    form = dump_event(event)
    assert load_event(form) == event
    assert type(load_event(form)) is kind
    text = json.dumps(form, allow_nan=False, ensure_ascii=False)
    assert load_event(text) == event
    assert load_event(text.encode()) == event


@pytest.mark.requirement("A SPEC-5.1")
def test_each_kind_says_its_type_in_a_word_of_its_own() -> None:
    words = {next(f.default for f in dataclasses.fields(kind) if f.name == "type") for kind in KINDS}
    assert len(words) == len(KINDS)
    assert "message_update" in words


@pytest.mark.requirement("A SPEC-5.1", "Y SD-007")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(data=st.data())
def test_events_are_frozen(kind: type[Any], data: st.DataObject) -> None:
    event = data.draw(BY_KIND[kind])
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.type = "other"


@pytest.mark.requirement("A SPEC-5.1")
def test_an_update_holds_its_piece_and_never_the_message_so_far() -> None:
    assert {field.name for field in dataclasses.fields(MessageUpdate)} == {
        "message_id",
        "kind",
        "delta",
        "offset",
        "block",
        "tool_call_id",
        "tool_name",
        "type",
    }


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


HOSTILE: list[Event] = [
    Trace("step", {"a": Hostile(), "b": float("nan"), "c": b"\xff", "d": "\ud800", "e": {1, 2}}),
    ToolExecutionEnd("a", "f", ToolResult("x", details=Hostile()), is_error=False, duration=0.0),
    ToolExecutionUpdate("a", "f", ToolResult("x", details={"\ud800": float("inf")})),
    ToolExecutionStart("a", "f", {"a": float("nan")}),
    ApprovalRequested("r", "a", "f", {"a": object()}),
    QuestionAsked("q", "weather", "Where?", {"a": Hostile()}),
    MessageEnd("m", ToolResultMessage(tool_call_id="a", tool_name="f", details=Hostile())),
    MessageEnd("m", AssistantToolCallMessage(tool_calls=[ToolCall(name="f", arguments={"a": float("inf")})])),
]


@pytest.mark.requirement("A SPEC-5.1", "Y NFR-201")
@pytest.mark.parametrize("event", HOSTILE, ids=lambda event: type(event).__name__)
def test_what_json_cannot_hold_never_keeps_an_event_from_a_wire(event: Event) -> None:
    text = json.dumps(dump_event(event), allow_nan=False, ensure_ascii=False)
    assert type(load_event(text.encode())) is type(event)


NO_EVENTS: list[Any] = [
    {},
    {"type": "nothing"},
    {"type": "message_end"},
    {"type": "agent_end", "messages": [{"role": "tool"}]},
    {"type": "message_update", "kind": "video"},
    [],
    None,
    "nope",
    b"\xff",
]


@pytest.mark.requirement("A SPEC-5.1")
@pytest.mark.parametrize("data", NO_EVENTS, ids=repr)
def test_what_is_no_event_is_refused(data: Any) -> None:
    with pytest.raises(ValidationError):
        load_event(data)


def test_a_wrong_field_is_refused_by_its_name() -> None:
    with pytest.raises(ValidationError, match=r"message_update\.offset"):
        load_event(
            {"type": "message_update", "message_id": "m", "kind": "text", "delta": "", "offset": "x", "block": 0}
        )
