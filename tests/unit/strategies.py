"""Hypothesis strategies of messages, content and JSON values."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

from hypothesis import strategies as st

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
)
from yiemagent_nb.core.models import THINKING_LEVELS, Cost, Usage

wild_text = st.text(st.characters(exclude_categories=()))
"""Any text, lone surrogates too."""

clean_texts = st.text()

_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def json_values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        _scalars | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=8,
    )


def json_objects(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(text, json_values(text), max_size=4)


def _whole_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


_zones = st.just(UTC) | st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
timestamps = st.datetimes(
    min_value=datetime(1970, 1, 3),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001
    timezones=_zones,
).map(_whole_milliseconds)

images = st.builds(
    ImageContent,
    data=st.binary(min_size=1, max_size=24).map(lambda data: base64.b64encode(data).decode()),
    mime_type=st.sampled_from(["image/png", "image/jpeg", "image/svg+xml", "image/x-icon"]),
)
text_blocks = st.builds(TextContent, wild_text.filter(bool))
reasoning_blocks = st.builds(
    ReasoningContent,
    wild_text,
    signature=st.none() | st.sampled_from(["reasoning", "reasoning_content", "thinking"]) | wild_text,
)
call_ids = st.sampled_from(["", "a", "b", "c", "call_1"]) | wild_text
calls = st.builds(
    ToolCall,
    id=call_ids,
    name=st.sampled_from(["add", "search", "weather"]) | wild_text,
    arguments=json_objects(wild_text),
)
unparsed_calls = st.builds(ToolCall, id=call_ids, name=wild_text, raw_arguments=wild_text)

usages = st.builds(
    Usage,
    input_tokens=st.integers(0, 10**9),
    output_tokens=st.integers(0, 10**9),
    cache_read_tokens=st.integers(0, 10**9),
    reasoning_tokens=st.integers(0, 10**9),
    cost=st.none() | st.builds(Cost, input=st.floats(0, 1e6), total=st.floats(0, 1e6)),
)

_answer_fields: dict[str, st.SearchStrategy[Any]] = {
    "api": clean_texts,
    "provider": st.sampled_from(["", "openai", "vllm"]),
    "model": clean_texts,
    "usage": st.none() | usages,
    "stop_reason": st.sampled_from(get_args(StopReason)),
    "raw_stop_reason": st.none() | wild_text,
    "thinking_sent": st.none() | st.sampled_from(THINKING_LEVELS) | wild_text,
    "error_message": st.none() | wild_text,
    "timestamp": timestamps,
}

user_messages = st.builds(UserMessage, st.lists(text_blocks | images, max_size=3), timestamp=timestamps)
plain_answers = st.builds(
    AssistantMessage, st.lists(text_blocks | images | reasoning_blocks, max_size=3), **_answer_fields
)
answers_with_calls = st.builds(
    AssistantToolCallMessage,
    st.lists(text_blocks | images | reasoning_blocks | calls | unparsed_calls, max_size=3),
    tool_calls=st.lists(calls | unparsed_calls, min_size=1, max_size=2),
    **_answer_fields,
)
results = st.builds(
    ToolResultMessage,
    tool_call_id=call_ids,
    tool_name=wild_text,
    content=st.lists(text_blocks | images, max_size=3),
    details=json_values(clean_texts),
    usage=st.none() | usages,
    added_tool_names=st.none() | st.lists(clean_texts, max_size=2).map(tuple),
    is_error=st.booleans(),
    timestamp=timestamps,
)
notes = st.builds(CustomMessage, kind=wild_text.filter(bool), data=json_values(clean_texts), timestamp=timestamps)

by_type: dict[type[Any], st.SearchStrategy[Any]] = {
    UserMessage: user_messages,
    AssistantMessage: plain_answers,
    AssistantToolCallMessage: answers_with_calls,
    ToolResultMessage: results,
    CustomMessage: notes,
}

messages: st.SearchStrategy[Message] = st.one_of(*by_type.values())
