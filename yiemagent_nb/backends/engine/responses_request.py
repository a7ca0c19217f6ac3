"""The body of a request to the Responses API, made of messages in OpenAI's chat form.

Source of the form: OpenAI's API reference, "Create a model response", with ``store`` off: nothing
stays on the server, so each request carries the whole conversation, reasoning items included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, cast

from yiemagent_nb.backends.engine.encoding import as_message, dump, join_body
from yiemagent_nb.backends.engine.tool_choice import named_tool
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import AssistantMessage, ReasoningContent, TextContent, ToolCall
from yiemagent_nb.core.reading.fields import as_mapping, text_of
from yiemagent_nb.core.request import RequestMessages, WireMessage

__all__ = ["ResponsesRequest", "responses_fields"]

Item = dict[str, Any]


_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_REASONING_TYPES = frozenset({"reasoning", "thinking"})
_IMAGE_TYPES = frozenset({"image_url", "input_image"})
_INSTRUCTING = frozenset({"system", "developer"})


class ResponsesRequest:
    """Encodes the bodies of requests.

    It keeps nothing itself: the items of a message are kept with the message, and what was joined
    of a history with its request. So a request costs what is new in it, and the joining of bytes.

    Args:
        provider: Whose reasoning goes back; that of others is left out.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        fields: Mapping[str, Any],
    ) -> bytes:
        """The body: ``fields``, the first system prompt as ``instructions``, the items, then the tools.

        Args:
            messages: The conversation.
            tools: What the model may call, in OpenAI's chat form.
            fields: Everything else, in the names of this API.

        Raises:
            InvalidParametersError: A message has no known form, something cannot be JSON, or stands in
                ``fields`` and may not.
        """
        form = ("responses", self._provider)

        def encode(position: int, message: Mapping[str, Any]) -> bytes:
            if not isinstance(message, WireMessage):
                return self._encoded(position, as_message(message))
            key = (form, position)
            if message.kept is None or message.kept[0] != key:
                message.kept = key, self._encoded(position, message)
            return message.kept[1]

        if messages and _instructs(first := as_message(messages[0])):
            fields = {**fields, "instructions": text_of(first.get("content"))}
        if isinstance(messages, RequestMessages):
            pieces = messages.pieces(form, encode)
        else:
            pieces = [piece for piece in map(encode, count(), messages) if piece]
        return join_body(fields, "input", pieces, tools, _tool)

    def _encoded(self, position: int, message: Mapping[str, Any]) -> bytes:
        if position == 0 and _instructs(message):
            return b""
        items = self._items(message)
        for number, item in enumerate(items):
            if item["type"] == "message" and item["role"] == "assistant":
                # By its place, so that the same conversation is the same bytes each time, also to the server's cache.
                item["id"] = f"msg_{position}_{number}"
        return b",".join(map(dump, items))

    def _items(self, message: Mapping[str, Any]) -> list[Item]:
        role = message.get("role")
        if role == "assistant":
            source = message.source if isinstance(message, WireMessage) else None
            if isinstance(source, AssistantMessage) and source.provider == self._provider:
                return list(_items_in_order(source, message))
            return _items_of_answer(message)
        if role == "tool":
            output = _tool_output(message.get("content"))
            return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
        if role == "user" or role in _INSTRUCTING:
            return [{"type": "message", "role": role, "content": _input_content(message.get("content"))}]
        raise InvalidParametersError(
            f"A message of role {role!r} cannot be sent to the Responses API.",
            "Known are system, user, assistant and tool.",
        )


def responses_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a chat completions request under the names that this API has for them."""
    there = {name: value for name, value in fields.items() if name != "stream_options"}
    for old in ("max_tokens", "max_completion_tokens"):
        if old in there:
            there["max_output_tokens"] = there.pop(old)
    if (name := named_tool(there.get("tool_choice"))) is not None:
        there["tool_choice"] = {"type": "function", "name": name}
    if (output := as_mapping(there.pop("response_format", None))) is not None:
        inner = as_mapping(output.get("json_schema")) or {}
        text = as_mapping(there.get("text")) or {}
        there["text"] = {**text, "format": {"type": output.get("type"), **inner}}
    return there


def _tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool of the chat form, flat. Left out, ``strict`` would be true here."""
    function = as_mapping(tool.get("function"))
    return tool if function is None else {"type": "function", "strict": False, **function}


def _calls(message: Mapping[str, Any]) -> Iterator[Item]:
    for call in cast("Sequence[Mapping[str, Any]]", message.get("tool_calls") or ()):
        function = as_mapping(call.get("function")) or {}
        yield {
            "type": "function_call",
            "call_id": call.get("id"),
            "name": function.get("name"),
            "arguments": function.get("arguments") or "{}",
        }


def _reasoning_item(block: ReasoningContent) -> Item | None:
    if block.signature is None or not block.signature.startswith("{"):
        return None
    try:
        item: object = json.loads(block.signature)
    except ValueError:
        return None
    fields = as_mapping(item)
    if fields is None or fields.get("type") != "reasoning":
        return None
    return {name: value for name, value in fields.items() if name != "status" and value is not None}


def _instructs(message: Mapping[str, Any]) -> bool:
    return message.get("role") in _INSTRUCTING


def _items_in_order(source: AssistantMessage, message: Mapping[str, Any]) -> Iterator[Item]:
    """An answer of this provider as it was generated: reasoning items stand before what they led to."""
    calls = iter(_calls(message))
    reasoning: list[Item] = []
    for block in source.content:
        if isinstance(block, ReasoningContent):
            item = _reasoning_item(block)
            reasoning += [] if item is None else [item]
            continue
        item = next(calls) if isinstance(block, ToolCall) else None
        if isinstance(block, TextContent):
            item = _said([_output_text(block.text)])
        if item is not None:
            yield from reasoning  # one that nothing follows is refused, and left out
            yield item
            reasoning = []


def _items_of_answer(message: Mapping[str, Any]) -> list[Item]:
    content: object = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        blocks = [block for each in cast("Sequence[object]", content) if (block := _output_block(each)) is not None]
    else:
        text = text_of(content)
        blocks = [_output_text(text)] if text else []
    return [*([_said(blocks)] if blocks else []), *_calls(message)]


def _said(content: Sequence[Item]) -> Item:
    return {"type": "message", "id": "", "role": "assistant", "status": "completed", "content": content}


def _output_text(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}


def _output_block(block: object) -> Item | None:
    """A block of an answer; None for reasoning, which has items of its own, and for text without a letter."""
    fields = _block_fields(block)
    kind = fields["type"]
    if kind in _TEXT_TYPES:
        text = text_of(fields.get("text"))
        return _output_text(text) if text else None
    if kind in _REASONING_TYPES:
        return None
    if kind in _IMAGE_TYPES:
        return _output_text("(image)")  # an answer has none here: the model is told of it
    if kind == "refusal":
        return {"type": "refusal", "refusal": text_of(fields.get("refusal"))}
    raise _unknown_block(kind, "an answer")


def _tool_output(content: object) -> str | list[Item]:
    """What a tool gave: text as a string, since some servers take nothing else, all else as blocks."""
    blocks = _input_content(content)
    if isinstance(blocks, str):
        return blocks
    if all(block["type"] == "input_text" for block in blocks):
        return text_of(blocks)
    return blocks


def _input_content(content: object) -> str | list[Item]:
    """What a person, the system or a tool says: text as a string, blocks in the names of this API."""
    if not isinstance(content, Sequence) or isinstance(content, str):
        return text_of(content)
    return [_input_block(block) for block in cast("Sequence[object]", content)]


def _input_block(block: object) -> Item:
    fields = _block_fields(block)
    kind = fields["type"]
    if kind in _IMAGE_TYPES:
        image: object = fields.get("image_url")
        inner = as_mapping(image)
        url = fields if inner is None else {**fields, "image_url": inner.get("url")}
        return {**url, "type": "input_image", "detail": (inner or fields).get("detail") or "auto"}
    if kind == "file":
        return {
            **{name: each for name, each in fields.items() if name != "file"},
            **(as_mapping(fields.get("file")) or {}),
            "type": "input_file",
        }
    if kind.startswith("input_"):
        return fields
    if kind in _TEXT_TYPES:
        return {"type": "input_text", "text": text_of(fields.get("text"))}
    raise _unknown_block(kind, "what is told to a model")


def _block_fields(block: object) -> Item:
    """A block's fields, its type among them; a string is a block of text."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    fields = as_mapping(block)
    if fields is None:
        raise _unknown_block(type(block).__name__, "a message")
    kind: object = fields.get("type") or next((name for name in ("text", "image_url", "file") if name in fields), None)
    return {**fields, "type": str(kind)}


def _unknown_block(kind: str, where: str) -> InvalidParametersError:
    return InvalidParametersError(
        f"A content block of type {kind!r} cannot be sent to the Responses API in {where}.",
        "Known are text, image_url, file and this API's own; to_openai(message) makes them of the history.",
    )
