"""Pieces of messages, as every form of a conversation for people shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.json_values import json_form
from yiemagent_nb.core.messages import AssistantMessage, Message, ToolCall, ToolResultMessage
from yiemagent_nb.core.text_files import TextFile, read_text_file
from yiemagent_nb.sessions.visible import visible_name

__all__ = [
    "IMAGE_TYPES",
    "attached_file",
    "call_line",
    "call_lines",
    "cut_text",
    "denied",
    "results_of_calls",
]

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Images that are shown; one of another type, such as SVG, is only named."""

_SHORT_CALL = 100


def attached_file(text: str) -> TextFile | None:
    """The file that a block of a person's message holds, its name made visible."""
    file = read_text_file(text)
    return None if file is None else file._replace(name=visible_name(file.name))


def call_line(call: ToolCall) -> str:
    """A call on one line: ``add(a=17, b=25)``."""
    if call.raw_arguments is not None:
        return f"{visible_name(call.name)}({visible_name(call.raw_arguments)})"
    return f"{visible_name(call.name)}({', '.join(_arguments(call))})"


def call_lines(call: ToolCall) -> str:
    """A call, with an argument a line where it is long."""
    line = call_line(call)
    if call.raw_arguments is not None or len(line) <= _SHORT_CALL:
        return line
    arguments = "".join(f"  {each},\n" for each in _arguments(call))
    return f"{visible_name(call.name)}(\n{arguments})"


def _arguments(call: ToolCall) -> list[str]:
    arguments: Mapping[str, object] = call.arguments
    return [
        f"{visible_name(name)}={visible_name(json.dumps(json_form(value), ensure_ascii=False))}"
        for name, value in arguments.items()
    ]


def cut_text(text: str, most: int) -> str:
    """At most so many characters of a text of many lines; how many are missing is said on a line of its own."""
    left_out = len(text) - most
    return f"{text[:most]}\n… {left_out} more characters" if left_out > 0 else text


def denied(result: ToolResultMessage) -> bool:
    """Whether a call did not run since a hook, such as that of approvals, did not allow it.

    Told by the details that name the hook; those of a tool that says that something was blocked name none.
    """
    details: object = result.details
    if not result.is_error or not isinstance(details, Mapping):
        return False
    told = cast("Mapping[str, Any]", details)
    return set(told) == {"blocked", "hook"} and told["blocked"] is True and isinstance(told["hook"], str)


def results_of_calls(messages: Sequence[Message]) -> Mapping[int, ToolResultMessage]:
    """Results by the ``id()`` of their calls, since the ids that models give come again in other answers."""
    results: dict[int, ToolResultMessage] = {}
    waiting: dict[str, ToolCall] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            waiting |= {call.id: call for call in message.tool_calls}
        elif isinstance(message, ToolResultMessage) and (call := waiting.pop(message.tool_call_id, None)) is not None:
            results[id(call)] = message
    return results
