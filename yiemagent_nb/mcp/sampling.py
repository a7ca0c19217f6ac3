"""Sampling: what a server asks a model, and the answer in the form that the server takes.

Source of the form: MCP 2025-11-25, "Sampling". Its tools, and sound, are not taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from yiemagent_nb.core.errors import McpError
from yiemagent_nb.core.json_values import clean_text
from yiemagent_nb.core.messages import AssistantMessage, ImageContent, StopReason, TextContent, UserMessage
from yiemagent_nb.core.validation import shorten
from yiemagent_nb.mcp.elicitation import INVALID_PARAMS

__all__ = ["SAMPLING", "SamplingRequest", "read_sampling", "restored", "sampling_result", "shown"]

SAMPLING = "sampling/createMessage"

MAX_CHARACTERS = 1_000_000
"""Of the texts of one request, so that what a person is asked to approve can be handled at all."""

_STOP_REASONS: Mapping[StopReason, str] = {
    "end_turn": "endTurn",
    "tool_calls": "endTurn",
    "length": "maxTokens",
    "content_filter": "contentFilter",
}
_SHOWN = ("systemPrompt", "messages", "maxTokens", "temperature", "stopSequences")
_LONGEST_SHOWN = 1_000
"""Characters of base64 that are shown to a person; more of it says nothing to them."""


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A request in our own types. ``options`` are keywords of a backend."""

    messages: tuple[UserMessage | AssistantMessage, ...]
    system_prompt: str
    options: Mapping[str, Any]


def read_sampling(params: Mapping[str, Any]) -> SamplingRequest:
    """Read the params of ``sampling/createMessage``.

    Which model answers is not the server's to say: ``modelPreferences`` are left out, as MCP allows, and
    so are ``includeContext`` and ``metadata``.

    Raises:
        McpError: They have not the form of MCP, or hold what is not taken; the error is for the server.
    """
    if params.get("tools") or params.get("toolChoice"):
        raise _refusal("tools and toolChoice are not taken: this client did not say that it samples with tools")
    messages: object = params.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _refusal(f"messages must be a list of messages, not {shorten(cast('object', messages))}")
    system_prompt = params.get("systemPrompt") or ""
    if not isinstance(system_prompt, str):
        raise _refusal(f"systemPrompt must be a text, not {shorten(system_prompt)}")
    read = tuple(map(_read_message, cast("list[object]", messages)))
    if len(system_prompt) + sum(len(message.text) for message in read) > MAX_CHARACTERS:
        raise _refusal(f"the texts must have at most {MAX_CHARACTERS:,} characters in all")
    return SamplingRequest(read, clean_text(system_prompt), _read_options(params))


def _read_options(params: Mapping[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    max_tokens, temperature, stop = (params.get(name) for name in ("maxTokens", "temperature", "stopSequences"))
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
        raise _refusal(f"maxTokens must be a whole number, 1 or more, not {shorten(max_tokens)}")
    options["max_tokens"] = max_tokens
    if temperature is not None:
        if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not temperature >= 0:
            raise _refusal(f"temperature must be a number, 0 or more, not {shorten(temperature)}")
        options["temperature"] = temperature
    if stop is not None:
        texts = cast("list[object]", stop) if isinstance(stop, list) else [stop]
        if not all(isinstance(text, str) for text in texts):
            raise _refusal(f"stopSequences must be a list of texts, not {shorten(texts)}")
        if texts:
            options["stop"] = texts
    return options


def _read_message(message: object) -> UserMessage | AssistantMessage:
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", message) if isinstance(message, Mapping) else {}
    role, content = fields.get("role"), fields.get("content")
    if role not in ("user", "assistant"):
        raise _refusal(f"the role of a message is user or assistant, not {shorten(role)}")
    given = cast("list[object]", content) if isinstance(content, list) else [content]
    blocks = [block for block in map(_read_block, given) if block is not None]
    return UserMessage(blocks) if role == "user" else AssistantMessage(blocks)


def _read_block(block: object) -> TextContent | ImageContent | None:
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", block) if isinstance(block, Mapping) else {}
    kind = fields.get("type")
    try:
        if kind == "text" and isinstance(text := fields.get("text"), str):
            return TextContent(text) if text else None
        if kind == "image":
            return ImageContent.model_validate({"data": fields.get("data"), "mime_type": fields.get("mimeType")})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise _refusal(f"an image cannot be read: {problem['msg']}") from error
    raise _refusal(f"content of type {shorten(kind)} is not taken; expected text and images")


def _refusal(what: str) -> McpError:
    return McpError(f"{what[0].upper()}{what[1:]}.", rpc_code=INVALID_PARAMS)


def sampling_result(answer: AssistantMessage, model: str = "") -> dict[str, Any]:
    """An answer in MCP's form: its text, else its first image; one block, as all versions take it.

    Args:
        answer: A whole answer.
        model: The model's name, where the answer has none.
    """
    image = next((block for block in answer.content if isinstance(block, ImageContent)), None)
    content: dict[str, Any] = {"type": "text", "text": answer.text}
    if image is not None and not answer.text:
        content = {"type": "image", "data": image.data, "mimeType": image.mime_type}
    stopped = answer.raw_stop_reason in ("stop_sequence", "stopSequence")
    reason = "stopSequence" if stopped else _STOP_REASONS.get(answer.stop_reason, answer.stop_reason)
    return {"role": "assistant", "content": content, "model": answer.model or model or "unknown", "stopReason": reason}


def shown(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a person is shown of a request, and may change: images by their type and size."""
    return {name: _without_data(params[name]) for name in _SHOWN if params.get(name) is not None}


def restored(edited: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The request as a person changed it, with the images of the first one."""
    images = {_label(data): data for data in _long_data(params.get("messages"))}
    return {**{name: value for name, value in params.items() if name not in _SHOWN}, **_with_data(edited, images)}


def _label(data: str) -> str:
    return f"[{len(data) * 3 // 4} bytes: {data[:24]}…{data[-24:]}]"


def _without_data(value: object) -> Any:
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {
            name: _label(item)
            if name == "data" and isinstance(item, str) and len(item) > _LONGEST_SHOWN
            else _without_data(item)
            for name, item in items
        }
    return [_without_data(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _with_data(value: object, images: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_data(item, images) for name, item in cast("Mapping[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_with_data(item, images) for item in cast("Sequence[object]", value)]
    return images.get(value, value) if isinstance(value, str) else value


def _long_data(value: object) -> list[str]:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        data = fields.get("data")
        own = [data] if isinstance(data, str) and len(data) > _LONGEST_SHOWN else []
        return own + [found for item in fields.values() for found in _long_data(item)]
    return (
        [found for item in cast("list[object]", value) for found in _long_data(item)] if isinstance(value, list) else []
    )
