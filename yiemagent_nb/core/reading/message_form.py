"""One message of a model, or the delta of one: its reasoning, its content, its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.core.errors import MalformedResponseError
from yiemagent_nb.core.messages import ImageContent
from yiemagent_nb.core.reading.blocks import Delta
from yiemagent_nb.core.reading.content import GrowingContent
from yiemagent_nb.core.reading.fields import as_mapping, clean_text, first_reasoning, text_of
from yiemagent_nb.core.reading.server_errors import quote

__all__ = ["CONTENT_TYPES", "MESSAGE_KEYS", "read_content_blocks", "read_message", "unknown_form"]

_TEXT_TYPES = frozenset({"text", "output_text", "input_text"})
_REASONING_TYPES = frozenset({"reasoning", "thinking", "reasoning_text", "summary_text", "reasoning_content"})
_CALL_TYPES = frozenset({"tool_call", "toolCall", "tool_use", "function", "function_call"})
_IMAGE_TYPES = frozenset({"image", "image_url"})
_CONTENT_KEYS = ("content", "text", "response")

CONTENT_TYPES = _TEXT_TYPES | _REASONING_TYPES | _CALL_TYPES | _IMAGE_TYPES | {"tool_calls", "refusal"}
"""The types of the content blocks that are known."""

MESSAGE_KEYS = frozenset(
    {
        *_CONTENT_KEYS,
        "reasoning",
        "reasoning_content",
        "reasoning_text",
        "reasoning_details",
        "thinking",
        "tool_calls",
        "tool_call",
        "function_call",
        "refusal",
    }
)
"""A mapping with one of these keys has something of an answer."""

EXPECTED_FORMS = (
    "a string, OpenAI's object with choices, a Responses object with output, or a mapping with message, content, "
    "reasoning or tool_calls"
)


def read_message(blocks: GrowingContent, fields: Mapping[str, Any], out: list[Delta], *, whole: bool) -> None:
    """Read a message into ``blocks``: reasoning, then content, then calls.

    Args:
        blocks: Takes what is read.
        fields: The message, or the delta of one.
        out: Takes the deltas.
        whole: Whether it is all of it, so that each call is one of its own.

    Raises:
        MalformedResponseError: A block or a call has no known form.
    """
    _read_reasoning(blocks, fields, out)
    content: object = next((fields[key] for key in _CONTENT_KEYS if fields.get(key)), None)
    if isinstance(content, str):
        blocks.text(content, out)
    elif content is not None and isinstance(content, Sequence):
        read_content_blocks(blocks, cast("Sequence[object]", content), out, whole=whole)
    elif content is not None:
        read_content_blocks(blocks, [content], out, whole=whole)
    if isinstance(refusal := fields.get("refusal"), str) and refusal:
        blocks.refusal(refusal, out)
    _read_calls(blocks, fields, out, whole=whole)


def _read_reasoning(blocks: GrowingContent, fields: Mapping[str, Any], out: list[Delta]) -> None:
    reasoning, name = first_reasoning(fields)
    if isinstance(found := fields.get("reasoning_details"), list) and found:
        details = [detail for each in cast("list[object]", found) if (detail := as_mapping(each)) is not None]
        blocks.reasoning_details(details, out)
        reasoning = reasoning or "".join(text_of(detail) for detail in details)
    if reasoning:
        blocks.reasoning(reasoning, name or None, out)


def _read_calls(blocks: GrowingContent, fields: Mapping[str, Any], out: list[Delta], *, whole: bool) -> None:
    calls: object = fields.get("tool_calls") or fields.get("tool_call") or ()
    if not calls and "function_call" not in fields:
        return
    for each in cast("Sequence[object]", calls) if isinstance(calls, list | tuple) else [calls]:
        call = as_mapping(each)
        if call is None:
            raise MalformedResponseError(
                f"A tool call is {type(each).__name__}; expected a mapping with id, name and arguments."
            )
        blocks.call(call, out, whole=whole)
    if isinstance(legacy := fields.get("function_call"), Mapping):
        blocks.call({"index": "function_call", "function": legacy}, out, whole=whole)


def read_content_blocks(blocks: GrowingContent, content: Sequence[object], out: list[Delta], *, whole: bool) -> None:
    """Read content blocks. Those of an unknown type, which servers add, are left out.

    Raises:
        MalformedResponseError: A block is no string, has no type, or is a call of no known form.
    """
    for each in content:
        if isinstance(each, str):
            blocks.text(each, out)
            continue
        block = as_mapping(each)
        if block is None:
            raise unknown_form(each)
        _read_content_block(blocks, block, out, whole=whole)


def _read_content_block(blocks: GrowingContent, block: Mapping[str, Any], out: list[Delta], *, whole: bool) -> None:
    kind: object = block.get("type", "text" if "text" in block else None)
    if not isinstance(kind, str):
        raise unknown_form(block)
    if kind in _TEXT_TYPES:
        blocks.text(text_of(block.get("text")), out)
    elif kind in _REASONING_TYPES:
        signature = block.get("signature")
        blocks.reasoning(text_of(block), clean_text(signature) if isinstance(signature, str) else None, out)
    elif kind in _CALL_TYPES:
        blocks.call(block, out, whole=whole or "index" not in block)
    elif kind == "tool_calls":
        _read_calls(blocks, block, out, whole=True)
    elif kind == "refusal":
        blocks.refusal(text_of(block.get("refusal")), out)
    elif kind in _IMAGE_TYPES and (image := _read_image(block)) is not None:
        blocks.image(image, out)


def _read_image(block: Mapping[str, Any]) -> ImageContent | None:
    """An image block of ours, or one with a data URL; None for an address, which is never fetched."""
    if "data" in block:
        data, mime_type = block["data"], block.get("mime_type") or block.get("mimeType") or "image/png"
    else:
        image: object = block.get("image_url")
        url = cast("Mapping[str, Any]", image).get("url") if isinstance(image, Mapping) else image
        head, _, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
        if not data or not head.startswith("data:"):
            return None
        mime_type = head[5:]
    try:
        return ImageContent(data=data, mime_type=mime_type)
    except ValueError as error:
        raise MalformedResponseError(f"An image in the answer is none: {quote(str(error))}") from error


def unknown_form(value: object) -> MalformedResponseError:
    """The error for what is no answer: it says what came, what was expected, what to return."""
    if isinstance(value, Mapping):
        keys = ", ".join(map(str, list(cast("Mapping[object, object]", value))[:8]))
        came = f"a mapping with the keys {quote(keys, 120)}" if keys else "an empty mapping"
    else:
        came = "None" if value is None else f"{type(value).__name__} ({quote(repr(value), 80)})"
    return MalformedResponseError(
        f"The llm_call's answer is {came}; expected {EXPECTED_FORMS}.",
        'Return the text itself, or {"content": text, "tool_calls": [{"name": …, "arguments": {…}}]}.',
    )
