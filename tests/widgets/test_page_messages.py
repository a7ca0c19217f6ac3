"""What a page sends is validated; what it is sent is plain JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from yiemagent_nb.core.messages import UserMessage
from yiemagent_nb.widgets.protocol import Approve, Hello, Send, json_safe, read_page_message

GOOD: list[dict[str, Any]] = [
    {"type": "hello", "last_seq": 0},
    {"type": "heartbeat", "last_seq": 7},
    {"type": "bye"},
    {"type": "earlier", "before": 40},
    {"type": "send", "ticket": "a-1", "text": "hi"},
    {"type": "follow_up", "ticket": "a-2", "text": "and then"},
    {"type": "stop"},
    {"type": "approve", "ticket": "a-3", "request_id": "r", "choice": "allow_edited", "arguments": {"a": 1}},
    {"type": "answer", "ticket": "a-6", "request_id": "q", "action": "accept", "content": {"a": [1, "b", None]}},
    {"type": "answer", "ticket": "a-7", "request_id": "q", "action": "decline"},
    {"type": "load_audio", "ticket": "a-8", "key": "7f00"},
    {"type": "set_backend", "ticket": "a-4", "key": "0"},
    {"type": "set_thinking", "ticket": "a-5", "level": "xhigh"},
    {"type": "load_part", "name": "math"},
    {"type": "send", "ticket": "b-1", "text": "", "attachments": [{"name": "a", "mime_type": "", "data": "YQ=="}]},
    {"type": "take_back", "ticket": "b-2", "key": "1"},
    {"type": "steer_now", "ticket": "b-3", "key": "1"},
    {"type": "edit", "ticket": "b-4", "index": 0, "text": "other"},
    {"type": "regenerate", "ticket": "b-5", "index": 1},
    {"type": "switch_branch", "ticket": "b-6", "index": 1, "position": 0},
    {"type": "command", "ticket": "b-7", "name": "help", "text": ""},
    {"type": "export", "ticket": "b-8", "format": "notebook"},
    {"type": "set_model", "ticket": "b-9", "model": "m"},
    {"type": "set_options", "ticket": "b-10", "options": {"temperature": 0.5, "seed": None}},
    {"type": "add_backend", "ticket": "b-11", "base_url": "http://127.0.0.1:1/v1", "model": "", "key_env": "KEY"},
    {"type": "check_backend", "ticket": "b-12"},
]

FILE: dict[str, Any] = {"name": "a", "mime_type": "text/plain", "data": "YQ=="}
ANSWER: dict[str, Any] = {"type": "answer", "ticket": "a", "request_id": "q", "action": "accept"}


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


BAD: list[tuple[object, str]] = [
    ("hello", ""),
    (None, ""),
    ({}, ""),
    ({"type": "eval", "code": "1"}, ""),
    ({"type": "hello", "last_seq": -1}, "last_seq"),
    ({"type": "hello"}, "last_seq"),
    ({"type": "send", "ticket": "a", "text": ""}, "text"),
    ({"type": "send", "ticket": "a", "text": 5}, "text"),
    ({"type": "send", "ticket": "", "text": "hi"}, "ticket"),
    ({"type": "send", "ticket": "a", "text": "x" * 1_000_001}, "text"),
    ({"type": "approve", "ticket": "a", "request_id": "r", "choice": "always"}, "choice"),
    ({"type": "approve", "ticket": "a", "request_id": "r", "choice": "deny", "arguments": []}, "arguments"),
    ({**ANSWER, "action": "maybe"}, "action"),
    ({**ANSWER, "action": "decline", "content": {}}, "content"),
    ({**ANSWER, "content": []}, "content"),
    ({**ANSWER, "content": {"a": "x" * 1_000_001}}, "content"),
    ({**ANSWER, "content": {"x" * 1_000_001: ""}}, "content"),
    ({**ANSWER, "content": {"a": [0] * 10_001}}, "content"),
    ({**ANSWER, "content": {"a": _nested(20_000)}}, "content"),
    ({**ANSWER, "request_id": ""}, "request_id"),
    ({"type": "load_audio", "ticket": "a", "key": "x" * 41}, "key"),
    ({"type": "set_thinking", "ticket": "a", "level": "a lot"}, "level"),
    ({"type": "set_thinking", "level": "high"}, "ticket"),
    ({"type": "load_part", "name": "../../secret"}, "name"),
    ({"type": "stop", "now": True}, "now"),
    ({"type": "send", "ticket": "a", "text": " \n"}, "neither a text nor a file"),
    ({"type": "send", "ticket": "a", "text": "", "attachments": [FILE] * 21}, "attachments"),
    ({"type": "send", "ticket": "a", "text": "", "attachments": [{**FILE, "data": "x" * 5_000_000}] * 2}, "8,000,000"),
    ({"type": "send", "ticket": "a", "text": "", "attachments": [{**FILE, "path": "/etc"}]}, "path"),
    ({"type": "edit", "ticket": "a", "index": -1, "text": "x"}, "index"),
    ({"type": "switch_branch", "ticket": "a", "index": 0}, "position"),
    ({"type": "export", "ticket": "a", "format": "../x"}, "format"),
    ({"type": "set_options", "ticket": "a", "options": {"temperature": "hot"}}, "temperature"),
    ({"type": "add_backend", "ticket": "a", "base_url": "http://x", "key": "secret"}, "key"),
]


@pytest.mark.parametrize("message", GOOD, ids=lambda message: message["type"])
def test_every_message_of_a_page_is_read(message: dict[str, Any]) -> None:
    assert read_page_message(message).model_dump(mode="json", exclude_unset=True) == message


@pytest.mark.parametrize(("message", "field"), BAD)
def test_a_malformed_message_is_refused_with_its_field_named(message: object, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read_page_message(message)
    assert field in str(caught.value)


def test_the_kinds_of_messages_are_told_apart() -> None:
    assert isinstance(read_page_message(GOOD[0]), Hello)
    assert isinstance(read_page_message(GOOD[4]), Send)
    assert isinstance(read_page_message(GOOD[7]), Approve)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1.5, 1.5),
        ((1, None, True), [1, None, True]),
        ({1: "one"}, {"1": "one"}),
        ("half \ud83d of one", "half \ufffd of one"),
        ({"\udc00": "x"}, {"\ufffd": "x"}),
        ("\N{PARTY POPPER}", "\N{PARTY POPPER}"),
        (b"\xff", "b'\\xff'"),
    ],
)
def test_any_value_becomes_json_that_every_encoder_takes(value: object, expected: object) -> None:
    safe = json_safe(value)
    assert safe == expected
    json.dumps(safe, ensure_ascii=False, allow_nan=False).encode()


def test_a_model_becomes_its_fields_and_a_strange_object_its_repr() -> None:
    safe = json_safe([UserMessage("hi"), datetime(2026, 11, 30, tzinfo=UTC)])
    assert safe[0]["content"] == [{"type": "text", "text": "hi"}]
    assert safe[1].startswith("datetime.datetime(2026, 11, 30")
