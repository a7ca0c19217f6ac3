"""The body of a request to the Responses API, made of messages in OpenAI's chat form.

Source of the form: OpenAI's API reference, "Create a model response", with ``store`` off: nothing
stays on the server, so each request carries the whole conversation, reasoning items included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, cast

from yiemagent_nb.backends.encoding import EncodedTools, dump
from yiemagent_nb.backends.tool_choice import named_tool
from yiemagent_nb.core.errors import InvalidParametersError
from yiemagent_nb.core.messages import AssistantMessage, ReasoningContent, TextContent, ToolCall
from yiemagent_nb.core.reading.fields import as_mapping, text_of
from yiemagent_nb.core.request import WireMessage

__all__ = ["ResponsesRequest", "responses_fields"]

Item = dict[str, Any]


class ResponsesRequest:
    """Encodes the bodies of one backend's requests; each message is turned into items once.

    Args:
        provider: Whose reasoning goes back; that of others is left out.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._tools = EncodedTools(_tool)
        self._made: dict[int, tuple[Mapping[str, Any], bytes]] = {}
        self._numbers = count()

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        fields: Mapping[str, Any],
        *,
        with_reasoning: bool = True,
    ) -> bytes:
        """The body: ``fields``, the first system prompt as ``instructions``, the items, then the tools.

        Args:
            messages: The conversation.
            tools: What the model may call, in OpenAI's chat form.
            fields: Everything else, in the names of this API.
            with_reasoning: Whether reasoning items go back.

        Raises:
            InvalidParametersError: A message has no known form, or cannot be JSON.
        """
        if messages and messages[0].get("role") in {"system", "developer"}:
            fields = {**fields, "instructions": text_of(messages[0].get("content"))}
            messages = messages[1:]
        made = {} if not with_reasoning else self._made
        encoded: list[bytes] = []
        for message in messages:
            known = made.get(id(message))
            if known is None or known[0] is not message:
                items = self._items(message, with_reasoning=with_reasoning)
                known = made[id(message)] = (message, b",".join(map(dump, items)))
            if known[1]:
                encoded.append(known[1])
        if with_reasoning and len(made) > 2 * len(messages):
            self._made = {id(message): made[id(message)] for message in messages}
        parts = [dump(fields)[:-1], b',"input":[', b",".join(encoded), b"]"]
        if tools:
            parts += (b',"tools":', self._tools.encode(tools))
        parts.append(b"}")
        return b"".join(parts)

    def _items(self, message: Mapping[str, Any], *, with_reasoning: bool) -> list[Item]:
        role = message.get("role")
        if role == "assistant":
            source = message.source if isinstance(message, WireMessage) else None
            if isinstance(source, AssistantMessage) and source.provider == self._provider:
                return list(self._items_in_order(source, message, with_reasoning=with_reasoning))
            return self._items_of_answer(message)
        if role == "tool":
            output = text_of(message.get("content"))
            return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
        if role in {"user", "system", "developer"}:
            return [{"type": "message", "role": role, "content": _input_content(message.get("content"))}]
        raise InvalidParametersError(
            f"A message of role {role!r} cannot be sent to the Responses API.",
            "Known are system, user, assistant and tool.",
        )

    def _items_in_order(
        self, source: AssistantMessage, message: Mapping[str, Any], *, with_reasoning: bool
    ) -> Iterator[Item]:
        """An answer of this provider as it was generated: reasoning items stand before what they led to."""
        calls = iter(_calls(message))
        reasoning: list[Item] = []
        for block in source.content:
            if isinstance(block, ReasoningContent):
                item = _reasoning_item(block) if with_reasoning else None
                reasoning += [] if item is None else [item]
                continue
            item = next(calls) if isinstance(block, ToolCall) else None
            if isinstance(block, TextContent):
                item = self._said(block.text)
            if item is not None:
                yield from reasoning  # one that nothing follows is refused, and left out
                yield item
                reasoning = []

    def _items_of_answer(self, message: Mapping[str, Any]) -> list[Item]:
        text = text_of(message.get("content"))
        return [*([self._said(text)] if text else []), *_calls(message)]

    def _said(self, text: str) -> Item:
        content: list[Item] = [{"type": "output_text", "text": text, "annotations": []}]
        number = next(self._numbers)
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }


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


def _input_content(content: object) -> object:
    """What a person or the system says: text as a string, blocks in the names of this API."""
    if not isinstance(content, Sequence) or isinstance(content, str):
        return text_of(content)
    return [_input_block(block) for block in cast("Sequence[object]", content)]


def _input_block(block: object) -> Item:
    fields = as_mapping(block) or {"text": block}
    image: object = fields.get("image_url")
    if image is None:
        return {"type": "input_text", "text": text_of(fields.get("text"))}
    inner = as_mapping(image) or {"url": image}
    return {"type": "input_image", "image_url": inner.get("url"), "detail": inner.get("detail") or "auto"}
