"""How a person is shown what a hook changes: messages, requests, answers and results as texts, before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal, cast

from yiemagent_nb.core.hooks import AgentContext
from yiemagent_nb.core.messages import AssistantMessage, CustomMessage
from yiemagent_nb.core.openai_form import to_openai
from yiemagent_nb.core.results import ToolResult

__all__ = [
    "Effect",
    "Seen",
    "answer_text",
    "compare_lines",
    "context_lines",
    "pretty",
    "request_lines",
    "result_text",
    "same",
]

Effect = Literal["changed", "blocked", "unchanged", "failed"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a hook did with one call."""

    effect: Effect
    detail: str
    before: str = ""
    after: str = ""
    message: str = ""


def compare_lines(before: list[str], after: list[str], words: Sequence[str] = ()) -> Seen:
    """What is gone, and what is new, in a list of messages."""
    gone: list[str] = []
    new: list[str] = []
    changed = 0
    for kind, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind != "equal":
            gone.extend(before[start:end])
            new.extend(after[new_start:new_end])
            changed += min(end - start, new_end - new_start)
    counts = [
        f"{count} of {len(before)} messages {'is' if count == 1 else 'are'} {what}."
        for count, what in ((len(gone) - changed, "left out"), (changed, "changed"))
        if count
    ]
    if (added := len(new) - changed) > 0:
        counts.append(f"{added} {'is' if added == 1 else 'are'} added.")
    effect: Effect = "changed" if counts else "unchanged"
    return Seen(effect, " ".join([*words, *counts]), "\n\n".join(gone), "\n\n".join(new))


def context_lines(context: AgentContext) -> list[str]:
    """The messages of a context, each as a text."""
    lines = [_message_text(to_openai(each)) for each in context.messages if not isinstance(each, CustomMessage)]
    return [f"system: {context.system_prompt}", *lines] if context.system_prompt else lines


def request_lines(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The messages of a request, each as a text."""
    return [_message_text(message) for message in messages]


def _message_text(message: Mapping[str, Any]) -> str:
    """A message in OpenAI's form as a person reads it: its text where that is all, else JSON."""
    fields = {name: value for name, value in message.items() if value is not None}
    role = fields.pop("role", "")
    content = fields.get("content")
    blocks = cast("Sequence[Any]", content) if isinstance(content, list | tuple) else ()
    if blocks and all(isinstance(b, Mapping) and set(cast("Any", b)) == {"type", "text"} for b in blocks):
        fields["content"] = content = "".join(str(block["text"]) for block in blocks)
    text = str(fields.pop("content")) if isinstance(content, str) else ""
    rest = pretty(fields) if fields else ""
    return f"{role}: {text}{' ' if text and rest else ''}{rest}"


def answer_text(message: AssistantMessage) -> str:
    """An answer with its calls."""
    calls = [
        f"{call.name}({json.dumps(call.arguments, ensure_ascii=False, default=repr)})" for call in message.tool_calls
    ]
    return "\n".join([text for text in (message.text,) if text] + calls)


def result_text(result: ToolResult) -> str:
    """A result, and in brackets what else it is."""
    others = [block.type for block in result.content if block.type != "text"]
    words = [*(["error"] if result.is_error else []), *others, *(["ends the run"] if result.terminate else [])]
    return f"{result.text} [{', '.join(words)}]" if words else result.text


def same(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    """Whether two mappings have the same under a name."""
    missing = object()
    a, b = one.get(name, missing), other.get(name, missing)
    return a is b or (type(a) is type(b) and pretty(a) == pretty(b))


def pretty(value: object) -> str:
    """JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=repr)
