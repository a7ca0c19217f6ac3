"""A tool call that a model cannot refuse: a completion under a JSON schema, after worked examples.

Small models cannot decide between answering and calling, but fill in a form well. The prompt shows
requests for other tools and the call for each; the schema leaves no other answer than a call of an
offered tool. The arguments come before the name, since the model knows what it read sooner than
what it is called.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.reading.fields import dump_json, text_of

__all__ = ["call_chunk", "choose_tools", "forced_call_request"]

_EXAMPLE_TOOLS = (
    "translate(text, language): Translate a text.",
    "set_timer(minutes): Start a timer.",
    "recipe(dish): Find a recipe.",
    "send_mail(person, text): Send a mail to a person.",
    "distance(start, end): Distance between two towns.",
    "flip_coin(): Flip a coin.",
)
_EXAMPLES = (
    (
        "How do you say good morning in French?",
        '{"arguments": {"text": "good morning", "language": "French"}, "name": "translate"}',
    ),
    ("Remind me in 25 minutes", '{"arguments": {"minutes": 25}, "name": "set_timer"}'),
    ("Is it far from Rome to Naples?", '{"arguments": {"start": "Rome", "end": "Naples"}, "name": "distance"}'),
    ("Heads or tails?", '{"arguments": {}, "name": "flip_coin"}'),
    ("I want to cook lasagna", '{"arguments": {"dish": "lasagna"}, "name": "recipe"}'),
    ("Write to Ann that I am late", '{"arguments": {"person": "Ann", "text": "I am late"}, "name": "send_mail"}'),
)


def choose_tools(tools: Sequence[Mapping[str, Any]], choice: str) -> list[Mapping[str, Any]]:
    """The functions among which a call is forced: all for ``required``, else the one of that name.

    Raises:
        InvalidParametersError: No tool has that name.
    """
    functions = [cast("Mapping[str, Any]", tool["function"]) for tool in tools]
    if choice == "required":
        return functions
    chosen = [function for function in functions if function["name"] == choice]
    if not chosen:
        names = ", ".join(str(function["name"]) for function in functions)
        raise InvalidParametersError(f"tool_choice names no offered tool: {choice!r}. Offered are: {names}.")
    return chosen


def forced_call_request(
    messages: Sequence[Mapping[str, Any]], functions: Sequence[Mapping[str, Any]], max_tokens: int
) -> dict[str, Any]:
    """The body of a request to ``/v1/completions`` whose text is a call of one of ``functions``."""
    request = next((text_of(each.get("content")) for each in reversed(messages) if each.get("role") == "user"), "")
    forms = [
        {
            "type": "object",
            "properties": {"arguments": _closed(function.get("parameters")), "name": {"const": function["name"]}},
            "required": ["arguments", "name"],
            "additionalProperties": False,
        }
        for function in functions
    ]
    # One list of all tools, the real ones last, lets a small model choose; a list for each example does not.
    tools = "\n".join(f"- {tool}" for tool in (*_EXAMPLE_TOOLS, *map(_describe, functions)))
    examples = [f"Request: {asked}\nCall: {call}" for asked, call in _EXAMPLES]
    return {
        "prompt": "\n\n".join([f"Tools:\n{tools}", *examples, f"Request: {' '.join(request.split())}\nCall: "]),
        "json_schema": forms[0] if len(forms) == 1 else {"anyOf": forms},
        "max_tokens": max_tokens,
        "temperature": 0.0,
        "stream": False,
    }


def call_chunk(completion: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to such a request as one chunk of a chat completion.

    A text that was cut, and so is no whole JSON, becomes a call with that text as its arguments.
    """
    choice = cast("Mapping[str, Any]", completion["choices"][0])
    text = str(choice.get("text") or "")
    try:
        call: Any = json.loads(text)
    except (ValueError, RecursionError):
        call = {"arguments": text, "name": ""}
    arguments = call["arguments"] if isinstance(call["arguments"], str) else dump_json(call["arguments"])
    part = {"index": 0, "type": "function", "function": {"name": call["name"], "arguments": arguments}}
    finish = "length" if choice.get("finish_reason") == "length" else "tool_calls"
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [part]}, "finish_reason": finish}],
        "usage": completion.get("usage"),
    }


def _describe(function: Mapping[str, Any]) -> str:
    schema = cast("Mapping[str, Any]", function.get("parameters") or {})
    fields = ", ".join(cast("Mapping[str, Any]", schema.get("properties") or {}))
    return f"{function['name']}({fields}): {' '.join(str(function.get('description', '')).split())}"


def _closed(schema: object) -> dict[str, Any]:
    """A tool's schema without further properties, which a small model would invent."""
    fields = dict(cast("Mapping[str, Any]", schema)) if isinstance(schema, Mapping) else {}
    return {"type": "object", "properties": {}, **fields, "additionalProperties": False}
