"""The body of a chat completions request, joined from bytes that were made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from yiemagent_nb.backends.engine.encoding import as_message, dump, join_body
from yiemagent_nb.backends.engine.tool_choice import named_tool
from yiemagent_nb.core.reading.fields import as_mapping
from yiemagent_nb.core.request import RequestMessages, WireMessage

__all__ = ["ChatRequest", "chat_fields"]


class ChatRequest:
    """Encodes the bodies of requests.

    Messages and tools that cannot have been changed since are not dumped again, so a request costs
    what is new in it, and the joining of bytes.
    """

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        fields: Mapping[str, Any],
    ) -> bytes:
        """The body: ``fields``, then the messages, then the tools.

        Blocks of reasoning, which this endpoint does not know, are left out.

        Raises:
            InvalidParametersError: Something in it cannot be JSON, is no message in OpenAI's form, or
                stands in ``fields`` and may not.
        """
        if isinstance(messages, RequestMessages):
            pieces = messages.pieces(None, _wire_encoded)
        else:
            pieces = [piece for message in messages if (piece := _encoded(message))]
        return join_body(fields, "messages", pieces, tools, _as_it_is)


def chat_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a request as chat completions take them: a tool's name becomes its choice."""
    if (name := named_tool(fields.get("tool_choice"))) is not None:
        return {**fields, "tool_choice": {"type": "function", "function": {"name": name}}}
    return dict(fields)


def _as_it_is(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    return tool


def _wire_encoded(_: int, message: WireMessage) -> bytes:
    return message.encoded


def _encoded(message: object) -> bytes:
    """A message's JSON; empty for an answer of nothing but reasoning."""
    encoded: bytes | None = getattr(message, "encoded", None)
    if encoded is not None:
        return encoded
    fields = as_message(message)
    content: object = fields.get("content")
    if fields.get("role") == "assistant" and isinstance(content, list | tuple):
        blocks = cast("Sequence[object]", content)
        said = [block for block in blocks if not _is_reasoning(block)]
        if not said and not fields.get("tool_calls"):
            return b""
        if len(said) < len(blocks):
            fields = {**fields, "content": said or None}
    return dump(fields)


def _is_reasoning(block: object) -> bool:
    fields = as_mapping(block)
    return fields is not None and fields.get("type") == "reasoning"
