"""The body of a chat completions request, joined from bytes that were made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yiemagent_nb.backends.encoding import EncodedTools, dump
from yiemagent_nb.backends.tool_choice import named_tool

__all__ = ["ChatRequest", "chat_fields"]


class ChatRequest:
    """Encodes the bodies of one backend's requests.

    Messages that have their JSON as ``encoded``, each or all of them together, are not dumped again,
    and a list of tools only where it is another than the last one; so a request costs what is new
    in it, and the joining of bytes.
    """

    def __init__(self) -> None:
        self._tools = EncodedTools()

    def encode(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        fields: Mapping[str, Any],
    ) -> bytes:
        """The body: ``fields``, then the messages, then the tools.

        Raises:
            InvalidParametersError: Something in it cannot be JSON.
        """
        parts = [dump(fields)[:-1], b',"messages":[', _encoded(messages), b"]"]
        if tools:
            parts += (b',"tools":', self._tools.encode(tools))
        parts.append(b"}")
        return b"".join(parts)


def chat_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a request as chat completions take them: a tool's name becomes its choice."""
    if (name := named_tool(fields.get("tool_choice"))) is not None:
        return {**fields, "tool_choice": {"type": "function", "function": {"name": name}}}
    return dict(fields)


def _encoded(messages: Sequence[Any]) -> bytes:
    whole: bytes | None = getattr(messages, "encoded", None)
    if whole is not None:
        return whole
    return b",".join([getattr(message, "encoded", None) or dump(message) for message in messages])
