"""JSON for requests: dumped once, joined as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from yiemagent_nb.core.errors import InvalidParametersError

__all__ = ["EncodedTools", "dump"]

ToolMapping = Mapping[str, Any]


def dump(value: object) -> bytes:
    """Compact JSON in UTF-8; lone surrogates become question marks.

    Raises:
        InvalidParametersError: Something in it cannot be JSON.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    except (TypeError, ValueError) as error:
        raise InvalidParametersError(
            f"A request cannot be written as JSON: {error}.", "Give messages, tools and options as plain values."
        ) from error


class EncodedTools:
    """The JSON of a request's tools, made anew only where they are other ones than the last.

    Args:
        form: Turns a tool in OpenAI's chat form into the form of the endpoint.
    """

    def __init__(self, form: Callable[[ToolMapping], ToolMapping] = dict) -> None:
        self._form = form
        self._tools: Sequence[ToolMapping] | None = None
        self._encoded = b""

    def encode(self, tools: Sequence[ToolMapping]) -> bytes:
        """The JSON list of ``tools``."""
        if tools is not self._tools:
            self._encoded = dump([self._form(each) for each in tools])
            self._tools = tools
        return self._encoded
