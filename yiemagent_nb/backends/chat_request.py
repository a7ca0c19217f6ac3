"""The body of a chat completions request, joined from bytes that were made once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from yiemagent_nb.core.errors import InvalidParametersError

__all__ = ["ChatRequest", "read_tool_choice"]

_TOOL_CHOICES = frozenset({"auto", "none", "required"})


class ChatRequest:
    """Encodes the bodies of one backend's requests.

    Messages that have their JSON as ``encoded``, each or all of them together, are not dumped again,
    and a list of tools only where it is another than the last one; so a request costs what is new
    in it, and the joining of bytes.
    """

    def __init__(self) -> None:
        self._tools: Sequence[Mapping[str, Any]] | None = None
        self._encoded_tools = b""

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
        parts = [_dump(fields)[:-1], b',"messages":[', _encoded(messages), b"]"]
        if tools:
            parts += (b',"tools":', self._of_tools(tools))
        parts.append(b"}")
        return b"".join(parts)

    def _of_tools(self, tools: Sequence[Mapping[str, Any]]) -> bytes:
        if tools is not self._tools:
            self._encoded_tools = _dump(list(tools))
            self._tools = tools
        return self._encoded_tools


def read_tool_choice(choice: object) -> object:
    """A tool choice as it is sent: one of OpenAI's words, or the object for a tool's name."""
    if isinstance(choice, str) and choice not in _TOOL_CHOICES:
        return {"type": "function", "function": {"name": choice}}
    return choice


def _encoded(messages: Sequence[Any]) -> bytes:
    whole: bytes | None = getattr(messages, "encoded", None)
    if whole is not None:
        return whole
    return b",".join([getattr(message, "encoded", None) or _dump(message) for message in messages])


def _dump(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    except (TypeError, ValueError) as error:
        raise InvalidParametersError(
            f"A request cannot be written as JSON: {error}.", "Give messages, tools and options as plain values."
        ) from error
