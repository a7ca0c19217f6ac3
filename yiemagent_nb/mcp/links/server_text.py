"""ServerText: what a server wrote, made fit for errors and events.

A server may repeat the keys that it was given, draw on the terminal, and write without end. Results that
succeed are not touched: a tool may have been asked for just that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from yiemagent_nb.core.validation import cut, shorten
from yiemagent_nb.mcp.link import Inbox

__all__ = ["MaskedInbox", "ServerText", "without_controls"]

LONGEST_MESSAGE = 2_000
"""Characters of an error's message."""

LONGEST_DATA = 20_000
"""Characters of an error's data, as JSON."""

_LOOKED_AT = 10
"""So many times what is shown is looked through; no key is longer."""

_MAX_DEPTH = 64

_TERMINAL_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
"""A command to a terminal, as ECMA-48 defines them: of colours, of titles, of the cursor."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and line feed; marks of the writing direction too, which let text pose as another."""


def _unmasked(text: str) -> str:
    return text


class ServerText:
    """Takes keys and control characters out of what a server wrote, and cuts it.

    Args:
        mask: Takes keys out of a text. Default: there are none.
    """

    def __init__(self, mask: Callable[[str], str] = _unmasked) -> None:
        self.mask = mask

    def message(self, text: str) -> str:
        """A text of an error: at most 2,000 characters."""
        text = without_controls(text[: _LOOKED_AT * LONGEST_MESSAGE])
        return cut(self.mask(text), LONGEST_MESSAGE)

    def data(self, data: object) -> object:
        """The data of an error; as a text of 20,000 characters where it is longer."""
        try:
            text = json.dumps(data, ensure_ascii=False, default=repr)
        except (ValueError, TypeError, RecursionError):
            return self.mask(shorten(data, LONGEST_MESSAGE))
        if len(text) <= LONGEST_DATA:
            return self.masked(data)
        return cut(self.mask(text[: _LOOKED_AT * LONGEST_DATA]), LONGEST_DATA)

    def result(self, result: dict[str, Any]) -> dict[str, Any]:
        """A result; one that tells of a failure comes without keys."""
        return self.masked(result) if result.get("isError") is True else result

    def masked(self, value: Any) -> Any:
        """A JSON value without keys."""
        return value if self.mask is _unmasked else self._masked(value, _MAX_DEPTH)

    def _masked(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            return self.mask(value)
        if not isinstance(value, list | Mapping):
            return value
        if not depth:
            return None
        if isinstance(value, list):
            return [self._masked(part, depth - 1) for part in cast("list[object]", value)]
        fields = cast("Mapping[str, object]", value)
        return {self.mask(str(name)): self._masked(part, depth - 1) for name, part in fields.items()}


class MaskedInbox:
    """An inbox to which no notification and no rubbish brings a key."""

    def __init__(self, inner: Inbox, text: ServerText) -> None:
        self._inner = inner
        self._text = text
        self.log = inner.log

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """See ``Inbox``."""
        self._inner.notified(method, self._text.masked(params))

    async def requested(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """See ``Inbox``. What it asks stays as it is, since its answer depends on it."""
        return await self._inner.requested(method, params)

    def answers(self, method: str) -> bool:
        """See ``Inbox``."""
        return self._inner.answers(method)

    def wrote_to_stderr(self, line: str) -> None:
        """See ``Inbox``."""
        self._inner.wrote_to_stderr(self._text.mask(line))

    def wrote_rubbish(self, line: str) -> None:
        """See ``Inbox``."""
        self._inner.wrote_rubbish(self._text.mask(line))


def without_controls(text: str) -> str:
    """A text without commands to a terminal, and with other control characters escaped."""
    text = text.replace("\r\n", "\n")
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], _TERMINAL_SEQUENCE.sub("", text))
